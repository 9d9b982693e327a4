//! `cargo xtask count`: numbers that show whether the project stays simple.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::tree::{ProjectTree, SourceFile};
use super::{circles, names, rules};

/// The numbers of all crates.
pub(crate) struct ProjectCounts {
    /// In the order of their names.
    crates: Vec<CrateCount>,
    /// The names of more than [`rules::NAME_USES`] types, with how many; the most frequent first.
    frequent: Vec<(String, usize)>,
    format: String,
    /// The files outside the folder of the format that name it.
    places: Vec<String>,
}

/// The numbers of one crate, or of all; of everything but `idle_docs`, only what stands outside tests counts.
#[derive(Clone, Debug, Default, PartialEq)]
struct CrateCount {
    name: String,
    lines: usize,
    functions: usize,
    types: usize,
    /// The types whose name another type of the workspace has too.
    reused: usize,
    /// The doc comments that begin in one of [`rules::IDLE_BEGINNINGS`].
    idle_docs: usize,
    /// The groups of modules at the top of the crate that lead to each other; the largest first.
    circles: Vec<Vec<String>>,
}

impl ProjectCounts {
    /// ProjectCounts the packages of `tree`, and the places of `format`.
    pub(crate) fn of(tree: &ProjectTree, format: &str) -> Self {
        let types = names::types(tree);
        let is_reused = |name: &str| types.get(name).is_some_and(|places| places.len() > 1);
        let mut crates: Vec<CrateCount> =
            tree.packages.iter().map(|package| of_crate(tree, &package.name, is_reused)).collect();
        crates.sort_by(|a, b| a.name.cmp(&b.name));
        let mut frequent: Vec<(String, usize)> =
            types.iter().map(|(name, places)| ((*name).to_owned(), places.len())).collect();
        frequent.retain(|(_, uses)| *uses > rules::NAME_USES);
        frequent.sort_by_key(|(_, uses)| std::cmp::Reverse(*uses));
        Self { crates, frequent, format: format.to_owned(), places: places(tree, format) }
    }

    fn total(&self) -> CrateCount {
        let sum = |number: fn(&CrateCount) -> usize| self.crates.iter().map(number).sum();
        let mut circles: Vec<_> = self.crates.iter().flat_map(|count| count.circles.clone()).collect();
        circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
        CrateCount {
            name: "total".to_owned(),
            lines: sum(|count| count.lines),
            functions: sum(|count| count.functions),
            types: sum(|count| count.types),
            reused: sum(|count| count.reused),
            idle_docs: sum(|count| count.idle_docs),
            circles,
        }
    }

    /// The numbers as a table, and lists below it.
    pub(crate) fn text(&self) -> String {
        let mut text = format!(
            "{:<18} {:>7} {:>9} {:>6} {:>12} {:>9}  {}\n",
            "crate", "lines", "functions", "types", "reused names", "idle docs", "circles of modules"
        );
        for count in self.crates.iter().chain([&self.total()]) {
            let CrateCount { name, lines, functions, types, reused, idle_docs, circles } = count;
            let sizes: Vec<String> = circles.iter().map(|circle| circle.len().to_string()).collect();
            let reused = format!("{reused} ({} %)", percent(*reused, *types));
            let _ = writeln!(
                text,
                "{name:<18} {lines:>7} {functions:>9} {types:>6} {reused:>12} {idle_docs:>9}  {}",
                sizes.join(", ")
            );
        }
        let frequent: Vec<String> =
            self.frequent.iter().map(|(name, uses)| format!("{name} {uses}")).collect();
        let _ = writeln!(text, "\nNames of {} types or more: {}", rules::NAME_USES + 1, frequent.join(", "));
        let _ = writeln!(
            text,
            "\nFiles outside its folder that name {}: {}\n  {}",
            self.format,
            self.places.len(),
            self.places.join("\n  ")
        );
        text
    }

    /// The numbers as JSON.
    pub(crate) fn json(&self) -> Value {
        let crates: Vec<Value> = self.crates.iter().map(CrateCount::json).collect();
        let frequent: BTreeMap<&str, usize> =
            self.frequent.iter().map(|(name, uses)| (name.as_str(), *uses)).collect();
        json!({
            "crates": crates,
            "total": self.total().json(),
            "frequent_names": frequent,
            "format": {"name": self.format, "files": self.places},
        })
    }
}

impl CrateCount {
    fn json(&self) -> Value {
        let Self { name, lines, functions, types, reused, idle_docs, circles } = self;
        json!({
            "name": name,
            "lines": lines,
            "functions": functions,
            "types": types,
            "reused_names": reused,
            "idle_docs": idle_docs,
            "circles": circles,
        })
    }
}

/// How many of a hundred `all` are `some`, rounded; 0 of none.
fn percent(some: usize, all: usize) -> usize {
    (200 * some + all).checked_div(2 * all).unwrap_or(0)
}

