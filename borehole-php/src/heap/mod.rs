//! The heap of a PHP process: what the allocator gave out, and what holds it.
//!
//! * [`allocator`] finds the allocator's heap and tells where its fields are by what must stand in them.
//! * [`blocks`] lists every block that is in use, and proves the list by the allocator's own sums.
//! * [`accounting`] keeps the account of what a walk came to.
//! * [`garbage`] tells what holds itself from what is held by something unknown, [`guess`] what an unknown block may be.

pub(crate) mod accounting;
pub(crate) mod allocator;
pub(crate) mod blocks;
pub(crate) mod garbage;
pub(crate) mod guess;
pub(crate) mod internals;
pub(crate) mod layout;
mod live;
mod remainder;
#[cfg(test)]
mod tests;
pub(crate) mod walk;

use borehole_heap::HeapSink;
use borehole_process::Dump;

use crate::attach::Php;
use crate::error::Error;
use crate::executor::Executor;

use self::blocks::Blocks;
use self::walk::Walked;

/// What can be said of a heap that was walked, beside what its sink was given.
#[derive(Clone, Debug)]
pub struct HeapReport {
    /// How often memory was not in the dump. The nodes are marked: `#damage` is `missing`.
    pub missing: u64,
    /// How often memory contradicted itself: `#damage` is `torn`.
    pub torn: u64,
    /// Whether the walk was given up, because damage made more nodes than the memory can hold.
    pub is_stopped: bool,
    /// Whether PHP used its own allocator: without it no byte can be accounted for.
    pub is_accounted: bool,
    /// What speaks against the account: the blocks do not add up to what the heap counts.
    pub doubt: Option<Error>,
}

impl Php {
    /// Walks the heap of `executor`, as `dump` has it, into `sink`.
    ///
    /// # Errors
    /// When there is no heap where the executor says, or it has too many blocks to be numbered.
    pub fn walk_heap<S: HeapSink>(
        &self,
        dump: &Dump,
        executor: &Executor,
        sink: &mut S,
    ) -> Result<HeapReport, Error> {
        let mut blocks = Blocks::of(dump, self, executor)?;
        let Walked { missing, torn, is_stopped, .. } = walk::walk(dump, self, executor, &mut blocks, sink);
        let is_accounted = blocks.allocator().is_some();
        Ok(HeapReport { missing, torn, is_stopped, is_accounted, doubt: blocks.proof().err() })
    }
}
