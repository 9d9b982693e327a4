//! What a query says about each stack, derived from what it says about the stack's caller.
//!
//! Constraints: a stack is derived after its caller and once; a lookup is one array access; nothing
//! depends on the depth of a stack, because a property of all frames of a stack (is one of them kept, which
//! is the match nearest to the leaf) follows from the caller's and one frame more.

use borehole_model::{StackId, Tables};

use crate::groups::{FrameGroups, GroupId, Traits};
use crate::query::{Query, Recursion};

/// A stack under a query.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    /// The group of the leaf frame.
    pub(crate) group: GroupId,
    /// Whether the leaf frame is shown, rather than hidden.
    pub(crate) shown: bool,
    /// What holds of the frames from the root to the leaf.
    pub(crate) path: PathFacts,
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
    /// Who called the frame that the pattern for callers finds first from the leaf.
    pub(crate) caller: Neighbour,
    /// Whom the frame that the pattern for callees finds first from the root called.
    pub(crate) callee: Neighbour,
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
    nodes: Vec<Option<Node>>,
    /// What is asked for each sample stands in a column of its own, a byte a stack, which stays in the cache.
    verdicts: Vec<Verdict>,
    order: Vec<StackId>,
    groups: FrameGroups,
    path: Vec<StackId>,
}

impl CallTree {
    /// Whether samples of a stack count. The first time it and its callers are placed.
    #[inline]
    pub(crate) fn place(&mut self, stack: StackId, tables: &Tables, query: &Query) -> bool {
        match self.verdicts.get(stack.index()) {
            Some(Verdict::Counts) => true,
            Some(Verdict::Skipped) => false,
            Some(Verdict::Unknown) | None => self.derive_path(stack, tables, query),
        }
    }

    /// The node of a stack that was placed, or that is a caller of one.
    pub(crate) fn node(&self, stack: StackId) -> &Node {
        self.nodes[stack.index()].as_ref().expect("callers are placed before what they call")
    }

    /// All placed stacks, callers before what they call.
    pub(crate) fn callers_first(&self) -> &[StackId] {
        &self.order
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
        let mut path = std::mem::take(&mut self.path);
        let mut next = Some(stack);
        while let Some(missing) = next.filter(|&stack| self.find(stack).is_none()) {
            path.push(missing);
            next = tables.parent(missing);
        }
        for stack in path.drain(..).rev() {
            self.derive(stack, tables, query);
        }
        self.path = path;
        self.node(stack).path.counts
    }

    fn find(&self, stack: StackId) -> Option<&Node> {
        self.nodes.get(stack.index())?.as_ref()
    }

    fn derive(&mut self, stack: StackId, tables: &Tables, query: &Query) {
        let group = self.groups.of(tables.leaf(stack), tables, query);
        let above = tables.parent(stack).map(|parent| self.node(parent).path).unwrap_or_default();
        let traits = self.groups.traits(group);
        let row = self.groups.row(tables.leaf(stack)).unwrap_or(group);
        let focused = above.focused || traits.focused && !traits.hidden;
        let above_row = above.leaf.map(|leaf| self.node(leaf).group);
        let is_again = above_row == Some(row) && (query.recursion == Recursion::Folded || row != group);
        let shown = !traits.hidden && focused && !is_again;
        let mut path = if shown { self.below(above, stack, row) } else { above };
        path.judge(traits, focused);
        if stack.index() >= self.nodes.len() {
            self.nodes.resize(stack.index() + 1, None);
            self.verdicts.resize(stack.index() + 1, Verdict::Unknown);
        }
        self.verdicts[stack.index()] = if path.counts { Verdict::Counts } else { Verdict::Skipped };
        self.nodes[stack.index()] = Some(Node { group: row, shown, path });
        self.order.push(stack);
    }

    /// What holds of a path once a shown frame is added to it.
    fn below(&self, above: PathFacts, stack: StackId, group: GroupId) -> PathFacts {
        let traits = self.groups.traits(group);
        let caller = || above.leaf.map_or(Neighbour::Outside, |leaf| Neighbour::Frame(self.node(leaf).group));
        PathFacts {
            leaf: Some(stack),
            caller: if traits.callers { caller() } else { above.caller },
            callee: match above.callee {
                Neighbour::NoMatch if traits.callees => Neighbour::Outside,
                Neighbour::Outside => Neighbour::Frame(group),
                found => found,
            },
            ..above
        }
    }
}
