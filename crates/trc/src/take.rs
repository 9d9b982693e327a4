//! Reads events as structs: the items that `#[derive(TraceEvent)]` and `#[derive(ReadEvent)]` implement.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::NAME;
use super::event::Event;
use super::per_type::PerType;
use super::schema::Schema;
use super::value::{StackFrames, Value};
use crate::{Error, Position};

/// A type whose values are read from events, borrowing from them.
///
/// Derived with `#[derive(TraceEvent)]`, or without writing with `#[derive(ReadEvent)]` (feature `derive`).
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be read from events",
    note = "derive it: `#[derive(TraceEvent)]` or `#[derive(ReadEvent)]`; a struct that borrows for `'static` can be written only"
)]
pub trait ReadEvent<'a>: Sized {
    /// A static of this type alone.
    fn read_type() -> &'static ReadType;

    /// The positions of the fields in events of `schema`; `None` if those are other events.
    fn plan(schema: &Schema) -> Option<EventPlan>;

    /// Reads `event`, whose schema `plan` was made for.
    ///
    /// # Errors
    /// If a field is missing, or its value does not fit.
    fn read(event: &Event<'a>, plan: &EventPlan) -> Result<Self, Mismatch>;
}

/// A type as which fields of events are read.
#[diagnostic::on_unimplemented(
    message = "a field of an event cannot be read as `{Self}`",
    label = "expected an unsigned integer, `i64`, `f64`, `bool`, text, bytes, `StackFrames` or an `Option` of them"
)]
pub trait TakeField<'a>: Sized {
    /// A description of its values.
    const EXPECTED: &'static str;

    /// Converts the value; `None` if it does not fit.
    fn take(value: Value<'a>) -> Option<Self>;

    /// The value of the field of that number; `None` if there is none, or it does not fit.
    #[inline]
    fn take_from(event: &Event<'a>, field: usize) -> Option<Self> {
        Self::take(event.value(field)?)
    }

    /// The default for a field that the events do not have.
    #[must_use]
    fn missing() -> Option<Self> {
        None
    }
}

/// Reads events as values of types. The positions of a type's fields in a schema are looked up once.
///
/// # Examples
///
/// See `#[derive(TraceEvent)]`.
#[derive(Debug, Default)]
pub struct TypedEvents {
    /// By the index of the type that is read.
    plans: Vec<PerType<Option<EventPlan>>>,
}

impl TypedEvents {
    /// Reads `event` as a `T`; `None` if it is another event.
    ///
    /// Fields that `T` does not have are ignored; an optional field that the event does not have is `None`.
    ///
    /// # Errors
    /// If a field is missing, or its value does not fit.
    #[inline]
    pub fn read<'a, T: ReadEvent<'a>>(&mut self, event: &Event<'a>) -> Result<Option<T>, Error> {
        let index = T::read_type().index();
        let plan = match self.plans.get(index).and_then(|plans| plans.get(event)) {
            Some(plan) => plan.as_ref(),
            None => self.add(index, event, T::plan(event.schema())),
        };
        match plan {
            None => Ok(None),
            Some(plan) => T::read(event, plan).map(Some).map_err(Mismatch::error),
        }
    }

    #[cold]
    fn add(&mut self, index: usize, event: &Event<'_>, plan: Option<EventPlan>) -> Option<&EventPlan> {
        if self.plans.len() <= index {
            self.plans.resize_with(index + 1, PerType::default);
        }
        self.plans[index].set(event, plan).as_ref()
    }
}

/// The state of a process for a type that implements [`ReadEvent`].
#[derive(Debug, Default)]
pub struct ReadType(OnceLock<usize>);

impl ReadType {
    /// Creates the state of an unused type.
    #[must_use]
    pub const fn new() -> Self {
        Self(OnceLock::new())
    }

