//! The contents of a commit.

use std::collections::BTreeSet;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::tables::{LakeTable, SCHEMA_VERSION};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Commit {
    /// The version of the tables.
    pub(crate) schema: u32,
    /// A unique id.
    pub(crate) id: String,
    pub(crate) at_us: i64,
    pub(crate) operation: Operation,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) add: Vec<DataFile>,
    /// The paths of removed files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) remove: Vec<String>,
    /// The checksums of added inputs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) sources: Vec<String>,
    /// The checksums of the beginnings of added inputs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) beginnings: Vec<String>,
    /// The checksums of inputs that have no rows left.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) forgotten: Vec<String>,
    /// The checksums of their beginnings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) forgotten_beginnings: Vec<String>,
}

/// The reason for a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Operation {
    Create,
    Add,
    Compact,
    Retain,
    Remove,
    Relabel,
    Upgrade,
    Symbolize,
}

/// A Parquet file of one table, with the facts that let queries skip it without opening it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct DataFile {
    pub(crate) table: String,
    /// The version of its table; 0 in commits of version 3 and earlier.
    #[serde(default)]
    pub(crate) schema: u32,
    /// The path below the lake.
    pub(crate) path: String,
    #[serde(deserialize_with = "amount")]
    pub(crate) rows: u64,
    #[serde(deserialize_with = "amount")]
    pub(crate) bytes: u64,
    /// The SHA-256 of its bytes, in hexadecimal.
    pub(crate) sha256: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) service: Option<String>,
    /// Its first and last `time`. For sources, the last `until` instead of the last `time`, because it decides how long they are
    /// kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) span_us: Option<(i64, i64)>,
    /// When the newest of its rows were added; absent in files of earlier builds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) added_us: Option<i64>,
    /// All its labels as `key=value`, in order; absent if there are too many to list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) labels: Option<Vec<String>>,
    /// The kinds of numbers of its samples or measures, in order; absent if there are too many to list, and in files of earlier
    /// builds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) numbers: Option<Vec<ListedNumber>>,
    /// Whether its rows are in the order of its table.
    #[serde(default)]
    pub(crate) sorted: bool,
    /// Whether its stacks may be in other files too: added without a look at them, and not compacted yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) repeats: bool,
    /// Whether native code in its stacks was named after it was added. Other files may have the same stacks without these names.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) named: bool,
    /// All its hosts, in order; absent if there are too many to list, and in files of earlier builds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hosts: Option<Vec<String>>,
}

/// A kind of numbers in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct ListedNumber {
    /// The measured kind, followed by its unit: `samples` and `count` for observations.
    pub(crate) kind: String,
    pub(crate) unit: String,
    /// The sampled clock.
    pub(crate) mode: String,
    /// Whether it is the default of its input.
    #[serde(default)]
    pub(crate) is_default: bool,
    /// Whether samples have a time.
    #[serde(default)]
    pub(crate) has_time: bool,
    /// The time of the first such number, in microseconds since 1970 (UTC).
    pub(crate) first_us: i64,
}

impl ListedNumber {
    /// Each kind once, with its first time.
    pub(crate) fn merged(numbers: impl IntoIterator<Item = Self>) -> Vec<Self> {
        // The time is compared last, so of equal kinds the earliest comes first.
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
            beginnings: Vec::new(),
            forgotten: Vec::new(),
            forgotten_beginnings: Vec::new(),
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

/// Checks that this build can read data of version `schema`.
pub(super) fn supported(schema: u32) -> Result<(), String> {
    if schema <= SCHEMA_VERSION {
        return Ok(());
    }
    Err(format!("unsupported lake version: expected at most {SCHEMA_VERSION}, found {schema}"))
}

/// The maximum number of rows or bytes of a file, so that sums over many files do not overflow.
const MOST: u64 = 1 << 48;

fn amount<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    match u64::deserialize(deserializer)? {
        amount @ ..=MOST => Ok(amount),
        amount => Err(D::Error::custom(format_args!(
            "file too large: expected at most {MOST} rows or bytes, found {amount}"
        ))),
    }
}

impl DataFile {
    /// The kinds of its numbers; `None` if they are unknown. Samples of earlier builds count as wall-clock samples.
    pub(crate) fn numbers(&self) -> Option<Vec<ListedNumber>> {
        let of_samples = || ListedNumber {
            kind: "samples".to_owned(),
            unit: "count".to_owned(),
            mode: "wall".to_owned(),
            is_default: true,
            has_time: true,
            first_us: self.span_us.map_or(i64::MAX, |(first, _)| first),
        };
        let is_of_samples = self.table == LakeTable::Samples.name();
        self.numbers.clone().or_else(|| is_of_samples.then(|| vec![of_samples()]))
    }

    /// Whether its rows are as this build writes them. Its journal refuses later ones.
    pub(crate) const fn is_current(&self) -> bool {
        self.schema == SCHEMA_VERSION
    }

    /// Its table; `None` if this build does not know it.
    pub(crate) fn table(&self) -> Option<LakeTable> {
        LakeTable::of_name(&self.table)
    }
}
