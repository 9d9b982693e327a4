//! A recorded runtime, and the samples of its queues.

use std::future::Future;
use std::io;
use std::ops::Deref;
use std::panic::Location;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use borehole_recorder::{Handle, Source, SourceState};
use tokio::runtime::{self, Runtime, RuntimeMetrics};
use tokio::task::JoinHandle;

use crate::events::RuntimeMetricsEvent;
use crate::future::BlockedOn;
use crate::lane::{EnteredLane, RuntimeLane, lock};
use crate::spawn::Spawning;
use crate::thread::place;

/// A recorded runtime. It is used like Tokio's, and shuts down like it when it is dropped.
pub struct RecordedRuntime {
    runtime: Runtime,
    lane: Arc<RuntimeLane>,
    _queues: Arc<RuntimeIsThere>,
}

/// The recorded runtimes that are there.
static RUNTIMES: Mutex<Vec<(runtime::Id, Weak<RuntimeLane>)>> = Mutex::new(Vec::new());

/// The lane of a runtime; `None` if it is not recorded.
pub(crate) fn lane_of(runtime: &runtime::Handle) -> Option<Arc<RuntimeLane>> {
    let id = runtime.id();
    let runtimes = lock(&RUNTIMES);
    runtimes.iter().find(|known| known.0 == id).and_then(|known| known.1.upgrade())
}

/// The interval at which the queues are sampled. Source: `dial9-tokio-telemetry` 0.5.7.
const SAMPLE_EVERY: Duration = Duration::from_millis(10);

impl RecordedRuntime {
    pub(crate) fn new(runtime: Runtime, lane: Arc<RuntimeLane>) -> io::Result<Self> {
        let metrics = runtime.metrics();
        lane.number_workers(metrics.num_workers());
        let is_there = Arc::new(RuntimeIsThere);
        let source = QueueSource { lane: Arc::clone(&lane), metrics, is_there: Arc::downgrade(&is_there) };
        lane.handle().add_source(Box::new(source))?;
        let mut runtimes = lock(&RUNTIMES);
        runtimes.retain(|known| known.1.strong_count() > 0);
        runtimes.push((runtime.handle().id(), Arc::downgrade(&lane)));
        drop(runtimes);
        Ok(Self { runtime, lane, _queues: is_there })
    }

    /// The name of the runtime in the recording, which has a number if another runtime has the name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.lane.name()
    }

    /// Runs a future to its end, like [`Runtime::block_on`], and records its polls and wakes as those of a task.
    ///
    /// # Panics
    /// If called within a runtime, or the future panics.
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let _entered = EnteredLane::new(&self.lane);
        let future = BlockedOn::new(future, Arc::clone(&self.lane), place(Location::caller()));
        self.runtime.block_on(future)
    }

    /// Spawns a task in this runtime, like [`Runtime::spawn`], and records its polls and wakes.
    #[track_caller]
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let spawning = Spawning::new(Arc::clone(&self.lane), Location::caller());
        let task = self.runtime.spawn(spawning.wrap(future));
        spawning.spawned(task.id());
        task
    }

    /// The runtime without its recording, for the ways to shut it down.
    #[must_use]
    pub fn into_inner(self) -> Runtime {
        self.runtime
    }
}

impl Deref for RecordedRuntime {
    type Target = Runtime;

    fn deref(&self) -> &Runtime {
        &self.runtime
    }
}

/// Dropped with the runtime.
struct RuntimeIsThere;

/// Samples the queues of a runtime.
struct QueueSource {
    lane: Arc<RuntimeLane>,
    metrics: RuntimeMetrics,
    is_there: Weak<RuntimeIsThere>,
}

impl Source for QueueSource {
    fn name(&self) -> &str {
        self.lane.name()
    }

    fn interval(&self) -> Duration {
        SAMPLE_EVERY
    }

    fn sample(&mut self, handle: &Handle) -> SourceState {
        if self.is_there.strong_count() == 0 {
            return SourceState::Ended;
        }
        let (queued, alive) = (self.metrics.global_queue_depth(), self.metrics.num_alive_tasks());
        handle.record_now(|timestamp_ns| RuntimeMetricsEvent {
            timestamp_ns,
            runtime_name: self.lane.name(),
            global_queue_depth: u32::try_from(queued).unwrap_or(u32::MAX),
            alive_tasks: u32::try_from(alive).unwrap_or(u32::MAX),
        });
        SourceState::Continues
    }
}
