//! Types of events.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::invalid::Invalid;
use super::layout::FieldType;

/// A type of events: a name and fields.
///
/// It is a handle, cheap to clone, and valid for any [`Writer`](super::Writer): each registers it on first use. Two
/// schemas are equal if their definitions are.
#[derive(Clone)]
pub struct Schema(Arc<SchemaInner>);

struct SchemaInner {
    /// Different for each schema made in this process, so that a writer need not compare contents.
    handle: u64,
    definition: Definition,
}

/// The contents of a schema.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Definition {
    /// The name of the events.
    pub name: String,
    /// Whether the events have times.
    pub has_timestamp: bool,
    /// The fields, in the order of their values. Names need not be different.
    pub fields: Vec<Field>,
    /// Facts about the fields beyond their type.
    pub annotations: Vec<Annotation>,
}

/// A field of a type of events.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its type.
    pub field_type: FieldType,
}

/// A fact about a field: its unit, its role.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Annotation {
    /// The index of the field, 0-based. A stream may name a missing one.
    pub field: u16,
    /// The subject of the fact. Source for the keys in use: `dial9-trace-format` 0.5.4: `unit`, `kind`, `dial9.role`,
    /// `dial9.span.type`; 0.4: `metrique.unit`.
    pub key: String,
    /// The fact.
    pub value: String,
}

/// The maximum length of a name in bytes, and number of fields: their counts have 16 bits.
const MAX_U16: usize = u16::MAX as usize;

impl Schema {
    /// Creates a type of timestamped events without annotations.
    ///
    /// # Errors
    /// If a name is longer than 65,535 bytes or there are more fields than that.
    ///
    /// # Examples
    ///
    /// ```
    /// use borehole_trc::{FieldKind, FieldType, Schema};
    ///
    /// let poll = Schema::new("Poll", [("worker", FieldType::required(FieldKind::U8))])?;
    /// assert_eq!((poll.name(), poll.field_index("worker")), ("Poll", Some(0)));
    /// # Ok::<(), borehole_trc::Invalid>(())
    /// ```
    pub fn new<'a>(
        name: &str,
        fields: impl IntoIterator<Item = (&'a str, FieldType)>,
    ) -> Result<Self, Invalid> {
        Self::with_fields(name, true, fields)
    }

    /// Creates a type without annotations, of events with or without times.
    pub(super) fn with_fields<'a>(
        name: &str,
        has_timestamp: bool,
        fields: impl IntoIterator<Item = (&'a str, FieldType)>,
    ) -> Result<Self, Invalid> {
        let fields = fields.into_iter().map(|(name, field_type)| Field { name: name.to_owned(), field_type });
        let (name, fields) = (name.to_owned(), fields.collect());
        Self::define(Definition { name, has_timestamp, fields, annotations: Vec::new() })
    }

    /// Creates a type from its whole `definition`.
    ///
    /// # Errors
    /// Those of [`Schema::new`], also for annotations.
    pub fn define(definition: Definition) -> Result<Self, Invalid> {
        let Definition { name, fields, annotations, .. } = &definition;
        fits("event name", name.len())?;
        fits("number of fields", fields.len())?;
        fits("number of annotations", annotations.len())?;
        fields.iter().try_for_each(|field| fits("field name", field.name.len()))?;
        annotations.iter().try_for_each(|annotation| fits("annotation key", annotation.key.len()))?;
        Ok(Self::unchecked(definition))
    }

    /// Creates a type from a stream, where counts and lengths always fit.
    pub(super) fn unchecked(definition: Definition) -> Self {
        static NEXT_HANDLE: AtomicU64 = AtomicU64::new(0);
        let handle = NEXT_HANDLE.fetch_add(1, Ordering::Relaxed);
        Self(Arc::new(SchemaInner { handle, definition }))
    }

