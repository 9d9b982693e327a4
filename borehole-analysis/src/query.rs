//! What is asked of a profile.

use crate::path_map::PathMap;
use crate::pattern::Pattern;

/// What a report is to show.
///
/// Patterns look at the text of a frame as the report prints it (see
/// [`FrameName`](crate::FrameName)), paths in full.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// Whether the lines of a function are rows of their own.
    pub lines: Lines,
    /// Whether the instructions on a line are rows of their own.
    pub opcodes: Opcodes,
    /// Frames that are taken out of every stack before anything is counted. A stack of which nothing is
    /// left is not counted.
    pub hide: Option<Pattern>,
    /// Only stacks with such a frame are counted.
    pub keep: Option<Pattern>,
    /// Stacks with such a frame are not counted.
    pub exclude: Option<Pattern>,
    /// Only stacks with such a frame are counted, from the first one after the root on.
    pub focus: Option<Pattern>,
    /// Calls among frames that match become one frame of that name. The first that matches decides.
    pub collapse: Vec<Collapse>,
    /// Whether a function that calls itself is a frame for each call.
    pub recursion: Recursion,
    /// What the rows of views that are not about whole samples are.
    pub rows: Rows,
    /// What paths are shown as. Patterns see paths that are mapped.
    pub path_map: PathMap,
    /// The frames whose callers are asked for.
    pub callers: Option<Pattern>,
    /// The frames whose callees are asked for.
    pub callees: Option<Pattern>,
    /// How many of the last samples are asked for.
    pub last: u64,
    /// How many frames of each of those, from the leaf; `None` for all.
    pub last_depth: Option<usize>,
    /// What samples are broken down by.
    pub by: Option<By>,
    /// The most rows of a table; `None` for all.
    pub limit: Option<usize>,
}

/// Frames of which it does not matter how they call each other.
#[derive(Clone, Debug)]
pub struct Collapse {
    /// Which frames.
    pub pattern: Pattern,
    /// What stands in their place.
    pub name: Vec<u8>,
}

/// Whether a function that calls itself is a frame for each call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recursion {
    /// It is.
    #[default]
    Kept,
    /// Calls of a row from the same row are one.
    Folded,
}

/// What rows are. Calls within a file, a class or a namespace are one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Rows {
    /// Frames, as [`Query::lines`] and [`Query::opcodes`] tell them apart.
    #[default]
    Frames,
    /// Source files, and libraries of machine code.
    Files,
    /// Classes, with their namespaces.
    Classes,
    /// Namespaces of PHP, modules of Python and Rust, libraries of machine code.
    Namespaces,
}

/// Whether frames of one function that differ in file or line are told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lines {
    /// Each is a row.
    #[default]
    Apart,
    /// They are one row.
    Together,
}

/// Whether frames that differ in their instruction are told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Opcodes {
    /// Each is a row.
    Apart,
    /// They are one row.
    #[default]
    Together,
}

/// What samples are broken down by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum By {
    /// The value of the label with this key; the last one where a sample has several.
    Label(Vec<u8>),
    /// The process.
    Process,
    /// The thread, within its process.
    Thread,
    /// The interpreter.
    Interpreter,
    /// The source file of the frames.
    File,
    /// The class of the frames, with its namespace.
    Class,
}
