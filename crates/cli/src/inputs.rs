//! Which inputs to read, and how.

use std::path::{Path, PathBuf};
use std::{fs, io};

use anyhow::bail;
use borehole::model::Tables;
use borehole::{
    Error, Format, Input, InputOptions, OnDamage, ProfileSink, ReadOptions, Recovery, SampleKind, Source,
    finish_before,
};
use clap::Args;

use crate::filter::FilterArgs;
use crate::interrupt::Interruptible;
use crate::labelled::{self, Labelled};
use crate::messages;
use crate::one_clock::EventClocks;
pub(crate) use crate::opening::is_stdin;
use crate::opening::{InputPlace, is_file};
use crate::recording::{self, Program};

/// The options for one or several inputs.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Inputs {
    /// Files, folders, archives (zip, tar) or patterns such as 'traces/*.bin' to read; `-`, or none, is standard input. Several are merged; segments of event traces are read in
    /// order of time, and those of different hosts or processes are kept apart
    #[arg(value_name = "INPUT")]
    pub(crate) paths: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) reading: ReadArgs,

    /// Add the label input=NAME to the samples of each file. Traces, timelines, reports and --sort-by-time then keep all
    /// inputs apart. A tachyon file NAME_PID.bin, as Python names those of subprocesses, gets that process
    #[arg(long)]
    pub(crate) label_inputs: bool,
}

/// The options for reading an input.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ReadArgs {
    /// Format of the inputs, instead of detecting it (`borehole formats` lists them)
    #[arg(long, value_name = "FORMAT")]
    pub(crate) from: Option<Format>,

    /// Read on after damage, and report what was lost
    #[arg(long)]
    pub(crate) lenient: bool,

    /// Which samples of an event trace to take: cpu, off-cpu, alloc, task-dump or all [default: cpu]
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Option<SampleKind>,
}

impl ReadArgs {
    /// Whether no option is given.
    pub(crate) fn is_plain(&self) -> bool {
        self.from.is_none() && !self.lenient && self.kind.is_none()
    }

    pub(crate) fn options(&self) -> InputOptions {
        let on_damage = if self.lenient { OnDamage::ReadOn } else { OnDamage::Fail };
        let samples = self.kind.unwrap_or_default();
        let mut read = ReadOptions { on_damage, samples, ..ReadOptions::default() };
        read.limits.memory_bytes = usize::MAX;
        let memory_bytes = Some(borehole_memory::budget());
        InputOptions { format: self.from, read, memory_bytes, ..InputOptions::default() }
    }
}

impl Inputs {
    /// Streams the samples and events that `filter` chooses from all inputs into `sink`, one input after the other, and
    /// finishes the sink. Prints the warnings of each input. After Ctrl-C the sink gets what has been read. `output` is the
    /// name of the output in messages.
    pub(crate) fn read_into(
        &self,
        filter: &FilterArgs,
        sink: &mut dyn ProfileSink,
        output: &str,
    ) -> anyhow::Result<Recovery> {
        self.read_all(filter, sink, output, |_, _, _| {})
    }

    /// Like [`Inputs::read_into`], for a sink whose output is read while it is written: if an input cannot be read to its
    /// end, the sink is finished with everything read before.
    pub(crate) fn read_into_stream(
        &self,
        filter: &FilterArgs,
        sink: &mut dyn ProfileSink,
        output: &str,
    ) -> anyhow::Result<Recovery> {
        self.read_all(filter, sink, output, finish_before)
    }

    fn read_all(
        &self,
        filter: &FilterArgs,
        sink: &mut dyn ProfileSink,
        output: &str,
        give_up: impl FnOnce(&Error, &Tables, &mut dyn ProfileSink),
    ) -> anyhow::Result<Recovery> {
        let mut tables = Tables::default();
        let read = self.read_onto(&mut tables, filter, sink, output);
        let recovery = read.inspect_err(|error| {
            if let Some(error) = error.downcast_ref() {
                give_up(error, &tables, sink);
            }
        })?;
        sink.finish(&tables).map_err(|source| Error::Write { name: output.to_owned(), source })?;
        Ok(recovery)
    }

    /// Like [`Inputs::read_into`], but adds to `tables` and does not finish the sink, so that more may follow.
    pub(crate) fn read_onto(
        &self,
        tables: &mut Tables,
        filter: &FilterArgs,
        sink: &mut dyn ProfileSink,
        output: &str,
    ) -> anyhow::Result<Recovery> {
        let paths = self.files()?;
        missing(&paths)?;
        let (places, mut recovery) = self.places(&paths)?;
        let programs = self.programs(places);
        let (mut chosen, mut clocks) = (filter.in_front_of(sink)?, EventClocks::default());
        for (place, program) in in_order(programs) {
            if let Some(name) = program {
                let begun = clocks.in_front_of(chosen.sink()).source(&name);
                begun.map_err(|source| Error::Write { name: output.to_owned(), source })?;
            }
            let input = self.reading.open_at(place)?;
            let name = input.name().to_owned();
            let mut sink = clocks.in_front_of(chosen.sink());
            let read = self.read_one(input, tables, &mut Interruptible(&mut sink), output)?;
            messages::warnings(&name, &read);
            if let Some(warning) = sink.end(&name) {
                messages::say(&format!("warning: {warning}"));
            }
            chosen.end_input(&name)?;
            recovery.merge(read);
            if recovery.stopped {
                break;
            }
        }
        chosen.end();
        for warning in clocks.warnings() {
            messages::say(&format!("warning: {warning}"));
        }
        Ok(recovery)
    }

