//! Damaged files give an error or a part of a graph, never a panic, and no more memory than the file takes.

use borehole_heap::rmem::{self, MappedGraph};
use borehole_heap::{Graph as _, NodeId, Parents, TreeParents, heapsnapshot, hprof, info, json, lines};
use borehole_testkit::allocations::allocations;
use proptest::prelude::*;

use crate::graphs::{graph, plain, small};
use crate::rmem::written;

/// Reads as much as possible. Memory grows with the file, whatever its numbers claim.
fn use_up(file: &[u8]) {
    let (_, held) = allocations(|| MappedGraph::open(file).map(drop));
    assert!(held.peak_bytes < 20_000 + 4 * file.len() as u64, "{held:?} for {} bytes", file.len());
    if let Ok(view) = MappedGraph::open(file) {
        let _ = view.check();
        let _ = plain(&view);
        let _ = view.to_graph();
        let _ = info(&view);
        let mut out = Vec::new();
        let _ = rmem::write(&view, &mut out);
        let _ = json::write(&view, json::JsonLayout::Pretty, &mut out);
        let _ = lines::write(&view, &mut out);
        let _ = hprof::write(&view, &mut out);
        let _ = heapsnapshot::write(&view, &mut out);
        let _ = (Parents::of(&view), TreeParents::of(&view).path(NodeId(0)));
    }
}

#[test]
fn prefixes_and_changed_bytes_cause_no_panic() {
    let good = written(&small());
    for end in 0..good.len() {
        use_up(&good[..end]);
    }
    for at in 0..good.len() {
        for value in [0xff, good[at].wrapping_add(1)] {
            let mut file = good.clone();
            file[at] = value;
            use_up(&file);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn random_damage_causes_no_panic(graph in graph(), changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40)) {
        let mut file = written(&graph);
        for (at, value) in changes {
            let at = at.index(file.len());
            file[at] = value;
        }
        use_up(&file);
    }
}
