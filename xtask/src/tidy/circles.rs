//! Modules of a crate that need each other.

use std::collections::{BTreeMap, BTreeSet};

use super::scan::{Mention, MentionForm};
use super::tree::SourceFile;

/// Per module at the top of a crate, the others that it names.
type ModuleReferences = BTreeMap<String, BTreeSet<String>>;

/// The groups of modules at the top of a crate of which each leads to every other, the largest first. `sources` are those of
/// the crate below its `src`.
pub(crate) fn circles(sources: &[&SourceFile]) -> Vec<Vec<String>> {
    let references = references(sources);
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        references.keys().map(|module| (module.as_str(), reached(&references, module))).collect();
    let mut circles = BTreeSet::new();
    for (module, others) in &reached {
        let circle: Vec<String> = others
            .iter()
            .filter(|other| reached.get(**other).is_some_and(|back| back.contains(module)))
            .map(|other| (*other).to_owned())
            .collect();
        if circle.len() > 1 {
            circles.insert(circle);
        }
    }
    let mut circles: Vec<_> = circles.into_iter().collect();
    circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    circles
}

/// The modules that `module` leads to, in any number of steps.
fn reached<'a>(references: &'a ModuleReferences, module: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&str> = references.get(module).into_iter().flatten().map(String::as_str).collect();
    while let Some(next) = open.pop() {
        if reached.insert(next) {
            open.extend(references.get(next).into_iter().flatten().map(String::as_str));
        }
    }
    reached
}

fn references(sources: &[&SourceFile]) -> ModuleReferences {
    let modules: BTreeSet<String> =
        sources.iter().filter_map(|source| source.modules().into_iter().next()).collect();
    let exported = exported(sources, &modules);
    let mut references = ModuleReferences::new();
    for source in sources {
        let Some(own) = source.modules().into_iter().next() else { continue };
        let named = product_paths(source).filter_map(|path| match path {
            [first, name, ..] if first == "crate" => {
                modules.get(name).or_else(|| exported.get(name.as_str()))
            }
            _ => None,
        });
        let others = named.filter(|name| **name != own).cloned().collect::<Vec<_>>();
        references.entry(own).or_default().extend(others);
    }
    references
}

/// The names that the root of the crate offers from its modules: `crate::Name` leads into the module that has it.
fn exported<'a>(sources: &[&'a SourceFile], modules: &BTreeSet<String>) -> BTreeMap<&'a str, String> {
    let root = sources.iter().filter(|source| source.modules().is_empty());
    let paths = root.flat_map(|source| product_paths(source));
    let mut exported = BTreeMap::new();
    for path in paths {
        let path = if path.first().is_some_and(|first| first == "crate") { &path[1..] } else { path };
        if let [module, .., name] = path
            && modules.contains(module)
        {
            exported.entry(name.as_str()).or_insert_with(|| module.clone());
        }
    }
    exported
}

/// The paths that stand outside tests.
fn product_paths(source: &SourceFile) -> impl Iterator<Item = &[String]> {
    let is_path = |mention: &&Mention| !mention.in_test && mention.form != MentionForm::Attribute;
    source.facts.mentions.iter().filter(is_path).map(|mention| mention.path.as_slice())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let source = |(path, text): &(&str, &str)| {
            SourceFile::new(&format!("crates/a/src/{path}"), (*text).to_owned())
        };
        let sources: Vec<SourceFile> = files.iter().map(source).collect::<anyhow::Result<_>>().unwrap();
        let sources: Vec<&SourceFile> = sources.iter().collect();
        circles(&sources).into_iter().map(|circle| circle.join(" ")).collect()
    }

    #[test]
    fn modules_that_lead_to_each_other_are_a_circle() {
        let line = [("a.rs", "use crate::b::B;"), ("b.rs", "use super::c::C;"), ("c.rs", "")];
        assert_eq!(found(&line), Vec::<String>::new());
        let circle = [
            ("a.rs", "use crate::b::B;"),
            ("b/mod.rs", "fn f() { crate::c::g() }"),
            ("b/d.rs", "use super::super::e;"),
            ("c.rs", "use crate::{a::A, f};"),
            ("e.rs", ""),
            ("f.rs", "use crate::g;"),
            ("g.rs", "use crate::f;"),
        ];
        assert_eq!(found(&circle), ["a b c", "f g"]);
    }

    #[test]
    fn what_the_root_offers_leads_into_its_module() {
        let root = ("lib.rs", "mod a;\nmod b;\npub use a::{A, inner::C};");
        assert_eq!(found(&[root, ("a.rs", "use crate::b::B;"), ("b.rs", "use crate::C;")]), ["a b"]);
    }

    #[test]
    fn tests_make_no_circle() {
        let tests = ("b.rs", "#[cfg(test)]\nmod tests { use crate::a::A; }");
        assert_eq!(found(&[("a.rs", "use crate::b::B;"), tests]), Vec::<String>::new());
    }
}
