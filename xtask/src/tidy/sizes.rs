//! How large files, functions and documents are, and what modules are called.

use super::Violation;
use super::rules;
use super::scan::FunctionItem;
use super::tree::{ProjectTree, SourceFile};

/// Files are short, flat, and offer few public items.
pub(crate) fn files(tree: &ProjectTree) -> Vec<Violation> {
    tree.sources.iter().flat_map(file).collect()
}

fn file(source: &SourceFile) -> Vec<Violation> {
    let Some(below) = source.below_src() else { return Vec::new() };
    let lines = source.product_lines();
    let folders = below.matches('/').count();
    let items = source.facts.public_items;
    let is_table = rules::TABLE_FILES.contains(&source.path.as_str());
    let mut messages = Vec::new();
    if lines > rules::FILE_LINES && !is_table {
        messages.push(too_many(lines, "lines before the tests", rules::FILE_LINES));
    }
    if folders > rules::FOLDERS {
        messages.push(too_many(folders, "folders below src", rules::FOLDERS));
    }
    if items > rules::PUBLIC_ITEMS {
        messages.push(too_many(items, "public items", rules::PUBLIC_ITEMS));
    }
    messages.into_iter().map(|message| violation(&source.path, None, message)).collect()
}

/// No function is long, and most are short.
pub(crate) fn functions(tree: &ProjectTree) -> Vec<Violation> {
    let mut violations: Vec<Violation> = tree.sources.iter().flat_map(long_functions).collect();
    let lines = library_functions(tree);
    let limits = [(50, rules::MEDIAN_LINES), (90, rules::PERCENTILE_90_LINES)];
    for (percent, limit) in limits {
        let found = percentile(&lines, percent);
        if found > limit {
            let message = too_many(found, &format!("lines at percentile {percent} of all functions"), limit);
            violations.push(violation("the libraries", None, message));
        }
    }
    violations
}

fn long_functions(source: &SourceFile) -> Vec<Violation> {
    let too_long = |function: &&FunctionItem| !function.in_test && function.lines > rules::FUNCTION_LINES;
    let found = source.facts.functions.iter().filter(too_long);
    found
        .map(|function| {
            let what = format!("lines in {}", function.name);
            let message = too_many(function.lines, &what, rules::FUNCTION_LINES);
            violation(&source.path, Some(function.line), message)
        })
        .collect()
}

/// The lengths of all functions of the libraries, in order.
fn library_functions(tree: &ProjectTree) -> Vec<usize> {
    let is_library = |source: &&SourceFile| {
        let is_tool = matches!(
            source.package().as_str(),
            "borehole-cli" | "borehole-testkit" | "borehole-bench" | "xtask" | "fuzz"
        );
        source.below_src().is_some() && !is_tool
    };
    let functions = tree.sources.iter().filter(is_library).flat_map(|source| &source.facts.functions);
    let mut lines: Vec<usize> =
        functions.filter(|function| !function.in_test).map(|function| function.lines).collect();
    lines.sort_unstable();
    lines
}

fn percentile(sorted: &[usize], percent: usize) -> usize {
    sorted.get(sorted.len().saturating_sub(1) * percent / 100).copied().unwrap_or(0)
}

/// The sizes in one line.
pub(crate) fn summary(tree: &ProjectTree) -> String {
    let lines = library_functions(tree);
    let (median, high) = (percentile(&lines, 50), percentile(&lines, 90));
    let (sources, functions) = (tree.sources.len(), lines.len());
    format!("{sources} sources; {functions} library functions, median {median} lines, 90th percentile {high}")
}

/// A module's name says what it holds.
pub(crate) fn names(tree: &ProjectTree) -> Vec<Violation> {
    tree.sources.iter().flat_map(empty_names).collect()
}

fn empty_names(source: &SourceFile) -> Vec<Violation> {
    let is_empty = |name: &str| rules::EMPTY_NAMES.contains(&name);
    let parts = source.path.split('/').map(|part| part.trim_end_matches(".rs"));
    let in_path = parts.filter(|part| is_empty(part)).map(|part| (None, part));
    let modules = source.facts.modules.iter().filter(|module| is_empty(&module.name));
    let in_text = modules.map(|module| (Some(module.line), module.name.as_str()));
    let found = in_path.chain(in_text);
    found
        .map(|(line, name)| Violation {
            rule: "names",
            path: source.path.clone(),
            line,
            message: format!("{name} says nothing about what the module holds"),
        })
        .collect()
}

/// The documents that people read first exist and are short.
pub(crate) fn documents(tree: &ProjectTree) -> Vec<Violation> {
    let check = |&(name, limit): &(&str, usize)| {
        let Some(document) = tree.documents.iter().find(|document| document.path == name) else {
            return Some(violation(name, None, "missing".to_owned()));
        };
        let lines = document.text.lines().count();
        (lines > limit).then(|| violation(name, None, too_many(lines, "lines", limit)))
    };
    rules::DOCUMENT_LINES.iter().filter_map(check).collect()
}

fn too_many(found: usize, what: &str, limit: usize) -> String {
    format!("{found} {what}, expected at most {limit}")
}

fn violation(path: &str, line: Option<usize>, message: String) -> Violation {
    Violation { rule: "sizes", path: path.to_owned(), line, message }
}
