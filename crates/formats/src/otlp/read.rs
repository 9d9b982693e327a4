//! The messages, decoded from bytes.
//!
//! Memory is proportional to the document: indexes and cursors are kept, nothing is copied, and no allocation is sized
//! by a number in the file. The importer resolves references later.

use borehole_memory::HeldBytes as _;

use super::NAME;
use super::layout::{
    KEYS, any, attribute, data, dictionary, key, key_value, link, location as own, mapping, profile,
    resource, sample, scope, stack,
};
use crate::documents::protobuf_fields::{MessageFields, WireField, read_document};
use crate::documents::whole::DocumentDamage;
use crate::symbols::layout::location;
use crate::symbols::read::{SourceLine, SymbolFunction, SymbolLocation, SymbolMapping, TypeIndexes};
use crate::symbols::resolve::{MADE_OF_LOCATION_BYTES, StatedFiles, SymbolDocument, missing_entry};
use crate::{CodePlaces, Error, ErrorKind, Limits, Position};

/// An address with its lines and attributes, which are decoded on demand.
#[derive(Clone, Copy, Debug)]
pub(super) struct OtlpLocation<'a> {
    pub(super) symbol: SymbolLocation,
    fields: MessageFields<'a>,
}

/// The span that was active.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SpanLink<'a> {
    pub(super) trace: &'a [u8],
    pub(super) span: &'a [u8],
}

/// The key of an attribute.
#[derive(Clone, Copy, Debug)]
pub(super) enum AttributeKey<'a> {
    Text(&'a [u8]),
    Index(u64),
}

/// An attribute: its unit is a string index.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attribute<'a> {
    pub(super) key: AttributeKey<'a>,
    pub(super) unit: u64,
    pub(super) offset: u64,
    value: Option<MessageFields<'a>>,
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
pub(super) struct OtlpProfile<'a> {
    pub(super) offset: u64,
    /// The index of its resource and scope in the document.
    pub(super) resource: usize,
    pub(super) scope: usize,
    pub(super) sample_type: TypeIndexes,
    pub(super) time_unix_ns: u64,
    pub(super) duration_ns: u64,
    pub(super) period_type: TypeIndexes,
    pub(super) period: i64,
    pub(super) attributes: Vec<u64>,
    fields: MessageFields<'a>,
    limits: Limits,
}

/// One sample, in reused buffers.
#[derive(Clone, Debug, Default)]
pub(super) struct OtlpSample {
    pub(super) offset: u64,
    pub(super) stack: u64,
    pub(super) link: u64,
    pub(super) attributes: Vec<u64>,
    pub(super) values: Vec<i64>,
    pub(super) times_unix_ns: Vec<u64>,
}

/// The name and version of the writer of profiles.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct InstrumentationScope<'a> {
    pub(super) name: &'a [u8],
    pub(super) version: &'a [u8],
}

/// A whole document without its samples, which are read one by one.
#[derive(Debug, Default)]
pub(super) struct OtlpDocument<'a> {
    length: u64,
    limits: Limits,
    strings: Vec<&'a [u8]>,
    mappings: Vec<(SymbolMapping, MessageFields<'a>)>,
    pub(super) locations: Vec<OtlpLocation<'a>>,
    functions: Vec<SymbolFunction>,
    pub(super) links: Vec<SpanLink<'a>>,
    pub(super) attributes: Vec<Attribute<'a>>,
    stacks: Vec<MessageFields<'a>>,
    /// The attributes of each resource.
    pub(super) resources: Vec<Vec<Attribute<'a>>>,
    pub(super) scopes: Vec<InstrumentationScope<'a>>,
    pub(super) profiles: Vec<OtlpProfile<'a>>,
}

impl<'a> OtlpDocument<'a> {
    /// Reads all messages except samples. The document begins at `base` in its input.
    ///
    /// # Errors
    /// Damage that is not skipped.
    pub(super) fn read(base: u64, bytes: &'a [u8], damage: &mut DocumentDamage) -> Result<Self, Error> {
        let mut document = Self { length: bytes.len() as u64, limits: damage.limits, ..Self::default() };
        read_document(NAME, base, bytes, damage, |field| document.take(field))?;
        Ok(document)
    }

