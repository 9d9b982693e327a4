//! The chores of the project: `cargo xtask NAME`.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that talks to its user")]

mod arguments;
mod bench;
mod ci;
mod demo;
mod formatting;
mod fuzz;
mod interface;
mod metadata;
mod mutants;
mod picture;
mod progress;
mod testing;
mod tidy;
mod web;

use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use xtask::{command, peers};

use arguments::Given;

/// Something that `cargo xtask` does.
struct Chore {
    name: &'static str,
    /// One line.
    about: &'static str,
    /// Its arguments and options, a line each; empty if it takes none.
    arguments: &'static str,
    run: fn(&Path, &[String]) -> Result<()>,
}

const CHORES: &[Chore] = &[
    Chore {
        name: "demo",
        about: "Record a PHP program, show where its time goes, and draw its flame graph",
        arguments: "",
        run: |root, arguments| {
            Given::read(arguments, &[], &[])?.without_words()?;
            demo::run(root)
        },
    },
    Chore {
        name: "test",
        about: "Set up the peers and run every test",
        arguments: WITHOUT,
        run: |root, arguments| {
            let given = Given::read(arguments, &[], &["--without"])?.without_words()?;
            testing::run(root, &given.values("--without"))
        },
    },
    Chore {
        name: "ci",
        about: "Run the tasks that must pass before a change goes in",
        arguments: "
  --list          List the tasks, what each does, and how long it takes
  --only TASK     Run this task alone (repeatable)
  --without PEER  Leave this peer out, and the tests that need it (repeatable)",
        run: |root, arguments| {
            let given = Given::read(arguments, &["--list"], &["--only", "--without"])?.without_words()?;
            if given.has("--list") {
                ci::list();
                return Ok(());
            }
            ci::run(root, &given.values("--only"), &given.values("--without"))
        },
    },
    Chore {
        name: "interface",
        about: "List the public interface of the library in docs/interface.txt",
        arguments: "",
        run: |root, arguments| {
            Given::read(arguments, &[], &[])?.without_words()?;
            interface::write(root)
        },
    },
    Chore {
        name: "peers",
        about: "Set up the reference programs that tests compare with",
        arguments: "
  [PEER]...       Also set up this release of PHP, such as php-8.4, or php for all; takes minutes, and root
  --without PEER  Leave this peer out (repeatable)",
        run: |_, arguments| {
            let given = Given::read(arguments, &[], &["--without"])?;
            peers::run(&given.values("--without"), &given.words)
        },
    },
    Chore {
        name: "fmt",
        about: "Format all sources, those of modules declared by a macro too",
        arguments: "",
        run: |root, arguments| {
            Given::read(arguments, &[], &[])?.without_words()?;
            formatting::run(root, false)
        },
    },
    Chore {
        name: "tidy",
        about: "Check the rules on dependencies, sizes and names",
        arguments: "",
        run: |root, arguments| {
            Given::read(arguments, &[], &[])?.without_words()?;
            tidy::run(root)
        },
    },
    Chore {
        name: "count",
        about: "Count lines, functions, types, reused names and circles between modules, per crate",
        arguments: "
  --format NAME   The format whose traces outside its folder are counted [default: callgrind]
  --json          Print JSON",
        run: |root, arguments| {
            let given = Given::read(arguments, &["--json"], &["--format"])?.without_words()?;
            let format = given.values("--format").pop();
            tidy::count(root, format.as_deref().unwrap_or("callgrind"), given.has("--json"))
        },
    },
    Chore {
        name: "bench",
        about: "Measure every claim on speed and memory, and keep the table in BENCHMARKS.md",
        arguments: "
  --rounds N      How often each side of each claim runs [default: 7]
  --only TEXT     Only claims whose name contains this; BENCHMARKS.md stays as it is",
        run: bench::run,
    },
    Chore {
        name: "fuzz",
        about: "Run the fuzz targets on mutated seeds",
        arguments: "
  [TARGET]        The target; without one, all, one after the other
  --seconds N     How long to run each [default: 10]
  --seed N        The number that decides which inputs are made [default: 1]
  --careful       Write each input to a file before it is run, for failures that end the process",
        run: fuzz::run,
    },
    Chore {
        name: "mutants",
        about: "Change the code in many places, one at a time, and print which changes no test notices",
        arguments: "
  [CRATE]...      The crates whose code changes; without one, a sample of those that the others rest on
  --sample N      Try so many changes of each, drawn at random [default: all]
  --seed N        The number that decides which changes are drawn [default: 1]
  --in TEXT       Only changes in files whose path contains this
  --tests TEXT    Only run tests whose name contains this
  --with CRATE    Also run the tests of this crate (repeatable)",
        run: mutants::run,
    },
    Chore {
        name: "web",
        about: "Make the scripts and styles of the pages from web/, after their tests",
        arguments: "",
        run: |root, arguments| {
            Given::read(arguments, &[], &[])?.without_words()?;
            web::make(root)
        },
    },
    Chore {
        name: "pictures",
        about: "Draw the pictures in the README and the guides anew",
        arguments: "",
        run: |root, arguments| {
            Given::read(arguments, &[], &[])?.without_words()?;
            picture::run(root)
        },
    },
];

