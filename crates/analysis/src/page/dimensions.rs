//! The properties by which samples of a page can be selected: their thread, interpreter, and a few labels.

use std::collections::HashMap;

use crate::call_paths::Summable as _;
use crate::profile::Profile;
use crate::profile::situations::SituationId;
use crate::query::By;
use crate::selection::SampleSelection;
use crate::view::{GroupValue, LabelText};

/// The maximum number of label keys.
const MOST_KEYS: usize = 3;

/// The maximum number of separate values; the others are combined.
const MOST_VALUES: usize = 40;

/// A property by which samples can be selected.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dimension {
    /// The kind of property.
    pub kind: DimensionKind,
    /// The values, heaviest first.
    pub values: Vec<DimensionValue>,
}

/// The kind of a dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DimensionKind {
    /// The thread.
    Thread,
    /// The interpreter.
    Interpreter,
    /// The label with this key.
    Label(Vec<u8>),
}

/// A value of a dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DimensionValue {
    /// A value of its own.
    Known(GroupValue),
    /// This many other values, combined.
    Others(usize),
}

/// The situations of a profile, as distinguished by the dimensions.
pub(super) struct PageSituations {
    pub(super) dimensions: Vec<Dimension>,
    pub(super) rows: Vec<Vec<usize>>,
    /// By situation of the profile.
    row_of: Vec<u32>,
}

impl PageSituations {
    pub(super) fn new(profile: &Profile, selection: &SampleSelection) -> Self {
        let mut weights = vec![0_i64; profile.situations.iter().count()];
        profile.each(selection, profile.default_weight(), |pair, _, weight| {
            weights[pair.situation as usize].add(weight);
        });
        let keys = profile.label_keys();
        let kinds = [DimensionKind::Thread, DimensionKind::Interpreter].into_iter();
        let kinds = kinds.chain(keys.into_iter().take(MOST_KEYS).map(DimensionKind::Label));
        let known = kinds.filter_map(|kind| dimension(profile, kind, &weights));
        let (dimensions, columns): (Vec<_>, Vec<_>) = known.unzip();
        let mut rows: Vec<Vec<usize>> = Vec::new();
        let mut index = HashMap::new();
        let row_of = (0..weights.len()).map(|situation| {
            let row: Vec<usize> = columns.iter().map(|column| column[situation]).collect();
            *index.entry(row).or_insert_with_key(|row| {
                rows.push(row.clone());
                u32::try_from(rows.len() - 1).unwrap_or(u32::MAX)
            })
        });
        Self { row_of: row_of.collect(), dimensions, rows }
    }

    pub(super) fn of(&self, situation: SituationId) -> u32 {
        self.row_of[situation as usize]
    }
}

/// A dimension, and its value for each situation; `None` if there is only one value.
fn dimension(profile: &Profile, kind: DimensionKind, weights: &[i64]) -> Option<(Dimension, Vec<usize>)> {
    let by = match &kind {
        DimensionKind::Thread => By::Thread,
        DimensionKind::Interpreter => By::Interpreter,
        DimensionKind::Label(key) => By::Label(key.clone()),
    };
    let mut index: HashMap<GroupValue, usize> = HashMap::new();
    let mut values: Vec<(GroupValue, i64)> = Vec::new();
    let mut column = Vec::with_capacity(weights.len());
    for (situation, weight) in profile.situations.iter().zip(weights) {
        let value = profile.group_of(situation, &by);
        let place = *index.entry(key_of(&value)).or_insert(values.len());
        if place == values.len() {
            values.push((value, 0));
        }
        values[place].1.add(*weight);
        column.push(place);
    }
    if values.len() < 2 {
        return None;
    }
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by_key(|&place| std::cmp::Reverse(values[place].1));
    let mut rank = vec![0; values.len()];
    for (position, &place) in order.iter().enumerate() {
        rank[place] = position.min(MOST_VALUES);
    }
    let known = order.iter().take(MOST_VALUES).map(|&place| DimensionValue::Known(values[place].0.clone()));
    let mut known: Vec<_> = known.collect();
    if values.len() > MOST_VALUES {
        known.push(DimensionValue::Others(values.len() - MOST_VALUES));
    }
    let column = column.into_iter().map(|place| rank[place]).collect();
    Some((Dimension { kind, values: known }, column))
}

/// The value without what does not distinguish it: the name of a thread, and the unit of a number.
fn key_of(value: &GroupValue) -> GroupValue {
    match value.clone() {
        GroupValue::Thread { process, thread, .. } => GroupValue::Thread { process, thread, name: None },
        GroupValue::Label(LabelText::Number(number, _)) => GroupValue::Label(LabelText::Number(number, None)),
        other => other,
    }
}
