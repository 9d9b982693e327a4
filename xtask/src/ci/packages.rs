//! The packages that are published: in which order, with what in them, and that programs can be built of them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::{Surroundings, TaskOutcome};
use crate::command;
use crate::metadata::{self, Manifest};

/// The files that each package has beside its sources.
const PRESENT: [&str; 4] = ["Cargo.toml", "README.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// Those of them that are the project's.
const LICENCES: [&str; 2] = ["LICENSE-MIT", "LICENSE-APACHE"];

/// The folder of the files that examples in the documentation of a package read, and that of which they are copies.
const DATA: &str = "data";
const DATA_ORIGINALS: &str = "corpus/rbt";

/// The folder of the programs that use the packages.
const EXAMPLES: &str = "examples/library";

/// The folder, below that of the others, of the program that uses one format alone.
const SLIM: &str = "slim";

/// The program with a format that another crate brings.
const OWN_FORMAT: &str = "own_format";

/// A program with the files of the corpus that it reads, and how many lines of code it took before the library was made for such
/// programs.
struct Example {
    name: &'static str,
    inputs: &'static [&'static str],
    lines_before: usize,
}

const PROGRAMS: [Example; 8] = [
    Example { name: "read_and_filter", inputs: &["rbt/daemon_worker.rbt"], lines_before: 22 },
    Example { name: "sampler", inputs: &[], lines_before: 53 },
    Example { name: "convert", inputs: &["rbt/realistic_54k_ts.rbt"], lines_before: 68 },
    Example { name: "recover", inputs: &["rbt/bitflip_middle.rbt"], lines_before: 21 },
    Example { name: "events", inputs: &[], lines_before: 59 },
    Example { name: "heap", inputs: &["php/heap/8.1.2.rdump", "php/heap/8.2.36.rdump"], lines_before: 35 },
    Example { name: OWN_FORMAT, inputs: &[], lines_before: 61 },
    Example { name: SLIM, inputs: &["rbt/daemon_worker.rbt"], lines_before: 8 },
];

/// Makes the packages, and builds and runs the examples with them.
pub(super) fn run(at: &Surroundings<'_>) -> Result<TaskOutcome> {
    let manifests = metadata::manifests(at.root)?;
    let order = order(&manifests)?;
    let names: Vec<&str> = order.iter().map(|manifest| manifest.name.as_str()).collect();
    println!("published in this order: {}", names.join(", "));
    let folder = command::target(at.root).join("packages");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("{}", folder.display()))?;
    }
    fs::create_dir_all(&folder)?;
    let mut package = command::cargo(at.root);
    package.args(["package", "--quiet", "--offline", "--no-verify", "--allow-dirty"]);
    for name in &names {
        package.args(["--package", name]);
    }
    command::run(&mut package)?;
    let unpacked = order.iter().map(|manifest| unpack(at.root, manifest, &folder));
    let packages = unpacked.collect::<Result<Vec<_>>>()?;
    run_examples(at.root, &names, &packages, &folder)?;
    count_lines(at.root)?;
    Ok(TaskOutcome::Passed)
}

/// The published crates, each behind those that it depends on. Crates that are needed for tests only are not published with it.
fn order(manifests: &[Manifest]) -> Result<Vec<&Manifest>> {
    let mut left: Vec<_> = manifests.iter().filter(|manifest| manifest.is_published).collect();
    let names: BTreeSet<_> = left.iter().map(|manifest| manifest.name.clone()).collect();
    let mut order: Vec<&Manifest> = Vec::new();
    while !left.is_empty() {
        let is_ready = |manifest: &&Manifest| {
            let mut needed =
                manifest.dependencies.iter().filter(|(name, is_dev)| !is_dev && names.contains(name));
            needed.all(|(name, _)| order.iter().any(|before| before.name == *name))
        };
        let ready = left.iter().position(is_ready);
        let Some(ready) = ready else {
            bail!(
                "crates depend on each other: {:?}",
                left.iter().map(|crate_| &crate_.name).collect::<Vec<_>>()
            )
        };
        order.push(left.remove(ready));
    }
    Ok(order)
}

