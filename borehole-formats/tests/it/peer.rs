//! Programs of others that read what we write.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::Path;
use std::process::Command;

/// The command of a peer: what the installer of peers put into the environment.
pub(crate) fn peer(name: &str) -> Command {
    let variable = match name {
        "go-pprof" => "BOREHOLE_PEER_GO",
        "speedscope" => "BOREHOLE_PEER_SPEEDSCOPE",
        _ => panic!("unknown peer {name}"),
    };
    let Ok(path) = std::env::var(variable) else {
        panic!("peer {name} is not set up: run `cargo xtask peers`, or set {variable} to its path");
    };
    if name == "go-pprof" {
        let mut command = Command::new(path);
        command.args(["tool", "pprof"]);
        // The tool keeps its settings and caches under these.
        command.env("HOME", std::env::temp_dir()).env("PPROF_TMPDIR", std::env::temp_dir());
        return command;
    }
    let mut command = Command::new("node");
    command.arg(path);
    command
}

/// What a peer prints; fails with its messages if it fails.
pub(crate) fn output(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{errors}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

/// A file that only this test uses.
pub(crate) fn scratch(name: &str, bytes: &[u8]) -> std::path::PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}
