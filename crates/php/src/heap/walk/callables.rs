//! Callbacks of PHP's modules: shutdown functions, autoloaders, output handlers.
//!
//! Their structures vary between releases. All of them contain listed objects, values, and the function, so they are searched
//! for these instead of read by offsets.
//!
//! Source: `ext/standard/basic_functions.h` and `main/php_output.h` of PHP 7.0 to 8.5, for the fields below, which are where they
//! were; `ext/spl/php_spl.c` of 8.0 to 8.5, for `autoload_func_info`. Seen in a process of 8.2.

use std::ops::RangeInclusive;

use borehole_heap::{AttributeValue, HeapSink, LocationType, NodeId, NodeType};

use super::internals::table;
use super::task::EntryKind;
use super::{Extent, HeapReader, HeapWalker, NodeLink, PendingScan, VisitKind};
use crate::heap::guess::{self, Guess};
use crate::heap::view::writable_regions;
use crate::layout::fixed;
use crate::remote::moved;

/// `zend_output_globals.handlers`, a `zend_stack` of `php_output_handler *`: its `top` and its `elements`.
const HANDLERS_TOP: usize = 4;
const HANDLERS: usize = 16;
/// `php_output_handler`, which begins with its `name`: `flags`, `buffer.data` with `size` and `used` behind it, `func`.
const HANDLER_FLAGS: usize = 8;
const HANDLER_BUFFER: usize = 24;
const HANDLER_FUNCTION: usize = 72;
const HANDLER_SIZE: u64 = 80;
/// `PHP_OUTPUT_HANDLER_USER`.
const HANDLER_OF_USER: u32 = 1;
/// The maximum number of nested output buffers.
const MOST_HANDLERS: u32 = 4096;
/// `autoload_func_info`: the addresses of the function, the object, the closure and the class.
const AUTOLOADER_SIZE: u64 = 32;
/// The size of a `HashTable` that is a block itself.
const TABLE_SIZE: u64 = fixed::TABLE_SIZE as u64;
/// The maximum size of a structure with a callback.
const MOST_BYTES: u64 = 256;
/// `zend_function.type` and `zend_class_entry.type`: internal or user.
const TYPES: RangeInclusive<u8> = 1..=2;

impl<S: HeapSink> HeapWalker<'_, S> {
    pub(super) fn callables(&mut self) {
        if let Some(basic) = self.heap.variable("basic_globals") {
            // `php_basic_globals` begins with `user_shutdown_function_names`, `HashTable *`.
            let table = self.heap.view.u64(basic).unwrap_or_default();
            if self.heap.is_table(table) {
                let name = self.words.shutdown_functions;
                self.table_root(name, NodeType::SHUTDOWN_FUNCTIONS, table, EntryKind::Callable, true);
            }
        }
        if let Some(table) = self.heap.autoloaders() {
            self.table_root(self.words.autoloaders, NodeType::AUTOLOADERS, table, EntryKind::Callable, true);
        }
        if let Some(output) = self.heap.variable("output_globals") {
            self.output_buffers(output);
        }
    }

    pub(super) fn callable(&mut self, link: NodeLink, address: u64) {
        let Some(bytes) = self.heap.room(address).map(|room| room.min(MOST_BYTES)) else { return };
        let extent = Extent::new(LocationType::INTERNAL_DATA, bytes);
        let Some(node) = self.block_by(link, NodeType::CALLABLE, address, extent) else { return };
        let (mut objects, mut function) = (Vec::new(), None);
        let mark = self.pending.tasks.len();
        for place in (address..address.saturating_add(bytes)).step_by(8) {
            let word = self.heap.view.u64(place).unwrap_or_default();
            if self.heap.is_listed_object(word) {
                if !objects.contains(&word) {
                    objects.push(word);
                    self.refers(node, "callback", VisitKind::Object, word);
                }
            } else if self.heap.is_value(place, word) {
                self.holds(node, "callback", place);
            } else if function.is_none() && self.heap.has_name(word) {
                function = Some(word);
            }
        }
        self.in_order(mark);
        if let Some(function) = function {
            self.name_function(node, function);
        }
        // Its arguments.
        self.pending.scans.push(PendingScan { node, start: address, bytes });
    }

    /// Visits the output buffers, outermost first.
    fn output_buffers(&mut self, globals: u64) {
        let top = self.heap.view.number(globals, HANDLERS_TOP).min(MOST_HANDLERS);
        let start = self.heap.view.pointer(globals, HANDLERS);
        let Some(room) = self.heap.room(start).filter(|_| top > 0) else { return };
        let root = self.root_node("output_buffers", NodeType::OUTPUT_BUFFERS);
        self.graph.locate_once(root, start, Extent::new(LocationType::CALLBACK_STACK, room));
        self.count_attribute(root, top.into());
        for number in 0..u64::from(top).min(room / 8) {
            let handler = self.heap.view.u64(start + number * 8).unwrap_or_default();
            self.output_buffer(root, &number.to_string(), handler);
        }
        self.run();
    }

    fn output_buffer(&mut self, root: NodeId, name: &str, address: u64) {
        let Some(room) = self.heap.room(address) else { return };
        let (kind, extent) =
            (NodeType::OUTPUT_BUFFER, Extent::new(LocationType::INTERNAL_DATA, room.min(HANDLER_SIZE)));
        let Some(node) = self.block(root, name, kind, address, extent) else { return };
        let [data, size, used] = self.heap.words_at(moved(address, HANDLER_BUFFER)).unwrap_or_default();
        self.fact(node, "used", AttributeValue::Integer(i64::try_from(used).unwrap_or(i64::MAX)));
        let name = self.heap.view.u64(address).unwrap_or_default();
        self.refers(node, "name", VisitKind::String, name);
        if let Some(room) = self.heap.room(data) {
            self.data(node, "buffer", data, size.min(room));
        }
        if self.heap.view.number(address, HANDLER_FLAGS) & HANDLER_OF_USER != 0 {
            let link = NodeLink::strong(node, self.graph.name("handler"));
            self.callable(link, self.heap.view.pointer(address, HANDLER_FUNCTION));
        }
    }
}

