//! The tests of a crate whose sources hold changes, built; changes that do not compile are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::change::{self, Change, Placed};
use super::tree;
use crate::command;

/// The module that answers whether a switch is on.
const SWITCHES: &str = include_str!("switches.rs");

/// The line of that module that gets the number of switches.
const NO_SWITCH: &str = "const COUNT: usize = 0;";

/// A change and the file that it is in, relative to the root.
pub(super) struct Candidate {
    pub(super) file: PathBuf,
    pub(super) change: Change,
}

/// A program of tests.
#[derive(Debug)]
pub(super) struct TestProgram {
    pub(super) path: PathBuf,
    /// Where cargo runs it.
    pub(super) folder: PathBuf,
}

/// A crate in a copy of the project.
pub(super) struct Workshop<'a> {
    /// The copy.
    pub(super) root: &'a Path,
    /// The folder with the sources of the crate, relative to the root.
    pub(super) sources: PathBuf,
    /// The packages whose tests are built.
    pub(super) packages: &'a [String],
    pub(super) target: &'a Path,
}

impl Workshop<'_> {
    /// Builds the tests with all of `candidates` that compile, and tells which those are.
    ///
    /// # Errors
    /// When the tests do not build, and no change is the reason.
    pub(super) fn build(&self, candidates: &[Candidate]) -> Result<(Vec<TestProgram>, Vec<usize>)> {
        let originals = self.originals(candidates)?;
        let mut viable: BTreeSet<usize> = (0..candidates.len()).collect();
        loop {
            let placed = self.write(candidates, &viable, &originals)?;
            let messages = self.cargo()?;
            let errors: Vec<&Value> = messages.iter().filter(|message| is_error(message)).collect();
            if errors.is_empty() {
                let programs = messages.iter().filter_map(test_program).collect();
                return Ok((programs, viable.into_iter().collect()));
            }
            let before = viable.len();
            for error in &errors {
                for number in blamed(error, &placed) {
                    viable.remove(&number);
                }
            }
            eprintln!("{} of {} changes compile so far", viable.len(), candidates.len());
            ensure!(
                viable.len() < before,
                "{}",
                errors[0]["message"]["rendered"].as_str().unwrap_or("cargo failed")
            );
        }
    }

    /// The sources with candidates, and the root of the crate, as they were.
    fn originals(&self, candidates: &[Candidate]) -> Result<BTreeMap<PathBuf, String>> {
        let mut files: BTreeSet<PathBuf> =
            candidates.iter().map(|candidate| candidate.file.clone()).collect();
        files.insert(self.crate_root());
        let read = |file: PathBuf| {
            let text =
                fs::read_to_string(self.root.join(&file)).with_context(|| format!("{}", file.display()))?;
            Ok((file, text))
        };
        files.into_iter().map(read).collect()
    }

    fn crate_root(&self) -> PathBuf {
        self.sources.join("lib.rs")
    }

    fn write(
        &self,
        candidates: &[Candidate],
        viable: &BTreeSet<usize>,
        originals: &BTreeMap<PathBuf, String>,
    ) -> Result<BTreeMap<PathBuf, Vec<Placed>>> {
        let mut all = BTreeMap::new();
        for (file, text) in originals {
            let of_file = viable.iter().filter(|&&number| candidates[number].file == *file);
            let changes: Vec<(usize, &Change)> =
                of_file.map(|&number| (number, &candidates[number].change)).collect();
            let (mut text, placed) = change::switched(text, &changes);
            if *file == self.crate_root() {
                text.push_str(
                    &SWITCHES.replace(NO_SWITCH, &NO_SWITCH.replace('0', &candidates.len().to_string())),
                );
            }
            tree::write(&self.root.join(file), text.as_bytes())?;
            all.insert(file.clone(), placed);
        }
        Ok(all)
    }

    /// The messages of a build of the tests.
    fn cargo(&self) -> Result<Vec<Value>> {
        let mut cargo = command::cargo(self.root);
        cargo.args([
            "test",
            "--no-run",
            "--quiet",
            "--locked",
            "--profile",
            "quick",
            "--message-format",
            "json",
        ]);
        cargo.args(["--lib", "--tests", "--no-fail-fast"]).env("CARGO_TARGET_DIR", self.target);
        for package in self.packages {
            cargo.args(["--package", package]);
        }
        let output =
            cargo.stdin(Stdio::null()).stderr(Stdio::piped()).output().context("cannot start cargo")?;
        let lines = String::from_utf8_lossy(&output.stdout).into_owned();
        let messages: Vec<Value> = lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        if !output.status.success() && !messages.iter().any(is_error) {
            bail!("cargo test --no-run: {}", String::from_utf8_lossy(&output.stderr).trim_end());
        }
        Ok(messages)
    }
}

fn is_error(message: &Value) -> bool {
    message["reason"] == "compiler-message"
        && message["message"]["level"] == "error"
        && message["message"]["spans"].as_array().is_some_and(|spans| !spans.is_empty())
}

fn test_program(message: &Value) -> Option<TestProgram> {
    let is_test = message["reason"] == "compiler-artifact" && message["profile"]["test"] == true;
    let path = PathBuf::from(message["executable"].as_str().filter(|_| is_test)?);
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
    Some(TestProgram { path, folder })
}

/// The changes that an error of the compiler is about.
fn blamed(error: &Value, placed: &BTreeMap<PathBuf, Vec<Placed>>) -> Vec<usize> {
    let spans = error["message"]["spans"].as_array().map(Vec::as_slice).unwrap_or_default();
    let (primary, others): (Vec<&Value>, Vec<&Value>) =
        spans.iter().partition(|span| span["is_primary"] == true);
    let blame = |spans: &[&Value]| -> Vec<usize> {
        let places = spans.iter().flat_map(|span| written_places(span));
        places
            .flat_map(|(file, place)| {
                placed.get(&file).map_or_else(Vec::new, |placed| change::blamed(placed, &place))
            })
            .collect()
    };
    let found = blame(&primary);
    let found = if found.is_empty() { blame(&others) } else { found };
    if !found.is_empty() {
        return found;
    }
    let in_file = |span: &Value| placed.get(Path::new(span["file_name"].as_str()?));
    let all = spans.iter().filter_map(in_file).flatten();
    all.map(|placed| placed.number).collect()
}

/// The file and bytes of a span, and of the macro calls that it comes from.
fn written_places(span: &Value) -> Vec<(PathBuf, Range<usize>)> {
    let mut places = Vec::new();
    let mut next = Some(span);
    while let Some(span) = next.filter(|span| span.is_object()) {
        let byte = |name: &str| span[name].as_u64().and_then(|byte| usize::try_from(byte).ok());
        if let (Some(file), Some(start), Some(end)) =
            (span["file_name"].as_str(), byte("byte_start"), byte("byte_end"))
        {
            places.push((file.into(), start..end));
        }
        next = span["expansion"].as_object().and_then(|expansion| expansion.get("span"));
    }
    places
}
