//! Events of a program's own types, of which the newer one has a field that older traces lack.

#![forbid(unsafe_code)]

use std::error::Error;

use borehole::trc::{Reader, TraceEvent, TypedEvents, Writer};

#[derive(TraceEvent)]
#[traceevent(name = "Request")]
struct OldRequest<'a> {
    #[traceevent(timestamp)]
    at_ns: u64,
    #[traceevent(pooled)]
    route: &'a str,
}

#[derive(TraceEvent, Debug, PartialEq)]
struct Request<'a> {
    #[traceevent(timestamp)]
    at_ns: u64,
    #[traceevent(pooled)]
    route: &'a str,
    status: Option<u16>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut writer = Writer::new(Vec::new());
    writer.write(&OldRequest { at_ns: 1, route: "/carts" })?;
    writer.write(&Request { at_ns: 2, route: "/carts", status: Some(200) })?;
    let trace = writer.finish()?;
    let (mut reader, mut typed) = (Reader::new(trace.as_slice()), TypedEvents::default());
    while let Some(event) = reader.next_event()? {
        if let Some(request) = typed.read::<Request<'_>>(&event)? {
            println!("{request:?}");
        }
    }
    Ok(())
}
