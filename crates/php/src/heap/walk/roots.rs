//! The roots of the walk: everything that the engine holds.

use borehole_heap::{HeapSink, LocationType, NodeId, NodeType, Region, StringId};
use hashbrown::HashSet;

use super::frames::MOST_FRAMES;
use super::seen::Spot;
use super::task::{Each, Pointers};
use super::values::{VALUE_SIZE, Zval};
use super::{Kind, Link, Shape, Task, View, Walker};
use crate::attach::Php;
use crate::executor::Executor;
use crate::heap::blocks::Blocks;
use crate::heap::layout::HeapLayout;
use crate::layout::fixed;
use crate::remote::{moved, u32_at, u64_at};

/// `zend_executor_globals.included_files`, a `HashTable`.
const INCLUDED_FILES: usize = 360;
/// `zend_vm_stack` and `zend_arena`: `end` and `prev`.
const PAGE_END: usize = 8;
const PAGE_PREVIOUS: usize = 16;
/// `zend_arena`.
const ARENA_HEADER: u64 = 24;
/// `zend_stack`: `size`, `top`, `max`, `elements`.
const STACK_SIZE: usize = 24;
const STACK_ELEMENTS: usize = 16;
/// The maximum number of pages of a stack or an arena.
const MOST_PAGES: usize = 1 << 16;
/// `zend_objects_store.size`, in places.
const STORE_TOP: usize = 8;
const STORE_SIZE: usize = 12;
/// `ZEND_WEAKREF_GET_TAG`, and `ZEND_WEAKREF_TAG_HT`.
const WEAK_TAGS: u64 = 3;
const WEAK_TABLE: u64 = 2;
/// `zend_ini_entry`.
const DIRECTIVE_VALUE: usize = 40;
const DIRECTIVE_ORIGINAL: usize = 48;
const DIRECTIVE_SIZE: u64 = 72;

/// Marks the blocks that are pages of the VM stack or of the compiler's memory.
pub(super) fn claim(view: View<'_>, php: &Php, executor: &Executor, blocks: &mut Blocks) {
    let layout = HeapLayout::of(php.identity.release);
    let stack = view.pointer(executor.globals, php.layout.executor_stack_top + 16);
    for page in pages(view, stack) {
        blocks.claim(page, Region::VM_STACK);
    }
    let Some(compiler) = executor.compiler else { return };
    for arena in [layout.compiler_arena, layout.compiler_ast_arena] {
        for page in pages(view, view.pointer(compiler, arena)) {
            blocks.claim(page, Region::COMPILER_ARENA);
        }
    }
}

/// The addresses of the pages of a stack or an arena, starting with the last page.
pub(super) fn pages(view: View<'_>, last: u64) -> Vec<u64> {
    let (mut pages, mut known) = (Vec::new(), HashSet::new());
    let mut page = last;
    while page != 0 && pages.len() < MOST_PAGES && known.insert(page) {
        pages.push(page);
        page = view.pointer(page, PAGE_PREVIOUS);
    }
    pages
}

