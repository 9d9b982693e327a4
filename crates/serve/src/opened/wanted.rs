//! A graph that ends the work on it once nobody waits for a result any more.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use borehole::heap::{
    Child, Graph, GraphCounts, MemoryLocation, NodeAttribute, NodeId, NodeType, StringId, Totals, Vocabulary,
};

/// Somebody who waits for an answer, until this is dropped.
pub(super) struct Waiter(Arc<AtomicBool>);

/// Whether the one who asked a question still waits.
#[derive(Clone, Default)]
pub(super) struct Wanted {
    is_left: Arc<AtomicBool>,
}

impl Wanted {
    pub(super) fn waiter(&self) -> Waiter {
        Waiter(self.is_left.clone())
    }

    pub(super) fn is_wanted(&self) -> bool {
        !self.is_left.load(Ordering::Relaxed)
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The payload with which work unwinds that nobody waits for.
struct Unwanted;

/// Does some work on a [`WantedGraph`]. `None` if it ended early, because nobody waits any more. What the work has begun to
/// compute is then dropped, and what it has completed before is kept.
pub(super) fn while_wanted<T>(work: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(done) => Some(done),
        Err(payload) if payload.is::<Unwanted>() => None,
        Err(panic) => resume_unwind(panic),
    }
}

/// A graph whose methods unwind once nobody waits: every analysis looks at the graph often, however it is made, and need not
/// know of that. It may be used in [`while_wanted`] only.
pub(super) struct WantedGraph<'g, F> {
    pub(super) graph: &'g dyn Graph,
    /// Whether somebody waits.
    pub(super) is_wanted: F,
}

impl<F: Fn() -> bool> WantedGraph<'_, F> {
    #[inline]
    fn check(&self) {
        if !(self.is_wanted)() {
            leave();
        }
    }
}

/// Unwinds without a message: this is no panic.
#[cold]
fn leave() -> ! {
    resume_unwind(Box::new(Unwanted))
}

/// Implements methods of [`Graph`] by those of the graph inside, some after a check.
macro_rules! forwarded {
    ($($(#$check:ident)? $method:ident($($argument:ident: $kind:ty)?) -> $result:ty;)+) => {
        $(#[inline]
        fn $method(&self, $($argument: $kind)?) -> $result {
            $(self.$check();)?
            self.graph.$method($($argument)?)
        })+
    };
}

impl<F: Fn() -> bool> Graph for WantedGraph<'_, F> {
    forwarded! {
        counts() -> GraphCounts;
        #check node_type(node: NodeId) -> NodeType;
        #check canonical(node: NodeId) -> Option<NodeId>;
        #check children(parent: Option<NodeId>) -> Range<usize>;
        #check child(row: usize) -> Option<Child>;
        #check locations(node: NodeId) -> Range<usize>;
        #check location(row: usize) -> MemoryLocation;
        location_node(row: usize) -> NodeId;
        #check attributes(node: NodeId) -> Range<usize>;
        attribute(row: usize) -> NodeAttribute;
        attribute_node(row: usize) -> NodeId;
        string(string: StringId) -> &[u8];
        vocabulary() -> &Vocabulary;
        summary() -> &[(StringId, StringId)];
        totals() -> Option<&Totals>;
        created() -> &str;
    }

    fn each_reference(&self, see: &mut dyn FnMut(Option<NodeId>, usize, Child)) {
        self.graph.each_reference(&mut |parent, row, child| {
            self.check();
            see(parent, row, child);
        });
    }
}
