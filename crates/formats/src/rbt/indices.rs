//! The indices of a segment's strings, frames and stacks, and ids that mean none.

use std::fmt;
use std::num::NonZeroU32;

/// A string of the current segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StringIndex(pub(super) u32);

/// A frame of the current segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FrameIndex(pub(super) u32);

/// A stack of the current segment. Equal indices are equal stacks; the reverse need not hold.
// Stores index + 1, so that an option needs no tag: ids are mapped to stacks for each sample, and twice as much of the map
// fits into the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StackIndex(NonZeroU32);

impl StringIndex {
    /// Dense from 0 within the segment.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl FrameIndex {
    /// Dense from 0 within the segment.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl StackIndex {
    pub(super) const fn of_row(row: u32) -> Self {
        Self(NonZeroU32::MIN.saturating_add(row))
    }

    /// Dense from 0 within the segment.
    #[must_use]
    pub const fn index(self) -> usize {
        (self.0.get() - 1) as usize
    }
}

impl Default for StackIndex {
    fn default() -> Self {
        Self::of_row(0)
    }
}

/// The kinds of definitions that others refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DefinitionKind {
    String,
    Frame,
    Stack,
}

impl fmt::Display for DefinitionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::String => "string",
            Self::Frame => "frame",
            Self::Stack => "stack",
        })
    }
}

/// An id without a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Undefined {
    pub(super) kind: DefinitionKind,
    pub(super) id: i64,
}

impl fmt::Display for Undefined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.id)
    }
}
