//! The input of the derives: structs and enums.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::ToTokens as _;
use syn::ext::IdentExt as _;
use syn::spanned::Spanned as _;
use syn::{
    Data, DeriveInput, Error, Field, Fields, GenericParam, Generics, Ident, Lifetime, LitStr, Result, Type,
};

use crate::attributes::{FieldAttributes, TypeAttributes};

/// A struct that becomes a type of events.
pub(crate) struct EventStruct {
    pub(crate) ident: Ident,
    pub(crate) lifetime: Option<Lifetime>,
    pub(crate) attributes: TypeAttributes,
    pub(crate) timestamp: Ident,
    pub(crate) fields: Vec<EventField>,
}

/// A field of an event other than its timestamp.
pub(crate) struct EventField {
    pub(crate) ident: Ident,
    pub(crate) r#type: Type,
    /// The name of the field in the stream.
    pub(crate) name: LitStr,
    pub(crate) attributes: FieldAttributes,
}

/// An enum of events.
pub(crate) struct Choice {
    pub(crate) ident: Ident,
    pub(crate) lifetime: Option<Lifetime>,
    pub(crate) attributes: TypeAttributes,
    pub(crate) variants: Vec<(Ident, Type)>,
}

/// The maximum length of a name and number of fields: both are stored in 16 bits.
const MAX_U16: usize = u16::MAX as usize;

impl EventStruct {
    pub(crate) fn new(input: DeriveInput) -> Result<Self> {
        let lifetime = lifetime(&input.generics)?;
        let attributes = TypeAttributes::parse(&input.attrs)?;
        let Fields::Named(fields) = fields(&input)? else {
            return Err(Error::new(input.ident.span(), "expected a struct with named fields"));
        };
        let mut timestamp = None;
        let mut values = Vec::new();
        for field in fields.named {
            let attributes = FieldAttributes::parse(&field.attrs)?;
            if attributes.timestamp {
                put_timestamp(&mut timestamp, &field, &attributes)?;
            } else {
                values.push(EventField::new(field, attributes)?);
            }
        }
        let missing = "missing timestamp: expected one field with #[traceevent(timestamp)]";
        let timestamp = timestamp.ok_or_else(|| Error::new(input.ident.span(), missing))?;
        check(&values)?;
        Ok(Self { ident: input.ident, lifetime, attributes, timestamp, fields: values })
    }

