//! What the explorer asks of the program around it: all that touches the world.

use std::sync::Arc;

use borehole_analysis::FrameName;
use borehole_model::ValueType;

/// Where an explorer copies to.
pub trait Clipboard {
    /// Puts a text onto the clipboard of the terminal.
    fn copy(&mut self, text: &str);
}

/// The program around an explorer of profiles.
pub trait Host: Clipboard {
    /// The lines of a source file, if it is at hand.
    fn source(&mut self, path: &[u8]) -> Option<Arc<[String]>>;

    /// Writes stacks to a file, in the format that its name tells. Answers in words what the format could not hold; nothing if
    /// it held all. `values` is what sums are, if they are values and not numbers of samples.
    ///
    /// # Errors
    /// What went wrong, in words.
    fn export(&mut self, name: &str, stacks: &[Stack], values: Option<&ValueType>) -> Result<String, String>;
}

/// A stack of a view, and how often it was sampled or what it weighs. Those of one period follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    /// Its frames, from the root to the leaf.
    pub frames: Vec<Arc<FrameName>>,
    /// How many samples, or the sum of their values.
    pub sum: i64,
    /// How long each stands for; `None` where that is not known.
    pub period_ns: Option<u64>,
}
