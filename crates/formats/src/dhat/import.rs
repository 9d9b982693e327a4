//! Imports a document into the model.

use std::io::BufRead;
use std::marker::PhantomData;

use borehole_model::{
    Context, Frame, FrameId, Measure, NativeFrame, ProfileSink, Recovery, Sample, Segment, TableFull, Tables,
    ValueType,
};

use super::NAME;
use super::read::{self, DhatDocument, FramePlace, ProgramPoint, VALUE_BYTES, VERSION};
use crate::documents::json::{self, JsonMemory};
use crate::documents::whole::DocumentDamage;
use crate::{Error, ErrorKind, Position, ReadError, ReadOptions};

/// The value types of all profiles.
const TOTALS: [(&str, &str); 2] = [("alloc_objects", "count"), ("alloc_space", "bytes")];

/// The value types of profiles with lifetimes: at the end, and when the heap was largest.
const LIFETIMES: [(&str, &str); 4] = [
    ("inuse_objects", "count"),
    ("inuse_space", "bytes"),
    ("peak_objects", "count"),
    ("peak_space", "bytes"),
];

/// The value types of profiles with accesses.
const ACCESSES: [(&str, &str); 2] = [("read", "bytes"), ("written", "bytes")];

/// Reads a profile of DHAT: a sample for each stack that allocated, with the blocks and bytes that it allocated, those in use at the
/// end and at the peak, and those that were read and written. `alloc_space/bytes` is the default.
///
/// # Errors
/// If the input is not such a profile or exceeds the limit, or the sink fails. Positions are lines.
///
/// # Examples
///
/// ```
/// use borehole_formats::{ReadOptions, dhat};
/// use borehole_model::{Count, Tables};
///
/// let text = br#"{"dhatFileVersion":2,"mode":"heap","bklt":true,"bkacc":false,
///     "pps":[{"tb":64,"tbk":1,"fs":[1]}],"ftbl":["[root]","0x1: main (a.c:3)"]}"#;
/// let mut count = Count::default();
/// let recovery = dhat::import(&text[..], &ReadOptions::default(), &mut Tables::default(), &mut count)?;
/// assert_eq!(recovery.samples, 1);
/// # Ok::<(), borehole_formats::ReadError>(())
/// ```
pub fn import(
    input: impl BufRead,
    options: &ReadOptions,
    tables: &mut Tables,
    sink: &mut dyn ProfileSink,
) -> Result<Recovery, ReadError> {
    let mut damage = DocumentDamage::new(options);
    let memory = JsonMemory::of_texts(options.limits, VALUE_BYTES);
    let read = json::parse(NAME, input, &memory, PhantomData::<DhatDocument>);
    let known = read.and_then(|document| {
        let unsupported = |found: u64| {
            let message = format!("unsupported version: expected {VERSION}, found {found}");
            Error::new(ErrorKind::Unsupported, NAME, Position::Whole, message)
        };
        if document.version == VERSION { Ok(document) } else { Err(unsupported(document.version)) }
    });
    match known {
        Ok(document) => deliver(&document, &mut damage, tables, sink)?,
        Err(error) => damage.meet(error, 0)?,
    }
    damage.finish(sink)
}

fn deliver(
    document: &DhatDocument,
    damage: &mut DocumentDamage,
    tables: &mut Tables,
    sink: &mut dyn ProfileSink,
) -> Result<(), ReadError> {
    let frames: Vec<_> = document.frames.iter().map(|text| intern(text, tables)).collect::<Result<_, _>>()?;
    let segment = segment(document, tables)?;
    sink.segment(Context { tables, segment: &segment })?;
    damage.recovery.segments += 1;
    let mut values = Vec::new();
    for (index, point) in document.points.iter().enumerate() {
        let mut stack = None;
        for row in point.frames_leaf_first.iter().rev() {
            let frame = usize::try_from(*row).ok().and_then(|row| frames.get(row));
            match frame {
                Some(&Some(frame)) => stack = Some(tables.intern_stack(stack, frame)?),
                Some(None) => {}
                None => {
                    let message = format!("unknown frame {row} of program point {index}");
                    damage.meet(Error::malformed(NAME, Position::Whole, message), 0)?;
                }
            }
        }
        put_values(document, point, &mut values);
        let sample = Sample { stack, count: 1, values: &values, ..Sample::default() };
        damage.recovery.samples += 1;
        if sink.sample(Context { tables, segment: &segment }, &sample)?.is_break() {
            damage.recovery.stopped = true;
            break;
        }
    }
    Ok(())
}

fn segment(document: &DhatDocument, tables: &mut Tables) -> Result<Segment, TableFull> {
    let mut metadata = Vec::new();
    for (key, text) in [("mode", Some(&document.mode)), ("command", document.command.as_ref())] {
        if let Some(text) = text {
            metadata.push((tables.intern_string(key.as_bytes())?, tables.intern_string(text.as_bytes())?));
        }
    }
    let lifetimes = document.has_lifetimes.then_some(LIFETIMES).into_iter().flatten();
    let accesses = document.has_accesses.then_some(ACCESSES).into_iter().flatten();
    let types = TOTALS.into_iter().chain(lifetimes).chain(accesses);
    Ok(Segment {
        format: NAME,
        metadata,
        process: document.process,
        value_types: types.map(|(kind, unit)| ValueType::new(kind, unit)).collect(),
        default_measure: Some(Measure::Value(1)),
        is_uncounted: true,
        ..Segment::default()
    })
}

/// The values of a program point, in the order of the value types.
fn put_values(document: &DhatDocument, point: &ProgramPoint, values: &mut Vec<i64>) {
    let whole = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    values.clear();
    values.extend([point.total_blocks, point.total_bytes].map(whole));
    if document.has_lifetimes {
        values.extend([point.end_blocks, point.end_bytes, point.peak_blocks, point.peak_bytes].map(whole));
    }
    if document.has_accesses {
        values.extend([point.read_bytes, point.written_bytes].map(whole));
    }
}

/// The frame of a row of the table; `None` for the root.
fn intern(text: &str, tables: &mut Tables) -> Result<Option<FrameId>, TableFull> {
    if text == read::ROOT {
        return Ok(None);
    }
    let read::FrameText { function, place } = read::frame(text);
    let mut frame = Frame::named(tables.intern_string(function.as_bytes())?);
    match place {
        FramePlace::Line(file, line) => {
            frame.file = Some(tables.intern_string(file.as_bytes())?);
            frame.line = (line > 0).then_some(line);
        }
        FramePlace::Module(module) => {
            let module = tables.intern_string(module.as_bytes())?;
            frame.native = Some(NativeFrame { module, offset: None, file_offset: None });
        }
        FramePlace::Unknown => {}
    }
    tables.intern_frame(&frame).map(Some)
}