    /// Rejects events that cannot be read: a field must not borrow for longer than the event lives.
    pub(crate) fn check_readable(&self) -> Result<()> {
        let mut types = self.fields.iter().map(|field| &field.r#type);
        match types.find(|r#type| names_static(r#type.to_token_stream())) {
            None => Ok(()),
            Some(r#type) => {
                let message =
                    "expected a lifetime of the struct: a read value borrows from its event, not for 'static";
                Err(Error::new(r#type.span(), message))
            }
        }
    }
}

/// Whether the tokens contain `'static`.
fn names_static(tokens: TokenStream) -> bool {
    let mut is_lifetime = false;
    tokens.into_iter().any(|token| {
        let was_lifetime = std::mem::replace(&mut is_lifetime, false);
        match token {
            TokenTree::Punct(punct) => {
                is_lifetime = punct.as_char() == '\'';
                false
            }
            TokenTree::Ident(ident) => was_lifetime && ident == "static",
            TokenTree::Group(group) => names_static(group.stream()),
            TokenTree::Literal(_) => false,
        }
    })
}

impl EventField {
    fn new(field: Field, attributes: FieldAttributes) -> Result<Self> {
        let span = field.span();
        let ident = field.ident.ok_or_else(|| Error::new(span, "expected a named field"))?;
        let own_name = || LitStr::new(&ident.unraw().to_string(), ident.span());
        let name = attributes.name.clone().unwrap_or_else(own_name);
        Ok(Self { r#type: field.ty, name, attributes, ident })
    }

    /// The place that messages about the field refer to. Names in code with this span resolve as in the derived code,
    /// even if the type comes from elsewhere than the struct, such as from the caller of a macro that generates it.
    pub(crate) fn span(&self) -> Span {
        self.r#type.span().resolved_at(Span::call_site())
    }
}

impl Choice {
    pub(crate) fn new(input: DeriveInput) -> Result<Self> {
        let lifetime = lifetime(&input.generics)?;
        let attributes = TypeAttributes::parse(&input.attrs)?;
        if attributes.name.is_some() || attributes.wire_slot {
            let message = "an enum takes no name and no wire_slot: put them on the structs of its variants";
            return Err(Error::new(input.ident.span(), message));
        }
        let Data::Enum(data) = input.data else {
            return Err(Error::new(input.ident.span(), "expected a struct or an enum"));
        };
        let variants = data.variants.into_iter().map(|variant| {
            let span = variant.span();
            match variant.fields {
                Fields::Unnamed(fields) if fields.unnamed.len() == 1 => {
                    Ok((variant.ident, fields.unnamed[0].ty.clone()))
                }
                _ => Err(Error::new(span, "expected a variant that holds one event: Variant(Event)")),
            }
        });
        Ok(Self { ident: input.ident, lifetime, attributes, variants: variants.collect::<Result<_>>()? })
    }
}

fn fields(input: &DeriveInput) -> Result<Fields> {
    match &input.data {
        Data::Struct(data) => Ok(data.fields.clone()),
        Data::Enum(data) => {
            let message = "expected a struct; use #[derive(ReadEvent)] to read an enum of events";
            Err(Error::new(data.enum_token.span, message))
        }
        Data::Union(data) => Err(Error::new(data.union_token.span, "expected a struct")),
    }
}

/// The lifetime of borrowed fields; `None` if nothing is borrowed.
fn lifetime(generics: &Generics) -> Result<Option<Lifetime>> {
    let mut found = None;
    for parameter in &generics.params {
        match parameter {
            GenericParam::Lifetime(parameter) if found.is_none() && parameter.bounds.is_empty() => {
                found = Some(parameter.lifetime.clone());
            }
            other => {
                let message = "expected at most one lifetime and no other generics";
                return Err(Error::new(other.span(), message));
            }
        }
    }
    match &generics.where_clause {
        None => Ok(found),
        Some(clause) => Err(Error::new(clause.span(), "expected no where clause")),
    }
}

fn put_timestamp(place: &mut Option<Ident>, field: &Field, attributes: &FieldAttributes) -> Result<()> {
    let is_u64 = matches!(bare(&field.ty), Type::Path(path) if path.path.is_ident("u64"));
    let problem = if place.is_some() {
        "duplicate timestamp: expected one field with #[traceevent(timestamp)]"
    } else if !is_u64 {
        "invalid type of the timestamp: expected u64, in nanoseconds"
    } else if attributes.describes_a_value() {
        "a timestamp takes no other attributes: it is stored before the fields, in nanoseconds"
    } else {
        place.clone_from(&field.ident);
        return Ok(());
    };
    Err(Error::new(field.span(), problem))
}

/// The type without the invisible groups and parentheses that a macro or the author has added.
fn bare(r#type: &Type) -> &Type {
    match r#type {
        Type::Group(group) => bare(&group.elem),
        Type::Paren(paren) => bare(&paren.elem),
        other => other,
    }
}

/// Checks that names are distinct and not too long.
fn check(fields: &[EventField]) -> Result<()> {
    if fields.len() > MAX_U16 {
        return Err(Error::new(Span::call_site(), format!("too many fields: expected at most {MAX_U16}")));
    }
    let mut names = std::collections::HashSet::new();
    for field in fields {
        let name = field.name.value();
        if name.len() > MAX_U16 {
            return Err(Error::new(
                field.name.span(),
                format!("name too long: expected at most {MAX_U16} bytes"),
            ));
        }
        if !names.insert(name) {
            let message = format!("duplicate field name {:?}", field.name.value());
            return Err(Error::new(field.name.span(), message));
        }
    }
    Ok(())
}
