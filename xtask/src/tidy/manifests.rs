//! The dependency lines of the manifests.

use super::Violation;
use super::tree::{ProjectTree, TextFile};

/// Versions, reasons and features stand in the root manifest, and nowhere else.
pub(crate) fn check(tree: &ProjectTree) -> Vec<Violation> {
    let manifests = tree.documents.iter().filter(|document| document.path.ends_with("Cargo.toml"));
    manifests
        .flat_map(|manifest| match manifest.path.as_str() {
            "Cargo.toml" => root(manifest),
            // Excluded from the workspace, so that it cannot inherit from it.
            "fuzz/Cargo.toml" => Vec::new(),
            // Those of programs outside this project.
            path if path.starts_with("examples/library/") => Vec::new(),
            _ => member(manifest),
        })
        .collect()
}

/// The crate of the formats and the facade have every format in their lists of all.
pub(crate) fn formats(tree: &ProjectTree) -> Vec<Violation> {
    let list = |path: &str, feature: &str| {
        let manifest = tree.documents.iter().find(|document| document.path == path)?;
        let start = format!("{feature} = [");
        let (line, text) = section_lines(&manifest.text, |name| name == "features")
            .find(|(_, text)| text.starts_with(&start))?;
        let names = text[start.len()..].split('"').skip(1).step_by(2).map(str::to_owned);
        Some((manifest, line, names.collect::<Vec<_>>()))
    };
    let own = list("crates/formats/Cargo.toml", "all");
    let Some((own, (manifest, line, facade))) = own.zip(list("crates/borehole/Cargo.toml", "formats")) else {
        return Vec::new();
    };
    let only = |names: &[String], others: &[String]| {
        names.iter().filter(|name| !others.contains(name)).cloned().collect::<Vec<_>>()
    };
    let (missing, unknown) = (only(&own.2, &facade), only(&facade, &own.2));
    let missing = missing.iter().map(|name| format!("{name} is in `all` of borehole-formats, and not here"));
    let unknown = unknown.iter().map(|name| format!("{name} is not in `all` of borehole-formats"));
    missing.chain(unknown).map(|message| violation(manifest, line, message)).collect()
}

fn root(manifest: &TextFile) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut reason = false;
    for (line, text) in section_lines(&manifest.text, |name| name == "workspace.dependencies") {
        match text {
            "" => reason = false,
            comment if comment.starts_with('#') => reason = true,
            dependency if dependency.contains("path =") => {}
            dependency => {
                let name = dependency.split_whitespace().next().unwrap_or_default();
                if !reason {
                    violations.push(violation(manifest, line, format!("{name} has no reason above it")));
                }
                if !dependency.contains("default-features = false") {
                    violations.push(violation(manifest, line, format!("{name} has its default features on")));
                }
            }
        }
    }
    violations
}

fn member(manifest: &TextFile) -> Vec<Violation> {
    let is_dependency = |text: &str| !text.is_empty() && !text.starts_with(['#', ']', '"']);
    let is_inherited = |text: &str| text.contains("workspace = true");
    let others = section_lines(&manifest.text, |name| {
        name.ends_with("dependencies") && !name.ends_with("dev-dependencies")
    });
    let others = others.filter(|(_, text)| is_dependency(text) && !is_inherited(text));
    // Without a version, cargo leaves them out of the package, and crates can be published that need each other for tests.
    let is_own = |text: &str| text.starts_with("borehole");
    let dev = section_lines(&manifest.text, |name| name.ends_with("dev-dependencies"))
        .filter(|(_, text)| is_dependency(text) && is_own(text) == is_inherited(text));
    let other = others.map(|(line, text)| (line, "a workspace dependency", text));
    let dev = dev.map(|(line, text)| match is_own(text) {
        true => (line, "a crate for tests by its path alone", text),
        false => (line, "a workspace dependency", text),
    });
    other
        .chain(dev)
        .map(|(line, expected, text)| {
            violation(manifest, line, format!("expected {expected}, found {text:?}"))
        })
        .collect()
}

/// The lines, with their numbers, of the sections that `wanted` picks by name.
fn section_lines(text: &str, wanted: impl Fn(&str) -> bool) -> impl Iterator<Item = (usize, &str)> {
    let mut inside = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let line = line.trim();
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            inside = wanted(name);
            return None;
        }
        inside.then_some((index + 1, line))
    })
}

fn violation(manifest: &TextFile, line: usize, message: String) -> Violation {
    Violation { rule: "manifests", path: manifest.path.clone(), line: Some(line), message }
}
