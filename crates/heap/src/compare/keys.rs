//! The keys of comparisons when they are serialized: reli's, and in addition `heaps`, `holder_deltas`, and `values` of series.

use serde::{Serialize, Serializer};

use super::{
    Compared, FindingsDiff, HeapComparison, HolderChange, HolderList, MetricSeries, TotalChange,
    growth_percent,
};
use crate::serialized;

#[derive(Serialize)]
struct ComparisonKeys<'a> {
    baseline: Option<&'a Compared>,
    target: Option<&'a Compared>,
    heaps: &'a [Compared],
    same_process: bool,
    summary_deltas: &'a [MetricSeries],
    type_deltas: &'a [TotalChange],
    class_deltas: ClassKeys<'a>,
    findings_diff: &'a FindingsDiff,
    holder_deltas: HolderKeys<'a>,
}

#[derive(Serialize)]
struct ClassKeys<'a> {
    changed: Vec<&'a TotalChange>,
    added: Vec<&'a TotalChange>,
    removed: Vec<&'a TotalChange>,
}

#[derive(Serialize)]
struct HolderKeys<'a> {
    changed: &'a [HolderChange],
    added: &'a [HolderChange],
    removed: &'a [HolderChange],
    changed_count: u64,
    added_count: u64,
    removed_count: u64,
}

#[derive(Serialize)]
struct MetricKeys<'a> {
    metric: &'a str,
    baseline: Option<f64>,
    target: Option<f64>,
    delta: f64,
    delta_percent: Option<f64>,
    values: &'a [Option<f64>],
}

#[derive(Serialize)]
struct TotalKeys<'a> {
    #[serde(serialize_with = "serialized::text")]
    name: &'a [u8],
    counts: &'a [u64],
    bytes: &'a [u64],
    delta: i64,
    delta_percent: Option<f64>,
    steady: bool,
}

impl Serialize for HeapComparison {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        ComparisonKeys {
            baseline: self.heaps.first(),
            target: self.heaps.last(),
            heaps: &self.heaps,
            same_process: self.same_process,
            summary_deltas: &self.metrics,
            type_deltas: &self.types,
            class_deltas: ClassKeys::of(&self.classes),
            findings_diff: &self.findings,
            holder_deltas: HolderKeys::of([&self.holders, &self.added, &self.removed]),
        }
        .serialize(serializer)
    }
}

impl<'a> ClassKeys<'a> {
    fn of(classes: &'a [TotalChange]) -> Self {
        let with = |is: fn(u64, u64) -> bool| {
            let ends =
                |row: &TotalChange| [row.counts.first(), row.counts.last()].map(|end| end.map_or(0, |&n| n));
            let of_kind = move |row: &&TotalChange| {
                let [before, now] = ends(row);
                is(before, now)
            };
            classes.iter().filter(of_kind).collect()
        };
        Self {
            changed: with(|before, now| before > 0 && now > 0),
            added: with(|before, _| before == 0),
            removed: with(|_, now| now == 0),
        }
    }
}

impl<'a> HolderKeys<'a> {
    fn of([changed, added, removed]: [&'a HolderList; 3]) -> Self {
        Self {
            changed: &changed.rows,
            added: &added.rows,
            removed: &removed.rows,
            changed_count: changed.count(),
            added_count: added.count(),
            removed_count: removed.count(),
        }
    }
}

impl Serialize for MetricSeries {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        MetricKeys {
            metric: &self.name,
            baseline: self.first(),
            target: self.last(),
            delta: self.growth(),
            delta_percent: self.growth_percent(),
            values: &self.values,
        }
        .serialize(serializer)
    }
}

impl Serialize for TotalChange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let growth = self.growth();
        TotalKeys {
            name: &self.name,
            counts: &self.counts,
            bytes: &self.bytes,
            delta: growth,
            delta_percent: growth_percent(growth, self.bytes.first().copied().unwrap_or(0)),
            steady: self.is_steady,
        }
        .serialize(serializer)
    }
}
