//! The constants of a chunk, by their type and key. Only their positions are held.

use std::rc::Rc;

use hashbrown::HashMap;

use super::NAME;
use super::metadata::TypeTable;
use super::values::{StoredText, ValueReader};
use crate::{Error, Limits, Position};

/// The constants between checks of the memory held.
const CHECKED_CONSTANTS: usize = 4096;

/// The index of a type, and a key.
type ConstantKey = (usize, u64);

/// The constants of a chunk.
#[derive(Debug)]
pub(super) struct ConstantPools<'a> {
    file: &'a [u8],
    pub(super) types: Rc<TypeTable<'a>>,
    positions: HashMap<ConstantKey, usize>,
    text_type: Option<usize>,
}

/// A constant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Constant<'a> {
    /// The index of its type.
    value_type: usize,
    values: ValueReader<'a>,
}

impl<'a> ConstantPools<'a> {
    /// No constants of `types` in `file`.
    pub(super) fn new(file: &'a [u8], types: Rc<TypeTable<'a>>) -> Self {
        let text_type = types.named(b"java.lang.String");
        Self { file, types, positions: HashMap::new(), text_type }
    }

    /// Adds the constants of an event, behind its type.
    ///
    /// # Errors
    /// If it is damaged, or takes more memory than allowed. Constants before the damage are known.
    pub(super) fn add(&mut self, mut event: ValueReader<'a>, limits: &Limits) -> Result<(), Error> {
        // Time, duration, distance to the event before, and whether that is a part of it.
        for _ in 0..3 {
            event.number()?;
        }
        event.byte()?;
        for _ in 0..event.count()? {
            let (at, id) = (event.cursor.offset(), event.number()?);
            let Some(value_type) = self.types.index(id) else {
                let message = format!("constants of the unknown type {id}");
                return Err(Error::malformed(NAME, Position::Byte(at), message));
            };
            for _ in 0..event.count()? {
                let key = event.number()?;
                let position =
                    self.file.len().min(usize::try_from(event.cursor.offset()).unwrap_or(usize::MAX));
                self.positions.insert((value_type, key), position);
                self.types.skip(value_type, &mut event)?;
                if self.positions.len().is_multiple_of(CHECKED_CONSTANTS) {
                    let at = Position::Byte(event.cursor.offset());
                    limits.check(self.held_bytes()).map_err(|over| Error::memory(NAME, at, over))?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.types.held_bytes() + self.positions.allocation_size()
    }

    /// The constant with a key.
    pub(super) fn constant(&self, value_type: usize, key: u64) -> Option<Constant<'a>> {
        let position = *self.positions.get(&(value_type, key))?;
        let values = ValueReader::new(self.file.get(position..)?, position);
        Some(Constant { value_type, values })
    }

    /// The text behind a stored one; `None` if it is absent.
    pub(super) fn text(&self, stored: StoredText<'a>) -> Option<std::borrow::Cow<'a, [u8]>> {
        match stored {
            StoredText::Absent => None,
            StoredText::Here(text) => Some(text),
            StoredText::Constant(key) => {
                let mut values = self.constant(self.text_type?, key)?.values;
                match values.text().ok()? {
                    StoredText::Here(text) => Some(text),
                    // Constants do not refer to others.
                    StoredText::Absent | StoredText::Constant(_) => None,
                }
            }
        }
    }

    /// The values of a constant from the field with a name on, and the type of that field.
    pub(super) fn field(&self, constant: Constant<'a>, name: &[u8]) -> Option<(ValueReader<'a>, usize)> {
        let mut values = constant.values;
        for field in &self.types.types[constant.value_type].fields {
            if *field.name == *name {
                return Some((values, field.value_type));
            }
            self.types.skip_field(field, &mut values).ok()?;
        }
        None
    }

    /// The constant that a field refers to.
    pub(super) fn follow(&self, constant: Constant<'a>, name: &[u8]) -> Option<Constant<'a>> {
        let (mut values, value_type) = self.field(constant, name)?;
        self.constant(value_type, values.number().ok()?)
    }

    /// The number in a field.
    pub(super) fn number_in(&self, constant: Constant<'a>, name: &[u8]) -> Option<u64> {
        self.field(constant, name)?.0.number().ok()
    }

    /// The text in a field.
    pub(super) fn text_in(&self, constant: Constant<'a>, name: &[u8]) -> Option<std::borrow::Cow<'a, [u8]>> {
        self.text(self.field(constant, name)?.0.text().ok()?)
    }
}
