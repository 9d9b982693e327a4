//! The stacks that the writer has defined in the current segment, as paths from the root.
//!
//! Constraints: row 0 is the empty stack; a parent is before its children; a `(parent, frame)` pair is stored once.
//! Each row remembers the last callee requested, so that a stack equal to the one before it, or equal up to some
//! caller, is followed without hashing.

use std::hash::BuildHasher as _;
use std::io;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::ids::{FrameNumber, StackNumber};
use super::intern::next_id;

/// A path from the root, defined as a stack or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct StackPath(u32);

#[derive(Clone, Copy)]
struct PathRow {
    caller: StackPath,
    frame: FrameNumber,
    /// The last callee requested; the root, which is never a callee, if there is none.
    likely: StackPath,
    stack: Option<StackNumber>,
}

pub(super) struct WrittenStacks {
    rows: Vec<PathRow>,
    /// Every row except the root's, by caller and frame.
    index: HashTable<StackPath>,
    hasher: DefaultHashBuilder,
    defined: usize,
}

impl Default for WrittenStacks {
    fn default() -> Self {
        let root = PathRow { caller: Self::ROOT, frame: FrameNumber(0), likely: Self::ROOT, stack: None };
        Self {
            rows: vec![root],
            index: HashTable::default(),
            hasher: DefaultHashBuilder::default(),
            defined: 0,
        }
    }
}

impl WrittenStacks {
    /// The empty path.
    pub(super) const ROOT: StackPath = StackPath(0);

    /// The number of defined stacks.
    pub(super) const fn len(&self) -> usize {
        self.defined
    }

    /// The last callee of `caller` requested.
    #[inline]
    pub(super) fn likely(&self, caller: StackPath) -> Option<(StackPath, FrameNumber)> {
        let likely = self.row(caller).likely;
        (likely != Self::ROOT).then(|| (likely, self.row(likely).frame))
    }

    /// The path of `frame` called by `caller`, if it exists.
    #[inline]
    pub(super) fn find(&mut self, caller: StackPath, frame: FrameNumber) -> Option<StackPath> {
        match self.likely(caller) {
            Some((path, likely)) if likely == frame => Some(path),
            Some(_) => self.find_other(caller, frame),
            None => None,
        }
    }

    fn find_other(&mut self, caller: StackPath, frame: FrameNumber) -> Option<StackPath> {
        let hash = self.hasher.hash_one((caller, frame));
        let found = self.index.find(hash, |&path| self.key(path) == (caller, frame)).copied()?;
        self.rows[caller.0 as usize].likely = found;
        Some(found)
    }

    /// The path of `frame` called by `caller`, added if it is new.
    pub(super) fn extend(&mut self, caller: StackPath, frame: FrameNumber) -> io::Result<StackPath> {
        if let Some(path) = self.find(caller, frame) {
            return Ok(path);
        }
        let path = StackPath(next_id(self.rows.len())?);
        self.rows.push(PathRow { caller, frame, likely: Self::ROOT, stack: None });
        self.rows[caller.0 as usize].likely = path;
        let Self { rows, index, hasher, .. } = self;
        let hash =
            |path: StackPath| hasher.hash_one((rows[path.0 as usize].caller, rows[path.0 as usize].frame));
        index.insert_unique(hash(path), path, |&path| hash(path));
        Ok(path)
    }

    /// The stack that `path` is defined as; `None` if it is not defined.
    #[inline]
    pub(super) fn defined(&self, path: StackPath) -> Option<StackNumber> {
        self.row(path).stack
    }

    /// Defines `path` as the next stack.
    pub(super) fn define(&mut self, path: StackPath) -> io::Result<StackNumber> {
        let id = StackNumber(next_id(self.defined)?);
        self.defined += 1;
        self.rows[path.0 as usize].stack = Some(id);
        Ok(id)
    }

    pub(super) fn frames_leaf_first(&self, path: StackPath) -> impl Iterator<Item = FrameNumber> {
        let callers = std::iter::successors(Some(path), |&path| Some(self.row(path).caller));
        callers.take_while(|&path| path != Self::ROOT).map(|path| self.row(path).frame)
    }

    #[inline]
    fn row(&self, path: StackPath) -> &PathRow {
        &self.rows[path.0 as usize]
    }

    fn key(&self, path: StackPath) -> (StackPath, FrameNumber) {
        (self.row(path).caller, self.row(path).frame)
    }
}
