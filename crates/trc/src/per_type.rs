//! Facts about types of events, derived from each type once.

use super::event::Event;

/// A value per type of the current batch, by the row of the type there.
///
/// Annotations change a type while its batch continues, so each value is valid for one schema only.
#[derive(Debug)]
pub(super) struct PerType<T>(Vec<Option<(u64, T)>>);

impl<T> Default for PerType<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> PerType<T> {
    /// The value for the type of an event, if it was derived.
    #[inline]
    pub(super) fn get(&self, event: &Event<'_>) -> Option<&T> {
        match self.0.get(event.row_index as usize) {
            Some(Some((handle, value))) if *handle == event.schema().handle() => Some(value),
            _ => None,
        }
    }

    /// Sets the value for the type of an event.
    #[cold]
    pub(super) fn set(&mut self, event: &Event<'_>, value: T) -> &T {
        let row = event.row_index as usize;
        if self.0.len() <= row {
            self.0.resize_with(row + 1, || None);
        }
        &self.0[row].insert((event.schema().handle(), value)).1
    }

    /// Removes the values and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