impl HeapReader<'_> {
    fn variable(&self, name: &str) -> Option<u64> {
        self.view.symbols().find_map(|symbols| symbols.find(name).map(|symbol| symbol.address))
    }

    /// Whether a `HashTable` that is a block itself is at `address`.
    fn is_table(&self, address: u64) -> bool {
        let block = self.blocks.at(address).filter(|block| block.bytes == TABLE_SIZE);
        block.is_some_and(|block| guess::guess(self.view, self.layout, &block) == Guess::Array)
    }

    /// The table of autoloaders. The variable that refers to it has no symbol, but nothing else looks like this table.
    fn autoloaders(&self) -> Option<u64> {
        let regions = writable_regions(self.view);
        let own = regions.iter().find(|region| region.range.contains(&self.executor.globals))?;
        regions.iter().filter(|region| region.base == own.base).find_map(|region| {
            let mut words = self.view.words(region.range.start, region.range.end - region.range.start);
            words.find(|&word| self.is_autoload_table(word))
        })
    }

    fn is_autoload_table(&self, address: u64) -> bool {
        if !self.is_table(address) {
            return false;
        }
        let Some((_, _, entries)) = table(address, self) else { return false };
        let is_pointer = |value| self.view.array(moved(value, 8)) == Some([self.layout.kind_pointer]);
        let is_autoloader = |address| {
            let block = self.blocks.at(address).filter(|block| block.bytes == AUTOLOADER_SIZE);
            let Some([function, object, closure, class]) = block.and_then(|_| self.words_at(address)) else {
                return false;
            };
            let is_object = |address| address == 0 || self.is_listed_object(address);
            self.has_name(function)
                && is_object(object)
                && is_object(closure)
                && (class == 0 || self.has_name(class))
        };
        !entries.is_empty()
            && entries.iter().all(|entry| is_pointer(entry.value) && is_autoloader(entry.pointer))
    }

    fn words_at<const N: usize>(&self, address: u64) -> Option<[u64; N]> {
        let mut words = [0; N];
        for (offset, word) in words.iter_mut().enumerate() {
            *word = self.view.u64(moved(address, offset * 8))?;
        }
        Some(words)
    }

    /// Whether a function or a class is at `address`.
    fn has_name(&self, address: u64) -> bool {
        self.is_named(address, TYPES)
    }

    /// Whether a string or an array is at `place` as a value, which begins with `word`.
    fn is_value(&self, place: u64, word: u64) -> bool {
        let Some(block) = self.blocks.at(word) else { return false };
        let found = guess::guess(self.view, self.layout, &block);
        match self.view.array(moved(place, 8)) {
            Some([fixed::KIND_STRING]) => found == Guess::String,
            Some([fixed::KIND_ARRAY]) => found == Guess::Array,
            _ => false,
        }
    }
}