    fn read_one(
        &self,
        input: Input,
        tables: &mut Tables,
        sink: &mut dyn ProfileSink,
        output: &str,
    ) -> anyhow::Result<Recovery> {
        let read = if self.label_inputs {
            let name = input.name().to_owned();
            sink.source(&name).map_err(|source| Error::Write { name: output.to_owned(), source })?;
            let labels = labelled::of_input(&name, tables)?;
            let process = labelled::process_of(&name).filter(|_| input.format() == Format::Tachyon);
            let read = input.read_into(tables, &mut Labelled { sink, labels, process });
            tables.set_common_labels(Vec::new());
            read
        } else {
            input.read_into(tables, sink)
        };
        Ok(read.map_err(|error| error.with_output(output))?)
    }

    /// The formats of those inputs that are files. Files that cannot be opened are left out; reading them reports why.
    pub(crate) fn formats(&self) -> Vec<Format> {
        let files = self.files().unwrap_or_default();
        let found = files.iter().filter(|path| is_file(path)).filter_map(|path| self.reading.find(path).ok());
        let places = found.flat_map(|found| found.places);
        let opened = places.filter_map(|place| self.reading.peek(&place));
        opened.map(|input| input.format()).chain(self.reading.from).collect()
    }

    /// The inputs at all paths, and the notes about archives, which are printed.
    fn places(&self, paths: &[PathBuf]) -> anyhow::Result<(Vec<InputPlace>, Recovery)> {
        let (mut places, mut recovery) = (Vec::new(), Recovery::default());
        for path in paths {
            let found = self.reading.find(path)?;
            recovery.merge(found.report());
            places.extend(found.places);
        }
        Ok((places, recovery))
    }

    /// The files to read: those that the user named, and the files of folders.
    fn files(&self) -> Result<Vec<PathBuf>, Error> {
        let mut files = Vec::new();
        for path in self.names() {
            match fs::metadata(path) {
                Ok(found) if found.is_dir() => files.extend(self.files_in(path)?),
                Err(error) if error.kind() == io::ErrorKind::NotFound => files.extend(matching(path)),
                _ => files.push(path.to_owned()),
            }
        }
        Ok(files)
    }

    /// The readable files of a folder; the folder itself if there are none.
    fn files_in(&self, folder: &Path) -> Result<Vec<PathBuf>, Error> {
        let failed = |source| Error::Open { name: folder.display().to_string(), source };
        let mut files = Vec::new();
        for entry in fs::read_dir(folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if fs::metadata(&path).is_ok_and(|found| found.is_file() && found.len() > 0) {
                files.push(path);
            }
        }
        files.sort();
        let (files, others): (Vec<_>, Vec<_>) =
            files.into_iter().partition(|path| self.reading.accepts(path));
        for path in others {
            messages::say(&format!("note: {}: skipped, unknown format", path.display()));
        }
        Ok(if files.is_empty() { vec![folder.to_owned()] } else { files })
    }

    /// The inputs by program, those of each in order of time. Prints a note if there are several programs.
    fn programs(&self, inputs: Vec<InputPlace>) -> Vec<Program<InputPlace>> {
        if self.label_inputs {
            return vec![Program { inputs, name: None }];
        }
        let programs = recording::programs(inputs, |place| self.reading.peek(place), InputPlace::is_file);
        if programs.len() > 1 {
            let names = programs.iter().filter_map(|program| program.name.as_deref());
            let names: Vec<_> = names.map(|name| if name.is_empty() { "unknown" } else { name }).collect();
            messages::say(&format!(
                "note: inputs come from {} hosts or processes, which are kept apart: {} (--label-inputs keeps all inputs apart)",
                names.len(),
                names.join("; ")
            ));
        }
        programs
    }

    /// The inputs that the user named; `-` if there are none.
    pub(crate) fn names(&self) -> impl Iterator<Item = &Path> {
        names(&self.paths)
    }
}

/// The files that a pattern matches, in the order of their names; the path itself if it matches none.
fn matching(path: &Path) -> Vec<PathBuf> {
    let found = path.to_str().and_then(|pattern| glob::glob(pattern).ok());
    let files: Vec<_> = found.into_iter().flatten().flatten().filter(|path| path.is_file()).collect();
    if files.is_empty() { vec![path.to_owned()] } else { files }
}

/// The inputs in order; the first of each program comes with the program's name, if there are several programs.
fn in_order<T>(programs: Vec<Program<T>>) -> impl Iterator<Item = (T, Option<String>)> {
    programs
        .into_iter()
        .flat_map(|Program { inputs, mut name }| inputs.into_iter().map(move |input| (input, name.take())))
}

/// Fails early if an input is missing or cannot be read, rather than after the others have been read. Pipes are not opened,
/// because their writer would notice.
fn missing(paths: &[PathBuf]) -> anyhow::Result<()> {
    refuse_stdin_twice(paths.iter().map(PathBuf::as_path))?;
    for path in paths.iter().filter(|path| !is_stdin(path)) {
        let found = fs::metadata(path);
        let found = found.map_err(|source| Error::Open { name: path.display().to_string(), source })?;
        if found.is_file() || found.is_dir() {
            Source::path(path)?;
        }
    }
    Ok(())
}

/// The paths, or `-` if there are none.
pub(crate) fn names(paths: &[PathBuf]) -> impl Iterator<Item = &Path> {
    let stdin = paths.is_empty().then_some(Path::new("-"));
    paths.iter().map(PathBuf::as_path).chain(stdin)
}

/// Fails if standard input is named twice, because it can be read only once.
pub(crate) fn refuse_stdin_twice<'p>(paths: impl Iterator<Item = &'p Path>) -> anyhow::Result<()> {
    if paths.filter(|path| is_stdin(path)).count() > 1 {
        bail!("too many inputs: expected standard input once, found it twice");
    }
    Ok(())
}
