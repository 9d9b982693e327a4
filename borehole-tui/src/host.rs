//! What the explorer asks of the program around it: all that touches the world.

use std::sync::Arc;

use borehole_analysis::{FrameName, Weight};

/// Where an explorer copies to.
pub trait Clipboard {
    /// Puts a text onto the clipboard of the terminal.
    fn copy(&mut self, text: &str);
}

/// The program around an explorer of profiles.
pub trait Host: Clipboard {
    /// The lines of a source file, if it is at hand.
    fn source(&mut self, path: &[u8]) -> Option<Arc<[String]>>;

    /// Writes stacks to a file, in the format that its name tells.
    ///
    /// # Errors
    /// What went wrong, in words.
    fn export(&mut self, name: &str, stacks: &Stacks) -> Result<(), String>;
}

/// The stacks of a view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stacks {
    /// What weights are.
    pub weight: Weight,
    /// The frames of each stack from the root to the leaf, with its weight.
    pub rows: Vec<(Vec<Arc<FrameName>>, u64)>,
}
