//! Parses `#[traceevent(…)]` on types and fields.

use syn::meta::ParseNestedMeta;
use syn::{Attribute, Error, Expr, LitStr, Path, Result};

/// The units that readers know. Source: `dial9-trace-format` 0.5.4.
const UNITS: &[&str] = &["ns", "us", "ms", "s", "bytes"];

/// The ways in which the values of a field add up. Source: as [`UNITS`].
const KINDS: &[&str] = &["gauge", "counter", "updown-counter"];

/// The meanings of a field that readers know. Source: as [`UNITS`].
const ROLES: &[&str] =
    &["span.start", "span.duration", "span.name", "thread_id", "tokio.task_id", "tokio.worker_id"];

/// The attributes of a type.
#[derive(Default)]
pub(crate) struct TypeAttributes {
    /// A constant string.
    pub(crate) name: Option<Expr>,
    pub(crate) wire_slot: bool,
    pub(crate) home: Option<Path>,
}

/// The attributes of a field.
#[derive(Default)]
pub(crate) struct FieldAttributes {
    pub(crate) timestamp: bool,
    pub(crate) pooled: bool,
    pub(crate) name: Option<LitStr>,
    /// Keys, as they are in streams, and values.
    pub(crate) annotations: Vec<(&'static str, LitStr)>,
}

impl TypeAttributes {
    pub(crate) fn parse(attributes: &[Attribute]) -> Result<Self> {
        let mut found = Self::default();
        each(attributes, |meta| match key(&meta).as_str() {
            "name" => set(&mut found.name, &meta, meta.value()?.parse()?),
            "wire_slot" => flag(&mut found.wire_slot, &meta),
            "crate" => set(&mut found.home, &meta, meta.value()?.parse::<LitStr>()?.parse()?),
            _ => Err(meta.error("unknown event attribute: expected name, wire_slot or crate")),
        })?;
        Ok(found)
    }
}

impl FieldAttributes {
    pub(crate) fn parse(attributes: &[Attribute]) -> Result<Self> {
        let mut found = Self::default();
        each(attributes, |meta| match key(&meta).as_str() {
            "timestamp" => flag(&mut found.timestamp, &meta),
            "pooled" => flag(&mut found.pooled, &meta),
            "name" => set(&mut found.name, &meta, meta.value()?.parse()?),
            "unit" => found.annotate("unit", &meta, UNITS),
            "kind" => found.annotate("kind", &meta, KINDS),
            "role" => found.annotate("dial9.role", &meta, ROLES),
            _ => {
                Err(meta
                    .error("unknown field attribute: expected timestamp, pooled, name, unit, kind or role"))
            }
        })?;
        Ok(found)
    }

    fn annotate(&mut self, key: &'static str, meta: &ParseNestedMeta<'_>, known: &[&str]) -> Result<()> {
        let value: LitStr = meta.value()?.parse()?;
        if self.annotations.iter().any(|(other, _)| *other == key) {
            return Err(meta.error("duplicate attribute"));
        }
        if !known.contains(&value.value().as_str()) {
            let message = format!("expected one of {}, found {:?}", known.join(", "), value.value());
            return Err(Error::new(value.span(), message));
        }
        self.annotations.push((key, value));
        Ok(())
    }

    /// Whether there are attributes that a timestamp cannot have.
    pub(crate) fn describes_a_value(&self) -> bool {
        self.pooled || self.name.is_some() || !self.annotations.is_empty()
    }
}

fn each(attributes: &[Attribute], mut take: impl FnMut(ParseNestedMeta<'_>) -> Result<()>) -> Result<()> {
    let ours = attributes.iter().filter(|attribute| attribute.path().is_ident("traceevent"));
    ours.into_iter().try_for_each(|attribute| attribute.parse_nested_meta(&mut take))
}

fn key(meta: &ParseNestedMeta<'_>) -> String {
    meta.path.get_ident().map(ToString::to_string).unwrap_or_default()
}

fn set<T>(place: &mut Option<T>, meta: &ParseNestedMeta<'_>, value: T) -> Result<()> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(meta.error("duplicate attribute")),
    }
}

fn flag(place: &mut bool, meta: &ParseNestedMeta<'_>) -> Result<()> {
    match std::mem::replace(place, true) {
        false => Ok(()),
        true => Err(meta.error("duplicate attribute")),
    }
}
