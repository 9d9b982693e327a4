//! Where a recording goes.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::{Context as _, bail};
use borehole::capture::{
    Coordinator, Error, LiveSink, RbtOptions, RbtOutput, SampleOptions, Session, Statistics, Stream,
};
use borehole::model::{Context, Sample};
use borehole::phpspy::Opcodes;
use borehole::rbt::Compression;
use borehole::{Existing, Export, Format, ProfileSink, Target};

use super::header;
use super::progress::Watcher;
use super::reli_json::ReliJsonLines;
use crate::interrupt;
use crate::outputs::{STDOUT, refuse_terminal};

/// Where a recording goes.
#[derive(Clone, Debug)]
pub(crate) enum Destination {
    /// One output.
    Single(Single),
    /// A file a thread.
    Workers(Workers),
}

/// One output.
#[derive(Clone, Debug)]
pub(crate) struct Single {
    pub(crate) encoding: Encoding,
    pub(crate) place: Place,
    pub(crate) rbt: RbtOptions,
    /// phpspy: whether opcodes are written.
    pub(crate) opcodes: bool,
}

/// How one output is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// In a format that is read too.
    Format(Format),
    /// As reli's template `json_lines` has it.
    ReliJsonLines,
}

/// Where one output goes.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// To whoever reads ours.
    Stdout,
    /// Into a file.
    File {
        path: PathBuf,
        force: bool,
        /// A file a segment, with its number in its name.
        is_numbered: bool,
    },
}

/// `rbt` files, one a thread.
#[derive(Clone, Debug)]
pub(crate) struct Workers {
    pub(crate) folder: PathBuf,
    pub(crate) threads: u16,
    pub(crate) rbt: RbtOptions,
    pub(crate) earlier: Earlier,
}

/// What becomes of files that an earlier recording left in the folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Earlier {
    /// They stay, and nothing is recorded.
    Keep,
    /// They are replaced.
    Replace,
    /// What is recorded is written behind it.
    Continue,
}

impl Destination {
    /// Finds out what cannot be written before anything is started.
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
            Place::Stdout => {
                let format = match self.encoding {
                    Encoding::Format(format) => format,
                    Encoding::ReliJsonLines => Format::Jsonl,
                };
                refuse_terminal(format, self.rbt.compression == Compression::Gzip)
            }
            Place::File { path, force, is_numbered } => {
                if let Some(folder) =
                    path.parent().filter(|folder| *folder != Path::new("") && !folder.is_dir())
                {
                    bail!("{}: no such folder: {}", path.display(), folder.display());
                }
                let earlier = if *is_numbered { segments(path) } else { vec![path.clone()] };
                match earlier.iter().find(|file| !force && file.is_file()) {
                    Some(file) => bail!("{}: file exists; --force replaces it", file.display()),
                    None => Ok(()),
                }
            }
        }
    }

    /// Runs a session that writes to this.
    pub(crate) fn run(
        self,
        session: impl FnOnce(&mut dyn LiveSink) -> Result<Statistics, Error>,
    ) -> anyhow::Result<Statistics> {
        if self.encoding == Encoding::Format(Format::Rbt) {
            let written = Arc::new(Mutex::new(self.name()));
            let statistics = session(&mut self.live(&written));
            let name = || written.lock().unwrap_or_else(PoisonError::into_inner).clone();
            return statistics.map_err(|error| named(error, name));
        }
        let mut output = self.whole()?;
        interrupt::unfinished(output.unfinished());
        let statistics = match self.encoding {
            Encoding::ReliJsonLines => session(&mut ReliJsonLines::new(&mut output)),
            Encoding::Format(format) => {
                let mut target = Target::new(format);
                target.opcodes = if self.opcodes { Opcodes::Write } else { Opcodes::Omit };
                session(&mut Exported(target.exporter_to_file(&mut output)?))
            }
        };
        let statistics = statistics.map_err(|error| named(error, || self.name()))?;
        // Where nothing was sampled there is nothing to keep, which the caller says.
        if statistics.attached > 0 || interrupt::requested() {
            output.complete()?;
        }
        Ok(statistics)
    }

    /// What it is called in messages.
    fn name(&self) -> String {
        match &self.place {
            Place::Stdout => STDOUT.to_owned(),
            Place::File { path, .. } => path.display().to_string(),
        }
    }

    /// A file that appears when it is complete, or standard output.
    fn whole(&self) -> Result<borehole::Output, borehole::Error> {
        // The exporter of pprof compresses by itself.
        let is_gzip =
            self.rbt.compression == Compression::Gzip && self.encoding != Encoding::Format(Format::Pprof);
        let compression = if is_gzip { borehole::Compression::Gzip } else { borehole::Compression::None };
        match &self.place {
            Place::Stdout => Ok(borehole::Output::direct(STDOUT, io::stdout().lock(), compression)),
            Place::File { path, force, .. } => {
                let existing = if *force { Existing::Replace } else { Existing::Keep };
                borehole::Output::create(path, existing, compression)
            }
        }
    }

    /// An `rbt` stream that can be read at any time. Where nothing is sampled no file is made, and none replaced. What is being
    /// written is called `written`.
    fn live(&self, written: &Arc<Mutex<String>>) -> RbtOutput {
        let Place::File { path, force, is_numbered } = self.place.clone() else {
            return RbtOutput::single(self.rbt, io::stdout());
        };
        if is_numbered {
            let written = Arc::clone(written);
            let name = move |path: &Path| {
                *written.lock().unwrap_or_else(PoisonError::into_inner) = path.display().to_string();
            };
            // A recording of fewer segments would have the last of the earlier one for its own.
            let mut earlier = if force { segments(&path) } else { Vec::new() };
            let open = move |number| {
                for segment in earlier.drain(..) {
                    name(&segment);
                    fs::remove_file(&segment)?;
                }
                let path = numbered(&path, number);
                name(&path);
                Ok(Stream::from(create(&path, force)?))
            };
            return RbtOutput::new(self.rbt, Box::new(open));
        }
        opened_once(self.rbt, move || create(&path, force))
    }
}

