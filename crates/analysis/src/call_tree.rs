//! Properties of stacks under a query, each derived from the properties of the stack's caller.
//!
//! Constraints: a stack is derived once, after its caller; a lookup is one array access; no cost depends on the depth
//! of a stack, because a property of all its frames (is one of them kept, which match is nearest to the leaf) follows
//! from the caller's property and one more frame. There may be millions of stacks, so each takes five bytes, and rarely
//! needed properties are in a separate column.

use borehole_model::{StackId, Tables};

use crate::groups::{FrameGroups, GroupId, PatternMatches};
use crate::query::{Query, Recursion};

/// Properties of all frames of a stack together, one bit each.
#[derive(Clone, Copy, Debug, Default)]
struct PathFacts(u8);

impl PathFacts {
    /// The stack has been derived.
    const PLACED: u8 = 1;
    /// Samples of the stack count.
    const COUNTS: u8 = 2;
    /// A frame matches the query's `keep`, or there is no such pattern.
    const KEPT: u8 = 4;
    /// A frame excludes the stack.
    const EXCLUDED: u8 = 8;
    /// The frame from which frames are shown has been reached.
    const FOCUSED: u8 = 16;

    const fn has(self, fact: u8) -> bool {
        self.0 & fact != 0
    }

    /// Adds `fact` if it holds.
    const fn with(self, fact: u8, holds: bool) -> Self {
        if holds { Self(self.0 | fact) } else { self }
    }

    /// Adds a frame. `is_focused`: frames are shown from this one or from an earlier one on; `has_leaf`: any frame is
    /// shown. Hidden frames change nothing.
    fn with_frame(self, traits: PatternMatches, is_focused: bool, has_leaf: bool) -> Self {
        let is_asked = !traits.hidden && is_focused;
        let facts = Self(self.0 & !Self::COUNTS)
            .with(Self::PLACED, true)
            .with(Self::FOCUSED, is_focused)
            .with(Self::KEPT, is_asked && traits.kept)
            .with(Self::EXCLUDED, is_asked && traits.excluded);
        facts.with(Self::COUNTS, has_leaf && facts.has(Self::KEPT) && !facts.has(Self::EXCLUDED))
    }
}

/// The neighbours of the frames that patterns match on a stack.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Beside {
    /// The caller of the match for callers that is nearest to the leaf.
    pub(crate) caller: Neighbour,
    /// The callee of the match for callees that is nearest to the root.
    pub(crate) callee: Neighbour,
}

/// The frame beside a match of a pattern.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Neighbour {
    /// The pattern does not match.
    #[default]
    NoMatch,
    /// The match is at the end of the stack.
    Outside,
    /// A frame of this group.
    Frame(GroupId),
}

/// The derived stacks of a query.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallTree {
    /// By stack: the one whose leaf is the shown frame nearest to this stack's leaf. Empty while every frame is shown;
    /// the stack is then its own entry.
    leaves: Vec<Option<StackId>>,
    /// By stack. These properties are read for each sample, so they are in a separate column of one byte a stack, which
    /// stays in the cache.
    facts: Vec<PathFacts>,
    /// Empty unless the query asks for callers or callees.
    beside: Vec<Beside>,
    pub(crate) groups: FrameGroups,
    path: Vec<StackId>,
}

impl CallTree {
    /// Derives all stacks of `tables`.
    pub(crate) fn of_all(tables: &Tables, query: &Query) -> Self {
        let mut tree = Self::default();
        tree.grow(tables.stack_count(), query);
        tables.stack_ids().for_each(|stack| tree.derive(stack, tables, query));
        tree
    }

    /// Whether samples of a stack count. On the first call, derives the stack and its callers.
    #[inline]
    pub(crate) fn place(&mut self, stack: StackId, tables: &Tables, query: &Query) -> bool {
        let facts = self.facts(stack);
        if facts.has(PathFacts::PLACED) {
            return facts.has(PathFacts::COUNTS);
        }
        self.derive_path(stack, tables, query)
    }

    fn facts(&self, stack: StackId) -> PathFacts {
        self.facts.get(stack.index()).copied().unwrap_or_default()
    }

    /// Whether a stack has been derived, by itself or as a caller.
    pub(crate) fn is_placed(&self, stack: StackId) -> bool {
        self.facts(stack).has(PathFacts::PLACED)
    }

    /// Whether samples of a derived stack count.
    pub(crate) fn counts(&self, stack: StackId) -> bool {
        self.facts(stack).has(PathFacts::COUNTS)
    }

