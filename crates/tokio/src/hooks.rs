//! Records what a runtime does, from its hooks.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use borehole_recorder::Handle;
use tokio::runtime::Builder;

use crate::lane::{self, RecorderState, RuntimeLane};
use crate::runtime::RecordedRuntime;
use crate::workers;

/// Records what runtimes do. Cheap to clone.
///
/// [`TokioRecorder::build`] is all that most programs need. A program with its own hooks calls the methods with the
/// names of Tokio's hooks from them.
#[derive(Clone)]
pub struct TokioRecorder {
    state: Arc<RecorderState>,
}

impl TokioRecorder {
    /// Creates a recorder that records through `handle`.
    ///
    /// The runtimes of one recording get names and the numbers of their workers by themselves, and no two have the same.
    #[must_use]
    pub fn new(handle: Handle) -> Self {
        Self { state: RecorderState::new(handle) }
    }

    /// Triggers a dump ([`Handle::trigger`]) when a recorded poll takes longer than `limit`.
    #[must_use]
    pub fn trigger_on_long_poll(self, limit: Duration) -> Self {
        self.state.set_long_poll(limit);
        self
    }

    /// Records the stacks of tasks of this crate's `spawn` that wait at least as long as `limit`. Every other poll that does
    /// not end its task then takes some microseconds more.
    #[cfg(all(tokio_unstable, feature = "taskdump"))]
    #[must_use]
    pub fn dump_tasks_idle_for(self, limit: Duration) -> Self {
        self.state.set_dump_idle(limit);
        self
    }

    /// Builds a recorded runtime with this name. The hooks for recording replace those of `builder`.
    ///
    /// # Errors
    /// If Tokio cannot build the runtime, or the system cannot create a thread.
    pub fn build(&self, name: &str, builder: &mut Builder) -> io::Result<RecordedRuntime> {
        let lane = self.install_lane(name, builder);
        RecordedRuntime::new(builder.build()?, lane)
    }

    /// Installs the hooks in `builder`, for one runtime called `runtime`. Its queues are not recorded.
    pub fn install(&self, builder: &mut Builder) {
        self.install_lane("runtime", builder);
    }

    fn install_lane(&self, name: &str, builder: &mut Builder) -> Arc<RuntimeLane> {
        let lane = self.state.add(name);
        let this = Arc::clone(&lane);
        builder.on_thread_start(move || lane::enter(&this));
        let this = Arc::clone(&lane);
        builder.on_thread_park(move || {
            lane::enter(&this);
            workers::parks(&this);
        });
        let this = Arc::clone(&lane);
        builder.on_thread_unpark(move || {
            lane::enter(&this);
            workers::unparks(&this);
        });
        #[cfg(tokio_unstable)]
        crate::unstable::install(&lane, builder);
        lane
    }

    /// Records that a worker goes to sleep.
    pub fn on_thread_park(&self) {
        workers::parks(&self.state.lane());
    }

    /// Records that a worker wakes up.
    pub fn on_thread_unpark(&self) {
        workers::unparks(&self.state.lane());
    }

    /// The handle of the recording.
    #[must_use]
    pub fn handle(&self) -> &Handle {
        &self.state.handle
    }

    pub(crate) fn lane(&self) -> Arc<RuntimeLane> {
        self.state.lane()
    }
}

/// The handle of the recording of the runtime that this thread works for; `None` if it is not recorded.
#[must_use]
pub fn current_handle() -> Option<Handle> {
    lane::current().map(|lane| lane.handle().clone())
}
