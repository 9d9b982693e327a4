//! The names that sources may use: formats, the machine, the terminal, `unsafe`.

use std::collections::BTreeSet;

use super::Violation;
use super::rules::{self, Freedom};
use super::scan::{Mention, MentionForm};
use super::tree::{ProjectTree, SourceFile};

/// No format names another, nor does what serves all of them.
pub(crate) fn formats(tree: &ProjectTree) -> Vec<Violation> {
    let sources = || {
        let own = tree.sources.iter().filter(|source| source.package() == rules::FORMATS_CRATE);
        own.filter_map(|source| Some((source, source.below_src()?)))
    };
    let lists_formats = |module: &str| rules::FORMAT_LISTS.contains(&module.trim_end_matches(".rs"));
    let folders = sources().filter_map(|(_, below)| Some(below.split_once('/')?.0));
    let is_format = |folder: &&str| !lists_formats(folder) && !rules::FORMAT_SERVANTS.contains(folder);
    let formats: BTreeSet<&str> = folders.filter(is_format).collect();
    let checked = sources().filter(|(_, below)| !below.split('/').next().is_some_and(lists_formats));
    checked.flat_map(|(source, below)| format_source(source, below, &formats)).collect()
}

fn format_source(source: &SourceFile, below: &str, formats: &BTreeSet<&str>) -> Vec<Violation> {
    let own = below.split('/').next().unwrap_or_default().trim_end_matches(".rs");
    let wrong = |mention: &Mention| {
        let is_other = named_format(mention, formats).is_some_and(|format| format != own);
        is_other.then(|| format!("{own} must not name a format: {}", mention.path.join("::")))
    };
    product(source, "formats", wrong)
}

/// The files that know bytes only do not name the model.
pub(crate) fn wire_files(tree: &ProjectTree) -> Vec<Violation> {
    let wrong = |mention: &Mention| {
        let names_model = mention.starts_with(&[rules::MODEL_CRATE]);
        names_model.then(|| format!("this file knows bytes only, and must not name {}", rules::MODEL_CRATE))
    };
    let wire = tree.sources.iter().filter(|source| is_wire_file(source));
    wire.flat_map(|source| product(source, "formats", wrong)).collect()
}

/// Whether `source` is one of the files that know bytes only, in a folder of the formats' crate or a format's own crate.
fn is_wire_file(source: &SourceFile) -> bool {
    let package = source.package();
    let folders = usize::from(package == rules::FORMATS_CRATE);
    let is_format = package == rules::FORMATS_CRATE || rules::FORMAT_CRATES.contains(&package.as_str());
    let name = source.below_src().and_then(|below| below.split('/').nth(folders));
    is_format && name.is_some_and(|name| rules::WIRE_FILES.contains(&name.trim_end_matches(".rs")))
}

/// The format that a path of the crate leads into.
fn named_format<'a>(mention: &Mention, formats: &BTreeSet<&'a str>) -> Option<&'a str> {
    let [first, second, ..] = mention.path.as_slice() else { return None };
    let is_own_crate = first == "crate" || first == "borehole_formats";
    formats.get(second.as_str()).copied().filter(|_| is_own_crate)
}

/// Pure crates see no file, environment, clock, terminal or network.
pub(crate) fn system(tree: &ProjectTree) -> Vec<Violation> {
    let wrong = |mention: &Mention| {
        let found = rules::SYSTEM_PATHS.iter().any(|path| mention.starts_with(path))
            || rules::CLOCKS.iter().any(|path| mention.ends_with(path));
        found.then(|| format!("{} is out of bounds for a pure crate", mention.path.join("::")))
    };
    let pure = tree.sources.iter().filter(|source| freedom(source) == Freedom::Pure);
    pure.flat_map(|source| product(source, "purity", wrong)).collect()
}

