//! The roots of the walk: everything that the engine holds.

use borehole_heap::{HeapSink, LocationType, NodeId, NodeType, Region, StringId};
use hashbrown::HashSet;

use super::frames::MOST_FRAMES;
use super::seen::BlockSpot;
use super::task::{EntryKind, Pointers};
use super::values::Zval;
use super::{Extent, HeapReader, HeapWalker, NodeLink, VisitKind, WalkTask};
use crate::attach::Php;
use crate::executor::Executor;
use crate::heap::blocks::HeapBlocks;
use crate::heap::layout::HeapLayout;
use crate::heap::view::DumpView;
use crate::layout::fixed;
use crate::remote::{moved, u32_at, u64_at};

/// `zend_executor_globals.included_files`, a `HashTable`.
const INCLUDED_FILES: usize = 360;
/// `zend_arena`.
const ARENA_HEADER: u64 = 24;
/// `zend_stack`: `size`, `top`, `max`, `elements`.
const STACK_SIZE: usize = 24;
const STACK_ELEMENTS: usize = 16;
/// The maximum number of pages of a stack or an arena.
const MOST_PAGES: usize = 1 << 16;
/// `ZEND_WEAKREF_GET_TAG`, and `ZEND_WEAKREF_TAG_HT`.
const WEAK_TAGS: u64 = 3;
const WEAK_TABLE: u64 = 2;
/// `zend_ini_entry`.
const DIRECTIVE_VALUE: usize = 40;
const DIRECTIVE_ORIGINAL: usize = 48;
const DIRECTIVE_SIZE: u64 = 72;