/// Unpacks the package of a crate, and checks what is in it.
fn unpack(root: &Path, Manifest { name, version, .. }: &Manifest, folder: &Path) -> Result<PathBuf> {
    let made = command::target(root).join("package");
    let archive = made.join(format!("{name}-{version}.crate"));
    command::run(Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(folder))?;
    let package = folder.join(format!("{name}-{version}"));
    for file in PRESENT {
        ensure!(package.join(file).is_file(), "{name}: the package lacks {file}");
    }
    // They are copies: links are lost in some checkouts.
    let same = |copy: &Path, original: &Path| -> Result<()> {
        ensure!(fs::read(copy)? == fs::read(original)?, "{name}: {} is another", original.display());
        Ok(())
    };
    for licence in LICENCES {
        same(&package.join(licence), &root.join(licence))?;
    }
    for entry in fs::read_dir(package.join(DATA)).into_iter().flatten() {
        let copy = entry?.path();
        let original = copy.file_name().map(|file| root.join(DATA_ORIGINALS).join(file));
        same(&copy, &original.context("a file has a name")?)?;
    }
    Ok(package)
}

/// Builds the examples with the packages in place of the registry's, and runs them.
fn run_examples(root: &Path, names: &[&str], packages: &[PathBuf], folder: &Path) -> Result<()> {
    let copy = folder.join("examples");
    copy_programs(&root.join(EXAMPLES), &copy)?;
    for (project, program) in [(copy.clone(), None), (copy.join(SLIM), Some(SLIM))] {
        // The same versions of everything else as in the workspace.
        fs::copy(root.join("Cargo.lock"), project.join("Cargo.lock"))?;
        let mut build = command::cargo(&project);
        build.args(["build", "--quiet", "--offline", "--target-dir"]).arg(folder.join("built"));
        for (name, package) in names.iter().zip(packages) {
            build
                .arg("--config")
                .arg(format!("patch.crates-io.{name}.path={:?}", package.display().to_string()));
        }
        command::run(&mut build)?;
        for example in PROGRAMS.iter().filter(|example| program.is_none_or(|program| program == example.name))
        {
            if program.is_some() || example.name != SLIM {
                run_example(root, example, folder)?;
            }
        }
    }
    Ok(())
}

fn run_example(root: &Path, example: &Example, folder: &Path) -> Result<()> {
    let built = if example.name == SLIM { "borehole-slim-example" } else { example.name };
    let mut program = Command::new(folder.join("built/debug").join(built));
    program.current_dir(folder).args(example.inputs.iter().map(|input| root.join("corpus").join(input)));
    let said = command::output(&mut program).with_context(|| example.name.to_owned())?;
    println!("{}: {}", example.name, said.lines().next().unwrap_or_default());
    Ok(())
}

fn copy_programs(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let name = path.file_name().context("an entry has a name")?;
        if path.is_dir() {
            copy_programs(&path, &to.join(name))?;
        } else {
            fs::copy(&path, to.join(name))?;
        }
    }
    Ok(())
}

/// Counts the lines of code of each example; together they are at least a third shorter than before.
fn count_lines(root: &Path) -> Result<()> {
    let program = |name: &str| format!("src/bin/{name}.rs");
    let (mut now, mut before) = (0, 0);
    for Example { name, lines_before, .. } in PROGRAMS {
        let lines = match name {
            SLIM => code_lines(root, &format!("{SLIM}/src/main.rs"))?,
            OWN_FORMAT => code_lines(root, &program(name))? + code_lines(root, "toy/src/lib.rs")?,
            name => code_lines(root, &program(name))?,
        };
        println!("{lines:>3} lines, {lines_before:>3} before: {name}");
        (now, before) = (now + lines, before + lines_before);
    }
    ensure!(now * 3 <= before * 2, "expected at most two thirds of {before} lines, found {now}");
    Ok(())
}

/// The lines of code of a file of the examples.
fn code_lines(root: &Path, source: &str) -> Result<usize> {
    let source = root.join(EXAMPLES).join(source);
    let text = fs::read_to_string(&source).with_context(|| source.display().to_string())?;
    let is_code = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with("//");
    Ok(text.lines().filter(is_code).count())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(name: &str, dependencies: &[(&str, bool)]) -> Manifest {
        let dependencies = dependencies.iter().map(|&(name, is_dev)| (name.to_owned(), is_dev)).collect();
        Manifest { name: name.to_owned(), is_published: true, dependencies, ..Manifest::default() }
    }

    #[test]
    fn a_crate_comes_behind_those_that_it_depends_on_but_for_tests() {
        let derive = manifest("derive", &[("trc", true)]);
        let trc = manifest("trc", &[("derive", false), ("memchr", false)]);
        let manifests = [trc, derive];
        let names: Vec<_> =
            order(&manifests).unwrap().iter().map(|manifest| manifest.name.as_str()).collect();
        assert_eq!(names, ["derive", "trc"]);
        let circle = [manifest("a", &[("b", false)]), manifest("b", &[("a", false)])];
        assert!(order(&circle).is_err());
    }
}
