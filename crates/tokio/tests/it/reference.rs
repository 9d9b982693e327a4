//! The reference's reader reads everything that is recorded.

use std::collections::BTreeMap;
use std::fs;

use borehole_recorder::{Compression, Recorder};
use borehole_tokio::TokioRecorder;
use dial9_trace_format::decoder::Decoder;
use tokio::runtime::Builder;

use super::scratch::Scratch;

#[test]
fn the_reference_reads_every_event() {
    let folder = Scratch::new();
    let builder = Recorder::builder(folder.folder()).compression(Compression::None);
    let recorder = builder.start().unwrap();
    recorder.handle().add_resources().unwrap();
    let tokio = TokioRecorder::new(recorder.handle());
    let runtime = tokio.build("web", Builder::new_multi_thread().worker_threads(2).enable_all()).unwrap();
    runtime.block_on(async {
        let mut set = borehole_tokio::JoinSet::new();
        (0..10).for_each(|_| drop(set.spawn(async { tokio::task::yield_now().await })));
        set.join_all().await;
    });
    drop(runtime);
    let summary = recorder.finish().unwrap();
    let mut names = BTreeMap::new();
    for entry in fs::read_dir(folder.folder()).unwrap() {
        let trace = fs::read(entry.unwrap().path()).unwrap();
        let mut decoder = Decoder::new(&trace).unwrap();
        decoder.for_each_event(|event| *names.entry(event.name.to_owned()).or_insert(0) += 1).unwrap();
    }
    let count = |name: &str| names.get(name).copied().unwrap_or(0);
    let own = count("SegmentMetadataEvent") + count("ClockSyncEvent");
    assert_eq!(names.values().sum::<u64>() - own, summary.events, "{names:?}");
    assert!(cfg!(tokio_unstable) || count("TaskSpawnEvent") == 11, "{names:?}");
    assert!(cfg!(tokio_unstable) || count("TaskTerminateEvent") == 11, "{names:?}");
    assert_eq!(count("PollStartEvent"), count("PollEndEvent"));
    assert!(count("ProcessResourceUsageEvent") > 0, "{names:?}");
}
