//! Files of the project that tests read.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// The file at `path` in the project, with `/` between folders.
#[must_use]
pub fn project_file(path: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(path)
}

/// The file at `path` in the corpus, such as `rbt/native.rbt`.
///
/// # Panics
/// If it does not exist.
#[must_use]
pub fn corpus(path: &str) -> PathBuf {
    let file = project_file("corpus").join(path);
    assert!(file.exists(), "missing corpus file {path}");
    file
}

/// The contents of the file at `path` in the corpus.
///
/// # Panics
/// If it cannot be read.
#[must_use]
pub fn read_corpus(path: &str) -> Vec<u8> {
    fs::read(corpus(path)).unwrap_or_else(|error| panic!("corpus file {path}: {error}"))
}

/// The files directly in `folder` of the corpus whose names end in `ending`, in order.
///
/// # Panics
/// If there is none, because a test over no files shows nothing.
#[must_use]
pub fn corpus_files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(corpus(folder)).unwrap_or_else(|error| panic!("{folder}: {error}"));
    let paths = entries.map(|entry| entry.expect("a folder that opens can be listed").path());
    let is_wanted = |path: &PathBuf| path.is_file() && path.to_string_lossy().ends_with(ending);
    let mut files: Vec<PathBuf> = paths.filter(is_wanted).collect();
    assert!(!files.is_empty(), "no file of {folder} ends in {ending:?}");
    files.sort();
    files
}

/// The SHA-256 of `bytes` in hexadecimal, as the manifests give it.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
