//! The explorer's interface to the outside world, which the surrounding program implements.

use std::sync::Arc;

use borehole_analysis::FrameName;
use borehole_model::ValueType;

/// The clipboard of an explorer.
pub trait Clipboard {
    /// Copies a text to the terminal's clipboard.
    fn copy(&mut self, text: &str);
}

/// The program around a profile explorer.
pub trait Host: Clipboard {
    /// The lines of a source file, if it is available.
    fn source(&mut self, path: &[u8]) -> Option<Arc<[String]>>;

    /// Writes stacks to a file in the format given by its name. Returns in words what the format could not hold, or an empty
    /// text. `values` is the type of the sums if they are values and not numbers of samples.
    ///
    /// # Errors
    /// A description of the problem.
    fn export(
        &mut self,
        name: &str,
        stacks: &[WeightedStack],
        values: Option<&ValueType>,
    ) -> Result<String, String>;
}

/// A stack of a view with its number of samples or its weight. Stacks of one period are adjacent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightedStack {
    /// Its frames, from the root to the leaf.
    pub frames: Vec<Arc<FrameName>>,
    /// The number of samples, or the sum of their values.
    pub sum: i64,
    /// The time that each sample stands for; `None` if it is unknown.
    pub period_ns: Option<u64>,
}
