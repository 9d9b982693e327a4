//! The promises of `SECURITY.md`: each has a row of tests, and the tests exist.

use super::Violation;
use super::tree::{ProjectTree, SourceFile, TextFile};

const SECURITY: &str = "SECURITY.md";
const PROMISES: &str = "docs/promises.md";

/// Complains about promises without a row, rows without a promise, and tests that are not there.
pub(crate) fn check(tree: &ProjectTree) -> Vec<Violation> {
    let document = |path: &str| tree.documents.iter().find(|document| document.path == path);
    let (Some(security), Some(table)) = (document(SECURITY), document(PROMISES)) else { return Vec::new() };
    let promises = promises(security);
    let rows: Vec<(usize, String, String)> = rows(table).collect();
    let lacks_row = |promise: &&String| !rows.iter().any(|(_, begins, _)| promise.contains(begins.as_str()));
    let mut found: Vec<_> = promises
        .iter()
        .filter(lacks_row)
        .map(|promise| violation(SECURITY, None, format!("{PROMISES} has no row for: {promise:.60}")))
        .collect();
    for (line, begins, tests) in &rows {
        if !promises.iter().any(|promise| promise.contains(begins.as_str())) {
            found.push(violation(
                PROMISES,
                Some(*line),
                format!("{SECURITY} does not promise: {begins:.60}"),
            ));
        }
        let tests: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        let missing = tests.iter().filter(|test| !tree.sources.iter().any(|source| has_test(source, test)));
        found
            .extend(missing.map(|test| violation(PROMISES, Some(*line), format!("there is no test {test}"))));
        if tests.is_empty() {
            found.push(violation(PROMISES, Some(*line), "a promise without a test".to_owned()));
        }
    }
    found
}

fn violation(path: &str, line: Option<usize>, message: String) -> Violation {
    Violation { rule: "promises", path: path.to_owned(), line, message }
}

/// The items of the first list, each on one line with those below it.
fn promises(security: &TextFile) -> Vec<String> {
    let part = security.text.split("\n## ").nth(1).unwrap_or_default();
    part.split("\n- ").skip(1).map(one_line).collect()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The rows of the table: the line, the promise and the tests.
fn rows(table: &TextFile) -> impl Iterator<Item = (usize, String, String)> {
    let lines = table.text.lines().enumerate().filter(|(_, line)| line.starts_with("| "));
    lines.skip(1).filter_map(|(index, line)| {
        let (promise, tests) = line.trim_matches(['|', ' ']).split_once(" | ")?;
        Some((index + 1, one_line(promise), tests.to_owned()))
    })
}

/// Whether `source` has the test called `CRATE::FILE::NAME`, whose file may be in folders.
fn has_test(source: &SourceFile, test: &str) -> bool {
    let mut parts: Vec<&str> = test.split("::").collect();
    let (Some(name), false) = (parts.pop(), parts.is_empty()) else { return false };
    let package = parts.remove(0);
    let folder = if package == "xtask" { "xtask/".to_owned() } else { format!("crates/{package}/") };
    let file = parts.join("/");
    let is_file =
        [format!("/{file}.rs"), format!("/{file}/mod.rs")].iter().any(|end| source.path.ends_with(end));
    is_file && source.path.starts_with(&folder) && source.text.contains(&format!("fn {name}("))
}
