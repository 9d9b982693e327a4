//! What a query says about each stack, derived from what it says about the stack's caller.
//!
//! Constraints: a stack is derived after its caller and once; a lookup is one array access; nothing
//! depends on the depth of a stack, because a property of all frames of a stack (is one of them kept, which
//! is the match nearest to the leaf) follows from the caller's and one frame more. There may be millions of stacks:
//! what is said of one takes 12 bytes, and what few queries ask for stands in a column of its own.

use borehole_model::{StackId, Tables};

use crate::groups::{FrameGroups, GroupId, Traits};
use crate::query::{Query, Recursion};

/// A stack under a query.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Node {
    /// The group of the leaf frame.
    group: u32,
    /// What holds of the frames from the root to the leaf.
    pub(crate) path: PathFacts,
}

impl Node {
    /// The group of the leaf frame.
    pub(crate) const fn group(&self) -> GroupId {
        self.group as GroupId
    }
}

/// What holds of all frames of a stack together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PathFacts {
    /// The stack whose leaf is the shown frame nearest to this stack's leaf.
    pub(crate) leaf: Option<StackId>,
    /// Whether samples of the stack count.
    pub(crate) counts: bool,
    /// Whether a frame is asked for, or none has to be.
    kept: bool,
    /// Whether there is a frame because of which they do not count.
    excluded: bool,
    /// Whether the frame from which on frames are shown has come.
    focused: bool,
}

impl PathFacts {
    /// What a frame more says of whether samples count. Hidden frames say nothing.
    fn judge(&mut self, traits: Traits, focused: bool) {
        self.focused = focused;
        if !traits.hidden && focused {
            self.kept |= traits.kept;
            self.excluded |= traits.excluded;
        }
        self.counts = self.kept && !self.excluded && self.leaf.is_some();
    }
}

/// What stands beside the frames that patterns find on a stack.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Beside {
    /// Who called the frame that the pattern for callers finds first from the leaf.
    pub(crate) caller: Neighbour,
    /// Whom the frame that the pattern for callees finds first from the root called.
    pub(crate) callee: Neighbour,
}

/// The frame beside one that a pattern found.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Neighbour {
    /// The pattern found none.
    #[default]
    NoMatch,
    /// The one it found is at the end of the stack.
    Outside,
    /// A frame of this group.
    Frame(GroupId),
}

/// Whether samples of a stack count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Verdict {
    #[default]
    Unknown,
    Counts,
    Skipped,
}

/// The stacks that were looked at, under a query.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallTree {
    nodes: Vec<Node>,
    /// What is asked for each sample stands in a column of its own, a byte a stack, which stays in the cache.
    verdicts: Vec<Verdict>,
    /// Empty unless the query asks for callers or callees.
    beside: Vec<Beside>,
    groups: FrameGroups,
    path: Vec<StackId>,
}

impl CallTree {
    /// All stacks of `tables`.
    pub(crate) fn of_all(tables: &Tables, query: &Query) -> Self {
        let mut tree = Self::default();
        tree.grow(tables.stack_count(), query);
        tables.stack_ids().for_each(|stack| tree.derive(stack, tables, query));
        tree
    }

    /// Whether samples of a stack count. The first time it and its callers are placed.
    #[inline]
    pub(crate) fn place(&mut self, stack: StackId, tables: &Tables, query: &Query) -> bool {
        match self.verdict(stack) {
            Verdict::Counts => true,
            Verdict::Skipped => false,
            Verdict::Unknown => self.derive_path(stack, tables, query),
        }
    }

    fn verdict(&self, stack: StackId) -> Verdict {
        self.verdicts.get(stack.index()).copied().unwrap_or_default()
    }

    /// The node of a stack that was placed, or that is a caller of one.
    pub(crate) fn node(&self, stack: StackId) -> &Node {
        &self.nodes[stack.index()]
    }