impl<S: HeapSink> Walker<'_, S> {
    /// The address of the table of global variables.
    pub(super) fn globals_address(&self) -> u64 {
        moved(self.executor.globals, fixed::EXECUTOR_VARIABLES)
    }

    /// Walks everything.
    pub(super) fn roots(&mut self) {
        let executor = self.executor.globals;
        let (stacks, layout) = (self.php.layout, self.layout);
        let executing = self.view.pointer(executor, stacks.executor_current);
        let other = self.other_chain.map(|chain| (chain.innermost, chain.depth));
        let (first, most) = other.unwrap_or((executing, MOST_FRAMES));
        self.call_frames(first, most);
        self.global_variables();
        let functions = self.view.pointer(executor, stacks.executor_function_table);
        self.table_root(
            self.words.function_table,
            NodeType::DEFINED_FUNCTIONS,
            functions,
            Each::Function,
            true,
        );
        let classes = self.view.pointer(executor, stacks.executor_class_table);
        self.table_root(self.words.class_table, NodeType::DEFINED_CLASSES, classes, Each::Class, false);
        let constants = self.view.pointer(executor, stacks.executor_class_table + 8);
        self.table_root(
            self.words.global_constants,
            NodeType::GLOBAL_CONSTANTS,
            constants,
            Each::Constant,
            false,
        );
        let files = moved(executor, INCLUDED_FILES);
        self.table_root(self.words.included_files, NodeType::INCLUDED_FILES, files, Each::Key, false);
        let strings = self.executor.compiler.map_or(0, |compiler| moved(compiler, layout.compiler_strings));
        self.root(self.words.interned_strings, Kind::Array, strings);
        self.callbacks();
        let list = moved(executor, layout.executor_regular_list);
        self.table_root(self.words.regular_list, NodeType::REGULAR_LIST, list, Each::Resource, false);
        let list = moved(executor, layout.executor_persistent_list);
        self.table_root(self.words.persistent_list, NodeType::PERSISTENT_LIST, list, Each::Resource, false);
        if layout.executor_weak != 0 {
            let weak = moved(executor, layout.executor_weak);
            self.table_root(self.words.weak_references, NodeType::WEAK_REFERENCES, weak, Each::Weak, false);
        }
        self.directives();
        self.main_stack();
        self.arena_pages();
        self.exceptions();
        self.callables();
        // The following steps find what nothing has led to so far.
        self.memory_manager();
        self.finish_scans();
        self.garbage();
        self.modules();
        self.weakly_referred();
        self.objects_store();
        self.finish_scans();
        self.finish_stacks();
    }

    /// Adds a root node.
    pub(crate) fn root_node(&mut self, name: &str, node_type: NodeType) -> NodeId {
        let name = self.sink.string(name.as_bytes());
        self.node(node_type, Link::root(name))
    }

    fn root(&mut self, name: StringId, kind: Kind, address: u64) {
        self.later(Link::root(name), kind, address);
        self.run();
    }

    fn call_frames(&mut self, first: u64, most: u32) {
        let node = self.node(NodeType::CALL_FRAMES, Link::root(self.words.call_frames));
        self.work.push(Task::Frames { node, next: first, at: 0, most });
        let frames = self.chain_from(first).take(most as usize).count();
        self.count_attribute(node, frames as u64);
        self.run();
    }

    /// The frames from `first` outwards, each once, even if a damaged chain forms a loop; the walk has equally many.
    pub(super) fn chain_from(&self, first: u64) -> impl Iterator<Item = u64> {
        let previous = |&frame: &u64| Some(self.view.pointer(frame, self.php.layout.frame_previous));
        let frames = std::iter::successors(Some(first), previous);
        let mut known = HashSet::new();
        frames.take_while(move |&frame| frame != 0 && known.insert(frame)).take(MOST_FRAMES as usize)
    }

    /// Adds the parts of the table of global variables. Call frames may have visited it as their symbol table.
    fn global_variables(&mut self) {
        let node = self.node(NodeType::GLOBAL_VARIABLES, Link::root(self.words.global_variables));
        let address = self.globals_address();
        match self.globals {
            Some([unused, elements]) => {
                self.edge(Link::strong(node, self.words.possible_unused_area), unused, false);
                self.edge(Link::strong(node, self.words.array_elements), elements, false);
            }
            None => {
                let header = self.view.array(address);
                if let Some(table) = header.map(|header| self.table(&header)) {
                    self.parts(node, &table);
                }
            }
        }
        self.run();
    }

    /// Visits a hash table of the engine.
    pub(super) fn table_root(
        &mut self,
        name: StringId,
        node_type: NodeType,
        address: u64,
        each: Each,
        is_located: bool,
    ) {
        if address == 0 || self.view.rest(address).is_empty() {
            return;
        }
        let node = self.node(node_type, Link::root(name));
        if let Some(header) = self.view.array(address).filter(|_| is_located) {
            let spot = self.spot(address);
            self.header(node, &spot, &header);
        }
        self.engine_table(node, address, each);
        self.run();
    }

    fn objects_store(&mut self) {
        let node = self.node(NodeType::OBJECTS_STORE, Link::root(self.words.objects_store));
        let store = moved(self.executor.globals, self.layout.executor_objects);
        let Some(store) = self.view.array::<16>(store) else { return };
        let start = u64_at(&store, 0).unwrap_or_default();
        let [top, size] = [STORE_TOP, STORE_SIZE].map(|offset| u32_at(&store, offset).unwrap_or_default());
        let spot = self.spot(start);
        let room = spot.block.map_or(u64::MAX, |block| block.end() - start);
        let bytes = (u64::from(size) * 8).min(room);
        self.locate(node, &spot, Shape::new(LocationType::OBJECTS_STORE, bytes));
        let count = u64::from(top).min(bytes / 8);
        let places = self.view.bytes(start, count * 8);
        let is_used = |place: &&[u8]| u64_at(place, 0).is_some_and(|object| object != 0 && object & 1 == 0);
        let used = places.chunks_exact(8).filter(is_used).count();
        self.count_attribute(node, used as u64);
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        self.work.push(Task::Pointers(Pointers {
            node,
            start,
            at: 0,
            count,
            kind: Kind::Object,
            is_store: true,
        }));
        self.run();
    }

    /// Visits the program's handlers of errors and exceptions.
    fn callbacks(&mut self) {
        let node = self.node(NodeType::GLOBAL_CALLBACKS, Link::root(self.words.global_callbacks));
        let handler = moved(self.executor.globals, self.layout.executor_error_handler);
        let words = self.words;
        let mark = self.work.len();
        self.later(Link::strong(node, words.error_handler), Kind::Value, handler);
        self.later(
            Link::strong(node, words.exception_handler),
            Kind::Value,
            handler.wrapping_add(VALUE_SIZE),
        );
        self.in_order(mark);
        self.run();
        let stacks = handler.wrapping_add(2 * VALUE_SIZE);
        self.callback_stack(node, words.error_reporting_levels, stacks, 4);
        self.callback_stack(node, words.error_handlers, moved(stacks, STACK_SIZE), VALUE_SIZE);
        self.callback_stack(node, words.exception_handlers, moved(stacks, 2 * STACK_SIZE), VALUE_SIZE);
    }

    /// Visits a `zend_stack` with elements of `size` bytes. Elements with the size of a value are values.
    fn callback_stack(&mut self, parent: NodeId, name: StringId, address: u64, size: u64) {
        let start = self.view.pointer(address, STACK_ELEMENTS);
        let Some(numbers) = self.view.array::<12>(address).filter(|_| start != 0) else { return };
        let [top, most] = [4, 8].map(|offset| u32_at(&numbers, offset).unwrap_or_default());
        let spot = self.spot(start);
        let room = spot.block.map_or(u64::MAX, |block| block.end() - start);
        let shape = Shape::new(LocationType::CALLBACK_STACK, (u64::from(most) * size).min(room));
        let link = Link::strong(parent, name);
        let Some(node) = self.once(link, NodeType::CALLBACK_STACK, &spot, shape) else { return };
        if size == VALUE_SIZE {
            let count = top.min(u32::try_from(room / size).unwrap_or(u32::MAX));
            let kind = Kind::Value;
            self.work.push(Task::Values(Pointers { node, start, at: 0, count, kind, is_store: false }));
        }
        self.run();
    }

    /// Visits an entry of a list of resources.
    pub(super) fn listed(&mut self, link: Link, value: Zval) {
        if value.kind != self.layout.kind_pointer {
            self.value(link, value);
        }
    }

    /// Visits the weak references to one object, if they are several, in a table.
    pub(super) fn weak(&mut self, link: Link, pointer: u64) {
        if pointer & WEAK_TAGS == WEAK_TABLE {
            self.array(link, pointer & !WEAK_TAGS);
        }
    }

    /// Visits the settings that the program changed.
    fn directives(&mut self) {
        let all = self.view.pointer(self.executor.globals, self.layout.executor_ini + 8);
        if all == 0 {
            return;
        }
        let node = self.node(NodeType::INI_DIRECTIVES, Link::root(self.words.ini_directives));
        if let Some(header) = self.view.array(all) {
            let spot = self.spot(all);
            self.header(node, &spot, &header);
        }
        self.engine_table(node, all, Each::Ini);
        self.run();
    }

    pub(super) fn directive(&mut self, link: Link, address: u64) {
        let spot = self.spot(address);
        let shape = Shape::new(LocationType::INI_ENTRY, DIRECTIVE_SIZE);
        let Some(node) = self.once(link, NodeType::INI_DIRECTIVE, &spot, shape) else { return };
        let mark = self.work.len();
        for (name, offset) in
            [(self.words.value, DIRECTIVE_VALUE), (self.words.original_value, DIRECTIVE_ORIGINAL)]
        {
            self.later(Link::strong(node, name), Kind::String, self.view.pointer(address, offset));
        }
        self.in_order(mark);
    }

    /// Adds the unused part of the compiler's memory. The functions and classes in it are located where they are listed.
    fn arena_pages(&mut self) {
        let Some(compiler) = self.executor.compiler else { return };
        let node = self.root_node("compiler_arena", NodeType::COMPILER_ARENA);
        for arena in [self.layout.compiler_arena, self.layout.compiler_ast_arena] {
            for page in pages(self.view, self.view.pointer(compiler, arena)) {
                let spot = self.spot(page);
                let Some(block) = spot.block else { continue };
                self.locate_within(node, &spot, Shape::new(LocationType::ARENA, ARENA_HEADER), 0);
                let [next, end] =
                    [0, PAGE_END].map(|offset| self.view.u64(moved(page, offset)).unwrap_or_default());
                if (page.saturating_add(ARENA_HEADER)..=end).contains(&next) && end <= block.end() {
                    let unused = Spot { address: next, block: spot.block };
                    self.locate_within(node, &unused, Shape::new(LocationType::ARENA, end - next), 0);
                }
            }
        }
    }

    /// Visits exceptions in flight.
    fn exceptions(&mut self) {
        let exception = moved(self.executor.globals, self.layout.executor_exception);
        let room = self.php.layout.executor_before_exception - self.layout.executor_exception;
        for (name, offset) in [(self.words.exception, 0), (self.words.previous_exception, 8)] {
            if offset >= room {
                // 8.6 has no previous exception.
                return;
            }
            let object = self.view.u64(moved(exception, offset)).unwrap_or_default();
            self.root(name, Kind::Object, object);
        }
    }
}