    /// Adds annotations. The handle changes; clones keep the earlier definition.
    pub(super) fn annotate(&mut self, annotations: Vec<Annotation>) {
        let other = Self::unchecked(match Arc::get_mut(&mut self.0) {
            Some(inner) => std::mem::take(&mut inner.definition),
            None => self.0.definition.clone(),
        });
        *self = other;
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            inner.definition.annotations.extend(annotations);
        }
    }

    /// Different for each schema made in this process.
    #[inline]
    pub(super) fn handle(&self) -> u64 {
        self.0.handle
    }

    /// The whole definition.
    #[must_use]
    pub fn definition(&self) -> &Definition {
        &self.0.definition
    }

    /// The name of the events.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.definition.name
    }

    /// Whether the events have times.
    #[inline]
    #[must_use]
    pub fn has_timestamp(&self) -> bool {
        self.0.definition.has_timestamp
    }

    /// The fields.
    #[inline]
    #[must_use]
    pub fn fields(&self) -> &[Field] {
        &self.0.definition.fields
    }

    /// Facts about the fields beyond their type.
    #[must_use]
    pub fn annotations(&self) -> &[Annotation] {
        &self.0.definition.annotations
    }

    /// The first field of that name.
    #[must_use]
    pub fn field_index(&self, name: &str) -> Option<usize> {
        self.fields().iter().position(|field| field.name == name)
    }

    /// The last fact of that key about a field: later ones replace earlier ones.
    #[must_use]
    pub fn annotation(&self, field: usize, key: &str) -> Option<&str> {
        let of_field = |annotation: &&Annotation| usize::from(annotation.field) == field;
        let found = self.annotations().iter().rev().filter(of_field);
        found.filter(|annotation| annotation.key == key).map(|annotation| annotation.value.as_str()).next()
    }

    /// Whether both define the same events, regardless of annotations.
    pub(super) fn defines_the_same(&self, other: &Definition) -> bool {
        let own = self.definition();
        own.name == other.name && own.has_timestamp == other.has_timestamp && own.fields == other.fields
    }
}

impl Default for Definition {
    /// Creates a type without a name, a timestamp or fields.
    fn default() -> Self {
        Self { name: String::new(), has_timestamp: false, fields: Vec::new(), annotations: Vec::new() }
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        self.0.handle == other.0.handle || self.0.definition == other.0.definition
    }
}

impl Eq for Schema {}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.definition.fmt(f)
    }
}

fn fits(what: &str, count: usize) -> Result<(), Invalid> {
    if count <= MAX_U16 {
        return Ok(());
    }
    Err(Invalid::new(format!("{what} too large: expected at most {MAX_U16}, found {count}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FieldKind;

    #[test]
    fn what_does_not_fit_sixteen_bits_is_refused() {
        let long = "x".repeat(65_536);
        let field = FieldType::required(FieldKind::Varint);
        let annotated = |count: usize, key: &str| {
            let annotation = Annotation { field: 0, key: key.to_owned(), value: long.clone() };
            Schema::define(Definition { annotations: vec![annotation; count], ..Definition::default() })
        };
        let fields = |count| Schema::new("", vec![("", field); count]);
        assert!(Schema::new(&long[1..], [(&long[1..], field)]).is_ok());
        assert!(fields(65_535).is_ok() && annotated(1, &long[1..]).is_ok());
        for (what, refused) in [
            ("event name", Schema::new(&long, [])),
            ("field name", Schema::new("", [("", field), (long.as_str(), field)])),
            ("number of fields", fields(65_536)),
            ("annotation key", annotated(2, &long)),
        ] {
            let message = format!("{what} too large: expected at most 65535, found 65536");
            assert_eq!(refused.unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn there_are_at_most_65535_annotations() {
        let annotation = Annotation { field: 0, key: String::new(), value: String::new() };
        let defined = |count| {
            Schema::define(Definition {
                annotations: vec![annotation.clone(); count],
                ..Definition::default()
            })
        };
        assert!(defined(65_535).is_ok());
        let message = "number of annotations too large: expected at most 65535, found 65536";
        assert_eq!(defined(65_536).unwrap_err().to_string(), message);
    }

    #[test]
    fn of_two_annotations_the_later_counts_and_clones_keep_theirs() {
        let annotation = |value: &str| Annotation { field: 0, key: "unit".into(), value: value.into() };
        let mut schema = Schema::new("E", [("v", FieldType::required(FieldKind::Varint))]).unwrap();
        let before = schema.clone();
        schema.annotate(vec![annotation("ns"), annotation("us")]);
        assert_eq!((schema.annotation(0, "unit"), schema.annotation(1, "unit")), (Some("us"), None));
        assert_eq!(before.annotations(), []);
        assert!(schema != before && schema.handle() != before.handle());
    }
}
