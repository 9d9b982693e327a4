//! Label sets: what was true of a sample beside its stack (a query, a URL, a worker).
//!
//! A set keeps its order and its duplicates, because `rbt` does: `a=1,b=2` and `b=2,a=1` are two sets.

use std::hash::BuildHasher as _;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::ids::{Id as _, LabelsId, StringId};

/// One key and value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Label {
    /// The key, such as `http.url`.
    pub key: StringId,
    /// The value.
    pub value: LabelValue,
}

/// What a label says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LabelValue {
    /// A text.
    Text(StringId),
    /// A number, with its unit where one is known.
    Number {
        /// The number.
        value: i64,
        /// The unit, such as `bytes`.
        unit: Option<StringId>,
    },
}

#[derive(Clone, Debug, Default)]
pub(crate) struct LabelTable {
    labels: Vec<Label>,
    ends: Vec<usize>,
    index: HashTable<LabelsId>,
    hasher: DefaultHashBuilder,
}

impl LabelTable {
    pub(crate) fn intern(&mut self, set: &[Label]) -> Option<LabelsId> {
        let hash = self.hasher.hash_one(set);
        let found = self.index.find(hash, |&id| slice(&self.labels, &self.ends, id) == set);
        if let Some(&id) = found {
            return Some(id);
        }
        let id = LabelsId::from_row(self.ends.len())?;
        self.labels.extend_from_slice(set);
        self.ends.push(self.labels.len());
        let Self { labels, ends, index, hasher } = self;
        index.insert_unique(hash, id, |&id| hasher.hash_one(slice(labels, ends, id)));
        Some(id)
    }

    #[inline]
    pub(crate) fn get(&self, id: LabelsId) -> &[Label] {
        slice(&self.labels, &self.ends, id)
    }

    pub(crate) const fn len(&self) -> usize {
        self.ends.len()
    }
}

#[inline]
fn slice<'a>(labels: &'a [Label], ends: &[usize], id: LabelsId) -> &'a [Label] {
    let row = id.row();
    let start = if row == 0 { 0 } else { ends[row - 1] };
    &labels[start..ends[row]]
}
