//! Columns beside tables: values that a sink derives from each row once.

use crate::ids::StackId;
use crate::tables::Tables;

/// Values derived from the rows of a table, by the [index](StackId::index) of their ids.
///
/// Memory: grows with the largest index that is set.
#[derive(Clone, Debug)]
pub struct Column<T> {
    rows: Vec<Option<T>>,
}

impl<T> Default for Column<T> {
    fn default() -> Self {
        Self { rows: Vec::new() }
    }
}

impl<T: Copy> Column<T> {
    /// The value of a row; `None` if it has not been set.
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> Option<T> {
        self.rows.get(index).copied().flatten()
    }

    /// Sets the value of a row and returns it.
    #[inline]
    pub fn set(&mut self, index: usize, value: T) -> T {
        if index >= self.rows.len() {
            self.rows.resize(index + 1, None);
        }
        self.rows[index] = Some(value);
        value
    }
}

/// Values of stacks, each derived once from the value of its caller.
///
/// # Examples
///
/// The number of frames of one function on each stack:
///
/// ```
/// use borehole_model::{Frame, StackColumn, Tables};
///
/// let mut tables = Tables::default();
/// let [main, walk] = ["main", "walk"].map(|name| {
///     let name = tables.intern_string(name.as_bytes()).unwrap();
///     tables.intern_frame(&Frame::named(name)).unwrap()
/// });
/// let stack = tables.intern_stack_leaf_first(&[walk, walk, main])?.unwrap();
///
/// let mut walks = StackColumn::default();
/// let count = walks.derive(stack, &tables, |caller, stack| {
///     Ok::<_, borehole_model::TableFull>(caller.unwrap_or(0) + u32::from(tables.leaf(stack) == walk))
/// })?;
/// assert_eq!(count, 2);
/// assert_eq!(tables.parent(stack).and_then(|caller| walks.get(caller)), Some(1));
/// # Ok::<(), borehole_model::TableFull>(())
/// ```
#[derive(Clone, Debug)]
pub struct StackColumn<T> {
    known: Column<T>,
    path: Vec<StackId>,
}

impl<T> Default for StackColumn<T> {
    fn default() -> Self {
        Self { known: Column::default(), path: Vec::new() }
    }
}

impl<T: Copy> StackColumn<T> {
    /// The value of a stack; `None` if it has not been derived.
    #[inline]
    #[must_use]
    pub fn get(&self, stack: StackId) -> Option<T> {
        self.known.get(stack.index())
    }

    /// The value of a stack, derived if necessary.
    ///
    /// `derive` is called for each stack whose value is missing, callers first. It receives the caller's value (`None`
    /// at a root) and the stack.
    ///
    /// # Errors
    /// Those of `derive`. Values derived before the error are kept.
    #[inline]
    pub fn derive<E>(
        &mut self,
        stack: StackId,
        tables: &Tables,
        derive: impl FnMut(Option<T>, StackId) -> Result<T, E>,
    ) -> Result<T, E> {
        match self.get(stack) {
            Some(known) => Ok(known),
            None => self.derive_path(stack, tables, derive),
        }
    }

    #[cold]
    fn derive_path<E>(
        &mut self,
        stack: StackId,
        tables: &Tables,
        mut derive: impl FnMut(Option<T>, StackId) -> Result<T, E>,
    ) -> Result<T, E> {
        self.path.clear();
        let mut above = tables.parent(stack);
        let mut known = None;
        while let Some(caller) = above {
            known = self.get(caller);
            if known.is_some() {
                break;
            }
            self.path.push(caller);
            above = tables.parent(caller);
        }
        while let Some(caller) = self.path.pop() {
            known = Some(self.known.set(caller.index(), derive(known, caller)?));
        }
        Ok(self.known.set(stack.index(), derive(known, stack)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::Frame;
    use crate::tables::TableFull;

    fn stacks() -> (Tables, StackId, StackId) {
        let mut tables = Tables::default();
        let frames = ["main", "one", "two", "three"].map(|name| {
            let name = tables.intern_string(name.as_bytes()).unwrap();
            tables.intern_frame(&Frame::named(name)).unwrap()
        });
        let deep = tables.intern_stack_leaf_first(&[frames[2], frames[1], frames[0]]).unwrap().unwrap();
        let beside = tables.intern_stack_leaf_first(&[frames[3], frames[1], frames[0]]).unwrap().unwrap();
        (tables, deep, beside)
    }

    #[test]
    fn each_stack_is_derived_once_and_behind_its_caller() {
        let (tables, deep, beside) = stacks();
        let mut depths = StackColumn::default();
        let mut asked = Vec::new();
        for stack in [deep, beside, deep] {
            let depth = depths.derive(stack, &tables, |caller: Option<u32>, stack| {
                asked.push(stack);
                Ok::<_, TableFull>(caller.unwrap_or(0) + 1)
            });
            assert_eq!(depth, Ok(3));
        }
        let caller = tables.parent(deep).unwrap();
        assert_eq!(asked, [tables.parent(caller).unwrap(), caller, deep, beside]);
    }

    #[test]
    fn values_derived_before_an_error_are_kept() {
        let (tables, deep, beside) = stacks();
        let mut depths = StackColumn::default();
        let failed = depths.derive(deep, &tables, |caller: Option<u32>, stack| {
            if stack == deep { Err("full") } else { Ok(caller.unwrap_or(0) + 1) }
        });
        assert_eq!((failed, depths.get(deep)), (Err("full"), None));
        let depth = depths.derive(beside, &tables, |caller, _| Ok::<_, TableFull>(caller.unwrap_or(100) + 1));
        assert_eq!(depth, Ok(3));
    }
}
