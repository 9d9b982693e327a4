//! Callbacks of PHP's modules: shutdown functions, autoloaders, output handlers.
//!
//! Their structures vary between releases. All of them contain listed objects, values, and the function, so they are searched
//! for these instead of read by offsets.
//!
//! Source: `ext/standard/basic_functions.h` and `main/php_output.h` of PHP 7.0 to 8.5, for the fields below, which are where they
//! were; `ext/spl/php_spl.c` of 8.0 to 8.5, for `autoload_func_info`. Seen in a process of 8.2.

use borehole_heap::{HeapSink, LocationType, NodeId, NodeType, Strength, Value};
use borehole_process::Target as _;

use super::task::Each;
use super::{Kind, Link, Shape, Walker};
use crate::heap::guess::{self, Guess};
use crate::heap::internals::{scan::Scan, table};
use crate::heap::remainder::places;
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
const TYPES: [u8; 2] = [1, 2];

impl<S: HeapSink> Walker<'_, S> {
    /// Visits the callbacks of modules.
    pub(super) fn callables(&mut self) {
        if let Some(basic) = self.variable("basic_globals") {
            // `php_basic_globals` begins with `user_shutdown_function_names`, `HashTable *`.
            let table = self.view.u64(basic).unwrap_or_default();
            if self.is_table(table) {
                let name = self.words.shutdown_functions;
                self.table_root(name, NodeType::SHUTDOWN_FUNCTIONS, table, Each::Callable, true);
            }
        }
        if let Some(table) = self.autoloaders() {
            self.table_root(self.words.autoloaders, NodeType::AUTOLOADERS, table, Each::Callable, true);
        }
        if let Some(output) = self.variable("output_globals") {
            self.output_buffers(output);
        }
    }

    /// The address of a PHP variable, if the process has one of this name.
    fn variable(&self, name: &str) -> Option<u64> {
        let files =
            self.view.mappings().iter().filter(|mapping| mapping.shows_file() && mapping.file_offset == 0);
        let mut symbols = files.filter_map(|file| self.view.dump().symbols(file).ok());
        symbols.find_map(|symbols| symbols.find(name).map(|symbol| symbol.address))
    }

    /// Whether a `HashTable` that is a block itself is at `address`.
    fn is_table(&self, address: u64) -> bool {
        let block = self.block_at(address).filter(|block| block.bytes == TABLE_SIZE);
        block.is_some_and(|block| guess::guess(self.view, &self.layout, &block) == Guess::Array)
    }

    /// The table of autoloaders. The variable that refers to it has no symbol, but nothing else looks like this table.
    fn autoloaders(&self) -> Option<u64> {
        let places = places(self.view);
        let own = places.iter().find(|place| place.range.contains(&self.executor.globals))?;
        places.iter().filter(|place| place.base == own.base).find_map(|place| {
            let bytes = self.view.bytes(place.range.start, place.range.end - place.range.start);
            let words =
                bytes.chunks_exact(8).filter_map(|word| word.first_chunk().copied().map(u64::from_le_bytes));
            words.into_iter().find(|&word| self.is_autoload_table(word))
        })
    }

    fn is_autoload_table(&self, address: u64) -> bool {
        if !self.is_table(address) {
            return false;
        }
        let Some((_, _, entries)) = table(address, self) else { return false };
        let is_pointer = |value| self.view.array(moved(value, 8)) == Some([self.layout.kind_pointer]);
        let is_autoloader = |address| {
            let block = self.block_at(address).filter(|block| block.bytes == AUTOLOADER_SIZE);
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

    /// Whether a function or a class is at `address`, by its type and name, which have equal offsets in both.
    fn has_name(&self, address: u64) -> bool {
        let is_type = self.view.array(address).is_some_and(|[kind]| TYPES.contains(&kind));
        let name = self.view.pointer(address, fixed::FUNCTION_NAME);
        is_type && self.text(&self.spot(name)).is_some_and(|text| text.is_whole())
    }

    /// Visits a structure with a callback.
    pub(super) fn callable(&mut self, link: Link, address: u64) {
        let Some(bytes) = self.room(address).map(|room| room.min(MOST_BYTES)) else { return };
        let shape = Shape::new(LocationType::INTERNAL_DATA, bytes);
        let Some(node) = self.block_by(link, NodeType::CALLABLE, address, shape) else { return };
        let (mut objects, mut function) = (Vec::new(), None);
        let mark = self.work.len();
        for place in (address..address.saturating_add(bytes)).step_by(8) {
            let word = self.view.u64(place).unwrap_or_default();
            if self.is_listed_object(word) {
                if !objects.contains(&word) {
                    objects.push(word);
                    self.refers(node, "callback", Kind::Object, word, Strength::Strong);
                }
            } else if self.is_value(place, word) {
                self.holds(node, "callback", place);
            } else if function.is_none() && self.has_name(word) {
                function = Some(word);
            }
        }
        self.in_order(mark);
        if let Some(function) = function {
            let title = self.title(function);
            self.sink.attribute(node, self.words.function_name, Value::Text(&title));
        }
        // Its arguments.
        self.scans.push(Scan { node, start: address, bytes });
    }

    /// Whether a string or an array is at `place` as a value, which begins with `word`.
    fn is_value(&self, place: u64, word: u64) -> bool {
        let Some(block) = self.block_at(word) else { return false };
        let found = guess::guess(self.view, &self.layout, &block);
        match self.view.array(moved(place, 8)) {
            Some([fixed::KIND_STRING]) => found == Guess::String,
            Some([fixed::KIND_ARRAY]) => found == Guess::Array,
            _ => false,
        }
    }

    /// Visits the output buffers, outermost first.
    fn output_buffers(&mut self, globals: u64) {
        let top = self.view.number(globals, HANDLERS_TOP).min(MOST_HANDLERS);
        let start = self.view.pointer(globals, HANDLERS);
        let Some(room) = self.room(start).filter(|_| top > 0) else { return };
        let root = self.root_node("output_buffers", NodeType::OUTPUT_BUFFERS);
        self.locate_once(root, start, Shape::new(LocationType::CALLBACK_STACK, room));
        self.count_attribute(root, top.into());
        for number in 0..u64::from(top).min(room / 8) {
            let handler = self.view.u64(start + number * 8).unwrap_or_default();
            self.output_buffer(root, &number.to_string(), handler);
        }
        self.run();
    }

    fn output_buffer(&mut self, root: NodeId, name: &str, address: u64) {
        let Some(room) = self.room(address) else { return };
        let (kind, shape) =
            (NodeType::OUTPUT_BUFFER, Shape::new(LocationType::INTERNAL_DATA, room.min(HANDLER_SIZE)));
        let Some(node) = self.block(root, name, Strength::Strong, kind, address, shape) else { return };
        let [data, size, used] = self.words_at(moved(address, HANDLER_BUFFER)).unwrap_or_default();
        self.fact(node, "used", Value::Integer(i64::try_from(used).unwrap_or(i64::MAX)));
        let name = self.view.u64(address).unwrap_or_default();
        self.refers(node, "name", Kind::String, name, Strength::Strong);
        if let Some(room) = self.room(data) {
            let (kind, shape) =
                (NodeType::INTERNAL_DATA, Shape::new(LocationType::INTERNAL_DATA, size.min(room)));
            self.block(node, "buffer", Strength::Strong, kind, data, shape);
        }
        if self.view.number(address, HANDLER_FLAGS) & HANDLER_OF_USER != 0 {
            let link = Link::strong(node, self.sink.string(b"handler"));
            self.callable(link, self.view.pointer(address, HANDLER_FUNCTION));
        }
    }
}