    /// The stack whose leaf is the shown frame nearest to the leaf of a derived stack.
    pub(crate) fn leaf(&self, stack: StackId) -> Option<StackId> {
        if self.leaves.is_empty() { Some(stack) } else { self.leaves[stack.index()] }
    }

    /// The group that the leaf frame of a derived stack is shown as, if it is shown.
    pub(crate) fn group(&self, stack: StackId, tables: &Tables) -> GroupId {
        self.groups.row(tables.leaf(stack)).expect("a stack is placed together with its leaf frame")
    }

    /// Whether the leaf frame of a derived stack is shown.
    pub(crate) fn is_shown(&self, stack: StackId) -> bool {
        self.leaf(stack) == Some(stack)
    }

    /// The group of the leaf frame of a derived stack, if the frame is shown.
    pub(crate) fn shown(&self, stack: StackId, tables: &Tables) -> Option<GroupId> {
        self.is_shown(stack).then(|| self.group(stack, tables))
    }

    /// The neighbours of the frames that match the query's patterns for callers and callees.
    pub(crate) fn beside(&self, stack: StackId) -> Beside {
        self.beside.get(stack.index()).copied().unwrap_or_default()
    }

    /// All derived stacks of `tables`, callers before their callees.
    pub(crate) fn callers_first(&self, tables: &Tables) -> impl DoubleEndedIterator<Item = StackId> {
        // Tables store callers before their callees.
        tables.stack_ids().filter(|&stack| self.is_placed(stack))
    }

    /// One more than the largest index of a derived stack: the length of a column beside them.
    pub(crate) const fn width(&self) -> usize {
        self.facts.len()
    }

    #[cold]
    fn derive_path(&mut self, stack: StackId, tables: &Tables, query: &Query) -> bool {
        if stack.index() >= self.width() {
            self.grow(stack.index() + 1, query);
        }
        let mut path = std::mem::take(&mut self.path);
        let mut next = Some(stack);
        while let Some(missing) = next.filter(|&stack| !self.is_placed(stack)) {
            path.push(missing);
            next = tables.parent(missing);
        }
        for stack in path.drain(..).rev() {
            self.derive(stack, tables, query);
        }
        self.path = path;
        self.counts(stack)
    }

    fn grow(&mut self, width: usize, query: &Query) {
        if !self.leaves.is_empty() {
            self.leaves.resize(width, None);
        }
        self.facts.resize(width, PathFacts::default());
        if query.callers.is_some() || query.callees.is_some() {
            self.beside.resize(width, Beside::default());
        }
    }

    /// Derives a stack whose caller has been derived. The columns must be long enough.
    fn derive(&mut self, stack: StackId, tables: &Tables, query: &Query) {
        let frame = tables.leaf(stack);
        let group = self.groups.of(frame, tables, query);
        let row = self.groups.row(frame).unwrap_or(group);
        let traits = self.groups.traits(group);
        let caller = tables.parent(stack);
        let above = caller.map(|caller| self.facts(caller)).unwrap_or_default();
        let above_leaf = caller.and_then(|caller| self.leaf(caller));
        let is_focused = above.has(PathFacts::FOCUSED) || traits.focused && !traits.hidden;
        let is_again = above_leaf.map(|leaf| self.group(leaf, tables)) == Some(row)
            && (query.recursion == Recursion::Folded || row != group);
        let is_shown = !traits.hidden && is_focused && !is_again;
        let leaf = if is_shown { Some(stack) } else { above_leaf };
        if self.leaves.is_empty() && !is_shown {
            self.leaves.extend(tables.stack_ids().take(self.width()).map(Some));
        }
        if let Some(place) = self.leaves.get_mut(stack.index()) {
            *place = leaf;
        }
        self.facts[stack.index()] = above.with_frame(traits, is_focused, leaf.is_some());
        if !self.beside.is_empty() {
            let of_caller = caller.map(|caller| self.beside(caller)).unwrap_or_default();
            let above = above_leaf.map(|leaf| self.group(leaf, tables));
            self.beside[stack.index()] = if is_shown { self.below(of_caller, above, row) } else { of_caller };
        }
    }

    /// The neighbours after adding a shown frame below the one of group `above`.
    fn below(&self, of_caller: Beside, above: Option<GroupId>, group: GroupId) -> Beside {
        let traits = self.groups.traits(group);
        let caller = above.map_or(Neighbour::Outside, Neighbour::Frame);
        Beside {
            caller: if traits.callers { caller } else { of_caller.caller },
            callee: match of_caller.callee {
                Neighbour::NoMatch if traits.callees => Neighbour::Outside,
                Neighbour::Outside => Neighbour::Frame(group),
                found => found,
            },
        }
    }
}
