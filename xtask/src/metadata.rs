//! The packages of the workspace, as `cargo metadata` describes them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::command;

/// A package of the workspace.
#[derive(Debug, Default)]
pub(crate) struct Manifest {
    pub(crate) name: String,
    pub(crate) version: String,
    /// The oldest Rust that builds it, as its manifest or the workspace says.
    pub(crate) rust_version: Option<String>,
    /// Whether it may be published: neither a tool nor for tests only.
    pub(crate) is_published: bool,
    /// Each dependency with whether it is for tests only.
    pub(crate) dependencies: Vec<(String, bool)>,
    /// Each feature, with the features and dependencies that it turns on.
    pub(crate) features: BTreeMap<String, Vec<String>>,
}

/// Reads the manifests of the workspace at `root`.
///
/// # Errors
/// When cargo cannot read them.
pub(crate) fn manifests(root: &Path) -> Result<Vec<Manifest>> {
    let metadata = read(root)?;
    Ok(list(&metadata["packages"]).iter().map(manifest).collect())
}

/// The folder of the package `name`, relative to `root`.
///
/// # Errors
/// When cargo cannot read the manifests, or there is no such package.
pub(crate) fn folder(root: &Path, name: &str) -> Result<PathBuf> {
    let metadata = read(root)?;
    let package = list(&metadata["packages"]).iter().find(|package| package["name"] == name);
    let manifest = package.and_then(|package| package["manifest_path"].as_str());
    let folder = Path::new(manifest.with_context(|| format!("missing package {name}"))?).parent();
    Ok(folder
        .context("a manifest is in a folder")?
        .strip_prefix(text(&metadata["workspace_root"]))?
        .to_owned())
}

fn read(root: &Path) -> Result<Value> {
    let arguments = ["metadata", "--format-version", "1", "--no-deps"];
    let text = command::output(command::cargo(root).args(arguments))?;
    serde_json::from_str(&text).context("cargo metadata")
}

fn manifest(package: &Value) -> Manifest {
    let features = package["features"].as_object().into_iter().flatten();
    let turned_on = |values: &Value| list(values).iter().map(text).collect();
    Manifest {
        name: text(&package["name"]),
        version: text(&package["version"]),
        rust_version: package["rust_version"].as_str().map(str::to_owned),
        is_published: package["publish"].is_null(),
        dependencies: list(&package["dependencies"])
            .iter()
            .map(|dependency| (text(&dependency["name"]), dependency["kind"] == "dev"))
            .collect(),
        features: features.map(|(name, values)| (name.clone(), turned_on(values))).collect(),
    }
}

impl Manifest {
    /// The features, without the default and the one feature that the default stands for, if it is one.
    pub(crate) fn single_features(&self) -> Vec<&str> {
        let all = match self.features.get("default").map(Vec::as_slice) {
            Some([all]) => all.as_str(),
            _ => "default",
        };
        let names = self.features.keys().map(String::as_str);
        names.filter(|name| *name != "default" && *name != all).collect()
    }

    /// Whether the feature `name` turns on the dependency `wanted`, itself or through other features.
    pub(crate) fn turns_on(&self, name: &str, wanted: &str) -> bool {
        let mut seen = BTreeSet::new();
        let mut open = vec![name];
        while let Some(feature) = open.pop() {
            for on in self.features.get(feature).into_iter().flatten() {
                if on.strip_prefix("dep:") == Some(wanted) || on.ends_with(&format!("/{wanted}")) {
                    return true;
                }
                if seen.insert(on.as_str()) {
                    open.push(on);
                }
            }
        }
        false
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_told_apart_by_what_they_turn_on() {
        let features = [
            ("default", vec!["all"]),
            ("all", vec!["rbt", "tachyon"]),
            ("gzip", vec!["borehole-wire/gzip"]),
            ("rbt", vec!["gzip"]),
            ("tachyon", vec!["gzip", "dep:zstd"]),
            ("recent", vec!["tachyon"]),
            ("frames", vec!["borehole-wire/zstd"]),
            ("text", vec!["gzip", "rbt"]),
        ];
        let owned = |(name, on): (&str, Vec<&str>)| {
            (name.to_owned(), on.into_iter().map(str::to_owned).collect::<Vec<_>>())
        };
        let manifest = Manifest { features: features.map(owned).into(), ..Manifest::default() };
        assert_eq!(manifest.single_features(), ["frames", "gzip", "rbt", "recent", "tachyon", "text"]);
        let with_zstd: Vec<_> =
            manifest.single_features().into_iter().filter(|name| manifest.turns_on(name, "zstd")).collect();
        assert_eq!(with_zstd, ["frames", "recent", "tachyon"]);
    }
}
