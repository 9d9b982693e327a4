//! Queries of a profile.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use crate::path_map::PathMap;
use crate::pattern::Pattern;

/// The content and shape of a report.
///
/// Patterns match the text of a frame as the report prints it (see [`FrameName`](crate::FrameName)), with full paths.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// Whether each line of a function is a row.
    pub lines: LineRows,
    /// Whether each opcode on a line is a row.
    pub opcodes: OpcodeRows,
    /// Frames to remove from every stack before anything is counted. A stack without remaining frames is not counted.
    pub hide: Option<Pattern>,
    /// Counts only stacks with a matching frame.
    pub keep: Option<Pattern>,
    /// Excludes stacks with a matching frame.
    pub exclude: Option<Pattern>,
    /// Counts only stacks with a matching frame, and shows them from the match nearest to the root.
    pub focus: Option<Pattern>,
    /// Groups of frames whose calls among each other become one named frame. The first matching pattern applies.
    pub collapse: Vec<Collapse>,
    /// Whether recursive calls are separate frames.
    pub recursion: Recursion,
    /// The rows of views that are not about whole samples.
    pub rows: RowKind,
    /// The mapping of paths for display. Patterns match mapped paths.
    pub path_map: PathMap,
    /// The frames whose callers to list.
    pub callers: Option<Pattern>,
    /// The frames whose callees to list.
    pub callees: Option<Pattern>,
    /// The number of last samples to list.
    pub last: u64,
    /// The number of frames to list of each of them, from the leaf; `None` for all.
    pub last_depth: Option<usize>,
    /// The property to break samples down by.
    pub by: Option<By>,
    /// The maximum number of rows of a table; `None` for all.
    pub limit: Option<usize>,
}

/// Frames shown as one, because it does not matter how they call each other.
#[derive(Clone, Debug)]
pub struct Collapse {
    /// The frames to combine.
    pub pattern: Pattern,
    /// The name to show instead.
    pub name: Vec<u8>,
}

/// The treatment of functions that call themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recursion {
    /// Each recursive call is a frame.
    #[default]
    Kept,
    /// Calls of a row from the same row are one frame.
    Folded,
}

/// The kind of rows. Consecutive calls within a file, class or namespace are one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RowKind {
    /// Frames, as distinguished by [`Query::lines`] and [`Query::opcodes`].
    #[default]
    Frames,
    /// Source files, and libraries of native code.
    Files,
    /// Classes, with their namespaces.
    Classes,
    /// Namespaces of PHP, modules of Python and Rust, libraries of native code.
    Namespaces,
}

/// The treatment of frames of one function that differ in file or line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LineRows {
    /// Each line is a row.
    #[default]
    Apart,
    /// All lines of a function are one row.
    Together,
}

/// The treatment of frames that differ in their opcode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OpcodeRows {
    /// Each opcode is a row.
    Apart,
    /// All opcodes of a line are one row.
    #[default]
    Together,
}

/// A property to break samples down by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum By {
    /// The value of the label with this key; the last one if a sample has several.
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

/// The name that options state: `process`, `thread`, `interpreter`, `file` or `class`, or `label:KEY`.
impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Label(key) => write!(f, "label:{}", String::from_utf8_lossy(key)),
            Self::Process => f.write_str("process"),
            Self::Thread => f.write_str("thread"),
            Self::Interpreter => f.write_str("interpreter"),
            Self::File => f.write_str("file"),
            Self::Class => f.write_str("class"),
        }
    }
}

/// Parses a name that is displayed, or `pid`. All other text is the key of a label.
impl FromStr for By {
    type Err = Infallible;

    fn from_str(name: &str) -> Result<Self, Infallible> {
        Ok(match name {
            "pid" | "process" => Self::Process,
            "interpreter" => Self::Interpreter,
            "thread" => Self::Thread,
            "file" => Self::File,
            "class" => Self::Class,
            label => Self::Label(label_key(label)),
        })
    }
}

/// The key of a label that options name as `KEY`, or as `label:KEY` if it is also the name of something else.
pub(crate) fn label_key(name: &str) -> Vec<u8> {
    name.strip_prefix("label:").unwrap_or(name).as_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::Per;

    #[test]
    fn divisions_are_read_back_by_their_names_and_labels_by_their_keys() {
        let labels = ["route", "process", "label:x"].map(|key| key.as_bytes().to_vec());
        for by in [By::Process, By::Thread, By::Interpreter, By::File, By::Class]
            .into_iter()
            .chain(labels.clone().map(By::Label))
        {
            assert_eq!(by.to_string().parse(), Ok(by));
        }
        for per in [Per::Samples, Per::Time, Per::Input].into_iter().chain(labels.map(Per::Label)) {
            assert_eq!(per.to_string().parse(), Ok(per));
        }
        assert_eq!(["pid", "route"].map(str::parse), [Ok(By::Process), Ok(By::Label(b"route".to_vec()))]);
    }
}
