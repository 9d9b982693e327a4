//! The messages, decoded from bytes.
//!
//! Memory is proportional to the document: indexes and cursors are kept, nothing is copied, and no allocation is sized
//! by a number in the file. The importer resolves references later.

use super::NAME;
use super::layout::{
    any, attribute, data, dictionary, function, key_value, line, link, location, mapping, profile, resource,
    sample, scope, stack, value_type,
};
use crate::document::Damage;
use crate::protobuf_fields::{Field, Fields, read_document};
use crate::{Error, ErrorKind, Position};

/// A measured quantity with its unit, as string indexes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ValueType {
    pub(super) kind: u64,
    pub(super) unit: u64,
}

/// A loaded file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mapping {
    pub(super) start: u64,
    pub(super) limit: u64,
    pub(super) file: u64,
}

/// An address with its lines and attributes, which are decoded on demand.
#[derive(Clone, Copy, Debug)]
pub(super) struct Location<'a> {
    pub(super) mapping: u64,
    pub(super) address: u64,
    pub(super) offset: u64,
    fields: Fields<'a>,
}

/// A location in a function. `None` is an absent field.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Line {
    pub(super) function: u64,
    pub(super) line: Option<i64>,
    pub(super) column: i64,
}

/// A function, with string indexes. `None` is an absent field.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Function {
    pub(super) name: u64,
    pub(super) system_name: u64,
    pub(super) file: Option<u64>,
}

/// The span that was active.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Link<'a> {
    pub(super) trace: &'a [u8],
    pub(super) span: &'a [u8],
}

/// The key of an attribute.
#[derive(Clone, Copy, Debug)]
pub(super) enum Key<'a> {
    Text(&'a [u8]),
    Index(u64),
}

/// An attribute: its unit is a string index.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attribute<'a> {
    pub(super) key: Key<'a>,
    pub(super) unit: u64,
    pub(super) offset: u64,
    value: Option<Fields<'a>>,
}

/// The value of an attribute.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Any<'a> {
    Text(&'a [u8]),
    Index(u64),
    Number(i64),
    Bool(bool),
    Float(f64),
    /// A map, or an array within an array.
    Nested,
}

/// One profile of the document, without its samples.
#[derive(Clone, Debug)]
pub(super) struct Profile<'a> {
    pub(super) offset: u64,
    /// The index of its resource and scope in the document.
    pub(super) resource: usize,
    pub(super) scope: usize,
    pub(super) sample_type: ValueType,
    pub(super) time_unix_ns: u64,
    pub(super) duration_ns: u64,
    pub(super) period_type: ValueType,
    pub(super) period: i64,
    pub(super) attributes: Vec<u64>,
    fields: Fields<'a>,
}

/// One sample, in reused buffers.
#[derive(Clone, Debug, Default)]
pub(super) struct Sample {
    pub(super) offset: u64,
    pub(super) stack: u64,
    pub(super) link: u64,
    pub(super) attributes: Vec<u64>,
    pub(super) values: Vec<i64>,
    pub(super) times_unix_ns: Vec<u64>,
}

/// The name and version of the writer of profiles.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Scope<'a> {
    pub(super) name: &'a [u8],
    pub(super) version: &'a [u8],
}

/// A whole document without its samples, which are read one by one.
#[derive(Debug, Default)]
pub(super) struct Document<'a> {
    pub(super) length: u64,
    pub(super) strings: Vec<&'a [u8]>,
    pub(super) mappings: Vec<Mapping>,
    pub(super) locations: Vec<Location<'a>>,
    pub(super) functions: Vec<Function>,
    pub(super) links: Vec<Link<'a>>,
    pub(super) attributes: Vec<Attribute<'a>>,
    stacks: Vec<Fields<'a>>,
    /// The attributes of each resource.
    pub(super) resources: Vec<Vec<Attribute<'a>>>,
    pub(super) scopes: Vec<Scope<'a>>,
    pub(super) profiles: Vec<Profile<'a>>,
}

impl<'a> Document<'a> {
    /// Reads all messages except samples. The document begins at `base` in its input.
    ///
    /// # Errors
    /// Damage that is not skipped.
    pub(super) fn read(base: u64, bytes: &'a [u8], damage: &mut Damage) -> Result<Self, Error> {
        let mut document = Self { length: bytes.len() as u64, ..Self::default() };
        read_document(NAME, base, bytes, damage, |field| document.take(field))?;
        Ok(document)
    }

    fn take(&mut self, field: &Field<'a>) -> Result<(), Error> {
        match field.number {
            data::RESOURCE_PROFILES => self.take_resource(field.message()?),
            data::DICTIONARY => self.take_dictionary(field.message()?),
            _ => Ok(()),
        }
    }

