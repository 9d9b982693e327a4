//! One vocabulary over all commands: a flag that two of them have means the same in both.

use std::collections::{BTreeMap, BTreeSet};

use clap::{Arg, Args as _, Command, CommandFactory as _};

use crate::filter::{FilterArgs, ShapeArgs};

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

fn below(name: &str, command: &Command, found: &mut Vec<(String, Arg)>) {
    found.extend(command.get_arguments().map(|argument| (name.to_owned(), argument.clone())));
    for command in command.get_subcommands() {
        let name = format!("{name} {}", command.get_name());
        below(name.trim_start(), command, found);
    }
}

/// The programs, each with all that its commands take.
fn programs() -> Vec<(&'static str, Command)> {
    let mut found = vec![("", crate::cli::Cli::command())];
    #[cfg(feature = "lake")]
    found.push(("lake", crate::lake::Cli::command()));
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

/// The flags of all commands, but the exceptions.
fn flags() -> BTreeMap<String, Vec<(String, Shown)>> {
    let mut found: BTreeMap<String, Vec<(String, Shown)>> = BTreeMap::new();
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
    help.lines().filter(|line| line.starts_with("  borehole ")).map(str::to_owned).collect()
}

/// The commands that have examples, or should: those of a group stand for what is below it.
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
    // An example may go on with another command.
    let known = arguments();
    // The help of the lake's own program is shown for it.
    for (name, command) in found.iter().filter(|(name, _)| name != "borehole lake") {
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
            // The format to write is asked for where something is converted, and named where something is recorded.
            let is_format =
                short == 'f' && [flag.as_str(), first].iter().all(|name| ["format", "to"].contains(name));
            assert!(*first == flag || is_format, "-{short} is --{first} and --{flag}");
        }
    }
}

/// What is written and refused alike wherever a value has this name.
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
