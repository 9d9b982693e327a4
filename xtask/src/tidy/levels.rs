//! Who depends on whom.

use super::Violation;
use super::rules;
use super::tree::{DependencyPurpose, Package, ProjectTree};

/// Every crate has a level, depends on lower ones only, and takes from outside only what is said of it.
pub(crate) fn check(tree: &ProjectTree) -> Vec<Violation> {
    tree.packages.iter().flat_map(package).collect()
}

fn package(package: &Package) -> Vec<Violation> {
    let violation =
        |message: String| Violation { rule: "levels", path: package.name.clone(), line: None, message };
    let Some(rule) = rules::of(&package.name) else {
        return vec![violation("no level is declared for this crate".to_owned())];
    };
    let product =
        || package.dependencies.iter().filter(|dependency| dependency.purpose == DependencyPurpose::Product);
    let wrong = product().filter_map(|dependency| wrong_dependency(rule, &dependency.name));
    let highest =
        product().filter_map(|dependency| rules::of(&dependency.name)).map(|other| other.level).max();
    wrong.chain(too_high(rule, highest)).map(violation).collect()
}

/// A complaint about the level of a crate whose highest dependency is of level `highest`.
fn too_high(rule: &rules::Crate, highest: Option<u8>) -> Option<String> {
    let lowest = highest? + 1;
    let is_high = rule.level > lowest && !rules::ABOVE_ALL.contains(&rule.name);
    is_high.then(|| format!("level {} should be {lowest}, one above its highest dependency", rule.level))
}

/// A complaint about the crate of `rule` depending on `name`.
fn wrong_dependency(rule: &rules::Crate, name: &str) -> Option<String> {
    match rules::of(name) {
        Some(other) if other.level >= rule.level => {
            let (own, theirs) = (rule.level, other.level);
            Some(format!("level {own} must not depend on {name}, which is of level {theirs}"))
        }
        None if !rule.outside.contains(&name) => {
            Some(format!("{name} is not among its declared dependencies"))
        }
        _ => None,
    }
}
