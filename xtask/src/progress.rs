//! A build that says how far it is.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, IsTerminal as _, Write as _, stderr};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::command;

/// Off a terminal, so many crates are one line.
const STEP: usize = 20;

/// Off a terminal, a line comes at least this often.
const LONGEST_SILENCE: Duration = Duration::from_secs(30);

/// Builds the program `name` of `package` in the profile `profile`, and says on stderr how far it is.
///
/// # Errors
/// When it cannot be built.
pub(crate) fn build(root: &Path, package: &str, name: &str, profile: &str) -> Result<PathBuf> {
    let mut progress = BuildProgress::new(crates_of(root, package)?);
    let mut cargo = command::cargo(root);
    cargo.args(["build", "--quiet", "--message-format", "json-render-diagnostics", "--profile", profile]);
    cargo.args(["--package", package, "--bin", name]).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = cargo.spawn().context("cannot start cargo build")?;
    let messages = BufReader::new(child.stdout.take().context("cargo has an output")?);
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || messages.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    loop {
        match receiver.recv_timeout(Duration::from_secs(1)) {
            Ok(line) => progress.take(&line),
            Err(RecvTimeoutError::Timeout) => progress.tick(),
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    progress.end();
    let status = child.wait()?;
    if !status.success() {
        bail!("cargo build --package {package}: {status}");
    }
    progress.program.with_context(|| format!("cargo built no program {name}"))
}

/// How many crates the package is made of, itself included. Downloads those that are missing, which cargo shows.
fn crates_of(root: &Path, package: &str) -> Result<usize> {
    let mut cargo = command::cargo(root);
    cargo.args(["tree", "--package", package, "--edges", "normal,build", "--prefix", "none"]);
    let output =
        cargo.stdin(Stdio::null()).stderr(Stdio::inherit()).output().context("cannot start cargo")?;
    if !output.status.success() {
        bail!("cargo tree --package {package}: {}", output.status);
    }
    Ok(distinct_crates(&String::from_utf8_lossy(&output.stdout)))
}

/// The names and versions in the output of `cargo tree`, each once.
fn distinct_crates(tree: &str) -> usize {
    let name = |line: &str| line.split_whitespace().take(2).map(str::to_owned).collect::<Vec<_>>();
    tree.lines().map(name).filter(|words| words.len() == 2).collect::<BTreeSet<_>>().len()
}

/// How far a build is.
struct BuildProgress {
    total: usize,
    begin: Instant,
    built: BTreeSet<String>,
    last: String,
    /// The program, once it is built.
    program: Option<PathBuf>,
    is_terminal: bool,
    /// When the last line was written, and how many crates were built then.
    said: (Instant, usize),
}

impl BuildProgress {
    fn new(total: usize) -> Self {
        let now = Instant::now();
        Self {
            total,
            begin: now,
            built: BTreeSet::new(),
            last: "none yet".to_owned(),
            program: None,
            is_terminal: stderr().is_terminal(),
            said: (now, 0),
        }
    }

    /// Reads a message of cargo's.
    fn take(&mut self, line: &str) {
        let Ok(message) = serde_json::from_str::<Value>(line) else { return };
        let is_script = message["target"]["kind"][0] == "custom-build";
        if message["reason"] != "compiler-artifact" || is_script {
            return;
        }
        if let Some(program) = message["executable"].as_str() {
            self.program = Some(program.into());
        }
        if let (Some(id), Some(name)) = (message["package_id"].as_str(), message["target"]["name"].as_str()) {
            self.built.insert(id.to_owned());
            name.clone_into(&mut self.last);
        }
        self.tick();
    }

    /// Says how far it is, if it is time to.
    fn tick(&mut self) {
        if self.is_terminal {
            // The line is written over; what a longer one left of itself is erased.
            eprint!("\r{}\x1b[K", self.line());
            let _ = stderr().flush();
        } else if self.built.len() >= self.said.1 + STEP || self.said.0.elapsed() >= LONGEST_SILENCE {
            eprintln!("{}", self.line());
            self.said = (Instant::now(), self.built.len());
        }
    }

    fn end(&self) {
        if self.is_terminal {
            eprint!("\r\x1b[K");
        }
        eprintln!("{}", self.line());
    }

    fn line(&self) -> String {
        let seconds = self.begin.elapsed().as_secs();
        format!("built {} of {} crates in {seconds} s; the last: {}", self.built.len(), self.total, self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_count_once_whatever_needs_them() {
        let tree =
            "a v1.0.0 (/here)\nserde v1.0.1\nquote v2.0.0 (proc-macro)\n\nserde v1.0.1 (*)\nserde v0.9.0\n";
        assert_eq!(distinct_crates(tree), 4);
    }

    #[test]
    fn artifacts_count_once_a_package_and_the_program_is_found() {
        let mut progress = BuildProgress::new(3);
        let artifact = |id: &str, kind: &str, name: &str, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","package_id":"{id}","target":{{"kind":["{kind}"],"name":"{name}"}},"executable":{executable}}}"#
            )
        };
        progress.take(&artifact("a 1", "custom-build", "build-script-build", "null"));
        assert!(progress.line().starts_with("built 0 of 3 crates in "), "{}", progress.line());
        progress.take(&artifact("a 1", "lib", "a", "null"));
        progress.take(&artifact("b 1", "lib", "b", "null"));
        progress.take(&artifact("b 1", "bin", "program", "\"/target/program\""));
        progress.take(r#"{"reason":"build-finished","success":true}"#);
        progress.take("warning: not JSON");
        assert!(progress.line().starts_with("built 2 of 3 crates in "), "{}", progress.line());
        assert!(progress.line().ends_with("; the last: program"), "{}", progress.line());
        assert_eq!(progress.program, Some("/target/program".into()));
    }
}
