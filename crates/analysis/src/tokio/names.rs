//! Repeated names, each stored once.

use hashbrown::HashMap;

/// The maximum number of distinct names: more than any program has spawn locations, but few enough for a trace made of names
/// alone. Further names share one row.
const MOST: usize = 4096;

/// The maximum length of a name in bytes; the rest of longer ones is left out. A trace states a long name once, and many
/// events may refer to it.
const MOST_BYTES: usize = 1024;

/// The name for all further names.
pub(super) const OTHERS: &str = "(others)";

/// The name for an unknown name.
const UNKNOWN: &str = "(unknown)";

/// The row of the unknown name in [`NameTable::or_unknown`].
pub(super) const UNKNOWN_ROW: u32 = 0;

#[derive(Clone, Debug)]
pub(super) struct NameTable {
    /// The number of names after which further ones share a row.
    most: usize,
    rows: HashMap<String, u32>,
    texts: Vec<String>,
    /// The rows found last, by the names' memory addresses: equal names are mostly at the same address.
    recent: [u32; RECENT],
}

const RECENT: usize = 16;

impl Default for NameTable {
    fn default() -> Self {
        Self::with_most(MOST)
    }
}

impl NameTable {
    /// Creates names of which the first `most` are told apart.
    pub(super) fn with_most(most: usize) -> Self {
        Self { most, rows: HashMap::new(), texts: Vec::new(), recent: [0; RECENT] }
    }

    /// Creates names in which the first row stands for an unknown name.
    pub(super) fn or_unknown() -> Self {
        let mut names = Self::default();
        names.row(UNKNOWN);
        names
    }

    #[inline]
    pub(super) fn row(&mut self, name: &str) -> u32 {
        let name = cut(name);
        let address = name.as_ptr().addr();
        let recent = (address ^ (address >> 4) ^ name.len()) % RECENT;
        let row = self.recent[recent];
        if self.texts.get(row as usize).is_some_and(|text| text == name) {
            return row;
        }
        self.recent[recent] = self.find(name);
        self.recent[recent]
    }

    fn find(&mut self, name: &str) -> u32 {
        if let Some(&row) = self.rows.get(name) {
            return row;
        }
        let name = if self.texts.len() < self.most { name } else { OTHERS };
        if let Some(&row) = self.rows.get(name) {
            return row;
        }
        let row = u32::try_from(self.texts.len()).unwrap_or(u32::MAX);
        self.texts.push(name.to_owned());
        self.rows.insert(name.to_owned(), row);
        row
    }

    pub(super) fn text(&self, row: u32) -> &str {
        self.texts.get(row as usize).map_or("", String::as_str)
    }

    /// All names by row.
    pub(super) fn texts(&self) -> &[String] {
        &self.texts
    }
}

/// The beginning of a name, of at most [`MOST_BYTES`].
#[inline]
pub(super) fn cut(name: &str) -> &str {
    cut_at(name, MOST_BYTES)
}

/// The beginning of a text, of at most so many bytes.
#[inline]
pub(super) fn cut_at(text: &str, most_bytes: usize) -> &str {
    if text.len() <= most_bytes {
        return text;
    }
    let ends = (0..=most_bytes).rev().find(|&end| text.is_char_boundary(end));
    &text[..ends.unwrap_or(0)]
}

/// The entry of a row in a column that grows on demand.
pub(super) fn at<T: Default>(column: &mut Vec<T>, row: u32) -> &mut T {
    let row = row as usize;
    if column.len() <= row {
        column.resize_with(row + 1, T::default);
    }
    &mut column[row]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_an_end_to_names() {
        let mut names = NameTable::default();
        let rows: Vec<_> = ["a", "b", "a"].into_iter().map(|name| names.row(name)).collect();
        assert_eq!(rows, [0, 1, 0]);
        let others: Vec<_> = (0..2 * MOST).map(|name| names.row(&name.to_string())).collect();
        assert_eq!(
            (others.last(), names.text(others[2 * MOST - 1])),
            (Some(&(u32::try_from(MOST).unwrap())), OTHERS)
        );
        assert_eq!(names.row("b"), 1);
    }

    #[test]
    fn there_is_an_end_to_a_name() {
        let mut names = NameTable::default();
        let row = names.row(&"é".repeat(MOST_BYTES));
        assert_eq!(names.text(row), "é".repeat(MOST_BYTES / 2));
        assert_eq!(names.row(&format!("{}x", "é".repeat(MOST_BYTES))), row);
    }

    #[test]
    fn the_unknown_has_a_row_from_the_beginning_on() {
        let mut names = NameTable::or_unknown();
        assert_eq!(names.row("a"), 1);
        assert_eq!(names.text(UNKNOWN_ROW), "(unknown)");
    }
}