    /// Different for each type, counted from 0.
    #[inline]
    fn index(&self) -> usize {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        *self.0.get_or_init(|| NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// The positions of a type's fields in a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventPlan {
    /// For each field of the struct, which the type is or holds, the field of the schema; [`EventPlan::NOWHERE`] for
    /// one that the schema does not have.
    places: Box<[u32]>,
    /// The variant, of an enum.
    variant: Option<usize>,
    /// The plan of an enum that the variant holds. The plan of a struct is this one, for fast access.
    inner: Option<Box<EventPlan>>,
}

impl EventPlan {
    const NOWHERE: u32 = u32::MAX;

    /// The plan of a struct with these fields; `None` if events of `schema` have another name than `name`.
    #[must_use]
    pub fn of_struct(schema: &Schema, name: &str, fields: &[&str]) -> Option<Self> {
        let place = |field: &&str| schema.field_index(field).and_then(|place| u32::try_from(place).ok());
        let places = fields.iter().map(|field| place(field).unwrap_or(Self::NOWHERE));
        (schema.name() == name).then(|| Self { places: places.collect(), variant: None, inner: None })
    }

    /// The plan of an enum whose variant of that number holds the type of this plan.
    #[must_use]
    pub fn of_variant(self, number: usize) -> Self {
        let places = self.places.clone();
        let inner = self.variant.is_some().then(|| Box::new(self));
        Self { places, variant: Some(number), inner }
    }

    /// The number of the variant and the plan of its contents; `None` if this is the plan of a struct.
    #[inline]
    #[must_use]
    pub fn variant(&self) -> Option<(usize, &Self)> {
        Some((self.variant?, self.inner.as_deref().unwrap_or(self)))
    }

    /// The time of `event`.
    ///
    /// # Errors
    /// If it has none.
    #[inline]
    pub fn timestamp_ns(&self, event: &Event<'_>) -> Result<u64, Mismatch> {
        event.timestamp_ns().ok_or_else(|| Mismatch::new(*event, "expected a timestamp, found none"))
    }

    /// The value of the field of that number, which has the name `name`.
    ///
    /// # Errors
    /// If there is no such field, or its value does not fit.
    #[inline]
    pub fn field<'a, T: TakeField<'a>>(
        &self,
        event: &Event<'a>,
        number: usize,
        name: &str,
    ) -> Result<T, Mismatch> {
        let place = self.places.get(number).map_or(Self::NOWHERE, |place| *place);
        let missing = || T::missing().filter(|_| place == Self::NOWHERE);
        let taken = T::take_from(event, place as usize).or_else(missing);
        // By value: a reference would force each event into memory.
        taken.ok_or_else(|| Mismatch::field(*event, name, T::EXPECTED, place as usize))
    }
}

/// The reason why an event cannot be read as a value of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch(Box<(u64, String)>);

impl Mismatch {
    #[cold]
    fn new(event: Event<'_>, message: &str) -> Self {
        Self(Box::new((event.offset(), format!("{}: {message}", event.name()))))
    }

    #[cold]
    fn field(event: Event<'_>, name: &str, expected: &str, place: usize) -> Self {
        let message = match event.value(place) {
            None => format!("missing field {name}: expected {expected}"),
            Some(value) => format!("field {name}: expected {expected}, found {}", ShownValue(value)),
        };
        Self::new(event, &message)
    }

    /// The plan is for another type.
    #[inline]
    #[must_use]
    pub fn of_plan(event: &Event<'_>) -> Self {
        Self::new(*event, "expected a plan for this type, found one for another")
    }

    fn error(self) -> Error {
        let (offset, message) = *self.0;
        Error::malformed(NAME, Position::Byte(offset), message)
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.1)
    }
}

impl std::error::Error for Mismatch {}

/// A value in a message.
struct ShownValue<'a>(Value<'a>);