fn of_crate(tree: &ProjectTree, name: &str, is_reused: impl Fn(&str) -> bool) -> CrateCount {
    let all = tree.sources.iter().filter(|source| source.package() == name);
    let (below, beside): (Vec<&SourceFile>, Vec<&SourceFile>) =
        all.partition(|source| source.below_src().is_some());
    let types = || below.iter().flat_map(|source| &source.facts.types).filter(|item| !item.in_test);
    let functions = below.iter().flat_map(|source| &source.facts.functions);
    CrateCount {
        name: name.to_owned(),
        lines: below.iter().map(|source| source.product_lines()).sum(),
        functions: functions.filter(|function| !function.in_test).count(),
        types: types().count(),
        reused: types().filter(|item| is_reused(&item.name)).count(),
        idle_docs: below.iter().chain(&beside).map(|source| names::idle_docs(source).count()).sum(),
        circles: circles::circles(&below),
    }
}

/// The files outside the folder of `format` that name it in code or in a manifest.
fn places(tree: &ProjectTree, format: &str) -> Vec<String> {
    let wanted = letters(format);
    let is_own = |path: &str| path.split('/').any(|part| letters(part.trim_end_matches(".rs")) == wanted);
    let sources =
        tree.sources.iter().filter(|source| source.below_src().is_some() && names_it(source, &wanted));
    let in_manifest = |text: &str| {
        let mut lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.any(|line| letters(line).contains(&wanted))
    };
    let manifests = tree.documents.iter().filter(|document| document.path.ends_with("Cargo.toml"));
    let manifests = manifests.filter(|manifest| in_manifest(&manifest.text));
    let paths = sources.map(|source| &source.path).chain(manifests.map(|manifest| &manifest.path));
    let mut places: Vec<String> = paths.filter(|path| !is_own(path)).cloned().collect();
    places.sort();
    places
}

/// Whether a word or a text of the code of `source` contains `wanted`. Tests and comments are no code.
fn names_it(source: &SourceFile, wanted: &str) -> bool {
    let facts = &source.facts;
    let mentions = facts.mentions.iter().filter(|mention| !mention.in_test);
    let functions = facts.functions.iter().filter(|function| !function.in_test);
    let types = facts.types.iter().filter(|item| !item.in_test);
    let mut words = mentions
        .flat_map(|mention| &mention.path)
        .chain(functions.map(|function| &function.name))
        .chain(types.map(|item| &item.name))
        .chain(facts.modules.iter().map(|module| &module.name))
        .chain(&facts.literals);
    words.any(|word| letters(word).contains(wanted))
}

/// `text` in small letters, without what joins words: `chrome-trace` and `ChromeTrace` are the same.
fn letters(text: &str) -> String {
    text.chars().filter(|letter| !matches!(letter, '_' | '-')).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tree::{Package, TextFile};
    use super::*;

    fn tree() -> ProjectTree {
        let package = |name: &str| Package { name: name.to_owned(), dependencies: Vec::new() };
        let mut tree = ProjectTree {
            packages: vec![package("borehole-web"), package("borehole-cli")],
            ..ProjectTree::default()
        };
        for (path, text) in [
            (
                "crates/cli/src/a.rs",
                "//! What it is.\nstruct ScanPlace;\nuse crate::b::B;\n#[cfg(test)]\nmod tests { struct ScanPlace; }",
            ),
            ("crates/cli/src/b.rs", "use crate::a::ScanPlace;\nstruct B;\nfn chrome_trace() {}\n"),
            ("crates/cli/src/chrome_trace.rs", "fn chrome_trace() {}"),
            ("crates/cli/tests/it/a.rs", "/// The same.\nfn f() { g(\"chrome-trace\") }"),
            (
                "crates/web/src/lib.rs",
                "// chrome-trace\nenum ScanPlace {}\n#[cfg(feature = \"chrome-trace\")]\nmod c;\n",
            ),
            ("crates/web/src/tests.rs", "use crate::ChromeTrace;"),
        ] {
            tree.sources.push(SourceFile::new(path, text.to_owned()).unwrap());
        }
        for (path, text) in [
            ("crates/web/Cargo.toml", "[features]\nchrome-trace = []\n"),
            ("crates/cli/Cargo.toml", "# chrome-trace\n"),
        ] {
            tree.documents.push(TextFile { path: path.to_owned(), text: text.to_owned() });
        }
        tree
    }

    #[test]
    fn a_crate_is_counted_without_its_tests() {
        let counts = ProjectCounts::of(&tree(), "callgrind");
        let cli = CrateCount {
            name: "borehole-cli".to_owned(),
            lines: 7,
            functions: 2,
            types: 2,
            reused: 1,
            idle_docs: 2,
            circles: vec![vec!["a".to_owned(), "b".to_owned()]],
        };
        assert_eq!(counts.crates[0], cli);
        let total = counts.total();
        assert_eq!((total.lines, total.types, total.reused, total.idle_docs), (11, 3, 2, 2));
        assert!(
            counts
                .text()
                .contains("\ntotal                   11         2      3     2 (67 %)         2  2\n"),
            "{}",
            counts.text()
        );
    }

    #[test]
    fn a_format_is_named_in_code_and_manifests_outside_its_folder() {
        let counts = ProjectCounts::of(&tree(), "chrome-trace");
        assert_eq!(counts.places, ["crates/cli/src/b.rs", "crates/web/Cargo.toml", "crates/web/src/lib.rs"]);
        assert_eq!(counts.json()["format"]["files"][0], "crates/cli/src/b.rs");
    }
}
