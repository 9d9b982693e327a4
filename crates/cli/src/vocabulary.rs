//! Tests that options of the same name mean the same in all commands, and that help and examples are consistent.

use std::collections::{BTreeMap, BTreeSet};

use clap::{Arg, Args as _, Command, CommandFactory as _};

use crate::filter::{FilterArgs, ShapeArgs};

/// Options with the same name but another meaning in one command, each with the reason.
const OTHERS: &[(&str, &str)] = &[
    // A threshold for sizes or shares, not only shares.
    ("heap compare", "fail-over"),
    // Adds labels instead of choosing by label.
    ("record", "label"),
    // The start of the view instead of a search.
    ("heap explore", "address"),
    // Also accepts `max`.
    ("record", "rate"),
    // The kind of output, and so the name of the value, depends on the command.
    ("heap analyze", "output"),
    ("heap capture", "output"),
    ("heap dump", "output"),
    ("heap export", "output"),
    ("man", "output"),
    ("lake man", "output"),
    // Selections of a lake are compared.
    ("lake diff", "after"),
    ("lake diff", "before"),
    // Of functions only.
    ("lake diff", "fail-over"),
    // Columns of a lake have other names than properties of a profile.
    ("lake top", "by"),
    ("lake trend", "by"),
];

/// An option as help shows it: its short form, and the names of its values.
type FlagForm = (Option<char>, Vec<String>);

fn below(name: &str, command: &Command, found: &mut Vec<(String, Arg)>) {
    found.extend(command.get_arguments().map(|argument| (name.to_owned(), argument.clone())));
    for command in command.get_subcommands() {
        let name = format!("{name} {}", command.get_name());
        below(name.trim_start(), command, found);
    }
}

/// The programs, each with all commands and their arguments.
fn programs() -> Vec<(&'static str, Command)> {
    let found = [
        ("", crate::cli::Cli::command()),
        #[cfg(feature = "lake")]
        ("lake", crate::lake::LakeCli::command()),
        #[cfg(feature = "serve")]
        ("", crate::serve::ServeCli::command()),
    ];
    let whole = |(name, command): (_, Command)| {
        let mut command = command.disable_help_subcommand(true);
        command.build();
        (name, command)
    };
    found.into_iter().map(whole).collect()
}

/// The arguments of all commands.
fn arguments() -> Vec<(String, Arg)> {
    let mut found = Vec::new();
    for (name, program) in programs() {
        below(name, &program, &mut found);
    }
    found
}

/// The options of all commands except [`OTHERS`].
fn flags() -> BTreeMap<String, Vec<(String, FlagForm)>> {
    let mut found: BTreeMap<String, Vec<(String, FlagForm)>> = BTreeMap::new();
    for (command, argument) in arguments() {
        let Some(long) = argument.get_long().filter(|long| !OTHERS.contains(&(command.as_str(), *long)))
        else {
            continue;
        };
        let names = argument.get_value_names().unwrap_or_default();
        let takes = argument.get_action().takes_values();
        let shown = (argument.get_short(), names.iter().filter(|_| takes).map(ToString::to_string).collect());
        found.entry(long.to_owned()).or_default().push((command, shown));
    }
    found
}

/// The examples in the help of a command.
fn examples(command: &Command) -> Vec<String> {
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let is_example = |line: &&str| line.starts_with("  borehole ") || line.starts_with("  borehole-serve ");
    help.lines().filter(is_example).map(str::to_owned).collect()
}

/// The commands that have examples, or should: the examples of a group stand for its subcommands.
fn shown(name: &str, command: &Command, found: &mut Vec<(String, Command)>) {
    if !command.has_subcommands() || !examples(command).is_empty() {
        found.push((name.to_owned(), command.clone()));
        return;
    }
    for command in command.get_subcommands() {
        shown(&format!("{name} {}", command.get_name()), command, found);
    }
}

