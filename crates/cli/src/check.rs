//! `borehole check`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use borehole::model::{Count, Tables};
use borehole::{Error, Format, Recovery, Warning};
use clap::Args;
use serde_json::json;

use crate::cell::printable;
use crate::exit::Exit;
use crate::inputs::{self, Reading};
use crate::interrupt::Interruptible;
use crate::messages;
use crate::outputs::stdout_error;

/// What to check.
#[derive(Args, Clone, Debug)]
#[command(mut_arg("lenient", |arg| arg.hide(true)))]
pub(crate) struct CheckArgs {
    /// Files to check, one after the other; `-`, or none, is standard input
    #[arg(value_name = "INPUT")]
    paths: Vec<PathBuf>,

    #[command(flatten)]
    reading: Reading,

    /// Print one JSON object a file
    #[arg(long)]
    json: bool,
}

/// What was found in one file.
struct Verdict {
    name: String,
    format: Format,
    /// How many samples can be read.
    samples: u64,
    /// How many events, of a trace of events.
    events: u64,
    findings: Vec<Warning>,
    /// How many more there are.
    more: u64,
    lost_bytes: u64,
}

/// Checks every input, and ends as the worst of them does.
pub(crate) fn run(args: &CheckArgs) -> anyhow::Result<Exit> {
    let mut out = io::stdout().lock();
    let mut worst = Exit::Done;
    for path in inputs::names(&args.paths) {
        let exit = match check(path, &args.reading) {
            Ok(verdict) => {
                let printed = if args.json { object(&verdict, &mut out) } else { text(&verdict, &mut out) };
                printed.map_err(stdout_error)?;
                if verdict.is_sound() { Exit::Done } else { Exit::Damaged }
            }
            Err(error) => messages::failure(&error),
        };
        worst = worst.and(exit);
    }
    Ok(worst)
}

/// Reads strictly, for what is inconsistent; and where that ends early on, past the damage, for the rest of it.
/// A pipe can be read once only: then strict reading is all there is.
fn check(path: &Path, reading: &Reading) -> anyhow::Result<Verdict> {
    let strictly = Reading { lenient: false, ..reading.clone() };
    let input = match strictly.open(path) {
        Ok(input) => input,
        Err(error) => return empty(error.downcast()?),
    };
    let (name, format) = (input.name().to_owned(), input.format());
    // Whatever reads it takes it for a recording of nothing; but it is also what a full disk leaves of one.
    let nothing = (input.is_empty() && reading.from.is_none()).then(|| nothing_of(format));
    let mut count = Count::default();
    let error = match input.read_into(&mut Tables::default(), &mut Interruptible(&mut count)) {
        Ok(recovery) => return Ok(Verdict::of(name, format, recovery, nothing)),
        // A file that cannot be read is not damaged for that.
        Err(Error::Read { source, .. }) if !source.is_limit() && source.raw_os_error().is_none() => source,
        Err(error) => return empty(error),
    };
    let first = Warning::new(error.message()).at(error.offset());
    let mut recovery = Recovery { samples: count.samples, events: count.events, ..Recovery::default() };
    if inputs::is_file(path) {
        let input = Reading { lenient: true, ..reading.clone() }.open(path)?;
        recovery = input.read_into(&mut Tables::default(), &mut Interruptible(&mut Count::default()))?;
    }
    Ok(Verdict::of(name, format, recovery, Some(first)))
}

/// The verdict on an empty file whose extension names its format. Returns any other error.
fn empty(error: Error) -> anyhow::Result<Verdict> {
    match error {
        Error::Empty { name, format: Some(format) } => {
            Ok(Verdict::of(name, format, Recovery::default(), Some(nothing_of(format))))
        }
        error => Err(error.into()),
    }
}

fn nothing_of(format: Format) -> Warning {
    Warning::new(format!("expected {}, found an empty file", format.name()))
}

impl Verdict {
    /// `first` is what ended strict reading. Reading on mostly says the same of that place, with what it cost.
    fn of(name: String, format: Format, recovery: Recovery, first: Option<Warning>) -> Self {
        let Recovery { samples, events, warnings, more_warnings, lost_bytes, .. } = recovery;
        let is_said = |first: &Warning| {
            warnings.iter().any(|known| match first.offset {
                // What ends the reading of lines does not know where it stands.
                None => known.message.starts_with(&first.message),
                at => known.offset == at,
            })
        };
        let first = first.filter(|first| !is_said(first));
        let findings = first.into_iter().chain(warnings).collect();
        Self { name, format, samples, events, findings, more: more_warnings, lost_bytes }
    }

    /// What can be read.
    fn contents(&self) -> String {
        match (self.samples, self.events) {
            (samples, 0) => format!("{samples} samples"),
            (0, events) => format!("{events} events"),
            (samples, events) => format!("{samples} samples, {events} events"),
        }
    }

    const fn is_sound(&self) -> bool {
        self.findings.is_empty() && self.lost_bytes == 0
    }

    const fn word(&self) -> &'static str {
        if self.is_sound() { "sound" } else { "inconsistent" }
    }
}

fn text(verdict: &Verdict, out: &mut impl Write) -> io::Result<()> {
    let Verdict { name, format, findings, more, .. } = verdict;
    let name = printable(name.as_bytes());
    writeln!(out, "{name}: {} ({}, {})", verdict.word(), format.name(), verdict.contents())?;
    for finding in findings {
        writeln!(out, "  {}", printable(messages::text(finding).as_bytes()))?;
    }
    if *more > 0 {
        writeln!(out, "  {more} more")?;
    }
    Ok(())
}

fn object(verdict: &Verdict, out: &mut impl Write) -> io::Result<()> {
    let Verdict { name, format, samples, events, findings, more, lost_bytes } = verdict;
    let finding = |finding: &Warning| {
        let Warning { offset, message, lost_bytes, .. } = finding;
        json!({"offset": offset, "message": message, "lost_bytes": lost_bytes})
    };
    let object = json!({
        "schema_version": 1,
        "file": name,
        "format": format.name(),
        "verdict": verdict.word(),
        "samples": samples,
        "events": events,
        "lost_bytes": lost_bytes,
        "findings": findings.iter().map(finding).collect::<Vec<_>>(),
        "more_findings": more,
    });
    writeln!(out, "{object}")
}
