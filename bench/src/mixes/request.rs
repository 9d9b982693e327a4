//! Events of a program's own: requests with text in them, and events whose fields are only known when they are
//! written.

use anyhow::Result;
use borehole_trc::{self as trc, Schema, ValueDef, Writer};
use dial9_trace_format::encoder::{Encoder, Schema as ReferenceSchema};
use dial9_trace_format::schema::FieldDef;
use dial9_trace_format::types::FieldType;
use dial9_trace_format::{FieldValue, TraceEvent};

use super::time_ns;

#[derive(TraceEvent, trc::TraceEvent)]
#[traceevent(wire_slot)]
struct Request<'a> {
    #[traceevent(timestamp)]
    timestamp_ns: u64,
    method: &'a str,
    path: &'a str,
    user_agent: &'a str,
    status: u16,
    duration_us: u64,
    sent_bytes: u64,
}

const PATHS: [&str; 2] = ["/api/v1/orders/recent", "/api/v1/orders/search"];
const USER_AGENT: &str = "load-generator/4.2 (linux)";

fn path(number: u64) -> &'static str {
    PATHS[usize::from(number.to_le_bytes()[0] % 2)]
}

impl Request<'static> {
    fn new(number: u64) -> Self {
        Self {
            timestamp_ns: time_ns(number),
            method: "GET",
            path: path(number),
            user_agent: USER_AGENT,
            status: 200,
            duration_us: 900 + number % 9000,
            sent_bytes: 20_000 + number % 7,
        }
    }
}

pub(super) fn typed(writer: &mut Writer<Vec<u8>>, events: u64) -> Result<()> {
    (0..events).try_for_each(|number| Ok(writer.write(&Request::new(number))?))
}

pub(super) fn typed_reference(encoder: &mut Encoder, events: u64) -> Result<()> {
    (0..events).try_for_each(|number| Ok(encoder.write(&Request::new(number))?))
}

/// A number that both sides write as a float.
fn ratio(number: u64) -> f64 {
    number as f64 / 3.0
}

pub(super) fn dynamic(writer: &mut Writer<Vec<u8>>, events: u64) -> Result<()> {
    use trc::FieldKind::{Bool, F64, I64, String, Varint};
    let fields = [
        ("id", Varint),
        ("size", Varint),
        ("name", String),
        ("cached", Bool),
        ("ratio", F64),
        ("change", I64),
    ];
    let measured =
        Schema::new("Measured", fields.map(|(name, kind)| (name, trc::FieldType::required(kind))))?;
    for number in 0..events {
        let values = [
            ValueDef::Unsigned(number % 10_000),
            ValueDef::Unsigned(number % 100),
            ValueDef::Text("cache.hit"),
            ValueDef::Bool(number % 2 == 0),
            ValueDef::Float(ratio(number)),
            ValueDef::Signed(-5),
        ];
        writer.write_event(&measured, time_ns(number), &values)?;
    }
    Ok(())
}

pub(super) fn dynamic_reference(encoder: &mut Encoder, events: u64) -> Result<()> {
    let fields = [
        FieldDef::new("id", FieldType::Varint),
        FieldDef::new("size", FieldType::Varint),
        FieldDef::new("name", FieldType::String),
        FieldDef::new("cached", FieldType::Bool),
        FieldDef::new("ratio", FieldType::F64),
        FieldDef::new("change", FieldType::I64),
    ];
    let measured = ReferenceSchema::new("Measured", fields.to_vec());
    for number in 0..events {
        let values = [
            FieldValue::Varint(number % 10_000),
            FieldValue::Varint(number % 100),
            FieldValue::string("cache.hit"),
            FieldValue::Bool(number % 2 == 0),
            FieldValue::F64(ratio(number)),
            FieldValue::I64(-5),
        ];
        encoder.write_event(&measured, time_ns(number), &values)?;
    }
    Ok(())
}
