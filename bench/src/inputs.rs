//! Inputs that are too large to be kept in the project.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};

use super::Bench;

/// The traces that claims are made about.
pub(crate) struct Traces {
    /// A million samples of stacks 40 deep, runs of equal ones written as repeats.
    pub(crate) million: PathBuf,
    /// A million samples with a timestamp each.
    pub(crate) timed: PathBuf,
    /// The first, a hundred times over.
    pub(crate) hundred_million: PathBuf,
    /// A hundred million samples of the same stacks in one segment, no two neighbours equal.
    pub(crate) restless: PathBuf,
    /// A million and a hundred million samples of stacks 3 deep, for the format that writes out every frame.
    pub(crate) shallow: [PathBuf; 2],
}

impl Bench {
    /// A file of the corpus.
    pub(crate) fn corpus(&self, path: &str) -> PathBuf {
        self.root.join("corpus").join(path)
    }

    /// A file in the cache, written by `make` unless it is there. A change of what `make` writes needs a new
    /// name.
    pub(crate) fn input(
        &self,
        name: &str,
        make: impl FnOnce(&mut BufWriter<File>) -> Result<()>,
    ) -> Result<PathBuf> {
        let wanted = self.folder.join(name);
        if wanted.is_file() {
            return Ok(wanted);
        }
        eprintln!("making {}", wanted.display());
        let unfinished = self.folder.join(format!("{name}.unfinished"));
        let mut output = BufWriter::new(File::create(&unfinished)?);
        make(&mut output).with_context(|| format!("making {name}"))?;
        let file = output.into_inner().map_err(std::io::IntoInnerError::into_error)?;
        // Read as one that was there before: how a file lies in the system's cache since it was written decides how much memory a
        // program is said to have of it.
        file.sync_all()?;
        posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED)?;
        fs::rename(&unfinished, &wanted)?;
        Ok(wanted)
    }

    /// `file` many times over: segments of a trace may stand one after the other.
    pub(crate) fn repeated(&self, file: &Path, times: u32) -> Result<PathBuf> {
        let name = file.file_name().context("a file has a name")?.to_string_lossy().into_owned();
        self.input(&format!("{times}x-{name}"), |output| {
            let bytes = fs::read(file)?;
            (0..times).try_for_each(|_| Ok(output.write_all(&bytes)?))
        })
    }
}

/// A file as the table calls it.
pub(crate) fn name(input: &Path) -> String {
    input.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    #[test]
    fn an_input_is_made_once_and_whole() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().to_owned();
        let bench = Bench { root: here.clone(), borehole: here.clone(), lake: here.clone(), folder: here };
        assert!(bench.input("a", |_| bail!("no disk")).is_err());
        assert!(!folder.path().join("a").exists());
        let source = folder.path().join("s.rbt");
        fs::write(&source, "RELI").unwrap();
        let made = bench.repeated(&source, 3).unwrap();
        assert_eq!(fs::read_to_string(&made).unwrap(), "RELIRELIRELI");
        fs::write(&source, "other").unwrap();
        assert_eq!(fs::read_to_string(bench.repeated(&source, 3).unwrap()).unwrap(), "RELIRELIRELI");
    }
}
