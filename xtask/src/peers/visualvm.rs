//! The reader of heap dumps that VisualVM has, with a small program of ours around it.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{Ready, debian, once};
use crate::command;

/// Where Debian's package has the reader.
const READER: &str = "/usr/share/visualvm/visualvm/modules/org-graalvm-visualvm-lib-jfluid-heap.jar";

const PROGRAM: &str = include_str!("visualvm.java");

/// Changes when the program does, so that it is compiled anew.
const PROGRAM_VERSION: u32 = 1;

/// Installs VisualVM and compiles the program unless they are there.
///
/// # Errors
/// When apt-get or the compiler cannot.
pub(crate) fn prepare(folder: &Path) -> Result<Ready> {
    debian::ensure_installed("javac", "default-jdk-headless")?;
    let ready = debian::program("visualvm", "visualvm")?;
    ensure!(Path::new(READER).is_file(), "VisualVM has no {READER}");
    let home = once(folder, &format!("visualvm-{}-{PROGRAM_VERSION}", ready.version), compile)?;
    let java = command::find("java").context("java is not on the path")?;
    let classes = format!("{}:{READER}", home.display());
    let command = vec![java.display().to_string(), "-cp".to_owned(), classes, "Dump".to_owned()];
    Ok(Ready { command, version: ready.version })
}

fn compile(into: &Path) -> Result<()> {
    let source = into.join("Dump.java");
    fs::write(&source, PROGRAM)?;
    let options = ["-nowarn", "-Xlint:none", "-classpath", READER, "-d"];
    command::run(Command::new("javac").args(options).arg(into).arg(source))
}