    fn take_resource(&mut self, mut fields: Fields<'a>) -> Result<(), Error> {
        let number = self.resources.len();
        self.resources.push(Vec::new());
        while let Some(field) = fields.next_field()? {
            match field.number {
                resource::RESOURCE => {
                    let mut inner = field.message()?;
                    while let Some(field) = inner.next_field()? {
                        if field.number == resource::ATTRIBUTES {
                            self.resources[number].push(Attribute::read_key_value(&field)?);
                        }
                    }
                }
                resource::SCOPE_PROFILES => self.take_scope(number, field.message()?)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn take_scope(&mut self, resource: usize, mut fields: Fields<'a>) -> Result<(), Error> {
        let number = self.scopes.len();
        self.scopes.push(Scope::default());
        while let Some(field) = fields.next_field()? {
            match field.number {
                scope::SCOPE => self.scopes[number] = Scope::read(field.message()?)?,
                scope::PROFILES => {
                    let (offset, message) = (field.offset, field.message()?);
                    let profile = Profile::read(offset, resource, number, message);
                    self.profiles.push(profile.map_err(|error| of_release(message, error))?);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn take_dictionary(&mut self, mut fields: Fields<'a>) -> Result<(), Error> {
        while let Some(field) = fields.next_field()? {
            match field.number {
                dictionary::MAPPING => self.mappings.push(Mapping::read(field.message()?)?),
                dictionary::LOCATION => self.locations.push(Location::read(&field)?),
                dictionary::FUNCTION => self.functions.push(Function::read(field.message()?)?),
                dictionary::LINK => self.links.push(Link::read(field.message()?)?),
                dictionary::STRING => self.strings.push(field.cursor("a string")?.rest()),
                dictionary::ATTRIBUTE => self.attributes.push(Attribute::read(&field)?),
                dictionary::STACK => self.stacks.push(checked_stack(field.message()?)?),
                _ => {}
            }
        }
        Ok(())
    }

    /// A string.
    ///
    /// # Errors
    /// If there is none at `index`; `offset` is the position of the index.
    pub(super) fn string(&self, index: u64, offset: u64) -> Result<&'a [u8], Error> {
        // Index 0 is the empty string by definition, even in a document without strings.
        if index == 0 { Ok(b"") } else { at(&self.strings, index, "a string", offset).copied() }
    }

    /// Passes the locations of a stack to `take`, leaf first.
    ///
    /// # Errors
    /// If there is no such stack.
    pub(super) fn stack(&self, index: u64, offset: u64, mut take: impl FnMut(u64)) -> Result<(), Error> {
        if index == 0 && self.stacks.is_empty() {
            return Ok(());
        }
        let mut fields = *at(&self.stacks, index, "a stack", offset)?;
        while let Some(field) = fields.next_field()? {
            if field.number == stack::LOCATION_INDICES {
                field.numbers(&mut take)?;
            }
        }
        Ok(())
    }
}

/// The entry of a table at `index`.
///
/// # Errors
/// If there is none.
pub(super) fn at<'t, T>(table: &'t [T], index: u64, what: &str, offset: u64) -> Result<&'t T, Error> {
    usize::try_from(index).ok().and_then(|index| table.get(index)).ok_or_else(|| {
        let count = table.len();
        malformed(offset, format!("expected {what} index below {count}, found {}", index.cast_signed()))
    })
}

/// A stack whose fields are all readable.
fn checked_stack(fields: Fields<'_>) -> Result<Fields<'_>, Error> {
    let mut rest = fields;
    while let Some(field) = rest.next_field()? {
        if field.number == stack::LOCATION_INDICES {
            field.numbers(|_| {})?;
        }
    }
    Ok(fields)
}

impl ValueType {
    fn read(mut fields: Fields<'_>) -> Result<Self, Error> {
        let mut row = Self::default();
        while let Some(field) = fields.next_field()? {
            match field.number {
                value_type::TYPE => row.kind = field.number()?,
                value_type::UNIT => row.unit = field.number()?,
                _ => {}
            }
        }
        Ok(row)
    }
}

impl Mapping {
    fn read(mut fields: Fields<'_>) -> Result<Self, Error> {
        let mut row = Self::default();
        while let Some(field) = fields.next_field()? {
            match field.number {
                mapping::MEMORY_START => row.start = field.number()?,
                mapping::MEMORY_LIMIT => row.limit = field.number()?,
                mapping::FILENAME => row.file = field.number()?,
                _ => {}
            }
        }
        Ok(row)
    }
}

impl Function {
    fn read(mut fields: Fields<'_>) -> Result<Self, Error> {
        let mut row = Self::default();
        while let Some(field) = fields.next_field()? {
            match field.number {
                function::NAME => row.name = field.number()?,
                function::SYSTEM_NAME => row.system_name = field.number()?,
                function::FILENAME => row.file = Some(field.number()?),
                _ => {}
            }
        }
        Ok(row)
    }
}

impl<'a> Link<'a> {
    fn read(mut fields: Fields<'a>) -> Result<Self, Error> {
        let mut row = Self::default();
        while let Some(field) = fields.next_field()? {
            match field.number {
                link::TRACE_ID => row.trace = field.cursor("bytes")?.rest(),
                link::SPAN_ID => row.span = field.cursor("bytes")?.rest(),
                _ => {}
            }
        }
        Ok(row)
    }
}

impl<'a> Scope<'a> {
    fn read(mut fields: Fields<'a>) -> Result<Self, Error> {
        let mut row = Self::default();
        while let Some(field) = fields.next_field()? {
            match field.number {
                scope::NAME => row.name = field.cursor("a string")?.rest(),
                scope::VERSION => row.version = field.cursor("a string")?.rest(),
                _ => {}
            }
        }
        Ok(row)
    }
}

impl<'a> Location<'a> {
    fn read(field: &Field<'a>) -> Result<Self, Error> {
        let mut fields = field.message()?;
        let mut row = Self { mapping: 0, address: 0, offset: field.offset, fields };
        while let Some(field) = fields.next_field()? {
            match field.number {
                location::MAPPING_INDEX => row.mapping = field.number()?,
                location::ADDRESS => row.address = field.number()?,
                location::LINES => drop(Line::read(field.message()?)?),
                location::ATTRIBUTE_INDICES => field.numbers(|_| {})?,
                _ => {}
            }
        }
        Ok(row)
    }

    /// The lines, innermost first. They have been read once before: a malformed one was an error of the document.
    pub(super) fn lines(&self) -> impl Iterator<Item = Line> + use<'a> {
        self.fields_numbered(location::LINES).filter_map(|field| field.message().and_then(Line::read).ok())
    }

    /// Calls `take` with the index of each attribute.
    pub(super) fn each_attribute(&self, mut take: impl FnMut(u64)) {
        for field in self.fields_numbered(location::ATTRIBUTE_INDICES) {
            let _ = field.numbers(&mut take);
        }
    }

    fn fields_numbered(&self, number: u32) -> impl Iterator<Item = Field<'a>> + use<'a> {
        let mut fields = self.fields;
        std::iter::from_fn(move || fields.next_field().ok().flatten())
            .filter(move |field| field.number == number)
    }
}

impl Line {
    fn read(mut fields: Fields<'_>) -> Result<Self, Error> {
        let mut row = Self::default();
        while let Some(field) = fields.next_field()? {
            match field.number {
                line::FUNCTION_INDEX => row.function = field.number()?,
                line::LINE => row.line = Some(field.signed()?),
                line::COLUMN => row.column = field.signed()?,
                _ => {}
            }
        }
        Ok(row)
    }
}

impl<'a> Attribute<'a> {
    fn read(field: &Field<'a>) -> Result<Self, Error> {
        let mut row = Self { key: Key::Index(0), unit: 0, offset: field.offset, value: None };
        let mut fields = field.message()?;
        while let Some(field) = fields.next_field()? {
            match field.number {
                attribute::KEY => row.key = Key::Index(field.number()?),
                attribute::VALUE => row.value = Some(field.message()?),
                attribute::UNIT => row.unit = field.number()?,
                _ => {}
            }
        }
        row.each_value(|_| {})?;
        Ok(row)
    }

    /// Reads a `KeyValue`.
    fn read_key_value(field: &Field<'a>) -> Result<Self, Error> {
        let mut row = Self { key: Key::Index(0), unit: 0, offset: field.offset, value: None };
        let mut fields = field.message()?;
        while let Some(field) = fields.next_field()? {
            match field.number {
                key_value::KEY => row.key = Key::Text(field.cursor("a string")?.rest()),
                key_value::KEY_INDEX => row.key = Key::Index(field.number()?),
                key_value::VALUE => row.value = Some(field.message()?),
                _ => {}
            }
        }
        row.each_value(|_| {})?;
        Ok(row)
    }

    /// Calls `take` with the value, or with each one of an array.
    ///
    /// # Errors
    /// If the value is malformed.
    pub(super) fn each_value(&self, mut take: impl FnMut(Any<'a>)) -> Result<(), Error> {
        let Some(mut fields) = self.value else { return Ok(()) };
        while let Some(field) = fields.next_field()? {
            if field.number != any::ARRAY {
                take_scalar(&field, &mut take)?;
                continue;
            }
            let mut array = field.message()?;
            while let Some(field) = array.next_field()? {
                if field.number == any::VALUES {
                    let mut value = field.message()?;
                    while let Some(field) = value.next_field()? {
                        take_scalar(&field, &mut take)?;
                    }
                }
            }
        }
        Ok(())
    }
}

fn take_scalar<'a>(field: &Field<'a>, take: &mut impl FnMut(Any<'a>)) -> Result<(), Error> {
    take(match field.number {
        any::STRING | any::BYTES => Any::Text(field.cursor("a string")?.rest()),
        any::BOOL => Any::Bool(field.number()? != 0),
        any::INT => Any::Number(field.signed()?),
        any::DOUBLE => Any::Float(f64::from_bits(field.fixed64()?)),
        any::STRING_INDEX => Any::Index(field.number()?),
        any::ARRAY | any::MAP => Any::Nested,
        _ => return Ok(()),
    });
    Ok(())
}

impl<'a> Profile<'a> {
    fn read(offset: u64, resource: usize, scope: usize, mut fields: Fields<'a>) -> Result<Self, Error> {
        let mut row = Self {
            offset,
            resource,
            scope,
            sample_type: ValueType::default(),
            time_unix_ns: 0,
            duration_ns: 0,
            period_type: ValueType::default(),
            period: 0,
            attributes: Vec::new(),
            fields,
        };
        while let Some(field) = fields.next_field()? {
            match field.number {
                profile::SAMPLE_TYPE => row.sample_type = ValueType::read(field.message()?)?,
                profile::SAMPLES => drop(field.message()?),
                profile::TIME_UNIX_NANO => row.time_unix_ns = field.fixed64()?,
                profile::DURATION_NANO => row.duration_ns = field.number()?,
                profile::PERIOD_TYPE => row.period_type = ValueType::read(field.message()?)?,
                profile::PERIOD => row.period = field.signed()?,
                profile::ATTRIBUTE_INDICES => field.numbers(|index| row.attributes.push(index))?,
                _ => {}
            }
        }
        Ok(row)
    }

    /// The samples, in the order of the file.
    pub(super) const fn samples(&self) -> Samples<'a> {
        Samples { fields: self.fields }
    }
}

/// Reads the samples of a profile.
#[derive(Clone, Copy, Debug)]
pub(super) struct Samples<'a> {
    fields: Fields<'a>,
}

impl Samples<'_> {
    /// Reads the next sample into `into`; false at the end. After an error the following sample can be read.
    ///
    /// # Errors
    /// If the sample is malformed.
    pub(super) fn next_sample(&mut self, into: &mut Sample) -> Result<bool, Error> {
        while let Some(field) = self.fields.next_field()? {
            if field.number == profile::SAMPLES {
                into.read(field.offset, field.message()?)?;
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Sample {
    fn read(&mut self, offset: u64, mut fields: Fields<'_>) -> Result<(), Error> {
        (self.offset, self.stack, self.link) = (offset, 0, 0);
        self.attributes.clear();
        self.values.clear();
        self.times_unix_ns.clear();
        while let Some(field) = fields.next_field()? {
            match field.number {
                sample::STACK_INDEX => self.stack = field.number()?,
                sample::ATTRIBUTE_INDICES => field.numbers(|index| self.attributes.push(index))?,
                sample::LINK_INDEX => self.link = field.number()?,
                sample::VALUES => field.numbers(|value| self.values.push(value.cast_signed()))?,
                sample::TIMESTAMPS => field.fixed64s(|time| self.times_unix_ns.push(time))?,
                _ => {}
            }
        }
        Ok(())
    }
}

/// The message about profiles of older releases, as far as they can be detected.
pub(super) const OLDER: &str =
    "expected profiles of OpenTelemetry as of opentelemetry-proto 1.10, found those of an older release";

/// Replaces the error of a profile by its cause, if it is of an older release, in which fields had other numbers.
///
/// Source: open-telemetry/opentelemetry-proto, `profiles/v1experimental/profiles.proto` of releases up to 1.4, and
/// `profiles/v1development/profiles.proto` of those before 1.8, in which profiles had lists of locations, and times
/// that were not of eight bytes.
#[cold]
fn of_release(mut fields: Fields<'_>, error: Error) -> Error {
    while let Ok(Some(field)) = fields.next_field() {
        let release = match field.number {
            2 if field.fixed64().is_ok() => "v1experimental",
            20..=30 => "v1experimental",
            3 if field.fixed64().is_err() => "v1development",
            _ => continue,
        };
        let message = format!("{OLDER}, {release}");
        return Error::new(ErrorKind::Unsupported, NAME, Position::Byte(field.offset), message);
    }
    error
}

#[cold]
pub(super) fn malformed(offset: u64, message: impl Into<String>) -> Error {
    Error::malformed(NAME, Position::Byte(offset), message)
}
