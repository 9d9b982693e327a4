//! The data that a batch stores once: strings and stacks under numbers that the writer chooses.

use std::ops::Range;

use hashbrown::HashMap;

/// Entries under ids that usually count from 0.
///
/// Columns: the entries are stored end to end in `store`; `dense` holds the ends of those whose id is their row,
/// `sparse` the others. A redefinition stores another entry; the old one stays as garbage until the batch ends.
#[derive(Clone, Debug, Default)]
pub(super) struct Pool<S> {
    store: S,
    dense: Vec<Option<EntrySpan>>,
    sparse: HashMap<u32, EntrySpan>,
}

/// Strings. All are UTF-8, so that none has to be checked again when it is used.
pub(super) type StringPool = Pool<String>;

/// Stacks, as the addresses in the stream.
pub(super) type StackPool = Pool<Vec<[u8; 8]>>;

/// Entries end to end.
pub(super) trait Store: Default {
    type Entry: ?Sized;
    const UNIT_BYTES: usize;
    fn append(&mut self, entry: &Self::Entry);
    fn entry(&self, span: Range<usize>) -> Option<&Self::Entry>;
    fn end(&self) -> usize;
    fn empty(&mut self);
}

impl Store for String {
    type Entry = str;
    const UNIT_BYTES: usize = 1;

    fn append(&mut self, entry: &str) {
        self.push_str(entry);
    }

    #[inline]
    fn entry(&self, span: Range<usize>) -> Option<&str> {
        self.get(span)
    }

    fn end(&self) -> usize {
        self.len()
    }

    fn empty(&mut self) {
        self.clear();
    }
}

impl Store for Vec<[u8; 8]> {
    type Entry = [[u8; 8]];
    const UNIT_BYTES: usize = 8;

    fn append(&mut self, entry: &[[u8; 8]]) {
        self.extend_from_slice(entry);
    }

    #[inline]
    fn entry(&self, span: Range<usize>) -> Option<&[[u8; 8]]> {
        self.get(span)
    }

    fn end(&self) -> usize {
        self.len()
    }

    fn empty(&mut self) {
        self.clear();
    }
}

/// The position of an entry in the store.
#[derive(Clone, Copy, Debug)]
struct EntrySpan {
    start: usize,
    end: usize,
}

/// An id that exceeds the number of ids before it by at most this is still stored in `dense`.
const MAX_GAP: usize = 3;

impl<S: Store> Pool<S> {
    pub(super) fn define(&mut self, id: u32, entry: &S::Entry) {
        let start = self.store.end();
        self.store.append(entry);
        self.put(id, EntrySpan { start, end: self.store.end() });
    }

    // Not inlined: otherwise loops over values would prepare this look-up for each event without one.
    #[inline(never)]
    pub(super) fn get(&self, id: u32) -> Option<&S::Entry> {
        let EntrySpan { start, end } = self.span(id)?;
        self.store.entry(start..end)
    }

    /// The place of the current definition of an id. No other definition has it before the pool is cleared.
    pub(super) fn place(&self, id: u32) -> Option<(usize, usize)> {
        self.span(id).map(|EntrySpan { start, end }| (start, end))
    }

    /// The number of used bytes.
    pub(super) fn len_bytes(&self) -> usize {
        let rows = self.dense.len() + self.sparse.len();
        self.store.end() * S::UNIT_BYTES + rows * size_of::<Option<EntrySpan>>()
    }

    pub(super) fn clear(&mut self) {
        self.store.empty();
        self.dense.clear();
        self.sparse.clear();
    }

    #[inline]
    fn span(&self, id: u32) -> Option<EntrySpan> {
        let row = usize::try_from(id).ok()?;
        match self.dense.get(row) {
            Some(&span) => span,
            None => self.sparse.get(&id).copied(),
        }
    }

    fn put(&mut self, id: u32, span: EntrySpan) {
        let row = usize::try_from(id).unwrap_or(usize::MAX);
        if row < self.dense.len() {
            self.dense[row] = Some(span);
        } else if row - self.dense.len() <= MAX_GAP {
            // Ids in the gap may have been defined before, when it was wider.
            let next = u32::try_from(self.dense.len()).unwrap_or(u32::MAX);
            let gap: Vec<_> = (next..id).map(|id| self.sparse.remove(&id)).collect();
            self.sparse.remove(&id);
            self.dense.extend(gap);
            self.dense.push(Some(span));
        } else {
            self.sparse.insert(id, span);
        }
    }

    /// Every id that is defined.
    pub(super) fn ids(&self) -> impl Iterator<Item = u32> + '_ {
        let dense = (0..).zip(&self.dense).filter_map(|(id, span)| span.map(|_| id));
        dense.chain(self.sparse.keys().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_pool_answers_as_a_map_does(definitions: Vec<(u8, u8, bool)>) {
            let mut pool = StringPool::default();
            let mut map = std::collections::BTreeMap::new();
            for (id, text, far) in definitions {
                let id = u32::from(id) + if far { u32::MAX - 255 } else { 0 };
                pool.define(id, &text.to_string());
                map.insert(id, text.to_string());
            }
            for id in (0..400).chain(u32::MAX - 300..=u32::MAX) {
                prop_assert_eq!(pool.get(id), map.get(&id).map(String::as_str));
            }
            let mut ids: Vec<_> = pool.ids().collect();
            ids.sort_unstable();
            prop_assert_eq!(ids, map.keys().copied().collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_definition_has_a_place_of_its_own() {
        let mut stacks = StackPool::default();
        stacks.define(3, &[]);
        let empty = stacks.place(3);
        stacks.define(3, &[[1; 8]]);
        let first = stacks.place(3);
        stacks.define(3, &[[2; 8]]);
        assert!(empty.is_some() && empty != first && first != stacks.place(3));
        assert_eq!(stacks.place(4), None);
    }

    #[test]
    fn stacks_and_strings_can_be_empty() {
        let mut stacks = StackPool::default();
        stacks.define(3, &[]);
        stacks.define(3, &[[1; 8]]);
        stacks.define(4, &[]);
        assert_eq!(
            (stacks.get(3), stacks.get(4), stacks.get(0)),
            (Some([[1; 8]].as_slice()), Some([].as_slice()), None)
        );
        stacks.clear();
        assert_eq!(stacks.get(3), None);
    }
}
