//! What is sampled.

use borehole_model::{LabelsId, StackId, Tables};

use crate::error::Error;

/// One process that is sampled.
///
/// A lane is what has one stack: a thread of an interpreter that has several, or the whole process.
pub trait Subject: Send {
    /// Its number.
    fn process(&self) -> i32;

    /// How many lanes it has now.
    fn lanes(&self) -> usize;

    /// The thread of a lane, where the interpreter has one executor a thread.
    fn thread(&self, lane: usize) -> Option<u64>;

    /// Looks once at a lane. All ids it gives are of these `tables`, which are the same ones every time until
    /// [`Subject::forget`].
    ///
    /// # Errors
    /// When the process is gone or cannot be read any more, or the tables are full.
    fn look(&mut self, lane: usize, tables: &mut Tables) -> Result<Look, Error>;

    /// What else is true of a lane now, such as the request that it serves. Asked after a look that found something.
    ///
    /// # Errors
    /// As [`Subject::look`].
    fn labels(&mut self, _lane: usize, _tables: &mut Tables) -> Result<Option<LabelsId>, Error> {
        Ok(None)
    }

    /// From now on all ids are of other tables.
    fn forget(&mut self);

    /// Looks for threads that have come and gone, and whether the process still runs the same program. Called twice a
    /// second.
    ///
    /// # Errors
    /// When the process is gone or has become another program.
    fn refresh(&mut self) -> Result<(), Error>;

    /// What is known of it, for the metadata of a file: keys and values.
    fn facts(&self) -> Vec<(String, String)>;
}

/// What one look has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// A stack that stood there while it was read.
    Stack {
        /// The stack.
        stack: StackId,
        /// How many frames it lacks on the root's side.
        omitted: u64,
    },
    /// Nothing was executing.
    Idle,
    /// It changed while it was read. Looking again at once is cheap.
    Torn,
}
