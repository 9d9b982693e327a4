//! Evaluation of the functions on columns.

use std::sync::Arc;

use borehole_analysis::Pattern;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int64Array, ListArray, StringViewArray, StringViewBuilder,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::common::{DataFusionError, Result};
use hashbrown::{HashMap, HashSet};

use super::SqlFunction;
use crate::labels::LabelRows;
use crate::tables::names_item;

/// Computes the values of a call. `first` is a column of stacks or of labels.
pub(super) fn evaluate(
    function: SqlFunction,
    first: &ArrayRef,
    second: Option<&ArrayRef>,
) -> Result<ArrayRef> {
    if function == SqlFunction::Label {
        return Ok(labels(&LabelRows::new(first)?, second.map(AsArray::as_string_view)));
    }
    let stacks = NameLists::new(first.as_list());
    Ok(match function {
        SqlFunction::Leaf => Arc::new(stacks.map(|mut names| names.next_back()).collect::<StringViewArray>()),
        SqlFunction::Root => Arc::new(stacks.map(|mut names| names.next()).collect::<StringViewArray>()),
        SqlFunction::Depth => {
            Arc::new(stacks.map(|names| i64::try_from(names.count()).ok()).collect::<Int64Array>())
        }
        SqlFunction::Folded => stacks.folded(),
        SqlFunction::FramesOf => {
            let mut seen = HashSet::new();
            stacks.lists(|names, list| {
                seen.clear();
                list.extend(names.filter(|&name| seen.insert(name)));
            })
        }
        SqlFunction::Collapse => stacks.lists(|names, list| {
            for name in names {
                let package = package(name);
                if list.last() != Some(&package) {
                    list.push(package);
                }
            }
        }),
        SqlFunction::Contains => stacks.contain(second.map(AsArray::as_string_view))?,
        SqlFunction::Label => unreachable!("a function of labels"),
    })
}

/// A column of stacks.
struct NameLists<'a> {
    lists: &'a ListArray,
    names: &'a StringViewArray,
}

impl<'a> NameLists<'a> {
    fn new(lists: &'a ListArray) -> Self {
        Self { lists, names: lists.values().as_string_view() }
    }

    /// The names of a stack, root first; `None` for an absent stack.
    fn names(&self, row: usize) -> Option<impl DoubleEndedIterator<Item = &'a str> + use<'a>> {
        let ends = self.lists.value_offsets();
        let row_of = |end: i32| usize::try_from(end).unwrap_or(0);
        let names = self.names;
        (!self.lists.is_null(row))
            .then(|| (row_of(ends[row])..row_of(ends[row + 1])).map(move |name| names.value(name)))
    }

    fn map<T>(
        &self,
        of: impl Fn(Box<dyn DoubleEndedIterator<Item = &'a str> + 'a>) -> Option<T>,
    ) -> impl Iterator<Item = Option<T>> {
        (0..self.lists.len()).map(move |row| self.names(row).and_then(|names| of(Box::new(names))))
    }

    fn folded(&self) -> ArrayRef {
        let mut texts = StringViewBuilder::with_capacity(self.lists.len());
        let mut text = String::new();
        for row in 0..self.lists.len() {
            let Some(names) = self.names(row) else {
                texts.append_null();
                continue;
            };
            text.clear();
            for name in names {
                if !text.is_empty() {
                    text.push(';');
                }
                text.push_str(name);
            }
            texts.append_value(&text);
        }
        Arc::new(texts.finish())
    }

    fn lists(&self, mut fill: impl FnMut(&mut dyn Iterator<Item = &'a str>, &mut Vec<&'a str>)) -> ArrayRef {
        let mut values = StringViewBuilder::new();
        let mut lengths = Vec::with_capacity(self.lists.len());
        let mut list = Vec::new();
        for row in 0..self.lists.len() {
            list.clear();
            if let Some(mut names) = self.names(row) {
                fill(&mut names, &mut list);
            }
            list.iter().for_each(|name| values.append_value(name));
            lengths.push(list.len());
        }
        let offsets = OffsetBuffer::from_lengths(lengths);
        Arc::new(ListArray::new(
            names_item(),
            offsets,
            Arc::new(values.finish()),
            self.lists.nulls().cloned(),
        ))
    }

    fn contain(&self, patterns: Option<&StringViewArray>) -> Result<ArrayRef> {
        let mut compiled: HashMap<&str, Pattern> = HashMap::new();
        let mut rows = Vec::with_capacity(self.lists.len());
        for row in 0..self.lists.len() {
            let pattern =
                patterns.filter(|patterns| !patterns.is_null(row)).map(|patterns| patterns.value(row));
            let (Some(pattern), Some(mut names)) = (pattern, self.names(row)) else {
                rows.push(None);
                continue;
            };
            if !compiled.contains_key(pattern) {
                let new =
                    Pattern::new(pattern).map_err(|error| DataFusionError::Execution(error.to_string()))?;
                compiled.insert(pattern, new);
            }
            rows.push(Some(names.any(|name| compiled[pattern].is_match(name.as_bytes()))));
        }
        Ok(Arc::new(BooleanArray::from(rows)))
    }
}

/// The part of a name before its last separator; the whole name if it has none.
fn package(name: &str) -> &str {
    let end =
        ["\\", "::", "."].into_iter().find_map(|separator| name.rfind(separator)).filter(|&end| end > 0);
    end.map_or(name, |end| &name[..end])
}

/// The values of labels.
fn labels(rows: &LabelRows, keys: Option<&StringViewArray>) -> ArrayRef {
    let mut values = StringViewBuilder::with_capacity(rows.len());
    for row in 0..rows.len() {
        let key = keys.filter(|keys| !keys.is_null(row)).map(|keys| keys.value(row));
        values.append_option(key.and_then(|key| rows.label(row, key)));
    }
    Arc::new(values.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_the_part_of_a_name_before_the_last_separator() {
        let names = ["App\\Db::query", "tokio::task::poll", "json.decoder.decode", "main", ".x", "std::vec"];
        let packages = names.map(package);
        assert_eq!(packages, ["App", "tokio::task", "json.decoder", "main", ".x", "std"]);
    }
}
