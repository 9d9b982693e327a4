//! The import rules, sizes and names that the project keeps, checked on its real metadata and sources.
//!
//! Each rule is a function from a [`ProjectTree`] to [`Violation`]s, so a test hands it a tree of a few lines.

mod circles;
mod count;
mod levels;
mod load;
mod manifests;
mod names;
mod promises;
mod purity;
mod rules;
mod scan;
mod sizes;
mod texts;
mod tree;
mod unused;

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use tree::ProjectTree;

/// A place that breaks a rule.
#[derive(Debug)]
pub(crate) struct Violation {
    rule: &'static str,
    path: String,
    /// 1-based; `None` for a file or a package as a whole.
    line: Option<usize>,
    message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": [{}] {}", self.rule, self.message)
    }
}

/// A rule: what it looks at and what it finds wrong.
type Rule = fn(&ProjectTree) -> Vec<Violation>;

/// Every rule.
const RULES: &[Rule] = &[
    levels::check,
    unused::check,
    manifests::check,
    manifests::formats,
    purity::formats,
    purity::wire_files,
    purity::system,
    purity::output,
    purity::unsafe_code,
    purity::unsafe_forbidden,
    sizes::files,
    sizes::functions,
    sizes::names,
    sizes::documents,
    names::reused,
    names::docs,
    promises::check,
    texts::unfinished,
    texts::unwraps,
    texts::addresses,
    texts::options,
];

/// The Rust files of the project at `root`, in order of their names.
///
/// # Errors
/// When a folder cannot be read.
pub(crate) fn rust_files(root: &Path) -> Result<Vec<PathBuf>> {
    let mut files = load::files(root)?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "rs"));
    Ok(files)
}

/// Checks the project at `root`.
///
/// # Errors
/// When a rule is broken, or the project cannot be read.
pub(crate) fn run(root: &Path) -> Result<()> {
    let tree = load::tree(root)?;
    let violations: Vec<Violation> = RULES.iter().flat_map(|rule| rule(&tree)).collect();
    for violation in &violations {
        println!("{violation}");
    }
    println!("tidy: {}", sizes::summary(&tree));
    if violations.is_empty() {
        return Ok(());
    }
    bail!("{} places break a rule", violations.len())
}

/// Prints what the project at `root` consists of, and which files name `format` outside its own folder.
///
/// # Errors
/// When the project cannot be read.
pub(crate) fn count(root: &Path, format: &str, as_json: bool) -> Result<()> {
    let tree = load::tree(root)?;
    let counts = count::ProjectCounts::of(&tree, format);
    if as_json {
        println!("{:#}", counts.json());
    } else {
        print!("{}", counts.text());
    }
    Ok(())
}

#[cfg(test)]
mod tests;
