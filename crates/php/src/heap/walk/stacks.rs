//! The stacks of PHP's virtual machine: the pages that contain the calls of the program and of each fiber.
//!
//! Calls are located when they are walked, and the rest of the pages after everything has been walked. While another stack
//! runs, only the machine's stack shows how far a stack is in use.
//!
//! Source: `zend_vm_stack` in `Zend/zend_execute.h`, and `zend_fiber_execute` in `Zend/zend_fibers.c`, of PHP 8.1 to 8.6: a
//! fiber's first frame, `stack_bottom`, is at the start of its first page, and no page is shared.

use borehole_heap::{HeapSink, LocationType, NodeId, NodeType, Region};
use hashbrown::HashMap;

use super::roots::pages;
use super::seen::BlockSpot;
use super::{Extent, HeapReader, HeapWalker, NodeLink};
use crate::heap::blocks::{HeapBlock, HeapBlocks};
use crate::heap::view::DumpView;
use crate::layout::fixed;
use crate::remote::moved;

const PAGE_HEADER: u64 = fixed::STACK_PAGE_HEADER as u64;

/// Marks the blocks that are pages of stacks: they begin with the end of their used part, and their end. A page for a call with
/// very many arguments is a huge block.
pub(super) fn claim(view: DumpView<'_>, blocks: &mut HeapBlocks) {
    let is_page = |block: &HeapBlock| {
        let [top, end] = [0, fixed::STACK_PAGE_END]
            .map(|offset| view.u64(moved(block.address, offset)).unwrap_or_default());
        end == block.end() && (block.address + PAGE_HEADER..=end).contains(&top)
    };
    let pages: Vec<HeapBlock> = blocks.of_pages().filter(is_page).collect();
    for page in pages {
        blocks.claim(page.address, Region::VM_STACK);
    }
}

/// All stacks, with the locations on them.
#[derive(Clone, Debug, Default)]
pub(super) struct VmStacks {
    all: Vec<VmStack>,
    /// The number of the stack of each page.
    by_page: HashMap<u64, usize>,
    /// The start and end of each location on the pages.
    taken: Vec<(u64, u64)>,
}

#[derive(Clone, Debug, Default)]
struct VmStack {
    pages: Vec<HeapBlock>,
    /// The node that owns the stack.
    owner: Option<NodeId>,
}

impl VmStacks {
    /// The stacks formed by the claimed pages; each page leads to the one before it.
    pub(super) fn of(view: DumpView<'_>, blocks: &HeapBlocks) -> Self {
        let claims = blocks.claims().filter(|(_, region)| *region == Region::VM_STACK);
        let pages: Vec<HeapBlock> = claims.map(|(page, _)| page).collect();
        let is_page = |address| blocks.at(address).is_some_and(|block| block.region == Region::VM_STACK);
        let mut stacks = Self::default();
        for page in &pages {
            let new = stacks.all.len();
            let (mut path, mut at) = (Vec::new(), page.address);
            let number = loop {
                if let Some(&known) = stacks.by_page.get(&at) {
                    break known;
                }
                stacks.by_page.insert(at, new);
                path.push(at);
                at = view.pointer(at, fixed::STACK_PAGE_PREVIOUS);
                if !is_page(at) {
                    break new;
                }
            };
            if number == new {
                stacks.all.push(VmStack::default());
            }
            stacks.by_page.extend(path.into_iter().map(|page| (page, number)));
        }
        for page in pages {
            let number = stacks.by_page[&page.address];
            stacks.all[number].pages.push(page);
        }
        stacks
    }

    #[inline]
    pub(super) fn take(&mut self, address: u64, size: u64) {
        self.taken.push((address, address.saturating_add(size)));
    }

    /// The stack that contains the page at `address`, unless it has an owner already.
    fn without_owner(&mut self, address: u64) -> Option<&mut VmStack> {
        let number = *self.by_page.get(&address)?;
        self.all.get_mut(number).filter(|stack| stack.owner.is_none())
    }
}

impl<S: HeapSink> HeapWalker<'_, S> {
    pub(super) fn main_stack(&mut self) {
        let node = self.graph.node(NodeType::VM_STACK, NodeLink::root(self.words.vm_stack));
        let last =
            self.heap.view.pointer(self.heap.executor.globals, self.heap.php.layout.executor_stack_top + 16);
        // While a fiber runs, the executor refers to the fiber's stack.
        let page = self.heap.outermost_page().unwrap_or(last);
        if self.graph.stacks.without_owner(page).is_some() {
            return self.owns_stack(node, page);
        }
        for page in pages(self.heap.view, page) {
            let spot = self.heap.spot(page);
            self.graph.locate_within(node, &spot, Extent::new(LocationType::VM_STACK_HEADER, PAGE_HEADER), 0);
        }
    }

    /// Adds the stack with the first frame at `bottom` to `parent`.
    pub(crate) fn stack_of(&mut self, parent: NodeId, bottom: u64) {
        let page = bottom.wrapping_sub(PAGE_HEADER);
        if self.graph.stacks.without_owner(page).is_some() {
            let node = self.part(parent, "vm_stack", NodeType::VM_STACK_ARENA);
            self.owns_stack(node, page);
        }
    }

    fn owns_stack(&mut self, node: NodeId, page: u64) {
        if let Some(stack) = self.graph.stacks.without_owner(page) {
            stack.owner = Some(node);
            for page in &stack.pages {
                self.graph.account.reach(page);
            }
        }
    }

    /// Adds the locations of the parts of the stacks that are not in calls.
    pub(super) fn finish_stacks(&mut self) {
        let VmStacks { all, mut taken, .. } = std::mem::take(&mut self.graph.stacks);
        taken.sort_unstable();
        for VmStack { pages, owner } in all {
            let Some(owner) = owner else { continue };
            for page in &pages {
                self.finish_page(owner, page, &taken);
            }
        }
    }

    /// Adds the locations of a page's header and of the parts that are in no call: places kept for calls being prepared, and
    /// the part after the last call.
    fn finish_page(&mut self, node: NodeId, page: &HeapBlock, taken: &[(u64, u64)]) {
        let at = |address| BlockSpot { address, block: Some(*page) };
        let header = Extent::new(LocationType::VM_STACK_HEADER, PAGE_HEADER);
        self.graph.locate_within(node, &at(page.address), header, 0);
        let mut free = page.address + PAGE_HEADER;
        let first = taken.partition_point(|&(start, _)| start < free);
        let calls = taken[first..].iter().copied().take_while(|&(start, _)| start < page.end());
        for (start, end) in calls.chain([(page.end(), page.end())]) {
            if free < start {
                let unused = Extent::new(LocationType::VM_STACK_UNUSED, start - free);
                self.graph.locate_within(node, &at(free), unused, 0);
            }
            free = free.max(end);
        }
    }
}

impl HeapReader<'_> {
    fn outermost_page(&self) -> Option<u64> {
        let frames =
            self.chain_from(self.view.pointer(self.executor.globals, self.php.layout.executor_current));
        let blocks = frames.filter_map(|frame| self.blocks.find(frame));
        blocks.filter(|block| block.region == Region::VM_STACK).last().map(|block| block.address)
    }
}
