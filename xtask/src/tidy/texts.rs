//! Texts that a public project must not have: unfinished code, unguarded unwraps, options in libraries, addresses of machines.

use super::Violation;
use super::rules::{self, Freedom};
use super::scan::{Mention, MentionForm};
use super::tree::{ProjectTree, SourceFile};

/// Nothing is left for later, and no test is left out.
pub(crate) fn unfinished(tree: &ProjectTree) -> Vec<Violation> {
    let is_unfinished = |mention: &&Mention| match mention.form {
        MentionForm::Macro => mention.ends_with(&["todo"]) || mention.ends_with(&["unimplemented"]),
        MentionForm::Attribute => mention.path == ["ignore"],
        MentionForm::Path | MentionForm::Method => false,
    };
    let check = |source: &SourceFile| -> Vec<Violation> {
        let found = source.facts.mentions.iter().filter(is_unfinished);
        found.map(|mention| violation(source, mention, "is not finished work")).collect()
    };
    tree.sources.iter().flat_map(check).collect()
}

/// Outside tests, what cannot fail says why.
pub(crate) fn unwraps(tree: &ProjectTree) -> Vec<Violation> {
    let is_unwrap = |mention: &&Mention| {
        let is_call = mention.form == MentionForm::Method || mention.path.len() > 1;
        !mention.in_test && is_call && mention.ends_with(&["unwrap"])
    };
    let check = |source: &SourceFile| -> Vec<Violation> {
        let found = source.facts.mentions.iter().filter(is_unwrap);
        found.map(|mention| violation(source, mention, "does not say why it cannot fail")).collect()
    };
    tree.sources.iter().flat_map(check).collect()
}

/// Libraries do not name options of the command.
pub(crate) fn options(tree: &ProjectTree) -> Vec<Violation> {
    let is_library = |source: &&SourceFile| {
        let rule = rules::of(&source.package());
        rule.is_some_and(|rule| {
            let is_of_programs = rule.freedom == Freedom::Program || rules::OF_PROGRAMS.contains(&rule.name);
            rule.level <= rules::FACADE_LEVEL && !is_of_programs
        })
    };
    let check = |source: &SourceFile| -> Vec<Violation> {
        let found = source.facts.literals.iter().filter_map(|literal| {
            let option = option(literal)?;
            let message = format!("{option} is an option of the command: a library says what to do as data");
            Some(Violation { rule: "texts", path: source.path.clone(), line: None, message })
        });
        found.collect()
    };
    tree.sources.iter().filter(is_library).flat_map(check).collect()
}

/// The first option in a text that names no program that it could be of.
fn option(text: &str) -> Option<&str> {
    let is_option = |&word: &&str| {
        word.strip_prefix("--")
            .is_some_and(|name| name.starts_with(|letter: char| letter.is_ascii_lowercase()))
    };
    let has_owner = || rules::OPTION_OWNERS.iter().any(|owner| text.contains(owner));
    let mut words = text.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '-'));
    words.find(is_option).filter(|_| !has_owner())
}

fn violation(source: &SourceFile, mention: &Mention, what: &str) -> Violation {
    let message = format!("{} {what}", mention.path.join("::"));
    Violation { rule: "texts", path: source.path.clone(), line: Some(mention.line), message }
}

/// No file names a registry's host or a folder of somebody's machine.
pub(crate) fn addresses(tree: &ProjectTree) -> Vec<Violation> {
    let sources = tree.sources.iter().map(|source| (&source.path, &source.text));
    let documents = tree.documents.iter().map(|document| (&document.path, &document.text));
    let lines = sources
        .chain(documents)
        .flat_map(|(path, text)| text.lines().enumerate().map(move |(index, line)| (path, index + 1, line)));
    lines
        .filter_map(|(path, number, line)| {
            let message = address(line, &tree.machine_paths)?;
            Some(Violation { rule: "texts", path: path.clone(), line: Some(number), message })
        })
        .collect()
}

/// The address that stands in `line`.
fn address(line: &str, machine_paths: &[String]) -> Option<String> {
    if let Some(host) = rules::REGISTRY_HOSTS.iter().find(|host| has_host(line, host)) {
        return Some(format!("{host} is a registry's host"));
    }
    let here = machine_paths.iter().map(String::as_str);
    let path = rules::MACHINE_PATHS.iter().copied().chain(here).find(|path| has_folder(line, path))?;
    Some(format!("{path} is a folder of somebody's machine"))
}

/// Whether `host`, or a host below it, stands in `line` and is not the beginning of a longer name.
fn has_host(line: &str, host: &str) -> bool {
    occurrences(line, host).any(|(before, after)| {
        !before.is_some_and(|letter| letter.is_alphanumeric() || letter == '-')
            && !after.is_some_and(char::is_alphanumeric)
    })
}

/// Whether `folder` stands in `line` as the beginning of an absolute path.
fn has_folder(line: &str, folder: &str) -> bool {
    occurrences(line, folder).any(|(before, after)| {
        after == Some('/')
            && !before.is_some_and(|letter| letter.is_alphanumeric() || "_./-".contains(letter))
    })
}

/// The letters before and after each place where `wanted` stands in `line`.
fn occurrences<'a>(
    line: &'a str,
    wanted: &'a str,
) -> impl Iterator<Item = (Option<char>, Option<char>)> + 'a {
    line.match_indices(wanted)
        .map(move |(at, found)| (line[..at].chars().next_back(), line[at + found.len()..].chars().next()))
}
