//! The targets that read heaps: graphs, and memory.

use borehole_heap::json::JsonLayout;
use borehole_heap::rmem::MappedGraph;
use borehole_heap::{Graph, GraphBuilder, Parents, TreeParents, heapsnapshot, hprof, info, lines};
use borehole_php::{AnalyzeOptions, analyze};
use borehole_process::Dump;

/// Opens the bytes as an `.rmem` file. What passes the check of the whole is the same when it was written and read again; what
/// does not can be used all the same.
pub(super) fn rmem(bytes: &[u8]) {
    let Ok(view) = MappedGraph::open(bytes) else { return };
    let is_whole = view.check().is_ok();
    use_up(&view);
    let Ok(graph) = view.to_graph() else { return };
    let mut written = Vec::new();
    borehole_heap::rmem::write(&graph, &mut written).expect("memory takes everything");
    let again = MappedGraph::open(&written).expect("what was written opens");
    if is_whole {
        assert_eq!((graph.counts().nodes, graph.counts().edges), (view.counts().nodes, view.counts().edges));
        again.check().expect("what was written is whole");
    }
    assert_eq!(again.to_graph().expect("what was written is a graph"), graph);
}

/// Reads the bytes as the JSON of a heap, which is the same when it was written and read again.
pub(super) fn json(bytes: &[u8]) {
    let Ok(graph) = borehole_heap::json::read(bytes) else { return };
    use_up(&graph);
    let written = |graph: &_| {
        let mut out = Vec::new();
        borehole_heap::json::write(graph, JsonLayout::Compact, &mut out).expect("memory takes everything");
        out
    };
    let once = written(&graph);
    let again = borehole_heap::json::read(&once).expect("what was written is JSON of a heap");
    assert_eq!(written(&again), once);
}

/// Reads the bytes as a dump, strictly and past damage: what is read strictly is read whole, what is left is the same when it was
/// written and read again, and whatever PHP may be in it is walked to an end.
pub(super) fn rdump(bytes: &[u8]) {
    let strict = Dump::read(bytes);
    let Ok((dump, recovery)) = Dump::recover(bytes) else {
        return assert!(strict.is_err(), "nothing is left of what is whole");
    };
    assert_eq!(strict.is_ok(), recovery.is_whole());
    let mut written = Vec::new();
    dump.write(&mut written).expect("memory takes everything");
    let again = Dump::read(written.as_slice()).expect("what was written is whole");
    assert!(again.ranges().eq(dump.ranges()) && again.facts().eq(dump.facts()));
    let mut builder = GraphBuilder::new();
    if analyze(&dump, &AnalyzeOptions::default(), &mut builder).is_ok() {
        use_up(&builder.finish().expect("a walk makes a graph"));
    }
}

/// Everything that reads a graph.
fn use_up(graph: &impl Graph) {
    let mut out = Vec::new();
    let exports = [
        hprof::write(graph, &mut out),
        heapsnapshot::write(graph, &mut out),
        lines::write(graph, &mut out),
        borehole_heap::json::write(graph, JsonLayout::Pretty, &mut out),
    ];
    assert!(exports.iter().all(Result::is_ok), "memory takes everything");
    let _ = (info(graph), Parents::of(graph), TreeParents::of(graph));
}