    fn take(&mut self, field: &WireField<'a>) -> Result<(), Error> {
        match field.number {
            data::RESOURCE_PROFILES => self.take_resource(field.message()?),
            data::DICTIONARY => self.take_dictionary(field.message()?),
            _ => Ok(()),
        }
    }

    fn take_resource(&mut self, fields: MessageFields<'a>) -> Result<(), Error> {
        let number = self.resources.len();
        self.resources.push(Vec::new());
        fields.each(|field| match field.number {
            resource::RESOURCE => field.message()?.each(|field| {
                if field.number == resource::ATTRIBUTES {
                    let attribute = Attribute::read_key_value(field)?;
                    field.push(&mut self.resources[number], &self.limits, 0, attribute)?;
                }
                Ok(())
            }),
            resource::SCOPE_PROFILES => self.take_scope(number, field.message()?),
            _ => Ok(()),
        })
    }

    fn take_scope(&mut self, resource: usize, fields: MessageFields<'a>) -> Result<(), Error> {
        let number = self.scopes.len();
        self.scopes.push(InstrumentationScope::default());
        fields.each(|field| {
            match field.number {
                scope::SCOPE => self.scopes[number] = InstrumentationScope::read(field.message()?)?,
                scope::PROFILES => {
                    let profile = OtlpProfile::read(field, resource, number, &self.limits);
                    self.profiles.push(profile.map_err(|error| of_release(field, error))?);
                    self.check_memory(field)?;
                }
                _ => {}
            }
            Ok(())
        })
    }

    fn take_dictionary(&mut self, fields: MessageFields<'a>) -> Result<(), Error> {
        fields.each(|field| {
            match field.number {
                dictionary::MAPPING => {
                    let fields = field.message()?;
                    self.mappings.push((SymbolMapping::read(fields, KEYS)?.1, fields));
                }
                dictionary::LOCATION => self.locations.push(OtlpLocation::read(field)?),
                dictionary::FUNCTION => self.functions.push(SymbolFunction::read(field.message()?, KEYS)?.1),
                dictionary::LINK => self.links.push(SpanLink::read(field.message()?)?),
                dictionary::STRING => self.strings.push(field.bytes("a string")?),
                dictionary::ATTRIBUTE => self.attributes.push(Attribute::read(field)?),
                dictionary::STACK => {
                    let stack = field.message()?;
                    each_location(stack, |field| field.numbers(|_| {}))?;
                    self.stacks.push(stack);
                }
                _ => {}
            }
            self.check_memory(field)
        })
    }

    fn check_memory(&self, field: &WireField<'a>) -> Result<(), Error> {
        let bytes = usize::try_from(self.length).unwrap_or(usize::MAX);
        field.check_memory(&self.limits, bytes.saturating_add(self.held_bytes()))
    }

    /// The memory that the messages have allocated, except for attributes of resources and profiles.
    fn held_bytes(&self) -> usize {
        let dictionary = self.strings.held_bytes()
            + self.mappings.held_bytes()
            + self.locations.held_bytes()
            + self.functions.held_bytes()
            + self.links.held_bytes()
            + self.attributes.held_bytes()
            + self.stacks.held_bytes();
        dictionary + self.resources.held_bytes() + self.scopes.held_bytes() + self.profiles.held_bytes()
    }

