//! A recorded runtime, and the thread that samples its queues.

use std::io;
use std::ops::Deref;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use borehole_recorder::Handle;
use tokio::runtime::{self, Runtime};

use crate::events::RuntimeMetricsEvent;

/// A recorded runtime. It is used like Tokio's, and shuts down like it when it is dropped.
pub struct RecordedRuntime {
    runtime: Runtime,
    _sampler: QueueSampler,
}

/// The interval at which the queues are sampled. Source: `dial9-tokio-telemetry` 0.5.7.
const SAMPLE_EVERY: Duration = Duration::from_millis(10);

impl RecordedRuntime {
    pub(crate) fn new(runtime: Runtime, name: &str, handle: &Handle) -> io::Result<Self> {
        let sampler = QueueSampler::start(runtime.handle().clone(), name.to_owned(), handle.clone())?;
        Ok(Self { runtime, _sampler: sampler })
    }
}

impl Deref for RecordedRuntime {
    type Target = Runtime;

    fn deref(&self) -> &Runtime {
        &self.runtime
    }
}

/// The thread that samples the queues until this is dropped.
struct QueueSampler {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl QueueSampler {
    fn start(runtime: runtime::Handle, name: String, handle: Handle) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let sample = move || {
            // Nothing is sent; the channel closes when the runtime is dropped.
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

impl Drop for QueueSampler {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // The thread does not panic.
            let _ = thread.join();
        }
    }
}
