//! Stacks of tasks that wait.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::time::Duration;

use borehole_recorder::trc::{ReadEvent, Reader, TypedEvents};
use borehole_recorder::{Recorder, SymbolTableEntry};
use borehole_tokio::{TaskDumpEvent, TokioRecorder};
use tokio::runtime::Builder;

use super::scratch::Scratch;

#[derive(ReadEvent, Debug)]
enum DumpEvent<'a> {
    Dump(TaskDumpEvent<'a>),
    Symbol(SymbolTableEntry<'a>),
}

async fn wait(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

#[test]
fn a_task_that_waits_long_tells_where() {
    let folder = Scratch::new();
    let recorder = Recorder::builder(folder.folder()).start().unwrap();
    let tokio = TokioRecorder::new(recorder.handle()).dump_tasks_idle_for(Duration::from_millis(50));
    let runtime = tokio.build("test", Builder::new_multi_thread().worker_threads(1).enable_time()).unwrap();
    let long = runtime.block_on(async {
        let task = tokio.spawn(async { wait(150).await });
        let id = task.id().to_string();
        task.await.unwrap();
        id
    });
    drop(runtime);
    recorder.finish().unwrap();
    let (mut stacks, mut names) = (Vec::new(), BTreeMap::new());
    for entry in fs::read_dir(folder.folder()).unwrap() {
        let mut reader = Reader::new(File::open(entry.unwrap().path()).unwrap());
        let mut typed = TypedEvents::default();
        while let Some(event) = reader.next_event().unwrap() {
            match typed.read(&event).unwrap() {
                Some(DumpEvent::Dump(dump)) => {
                    assert_eq!(dump.task_id.to_string(), long);
                    stacks.push(dump.callchain.addresses().collect::<Vec<_>>());
                }
                Some(DumpEvent::Symbol(symbol)) => {
                    drop(names.insert(symbol.addr, symbol.symbol_name.to_owned()))
                }
                None => {}
            }
        }
    }
    assert_eq!(stacks.len(), 1, "{stacks:x?}");
    let stack: Vec<_> = stacks[0].iter().filter_map(|address| names.get(address)).collect();
    // The name of the function that the compiler has inlined into the method of Tokio's `Sleep` needs debug information.
    let is_of_sleep = |name: &&String| ["Sleep", "poll_elapsed"].iter().any(|part| name.contains(part));
    assert!(stack.first().is_some_and(|name| is_of_sleep(name)), "{stack:?}");
}
