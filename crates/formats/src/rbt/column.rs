//! Columns beside the tables of a segment, indexed by dense ids.

/// Sets a cell of a column that grows as needed.
pub(super) fn put<T: Clone>(column: &mut Vec<Option<T>>, index: usize, value: T) {
    if column.len() <= index {
        column.resize(index + 1, None);
    }
    column[index] = Some(value);
}