/// Only programs print and exit; what helps tests may say that it leaves one out.
pub(crate) fn output(tree: &ProjectTree) -> Vec<Violation> {
    let check = |source: &SourceFile| {
        let freedom = freedom(source);
        let wrong = |mention: &Mention| {
            let is_allowed = freedom == Freedom::Tests && mention.path == ["eprintln"];
            (prints(mention) && !is_allowed)
                .then(|| format!("{} belongs into the command", mention.path.join("::")))
        };
        if freedom == Freedom::Program { Vec::new() } else { product(source, "output", wrong) }
    };
    tree.sources.iter().flat_map(check).collect()
}

fn prints(mention: &Mention) -> bool {
    let is_printing = |name: &String| rules::PRINTING.contains(&name.as_str());
    let is_macro = mention.form == MentionForm::Macro && mention.path.last().is_some_and(is_printing);
    is_macro || mention.ends_with(&["process", "exit"])
}

/// `unsafe` stands in the crates that need it, and in one file of the facade, which maps files.
pub(crate) fn unsafe_code(tree: &ProjectTree) -> Vec<Violation> {
    let outside =
        tree.sources.iter().filter(|source| !rules::UNSAFE_CRATES.contains(&source.package().as_str()));
    let found = outside.flat_map(|source| {
        let uses = source.facts.mentions.iter().filter(|mention| mention.path[0] == "unsafe");
        uses.map(move |mention| (source, mention.line))
    });
    let maps = |source: &&SourceFile| {
        let mut mentions = source.facts.mentions.iter();
        source.package() == rules::MMAP_HOME && mentions.any(|mention| mention.path[0] == rules::MMAP_CRATE)
    };
    let mapping = tree.sources.iter().find(maps);
    let elsewhere = found.filter(|(source, _)| mapping.is_none_or(|mapping| !std::ptr::eq(*source, mapping)));
    elsewhere
        .map(|(source, line)| violation(source, "unsafe", line, "unsafe code is not allowed here".to_owned()))
        .collect()
}

/// The attribute without which a crate may become unsafe by a single line elsewhere.
const FORBIDS_UNSAFE: &str = "#![forbid(unsafe_code)]";

/// Every other crate forbids `unsafe`, so that not even an exception of a lint allows it.
pub(crate) fn unsafe_forbidden(tree: &ProjectTree) -> Vec<Violation> {
    let needs_it = |package: &str| rules::UNSAFE_CRATES.contains(&package) || package == rules::MMAP_HOME;
    let roots = tree.sources.iter().filter(|source| is_crate_root(source) && !needs_it(&source.package()));
    let lacking = roots.filter(|source| !source.text.lines().any(|line| line == FORBIDS_UNSAFE));
    lacking.map(|source| violation(source, "unsafe", 1, format!("missing {FORBIDS_UNSAFE}"))).collect()
}

/// Whether `source` is the root of a library or a program of the workspace.
fn is_crate_root(source: &SourceFile) -> bool {
    let below = source.below_src().filter(|_| source.package() != "fuzz");
    below.is_some_and(|below| matches!(below, "lib.rs" | "main.rs") || below.starts_with("bin/"))
}

/// The complaints of `wrong` about the mentions of `source` outside tests.
fn product(
    source: &SourceFile,
    rule: &'static str,
    wrong: impl Fn(&Mention) -> Option<String>,
) -> Vec<Violation> {
    let mentions = source.facts.mentions.iter().filter(|mention| !mention.in_test);
    let found = mentions.filter_map(|mention| wrong(mention).map(|message| (mention.line, message)));
    found.map(|(line, message)| violation(source, rule, line, message)).collect()
}

fn violation(source: &SourceFile, rule: &'static str, line: usize, message: String) -> Violation {
    Violation { rule, path: source.path.clone(), line: Some(line), message }
}

/// The freedom of the crate of `source`; none, if nobody has said. Only `fuzz` stands outside the workspace; examples
/// are programs.
fn freedom(source: &SourceFile) -> Freedom {
    if source.path.split('/').any(|folder| folder == "examples") {
        return Freedom::Program;
    }
    match rules::of(&source.package()) {
        Some(rule) => rule.freedom,
        None if source.package() == "fuzz" => Freedom::System,
        None => Freedom::Pure,
    }
}
