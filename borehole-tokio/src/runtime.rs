//! A runtime that is recorded, and the thread that looks at it.

use std::io;
use std::ops::Deref;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use borehole_recorder::Handle;
use tokio::runtime::{self, Runtime};

use crate::events::RuntimeMetricsEvent;

/// A runtime whose work is recorded. It is used as Tokio's own, and ends like it when it is dropped.
pub struct RecordedRuntime {
    runtime: Runtime,
    _sampler: Sampler,
}

/// How often the queues are looked at. Source: `dial9-tokio-telemetry` 0.5.7.
const SAMPLE_EVERY: Duration = Duration::from_millis(10);

impl RecordedRuntime {
    pub(crate) fn new(runtime: Runtime, name: &str, handle: &Handle) -> io::Result<Self> {
        let sampler = Sampler::start(runtime.handle().clone(), name.to_owned(), handle.clone())?;
        Ok(Self { runtime, _sampler: sampler })
    }
}

impl Deref for RecordedRuntime {
    type Target = Runtime;

    fn deref(&self) -> &Runtime {
        &self.runtime
    }
}

/// The thread that looks at the queues, until this is dropped.
struct Sampler {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Sampler {
    fn start(runtime: runtime::Handle, name: String, handle: Handle) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let sample = move || {
            // Nothing is sent: the channel ends with the runtime.
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(SAMPLE_EVERY) {
                let metrics = runtime.metrics();
                let (queued, alive) = (metrics.global_queue_depth(), metrics.num_alive_tasks());
                handle.record_now(|timestamp_ns| RuntimeMetricsEvent {
                    timestamp_ns,
                    runtime_name: &name,
                    global_queue_depth: u32::try_from(queued).unwrap_or(u32::MAX),
                    alive_tasks: u32::try_from(alive).unwrap_or(u32::MAX),
                });
            }
        };
        let thread = thread::Builder::new().name("borehole-tokio".to_owned()).spawn(sample)?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It does not panic.
            let _ = thread.join();
        }
    }
}
