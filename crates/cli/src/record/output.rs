//! The outputs of a recording.

use std::fs::{self, File};
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Context as _, bail};
use borehole::Compression;
use borehole::capture::{
    Coordinator, Ending, Error, LiveSink, RbtOptions, RbtOutput, SampleOptions, SampleStatistics,
    SamplingSession, SharedStream,
};
use borehole::formats::phpspy::{ExportOptions, OpcodeOutput};
use borehole::model::{Context, Sample};
use borehole::{Existing, Export, Format, Output, ProfileSink, Target, append_live, create_live};

use nix::unistd::gettid;

use super::header;
use super::journal::Journal;
use super::lock;
use super::progress::{Watcher, is_in_vain};
use super::quit;
use super::reli_json::ReliJsonLines;
use super::worker_files::{self, CompressedFile};
use crate::interrupt;
use crate::messages::NO_THREAD;
use crate::outputs::{compression, refuse_terminal};
use crate::stdout::{STDOUT, data};

/// The output of a recording.
#[derive(Clone, Debug)]
pub(crate) enum RecordingOutput {
    /// One output.
    Single(Single),
    /// One file per thread.
    Workers(Workers),
}

/// One output.
#[derive(Clone, Debug)]
pub(crate) struct Single {
    pub(crate) encoding: Encoding,
    pub(crate) place: RecordingPlace,
    pub(crate) rbt: RbtOptions,
    /// Whether opcodes are written (phpspy).
    pub(crate) opcodes: bool,
    /// The journal of an output that is complete only at its end.
    pub(crate) journal: JournalKind,
}

/// The file that a killed recording leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JournalKind {
    /// A file in the format rbt.
    Rbt,
    /// That of the format's own exporter, which keeps the states of threads and the columns of Python.
    OfFormat,
}

/// The encoding of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// One of the formats.
    Format(Format),
    /// reli's template `json_lines`.
    ReliJsonLines,
}

/// The destination of one output.
#[derive(Clone, Debug)]
pub(crate) enum RecordingPlace {
    /// Standard output.
    Stdout,
    /// A file, or one per segment.
    File { path: PathBuf, earlier: Earlier, files: Files },
}

/// Whether segments share a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Files {
    /// One file for all segments.
    One,
    /// One file per segment, with the number in its name.
    OneASegment,
}

/// `rbt` files, one per thread.
#[derive(Clone, Debug)]
pub(crate) struct Workers {
    pub(crate) folder: PathBuf,
    pub(crate) threads: u16,
    pub(crate) rbt: RbtOptions,
    pub(crate) earlier: Earlier,
}

/// The treatment of files of an earlier recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Earlier {
    /// Keep them, and refuse to record.
    Keep,
    /// Replace them.
    Replace,
    /// Append to them, if the output is written while recording.
    Continue,
}

impl Earlier {
    /// [`Earlier::Replace`] if replacement is asked for, else [`Earlier::Keep`].
    pub(crate) const fn replacing(is_asked: bool) -> Self {
        if is_asked { Self::Replace } else { Self::Keep }
    }

    /// The treatment for an output that appears when it is complete.
    pub(super) const fn existing(self) -> Existing {
        Existing::replacing(!matches!(self, Self::Keep))
    }
}

impl RecordingOutput {
    pub(crate) fn is_stdout(&self) -> bool {
        matches!(self, Self::Single(Single { place: RecordingPlace::Stdout, .. }))
    }

    /// Fails if the output cannot be written, before anything is started.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        match self {
            Self::Single(single) => single.check(),
            Self::Workers(workers) => workers.check(),
        }
    }
}

impl Single {
    fn check(&self) -> anyhow::Result<()> {
        match &self.place {
            RecordingPlace::Stdout => {
                refuse_terminal(self.format(), self.rbt.compression == Compression::Gzip)
            }
            RecordingPlace::File { path, earlier, files } => {
                if let Some(folder) =
                    path.parent().filter(|folder| *folder != Path::new("") && !folder.is_dir())
                {
                    bail!("{}: no such folder: {}", path.display(), folder.display());
                }
                let there = match files {
                    Files::One => vec![path.clone()],
                    Files::OneASegment => segments(path),
                };
                there.iter().try_for_each(|file| check(file, *earlier))?;
                Ok(self.journal().map_or(Ok(()), |journal| journal.check())?)
            }
        }
    }