impl fmt::Display for ShownValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Absent => f.write_str("no value"),
            Value::Unsigned(value) => write!(f, "{value}"),
            Value::Signed(value) => write!(f, "the signed integer {value}"),
            Value::Float(value) => write!(f, "the floating-point number {value}"),
            Value::Bool(value) => write!(f, "{value}"),
            Value::Text(text) => write!(f, "\"{}\"", text.escape_ascii()),
            Value::PooledText { text: Some(text), .. } => write!(f, "{text:?}"),
            Value::PooledText { id, .. } | Value::PooledStack { id, stack: None } => {
                write!(f, "a reference to the undefined id {id}")
            }
            Value::Bytes(_) => f.write_str("bytes"),
            Value::Stack(_) | Value::PooledStack { .. } => f.write_str("a stack"),
            Value::TextMap(_) => f.write_str("pairs of text"),
            Value::List(_) => f.write_str("a list"),
            Value::Map(_) => f.write_str("a map"),
        }
    }
}

/// Types as which unsigned integers are read, if they fit.
macro_rules! unsigned {
    ($($type:ty, $expected:literal);*) => {$(
        impl<'a> TakeField<'a> for $type {
            const EXPECTED: &'static str = $expected;

            #[inline]
            fn take(value: Value<'a>) -> Option<Self> {
                value.as_u64()?.try_into().ok()
            }

            #[inline]
            fn take_from(event: &Event<'a>, field: usize) -> Option<Self> {
                event.unsigned(field)?.try_into().ok()
            }
        }
    )*};
}

unsigned! {
    u8, "an unsigned integer of 8 bits";
    u16, "an unsigned integer of 16 bits";
    u32, "an unsigned integer of 32 bits";
    u64, "an unsigned integer";
    usize, "an unsigned integer"
}

/// Types as which values are read.
macro_rules! taken {
    ($($type:ty, $expected:literal, |$value:ident| $taken:expr);* $(;)?) => {$(
        impl<'a> TakeField<'a> for $type {
            const EXPECTED: &'static str = $expected;

            #[inline]
            fn take($value: Value<'a>) -> Option<Self> {
                $taken
            }
        }
    )*};
}

taken! {
    i64, "a signed integer", |value| value.as_i64();
    f64, "a floating-point number", |value| value.as_f64();
    bool, "a boolean", |value| value.as_bool();
    String, "text in UTF-8", |value| value.as_str().map(str::to_owned);
    &'a [u8], "bytes", |value| value.as_bytes();
    Vec<u8>, "bytes", |value| value.as_bytes().map(<[u8]>::to_vec);
    StackFrames<'a>, "a stack", |value| value.as_stack().map(StackFrames::Stored);
    Vec<u64>, "a stack", |value| value.as_stack().map(|stack| stack.addresses().collect());
}

impl<'a> TakeField<'a> for Vec<(String, String)> {
    const EXPECTED: &'static str = "pairs of text in UTF-8";

    fn take(value: Value<'a>) -> Option<Self> {
        match value {
            Value::TextMap(pairs) => pairs.map(|(key, value)| Some((text(key)?, text(value)?))).collect(),
            _ => None,
        }
    }
}

impl<'a> TakeField<'a> for &'a str {
    const EXPECTED: &'static str = "text in UTF-8";

    #[inline]
    fn take(value: Value<'a>) -> Option<Self> {
        value.as_str()
    }

    #[inline]
    fn take_from(event: &Event<'a>, field: usize) -> Option<Self> {
        event.text(field)
    }
}

fn text(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes).ok().map(str::to_owned)
}

impl<'a, T: TakeField<'a>> TakeField<'a> for Option<T> {
    const EXPECTED: &'static str = T::EXPECTED;

    #[inline]
    fn take(value: Value<'a>) -> Option<Self> {
        match value {
            Value::Absent => Some(None),
            value => T::take(value).map(Some),
        }
    }

    #[inline]
    fn take_from(event: &Event<'a>, field: usize) -> Option<Self> {
        if event.is_absent(field) { Some(None) } else { T::take_from(event, field).map(Some) }
    }

    #[inline]
    fn missing() -> Option<Self> {
        Some(None)
    }
}
