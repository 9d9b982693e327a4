//! `cargo xtask test`: every test, with the peers that they need.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::{command, peers};

/// Sets up the peers and runs all tests.
///
/// # Errors
/// When a peer is missing, or a test fails.
pub(crate) fn run(root: &Path, without: &[String]) -> Result<()> {
    peers::run(without, &[])?;
    workspace(root, without)
}

/// Runs all tests with the peers that are there.
///
/// # Errors
/// When a test fails.
pub(crate) fn workspace(root: &Path, without: &[String]) -> Result<()> {
    let mut cargo = command::cargo(root);
    // One run tells everything: it takes long enough.
    cargo.args(["test", "--locked", "--workspace", "--all-features", "--no-fail-fast"]);
    with_peers(&mut cargo, without)?;
    // The same random profiles every time, so that a failure is a change's own. Other seeds are for the fuzzer
    // and for whoever sets the variable.
    if std::env::var_os(SEED_VARIABLE).is_none() {
        cargo.env(SEED_VARIABLE, "20260429");
    }
    command::run(&mut cargo)
}

/// Tests the recorder of Tokio with the hooks that see every task, which Tokio has for who builds all of a program
/// that way.
///
/// # Errors
/// When a test fails.
pub(crate) fn tokio_unstable(root: &Path) -> Result<()> {
    let mut cargo = command::cargo(root);
    cargo
        .args(["test", "--package", "borehole-tokio", "--features", "taskdump"])
        .env("RUSTFLAGS", "--cfg tokio_unstable");
    // Other flags build everything anew: in a folder of its own both builds stay.
    cargo.env("CARGO_TARGET_DIR", command::target(root).join("tokio-unstable"));
    command::run(&mut cargo)
}

/// The variable with the seed of the random numbers of proptest.
const SEED_VARIABLE: &str = "PROPTEST_RNG_SEED";

/// Tells tests where the peers are, and which are left out.
fn with_peers(command: &mut Command, without: &[String]) -> Result<()> {
    command.env(peers::FOLDER_VARIABLE, peers::folder()?);
    command.env(peers::WITHOUT_VARIABLE, without.join(","));
    Ok(())
}