/// Marks the blocks that are pages of the VM stack or of the compiler's memory.
pub(super) fn claim(view: DumpView<'_>, php: &Php, executor: &Executor, blocks: &mut HeapBlocks) {
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
pub(super) fn pages(view: DumpView<'_>, last: u64) -> Vec<u64> {
    let (mut pages, mut known) = (Vec::new(), HashSet::new());
    let mut page = last;
    while page != 0 && pages.len() < MOST_PAGES && known.insert(page) {
        pages.push(page);
        page = view.pointer(page, fixed::STACK_PAGE_PREVIOUS);
    }
    pages
}

impl<S: HeapSink> HeapWalker<'_, S> {
    pub(super) fn roots(&mut self) {
        if self.heap.is_active {
            self.variables_of_request();
        }
        self.definitions();
        if self.heap.is_active {
            self.state_of_request();
        }
        let persistent = moved(self.regular_list(), fixed::TABLE_SIZE);
        let node_type = NodeType::PERSISTENT_LIST;
        self.table_root(self.words.persistent_list, node_type, persistent, EntryKind::Resource, false);
        self.directives();
        // The following steps find what nothing has led to so far.
        self.memory_manager();
        self.set_scans_aside();
        let held = self.garbage();
        self.scan_held();
        self.modules();
        if self.heap.is_active {
            self.held_elsewhere(&held);
            self.weakly_referred();
            self.objects_store();
        }
        self.finish_scans();
        self.finish_stacks();
    }

    fn variables_of_request(&mut self) {
        let current =
            self.heap.view.pointer(self.heap.executor.globals, self.heap.php.layout.executor_current);
        let other = self.heap.failed.map(|chain| (chain.innermost, chain.depth));
        let (first, most) = other.unwrap_or((current, MOST_FRAMES));
        self.call_frames(first, most);
        self.global_variables();
    }

    /// Visits functions, classes and constants: those of PHP itself, of preloaded files, and of the current request.
    fn definitions(&mut self) {
        let (heap, words) = (self.heap, self.words);
        let tables = heap.php.layout.executor_function_table;
        let pointer = |offset| heap.view.pointer(heap.executor.globals, tables + offset);
        let node_type = NodeType::DEFINED_FUNCTIONS;
        self.table_root(words.function_table, node_type, pointer(0), EntryKind::Function, true);
        self.table_roots(&[
            (words.class_table, NodeType::DEFINED_CLASSES, pointer(8), EntryKind::Class),
            (words.global_constants, NodeType::GLOBAL_CONSTANTS, pointer(16), EntryKind::Constant),
        ]);
    }

    /// Visits what exists only while a request is active, besides its variables and definitions.
    fn state_of_request(&mut self) {
        let (heap, words, layout) = (self.heap, self.words, self.heap.layout);
        let executor = heap.executor.globals;
        let files = moved(executor, INCLUDED_FILES);
        self.table_root(words.included_files, NodeType::INCLUDED_FILES, files, EntryKind::Key, false);
        let strings = heap.executor.compiler.map_or(0, |compiler| moved(compiler, layout.compiler_strings));
        self.root(words.interned_strings, VisitKind::Array, strings);
        self.callbacks();
        let weak = if layout.executor_weak == 0 { 0 } else { moved(executor, layout.executor_weak) };
        self.table_roots(&[
            (words.regular_list, NodeType::REGULAR_LIST, self.regular_list(), EntryKind::ListedResource),
            (words.weak_references, NodeType::WEAK_REFERENCES, weak, EntryKind::Weak),
        ]);
        self.main_stack();
        self.arena_pages();
        self.exceptions();
        self.callables();
    }

    /// The address of `EG(regular_list)`.
    fn regular_list(&self) -> u64 {
        moved(self.heap.executor.globals, self.heap.layout.executor_regular_list)
    }

    pub(crate) fn root_node(&mut self, name: &str, node_type: NodeType) -> NodeId {
        let name = self.graph.name(name);
        self.graph.node(node_type, NodeLink::root(name))
    }

    fn root(&mut self, name: StringId, kind: VisitKind, address: u64) {
        self.later(NodeLink::root(name), kind, address);
        self.run();
    }

    fn call_frames(&mut self, first: u64, most: u32) {
        self.note_lent(first, most);
        let node = self.graph.node(NodeType::CALL_FRAMES, NodeLink::root(self.words.call_frames));
        self.pending.tasks.push(WalkTask::Frames { node, next: first, at: 0, most });
        let frames = self.heap.chain_from(first).take(most as usize).count();
        self.count_attribute(node, frames as u64);
        self.run();
    }

    /// Adds the parts of the table of global variables. Call frames may have visited it as their symbol table.
    fn global_variables(&mut self) {
        let node = self.graph.node(NodeType::GLOBAL_VARIABLES, NodeLink::root(self.words.global_variables));
        let address = self.heap.globals_address();
        match self.globals {
            Some([unused, elements]) => {
                self.graph.edge(NodeLink::strong(node, self.words.possible_unused_area), unused, false);
                self.graph.edge(NodeLink::strong(node, self.words.array_elements), elements, false);
            }
            None => {
                let header = self.heap.view.array(address);
                if let Some(table) = header.map(|header| self.heap.table(&header)) {
                    self.parts(node, &table);
                }
            }
        }
        self.run();
    }

    fn table_roots(&mut self, tables: &[(StringId, NodeType, u64, EntryKind)]) {
        for &(name, node_type, address, each) in tables {
            self.table_root(name, node_type, address, each, false);
        }
    }

    pub(super) fn table_root(
        &mut self,
        name: StringId,
        node_type: NodeType,
        address: u64,
        each: EntryKind,
        is_located: bool,
    ) {
        if address == 0 || self.heap.view.room(address) == 0 {
            return;
        }
        let node = self.graph.node(node_type, NodeLink::root(name));
        if is_located {
            self.header_at(node, address);
        }
        self.engine_table(node, address, each);
        self.run();
    }

    fn objects_store(&mut self) {
        let node = self.graph.node(NodeType::OBJECTS_STORE, NodeLink::root(self.words.objects_store));
        let store = moved(self.heap.executor.globals, self.heap.layout.executor_objects);
        let Some(store) = self.heap.view.array::<16>(store) else { return };
        let start = u64_at(&store, 0).unwrap_or_default();
        let [top, size] = [fixed::OBJECTS_TOP, fixed::OBJECTS_TOP + 4]
            .map(|offset| u32_at(&store, offset).unwrap_or_default());
        let spot = self.heap.spot(start);
        let room = spot.block.map_or(u64::MAX, |block| block.end() - start);
        let bytes = (u64::from(size) * 8).min(room);
        self.graph.locate(node, &spot, Extent::new(LocationType::OBJECTS_STORE, bytes));
        let count = u64::from(top).min(bytes / 8);
        let places = self.heap.view.bytes(start, count * 8);
        let is_used = |place: &&[u8]| u64_at(place, 0).is_some_and(|object| object != 0 && object & 1 == 0);
        let used = places.chunks_exact(8).filter(is_used).count();
        self.count_attribute(node, used as u64);
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let row = Pointers { is_store: true, ..Pointers::new(node, start, count, VisitKind::Object) };
        self.pending.tasks.push(WalkTask::Pointers(row));
        self.run();
    }

    /// Visits the program's handlers of errors and exceptions.
    fn callbacks(&mut self) {
        let node = self.graph.node(NodeType::GLOBAL_CALLBACKS, NodeLink::root(self.words.global_callbacks));
        let handler = moved(self.heap.executor.globals, self.heap.layout.executor_error_handler);
        let words = self.words;
        let parts = [
            (words.error_handler, VisitKind::Value, handler),
            (words.exception_handler, VisitKind::Value, handler.wrapping_add(fixed::VALUE_SIZE)),
        ];
        self.parts_later(node, &parts);
        self.run();
        let stacks = handler.wrapping_add(2 * fixed::VALUE_SIZE);
        self.callback_stack(node, words.error_reporting_levels, stacks, 4);
        self.callback_stack(node, words.error_handlers, moved(stacks, STACK_SIZE), fixed::VALUE_SIZE);
        self.callback_stack(node, words.exception_handlers, moved(stacks, 2 * STACK_SIZE), fixed::VALUE_SIZE);
    }

    /// Visits a `zend_stack` with elements of `size` bytes. Elements with the size of a value are values.
    fn callback_stack(&mut self, parent: NodeId, name: StringId, address: u64, size: u64) {
        let start = self.heap.view.pointer(address, STACK_ELEMENTS);
        let Some(numbers) = self.heap.view.array::<12>(address).filter(|_| start != 0) else { return };
        let [top, most] = [4, 8].map(|offset| u32_at(&numbers, offset).unwrap_or_default());
        let room = self.heap.room_in_block(start);
        let extent = Extent::new(LocationType::CALLBACK_STACK, (u64::from(most) * size).min(room));
        let link = NodeLink::strong(parent, name);
        let Some(node) = self.graph.once(link, NodeType::CALLBACK_STACK, start, extent) else { return };
        if size == fixed::VALUE_SIZE {
            let count = top.min(u32::try_from(room / size).unwrap_or(u32::MAX));
            let row = Pointers::new(node, start, count, VisitKind::Value);
            self.pending.tasks.push(WalkTask::Values(row));
        }
        self.run();
    }

    pub(super) fn listed(&mut self, link: NodeLink, value: Zval) {
        if value.kind != self.heap.layout.kind_pointer {
            self.value(link, value);
        }
    }

    pub(super) fn listed_weakly(&mut self, link: NodeLink, value: Zval) {
        if value.kind == fixed::KIND_RESOURCE {
            self.weakly(link, VisitKind::Resource, value.word);
        }
    }

    /// Visits the weak references to one object, if they are several, in a table. Neither table counts as a reference to them.
    ///
    /// Source: `zend_weakref_register` in `Zend/zend_weakrefs.c` of PHP 8.0 to 8.5.
    pub(super) fn weak(&mut self, link: NodeLink, pointer: u64) {
        if pointer & WEAK_TAGS != WEAK_TABLE {
            return;
        }
        let address = pointer & !WEAK_TAGS;
        if let Some((node, _)) = self.graph.enter(NodeType::WEAK_REFERENCES, link, address) {
            self.header_at(node, address);
            self.engine_table(node, address, EntryKind::Weak);
        }
    }

    fn directives(&mut self) {
        let all = self.heap.view.pointer(self.heap.executor.globals, self.heap.layout.executor_ini + 8);
        if all == 0 {
            return;
        }
        let node = self.graph.node(NodeType::INI_DIRECTIVES, NodeLink::root(self.words.ini_directives));
        self.header_at(node, all);
        self.engine_table(node, all, EntryKind::Ini);
        self.run();
    }

    pub(super) fn directive(&mut self, link: NodeLink, address: u64) {
        let extent = Extent::new(LocationType::INI_ENTRY, DIRECTIVE_SIZE);
        let Some(node) = self.graph.once(link, NodeType::INI_DIRECTIVE, address, extent) else { return };
        let value = |offset| self.heap.view.pointer(address, offset);
        let parts = [
            (self.words.value, VisitKind::String, value(DIRECTIVE_VALUE)),
            (self.words.original_value, VisitKind::String, value(DIRECTIVE_ORIGINAL)),
        ];
        self.parts_later(node, &parts);
    }

    /// Adds the unused part of the compiler's memory. The functions and classes in it are located where they are listed.
    fn arena_pages(&mut self) {
        let Some(compiler) = self.heap.executor.compiler else { return };
        let node = self.root_node("compiler_arena", NodeType::COMPILER_ARENA);
        for arena in [self.heap.layout.compiler_arena, self.heap.layout.compiler_ast_arena] {
            for page in pages(self.heap.view, self.heap.view.pointer(compiler, arena)) {
                let spot = self.heap.spot(page);
                let Some(block) = spot.block else { continue };
                self.graph.locate_within(node, &spot, Extent::new(LocationType::ARENA, ARENA_HEADER), 0);
                let [next, end] = [0, fixed::STACK_PAGE_END]
                    .map(|offset| self.heap.view.u64(moved(page, offset)).unwrap_or_default());
                if (page.saturating_add(ARENA_HEADER)..=end).contains(&next) && end <= block.end() {
                    let unused = BlockSpot { address: next, block: spot.block };
                    self.graph.locate_within(node, &unused, Extent::new(LocationType::ARENA, end - next), 0);
                }
            }
        }
    }

    fn exceptions(&mut self) {
        let exception = moved(self.heap.executor.globals, self.heap.layout.executor_exception);
        let room = self.heap.php.layout.executor_before_exception - self.heap.layout.executor_exception;
        for (name, offset) in [(self.words.exception, 0), (self.words.previous_exception, 8)] {
            if offset >= room {
                // 8.6 has no previous exception.
                return;
            }
            let object = self.heap.view.u64(moved(exception, offset)).unwrap_or_default();
            self.root(name, VisitKind::Object, object);
        }
    }
}

impl HeapReader<'_> {
    pub(super) fn globals_address(&self) -> u64 {
        moved(self.executor.globals, fixed::EXECUTOR_VARIABLES)
    }

    /// The frames from `first` outwards, each once, even if a damaged chain forms a loop; the walk has equally many.
    pub(super) fn chain_from(&self, first: u64) -> impl Iterator<Item = u64> {
        let previous = |&frame: &u64| Some(self.view.pointer(frame, self.php.layout.frame_previous));
        let frames = std::iter::successors(Some(first), previous);
        let mut known = HashSet::new();
        frames.take_while(move |&frame| frame != 0 && known.insert(frame)).take(MOST_FRAMES as usize)
    }
}
