//! The types of a chunk's values, as its metadata describe them.

use std::borrow::Cow;
use std::rc::Rc;

use hashbrown::HashMap;

use super::NAME;
use super::layout::DEEPEST_VALUE;
use super::values::{StoredText, ValueReader};
use crate::{Error, Limits, Position};

/// The strings or elements between checks of the memory held.
const CHECKED_PARTS: usize = 4096;

/// The form of values of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueForm {
    /// `boolean` and `byte`.
    Byte,
    /// A compressed number.
    Number,
    /// This many bytes.
    Bytes(u64),
    Text,
    /// The values of its fields.
    Structure,
}

/// A type.
#[derive(Clone, Debug)]
pub(super) struct JfrType<'a> {
    pub(super) name: Cow<'a, [u8]>,
    pub(super) form: ValueForm,
    pub(super) fields: Vec<TypeField<'a>>,
    nesting: TypeNesting,
}

/// How many structures are inside of each other in a value of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TypeNesting {
    /// Not looked at yet.
    Unknown,
    /// Values cannot be read: a structure is empty or inside of itself, or there are too many.
    Refused,
    Levels(u32),
}

/// A field of a structure.
#[derive(Clone, Debug)]
pub(super) struct TypeField<'a> {
    pub(super) name: Cow<'a, [u8]>,
    /// The index of its type.
    pub(super) value_type: usize,
    /// Whether it is the key of a constant.
    pub(super) is_constant: bool,
    pub(super) is_list: bool,
}

/// The types of a chunk.
#[derive(Clone, Debug, Default)]
pub(super) struct TypeTable<'a> {
    pub(super) types: Vec<JfrType<'a>>,
    by_id: HashMap<u64, usize>,
}

/// The sort of an element of the metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ElementKind {
    Class,
    Field,
    Other,
}

/// The types of the chunk that was read last. Most chunks of a recording describe the same types.
#[derive(Debug, Default)]
pub(super) struct KnownTypes<'a> {
    description: &'a [u8],
    types: Option<Rc<TypeTable<'a>>>,
}

impl<'a> KnownTypes<'a> {
    /// The types that the event with the metadata describes, which is behind its type.
    ///
    /// # Errors
    /// If it is damaged, or takes more memory than allowed.
    pub(super) fn read(
        &mut self,
        mut event: ValueReader<'a>,
        limits: &Limits,
    ) -> Result<Rc<TypeTable<'a>>, Error> {
        // Time, duration, number.
        for _ in 0..3 {
            event.number()?;
        }
        let description = event.cursor.rest();
        if let Some(types) = self.types.as_ref().filter(|_| self.description == description) {
            return Ok(Rc::clone(types));
        }
        let types = Rc::new(TypeTable::read(event, limits)?);
        *self = Self { description, types: Some(Rc::clone(&types)) };
        Ok(types)
    }
}

impl<'a> TypeTable<'a> {
    /// Reads a description of types.
    fn read(mut event: ValueReader<'a>, limits: &Limits) -> Result<Self, Error> {
        let mut strings = Vec::new();
        for number in 0..event.count()? {
            strings.push(match event.text()? {
                StoredText::Here(text) => text,
                _ => Cow::Borrowed(&b""[..]),
            });
            if number.is_multiple_of(CHECKED_PARTS) {
                check(limits, strings.capacity() * size_of::<Cow<'_, [u8]>>(), &event)?;
            }
        }
        let mut table = Self::default();
        table.elements(&mut event, &strings, limits)?;
        table.connect(event.cursor.offset())?;
        Ok(table)
    }

    /// The index of the type with an id.
    pub(super) fn index(&self, id: u64) -> Option<usize> {
        self.by_id.get(&id).copied()
    }

    /// The ids of all types, and their indexes.
    pub(super) fn ids(&self) -> impl Iterator<Item = (u64, usize)> + '_ {
        self.by_id.iter().map(|(&id, &index)| (id, index))
    }

    /// The index of the type with a name.
    pub(super) fn named(&self, name: &[u8]) -> Option<usize> {
        self.types.iter().position(|known| *known.name == *name)
    }