const WITHOUT: &str = "
  --without PEER  Leave this peer out, and the tests that need it (repeatable)";

fn main() -> ExitCode {
    let arguments: Vec<String> =
        env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    match run(&arguments, &root()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String], root: &Path) -> Result<()> {
    let is_help = |word: &String| matches!(word.as_str(), "--help" | "-h");
    let Some((name, rest)) = arguments.split_first().filter(|(name, _)| !is_help(name)) else {
        println!("{}", overview());
        return Ok(());
    };
    let chore = CHORES.iter().find(|chore| chore.name == name);
    let chore = chore.with_context(|| format!("unknown chore {name}; `cargo xtask` lists them"))?;
    if rest.iter().any(is_help) {
        println!("{}", usage(chore));
        return Ok(());
    }
    (chore.run)(root, rest)
}

/// Every chore in a line.
fn overview() -> String {
    let lines: String = CHORES.iter().map(|chore| format!("\n  {:<8} {}", chore.name, chore.about)).collect();
    format!(
        "The chores of the project. `cargo xtask CHORE --help` shows the options of one.\n\n\
         Usage: cargo xtask CHORE [OPTIONS]\n\nChores:{lines}"
    )
}

/// One chore and its options.
fn usage(chore: &Chore) -> String {
    let Chore { name, about, arguments, .. } = chore;
    let options = if arguments.is_empty() { "" } else { " [OPTIONS]" };
    format!("{about}.\n\nUsage: cargo xtask {name}{options}\n{arguments}").trim_end().to_owned()
}

/// The root of the project: cargo says where it runs from; built in is only where it was built.
fn root() -> PathBuf {
    let built_in = || env!("CARGO_MANIFEST_DIR").into();
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(built_in));
    here.parent().unwrap_or(&here).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_names_every_chore_and_its_options() {
        let overview = overview();
        assert!(CHORES.iter().all(|chore| overview.contains(chore.about)), "{overview}");
        let ci = CHORES.iter().find(|chore| chore.name == "ci").unwrap();
        assert!(usage(ci).contains("Usage: cargo xtask ci [OPTIONS]\n\n  --list "), "{}", usage(ci));
        let tidy = CHORES.iter().find(|chore| chore.name == "tidy").unwrap();
        assert!(usage(tidy).ends_with("Usage: cargo xtask tidy"), "{}", usage(tidy));
    }

    #[test]
    fn an_unknown_chore_or_option_is_an_error() {
        let message = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            run(&words, Path::new("nowhere")).unwrap_err().to_string()
        };
        assert_eq!(message("tidily"), "unknown chore tidily; `cargo xtask` lists them");
        assert_eq!(message("tidy --all"), "unknown option --all");
        assert_eq!(message("demo now"), "unexpected argument now");
    }
}
