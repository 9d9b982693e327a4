//! Python 3.15 with its own profiler, in a system beside this one.
//!
//! It sees a folder of its system only, so files pass through there: [`Python::write`] puts one in, and
//! [`Python::inside`] is what Python calls it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::peers::{Peer, peer};

/// Reads, writes and loads what Python's profiler does, and says so as JSON lines.
const SCRIPT: &str = include_str!("tachyon.py");

/// Python, and a folder that it shares with this system.
#[derive(Debug)]
pub struct Python {
    peer: Peer,
    folder: TempDir,
}

impl Python {
    /// Python; `None`, said on stderr, if it is left out.
    ///
    /// # Panics
    /// When it is not set up, or its system has no folder for files.
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

    /// The command that enters its system and runs it there: the root is its first argument.
    #[must_use]
    pub fn command(&self) -> Command {
        self.peer.command()
    }

    /// Where the file `name` of the folder is for this system.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What Python calls the file `name` of the folder.
    ///
    /// # Panics
    /// Never: the folder is in the system's folder for temporary files.
    #[must_use]
    pub fn inside(&self, name: &str) -> String {
        let folder = self.folder.path().file_name().expect("a temporary folder has a name");
        Path::new("/tmp").join(folder).join(name).display().to_string()
    }

    /// Writes the file `name` into the folder.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path(name), bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
    }

    /// Reads the file `name` of the folder.
    ///
    /// # Panics
    /// When it cannot be read.
    #[must_use]
    #[track_caller]
    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Runs Python with `arguments`, of which the files of the folder `names` follow.
    #[must_use]
    pub fn run(&self, arguments: &[&str], names: &[&str]) -> Output {
        let names: Vec<_> = names.iter().map(|name| self.inside(name)).collect();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        self.peer.run(&[arguments, &names].concat())
    }

    /// What our script says about the files of the folder `names`, a value a line.
    fn script(&self, command: &str, names: &[&str]) -> Vec<Value> {
        let output = self.run(&[&self.inside("tachyon.py"), command], names);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command} {names:?}: {errors}");
        let text = String::from_utf8(output.stdout).expect("JSON is UTF-8");
        text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
    }

    /// What its reader gives out of the files of the folder `names`: of each an object with `info`, an object a
    /// sample, and at the end one with `stats`, or one with `error`.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    #[track_caller]
    pub fn samples(&self, names: &[&str]) -> Vec<Value> {
        self.script("read", names)
    }

    /// Has its writer write the samples of each of `specifications` (what they are, `tachyon.py` knows) as one of
    /// the files `names`.
    ///
    /// # Panics
    /// When it does not.
    #[track_caller]
    pub fn write_samples(&self, specifications: &Value, names: &[&str]) {
        self.write("specifications.json", specifications.to_string().as_bytes());
        self.script("write", &[&["specifications.json"], names].concat());
    }

    /// The rows that `pstats` loads out of the files of the folder `names`, of each in the order of their names:
    /// place, samples executing, samples on the stack, their times, callers.
    ///
    /// # Panics
    /// When it cannot load one.
    #[must_use]
    #[track_caller]
    pub fn statistics(&self, names: &[&str]) -> Vec<Value> {
        self.script("load", names)
    }

    /// What `replay` prints for each of `jobs`: options, and a file of the folder.
    ///
    /// # Panics
    /// When one fails.
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
            // Progress stands before the last line that it rewinds, the number of samples at the end.
            let text = answer["printed"].as_str().unwrap_or_default();
            let text = text
                .rsplit_once('\r')
                .map_or(text, |(_, rest)| rest.split_once('\n').map_or("", |(_, rest)| rest));
            text.rsplit_once("Replayed ").map_or(text, |(text, _)| text).to_owned()
        });
        printed.collect()
    }

    /// Options in which `{}` stands for the folder, and a file of it.
    fn arguments(&self, options: &[&str], name: &str) -> Vec<String> {
        let folder = self.inside("");
        let options = options.iter().map(|option| option.replace("{}", &folder));
        options.chain([self.inside(name)]).collect()
    }
}