    /// The journal of the recording; `None` if the output needs none, because it is written while recording.
    fn journal(&self) -> Option<Journal> {
        match &self.place {
            _ if self.encoding == Encoding::Format(Format::Rbt) || self.has_own_journal() => None,
            RecordingPlace::File { path, .. } if path.exists() && !path.is_file() => None,
            RecordingPlace::File { path, earlier, .. } => Some(Journal::of(path, self.format(), *earlier)),
            RecordingPlace::Stdout => None,
        }
    }

    fn has_own_journal(&self) -> bool {
        self.journal == JournalKind::OfFormat
    }

    /// Runs a session that writes to this.
    pub(crate) fn run(
        self,
        session: impl FnOnce(&mut dyn LiveSink) -> Result<SampleStatistics, Error>,
    ) -> anyhow::Result<SampleStatistics> {
        if self.encoding == Encoding::Format(Format::Rbt) {
            let mut output = self.live();
            let statistics = session(&mut output);
            return statistics.map_err(|error| named(error, || self.name_of(output.segment_number())));
        }
        let mut output = interrupt::begun(|| self.whole())?;
        let journal = self.journal().filter(|_| output.destination().is_some());
        let keep = || journal.iter().for_each(Journal::keep);
        let statistics = self.exporting(&mut output, |sink| match &journal {
            Some(journal) => session(&mut journal.before(sink)),
            None => session(sink),
        })?;
        let statistics = statistics.map_err(|error| named(error, || self.name())).inspect_err(|_| keep())?;
        // If nothing was sampled, no output is kept; the caller reports that.
        if !is_in_vain(&statistics) || interrupt::requested() || quit::was_pressed() {
            output.complete().inspect_err(|_| keep())?;
        }
        journal.into_iter().for_each(Journal::remove);
        Ok(statistics)
    }

    /// Runs `run` with a sink that writes the format to `output`.
    fn exporting<R>(
        &self,
        output: &mut Output,
        run: impl FnOnce(&mut dyn LiveSink) -> R,
    ) -> Result<R, borehole::Error> {
        match self.encoding {
            Encoding::ReliJsonLines => Ok(run(&mut ReliJsonLines::new(output))),
            Encoding::Format(format) => {
                let mut target = Target::new(format);
                let opcodes = if self.opcodes { OpcodeOutput::Write } else { OpcodeOutput::Omit };
                target.options.set(ExportOptions { opcodes });
                let exporter = if self.has_own_journal() {
                    target.exporter_to_file(output)
                } else {
                    target.exporter(output)
                };
                Ok(run(&mut Exported(exporter?)))
            }
        }
    }

    /// The format, or a similar one for reli's template.
    const fn format(&self) -> Format {
        match self.encoding {
            Encoding::Format(format) => format,
            Encoding::ReliJsonLines => Format::Jsonl,
        }
    }

    /// The name for messages.
    fn name(&self) -> String {
        match &self.place {
            RecordingPlace::Stdout => STDOUT.to_owned(),
            RecordingPlace::File { path, .. } => path.display().to_string(),
        }
    }

    /// The name for messages of the output of a segment.
    fn name_of(&self, segment: u64) -> String {
        match &self.place {
            RecordingPlace::File { path, files: Files::OneASegment, .. } => {
                numbered(path, segment).display().to_string()
            }
            _ => self.name(),
        }
    }

    /// A file that appears when it is complete, or standard output.
    fn whole(&self) -> Result<Output, borehole::Error> {
        let compression = compression(self.format(), self.rbt.compression == Compression::Gzip);
        match &self.place {
            RecordingPlace::Stdout => Output::direct(STDOUT, data(), compression),
            RecordingPlace::File { path, earlier, .. } => {
                Output::create(path, earlier.existing(), compression)
            }
        }
    }

