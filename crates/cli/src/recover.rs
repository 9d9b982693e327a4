//! `borehole recover`.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use borehole::formats::tachyon;
use borehole::{Format, Recovery, import_all};
use borehole_text::counted;
use clap::Args;

use crate::exit::Exit;
use crate::inputs::{ReadArgs, is_stdin};
use crate::interrupt::{self, Interruptible};
use crate::messages;
use crate::outputs::OutputArgs;
use crate::record::JOURNAL_SUFFIX;

/// The arguments of `borehole recover`.
#[derive(Args, Clone, Debug)]
#[command(mut_arg("lenient", |arg| arg.hide(true)))]
pub(crate) struct RecoverArgs {
    /// The damaged file; `-` is standard input. If NAME does not exist, the NAME.part that a killed recording left is recovered
    #[arg(value_name = "INPUT", default_value = "-")]
    pub(crate) input: PathBuf,

    /// tachyon: file with the names if INPUT has lost its own: another profile of the same program, or the file that a
    /// killed program left [default: INPUT.tables if it exists]
    #[arg(long, value_name = "FROM.bin")]
    pub(crate) tables: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) reading: ReadArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

pub(crate) fn run(args: &RecoverArgs) -> anyhow::Result<Exit> {
    interrupt::heed();
    let reading = ReadArgs { lenient: true, ..args.reading.clone() };
    let path = left_of(&args.input);
    let mut input = reading.open(&path)?;
    if let Some(lender) = &args.tables {
        ensure!(
            input.format() == Format::Tachyon,
            "--tables: expected a tachyon input, found {}",
            input.format().name()
        );
        // The path may not be UTF-8; the name for messages is.
        let name = lender.display().to_string();
        input.lend_tables(&name, &fs::read(lender).with_context(|| name.clone())?)?;
    } else if let Some((name, journal)) = journal_of(&path).filter(|_| input.format() == Format::Tachyon) {
        input.lend_tables(&name, &journal)?;
    }
    let name = input.name().to_owned();
    let target = args.output.target(Some(input.format()))?;
    let mut output = args.output.create(&target)?;
    let output_name = output.name().to_owned();
    let mut exporter = target.exporter(&mut output)?;
    let recovery = import_all([input], &mut Interruptible(&mut *exporter))
        .map_err(|error| error.with_output(&output_name))?;
    let losses = exporter.losses();
    drop(exporter);
    output.complete()?;
    messages::warnings(&name, &recovery);
    messages::losses(&losses, target.format.name());
    messages::say(&summary(&recovery));
    messages::interrupted(recovery.samples.saturating_add(recovery.events));
    Ok(Exit::after(&recovery))
}

/// `path`, or the journal that a killed program left if `path` does not exist.
fn left_of(path: &Path) -> PathBuf {
    let part = beside(path, JOURNAL_SUFFIX);
    if path.exists() || !part.is_file() { path.to_owned() } else { part }
}

/// The name and bytes of the file with the names that a killed program left beside `path`.
fn journal_of(path: &Path) -> Option<(String, Vec<u8>)> {
    let beside = Some(path).filter(|path| !is_stdin(path)).map(|path| beside(path, ".tables"))?;
    let mut file = File::open(&beside).ok()?;
    // An unrelated file may have this name.
    let mut journal = vec![0; tachyon::JOURNAL_MAGIC.len()];
    file.read_exact(&mut journal).ok().filter(|()| journal == tachyon::JOURNAL_MAGIC)?;
    file.read_to_end(&mut journal).ok()?;
    Some((beside.display().to_string(), journal))
}

/// The path with `ending` appended.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// The recovered samples and events, in all and before the first damage.
fn summary(recovery: &Recovery) -> String {
    let Recovery { samples, events, segments, warnings, more_warnings, .. } = recovery;
    // Begins like reli's message, even for one sample, because scripts look for it.
    let what = match (samples, events) {
        (samples, 0) => format!("{samples} samples"),
        (0, events) => format!("{events} events"),
        (samples, events) => format!("{samples} samples and {events} events"),
    };
    let said = format!("Recovered {what} in {}", counted(*segments, "segment"));
    let saved_behind: Vec<_> = warnings.iter().filter_map(|warning| warning.saved_samples).collect();
    // Unless all warnings are kept, the samples after the others are unknown.
    if *samples == 0 || saved_behind.is_empty() || *more_warnings > 0 {
        return said;
    }
    let before = samples.saturating_sub(saved_behind.iter().sum());
    format!("{said}, {before} of them before the first damage")
}
