//! The text of a callgrind file.
//!
//! Source: Valgrind 3.19, manual, "Callgrind Format Specification", and what its `callgrind_annotate` does.

use std::io::{self, Write};

/// The name that the format uses for what is not known.
pub(super) const UNKNOWN: &[u8] = b"???";

/// The costs of a line or a call.
#[derive(Clone, Copy, Default)]
pub(super) struct Cost {
    pub(super) samples: u64,
    pub(super) wall_ns: u64,
}

impl Cost {
    pub(super) const fn add(&mut self, other: Self) {
        self.samples = self.samples.saturating_add(other.samples);
        self.wall_ns = self.wall_ns.saturating_add(other.wall_ns);
    }
}

/// Which costs a file has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Events {
    Samples,
    SamplesAndWallTime,
}

/// A string and its number in the file.
#[derive(Clone, Copy)]
pub(super) struct Name<'a> {
    pub(super) number: u32,
    pub(super) text: &'a [u8],
}

/// Writes the lines of a file. Names are written out at their first use and are numbers after it.
pub(super) struct Writer<W> {
    output: W,
    events: Events,
    written_files: Vec<bool>,
    written_functions: Vec<bool>,
}

impl<W: Write> Writer<W> {
    pub(super) fn new(output: W, events: Events) -> Self {
        Self { output, events, written_files: Vec::new(), written_functions: Vec::new() }
    }

    pub(super) fn header(&mut self, total: Cost) -> io::Result<()> {
        let output = &mut self.output;
        writeln!(output, "# callgrind format\nversion: 1\ncreator: borehole {}", env!("CARGO_PKG_VERSION"))?;
        writeln!(output, "desc: Calls: not counted by a sampling profiler; 1 stands for at least one")?;
        writeln!(output, "positions: line")?;
        match self.events {
            Events::Samples => writeln!(output, "events: Samples")?,
            Events::SamplesAndWallTime => {
                writeln!(output, "event: Wall_ns : wall time in nanoseconds\nevents: Samples Wall_ns")?;
            }
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

    /// A call from `line` of the function that was begun last.
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
            Events::Samples => writeln!(self.output, " {}", cost.samples),
            Events::SamplesAndWallTime => writeln!(self.output, " {} {}", cost.samples, cost.wall_ns),
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
