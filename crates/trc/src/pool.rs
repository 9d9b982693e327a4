//! The data that a batch stores once: strings and stacks under numbers that the writer chooses.

use std::num::NonZeroU64;
use std::ops::Range;

use borehole_memory::HeldBytes as _;
use hashbrown::HashMap;

/// Entries under ids that usually count from 0.
///
/// Columns: the entries are stored end to end in `store`; `dense` holds the ends of those whose id is their row,
/// `sparse` the others. A redefinition stores another entry; the old one stays as garbage until half of the store is.
#[derive(Clone, Debug, Default)]
pub(super) struct Pool<S> {
    store: S,
    /// The units of the store that no id refers to.
    garbage: usize,
    /// The number of definitions so far, of all batches.
    defined: u64,
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
    fn held_bytes(&self) -> usize;
    fn append(&mut self, entry: &Self::Entry);
    fn entry(&self, span: Range<usize>) -> Option<&Self::Entry>;
    fn end(&self) -> usize;
    fn empty(&mut self);
}

impl Store for String {
    type Entry = str;
    const UNIT_BYTES: usize = 1;

    fn held_bytes(&self) -> usize {
        self.capacity()
    }

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

    fn held_bytes(&self) -> usize {
        self.capacity() * Self::UNIT_BYTES
    }

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
    number: DefinitionNumber,
}

/// The number of a definition, different for each one of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct DefinitionNumber(NonZeroU64);

/// The garbage from which on it is worth to be removed, in bytes.
const MUCH_GARBAGE_BYTES: usize = 1 << 20;

/// An id that exceeds the number of ids before it by at most this is still stored in `dense`.
const MAX_GAP: usize = 3;

impl<S: Store> Pool<S> {
    pub(super) fn define(&mut self, id: u32, entry: &S::Entry) {
        let start = self.store.end();
        self.store.append(entry);
        let before = self.span(id);
        self.defined += 1;
        let number = DefinitionNumber(NonZeroU64::MIN.saturating_add(self.defined));
        self.put(id, EntrySpan { start, end: self.store.end(), number });
        if let Some(EntrySpan { start, end, .. }) = before {
            self.garbage += end - start;
            if self.garbage * S::UNIT_BYTES > MUCH_GARBAGE_BYTES && self.garbage > self.store.end() / 2 {
                self.remove_garbage();
            }
        }
    }

    /// Moves the entries that ids refer to into another store. The cost is shared by the definitions that made the garbage.
    #[cold]
    fn remove_garbage(&mut self) {
        let (old, new) = (std::mem::take(&mut self.store), &mut self.store);
        for span in self.dense.iter_mut().flatten().chain(self.sparse.values_mut()) {
            let start = new.end();
            if let Some(entry) = old.entry(span.start..span.end) {
                new.append(entry);
            }
            *span = EntrySpan { start, end: new.end(), ..*span };
        }
        self.garbage = 0;
    }

    // Not inlined: otherwise loops over values would prepare this look-up for each event without one.
    #[inline(never)]
    pub(super) fn get(&self, id: u32) -> Option<&S::Entry> {
        let EntrySpan { start, end, .. } = self.span(id)?;
        self.store.entry(start..end)
    }

    /// The number of the definition that `id` means now.
    pub(super) fn number(&self, id: u32) -> Option<DefinitionNumber> {
        self.span(id).map(|span| span.number)
    }

    /// The memory that the entries have allocated.
    pub(super) fn held_bytes(&self) -> usize {
        self.store.held_bytes() + self.dense.held_bytes() + self.sparse.allocation_size()
    }

    pub(super) fn clear(&mut self) {
        self.store.empty();
        self.garbage = 0;
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
    fn what_is_defined_again_takes_no_more_memory() {
        let mut pool = StackPool::default();
        pool.define(9, &[[9; 8]]);
        for round in 0..1000_u32 {
            let entry = vec![u64::from(round).to_le_bytes(); 10_000];
            pool.define(round % 2, &entry);
            assert_eq!(pool.get(round % 2), Some(&entry[..]));
        }
        assert_eq!((pool.get(9), pool.get(1).map(<[_]>::len)), (Some(&[[9; 8]][..]), Some(10_000)));
        assert!(pool.held_bytes() < 4 << 20, "{} bytes for 160 KB", pool.held_bytes());
    }

    #[test]
    fn garbage_is_removed_once_it_is_much_and_most() {
        /// The length of a store of three equal entries, two of which are garbage, in units.
        fn kept<S: Store>(entry: &S::Entry) -> usize {
            let mut pool = Pool::<S>::default();
            (0..3).for_each(|_| pool.define(0, entry));
            pool.store.end()
        }
        let half = MUCH_GARBAGE_BYTES / 2;
        assert_eq!(kept::<String>(&"a".repeat(half)), 3 * half);
        assert_eq!(kept::<String>(&"a".repeat(half + 1)), half + 1);
        let half = half / 8;
        assert_eq!(kept::<Vec<[u8; 8]>>(&vec![[1; 8]; half]), 3 * half);
        assert_eq!(kept::<Vec<[u8; 8]>>(&vec![[1; 8]; half + 1]), half + 1);
        // Half of it is in use.
        let mut pool = StringPool::default();
        let large = "a".repeat(2 * MUCH_GARBAGE_BYTES);
        pool.define(0, &large);
        pool.define(0, &large);
        assert_eq!(pool.store.end(), 2 * large.len());
        pool.define(0, "");
        assert_eq!((pool.store.end(), pool.get(0)), (0, Some("")));
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
