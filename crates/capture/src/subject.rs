//! The interface of a sampled process.

use borehole_model::{LabelsId, StackId, Tables};
use borehole_process::Stopper;

use crate::error::Error;

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

    /// The current number of lanes.
    fn lanes(&self) -> usize;

    /// The thread of a lane; `None` unless the interpreter has one executor per thread.
    fn thread(&self, lane: usize) -> Option<u64>;

    /// Looks at a lane once. All ids belong to `tables`, which must be the same in every call until [`Subject::forget`].
    ///
    /// # Errors
    /// If the process is gone or cannot be read any more, or the tables are full.
    fn look(&mut self, lane: usize, tables: &mut Tables) -> Result<Look, Error>;

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
}
