//! Dependencies that nothing uses.

use super::Violation;
use super::tree::{DependencyPurpose, ProjectTree, folder_of};

/// Each dependency of a package is named in one of its sources.
pub(crate) fn check(tree: &ProjectTree) -> Vec<Violation> {
    let mut unused = Vec::new();
    for package in &tree.packages {
        let sources: Vec<_> = tree.sources.iter().filter(|source| source.package() == package.name).collect();
        for dependency in &package.dependencies {
            let name = dependency.name.replace('-', "_");
            let may_use = |is_product: bool| is_product || dependency.purpose == DependencyPurpose::Tests;
            let is_used = |text: &str| words(text).any(|word| word == name);
            let used =
                sources.iter().any(|source| may_use(source.below_src().is_some()) && is_used(&source.text));
            if !used {
                let message = format!("{} is in no source", dependency.name);
                let path = format!("{}/Cargo.toml", folder_of(&package.name));
                unused.push(Violation { rule: "unused", path, line: None, message });
            }
        }
    }
    unused
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '_')
}
