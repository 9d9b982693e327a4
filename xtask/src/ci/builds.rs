//! Builds for other features, toolchains and machines than the developer's own.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{Surroundings, TaskOutcome, cargo, passed};
use crate::metadata::{self, Manifest};
use crate::{command, peers};

/// The crate with a feature per format.
const FORMATS: &str = "borehole-formats";

/// The crate that other programs depend on.
const FACADE: &str = "borehole";

/// The crate of the command.
const COMMAND: &str = "borehole-cli";

/// A machine whose `usize` has 32 bits.
const NARROW_TARGET: &str = "i686-unknown-linux-gnu";

/// Systems other than the developer's own.
const OTHER_SYSTEMS: [&str; 3] = ["wasm32-unknown-unknown", "x86_64-pc-windows-gnu", "aarch64-apple-darwin"];

/// A machine that stores the highest byte of a number first.
const BIG_ENDIAN_TARGET: &str = "s390x-unknown-linux-gnu";

/// The crates that know bytes.
const BYTE_CRATES: [&str; 4] = ["borehole-wire", "borehole-model", "borehole-trc", FORMATS];

/// The crate that is built from C, which takes a C compiler for the target.
const C_CRATE: &str = "zstd";

/// A program with one format must stay small, and build: the crates with no feature, and with each one alone. The command too
/// builds without the servers of databases.
pub(super) fn features(at: &Surroundings<'_>) -> Result<TaskOutcome> {
    let manifests = metadata::manifests(at.root)?;
    cargo(at, &["clippy", "--quiet", "--package", COMMAND, "--no-default-features", "--", "-D", "warnings"])?;
    for name in [FORMATS, FACADE] {
        let clippy = ["clippy", "--quiet", "--package", name, "--no-default-features"];
        let fatal = ["--", "-D", "warnings"];
        cargo(at, &[&clippy[..], &fatal].concat())?;
        for feature in find(&manifests, name)?.single_features() {
            cargo(at, &[&clippy[..], &["--features", feature], &fatal].concat())?;
        }
    }
    Ok(TaskOutcome::Passed)
}

/// The published crates that promise to build with the Rust that the workspace names, built with it.
pub(super) fn msrv(at: &Surroundings<'_>) -> Result<TaskOutcome> {
    let manifests = metadata::manifests(at.root)?;
    let version =
        find(&manifests, FACADE)?.rust_version.clone().context("expected a rust-version, found none")?;
    let installed = command::output(Command::new("rustup").args(["toolchain", "list"])).unwrap_or_default();
    let Some(toolchain) = toolchain(&installed, &version) else {
        return Ok(TaskOutcome::Skipped(format!(
            "rustup has no Rust {version}; `rustup toolchain install {version} --profile minimal` adds it"
        )));
    };
    let promising =
        |package: &&Manifest| package.is_published && package.rust_version.as_ref() == Some(&version);
    let mut rustup = command::building(Command::new("rustup"), at.root);
    rustup.args(["run", toolchain, "cargo", "check", "--locked", "--profile", "quick"]);
    for package in manifests.iter().filter(promising) {
        rustup.args(["--package", &package.name]);
    }
    // Another compiler builds everything anew: in a folder of its own both builds stay.
    rustup.env("CARGO_TARGET_DIR", command::target(at.root).join("msrv"));
    passed(command::run(&mut rustup))
}

/// The name of the toolchain of Rust `version` in what `rustup toolchain list` prints.
fn toolchain<'a>(installed: &'a str, version: &str) -> Option<&'a str> {
    let names = installed.lines().filter_map(|line| line.split_whitespace().next());
    let is_version = |name: &&str| {
        name.strip_prefix(version).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '.']))
    };
    names.into_iter().find(is_version)
}