/// What went wrong with a session. What could not be written has a name.
fn named(error: Error, name: impl Fn() -> String) -> anyhow::Error {
    match error {
        Error::Output(source) => borehole::Error::Write { name: name(), source }.into(),
        other => other.into(),
    }
}

/// An exporter as a live output: its file is complete at the end only; some formats keep a spool beside it.
struct Exported<'w>(Box<dyn Export + 'w>);

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

/// A file for all segments, which `open` makes for the first.
fn opened_once(options: RbtOptions, open: impl Fn() -> io::Result<File> + Send + 'static) -> RbtOutput {
    let mut stream: Option<Stream> = None;
    let open = move |_segment| match &stream {
        Some(stream) => Ok(stream.clone()),
        None => Ok(stream.insert(Stream::from(open()?)).clone()),
    };
    RbtOutput::new(options, Box::new(open))
}

fn create(path: &Path, force: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    if force || path.exists() && !path.is_file() {
        options.create(true).truncate(true);
    } else {
        options.create_new(true);
    }
    options.write(true).open(path)
}

/// `trace.rbt` as `trace.7.rbt`.
fn numbered(path: &Path, number: u64) -> PathBuf {
    let (before, behind) = around_number(path);
    path.with_file_name(format!("{before}{number}{behind}"))
}

/// What stands around the number of a segment: `trace.` and `.rbt`.
fn around_number(path: &Path) -> (String, String) {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let (stem, extension) = name.split_once('.').unwrap_or((&name, "rbt"));
    (format!("{stem}."), format!(".{extension}"))
}

/// The segments of earlier recordings into `path`. None where the folder cannot be listed.
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
    /// Runs a session a thread.
    pub(crate) fn run(
        self,
        mut coordinator: Coordinator,
        options: SampleOptions,
        watcher: &mut Watcher,
    ) -> (anyhow::Result<Statistics>, anyhow::Result<Option<ExitStatus>>) {
        thread::scope(|scope| {
            let threads: Vec<_> = (0..self.threads)
                .map(|worker| {
                    let (shared, arrivals) = coordinator.seat();
                    let path = self.path(worker);
                    let mut output = self.output(path.clone());
                    scope.spawn(move || {
                        let sampled = Session::new(options, header(), &mut output, shared).run(&arrivals);
                        sampled.map_err(|error| named(error, || path.display().to_string()))
                    })
                })
                .collect();
            let found = coordinator.run(interrupt::requested, |news| watcher.hear(news));
            let mut all = Statistics::default();
            let mut first_error = None;
            for thread in threads {
                match thread.join() {
                    Ok(Ok(statistics)) => all += statistics,
                    Ok(Err(error)) => first_error = first_error.or(Some(error)),
                    Err(_) => {
                        let panicked = anyhow::anyhow!("a thread that samples has panicked");
                        first_error = first_error.or(Some(panicked));
                    }
                }
            }
            (first_error.map_or(Ok(all), Err), found.map_err(Into::into))
        })
    }

    /// Makes the folder. Files that are to stay must not be there.
    fn check(&self) -> anyhow::Result<()> {
        fs::create_dir_all(&self.folder).with_context(|| self.folder.display().to_string())?;
        let mut paths = (0..self.threads).map(|worker| self.path(worker));
        match paths.find(|path| self.earlier == Earlier::Keep && path.exists()) {
            Some(path) => bail!("{}: file exists; --force replaces it", path.display()),
            None => Ok(()),
        }
    }

    fn path(&self, worker: u16) -> PathBuf {
        let extension = if self.rbt.compression == Compression::Gzip { "rbt.gz" } else { "rbt" };
        self.folder.join(format!("worker_{worker}.{extension}"))
    }

    /// A file that appears with the first process.
    fn output(&self, path: PathBuf) -> RbtOutput {
        let earlier = self.earlier;
        opened_once(self.rbt, move || match earlier {
            Earlier::Keep => create(&path, false),
            Earlier::Replace => create(&path, true),
            Earlier::Continue => OpenOptions::new().create(true).append(true).open(&path),
        })
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
}
