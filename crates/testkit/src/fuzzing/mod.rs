//! Functions that take any bytes whatever, and bytes for them.
//!
//! A target has one function, which is run on three occasions: by libFuzzer (`fuzz/`), which finds new
//! inputs where a nightly toolchain is at hand; by `cargo xtask fuzz`, which mutates on any toolchain; and by
//! a test, which replays the seeds each time.

mod heap;
mod mutate;
mod php;
mod session;
mod system;
mod targets;

use std::fs;
use std::path::PathBuf;

pub use mutate::{Mutator, Random};
pub use session::{FuzzCount, FuzzOptions, fuzz};
use targets::Run;
pub use targets::targets;

use crate::{corpus_files, project_file};

/// A reader under test.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, and that of its folder below `fuzz/seeds`.
    pub name: &'static str,
    run: Run,
    /// Folders of the corpus, with the ending of their files, that are seeds too.
    pub corpus: &'static [(&'static str, &'static str)],
}

impl Target {
    /// The target called `name`.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn named(name: &str) -> Self {
        let found = targets().into_iter().find(|target| target.name == name);
        found.unwrap_or_else(|| panic!("there is no fuzz target {name}"))
    }

    /// Reads the bytes.
    ///
    /// # Panics
    /// When something is wrong with the reader, never because the bytes are.
    pub fn run(&self, bytes: &[u8]) {
        self.run.on(bytes);
    }

    /// The folder of inputs that are kept: small ones, and every one that once failed.
    #[must_use]
    pub fn seed_folder(&self) -> PathBuf {
        project_file("fuzz/seeds").join(self.name)
    }

    /// The files to begin with: the seeds, then those of the corpus.
    ///
    /// # Panics
    /// When the seed folder cannot be read, or a folder of the corpus has no such file.
    #[must_use]
    pub fn seeds(&self) -> Vec<PathBuf> {
        let folder = self.seed_folder();
        let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let mut files: Vec<PathBuf> =
            entries.map(|entry| entry.expect("a folder that opens can be listed").path()).collect();
        files.sort();
        files.extend(self.corpus.iter().flat_map(|(folder, ending)| corpus_files(folder, ending)));
        files
    }
}