/// Numbers of a file that do not fit into `usize` are found where it is narrow. Formats that need C are left out.
pub(super) fn narrow(at: &Surroundings<'_>) -> Result<TaskOutcome> {
    if !has_target(at.root, NARROW_TARGET) {
        return Ok(TaskOutcome::Skipped(missing_target(NARROW_TARGET)));
    }
    let manifests = metadata::manifests(at.root)?;
    let formats = find(&manifests, FORMATS)?;
    let pure: Vec<&str> =
        formats.single_features().into_iter().filter(|feature| !formats.turns_on(feature, C_CRATE)).collect();
    let check = ["check", "--target", NARROW_TARGET, "--package"];
    cargo(at, &[&check[..], &[FORMATS, "--no-default-features", "--features", &pure.join(",")]].concat())?;
    cargo(at, &[&check[..], &["borehole-analysis"]].concat())
}

/// Programs of other systems, and pages, can read profiles: the facade with formats that need no C compiler, for the systems that
/// rustup has.
pub(super) fn other_systems(at: &Surroundings<'_>) -> Result<TaskOutcome> {
    let present: Vec<_> = OTHER_SYSTEMS.iter().filter(|target| has_target(at.root, target)).collect();
    if present.is_empty() {
        return Ok(TaskOutcome::Skipped(missing_target(OTHER_SYSTEMS[0])));
    }
    let features = "rbt,pprof,folded,heap";
    let check = ["check", "--package", FACADE, "--no-default-features", "--features", features, "--target"];
    for target in present {
        cargo(at, &[&check[..], &[target]].concat())?;
    }
    Ok(TaskOutcome::Passed)
}

/// Bytes that are read in the machine's own order are found where it is the other one: the tests run in an emulator.
pub(super) fn big_endian(at: &Surroundings<'_>) -> Result<TaskOutcome> {
    let [emulator, compiler] = ["qemu-s390x", "s390x-linux-gnu-gcc"];
    for program in [emulator, compiler] {
        ensure!(
            command::find(program).is_some(),
            "missing {program}: install the Debian packages qemu-user, gcc-s390x-linux-gnu and libc6-dev-s390x-cross"
        );
    }
    ensure!(has_target(at.root, BIG_ENDIAN_TARGET), "{}", missing_target(BIG_ENDIAN_TARGET));
    let mut cargo = command::cargo(at.root);
    cargo.args(["test", "--target", BIG_ENDIAN_TARGET, "--lib", "--tests", "--no-fail-fast"]);
    for name in BYTE_CRATES {
        cargo.args(["--package", name]);
    }
    cargo.env("CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_LINKER", compiler);
    cargo.env("CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_RUNNER", format!("{emulator} -L /usr/s390x-linux-gnu"));
    cargo.env("CC_s390x_unknown_linux_gnu", compiler);
    // They judge files, and those are the same on every machine.
    cargo.env(peers::WITHOUT_VARIABLE, peers::names().join(","));
    passed(command::run(&mut cargo))
}

fn find<'a>(manifests: &'a [Manifest], name: &str) -> Result<&'a Manifest> {
    manifests.iter().find(|manifest| manifest.name == name).with_context(|| format!("missing package {name}"))
}

/// Whether the compiler has the standard library of `target`.
fn has_target(root: &Path, target: &str) -> bool {
    let mut rustc = Command::new("rustc");
    rustc.current_dir(root).args(["--print", "target-libdir", "--target", target]);
    command::output(&mut rustc).is_ok_and(|folder| Path::new(folder.trim()).is_dir())
}

fn missing_target(target: &str) -> String {
    format!("the compiler has no {target}; `rustup target add {target}` adds it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_toolchain_is_found_by_its_version() {
        let installed = "stable-x86_64-unknown-linux-gnu (active, default)\n1.8-x86_64\n1.89.0-x86_64-unknown-linux-gnu\n";
        assert_eq!(toolchain(installed, "1.89"), Some("1.89.0-x86_64-unknown-linux-gnu"));
        assert_eq!(toolchain("1.89-x86_64\n", "1.89"), Some("1.89-x86_64"));
        assert_eq!(toolchain("1.890-x86_64\nnightly\n", "1.89"), None);
    }
}