    /// A string of the input; `offset` is the position of the index.
    ///
    /// # Errors
    /// If there is none.
    pub(super) fn string(&self, index: u64, offset: u64) -> Result<&'a [u8], Error> {
        // Index 0 is the empty string by definition, even in a document without strings.
        if index == 0 { Ok(b"") } else { at(&self.strings, index, "a string", offset).copied() }
    }

    /// The text of an attribute that is a build ID.
    fn build_attribute(&self, index: u64) -> Option<&'a [u8]> {
        let attribute = at(&self.attributes, index, "an attribute", 0).ok()?;
        let AttributeKey::Index(name) = attribute.key else { return None };
        let is_build_id = self.string(name, 0).ok()? == key::BUILD_ID.as_bytes();
        let mut text = None;
        attribute
            .each_value(|value| match value {
                Any::Text(found) => text = text.or(Some(found)),
                Any::Index(index) => text = text.or(self.string(index, 0).ok()),
                _ => {}
            })
            .ok()?;
        text.filter(|_| is_build_id)
    }

    /// The files with build IDs of code whose place is kept. The first location stands for an absent one.
    pub(super) fn files(&self, places: CodePlaces) -> StatedFiles {
        let locations = self.locations.iter().skip(1);
        let located = locations.map(|location| (&location.symbol, location.lines().next().is_some()));
        StatedFiles::of(self, places, located)
    }

    /// Appends the locations of a stack to `locations`, leaf first.
    ///
    /// # Errors
    /// If there is no such stack, or it is too large.
    pub(super) fn stack(&self, index: u64, offset: u64, locations: &mut Vec<u64>) -> Result<(), Error> {
        if index == 0 && self.stacks.is_empty() {
            return Ok(());
        }
        each_location(*at(&self.stacks, index, "a stack", offset)?, |field| {
            field.numbers_to(locations, &self.limits, MADE_OF_LOCATION_BYTES, |location| location)
        })
    }
}

impl SymbolDocument for OtlpDocument<'_> {
    const FORMAT: &'static str = NAME;

    fn length(&self) -> u64 {
        self.length
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    fn string(&self, index: u64, offset: u64) -> Result<&[u8], Error> {
        self.string(index, offset)
    }

    fn mapping(&self, index: u64, offset: u64) -> Result<SymbolMapping, Error> {
        at(&self.mappings, index, "a mapping", offset).map(|&(mapping, _)| mapping)
    }

    fn build_id(&self, index: u64) -> Option<&[u8]> {
        let mut found = None;
        let (_, fields) = at(&self.mappings, index, "a mapping", 0).ok()?;
        fields
            .each(|field| match field.number {
                mapping::ATTRIBUTE_INDICES => {
                    field.numbers(|index| found = found.or(self.build_attribute(index)))
                }
                _ => Ok(()),
            })
            .ok()?;
        found
    }

    fn function(&self, index: u64, offset: u64) -> Result<SymbolFunction, Error> {
        at(&self.functions, index, "a function", offset).copied()
    }
}

/// The entry of a table at `index`.
///
/// # Errors
/// If there is none.
pub(super) fn at<'t, T>(table: &'t [T], index: u64, what: &str, offset: u64) -> Result<&'t T, Error> {
    let entry = usize::try_from(index).ok().and_then(|index| table.get(index));
    entry.ok_or_else(|| missing_entry(NAME, what, table.len(), index, offset))
}

fn each_location<'a>(
    stack: MessageFields<'a>,
    mut take: impl FnMut(&WireField<'a>) -> Result<(), Error>,
) -> Result<(), Error> {
    stack.each(|field| match field.number {
        stack::LOCATION_INDICES => take(field),
        _ => Ok(()),
    })
}

impl<'a> SpanLink<'a> {
    fn read(fields: MessageFields<'a>) -> Result<Self, Error> {
        fields.collect(Self::default(), |row, field| match field.number {
            link::TRACE_ID => field.bytes("bytes").map(|id| row.trace = id),
            link::SPAN_ID => field.bytes("bytes").map(|id| row.span = id),
            _ => Ok(()),
        })
    }
}

impl<'a> InstrumentationScope<'a> {
    fn read(fields: MessageFields<'a>) -> Result<Self, Error> {
        fields.collect(Self::default(), |row, field| match field.number {
            scope::NAME => field.bytes("a string").map(|name| row.name = name),
            scope::VERSION => field.bytes("a string").map(|version| row.version = version),
            _ => Ok(()),
        })
    }
}

