//! Names of functions and files, cut so that all of them fit in a page.

use std::collections::HashMap;

use borehole_text::document;

/// The approximate limit for all names of a page, in bytes.
const ALL_BYTES: usize = 900_000;

/// Names and their files, as the page holds them.
pub(crate) struct PageNames {
    pub(crate) names: Vec<String>,
    /// By name, the index of its file in `file_names`, or -1.
    pub(crate) files: Vec<i64>,
    pub(crate) file_names: Vec<String>,
}

impl PageNames {
    pub(crate) fn new<'n>(named: impl ExactSizeIterator<Item = (&'n [u8], Option<&'n [u8]>)>) -> Self {
        let room = (ALL_BYTES / (2 * named.len()).max(1)).clamp(40, 500);
        let mut found = Self { names: Vec::new(), files: Vec::new(), file_names: Vec::new() };
        let mut index: HashMap<&[u8], usize> = HashMap::new();
        for (name, file) in named {
            found.names.push(cut_end(name, room));
            let place = file.map(|file| {
                *index.entry(file).or_insert_with(|| {
                    found.file_names.push(cut_start(file, room));
                    found.file_names.len() - 1
                })
            });
            found.files.push(place.and_then(|place| i64::try_from(place).ok()).unwrap_or(-1));
        }
        found
    }

    /// The name and the file of a function.
    pub(crate) fn get(&self, place: usize) -> (&str, Option<&str>) {
        let file = usize::try_from(self.files[place]).ok().map(|file| &*self.file_names[file]);
        (&self.names[place], file)
    }
}

/// Cuts a name to its beginning.
pub(crate) fn cut_end(name: &[u8], room: usize) -> String {
    // The rest would be cut off anyway.
    let whole = document(&name[..name.len().min(4 * room)]);
    if whole.len() <= room {
        return whole;
    }
    let end = boundary(&whole, room.saturating_sub(3));
    format!("{}…", &whole[..end])
}

/// Whether a page shows this name as `text`, of which it may have the beginning only.
#[must_use]
pub fn is_shown_as(name: &[u8], text: &str) -> bool {
    let whole = document(name);
    whole == text || text.strip_suffix('…').is_some_and(|beginning| whole.starts_with(beginning))
}

/// Cuts a path to its end.
pub(crate) fn cut_start(path: &[u8], room: usize) -> String {
    let whole = document(&path[path.len().saturating_sub(4 * room)..]);
    if whole.len() <= room {
        return whole;
    }
    let start = boundary(&whole, whole.len() - room + 3);
    format!("…{}", &whole[start..])
}

/// The last character boundary at or before `place`.
fn boundary(text: &str, place: usize) -> usize {
    (0..=place.min(text.len())).rev().find(|&place| text.is_char_boundary(place)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_keep_their_beginning_and_long_paths_their_end() {
        assert_eq!(cut_end("äöü".repeat(40).as_bytes(), 10), "äöü…");
        assert!(is_shown_as("äöü".repeat(40).as_bytes(), "äöü…") && !is_shown_as(b"abc", "ab"));
        assert_eq!(cut_start(b"/srv/app/vendor/a.php", 10), "…r/a.php");
        let huge = vec![b'x'; 10_000_000];
        let names = PageNames::new([(&huge[..], None), (b"f", Some(&huge[..]))].into_iter());
        assert_eq!((names.names[0].len(), names.file_names[0].len(), names.files[0]), (500, 500, -1));
    }
}