    /// An `rbt` stream that can be read at any time. If nothing is sampled, no file is created or replaced.
    fn live(&self) -> RbtOutput {
        let RecordingPlace::File { path, earlier, files } = self.place.clone() else {
            return RbtOutput::single(self.rbt, io::stdout());
        };
        if files == Files::One {
            return opened_once(self.rbt, move || open(&path, earlier));
        }
        // Otherwise, segments of a longer earlier recording would seem to belong to this one.
        let mut replaced = if earlier == Earlier::Replace { segments(&path) } else { Vec::new() };
        let open_segment = move |number: u64| {
            replaced.drain(..).try_for_each(|segment| remove(&segment))?;
            Ok(SharedStream::from(open(&numbered(&path, number), earlier)?))
        };
        RbtOutput::new(self.rbt, Box::new(open_segment))
    }
}

/// Converts an error of a session. Errors of writing get the name of the output, unless they name another file.
fn named(error: Error, name: impl Fn() -> String) -> anyhow::Error {
    let Error::Output(source) = error else { return error.into() };
    match source.downcast::<borehole::Error>() {
        Ok(of_another) => of_another.into(),
        Err(source) => borehole::Error::Write { name: name(), source }.into(),
    }
}

/// Fails if the output at `path` cannot be written as far as that shows, or another recording writes it.
fn check(path: &Path, earlier: Earlier) -> anyhow::Result<()> {
    Output::check(path, earlier.existing())?;
    lock::check(path).with_context(|| path.display().to_string())
}

/// Removes a file other than the output, unless another recording writes it. The error names that file.
fn remove(path: &Path) -> io::Result<()> {
    lock::check(path).and_then(|()| fs::remove_file(path)).map_err(|source| {
        io::Error::new(source.kind(), borehole::Error::Write { name: path.display().to_string(), source })
    })
}

/// An exporter as a live output.
struct Exported<'w>(Box<dyn Export + Send + 'w>);

impl ProfileSink for Exported<'_> {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        self.0.sample(at, sample)
    }

    fn next(&mut self) -> Option<&mut dyn ProfileSink> {
        Some(&mut *self.0)
    }
}

impl LiveSink for Exported<'_> {
    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// An output with one file for all segments, which `open` creates for the first.
pub(super) fn opened_once(
    options: RbtOptions,
    open: impl Fn() -> io::Result<File> + Send + 'static,
) -> RbtOutput {
    let mut stream: Option<SharedStream> = None;
    let open = move |_segment: u64| match &stream {
        Some(stream) => Ok(stream.clone()),
        None => Ok(stream.insert(SharedStream::from(open()?)).clone()),
    };
    RbtOutput::new(options, Box::new(open))
}

/// Opens a file that is written while recording, and locks it until it is closed.
fn open(path: &Path, earlier: Earlier) -> io::Result<File> {
    // Names the recording that writes the file.
    lock::check(path)?;
    match earlier {
        Earlier::Keep | Earlier::Replace => create_live(path, earlier.existing()),
        Earlier::Continue => {
            let mut file = append_live(path)?;
            if file.metadata()?.is_file() {
                worker_files::end_left_segment(&mut file)?;
            }
            Ok(file)
        }
    }
}

/// `trace.rbt` as `trace.7.rbt`.
fn numbered(path: &Path, number: u64) -> PathBuf {
    let (before, behind) = around_number(path);
    path.with_file_name(format!("{before}{number}{behind}"))
}

/// The parts of a segment's name around the number: `trace.` and `.rbt`.
fn around_number(path: &Path) -> (String, String) {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let (stem, extension) = name.split_once('.').unwrap_or((&name, "rbt"));
    (format!("{stem}."), format!(".{extension}"))
}