#[test]
fn help_has_examples_of_options_that_there_are() {
    let mut found = Vec::new();
    for (name, program) in programs() {
        shown(format!("borehole {name}").trim_end(), &program, &mut found);
    }
    // An example may pipe into another command.
    let known = arguments();
    // Their help is that of other programs.
    let is_other =
        |name: &str| ["borehole lake", "borehole mcp", "borehole query", "borehole serve"].contains(&name);
    for (name, command) in found.iter().filter(|(name, _)| !is_other(name)) {
        let examples = examples(command);
        assert!(!examples.is_empty(), "{name} has no example");
        for example in examples {
            let own = example.split(" | ").next().unwrap_or_default();
            let words = own.split_whitespace().take_while(|&word| word != "--");
            for flag in words.filter_map(|word| word.strip_prefix("--")) {
                let flag = flag.split('=').next().unwrap_or_default();
                let is_known = |(_, argument): &(String, Arg)| {
                    argument.get_long_and_visible_aliases().unwrap_or_default().contains(&flag)
                };
                assert!(known.iter().any(is_known), "{name}: --{flag} in {own:?}");
            }
        }
    }
}

#[test]
fn a_flag_has_one_short_form_and_one_kind_of_value() {
    let mut differ = Vec::new();
    for (flag, uses) in flags() {
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
    for (flag, uses) in flags() {
        for short in uses.iter().filter_map(|(_, (short, _))| *short) {
            let first = meant.entry(short).or_insert_with(|| flag.clone());
            // `--to` when converting and `--format` when recording both name the output format.
            let is_format =
                short == 'f' && [flag.as_str(), first].iter().all(|name| ["format", "to"].contains(name));
            assert!(*first == flag || is_format, "-{short} is --{first} and --{flag}");
        }
    }
}

/// For each name of a value, texts that every option accepts, and texts that every option refuses.
const WRITTEN: &[(&str, &[&str], &[&str])] = &[
    (
        "DURATION",
        &["250ms", "30", "30s", "1.5m", "90min", "2h", "7d"],
        &["", "0s", "-1s", "1y", "nan", "inf"],
    ),
    ("KEY=VALUE", &["a=b", "a=", "a=b=c"], &["", "a", "=b"]),
    ("PERCENT", &["95", "95%", "99.5 %"], &["", "%", "-1", "nan", "inf", "much"]),
];

#[test]
fn a_kind_of_value_is_written_in_one_way() {
    let mut seen = BTreeSet::new();
    for (command, argument) in arguments() {
        let names = argument.get_value_names().unwrap_or_default();
        let Some((name, right, wrong)) = WRITTEN.iter().find(|(name, ..)| names == [*name]) else { continue };
        seen.insert(*name);
        let takes = |text: &str| {
            let value = Arg::new("value").required(true).value_parser(argument.get_value_parser().clone());
            let alone = Command::new("alone").arg(value.allow_hyphen_values(true));
            alone.try_get_matches_from(["alone", text]).is_ok()
        };
        let flag = argument.get_long().unwrap_or_default();
        assert!(right.iter().all(|text| takes(text)), "{command} --{flag} refuses one of {right:?}");
        assert!(!wrong.iter().any(|text| takes(text)), "{command} --{flag} takes one of {wrong:?}");
    }
    assert_eq!(seen.len(), WRITTEN.len(), "{seen:?}");
}

#[test]
fn a_heading_of_help_has_its_own_options_below_it_and_no_others() {
    let flags = |command: Command| -> BTreeSet<String> {
        command.get_arguments().filter_map(|argument| argument.get_long().map(str::to_owned)).collect()
    };
    let choosing = flags(FilterArgs::augment_args(Command::new("choosing")));
    let shaping = flags(ShapeArgs::augment_args(Command::new("shaping")));
    for (command, argument) in arguments() {
        let own = match argument.get_help_heading() {
            Some("Choosing samples") => &choosing,
            Some("Shaping stacks") => &shaping,
            heading => {
                assert_eq!(heading, None, "{command}");
                continue;
            }
        };
        let flag = argument.get_long().unwrap_or_default();
        assert!(own.contains(flag), "{command} --{flag} stands below {:?}", argument.get_help_heading());
    }
}

#[test]
fn each_exception_is_one() {
    let arguments = arguments();
    for (command, flag) in
        OTHERS.iter().filter(|(command, _)| cfg!(feature = "lake") || !command.starts_with("lake"))
    {
        let is_it = |(name, argument): &(String, Arg)| name == command && argument.get_long() == Some(flag);
        assert!(arguments.iter().any(is_it), "{command} --{flag}");
    }
}
