//! The journal of a recording in a format that is complete only at its end: an `rbt` file beside the output. It can be
//! read at any time, so that the output can be made of it after a kill, or when there is room on the disk again.

use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use borehole::capture::{LiveSink, RbtOptions, RbtOutput};
use borehole::model::{Context, ProfileSink, Sample, StringId, Tables};
use borehole::{Error, Format, create_live};
use borehole_text::shell_bytes;

use super::lock;
use super::output::{Earlier, opened_once};
use crate::messages::say;
use crate::outputs::format_of_name;

/// The suffix of the name of a journal, after that of the output; `borehole recover` looks for it.
pub(crate) const SUFFIX: &str = ".part";

/// The journal of one recording.
pub(super) struct Journal {
    path: PathBuf,
    output: PathBuf,
    format: Format,
    earlier: Earlier,
}

impl Journal {
    /// The journal of a recording that will be at `output`, in `format`.
    pub(super) fn of(output: &Path, format: Format, earlier: Earlier) -> Self {
        let mut path = output.as_os_str().to_owned();
        path.push(SUFFIX);
        Self { path: path.into(), output: output.to_owned(), format, earlier }
    }

    /// The name for messages.
    pub(super) fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Fails if a killed recording has left a journal that should be kept, or another recording writes it.
    pub(super) fn check(&self) -> Result<(), Error> {
        let refuse = |source| Err(Error::Write { name: self.name(), source });
        if let Err(busy) = lock::check(&self.path) {
            return refuse(busy);
        }
        match self.earlier {
            Earlier::Keep if self.path.exists() => {
                let message = format!(
                    "file exists, because a recording was killed; recover it with {}, or use --force to replace it",
                    self.command()
                );
                refuse(io::Error::new(io::ErrorKind::AlreadyExists, message))
            }
            _ => Ok(()),
        }
    }

    /// An output that is written to the journal before it is written to `output`. If nothing is sampled, there is no journal.
    pub(super) fn before<'s>(&self, output: &'s mut dyn LiveSink) -> Journaled<'s> {
        let (path, existing) = (self.path.clone(), self.earlier.existing());
        let open = move || {
            let created = lock::check(&path).and_then(|()| create_live(&path, existing));
            created.map_err(|source| {
                io::Error::new(source.kind(), Error::Write { name: path.display().to_string(), source })
            })
        };
        Journaled { journal: opened_once(RbtOptions::default(), open), output }
    }

    /// Removes it, because the output is complete or not wanted.
    pub(super) fn remove(self) {
        let _ = fs::remove_file(self.path);
    }

    /// Says how to make the output, which could not be made.
    pub(super) fn keep(&self) {
        if self.path.exists() {
            say(&format!(
                "note: {}: holds what was recorded; make the output of it with {}",
                self.name(),
                self.command()
            ));
        }
    }

    /// The command that makes the output.
    fn command(&self) -> String {
        let [journal, output] =
            [&self.path, &self.output].map(|path| shell_bytes(path.as_os_str().as_encoded_bytes()));
        let is_known = format_of_name(&self.output).is_some_and(|(format, _)| format == self.format);
        let to = if is_known { String::new() } else { format!(" --to {}", self.format.name()) };
        format!("borehole recover {journal} -o {output}{to}")
    }
}

/// An output with a journal.
pub(super) struct Journaled<'s> {
    journal: RbtOutput,
    output: &'s mut dyn LiveSink,
}

impl ProfileSink for Journaled<'_> {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        let _ = self.journal.sample(at, sample)?;
        self.output.sample(at, sample)
    }

    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        self.journal.segment(at)?;
        self.output.segment(at)
    }

    fn metadata(&mut self, at: Context<'_>, key: StringId, value: StringId) -> io::Result<()> {
        self.journal.metadata(at, key, value)?;
        self.output.metadata(at, key, value)
    }

    fn finish(&mut self, tables: &Tables) -> io::Result<()> {
        self.journal.finish(tables)?;
        self.output.finish(tables)
    }

    fn next(&mut self) -> Option<&mut dyn ProfileSink> {
        Some(self.output)
    }
}

impl LiveSink for Journaled<'_> {
    fn flush(&mut self) -> io::Result<()> {
        LiveSink::flush(&mut self.journal)?;
        self.output.flush()
    }
}
