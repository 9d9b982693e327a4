//! Label sets: context of a sample beside its stack, such as a query, a URL or a worker.
//!
//! A set keeps its order and its duplicates, because `rbt` does: `a=1,b=2` and `b=2,a=1` are two sets.

use crate::distinct::Distinct;
use crate::ids::{Id as _, LabelsId, StringId};

/// A key and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Label {
    /// The key, such as `http.url`.
    pub key: StringId,
    /// The value.
    pub value: LabelValue,
}

/// The value of a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LabelValue {
    /// A text.
    Text(StringId),
    /// A number, with its unit if known.
    Number {
        /// The number.
        value: i64,
        /// The unit, such as `bytes`.
        unit: Option<StringId>,
    },
}

#[derive(Clone, Debug, Default)]
pub(crate) struct LabelTable {
    /// Labels of every set that has no label with the same key.
    common: Vec<Label>,
    sets: Distinct<Label>,
}

impl LabelTable {
    pub(crate) fn set_common(&mut self, labels: Vec<Label>) -> Vec<Label> {
        std::mem::replace(&mut self.common, labels)
    }

    pub(crate) fn intern(&mut self, set: &[Label]) -> Option<LabelsId> {
        let is_missing = |common: &&Label| set.iter().all(|label| label.key != common.key);
        let mut whole: Vec<Label> = self.common.iter().filter(is_missing).copied().collect();
        if whole.is_empty() {
            return self.intern_whole(set);
        }
        whole.extend_from_slice(set);
        self.intern_whole(&whole)
    }

    fn intern_whole(&mut self, set: &[Label]) -> Option<LabelsId> {
        LabelsId::from_row(self.sets.intern(set)? as usize)
    }

    #[inline]
    pub(crate) fn get(&self, id: LabelsId) -> &[Label] {
        self.sets.get(id.row())
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.sets.held_bytes()
    }

    pub(crate) const fn len(&self) -> usize {
        self.sets.count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_labels_stand_before_those_of_each_set_unless_it_has_the_key() {
        let id = |row| StringId::from_row(row).unwrap();
        let label = |key, value| Label { key: id(key), value: LabelValue::Text(id(value)) };
        let mut table = LabelTable::default();
        let plain = table.intern(&[label(0, 1)]).unwrap();
        assert!(table.set_common(vec![label(2, 3)]).is_empty());
        let sets = [&[label(0, 1)][..], &[], &[label(2, 9)]].map(|set| table.intern(set).unwrap());
        let expected = [&[label(2, 3), label(0, 1)][..], &[label(2, 3)], &[label(2, 9)]];
        assert_eq!(sets.map(|id| table.get(id)), expected);
        assert_eq!(table.set_common(Vec::new()), [label(2, 3)]);
        assert_eq!(table.intern(&[label(0, 1)]), Some(plain));
    }
}