    pub(super) fn held_bytes(&self) -> usize {
        let fields = self.types.iter().map(|known| known.fields.capacity() * size_of::<TypeField<'_>>());
        self.types.capacity() * size_of::<JfrType<'_>>()
            + fields.sum::<usize>()
            + self.by_id.allocation_size()
    }

    /// Reads the tree of elements. Fields refer to types by their ids until they are connected.
    fn elements(
        &mut self,
        event: &mut ValueReader<'a>,
        strings: &[Cow<'a, [u8]>],
        limits: &Limits,
    ) -> Result<(), Error> {
        let mut elements = 0_usize;
        // For each open element what it is, and how many children are left.
        let mut open = vec![(ElementKind::Other, 1)];
        while let Some((parent, left)) = open.last_mut() {
            if *left == 0 {
                open.pop();
                continue;
            }
            *left -= 1;
            let parent = *parent;
            let kind = match string(strings, event.number()?) {
                b"class" => ElementKind::Class,
                b"field" if parent == ElementKind::Class => ElementKind::Field,
                _ => ElementKind::Other,
            };
            let mut attributes = ElementAttributes::default();
            for _ in 0..event.count()? {
                let (key, value) = (event.number()?, event.number()?);
                attributes.take(string(strings, key), value, strings);
            }
            match kind {
                ElementKind::Class => self.add(&attributes),
                ElementKind::Field => self.add_field(&attributes),
                ElementKind::Other => {}
            }
            open.push((kind, event.count()?));
            elements += 1;
            if elements.is_multiple_of(CHECKED_PARTS) {
                let held = size_of_val(strings) + size_of_val(&*open) + self.held_bytes();
                check(limits, held, event)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, attributes: &ElementAttributes<'a>) {
        let form = match &*attributes.name {
            b"boolean" | b"byte" => ValueForm::Byte,
            b"char" | b"short" | b"int" | b"long" => ValueForm::Number,
            b"float" => ValueForm::Bytes(4),
            b"double" => ValueForm::Bytes(8),
            b"java.lang.String" => ValueForm::Text,
            _ => ValueForm::Structure,
        };
        let name = attributes.name.clone();
        self.by_id.insert(attributes.id, self.types.len());
        self.types.push(JfrType { name, form, fields: Vec::new(), nesting: TypeNesting::Unknown });
    }

    fn add_field(&mut self, attributes: &ElementAttributes<'a>) {
        let field = TypeField {
            name: attributes.name.clone(),
            value_type: usize::try_from(attributes.class).unwrap_or(usize::MAX),
            is_constant: attributes.is_constant,
            is_list: attributes.is_list,
        };
        if let Some(class) = self.types.last_mut() {
            class.fields.push(field);
        }
    }

    /// Replaces ids by indexes.
    fn connect(&mut self, end: u64) -> Result<(), Error> {
        let Self { types, by_id } = self;
        for field in types.iter_mut().flat_map(|class| &mut class.fields) {
            let id = field.value_type as u64;
            field.value_type = *by_id.get(&id).ok_or_else(|| {
                let name = String::from_utf8_lossy(&field.name);
                let message = format!("unknown type {id} of the field {name}");
                Error::malformed(NAME, Position::Byte(end), message)
            })?;
        }
        for index in 0..self.types.len() {
            self.nest(index, 0);
        }
        Ok(())
    }

    /// The levels of a type that is inside of `depth` others; `None` if its values cannot be read. Each value takes at least a byte.
    fn nest(&mut self, index: usize, depth: u32) -> Option<u32> {
        let class = &mut self.types[index];
        match class.nesting {
            TypeNesting::Levels(levels) => return Some(levels),
            TypeNesting::Refused => return None,
            TypeNesting::Unknown => {}
        }
        // While it is open: nothing is inside of itself.
        class.nesting = TypeNesting::Refused;
        let mut levels = 0;
        if class.form == ValueForm::Structure {
            if class.fields.is_empty() || depth == DEEPEST_VALUE {
                return None;
            }
            let inner = class.fields.iter().filter(|field| !field.is_constant);
            let inner: Vec<usize> = inner.map(|field| field.value_type).collect();
            for inner in inner {
                levels = levels.max(self.nest(inner, depth + 1)?);
            }
            levels += 1;
        }
        if levels > DEEPEST_VALUE {
            return None;
        }
        self.types[index].nesting = TypeNesting::Levels(levels);
        Some(levels)
    }

    /// Skips a value of a type.
    ///
    /// # Errors
    /// If it is cut off, or is of a type that cannot be read.
    pub(super) fn skip(&self, index: usize, values: &mut ValueReader<'a>) -> Result<(), Error> {
        let class = &self.types[index];
        match class.form {
            ValueForm::Byte => values.byte().map(drop),
            ValueForm::Number => values.number().map(drop),
            ValueForm::Bytes(bytes) => values.skip(bytes).map(drop),
            ValueForm::Text => values.skip_text(),
            ValueForm::Structure if matches!(class.nesting, TypeNesting::Levels(_)) => {
                class.fields.iter().try_for_each(|field| self.skip_field(field, values))
            }
            ValueForm::Structure => {
                let name = String::from_utf8_lossy(&class.name);
                let message = format!("invalid type {name}: empty, inside of itself, or too deep");
                Err(Error::malformed(NAME, Position::Byte(values.cursor.offset()), message))
            }
        }
    }

    /// Skips a field.
    ///
    /// # Errors
    /// Those of [`Self::skip`].
    #[inline]
    pub(super) fn skip_field(
        &self,
        field: &TypeField<'a>,
        values: &mut ValueReader<'a>,
    ) -> Result<(), Error> {
        let count = if field.is_list { values.count()? } else { 1 };
        for _ in 0..count {
            if field.is_constant {
                values.number()?;
            } else {
                self.skip(field.value_type, values)?;
            }
        }
        Ok(())
    }
}

/// The attributes of an element that matter.
#[derive(Debug, Default)]
struct ElementAttributes<'a> {
    name: Cow<'a, [u8]>,
    id: u64,
    class: u64,
    is_constant: bool,
    is_list: bool,
}

impl<'a> ElementAttributes<'a> {
    fn take(&mut self, key: &[u8], value: u64, strings: &[Cow<'a, [u8]>]) {
        let text = string(strings, value);
        match key {
            b"name" => self.name = strings.get(index(value)).cloned().unwrap_or_default(),
            b"id" => self.id = decimal(text),
            b"class" => self.class = decimal(text),
            b"constantPool" => self.is_constant = text == b"true",
            b"dimension" => self.is_list = decimal(text) > 0,
            _ => {}
        }
    }
}

fn check(limits: &Limits, held: usize, event: &ValueReader<'_>) -> Result<(), Error> {
    let position = Position::Byte(event.cursor.offset());
    limits.check(held).map_err(|over| Error::memory(NAME, position, over))
}

fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn string<'s>(strings: &'s [Cow<'_, [u8]>], number: u64) -> &'s [u8] {
    strings.get(index(number)).map_or(b"", |text| text)
}

fn decimal(text: &[u8]) -> u64 {
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}
