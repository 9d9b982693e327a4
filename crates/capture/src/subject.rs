//! The interface of a sampled process.

use borehole_model::{LabelsId, StackId, Status, Tables};
use borehole_process::{Registers, Stopper};
use borehole_python::LocalVariable;

use crate::error::Error;
use crate::native_counts::NativeCounts;

/// A process to sample.
///
/// A lane has one stack. It is a thread of an interpreter with several executors, or else the whole process.
pub trait Subject: Send {
    /// The process number.
    fn process(&self) -> i32;

    /// Stops the process.
    fn stopper(&self) -> Stopper {
        Stopper::new(self.process())
    }

    /// Prepares for a look at each lane, such as by noticing new threads. Called once before them at each point in time.
    ///
    /// # Errors
    /// If the process is gone or cannot be read any more.
    fn prepare(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// The current number of lanes.
    fn lanes(&self) -> usize;

    /// The thread of a lane; `None` unless the interpreter has one executor per thread.
    fn thread(&self, lane: usize) -> Option<u64>;

    /// The interpreter of a lane, within the process.
    fn interpreter(&self, _lane: usize) -> Option<u64> {
        None
    }

    /// The only thread to stop for a look at a lane; `None`: the process is stopped.
    fn thread_to_stop(&self, _lane: usize) -> Option<i32> {
        None
    }

    /// How often a look may be repeated before the lane is stopped for it. Repeating favours stacks that last long.
    fn max_retries(&self) -> u32 {
        u32::MAX
    }

    /// Whether a look finds all that is wanted only while the lane is stopped.
    fn needs_stop(&self) -> bool {
        false
    }

    /// Whether some looks are taken with the lane stopped, to compare the others with them.
    fn has_oracle(&self) -> bool {
        false
    }

    /// Looks at a lane once. All ids belong to `tables`, which must be the same in every call until [`Subject::forget`].
    ///
    /// # Errors
    /// If the process is gone or cannot be read any more, or the tables are full.
    fn look(&mut self, lane: usize, tables: &mut Tables) -> Result<Look, Error>;

    /// Notes what being stopped would hide, and returns whether stopping helps: a thread that sleeps does not change, and stopping
    /// wakes it. Called right before a lane is stopped.
    fn will_stop(&mut self, _lane: usize) -> bool {
        true
    }

    /// Like [`Subject::look`], while the lane is stopped, with the registers of its thread if only that was stopped.
    ///
    /// # Errors
    /// As [`Subject::look`].
    fn look_stopped(
        &mut self,
        lane: usize,
        _registers: Option<Registers>,
        tables: &mut Tables,
    ) -> Result<Look, Error> {
        self.look(lane, tables)
    }

    /// Completes a look at a stopped lane after it was released, with what takes time and needs no stop.
    ///
    /// # Errors
    /// As [`Subject::look`].
    fn look_released(&mut self, _lane: usize, look: Look, _tables: &mut Tables) -> Result<Look, Error> {
        Ok(look)
    }

    /// The samples that the system has taken since the last time, of subjects that it samples by itself. They have no lanes.
    ///
    /// # Errors
    /// As [`Subject::look`].
    fn taken(&mut self, _tables: &mut Tables) -> Result<Vec<TakenSample>, Error> {
        Ok(Vec::new())
    }

    /// The stack of a look, with the names of native code, which are looked up meanwhile; `None` until they are known.
    ///
    /// # Errors
    /// If a profile cannot hold more.
    fn named(
        &mut self,
        stack: StackId,
        _patience: Patience,
        _tables: &mut Tables,
    ) -> Result<Option<StackId>, Error> {
        Ok(Some(stack))
    }

    /// The counts of native stacks since they were last taken.
    fn take_native_counts(&mut self) -> NativeCounts {
        NativeCounts::default()
    }

    /// The files of native code that stacks were found in, as texts of [`borehole_model::NativeModule`].
    fn native_modules(&self) -> Vec<String> {
        Vec::new()
    }

    /// The stacks of the tasks of a lane that wait. Called behind a look at the lane.
    ///
    /// # Errors
    /// As [`Subject::look`].
    fn waiting_tasks(&mut self, _lane: usize, _tables: &mut Tables) -> Result<Vec<StackId>, Error> {
        Ok(Vec::new())
    }

    /// The points in time since the last call at which tasks were left out, because too many had changed.
    fn take_cut_tasks(&mut self) -> u64 {
        0
    }

    /// The local variables of the interpreter's frames that the last look at a lane found, the leaf first. Called while the lane is
    /// still stopped. Empty if they are not known.
    ///
    /// # Errors
    /// As [`Subject::look`].
    fn locals(&mut self, _lane: usize) -> Result<Vec<Vec<LocalVariable>>, Error> {
        Ok(Vec::new())
    }

    /// The state of the thread of a lane at the last look.
    fn status(&self, _lane: usize) -> Option<Status> {
        None
    }

    /// Whether the last look at a lane may be compared with those at stopped ones: [`Subject::will_stop`] was true of it.
    fn is_comparable(&self, _lane: usize) -> bool {
        true
    }

    /// The names of threads that were not told before.
    fn new_thread_names(&mut self) -> Vec<(u64, Vec<u8>)> {
        Vec::new()
    }

    /// The current labels of a lane, such as those of its request. Called after a look that found a stack.
    ///
    /// # Errors
    /// As [`Subject::look`].
    fn labels(&mut self, _lane: usize, _tables: &mut Tables) -> Result<Option<LabelsId>, Error> {
        Ok(None)
    }

    /// Drops all ids: from now on the tables are other ones.
    fn forget(&mut self);

    /// Updates the list of threads, and checks that the process still runs the same program. Called twice a second.
    ///
    /// # Errors
    /// If the process is gone or has replaced its program.
    fn refresh(&mut self) -> Result<(), Error>;

    /// The facts about the process, for the metadata of a file: keys and values.
    fn facts(&self) -> Vec<(String, String)>;
}

/// A sample that the system has taken.
#[derive(Clone, Copy, Debug)]
pub struct TakenSample {
    /// The thread.
    pub thread: u64,
    /// The time, on the clock `CLOCK_MONOTONIC`.
    pub time_ns: u64,
    /// The stack.
    pub stack: StackId,
    /// The number of frames left out on the root's side.
    pub omitted: u64,
    /// The state of the thread.
    pub status: Status,
    /// The number of periods that it stands for.
    pub count: u64,
}

/// Whether to wait for names of native code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Patience {
    /// No: they may be known later.
    None,
    /// Yes.
    Wait,
}

/// The result of one look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// A stack that did not change while it was read.
    Stack {
        /// The stack.
        stack: StackId,
        /// The number of frames left out on the root's side.
        omitted: u64,
    },
    /// The process was executing nothing.
    Idle,
    /// The stack changed while it was read. Looking again at once is cheap.
    Torn,
    /// The thread has ended.
    Ended,
}

impl Look {
    pub(crate) fn stack(self) -> Option<StackId> {
        match self {
            Self::Stack { stack, .. } => Some(stack),
            Self::Idle | Self::Torn | Self::Ended => None,
        }
    }
}
