//! Distinct byte strings. Strings are bytes, not text: PHP names need not be UTF-8.

use crate::distinct::Distinct;
use crate::ids::{Id as _, StringId};

#[derive(Clone, Debug, Default)]
pub(crate) struct StringTable(Distinct<u8>);

impl StringTable {
    pub(crate) fn intern(&mut self, string: &[u8]) -> Option<StringId> {
        StringId::from_row(self.0.intern(string)? as usize)
    }

    pub(crate) fn find(&self, string: &[u8]) -> Option<StringId> {
        StringId::from_row(self.0.find(string)? as usize)
    }

    #[inline]
    pub(crate) fn get(&self, id: StringId) -> &[u8] {
        self.0.get(id.row())
    }

    pub(crate) const fn len(&self) -> usize {
        self.0.count()
    }

    pub(crate) const fn byte_len(&self) -> usize {
        self.0.item_count()
    }
}
