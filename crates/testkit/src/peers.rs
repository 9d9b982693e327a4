//! The reference programs that check our output.
//!
//! `cargo xtask peers` installs them and lists them in a file. `BOREHOLE_PEERS` names its folder, if it is not the default
//! one. `BOREHOLE_WITHOUT=NAME,…` skips peers, and their tests print so.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

use serde::Deserialize;

/// The options that the peer `chromium` always gets: no window, no sandbox (it runs as root), no network access of its own.
pub const HEADLESS: [&str; 8] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
];

/// A reference program that can be run.
#[derive(Clone, Debug, Deserialize)]
pub struct Peer {
    command: Vec<String>,
    version: String,
}

/// The peer called `name`; `None`, with a line on stderr, if it is skipped.
///
/// # Panics
/// If it is not installed.
#[must_use]
#[track_caller]
#[expect(clippy::print_stderr, reason = "a skipped check must not go unnoticed")]
pub fn peer(name: &str) -> Option<Peer> {
    let without = env::var("BOREHOLE_WITHOUT").unwrap_or_default();
    if without.split(',').any(|skipped| skipped == name) {
        eprintln!("WITHOUT {name}: this test checks nothing");
        return None;
    }
    match find(&folder(), name) {
        Ok(peer) => Some(peer),
        Err(message) => {
            panic!("{message}\nrun `cargo xtask peers`, or skip it with BOREHOLE_WITHOUT={name}")
        }
    }
}

/// The peer called `name`, which is installed only on request. `None`, with a line on stderr, if it is not.
#[must_use]
#[expect(clippy::print_stderr, reason = "a skipped check must not go unnoticed")]
pub fn optional(name: &str) -> Option<Peer> {
    let found = find(&folder(), name).ok();
    if found.is_none() {
        eprintln!("WITHOUT {name}: `cargo xtask peers {name}` installs it");
    }
    found
}

/// The cache of `cargo xtask peers`.
fn folder() -> PathBuf {
    let named = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = || named("XDG_CACHE_HOME").or_else(|| Some(named("HOME")?.join(".cache")));
    named("BOREHOLE_PEERS").or_else(|| Some(cache()?.join("borehole/peers"))).unwrap_or_default()
}

fn find(folder: &Path, name: &str) -> Result<Peer, String> {
    let list = folder.join("peers.json");
    let text =
        fs::read(&list).map_err(|error| format!("missing peer {name}: {}: {error}", list.display()))?;
    let peers: BTreeMap<String, Peer> =
        serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", list.display()))?;
    peers.get(name).cloned().ok_or_else(|| format!("missing peer {name}: not in {}", list.display()))
}

impl Peer {
    /// The command that runs it, without arguments.
    ///
    /// # Panics
    /// If `peers.json` names no program.
    #[must_use]
    pub fn command(&self) -> Command {
        let (program, arguments) = self.command.split_first().expect("a peer has a program");
        let mut command = Command::new(program);
        command.args(arguments);
        command
    }

    /// Its version.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Runs it with `arguments` and an empty standard input.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn run(&self, arguments: &[&str]) -> Output {
        let mut command = self.command();
        let output = command.args(arguments).stdin(std::process::Stdio::null()).output();
        output.unwrap_or_else(|error| panic!("peer {command:?}: {error}"))
    }

    /// Runs it with `arguments` and returns its standard output.
    ///
    /// # Panics
    /// If it fails, with its output.
    #[must_use]
    #[track_caller]
    pub fn stdout(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {}\n{text}\n{errors}", output.status);
        text
    }
}

/// The answers of Perfetto's trace processor to `queries` on the timeline `file`: for each query its rows, with values by
/// column. `None` if it is skipped.
///
/// # Panics
/// If it is not installed, cannot read the file, or does not understand a query.
#[must_use]
#[track_caller]
pub fn perfetto_rows(file: &Path, queries: &[&str]) -> Option<Vec<Vec<BTreeMap<String, serde_json::Value>>>> {
    let file = file.to_string_lossy();
    let arguments = [&[&*file], queries].concat();
    let answer = peer("perfetto")?.stdout(&arguments);
    Some(answer.lines().map(|line| serde_json::from_str(line).expect("an answer is JSON")).collect())
}

/// The result of speedscope's importer for a file.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct SpeedscopeImport {
    /// Its name.
    pub name: String,
    /// Its profiles: a file may hold several, one per thread.
    pub profiles: Vec<SpeedscopeProfile>,
}

/// A profile that speedscope's importer found.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct SpeedscopeProfile {
    /// Its name.
    pub name: String,
    /// The unit of its weights.
    pub unit: String,
    /// The sum of its weights.
    pub total_weight: f64,
    /// The number of distinct frames.
    pub frames: u64,
    /// The weight of the samples that have a function as leaf, by its name.
    #[serde(rename = "self")]
    pub self_weights: BTreeMap<String, f64>,
}

/// Imports `file` with speedscope; `None` if speedscope is skipped.
///
/// # Errors
/// The message of the importer, if it rejects the file.
///
/// # Panics
/// If speedscope is not installed.
#[track_caller]
pub fn speedscope_import(file: &Path) -> Option<Result<SpeedscopeImport, String>> {
    let output = peer("speedscope")?.run(&["import", &file.to_string_lossy()]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Some(serde_json::from_str(&text).map_err(|_| text))
}

/// The violations of speedscope's JSON schema in `file`; `None` if speedscope is skipped.
///
/// # Panics
/// If speedscope is not installed, or the file is not JSON.
#[must_use]
#[track_caller]
pub fn speedscope_schema_errors(file: &Path) -> Option<Vec<String>> {
    #[derive(Deserialize)]
    struct Validation {
        valid: bool,
        errors: Vec<String>,
    }
    let text = peer("speedscope")?.stdout(&["validate", &file.to_string_lossy()]);
    let answer: Validation = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(answer.valid, answer.errors.is_empty(), "{text}");
    Some(answer.errors)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scratch;

    #[test]
    fn a_peer_that_is_not_installed_is_an_error() {
        let scratch = Scratch::new();
        let message = find(scratch.folder(), "perl").unwrap_err();
        assert!(message.starts_with("missing peer perl: "), "{message}");
        let list = r#"{"perl": {"command": ["/usr/bin/perl", "-w"], "version": "5"}}"#;
        drop(scratch.write("peers.json", list.as_bytes()));
        assert_eq!(find(scratch.folder(), "perl").map(|peer| peer.version), Ok("5".to_owned()));
        assert!(find(scratch.folder(), "pprof").unwrap_err().starts_with("missing peer pprof: not in "));
    }
}
