//! The names of types, and the first words of doc comments.

use std::collections::BTreeMap;

use super::Violation;
use super::rules;
use super::scan::DocBeginning;
use super::tree::{ProjectTree, SourceFile};

/// A type outside tests: the file, and the line.
pub(crate) type TypePlace<'a> = (&'a SourceFile, usize);

/// The types outside tests, by name.
pub(crate) fn types(tree: &ProjectTree) -> BTreeMap<&str, Vec<TypePlace<'_>>> {
    let mut types: BTreeMap<&str, Vec<TypePlace<'_>>> = BTreeMap::new();
    for source in tree.sources.iter().filter(|source| source.below_src().is_some()) {
        for item in source.facts.types.iter().filter(|item| !item.in_test) {
            types.entry(&item.name).or_default().push((source, item.line));
        }
    }
    types
}

/// Few types share their names, and none shares it with many.
pub(crate) fn reused(tree: &ProjectTree) -> Vec<Violation> {
    let types = types(tree);
    let all: usize = types.values().map(Vec::len).sum();
    let reused: usize = types.values().map(Vec::len).filter(|&places| places > 1).sum();
    let mut violations: Vec<Violation> =
        types.iter().filter_map(|(name, places)| frequent(name, places)).collect();
    if reused * 100 > rules::REUSED_NAMES_PERCENT * all {
        let limit = rules::REUSED_NAMES_PERCENT;
        let message = format!(
            "{reused} of {all} types share their name with another, expected at most {limit} %; `cargo xtask count` lists them"
        );
        violations.push(Violation { rule: "names", path: "the workspace".to_owned(), line: None, message });
    }
    violations
}

/// Too many types with the name `name`, found where it is used first.
fn frequent(name: &str, places: &[TypePlace<'_>]) -> Option<Violation> {
    if places.len() <= rules::NAME_USES || rules::IDIOMATIC_NAMES.contains(&name) {
        return None;
    }
    let (source, line) = places.first()?;
    let others: Vec<String> =
        places[1..].iter().map(|(source, line)| format!("{}:{line}", source.path)).collect();
    let message = format!("{} types are called {name}: also {}", places.len(), others.join(", "));
    Some(Violation { rule: "names", path: source.path.clone(), line: Some(*line), message })
}

/// The doc comments of `source` that put off saying what a thing is.
pub(crate) fn idle_docs(source: &SourceFile) -> impl Iterator<Item = &DocBeginning> {
    let is_idle =
        |doc: &&DocBeginning| rules::IDLE_BEGINNINGS.iter().any(|words| doc.text.starts_with(words));
    source.facts.doc_beginnings.iter().filter(is_idle)
}

/// Doc comments begin with the thing that they describe: of those that do not, each over the limit is named.
pub(crate) fn docs(tree: &ProjectTree) -> Vec<Violation> {
    let found = tree.sources.iter().flat_map(|source| idle_docs(source).map(move |doc| (source, doc)));
    found
        .skip(rules::IDLE_DOCS)
        .map(|(source, doc)| Violation {
            rule: "docs",
            path: source.path.clone(),
            line: Some(doc.line),
            message: format!("expected a doc comment that names the thing, found {:?}", doc.text),
        })
        .collect()
}
