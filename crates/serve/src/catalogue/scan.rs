//! The files below the paths that are served.

use std::cmp::Reverse;
use std::fs;
use std::path::{Path, PathBuf};

use super::Version;
use crate::limits::CatalogueLimits;

/// A file that may be an input.
pub(super) struct FoundFile {
    /// Where it is, without links in its folders.
    pub(super) path: PathBuf,
    /// Its path as it is shown: from the folder that is served.
    pub(super) shown: PathBuf,
    pub(super) version: Version,
}

/// The files below the paths that are served.
#[derive(Default)]
pub(super) struct FoundFiles {
    /// In the order of their paths.
    pub(super) files: Vec<FoundFile>,
    /// The number of files that are too many.
    pub(super) left_out: usize,
}

/// All files below `roots`, each once. What cannot be listed is left out; a root that is no file is listed by its folder.
///
/// A link in a folder is followed only if it leads to a file below the same root: nothing else is served. If there are too many
/// files, the newest stay.
pub(super) fn files(roots: &[PathBuf]) -> FoundFiles {
    let mut found = FoundFiles::default();
    for root in roots {
        let Ok(real) = fs::canonicalize(root) else { continue };
        let name = real.file_name().map(PathBuf::from).unwrap_or_default();
        let mut folders = vec![(real.clone(), name, 0)];
        while let Some((path, shown, depth)) = folders.pop() {
            let Ok(metadata) = fs::metadata(&path) else { continue };
            if metadata.is_dir() && depth < CatalogueLimits::DEPTH {
                folders.extend(children(&path, &real).into_iter().map(|child| {
                    let shown = shown.join(child.file_name().unwrap_or_default());
                    (child, shown, depth + 1)
                }));
            } else if is_listed(&metadata, depth) {
                found.files.push(FoundFile { path, shown, version: Version::of(&metadata) });
                found.keep_newest(CatalogueLimits::INPUTS.saturating_mul(2));
            }
        }
    }
    found.files.sort_by(|one, other| one.path.cmp(&other.path));
    found.files.dedup_by(|next, kept| next.path == kept.path);
    found.keep_newest(CatalogueLimits::INPUTS);
    found.files.sort_by(|one, other| one.path.cmp(&other.path));
    found
}

impl FoundFiles {
    /// If there are more than `most` files, leaves out all but the newest that are listed.
    fn keep_newest(&mut self, most: usize) {
        if self.files.len() > most {
            self.files.sort_by_key(|file| Reverse(file.version.modified_ns));
            self.left_out += self.files.len() - CatalogueLimits::INPUTS;
            self.files.truncate(CatalogueLimits::INPUTS);
        }
    }
}

/// Whether a file is listed: those that were named, and those of folders that are not empty.
fn is_listed(metadata: &fs::Metadata, depth: usize) -> bool {
    metadata.is_file() && (depth == 0 || metadata.len() > 0)
}

/// The entries of a folder, hidden names left out.
fn children(folder: &Path, root: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let visible = entries.flatten().filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."));
    let inside = visible.filter_map(|entry| {
        let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
        if !is_link {
            return Some(entry.path());
        }
        fs::canonicalize(entry.path()).ok().filter(|real| real.starts_with(root) && real.is_file())
    });
    inside.collect()
}