impl<'a> OtlpLocation<'a> {
    fn read(field: &WireField<'a>) -> Result<Self, Error> {
        let (_, symbol) = SymbolLocation::read(field, KEYS, |number, field| match number {
            location::LINES => SourceLine::read(field.message()?).map(drop),
            own::ATTRIBUTE_INDICES => field.numbers(|_| {}),
            _ => Ok(()),
        })?;
        Ok(Self { symbol, fields: field.message()? })
    }

    /// The lines, innermost first. They have been read once before: a malformed one was an error of the document.
    pub(super) fn lines(&self) -> impl Iterator<Item = SourceLine> + use<'a> {
        let lines = self.fields_numbered(location::LINES);
        lines.filter_map(|field| field.message().and_then(SourceLine::read).ok())
    }

    /// Calls `take` with the index of each attribute.
    pub(super) fn each_attribute(&self, mut take: impl FnMut(u64)) {
        for field in self.fields_numbered(own::ATTRIBUTE_INDICES) {
            let _ = field.numbers(&mut take);
        }
    }

    fn fields_numbered(&self, number: u32) -> impl Iterator<Item = WireField<'a>> + use<'a> {
        let mut fields = self.fields;
        std::iter::from_fn(move || fields.next_field().ok().flatten())
            .filter(move |field| field.number == number)
    }
}

impl<'a> Attribute<'a> {
    fn read(field: &WireField<'a>) -> Result<Self, Error> {
        Self::read_fields(field, |row, field| match field.number {
            attribute::KEY => field.number().map(|index| row.key = AttributeKey::Index(index)),
            attribute::VALUE => field.message().map(|value| row.value = Some(value)),
            attribute::UNIT => field.number_to(&mut row.unit),
            _ => Ok(()),
        })
    }

    /// Reads a `KeyValue`.
    fn read_key_value(field: &WireField<'a>) -> Result<Self, Error> {
        Self::read_fields(field, |row, field| match field.number {
            key_value::KEY => field.bytes("a string").map(|key| row.key = AttributeKey::Text(key)),
            key_value::KEY_INDEX => field.number().map(|index| row.key = AttributeKey::Index(index)),
            key_value::VALUE => field.message().map(|value| row.value = Some(value)),
            _ => Ok(()),
        })
    }

    fn read_fields(
        field: &WireField<'a>,
        take: impl Fn(&mut Self, &WireField<'a>) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let empty = Self { key: AttributeKey::Index(0), unit: 0, offset: field.offset, value: None };
        let row = field.message()?.collect(empty, take)?;
        row.each_value(|_| {})?;
        Ok(row)
    }

    /// Calls `take` with the value, or with each one of an array.
    ///
    /// # Errors
    /// If the value is malformed.
    pub(super) fn each_value(&self, mut take: impl FnMut(Any<'a>)) -> Result<(), Error> {
        let Some(fields) = self.value else { return Ok(()) };
        fields.each(|field| match field.number {
            any::ARRAY => field.message()?.each(|field| match field.number {
                any::VALUES => field.message()?.each(|field| take_scalar(field, &mut take)),
                _ => Ok(()),
            }),
            _ => take_scalar(field, &mut take),
        })
    }
}

fn take_scalar<'a>(field: &WireField<'a>, take: &mut impl FnMut(Any<'a>)) -> Result<(), Error> {
    take(match field.number {
        any::STRING | any::BYTES => Any::Text(field.bytes("a string")?),
        any::BOOL => Any::Bool(field.number()? != 0),
        any::INT => Any::Number(field.signed()?),
        any::DOUBLE => Any::Float(f64::from_bits(field.fixed64()?)),
        any::STRING_INDEX => Any::Index(field.number()?),
        any::ARRAY | any::MAP => Any::Nested,
        _ => return Ok(()),
    });
    Ok(())
}

impl<'a> OtlpProfile<'a> {
    fn read(field: &WireField<'a>, resource: usize, scope: usize, limits: &Limits) -> Result<Self, Error> {
        let fields = field.message()?;
        let empty = Self {
            offset: field.offset,
            resource,
            scope,
            sample_type: TypeIndexes::default(),
            time_unix_ns: 0,
            duration_ns: 0,
            period_type: TypeIndexes::default(),
            period: 0,
            attributes: Vec::new(),
            fields,
            limits: *limits,
        };
        fields.collect(empty, |row, field| match field.number {
            profile::SAMPLE_TYPE => TypeIndexes::read(field.message()?).map(|names| row.sample_type = names),
            profile::SAMPLES => field.message().map(drop),
            profile::TIME_UNIX_NANO => field.fixed64().map(|time| row.time_unix_ns = time),
            profile::DURATION_NANO => field.number_to(&mut row.duration_ns),
            profile::PERIOD_TYPE => TypeIndexes::read(field.message()?).map(|names| row.period_type = names),
            profile::PERIOD => field.signed_to(&mut row.period),
            profile::ATTRIBUTE_INDICES => field.numbers_to(&mut row.attributes, limits, 0, |index| index),
            _ => Ok(()),
        })
    }

    /// The samples, in the order of the file.
    pub(super) const fn samples(&self) -> OtlpSamples<'a> {
        OtlpSamples { fields: self.fields, limits: self.limits }
    }
}

/// Reads the samples of a profile.
#[derive(Clone, Copy, Debug)]
pub(super) struct OtlpSamples<'a> {
    fields: MessageFields<'a>,
    limits: Limits,
}