    /// The group of the leaf frame of a stack that was placed, if the frame is shown rather than hidden.
    pub(crate) fn shown(&self, stack: StackId) -> Option<GroupId> {
        let node = self.node(stack);
        (node.path.leaf == Some(stack)).then_some(node.group())
    }

    /// What stands beside the frames that the query's patterns for callers and callees find.
    pub(crate) fn beside(&self, stack: StackId) -> Beside {
        self.beside.get(stack.index()).copied().unwrap_or_default()
    }

    /// All placed stacks of `tables`, callers before what they call.
    pub(crate) fn callers_first(&self, tables: &Tables) -> impl DoubleEndedIterator<Item = StackId> {
        // Tables hold a caller before what it calls.
        tables.stack_ids().filter(|&stack| self.verdict(stack) != Verdict::Unknown)
    }

    /// One more than the largest index of a placed stack: how long a column beside them has to be.
    pub(crate) const fn width(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) const fn groups(&self) -> &FrameGroups {
        &self.groups
    }

    pub(crate) const fn groups_mut(&mut self) -> &mut FrameGroups {
        &mut self.groups
    }

    #[cold]
    fn derive_path(&mut self, stack: StackId, tables: &Tables, query: &Query) -> bool {
        if stack.index() >= self.width() {
            self.grow(stack.index() + 1, query);
        }
        let mut path = std::mem::take(&mut self.path);
        let mut next = Some(stack);
        while let Some(missing) = next.filter(|&stack| self.verdict(stack) == Verdict::Unknown) {
            path.push(missing);
            next = tables.parent(missing);
        }
        for stack in path.drain(..).rev() {
            self.derive(stack, tables, query);
        }
        self.path = path;
        self.node(stack).path.counts
    }

    fn grow(&mut self, width: usize, query: &Query) {
        self.nodes.resize(width, Node::default());
        self.verdicts.resize(width, Verdict::Unknown);
        if query.callers.is_some() || query.callees.is_some() {
            self.beside.resize(width, Beside::default());
        }
    }

    /// Works out what holds of a stack whose caller is placed. There is room for it.
    fn derive(&mut self, stack: StackId, tables: &Tables, query: &Query) {
        let group = self.groups.of(tables.leaf(stack), tables, query);
        let caller = tables.parent(stack);
        let above = caller.map(|caller| self.node(caller).path).unwrap_or_default();
        let traits = self.groups.traits(group);
        let row = self.groups.row(tables.leaf(stack)).unwrap_or(group);
        let focused = above.focused || traits.focused && !traits.hidden;
        let above_row = above.leaf.map(|leaf| self.node(leaf).group());
        let is_again = above_row == Some(row) && (query.recursion == Recursion::Folded || row != group);
        let shown = !traits.hidden && focused && !is_again;
        let mut path = if shown { PathFacts { leaf: Some(stack), ..above } } else { above };
        path.judge(traits, focused);
        self.verdicts[stack.index()] = if path.counts { Verdict::Counts } else { Verdict::Skipped };
        // There are not more groups than frames, but for a few.
        let node = Node { group: u32::try_from(row).unwrap_or(u32::MAX), path };
        self.nodes[stack.index()] = node;
        if !self.beside.is_empty() {
            let of_caller = caller.map(|caller| self.beside(caller)).unwrap_or_default();
            self.beside[stack.index()] = if shown { self.below(of_caller, above, row) } else { of_caller };
        }
    }

    /// What stands beside the frames that were found, once a shown frame is added below `above`.
    fn below(&self, of_caller: Beside, above: PathFacts, group: GroupId) -> Beside {
        let traits = self.groups.traits(group);
        let caller =
            || above.leaf.map_or(Neighbour::Outside, |leaf| Neighbour::Frame(self.node(leaf).group()));
        Beside {
            caller: if traits.callers { caller() } else { of_caller.caller },
            callee: match of_caller.callee {
                Neighbour::NoMatch if traits.callees => Neighbour::Outside,
                Neighbour::Outside => Neighbour::Frame(group),
                found => found,
            },
        }
    }
}
