//! `borehole check`.

use std::io::{self, Write};
use std::path::PathBuf;

use borehole::model::{Count, Tables};
use borehole::{Error, Format, Input, Recovery, Warning};
use borehole_text::{counted, printable};
use clap::Args;
use serde_json::json;

use crate::exit::Exit;
use crate::inputs::{self, ReadArgs};
use crate::interrupt::Interruptible;
use crate::messages;
use crate::opening::InputPlace;
use crate::stdout::{data, stdout_error};

/// The arguments of `borehole check`.
#[derive(Args, Clone, Debug)]
#[command(mut_arg("lenient", |arg| arg.hide(true)))]
pub(crate) struct CheckArgs {
    /// Files to check; `-`, or none, is standard input
    #[arg(value_name = "INPUT")]
    paths: Vec<PathBuf>,

    #[command(flatten)]
    reading: ReadArgs,

    /// Print one JSON object per file
    #[arg(long)]
    json: bool,
}

/// The result of checking one file.
struct CheckResult {
    name: String,
    format: Format,
    /// Samples that can be read.
    samples: u64,
    /// Events that can be read.
    events: u64,
    findings: Vec<Warning>,
    /// Findings that are counted but not kept.
    more: u64,
    lost_bytes: u64,
}

/// Checks every input. The exit code is that of the worst one.
pub(crate) fn run(args: &CheckArgs) -> anyhow::Result<Exit> {
    let mut out = data();
    let mut worst = Exit::Done;
    let strictly = ReadArgs { lenient: false, ..args.reading.clone() };
    for path in inputs::names(&args.paths) {
        let places = match strictly.find(path) {
            Ok(found) => {
                found.report();
                found.places
            }
            Err(error) => {
                worst = worst.and(messages::failure(&error));
                continue;
            }
        };
        for place in places {
            let exit = match check(place, &strictly) {
                Ok(verdict) => {
                    let printed =
                        if args.json { object(&verdict, &mut out) } else { text(&verdict, &mut out) };
                    printed.map_err(stdout_error)?;
                    if verdict.is_sound() { Exit::Done } else { Exit::Damaged }
                }
                Err(error) => messages::failure(&error),
            };
            worst = worst.and(exit);
        }
    }
    Ok(worst)
}

/// Reads strictly to find inconsistencies, and after damage leniently to find the rest. A pipe is only read strictly,
/// because it cannot be read twice.
fn check(place: InputPlace, strictly: &ReadArgs) -> anyhow::Result<CheckResult> {
    let again = place.again();
    let input = match strictly.open_at(place) {
        Ok(input) => input,
        Err(error) => return empty(error.downcast()?),
    };
    let (name, format) = (input.name().to_owned(), input.format());
    // Readers accept an empty file as a recording without samples, but a full disk leaves such a file too.
    let nothing = (input.is_empty() && strictly.from.is_none()).then(|| nothing_of(format));
    let mut count = Count::default();
    let error = match input.read_into(&mut Tables::default(), &mut Interruptible(&mut count)) {
        Ok(recovery) => return Ok(CheckResult::of(name, format, recovery, nothing)),
        // A file that cannot be read is not necessarily damaged.
        Err(Error::Read { source, .. }) if !source.is_limit() && source.raw_os_error().is_none() => source,
        Err(error) => return empty(error),
    };
    let first = Warning::of(&error);
    let mut recovery = Recovery { samples: count.samples, events: count.events, ..Recovery::default() };
    if let Some(source) = again {
        let input = Input::open(source, &ReadArgs { lenient: true, ..strictly.clone() }.options())?;
        recovery = input.read_into(&mut Tables::default(), &mut Interruptible(&mut Count::default()))?;
    }
    Ok(CheckResult::of(name, format, recovery, Some(first)))
}

/// The verdict on an empty file whose extension names its format. Returns any other error.
fn empty(error: Error) -> anyhow::Result<CheckResult> {
    match error {
        Error::Empty { name, format: Some(format) } => {
            Ok(CheckResult::of(name, format, Recovery::default(), Some(nothing_of(format))))
        }
        error => Err(error.into()),
    }
}

fn nothing_of(format: Format) -> Warning {
    Warning::new(format!("expected {}, found an empty file", format.name()))
}

impl CheckResult {
    /// Combines `first`, the error of strict reading, with the warnings of lenient reading, which usually repeat it with its
    /// losses.
    fn of(name: String, format: Format, recovery: Recovery, first: Option<Warning>) -> Self {
        let Recovery { samples, events, warnings, more_warnings, lost_bytes, .. } = recovery;
        let is_said = |first: &Warning| {
            warnings.iter().any(|known| match first.offset {
                // Errors of line formats have no offset.
                None => known.message.starts_with(&first.message),
                at => known.offset == at,
            })
        };
        let first = first.filter(|first| !is_said(first));
        let findings = first.into_iter().chain(warnings).collect();
        Self { name, format, samples, events, findings, more: more_warnings, lost_bytes }
    }

    /// The samples and events that can be read, in words.
    fn contents(&self) -> String {
        match (self.samples, self.events) {
            (samples, 0) => counted(samples, "sample"),
            (0, events) => counted(events, "event"),
            (samples, events) => format!("{}, {}", counted(samples, "sample"), counted(events, "event")),
        }
    }

    const fn is_sound(&self) -> bool {
        self.findings.is_empty() && self.lost_bytes == 0
    }

    const fn word(&self) -> &'static str {
        if self.is_sound() { "sound" } else { "inconsistent" }
    }
}

fn text(verdict: &CheckResult, out: &mut impl Write) -> io::Result<()> {
    let CheckResult { name, format, findings, more, .. } = verdict;
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

fn object(verdict: &CheckResult, out: &mut impl Write) -> io::Result<()> {
    let CheckResult { name, format, samples, events, findings, more, lost_bytes } = verdict;
    let finding = |finding: &Warning| {
        let Warning { kind, offset, message, lost_bytes, .. } = finding;
        json!({"kind": kind.name(), "offset": offset, "message": message, "lost_bytes": lost_bytes})
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
