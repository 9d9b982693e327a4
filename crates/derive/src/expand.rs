//! Generates the derived code.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt as _;
use syn::{Data, DeriveInput, Ident, Lifetime, Path, Result};

use crate::attributes::TypeAttributes;
use crate::event::{Choice, EventField, EventStruct};

/// Derives writing and reading; only writing if the event cannot be read. `home` is the path of the traits.
pub(crate) fn trace_event(input: TokenStream, home: &str) -> TokenStream {
    let derive = |input| {
        let event = EventStruct::new(input)?;
        let home = home_of(&event.attributes, home)?;
        let write = write_struct(&event, &home);
        let read = event.check_readable().is_ok().then(|| read_struct(&event, &home));
        Ok(quote! { #write #read })
    };
    syn::parse2(input).and_then(derive).unwrap_or_else(|error| error.to_compile_error())
}

/// Derives reading only.
pub(crate) fn read_event(input: TokenStream, home: &str) -> TokenStream {
    let derive = |input: DeriveInput| {
        if matches!(input.data, Data::Enum(_)) {
            let choice = Choice::new(input)?;
            let home = home_of(&choice.attributes, home)?;
            return Ok(read_enum(&choice, &home));
        }
        let event = EventStruct::new(input)?;
        event.check_readable()?;
        let home = home_of(&event.attributes, home)?;
        Ok(read_struct(&event, &home))
    };
    syn::parse2(input).and_then(derive).unwrap_or_else(|error| error.to_compile_error())
}

fn home_of(attributes: &TypeAttributes, home: &str) -> Result<Path> {
    attributes.home.clone().map_or_else(|| syn::parse_str(home), Ok)
}

fn name_of(event: &EventStruct) -> TokenStream {
    match &event.attributes.name {
        Some(name) => quote! { #name },
        None => {
            let name = event.ident.unraw().to_string();
            quote! { #name }
        }
    }
}

fn arguments(lifetime: Option<&Lifetime>) -> TokenStream {
    lifetime.map(|lifetime| quote! { <#lifetime> }).unwrap_or_default()
}

fn write_struct(event: &EventStruct, home: &Path) -> TokenStream {
    let EventStruct { ident, attributes, timestamp, .. } = event;
    let arguments = arguments(event.lifetime.as_ref());
    let (name, wire_slot) = (name_of(event), attributes.wire_slot);
    let fields = event.fields.iter().map(|field| describe(field, home));
    let puts = event.fields.iter().map(|field| put(field, home));
    quote! {
        #[automatically_derived]
        impl #arguments #home::TraceEvent for #ident #arguments {
            const NAME: &'static str = #name;
            const FIELDS: &'static [#home::TypedField] = &[#(#fields),*];
            const WIRE_SLOT: bool = #wire_slot;

            fn event_type() -> &'static #home::EventType {
                static TYPE: #home::EventType = #home::EventType::new();
                &TYPE
            }

            #[inline]
            fn timestamp_ns(&self) -> u64 {
                self.#timestamp
            }

            #[inline]
            fn put_fields(&self, out: &mut #home::FieldWriter<'_>) {
                #(#puts)*
            }
        }
    }
}

/// The trait and the method that write a field.
fn putting(field: &EventField, home: &Path) -> (TokenStream, TokenStream) {
    match field.attributes.pooled {
        false => (quote! { #home::PutField }, quote! { put }),
        true => (quote! { #home::PutPooled }, quote! { put_pooled }),
    }
}

fn describe(field: &EventField, home: &Path) -> TokenStream {
    let EventField { r#type, name, attributes, .. } = field;
    let (writing, _) = putting(field, home);
    let (keys, values): (Vec<_>, Vec<_>) = attributes.annotations.iter().cloned().unzip();
    quote_spanned! { field.span() =>
        #home::TypedField {
            name: #name,
            field_type: <#r#type as #writing>::TYPE,
            annotations: &[#((#keys, #values)),*],
        }
    }
}

fn put(field: &EventField, home: &Path) -> TokenStream {
    let ident = &field.ident;
    let (writing, method) = putting(field, home);
    quote_spanned! { field.span() => #writing::#method(&self.#ident, out); }
}

/// The lifetime of the event to read: that of the struct, or a new one.
fn read_lifetime(lifetime: Option<&Lifetime>) -> Lifetime {
    lifetime.cloned().unwrap_or_else(|| Lifetime::new("'event", Span::mixed_site()))
}

fn read_struct(event: &EventStruct, home: &Path) -> TokenStream {
    let EventStruct { ident, timestamp, .. } = event;
    let (arguments, lifetime) = (arguments(event.lifetime.as_ref()), read_lifetime(event.lifetime.as_ref()));
    let name = name_of(event);
    let names: Vec<_> = event.fields.iter().map(|field| &field.name).collect();
    let takes = event.fields.iter().enumerate().map(|(index, field)| {
        let EventField { ident, name, .. } = field;
        quote_spanned! { field.span() => #ident: plan.field(event, #index, #name)? }
    });
    let body = quote! {
        fn plan(schema: &#home::Schema) -> ::core::option::Option<#home::EventPlan> {
            #home::EventPlan::of_struct(schema, #name, &[#(#names),*])
        }

        #[inline]
        fn read(
            event: &#home::Event<#lifetime>,
            plan: &#home::EventPlan,
        ) -> ::core::result::Result<Self, #home::Mismatch> {
            ::core::result::Result::Ok(Self { #timestamp: plan.timestamp_ns(event)?, #(#takes),* })
        }
    };
    read_impl(home, ident, &arguments, &lifetime, &body)
}

fn read_enum(choice: &Choice, home: &Path) -> TokenStream {
    let Choice { ident, .. } = choice;
    let (arguments, lifetime) =
        (arguments(choice.lifetime.as_ref()), read_lifetime(choice.lifetime.as_ref()));
    let (variants, types): (Vec<_>, Vec<_>) =
        choice.variants.iter().map(|(variant, event)| (variant, event)).unzip();
    let numbers: Vec<_> = (0..variants.len()).collect();
    let body = quote! {
        fn plan(schema: &#home::Schema) -> ::core::option::Option<#home::EventPlan> {
            #(if let ::core::option::Option::Some(plan) = <#types as #home::ReadEvent<#lifetime>>::plan(schema) {
                return ::core::option::Option::Some(plan.of_variant(#numbers));
            })*
            ::core::option::Option::None
        }

        #[inline]
        fn read(
            event: &#home::Event<#lifetime>,
            plan: &#home::EventPlan,
        ) -> ::core::result::Result<Self, #home::Mismatch> {
            match plan.variant() {
                #(::core::option::Option::Some((#numbers, plan)) => {
                    #home::ReadEvent::read(event, plan).map(Self::#variants)
                })*
                _ => ::core::result::Result::Err(#home::Mismatch::of_plan(event)),
            }
        }
    };
    read_impl(home, ident, &arguments, &lifetime, &body)
}

fn read_impl(
    home: &Path,
    ident: &Ident,
    arguments: &TokenStream,
    lifetime: &Lifetime,
    body: &TokenStream,
) -> TokenStream {
    quote! {
        #[automatically_derived]
        impl<#lifetime> #home::ReadEvent<#lifetime> for #ident #arguments {
            fn read_type() -> &'static #home::ReadType {
                static TYPE: #home::ReadType = #home::ReadType::new();
                &TYPE
            }

            #body
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error message, and the source line from the error's column on.
    fn refusal(derive: fn(DeriveInput) -> Result<()>, source: &str) -> (String, String) {
        let error = derive(syn::parse_str(source).unwrap()).unwrap_err();
        let start = error.span().start();
        let line = source.lines().nth(start.line - 1).unwrap_or_default();
        (error.to_string(), line[start.column..].to_owned())
    }

    fn event(input: DeriveInput) -> Result<()> {
        EventStruct::new(input).map(drop)
    }

    fn choice(input: DeriveInput) -> Result<()> {
        Choice::new(input).map(drop)
    }

    #[track_caller]
    fn assert_refused(source: &str, message: &str, place: &str) {
        let (found, at) = refusal(event, source);
        assert_eq!(found, message);
        assert!(at.starts_with(place), "{at:?}");
    }

    const AT: &str = "#[traceevent(timestamp)] at: u64";

    #[test]
    fn attributes_that_nobody_knows_are_refused_where_they_stand() {
        assert_refused(
            &format!("#[traceevent(nmae = \"x\")] struct E {{ {AT} }}"),
            "unknown event attribute: expected name, wire_slot or crate",
            "nmae",
        );
        assert_refused(
            &format!("struct E {{ {AT}, #[traceevent(units = \"ns\")] v: u64 }}"),
            "unknown field attribute: expected timestamp, pooled, name, unit, kind or role",
            "units",
        );
        assert_refused(
            &format!("struct E {{ {AT}, #[traceevent(unit = \"nss\")] v: u64 }}"),
            "expected one of ns, us, ms, s, bytes, found \"nss\"",
            "\"nss\"",
        );
        assert_refused(
            &format!("struct E {{ {AT}, #[traceevent(kind = \"histogram\")] v: u64 }}"),
            "expected one of gauge, counter, updown-counter, found \"histogram\"",
            "\"histogram\"",
        );
        assert_refused(
            &format!("struct E {{ {AT}, #[traceevent(role = \"span.naem\")] v: u64 }}"),
            "expected one of span.start, span.duration, span.name, thread_id, tokio.task_id, \
             tokio.worker_id, found \"span.naem\"",
            "\"span.naem\"",
        );
        assert_refused(
            &format!("struct E {{ {AT}, #[traceevent(unit = \"ns\", unit = \"us\")] v: u64 }}"),
            "duplicate attribute",
            "unit = \"us\"",
        );
        assert_refused(
            &format!("#[traceevent(wire_slot, wire_slot)] struct E {{ {AT} }}"),
            "duplicate attribute",
            "wire_slot)",
        );
    }

    #[test]
    fn a_timestamp_has_to_be_there_once_and_plain() {
        let missing = "missing timestamp: expected one field with #[traceevent(timestamp)]";
        assert_refused("struct E { v: u64 }", missing, "E {");
        assert_refused(
            &format!("struct E {{ {AT}, #[traceevent(timestamp)] v: u64 }}"),
            "duplicate timestamp: expected one field with #[traceevent(timestamp)]",
            "#[traceevent(timestamp)] v",
        );
        assert_refused(
            "struct E { #[traceevent(timestamp)] at: Duration }",
            "invalid type of the timestamp: expected u64, in nanoseconds",
            "#[traceevent(timestamp)] at",
        );
        assert_refused(
            "struct E { #[traceevent(timestamp, unit = \"us\")] at: u64 }",
            "a timestamp takes no other attributes: it is stored before the fields, in nanoseconds",
            "#[traceevent(timestamp",
        );
    }

    #[test]
    fn names_have_to_be_different_and_short() {
        assert_refused(
            &format!("struct E {{ {AT}, a: u8, #[traceevent(name = \"a\")] b: u8 }}"),
            "duplicate field name \"a\"",
            "\"a\"",
        );
        let long = "x".repeat(65_536);
        assert_refused(
            &format!("struct E {{ {AT}, #[traceevent(name = \"{long}\")] b: u8 }}"),
            "name too long: expected at most 65535 bytes",
            "\"x",
        );
    }

    #[test]
    fn what_is_no_plain_struct_is_refused() {
        let generics = "expected at most one lifetime and no other generics";
        assert_refused(&format!("struct E<T> {{ {AT}, v: T }}"), generics, "T>");
        assert_refused(&format!("struct E<'a, 'b> {{ {AT} }}"), generics, "'b");
        assert_refused(&format!("struct E<const N: usize> {{ {AT} }}"), generics, "const");
        assert_refused(
            &format!("struct E<'a> where 'a: 'static {{ {AT} }}"),
            "expected no where clause",
            "where",
        );
        assert_refused("struct E(u64);", "expected a struct with named fields", "E(");
        assert_refused("struct E;", "expected a struct with named fields", "E;");
        assert_refused("union E { a: u64 }", "expected a struct", "union");
        assert_refused(
            "enum E { A(B) }",
            "expected a struct; use #[derive(ReadEvent)] to read an enum of events",
            "enum",
        );
    }

    #[test]
    fn an_enum_of_something_else_than_events_is_refused() {
        let variant = "expected a variant that holds one event: Variant(Event)";
        for source in ["enum E { A }", "enum E { A(B, C) }", "enum E { A { b: B } }"] {
            assert_eq!(refusal(choice, source).0, variant, "{source}");
        }
        let message = "an enum takes no name and no wire_slot: put them on the structs of its variants";
        assert_eq!(refusal(choice, "#[traceevent(wire_slot)] enum E { A(B) }").0, message);
    }

    #[test]
    fn what_borrows_for_static_is_written_only() {
        let source = quote! { struct E { #[traceevent(timestamp)] at: u64, v: Option<&'static str> } };
        let derived = trace_event(source.clone(), "::home").to_string();
        assert!(derived.contains("TraceEvent") && !derived.contains("ReadEvent"), "{derived}");
        assert!(read_event(source, "::home").to_string().contains("not for 'static"));
        let source = quote! { struct E<'a> { #[traceevent(timestamp)] at: u64, v: &'a str } };
        assert!(trace_event(source, "::home").to_string().contains("ReadEvent"));
    }

    #[test]
    fn a_refusal_becomes_a_compile_error() {
        let tokens = trace_event(quote! { struct E { v: u64 } }, "::home").to_string();
        assert!(tokens.contains("compile_error") && tokens.contains("missing timestamp"), "{tokens}");
        let tokens = read_event(quote! { enum E { A } }, "::home").to_string();
        assert!(tokens.contains("compile_error"), "{tokens}");
    }
}