/// The segments of earlier recordings into `path`; empty if the folder cannot be listed.
fn segments(path: &Path) -> Vec<PathBuf> {
    let (before, behind) = around_number(path);
    let is_segment = |name: &str| {
        let number = name.strip_prefix(&*before).and_then(|rest| rest.strip_suffix(&*behind));
        number.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<_> = entries
        .filter(|entry| entry.file_name().to_str().is_some_and(is_segment))
        .map(|entry| path.with_file_name(entry.file_name()))
        .collect();
    found.sort();
    found
}

impl Workers {
    /// Runs one session per thread.
    pub(crate) fn run(
        self,
        mut coordinator: Coordinator,
        options: SampleOptions,
        watcher: &mut Watcher,
    ) -> anyhow::Result<(SampleStatistics, Option<Ending>)> {
        thread::scope(|scope| {
            let start = |worker| {
                let (shared, arrivals) = coordinator.seat();
                let workers = self.clone();
                let sample = move || {
                    let path = workers.path(worker);
                    let mut output = workers.output(path.clone());
                    let sampled = SamplingSession::new(options, header(), &mut output, shared).run(&arrivals);
                    sampled.map_err(|error| named(error, || path.display().to_string()))
                };
                thread::Builder::new().spawn_scoped(scope, sample).context(NO_THREAD)
            };
            let threads: Vec<_> = (0..self.threads).map(start).collect::<Result<_, _>>()?;
            let found = coordinator.run(quit::asked_to_end, |news| watcher.hear(news));
            let mut all = SampleStatistics::default();
            let mut first_error = None;
            for thread in threads {
                match thread.join() {
                    Ok(Ok(statistics)) => all += statistics,
                    Ok(Err(error)) => first_error = first_error.or(Some(error)),
                    Err(_) => {
                        let panicked = anyhow::anyhow!("a sampling thread panicked");
                        first_error = first_error.or(Some(panicked));
                    }
                }
            }
            let all = first_error.map_or(Ok(all), Err)?;
            Ok((all, found?))
        })
    }

    /// Creates the folder, and finishes what killed recordings left there. Fails if it has files that should be kept, or that
    /// another recording writes.
    fn check(&self) -> anyhow::Result<()> {
        fs::create_dir_all(&self.folder).with_context(|| self.folder.display().to_string())?;
        worker_files::finish_left(&self.folder);
        if self.earlier == Earlier::Continue {
            // The names are known once the threads run.
            return Ok(());
        }
        (0..self.threads).try_for_each(|worker| check(&self.path(worker), self.earlier))
    }

    /// The file of the calling thread. A recording that continues earlier ones names it by the system's number of the thread,
    /// which no other running thread has, as reli does by the number of its worker process.
    fn path(&self, worker: u16) -> PathBuf {
        let number = match self.earlier {
            Earlier::Continue => gettid().as_raw(),
            Earlier::Keep | Earlier::Replace => worker.into(),
        };
        self.folder.join(worker_files::name(number, self.rbt.compression))
    }

    /// An output whose file is created with the first process.
    fn output(&self, path: PathBuf) -> RbtOutput {
        let earlier = self.earlier;
        match self.rbt.compression {
            Compression::None => opened_once(self.rbt, move || open(&path, earlier)),
            _ => RbtOutput::new(self.rbt, Box::new(CompressedFile::new(path, earlier))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_before_the_extension() {
        for (path, wanted) in
            [("/a.b/trace.rbt", "/a.b/trace.3.rbt"), ("t.rbt.gz", "t.3.rbt.gz"), ("trace", "trace.3.rbt")]
        {
            assert_eq!(numbered(Path::new(path), 3), Path::new(wanted));
        }
    }

    #[test]
    fn what_cannot_be_removed_is_to_blame_and_not_what_was_to_be_written() {
        let said = |error: io::Error| named(Error::Output(error), || "trace.0.rbt".to_owned()).to_string();
        let left = remove(Path::new("/nowhere/trace.3.rbt")).unwrap_err();
        assert_eq!(said(left), "/nowhere/trace.3.rbt: no such file or directory");
        assert!(said(io::ErrorKind::StorageFull.into()).starts_with("trace.0.rbt: "));
    }
}