impl OtlpSamples<'_> {
    /// Reads the next sample into `into`; false at the end. After an error the following sample can be read.
    ///
    /// # Errors
    /// If the sample is malformed.
    pub(super) fn next_sample(&mut self, into: &mut OtlpSample) -> Result<bool, Error> {
        while let Some(field) = self.fields.next_field()? {
            if field.number == profile::SAMPLES {
                into.read(field.offset, field.message()?, &self.limits)?;
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl OtlpSample {
    fn read(&mut self, offset: u64, fields: MessageFields<'_>, limits: &Limits) -> Result<(), Error> {
        (self.offset, self.stack, self.link) = (offset, 0, 0);
        self.attributes.clear();
        self.values.clear();
        self.times_unix_ns.clear();
        fields.each(|field| match field.number {
            sample::STACK_INDEX => field.number_to(&mut self.stack),
            sample::ATTRIBUTE_INDICES => field.numbers_to(&mut self.attributes, limits, 0, |index| index),
            sample::LINK_INDEX => field.number_to(&mut self.link),
            sample::VALUES => field.numbers_to(&mut self.values, limits, 0, u64::cast_signed),
            sample::TIMESTAMPS => field.fixed64s_to(&mut self.times_unix_ns, limits),
            _ => Ok(()),
        })
    }
}

/// The message about profiles of older releases, as far as they can be detected.
pub(super) const OLDER: &str = "expected profiles of opentelemetry-proto 1.10, found an older release";

/// Replaces the error of a profile by its cause, if it is of an older release, in which fields had other numbers.
///
/// Source: open-telemetry/opentelemetry-proto, `profiles/v1experimental/profiles.proto` of releases up to 1.4, and
/// `profiles/v1development/profiles.proto` of those before 1.8, in which profiles had lists of locations, and times
/// that were not of eight bytes.
#[cold]
fn of_release(profile: &WireField<'_>, error: Error) -> Error {
    let Ok(mut fields) = profile.message() else { return error };
    while let Ok(Some(field)) = fields.next_field() {
        let release = match field.number {
            2 if field.fixed64().is_ok() => "v1experimental",
            20..=30 => "v1experimental",
            3 if field.fixed64().is_err() => "v1development",
            _ => continue,
        };
        let message = format!("{OLDER}: {release}");
        return Error::new(ErrorKind::Unsupported, NAME, Position::Byte(field.offset), message);
    }
    error
}

#[cold]
pub(super) fn malformed(offset: u64, message: impl Into<String>) -> Error {
    Error::malformed(NAME, Position::Byte(offset), message)
}
