//! Imports stacks into the model.

use std::io::BufRead;
use std::ops::ControlFlow;

use borehole_model::{Frame, FrameId, ProfileSink, Recovery, Sample, Segment, TableFull, Tables};

use super::NAME;
use super::read::{RecordingHeader, RubyTrace, RubyTraceFrame, SystemTime, VERSION_LINE};
use crate::lines::import::{LineFault, LineOutput, LineParser};
use crate::lines::json::JsonLineFault;
use crate::lines::text::{excerpt, head_of};
use crate::{Error, ErrorKind, Position, ReadError, ReadOptions};

/// The bytes from the start of an input that hold the version and the header.
const HEAD_BYTES: usize = 4 << 10;

/// Reads a raw recording of rbspy: a sample for each line, with its process, thread and time. The period is that of the header.
///
/// The last line counts with or without a line feed after it.
///
/// # Errors
/// If the version is not 2, a line is no stack and damage is not skipped, a limit is reached, the input cannot be read, or the sink
/// fails.
///
/// # Examples
///
/// ```
/// use borehole_formats::{ReadOptions, rbspy};
/// use borehole_model::{Count, Tables};
///
/// let text = br#"rbspy02
/// {"sample_rate":100,"rbspy_version":"0.55.0","start_time":null}
/// {"trace":[{"name":"order","relative_path":"shop.rb","absolute_path":"/shop.rb","lineno":3}],"pid":7,"thread_id":8,"time":null}
/// "#;
/// let mut count = Count::default();
/// let recovery = rbspy::import(&text[..], &ReadOptions::default(), &mut Tables::default(), &mut count)?;
/// assert_eq!(recovery.samples, 1);
/// # Ok::<(), borehole_formats::ReadError>(())
/// ```
pub fn import(
    input: impl BufRead,
    options: &ReadOptions,
    tables: &mut Tables,
    sink: &mut dyn ProfileSink,
) -> Result<Recovery, ReadError> {
    let failed = |error| Error::io(NAME, Position::Line(1), error);
    let (head, rest) = head_of(input, HEAD_BYTES).map_err(failed)?;
    let segment = segment(&head, tables)?;
    let output = LineOutput::begin(segment, options, tables, sink)?;
    output.import(std::io::Read::chain(&head[..], rest), &mut RubyTraces { tables, lines: 0 })
}

/// The segment by the version and the header; without a header, one that has times.
fn segment(head: &[u8], tables: &mut Tables) -> Result<Segment, ReadError> {
    let mut lines = head.split(|&byte| byte == b'\n');
    let version = lines.next().unwrap_or_default();
    if version != VERSION_LINE {
        let message = format!(
            "unsupported version: expected {:?}, found {:?}",
            excerpt(VERSION_LINE),
            excerpt(version)
        );
        return Err(Error::new(ErrorKind::Unsupported, NAME, Position::Line(1), message).into());
    }
    let header: RecordingHeader<'_> =
        lines.next().and_then(|line| serde_json::from_slice(line).ok()).unwrap_or_default();
    let mut metadata = Vec::new();
    if let Some(version) = &header.rbspy_version {
        let key = tables.intern_string(b"rbspy_version")?;
        metadata.push((key, tables.intern_string(version.as_bytes())?));
    }
    let rate = header.sample_rate.filter(|&rate| rate > 0);
    Ok(Segment {
        format: NAME,
        period_ns: rate.map(|rate| 1_000_000_000 / u64::from(rate)),
        has_times: true,
        is_ordered: true,
        // Times are those of the system's clock.
        start_unix_ns: Some(0),
        began_ns: header.start_time.map(SystemTime::unix_ns),
        metadata,
        ..Segment::default()
    })
}

/// The stacks, line by line.
struct RubyTraces<'a> {
    tables: &'a mut Tables,
    lines: u64,
}

impl LineParser for RubyTraces<'_> {
    fn line(&mut self, line: &[u8], output: &mut LineOutput<'_>) -> Result<ControlFlow<()>, LineFault> {
        self.lines += 1;
        // The version and the header.
        if self.lines <= 2 || line.is_empty() {
            return Ok(ControlFlow::Continue(()));
        }
        let trace: RubyTrace<'_> =
            serde_json::from_slice(line).map_err(|error| match JsonLineFault::parse(&error, line) {
                JsonLineFault::Invalid { message, .. } => LineFault::Invalid(message),
                JsonLineFault::Read(error) => LineFault::Read(error),
            })?;
        let mut stack = None;
        for frame in trace.trace.iter().rev() {
            let frame = intern(frame, self.tables)?;
            stack = Some(self.tables.intern_stack(stack, frame)?);
        }
        let sample = Sample {
            stack,
            count: 1,
            time_ns: trace.time.map(SystemTime::unix_ns),
            process: trace.pid,
            thread: trace.thread_id,
            ..Sample::default()
        };
        Ok(output.sample(self.tables, &sample)?)
    }

    fn note(&mut self, _number: u64) -> Option<String> {
        None
    }
}

fn intern(frame: &RubyTraceFrame<'_>, tables: &mut Tables) -> Result<FrameId, TableFull> {
    let function = tables.intern_string(frame.name.as_bytes())?;
    let file = frame.file().map(|file| tables.intern_string(file.as_bytes())).transpose()?;
    let line = frame.lineno.filter(|&line| line > 0);
    tables.intern_frame(&Frame { file, line, ..Frame::named(function) })
}
