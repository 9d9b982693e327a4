//! What sources may name: formats, the machine, the terminal, `unsafe`.

use super::Violation;
use super::rules::{self, Freedom};
use super::scan::{Form, Mention};
use super::tree::{Source, Tree};

/// No format names another, and the files that know bytes only do not name the model.
pub(crate) fn formats(tree: &Tree) -> Vec<Violation> {
    let sources = tree.sources.iter().filter(|source| source.package() == rules::FORMATS_CRATE);
    sources.flat_map(format_source).collect()
}

fn format_source(source: &Source) -> Vec<Violation> {
    let Some(below) = source.below_src() else { return Vec::new() };
    let mut parts = below.split('/').map(|part| part.trim_end_matches(".rs"));
    let Some(format) = parts.next().filter(|name| !rules::NOT_FORMATS.contains(name)) else {
        return Vec::new();
    };
    let bytes_only = parts.next().is_some_and(|name| rules::WIRE_FILES.contains(&name));
    let wrong = |mention: &Mention| {
        if names_other_format(mention, format) {
            Some(format!("{format} must not name another format: {}", mention.path.join("::")))
        } else if bytes_only && mention.starts_with(&[rules::MODEL_CRATE]) {
            Some(format!("this file knows bytes only, and must not name {}", rules::MODEL_CRATE))
        } else {
            None
        }
    };
    product(source, "formats", wrong)
}

fn names_other_format(mention: &Mention, format: &str) -> bool {
    let own_crate = |name: &str| name == "crate" || name == "borehole_formats";
    let [first, second, ..] = mention.path.as_slice() else { return false };
    let is_module = second.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_');
    let is_known = second == format || rules::NOT_FORMATS.contains(&second.as_str());
    // A function at the root of the crate is not a format: there is none, its root only re-exports types.
    mention.form == Form::Path && own_crate(first) && is_module && !is_known
}

/// Pure crates see no file, environment, clock, terminal or network.
pub(crate) fn system(tree: &Tree) -> Vec<Violation> {
    let wrong = |mention: &Mention| {
        let found = rules::SYSTEM_PATHS.iter().any(|path| mention.starts_with(path))
            || rules::CLOCKS.iter().any(|path| mention.ends_with(path));
        found.then(|| format!("{} is out of bounds for a pure crate", mention.path.join("::")))
    };
    let pure = tree.sources.iter().filter(|source| freedom(source) == Freedom::Pure);
    pure.flat_map(|source| product(source, "purity", wrong)).collect()
}

/// Only programs print and exit; what helps tests may say that it leaves one out.
pub(crate) fn output(tree: &Tree) -> Vec<Violation> {
    let check = |source: &Source| {
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
    let is_macro = mention.form == Form::Macro && mention.path.last().is_some_and(is_printing);
    is_macro || mention.ends_with(&["process", "exit"])
}

/// `unsafe` stands in one crate, and once, for a mapped file, in the facade.
pub(crate) fn unsafe_code(tree: &Tree) -> Vec<Violation> {
    let outside = tree.sources.iter().filter(|source| source.package() != rules::UNSAFE_CRATE);
    let found = outside.flat_map(|source| {
        let uses = source.facts.mentions.iter().filter(|mention| mention.path[0] == "unsafe");
        uses.map(move |mention| (source, mention.line))
    });
    let mut mapped_files = 0;
    let mut violations = Vec::new();
    for (source, line) in found {
        let maps = |mention: &Mention| mention.path[0] == rules::MMAP_CRATE;
        if source.package() == rules::MMAP_HOME && source.facts.mentions.iter().any(maps) {
            mapped_files += 1;
            if mapped_files == 1 {
                continue;
            }
        }
        violations.push(violation(source, "unsafe", line, "unsafe code is not allowed here".to_owned()));
    }
    violations
}

/// What `wrong` says about the mentions of `source` outside tests.
fn product(
    source: &Source,
    rule: &'static str,
    wrong: impl Fn(&Mention) -> Option<String>,
) -> Vec<Violation> {
    let mentions = source.facts.mentions.iter().filter(|mention| !mention.in_test);
    let found = mentions.filter_map(|mention| wrong(mention).map(|message| (mention.line, message)));
    found.map(|(line, message)| violation(source, rule, line, message)).collect()
}

fn violation(source: &Source, rule: &'static str, line: usize, message: String) -> Violation {
    Violation { rule, path: source.path.clone(), line: Some(line), message }
}

/// What the crate of `source` may do; nothing, if nobody has said. Only `fuzz` stands outside the workspace.
fn freedom(source: &Source) -> Freedom {
    match rules::of(source.package()) {
        Some(rule) => rule.freedom,
        None if source.package() == "fuzz" => Freedom::System,
        None => Freedom::Pure,
    }
}
