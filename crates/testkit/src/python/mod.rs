//! Python 3.15 with its own profiler, in a root file system of its own.
//!
//! It sees only files of that file system, so tests share a folder in it: [`Python::write`] writes a file there, and
//! [`Python::inside`] is its path for Python.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::peers::{Peer, peer};

/// A script that reads, writes and loads files with Python's profiler, and prints the results as JSON lines.
const SCRIPT: &str = include_str!("tachyon.py");

/// Python, and a folder that it shares with tests.
#[derive(Debug)]
pub struct Python {
    peer: Peer,
    folder: TempDir,
}

impl Python {
    /// Finds Python; `None`, with a line on stderr, if it is skipped.
    ///
    /// # Panics
    /// If it is not installed, or its file system has no folder for temporary files.
    #[must_use]
    #[track_caller]
    pub fn set_up() -> Option<Self> {
        let peer = peer("python")?;
        let root = peer.command().get_args().next().map(PathBuf::from).expect("a system has a root");
        let folder = TempDir::new_in(root.join("tmp")).expect("the system of Python has a folder");
        fs::write(folder.path().join("tachyon.py"), SCRIPT).expect("the folder takes a file");
        Some(Self { peer, folder })
    }

    /// Its version.
    #[must_use]
    pub fn version(&self) -> &str {
        self.peer.version()
    }

    /// The command that runs it in its root file system; the path of that is its first argument.
    #[must_use]
    pub fn command(&self) -> Command {
        self.peer.command()
    }

    /// The path of the file `name` of the folder for this process.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The path of the file `name` of the folder for Python.
    ///
    /// # Panics
    /// Never: the folder is in the folder for temporary files.
    #[must_use]
    pub fn inside(&self, name: &str) -> String {
        let folder = self.folder.path().file_name().expect("a temporary folder has a name");
        Path::new("/tmp").join(folder).join(name).display().to_string()
    }

    /// Writes the file `name` into the folder.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path(name), bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
    }

    /// Reads the file `name` of the folder.
    ///
    /// # Panics
    /// If it cannot be read.
    #[must_use]
    #[track_caller]
    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Runs Python with `arguments`, followed by the files `names` of the folder.
    #[must_use]
    pub fn run(&self, arguments: &[&str], names: &[&str]) -> Output {
        let names: Vec<_> = names.iter().map(|name| self.inside(name)).collect();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        self.peer.run(&[arguments, &names].concat())
    }

    /// The lines that the script prints for the files `names` of the folder.
    fn script(&self, command: &str, names: &[&str]) -> Vec<Value> {
        let output = self.run(&[&self.inside("tachyon.py"), command], names);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command} {names:?}: {errors}");
        let text = String::from_utf8(output.stdout).expect("JSON is UTF-8");
        text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
    }

    /// Reads the files `names` of the folder with its reader. Returns for each file an object with `info`, an object per
    /// sample, and at the end one with `stats`, or one with `error`.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    #[track_caller]
    pub fn samples(&self, names: &[&str]) -> Vec<Value> {
        self.script("read", names)
    }

    /// Writes the samples of each of `specifications` (explained in `tachyon.py`) with its writer, to the files `names`.
    ///
    /// # Panics
    /// If it fails.
    #[track_caller]
    pub fn write_samples(&self, specifications: &Value, names: &[&str]) {
        self.write("specifications.json", specifications.to_string().as_bytes());
        self.script("write", &[&["specifications.json"], names].concat());
    }

    /// The rows that `pstats` loads from the files `names` of the folder, for each file in the order of function names: place,
    /// self samples, total samples, their times, callers.
    ///
    /// # Panics
    /// If it cannot load one.
    #[must_use]
    #[track_caller]
    pub fn statistics(&self, names: &[&str]) -> Vec<Value> {
        self.script("load", names)
    }

    /// The output of `replay` for each of `jobs`: options, and a file of the folder.
    ///
    /// # Panics
    /// If one fails.
    #[must_use]
    #[track_caller]
    pub fn replayed(&self, jobs: &[(&[&str], &str)]) -> Vec<String> {
        let list: Vec<Vec<String>> =
            jobs.iter().map(|(options, name)| self.arguments(options, name)).collect();
        self.write("jobs.json", Value::from(list).to_string().as_bytes());
        let answers = self.script("replay", &["jobs.json"]);
        assert_eq!(answers.len(), jobs.len());
        let printed = jobs.iter().zip(answers).map(|((options, name), answer)| {
            assert_eq!(answer["code"], 0, "{options:?} {name}: {}", answer["progress"]);
            // The output follows the last progress line that is overwritten, with the number of samples at the end.
            let text = answer["printed"].as_str().unwrap_or_default();
            let text = text
                .rsplit_once('\r')
                .map_or(text, |(_, rest)| rest.split_once('\n').map_or("", |(_, rest)| rest));
            text.rsplit_once("Replayed ").map_or(text, |(text, _)| text).to_owned()
        });
        printed.collect()
    }

    /// Options, in which `{}` stands for the folder, and a file in it.
    fn arguments(&self, options: &[&str], name: &str) -> Vec<String> {
        let folder = self.inside("");
        let options = options.iter().map(|option| option.replace("{}", &folder));
        options.chain([self.inside(name)]).collect()
    }
}
