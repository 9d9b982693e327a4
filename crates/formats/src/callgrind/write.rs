//! The text of a callgrind file.
//!
//! Source: Valgrind 3.19, manual, "Callgrind Format Specification", and the behaviour of its `callgrind_annotate`.

use std::io::{self, Write};

/// The format's name for an unknown value.
pub(super) const UNKNOWN: &[u8] = b"???";

/// The costs of a line or a call.
#[derive(Clone, Copy, Default)]
pub(super) struct Cost {
    /// Samples, or any other count.
    pub(super) count: u64,
    pub(super) time_ns: u64,
}

/// The costs that a file has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CostEvents {
    Samples,
    /// Also the time that samples stand for, of the mode with this name.
    SamplesAndTime(&'static str),
    /// Values instead of samples.
    Values {
        kind: String,
        unit: String,
    },
}

impl CostEvents {
    /// The description of an event and its name.
    fn described(&self) -> Option<(String, String)> {
        match self {
            Self::Samples => None,
            Self::SamplesAndTime(mode) => {
                let name = format!("{}_ns", capitalized(mode));
                let line = format!("event: {name} : {mode} time in nanoseconds");
                Some((line, name))
            }
            Self::Values { kind, unit } => {
                let name = capitalized(&format!("{kind}_{unit}"));
                let plain = |text: &str| text.replace(char::is_control, " ");
                Some((format!("event: {name} : {} in {}", plain(kind), plain(unit)), name))
            }
        }
    }
}

/// Converts a name to the form of events: letters, digits and underscores, the first a capital letter.
fn capitalized(name: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
    let mut name: String = name.chars().map(plain).collect();
    match name.get_mut(..1) {
        Some(first) => first.make_ascii_uppercase(),
        None => name.push('_'),
    }
    name
}

/// A string and its number in the file.
#[derive(Clone, Copy)]
pub(super) struct Name<'a> {
    pub(super) number: u32,
    pub(super) text: &'a [u8],
}

/// Writes the lines of a file. Names are written in full once and by number afterwards.
pub(super) struct Writer<W> {
    output: W,
    events: CostEvents,
    written_files: Vec<bool>,
    written_functions: Vec<bool>,
}

impl<W: Write> Writer<W> {
    pub(super) fn new(output: W, events: CostEvents) -> Self {
        Self { output, events, written_files: Vec::new(), written_functions: Vec::new() }
    }

    pub(super) fn header(&mut self, total: Cost) -> io::Result<()> {
        let output = &mut self.output;
        writeln!(output, "# callgrind format\nversion: 1\ncreator: borehole {}", env!("CARGO_PKG_VERSION"))?;
        writeln!(output, "desc: Calls: not counted by a sampling profiler; 1 stands for at least one")?;
        writeln!(output, "positions: line")?;
        match (&self.events, self.events.described()) {
            (CostEvents::Values { .. }, Some((line, name))) => writeln!(output, "{line}\nevents: {name}")?,
            (_, Some((line, name))) => writeln!(output, "{line}\nevents: Samples {name}")?,
            (_, None) => writeln!(output, "events: Samples")?,
        }
        self.output.write_all(b"summary:")?;
        self.costs(total)
    }

    /// Begins a function: its lines and calls follow.
    pub(super) fn function(&mut self, file: Name<'_>, function: Name<'_>) -> io::Result<()> {
        self.output.write_all(b"\n")?;
        self.file("fl=", file)?;
        self.function_name("fn=", function)
    }

    pub(super) fn line(&mut self, line: u64, cost: Cost) -> io::Result<()> {
        write!(self.output, "{line}")?;
        self.costs(cost)
    }

    /// Writes a call from `line` of the function that was begun last.
    pub(super) fn call(
        &mut self,
        file: Name<'_>,
        function: Name<'_>,
        line: u64,
        cost: Cost,
    ) -> io::Result<()> {
        self.file("cfi=", file)?;
        self.function_name("cfn=", function)?;
        // The second number is the line at which the callee begins.
        writeln!(self.output, "calls=1 0")?;
        self.line(line, cost)
    }

    pub(super) fn end(&mut self, total: Cost) -> io::Result<()> {
        self.output.write_all(b"\ntotals:")?;
        self.costs(total)?;
        self.output.flush()
    }

    fn costs(&mut self, cost: Cost) -> io::Result<()> {
        match self.events {
            CostEvents::Samples | CostEvents::Values { .. } => writeln!(self.output, " {}", cost.count),
            CostEvents::SamplesAndTime(_) => writeln!(self.output, " {} {}", cost.count, cost.time_ns),
        }
    }

    fn file(&mut self, key: &str, name: Name<'_>) -> io::Result<()> {
        write_name(&mut self.output, key, name, &mut self.written_files)
    }

    fn function_name(&mut self, key: &str, name: Name<'_>) -> io::Result<()> {
        write_name(&mut self.output, key, name, &mut self.written_functions)
    }
}

fn write_name(
    output: &mut impl Write,
    key: &str,
    Name { number, text }: Name<'_>,
    written: &mut Vec<bool>,
) -> io::Result<()> {
    let index = number as usize;
    if written.len() <= index {
        written.resize(index + 1, false);
    }
    write!(output, "{key}({number})")?;
    if !std::mem::replace(&mut written[index], true) {
        output.write_all(b" ")?;
        output.write_all(text)?;
    }
    output.write_all(b"\n")
}
