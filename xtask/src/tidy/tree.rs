//! The project as the rules see it: packages, sources and documents, wherever they come from.

use anyhow::{Context, Result};

use super::scan::{self, SourceFacts};

/// Everything that the rules look at.
#[derive(Debug, Default)]
pub(crate) struct ProjectTree {
    /// The workspace's packages.
    pub(crate) packages: Vec<Package>,
    /// Rust sources.
    pub(crate) sources: Vec<SourceFile>,
    /// Every other text file, manifests and documents included.
    pub(crate) documents: Vec<TextFile>,
    /// Folders of this machine that no file may name.
    pub(crate) machine_paths: Vec<String>,
}

/// A package of the workspace.
#[derive(Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) dependencies: Vec<Dependency>,
}

/// A line of a package's dependencies.
#[derive(Debug)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) purpose: DependencyPurpose,
}

/// The purpose of a dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DependencyPurpose {
    /// The program itself or its build script.
    Product,
    /// Tests, examples and benches.
    Tests,
}

/// A Rust file.
#[derive(Debug)]
pub(crate) struct SourceFile {
    /// From the root of the project, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) facts: SourceFacts,
}

/// A text file that is not Rust.
#[derive(Debug)]
pub(crate) struct TextFile {
    /// From the root of the project, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl SourceFile {
    /// Reads `text` as the file at `path`.
    ///
    /// # Errors
    /// When it is not Rust.
    pub(crate) fn new(path: &str, text: String) -> Result<Self> {
        let facts = scan::facts(&text, &modules_of(path), is_test_path(path))
            .with_context(|| format!("{path} is not Rust"))?;
        Ok(Self { path: path.to_owned(), text, facts })
    }

    /// The package: `borehole-wire` for `crates/wire/…`, `borehole-bench` for `bench/…`, else the first folder.
    pub(crate) fn package(&self) -> String {
        let mut folders = self.path.split('/');
        match (folders.next(), folders.next()) {
            (Some("crates"), Some(folder)) => package_of_folder(folder),
            (Some(BENCH_FOLDER), _) => BENCH.to_owned(),
            (first, _) => first.unwrap_or_default().to_owned(),
        }
    }

    /// The modules of the crate that lead to the file, none for the crate's root.
    pub(crate) fn modules(&self) -> Vec<String> {
        modules_of(&self.path)
    }

    /// How many lines stand before the first test; none in a file that is a test.
    pub(crate) fn product_lines(&self) -> usize {
        let all = || self.text.lines().count();
        if is_test_path(&self.path) {
            0
        } else {
            self.facts.first_test_line.map_or_else(all, |line| line - 1)
        }
    }

    /// The path below `src`, or `None` for tests, examples and build scripts.
    pub(crate) fn below_src(&self) -> Option<&str> {
        self.path.split_once("/src/").map(|(_, below)| below)
    }
}

/// The prefix of every package below `crates` but the facade, whose name it is.
const PREFIX: &str = "borehole";

/// The package that measures the others, and its folder.
const BENCH: &str = "borehole-bench";
const BENCH_FOLDER: &str = "bench";

fn package_of_folder(folder: &str) -> String {
    if folder == PREFIX { folder.to_owned() } else { format!("{PREFIX}-{folder}") }
}

/// The folder of the package `name`, from the root of the project.
pub(crate) fn folder_of(name: &str) -> String {
    match name.strip_prefix(PREFIX) {
        _ if name == BENCH => BENCH_FOLDER.to_owned(),
        Some(rest) => format!("crates/{}", rest.strip_prefix('-').unwrap_or(PREFIX)),
        None => name.to_owned(),
    }
}

/// The module path of a file inside its crate: `src/rbt/read.rs` is `rbt`, `read`.
fn modules_of(path: &str) -> Vec<String> {
    let below = path.split_once("/src/").map_or("", |(_, below)| below);
    let below = below.strip_suffix(".rs").unwrap_or(below);
    let is_root = |name: &str| matches!(name, "lib" | "main" | "mod" | "");
    below.split('/').filter(|name| !is_root(name)).map(str::to_owned).collect()
}

/// Whether the whole file is test code.
fn is_test_path(path: &str) -> bool {
    path.split('/').any(|part| matches!(part, "tests" | "benches" | "tests.rs"))
}
