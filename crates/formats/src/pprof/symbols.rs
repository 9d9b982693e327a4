//! The definitions of a document, written before the samples, so that a reader can resolve each sample immediately.

use std::io::{self, Write};

use borehole_model::{FrameId, NativeModule, StackId, StatedModules, StringId, Tables};

use super::layout::{KEYS, mapping as own, profile};
use super::write::{FieldStream, Message};
use crate::Losses;
use crate::symbols::layout::{ID, mapping};
use crate::symbols::tables::{EntryTable, SymbolTables};

#[derive(Debug)]
pub(super) struct DocumentSymbols<'t> {
    entries: SymbolTables<'t>,
    modules: StatedModules,
    /// By stack: whether its frames have been numbered.
    seen: Vec<bool>,
}

impl<'t> DocumentSymbols<'t> {
    pub(super) fn new(tables: &'t Tables, modules: StatedModules) -> Self {
        Self { entries: SymbolTables::new(tables, KEYS), modules, seen: vec![false; tables.stack_count()] }
    }

    pub(super) const fn tables(&self) -> &'t Tables {
        self.entries.tables()
    }

    /// The index of a string of the tables.
    pub(super) fn string(&mut self, id: StringId) -> u64 {
        self.entries.string(id)
    }

    /// The index of a string that may be outside the tables.
    pub(super) fn text(&mut self, text: &str) -> u64 {
        self.entries.text(text)
    }

    /// Numbers all frames of a stack.
    pub(super) fn add_stack(&mut self, stack: Option<StackId>) {
        let (tables, mut next) = (self.tables(), stack);
        while let Some(stack) = next {
            if std::mem::replace(&mut self.seen[stack.index()], true) {
                return;
            }
            self.add_frame(tables.leaf(stack));
            next = tables.parent(stack);
        }
    }

    /// The locations of a stack with numbered frames, leaf first.
    pub(super) fn locations(&self, stack: Option<StackId>) -> impl Iterator<Item = u64> + Clone {
        let frames = self.tables().frames_leaf_first(stack);
        frames.map(|frame| u64::from(self.entries.location(frame)))
    }

    fn add_frame(&mut self, id: FrameId) {
        if self.entries.location(id) != 0 {
            return;
        }
        let mut frame = self.tables().frame(id);
        if let Some((module, address)) = self.modules.address(&frame, self.entries.tables()) {
            let mapping = self.stated_mapping(&module);
            self.entries.add_address(id, mapping, address);
            return;
        }
        frame.line = frame.line.filter(|&line| line != -1);
        let mapping = frame.native.map_or(0, |native| self.mapping(native.module));
        self.entries.add_location(id, &frame, mapping, |_| {});
        self.entries.losses.add("opcodes", u64::from(frame.opcode.is_some()));
        let has_end = frame.end_line.is_some() || frame.end_column.is_some();
        self.entries.losses.add("ends of expressions", u64::from(has_end));
    }

    fn mapping(&mut self, module: StringId) -> u64 {
        let (file, mut message) = (self.string(module), Message::default());
        if file == 0 {
            // `go tool pprof` joins a mapping without a name to its neighbour if their ranges meet; all others are at
            // 0, so this one does not.
            message.number(KEYS.field(mapping::MEMORY_START), 1).number(KEYS.field(mapping::MEMORY_LIMIT), 1);
        }
        message.number(KEYS.field(mapping::FILENAME), file);
        if let Some(NativeModule { build_id, .. }) = self.modules.of(module, self.entries.tables()) {
            message.number(own::BUILD_ID, self.entries.text(build_id));
        }
        message.number(own::HAS_FUNCTIONS, 1);
        u64::from(self.entries.mappings.number(message.as_bytes()))
    }

    /// The mapping of a file with its code at the addresses that are its offsets.
    fn stated_mapping(&mut self, module: &NativeModule) -> u64 {
        let NativeModule { build_id, start, end, path } = module;
        let (file, build_id) = (self.text(path), self.text(build_id));
        let mut message = Message::default();
        message
            .number(KEYS.field(mapping::MEMORY_START), *start)
            .number(KEYS.field(mapping::MEMORY_LIMIT), *end);
        message.number(KEYS.field(mapping::FILE_OFFSET), *start).number(KEYS.field(mapping::FILENAME), file);
        message.number(own::BUILD_ID, build_id);
        u64::from(self.entries.mappings.number(message.as_bytes()))
    }

    /// Writes all definitions, and returns their losses.
    ///
    /// Functions have no `system_name`: if it equals the name, `go tool pprof` takes both for mangled C++ and turns
    /// `<main>` into `<unknown>`.
    pub(super) fn write<W: Write>(&mut self, output: &mut FieldStream<W>) -> io::Result<Losses> {
        self.entries.strings.iter().try_for_each(|text| output.bytes(profile::STRING_TABLE, text))?;
        write_table(output, profile::MAPPING, &self.entries.mappings)?;
        write_table(output, profile::FUNCTION, &self.entries.functions)?;
        write_table(output, profile::LOCATION, &self.entries.locations)?;
        Ok(std::mem::take(&mut self.entries.losses))
    }
}

/// Writes the entries of a table except the empty one, with their numbers as ids.
fn write_table<W: Write>(output: &mut FieldStream<W>, field: u32, table: &EntryTable) -> io::Result<()> {
    let mut message = Message::default();
    for (id, entry) in (0..).zip(table.iter()).skip(1) {
        message.clear().number(KEYS.field(ID), id).fields(entry);
        output.message(field, &message)?;
    }
    Ok(())
}
