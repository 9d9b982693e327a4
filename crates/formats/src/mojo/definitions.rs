//! Strings and frames, which each process numbers for itself.

use borehole_model::{Frame, FrameId, NativeFrame, StringId, TableFull, Tables};
use hashbrown::HashMap;

use super::layout::UNKNOWN_STRING;
use super::read::FramePlace;

/// A reference to something that is not defined.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undefined {
    /// `string` or `frame`.
    pub(super) what: &'static str,
    pub(super) key: i64,
}

/// The strings and frames that are defined, by their process and key.
#[derive(Debug, Default)]
pub(super) struct Definitions {
    strings: HashMap<(i64, i64), StringId>,
    frames: HashMap<(i64, i64), FrameId>,
}

impl Definitions {
    pub(super) fn define_string(
        &mut self,
        process: i64,
        key: i64,
        text: &[u8],
        tables: &mut Tables,
    ) -> Result<(), TableFull> {
        self.strings.insert((process, key), tables.intern_string(text)?);
        Ok(())
    }

    /// The string with a key.
    pub(super) fn string(&self, process: i64, key: i64) -> Option<StringId> {
        self.strings.get(&(process, key)).copied()
    }

    /// Defines a frame. One whose names are undefined is not defined.
    ///
    /// # Errors
    /// If a table is full.
    pub(super) fn define_frame(
        &mut self,
        process: i64,
        key: i64,
        place: &FramePlace,
        tables: &mut Tables,
    ) -> Result<Result<(), Undefined>, TableFull> {
        let mut named = |key| match self.string(process, key) {
            None if key == UNKNOWN_STRING => tables.intern_string(b"<unknown>").map(Some),
            known => Ok(known),
        };
        let (file, function) = (named(place.file)?, named(place.function)?);
        let (Some(file), Some(function)) = (file, function) else {
            let key = if file.is_none() { place.file } else { place.function };
            return Ok(Err(Undefined { what: "string", key }));
        };
        let line = |line: i64| (line > 0).then_some(line);
        let frame = tables.intern_frame(&Frame {
            file: Some(file),
            line: line(place.line),
            end_line: line(place.end_line),
            column: column(place.column),
            end_column: column(place.end_column),
            ..Frame::named(function)
        })?;
        self.frames.insert((process, key), frame);
        Ok(Ok(()))
    }

    /// The frame with a key.
    #[inline]
    pub(super) fn frame(&self, process: i64, key: i64) -> Option<FrameId> {
        self.frames.get(&(process, key)).copied()
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.strings.allocation_size() + self.frames.allocation_size()
    }
}

/// A column, 0-based, of Austin's, which are 1-based and 0 if unknown.
fn column(column: i64) -> Option<u32> {
    u32::try_from(column.checked_sub(1)?).ok()
}

/// A frame without a file, which Austin puts into stacks itself.
///
/// # Errors
/// If a table is full.
pub(super) fn frame_without_file(
    name: &[u8],
    module: Option<&[u8]>,
    tables: &mut Tables,
) -> Result<FrameId, TableFull> {
    let function = tables.intern_string(name)?;
    let module = module.map(|module| tables.intern_string(module)).transpose()?;
    let native = module.map(|module| NativeFrame { module, offset: None, file_offset: None });
    tables.intern_frame(&Frame { native, ..Frame::named(function) })
}
