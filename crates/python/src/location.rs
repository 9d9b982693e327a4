//! A place in a source file.

/// The place of an instruction. Lines are 1-based, columns 0-based in UTF-8 bytes. Absent: `None` is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SourceLocation {
    pub(crate) line: Option<i64>,
    pub(crate) end_line: Option<i64>,
    pub(crate) column: Option<u32>,
    pub(crate) end_column: Option<u32>,
}

impl SourceLocation {
    pub(crate) const fn of_line(line: i64) -> Self {
        Self { line: Some(line), end_line: None, column: None, end_column: None }
    }
}
