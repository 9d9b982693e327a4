//! `rbt`: the rules of its specification, reli's behaviour, and our own.

mod allocations;
mod build;
mod chunks;
mod damage;
mod gzip;
mod model;
mod page;
mod properties;
mod recovery;
mod reference;
mod samples;
mod segmented;
mod specification;
mod writer;

use std::fmt::Write as _;

use borehole_formats::rbt::{
    DefinedFrame, Definitions, FunctionName, Reader, Record, StoredSample, StringIndex,
};
use borehole_formats::{Error, ReadOptions, Recovery};

/// The records of a reader, each as a line of text:
///
/// ```text
/// segment 10000us
/// pid = 7
/// main /index.php:3;App\Db::query /Db.php:42 [ZEND_ADD] x5 pid 7 +10us @30us {query=SELECT 1}
/// ```
struct Reading {
    lines: Vec<String>,
    error: Option<Error>,
    recovery: Recovery,
}

impl Reading {
    /// The lines of samples.
    fn samples(&self) -> Vec<&str> {
        let is_sample = |line: &&str| !line.starts_with("segment ") && !line.contains(" = ");
        self.lines.iter().map(String::as_str).filter(is_sample).collect()
    }

    fn warnings(&self) -> Vec<&str> {
        self.recovery.warnings.iter().map(|warning| &*warning.message).collect()
    }

    /// The error's text and place.
    fn failure(&self) -> (&str, u64) {
        let error = self.error.as_ref().unwrap_or_else(|| panic!("no error: {:?}", self.lines));
        (error.message(), error.offset().unwrap())
    }
}

fn read_with(bytes: &[u8], options: ReadOptions) -> Reading {
    let mut reader = Reader::with_options(bytes, options);
    let mut lines = Vec::new();
    let error = loop {
        match reader.next_record() {
            Ok(Some(record)) => lines.push(line(&record)),
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    assert!(matches!(reader.next_record(), Ok(None)), "the reader continues after the end");
    Reading { lines, error, recovery: reader.into_recovery() }
}

/// Reads strictly.
fn read(bytes: &[u8]) -> Reading {
    read_with(bytes, ReadOptions::default())
}

/// Reads past damage, which never is an error.
fn recover(bytes: &[u8]) -> Reading {
    let reading = read_with(bytes, ReadOptions::lenient());
    assert!(reading.error.is_none(), "{:?}", reading.error);
    reading
}

/// The samples of a file without warnings.
fn samples(bytes: &[u8]) -> Vec<String> {
    let reading = read(bytes);
    assert!(
        reading.error.is_none() && reading.recovery.is_clean(),
        "{:?} {:?}",
        reading.error,
        reading.recovery
    );
    reading.samples().into_iter().map(str::to_owned).collect()
}

fn line(record: &Record<'_>) -> String {
    match record {
        Record::Segment(start) => {
            let clock = if start.header.has_timestamps { "timed " } else { "" };
            format!("segment {clock}{}us", start.header.period_us)
        }
        Record::Metadata { key, value } => format!("{} = {}", key.escape_ascii(), value.escape_ascii()),
        Record::Sample(sample) => sample_line(sample),
    }
}

fn sample_line(sample: &StoredSample<'_>) -> String {
    let definitions = sample.definitions;
    let frames = definitions.frames_leaf_first(sample.stack);
    let mut frames: Vec<_> = frames.map(|frame| frame_text(definitions.frame(frame), definitions)).collect();
    frames.reverse();
    let mut line = frames.join(";");
    if sample.count != 1 {
        let _ = write!(line, " x{}", sample.count);
    }
    for (before, number, after) in
        [(" pid ", sample.pid, ""), (" +", sample.delta_us, "us"), (" @", sample.accumulated_us, "us")]
    {
        if let Some(number) = number {
            let _ = write!(line, "{before}{number}{after}");
        }
    }
    if let Some(pairs) = sample.annotations {
        let text = |string| definitions.string(string).escape_ascii();
        let pairs: Vec<_> =
            pairs.iter().map(|&(key, value)| format!("{}={}", text(key), text(value))).collect();
        let _ = write!(line, " {{{}}}", pairs.join(","));
    }
    line
}

fn frame_text(frame: &DefinedFrame, definitions: &Definitions) -> String {
    let text = |string: StringIndex| definitions.string(string).escape_ascii().to_string();
    match *frame {
        DefinedFrame::Native { symbol, module, offset } => {
            format!("{}!{}+{offset}", text(module), text(symbol))
        }
        DefinedFrame::Php { namespace, class, method, file, line, opcode } => {
            let [namespace, class, method] = [namespace, class, method].map(|part| definitions.string(part));
            let name = FunctionName { namespace, class, method }.join();
            let opcode = opcode.map_or(String::new(), |opcode| format!(" [{}]", text(opcode)));
            format!("{} {}:{line}{opcode}", String::from_utf8_lossy(&name), text(file))
        }
    }
}
