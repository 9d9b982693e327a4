//! The properties by which samples of a page can be selected: their thread, interpreter, and a few labels.

use std::collections::HashMap;

use crate::call_paths::Summable as _;
use crate::profile::Profile;
use crate::profile::situations::{Situation, SituationId};
use crate::selection::Selection;
use crate::view::{GroupValue, LabelText};

/// The maximum number of label keys.
const MOST_KEYS: usize = 3;

/// The maximum number of separate values; the others are combined.
const MOST_VALUES: usize = 40;

/// A property by which samples can be selected.
#[derive(Clone, Debug, PartialEq, Eq)]
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
pub(super) struct Situations {
    pub(super) dimensions: Vec<Dimension>,
    pub(super) rows: Vec<Vec<usize>>,
    /// By situation of the profile.
    row_of: Vec<u32>,
}

impl Situations {
    pub(super) fn new(profile: &Profile) -> Self {
        let mut weights = vec![0_i64; profile.situations.iter().count()];
        profile.each(&Selection::default(), profile.default_weight(), |pair, _, weight| {
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
    let value = |situation: &Situation| match &kind {
        DimensionKind::Thread => profile.thread_of(situation),
        DimensionKind::Interpreter => {
            situation.interpreter.map_or(GroupValue::Absent, GroupValue::Interpreter)
        }
        DimensionKind::Label(key) => {
            profile.label_of(situation, key).map_or(GroupValue::Absent, GroupValue::Label)
        }
    };
    let mut index: HashMap<Key, usize> = HashMap::new();
    let mut values: Vec<(GroupValue, i64)> = Vec::new();
    let mut column = Vec::with_capacity(weights.len());
    for (situation, weight) in profile.situations.iter().zip(weights) {
        let value = value(situation);
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

/// The lookup key of a value.
#[derive(PartialEq, Eq, Hash)]
enum Key {
    Absent,
    Text(Vec<u8>),
    Number(i64),
    Thread(Option<i64>, u64),
    Interpreter(u64),
}

fn key_of(value: &GroupValue) -> Key {
    match value {
        GroupValue::Absent => Key::Absent,
        GroupValue::Label(LabelText::Text(text)) => Key::Text(text.clone()),
        GroupValue::Label(LabelText::Number(number, _)) => Key::Number(*number),
        GroupValue::Process(process) => Key::Thread(Some(*process), 0),
        GroupValue::Interpreter(interpreter) => Key::Interpreter(*interpreter),
        GroupValue::Thread { process, thread, .. } => Key::Thread(*process, *thread),
    }
}
