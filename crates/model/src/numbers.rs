//! Table rows for numbers that programs assign: to tasks, workers, threads.

use hashbrown::HashMap;

/// Maps numbers to rows of a table. Programs count up, so neighbouring numbers share a page.
///
/// Memory: about 80 bytes for each 16 neighbouring numbers of which at least one is in use.
///
/// # Examples
///
/// ```
/// use borehole_model::RowIndex;
///
/// let (mut index, mut names) = (RowIndex::default(), Vec::new());
/// for (thread, name) in [(4711, "main"), (4712, "worker"), (4711, "main")] {
///     if index.get(thread).is_none() {
///         index.insert(thread, names.len());
///         names.push(name);
///     }
/// }
/// assert_eq!((index.get(4712), names.len()), (Some(1), 2));
/// ```
#[derive(Clone, Debug, Default)]
pub struct RowIndex {
    /// The row in `pages`, by all but the last four bits of the numbers.
    page_rows: HashMap<u64, usize>,
    /// One more than the row; 0 means none.
    pages: Vec<[u32; PAGE]>,
    /// The page that was looked up last.
    last: Option<(u64, usize)>,
}

const PAGE: usize = 16;

impl RowIndex {
    /// The row of a number; `None` if it has none. Remembers the page for the next lookup.
    #[inline]
    pub fn get(&mut self, number: u64) -> Option<usize> {
        let (page, place) = split(number);
        let row = match self.last {
            Some((last, row)) if last == page => row,
            _ => {
                let row = *self.page_rows.get(&page)?;
                self.last = Some((page, row));
                row
            }
        };
        (self.pages[row][place] as usize).checked_sub(1)
    }

    /// Like [`RowIndex::get`], but does not remember the page.
    #[must_use]
    pub fn find(&self, number: u64) -> Option<usize> {
        let (page, place) = split(number);
        (self.pages[*self.page_rows.get(&page)?][place] as usize).checked_sub(1)
    }

    /// Sets the row of a number. Rows beyond 2^32 - 2 are not stored.
    pub fn insert(&mut self, number: u64, row: usize) {
        let (page, place) = split(number);
        let page_row = *self.page_rows.entry(page).or_insert(self.pages.len());
        if page_row == self.pages.len() {
            self.pages.push([0; PAGE]);
        }
        self.pages[page_row][place] = u32::try_from(row.saturating_add(1)).unwrap_or(0);
    }
}

#[inline]
fn split(number: u64) -> (u64, usize) {
    let [low, ..] = number.to_le_bytes();
    (number / PAGE as u64, usize::from(low) % PAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_near_and_far_keep_their_rows() {
        let numbers = [0, 15, 16, 17, 4711, u64::MAX, u64::MAX - 16];
        let mut index = RowIndex::default();
        for (row, &number) in numbers.iter().enumerate() {
            assert_eq!(index.get(number), None, "{number}");
            index.insert(number, row);
        }
        let rows: Vec<_> = numbers.iter().rev().map(|&number| index.get(number)).collect();
        assert_eq!(rows, (0..numbers.len()).rev().map(Some).collect::<Vec<_>>());
        assert_eq!((index.get(1), index.get(4712), index.get(1 << 40)), (None, None, None));
        index.insert(0, 9);
        assert_eq!((index.get(0), index.find(0), index.find(2)), (Some(9), Some(9), None));
    }
}
