//! The strings, functions, mappings and locations of a document, numbered in the order of first use.
//!
//! Columns beside the model's tables hold the numbers of strings and frames; only strings and frames of samples have
//! one. Definitions are written before the samples, so that a reader can resolve each sample immediately.

use std::borrow::Cow;
use std::io::{self, Write};

use borehole_model::{Frame, FrameId, StackId, StringId, Tables};
use hashbrown::HashMap;

use super::layout::{function, line, location, mapping, profile};
use super::write::{Message, Output};
use crate::Losses;

#[derive(Debug)]
pub(super) struct Symbols<'t> {
    tables: &'t Tables,
    /// By string: its index in the document, 0 if it has none (or is empty).
    string_column: Vec<u32>,
    strings: Vec<Text>,
    /// By text: the index of a string outside the tables.
    fixed: HashMap<String, i64>,
    functions: Vec<Function>,
    function_index: HashMap<(StringId, Option<StringId>), u64>,
    mappings: Vec<i64>,
    mapping_index: HashMap<StringId, u64>,
    locations: Vec<Location>,
    location_index: HashMap<Location, u64>,
    /// By frame: the number of its location, 0 if it has none.
    frame_column: Vec<u64>,
    /// By stack: whether its frames have been numbered.
    seen: Vec<bool>,
    losses: Losses,
}

#[derive(Debug)]
enum Text {
    Interned(StringId),
    Fixed(String),
}

#[derive(Debug)]
struct Function {
    name: i64,
    /// `None` is unknown, `Some(0)` is known to be empty.
    file: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Location {
    function: u64,
    mapping: u64,
    address: u64,
    line: Option<i64>,
    column: u64,
}

impl<'t> Symbols<'t> {
    pub(super) fn new(tables: &'t Tables) -> Self {
        Self {
            tables,
            string_column: vec![0; tables.string_count()],
            strings: Vec::new(),
            fixed: HashMap::new(),
            functions: Vec::new(),
            function_index: HashMap::new(),
            mappings: Vec::new(),
            mapping_index: HashMap::new(),
            locations: Vec::new(),
            location_index: HashMap::new(),
            frame_column: vec![0; tables.frame_count()],
            seen: vec![false; tables.stack_count()],
            losses: Losses::default(),
        }
    }

    pub(super) const fn tables(&self) -> &'t Tables {
        self.tables
    }

    /// The index of a string of the tables.
    pub(super) fn string(&mut self, id: StringId) -> i64 {
        if self.tables.string(id).is_empty() {
            return 0;
        }
        let column = &mut self.string_column[id.index()];
        if *column == 0 {
            self.strings.push(Text::Interned(id));
            *column = u32::try_from(self.strings.len()).unwrap_or(0);
        }
        i64::from(*column)
    }

    /// The index of a string that may be outside the tables.
    pub(super) fn text(&mut self, text: &str) -> i64 {
        if let Some(id) = self.tables.find_string(text.as_bytes()) {
            return self.string(id);
        }
        if text.is_empty() {
            return 0;
        }
        let Self { strings, fixed, .. } = self;
        *fixed.entry_ref(text).or_insert_with(|| {
            strings.push(Text::Fixed(text.to_owned()));
            i64::try_from(strings.len()).unwrap_or(0)
        })
    }

    /// Numbers all frames of a stack.
    pub(super) fn add_stack(&mut self, stack: Option<StackId>) {
        let mut next = stack;
        while let Some(stack) = next {
            if std::mem::replace(&mut self.seen[stack.index()], true) {
                return;
            }
            self.add_frame(self.tables.leaf(stack));
            next = self.tables.parent(stack);
        }
    }

    /// The locations of a stack with numbered frames, leaf first.
    pub(super) fn locations(&self, stack: Option<StackId>) -> impl Iterator<Item = i64> + Clone {
        let frames = self.tables.frames_leaf_first(stack);
        frames.map(|frame| self.frame_column[frame.index()].cast_signed())
    }

    fn add_frame(&mut self, id: FrameId) {
        if self.frame_column[id.index()] != 0 {
            return;
        }
        let frame = self.tables.frame(id);
        let mapping = frame.native.map_or(0, |native| self.mapping(native.module));
        let location = Location {
            function: self.function(&frame),
            mapping,
            address: frame.native.and_then(|native| native.offset).map_or(0, i64::cast_unsigned),
            line: frame.line.filter(|&line| line != -1),
            column: frame.column.map_or(0, |column| u64::from(column) + 1),
        };
        self.frame_column[id.index()] =
            number(&mut self.locations, &mut self.location_index, location, location);
        self.losses.add("opcodes", u64::from(frame.opcode.is_some()));
        let has_end = frame.end_line.is_some() || frame.end_column.is_some();
        self.losses.add("ends of expressions", u64::from(has_end));
    }

