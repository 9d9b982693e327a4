//! One vocabulary over all commands: a flag that two of them have means the same in both.

use std::collections::BTreeMap;

use clap::{Arg, Command, CommandFactory as _};

/// Flags that mean something else in one command, which is where their name is right.
const OTHERS: &[(&str, &str)] = &[
    // Sizes may grow, and shares.
    ("heap compare", "fail-over"),
    // What a sample is labelled with, instead of what is chosen by it.
    ("record", "label"),
    // What is looked for, and where to begin.
    ("heap explore", "address"),
    // As many as can be.
    ("record", "rate"),
    // What is written depends on the command, and so does what it is called.
    ("heap analyze", "output"),
    ("heap capture", "output"),
    ("heap dump", "output"),
    ("heap export", "output"),
    ("man", "output"),
    ("lake man", "output"),
    // Two stretches of time are compared, and not the rest of one left out.
    ("lake diff", "after"),
    ("lake diff", "before"),
];

/// A flag as help shows it: its short form, and what its value is called.
type Shown = (Option<char>, Vec<String>);

fn flags(name: &str, command: &Command, found: &mut BTreeMap<String, Vec<(String, Shown)>>) {
    let shown = |argument: &Arg| -> Shown {
        let names = argument.get_value_names().unwrap_or_default();
        let takes = argument.get_action().takes_values();
        (argument.get_short(), names.iter().filter(|_| takes).map(ToString::to_string).collect())
    };
    for argument in command.get_arguments() {
        let Some(long) = argument.get_long() else { continue };
        if !OTHERS.contains(&(name, long)) {
            found.entry(long.to_owned()).or_default().push((name.to_owned(), shown(argument)));
        }
    }
    for below in command.get_subcommands() {
        let name = format!("{name} {}", below.get_name());
        flags(name.trim_start(), below, found);
    }
}

fn all() -> BTreeMap<String, Vec<(String, Shown)>> {
    let mut found = BTreeMap::new();
    flags("", &<crate::cli::Cli>::command(), &mut found);
    #[cfg(feature = "lake")]
    flags("lake", &crate::lake::Cli::command(), &mut found);
    found
}

#[test]
fn a_flag_has_one_short_form_and_one_kind_of_value() {
    let mut differ = Vec::new();
    for (flag, uses) in all() {
        let (first, shown) = &uses[0];
        let others = uses.iter().filter(|(_, other)| other != shown);
        differ.extend(
            others.map(|(command, other)| format!("--{flag}: {first} {shown:?}, {command} {other:?}")),
        );
    }
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}

#[test]
fn a_short_form_stands_for_one_flag() {
    let mut meant = BTreeMap::new();
    for (flag, uses) in all() {
        for short in uses.iter().filter_map(|(_, (short, _))| *short) {
            let first = meant.entry(short).or_insert_with(|| flag.clone());
            // The format to write is asked for where something is converted, and named where something is recorded.
            let is_format =
                short == 'f' && [flag.as_str(), first].iter().all(|name| ["format", "to"].contains(name));
            assert!(*first == flag || is_format, "-{short} is --{first} and --{flag}");
        }
    }
}

#[test]
fn each_exception_is_one() {
    for (command, flag) in OTHERS {
        let mut at = match command.strip_prefix("lake ") {
            #[cfg(feature = "lake")]
            Some(_) => crate::lake::Cli::command(),
            #[cfg(not(feature = "lake"))]
            Some(_) => continue,
            None => <crate::cli::Cli>::command(),
        };
        for name in command.trim_start_matches("lake ").split(' ') {
            at = at.find_subcommand(name).unwrap_or_else(|| panic!("no command {command}")).clone();
        }
        assert!(at.get_arguments().any(|argument| argument.get_long() == Some(flag)), "{command} --{flag}");
    }
}
