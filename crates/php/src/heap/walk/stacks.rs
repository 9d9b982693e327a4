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
use super::seen::Spot;
use super::{Link, Shape, View, Walker};
use crate::heap::blocks::{Block, Blocks};
use crate::remote::moved;

/// `zend_vm_stack`: `top`, `end`, `prev`, and its size, padded to whole values.
const PAGE_TOP: usize = 0;
const PAGE_END: usize = 8;
const PAGE_PREVIOUS: usize = 16;
const PAGE_HEADER: u64 = 32;

/// Marks the blocks that are pages of stacks: they begin with the end of their used part, and their end. A page for a call with
/// very many arguments is a huge block.
pub(super) fn claim(view: View<'_>, blocks: &mut Blocks) {
    let is_page = |block: &Block| {
        let [top, end] =
            [PAGE_TOP, PAGE_END].map(|offset| view.u64(moved(block.address, offset)).unwrap_or_default());
        end == block.end() && (block.address + PAGE_HEADER..=end).contains(&top)
    };
    let pages: Vec<Block> = blocks.of_pages().filter(is_page).collect();
    for page in pages {
        blocks.claim(page.address, Region::VM_STACK);
    }
}

/// All stacks, with the locations on them.
#[derive(Debug, Default)]
pub(super) struct Stacks {
    all: Vec<Stack>,
    /// The number of the stack of each page.
    by_page: HashMap<u64, usize>,
    /// The start and end of each location on the pages.
    taken: Vec<(u64, u64)>,
}

#[derive(Debug, Default)]
struct Stack {
    pages: Vec<Block>,
    /// The node that owns the stack.
    owner: Option<NodeId>,
}

impl Stacks {
    /// The stacks formed by the claimed pages; each page leads to the one before it.
    pub(super) fn of(view: View<'_>, blocks: &Blocks) -> Self {
        let claims = blocks.claims().filter(|(_, region)| *region == Region::VM_STACK);
        let pages: Vec<Block> = claims.map(|(page, _)| page).collect();
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
                at = view.pointer(at, PAGE_PREVIOUS);
                if !is_page(at) {
                    break new;
                }
            };
            if number == new {
                stacks.all.push(Stack::default());
            }
            stacks.by_page.extend(path.into_iter().map(|page| (page, number)));
        }
        for page in pages {
            let number = stacks.by_page[&page.address];
            stacks.all[number].pages.push(page);
        }
        stacks
    }

    /// Records a location on a page.
    #[inline]
    pub(super) fn take(&mut self, address: u64, size: u64) {
        self.taken.push((address, address.saturating_add(size)));
    }

    /// The stack that contains the page at `address`, unless it has an owner already.
    fn without_owner(&mut self, address: u64) -> Option<&mut Stack> {
        let number = *self.by_page.get(&address)?;
        self.all.get_mut(number).filter(|stack| stack.owner.is_none())
    }
}

impl<S: HeapSink> Walker<'_, S> {
    /// Adds the stack of the program.
    pub(super) fn main_stack(&mut self) {
        let node = self.node(NodeType::VM_STACK, Link::root(self.words.vm_stack));
        let last = self.view.pointer(self.executor.globals, self.php.layout.executor_stack_top + 16);
        // While a fiber runs, the executor refers to the fiber's stack.
        let page = self.outermost_page().unwrap_or(last);
        if self.stacks.without_owner(page).is_some() {
            return self.owns_stack(node, page);
        }
        for page in pages(self.view, page) {
            let spot = self.spot(page);
            self.locate_within(node, &spot, Shape::new(LocationType::VM_STACK_HEADER, PAGE_HEADER), 0);
        }
    }

    /// The page that contains the outermost call.
    fn outermost_page(&self) -> Option<u64> {
        let frames =
            self.chain_from(self.view.pointer(self.executor.globals, self.php.layout.executor_current));
        let blocks = frames.filter_map(|frame| self.blocks.find(frame));
        blocks.filter(|block| block.region == Region::VM_STACK).last().map(|block| block.address)
    }

    /// Adds the stack with the first frame at `bottom` to `parent`.
    pub(crate) fn stack_of(&mut self, parent: NodeId, bottom: u64) {
        let page = bottom.wrapping_sub(PAGE_HEADER);
        if self.stacks.without_owner(page).is_some() {
            let node = self.part(parent, "vm_stack", NodeType::VM_STACK_ARENA);
            self.owns_stack(node, page);
        }
    }

    fn owns_stack(&mut self, node: NodeId, page: u64) {
        if let Some(stack) = self.stacks.without_owner(page) {
            stack.owner = Some(node);
            for page in &stack.pages {
                self.account.reach(page);
            }
        }
    }

    /// Adds the locations of the parts of the stacks that are not in calls.
    pub(super) fn finish_stacks(&mut self) {
        let Stacks { all, mut taken, .. } = std::mem::take(&mut self.stacks);
        taken.sort_unstable();
        for Stack { pages, owner } in all {
            let Some(owner) = owner else { continue };
            for page in &pages {
                self.finish_page(owner, page, &taken);
            }
        }
    }

    /// Adds the locations of a page's header and of the parts that are in no call: places kept for calls being prepared, and
    /// the part after the last call.
    fn finish_page(&mut self, node: NodeId, page: &Block, taken: &[(u64, u64)]) {
        let at = |address| Spot { address, block: Some(*page) };
        let header = Shape::new(LocationType::VM_STACK_HEADER, PAGE_HEADER);
        self.locate_within(node, &at(page.address), header, 0);
        let mut free = page.address + PAGE_HEADER;
        let first = taken.partition_point(|&(start, _)| start < free);
        let calls = taken[first..].iter().copied().take_while(|&(start, _)| start < page.end());
        for (start, end) in calls.chain([(page.end(), page.end())]) {
            if free < start {
                let unused = Shape::new(LocationType::VM_STACK_UNUSED, start - free);
                self.locate_within(node, &at(free), unused, 0);
            }
            free = free.max(end);
        }
    }
}