    fn function(&mut self, frame: &Frame) -> u64 {
        let key = (frame.function, frame.file);
        if let Some(&id) = self.function_index.get(&key) {
            return id;
        }
        let file = frame.file.map(|file| self.string(file));
        let function = Function { name: self.string(frame.function), file };
        number(&mut self.functions, &mut self.function_index, key, function)
    }

    fn mapping(&mut self, module: StringId) -> u64 {
        if let Some(&id) = self.mapping_index.get(&module) {
            return id;
        }
        let file = self.string(module);
        number(&mut self.mappings, &mut self.mapping_index, module, file)
    }

    /// Writes all definitions, and returns their losses.
    pub(super) fn write<W: Write>(&mut self, output: &mut Output<W>) -> io::Result<Losses> {
        self.write_strings(output)?;
        self.write_mappings(output)?;
        self.write_functions(output)?;
        self.write_locations(output)?;
        Ok(std::mem::take(&mut self.losses))
    }

    fn write_mappings<W: Write>(&self, output: &mut Output<W>) -> io::Result<()> {
        let mut message = Message::default();
        for (id, &file) in (1..).zip(&self.mappings) {
            message.clear().number(mapping::ID, id);
            if file == 0 {
                // `go tool pprof` joins a mapping without a name to its neighbour if their ranges meet; all others are
                // at 0, so this one does not.
                message.number(mapping::MEMORY_START, 1).number(mapping::MEMORY_LIMIT, 1);
            }
            message.signed(mapping::FILENAME, file).number(mapping::HAS_FUNCTIONS, 1);
            output.message(profile::MAPPING, &message)?;
        }
        Ok(())
    }

    fn write_functions<W: Write>(&self, output: &mut Output<W>) -> io::Result<()> {
        let mut message = Message::default();
        for (id, row) in (1..).zip(&self.functions) {
            message.clear().number(function::ID, id);
            // No system_name: if it equals the name, `go tool pprof` takes both for mangled C++ and turns `<main>` into
            // `<unknown>`.
            message.signed(function::NAME, row.name);
            if let Some(file) = row.file {
                message.explicit(function::FILENAME, file.cast_unsigned());
            }
            output.message(profile::FUNCTION, &message)?;
        }
        Ok(())
    }

    fn write_locations<W: Write>(&self, output: &mut Output<W>) -> io::Result<()> {
        let (mut message, mut line_message) = (Message::default(), Message::default());
        for (id, row) in (1..).zip(&self.locations) {
            line_message.clear().number(line::FUNCTION_ID, row.function);
            if let Some(line) = row.line {
                line_message.explicit(line::LINE, line.cast_unsigned());
            }
            line_message.number(line::COLUMN, row.column);
            message.clear().number(location::ID, id).number(location::MAPPING_ID, row.mapping);
            message.number(location::ADDRESS, row.address).bytes(location::LINE, line_message.as_bytes());
            output.message(profile::LOCATION, &message)?;
        }
        Ok(())
    }

    fn write_strings<W: Write>(&mut self, output: &mut Output<W>) -> io::Result<()> {
        output.bytes(profile::STRING_TABLE, b"")?;
        for text in &self.strings {
            let bytes = match text {
                Text::Interned(id) => self.tables.string(*id),
                Text::Fixed(text) => text.as_bytes(),
            };
            // A `string` of protobuf is UTF-8, and most readers reject a whole document with an invalid one.
            let text = String::from_utf8_lossy(bytes);
            self.losses.add("bytes outside UTF-8 (in names)", u64::from(matches!(text, Cow::Owned(_))));
            output.bytes(profile::STRING_TABLE, text.as_bytes())?;
        }
        Ok(())
    }
}

/// The 1-based number of `key`, whose row is added if it is new.
fn number<K: Eq + std::hash::Hash, R>(rows: &mut Vec<R>, index: &mut HashMap<K, u64>, key: K, row: R) -> u64 {
    *index.entry(key).or_insert_with(|| {
        rows.push(row);
        rows.len() as u64
    })
}
