//! What one commit says.

use std::collections::BTreeSet;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::supported;
use crate::tables::{SCHEMA_VERSION, Table};

/// What a writer did.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Commit {
    /// The version of the tables.
    pub(crate) schema: u32,
    /// No two commits have the same.
    pub(crate) id: String,
    pub(crate) at_us: i64,
    pub(crate) operation: Operation,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) add: Vec<DataFile>,
    /// The paths of files that are no longer there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) remove: Vec<String>,
    /// The checksums of inputs that are in the lake now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) sources: Vec<String>,
    /// Those of inputs of which nothing is left.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) forgotten: Vec<String>,
}

/// Why a writer did it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Operation {
    Create,
    Add,
    Compact,
    Retain,
}

/// A Parquet file of one table, and what queries need to know of it without opening it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct DataFile {
    pub(crate) table: String,
    /// Below the lake.
    pub(crate) path: String,
    #[serde(deserialize_with = "amount")]
    pub(crate) rows: u64,
    #[serde(deserialize_with = "amount")]
    pub(crate) bytes: u64,
    /// SHA-256 of its bytes, in hexadecimal.
    pub(crate) sha256: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) service: Option<String>,
    /// The first and the last `time` in it; of sources, the last `until`, for which they are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) span_us: Option<(i64, i64)>,
    /// All its labels as `key=value`, in order; absent where they are too many to be listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) labels: Option<Vec<String>>,
    /// The kinds of numbers that its samples or measures are, in order; absent where they are too many to be listed, and in files
    /// of earlier builds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) numbers: Option<Vec<Number>>,
    /// Whether its rows are in the order of its table.
    #[serde(default)]
    pub(crate) sorted: bool,
}

/// A kind of numbers that a file has.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Number {
    /// What is measured, and in which unit: `samples` and `count` of observations.
    pub(crate) kind: String,
    pub(crate) unit: String,
    /// Which clock was sampled.
    pub(crate) mode: String,
    /// Whether it is what its input is shown by unless another is asked for.
    #[serde(default)]
    pub(crate) is_default: bool,
    /// Whether samples have a time.
    #[serde(default)]
    pub(crate) has_time: bool,
    /// When it was measured first.
    pub(crate) first_us: i64,
}

impl Number {
    /// Each kind once, with when it was first.
    pub(crate) fn merged(numbers: impl IntoIterator<Item = Self>) -> Vec<Self> {
        // The time comes last: of equal ones the earliest comes first.
        let sorted: BTreeSet<_> = numbers.into_iter().collect();
        let mut merged: Vec<Self> = Vec::new();
        for number in sorted {
            let is_known =
                merged.last().is_some_and(|last| Self { first_us: last.first_us, ..number.clone() } == *last);
            if !is_known {
                merged.push(number);
            }
        }
        merged
    }
}

impl Commit {
    pub(crate) fn new(operation: Operation, at_us: i64) -> Self {
        Self {
            schema: SCHEMA_VERSION,
            id: uuid::Uuid::new_v4().simple().to_string(),
            at_us,
            operation,
            add: Vec::new(),
            remove: Vec::new(),
            sources: Vec::new(),
            forgotten: Vec::new(),
        }
    }

    pub(super) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let commit: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        supported(commit.schema)?;
        Ok(commit)
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("strings and numbers are JSON")
    }
}

/// The most rows or bytes that a file may be said to have: what adds them up for many files does not look for more than it holds.
const MOST: u64 = 1 << 48;

fn amount<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    match u64::deserialize(deserializer)? {
        amount @ ..=MOST => Ok(amount),
        amount => {
            Err(D::Error::custom(format_args!("too large a file: expected at most {MOST}, found {amount}")))
        }
    }
}

impl DataFile {
    /// The kinds of its numbers; `None` where they are not known. Samples of earlier builds count as those of elapsed time.
    pub(crate) fn numbers(&self) -> Option<Vec<Number>> {
        let of_samples = || Number {
            kind: "samples".to_owned(),
            unit: "count".to_owned(),
            mode: "wall".to_owned(),
            is_default: true,
            has_time: true,
            first_us: self.span_us.map_or(i64::MAX, |(first, _)| first),
        };
        let is_of_samples = self.table == Table::Samples.name();
        self.numbers.clone().or_else(|| is_of_samples.then(|| vec![of_samples()]))
    }

    /// Its table; `None` where this build does not know it.
    pub(crate) fn table(&self) -> Option<Table> {
        Table::of_name(&self.table)
    }
}
