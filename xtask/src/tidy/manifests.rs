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
            _ => member(manifest),
        })
        .collect()
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
    let is_dependency = |text: &str| {
        !text.is_empty() && !text.starts_with(['#', ']', '"']) && !text.contains("workspace = true")
    };
    section_lines(&manifest.text, |name| name.ends_with("dependencies"))
        .filter(|(_, text)| is_dependency(text))
        .map(|(line, text)| {
            violation(manifest, line, format!("expected a workspace dependency, found {text:?}"))
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
