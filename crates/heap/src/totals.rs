//! Sums memory by location type and by class.

use hashbrown::{HashMap, HashSet};

use crate::graph::{Graph, MemoryTotal, Totals};
use crate::largest::sort_largest_first;
use crate::names::LocationType;
use crate::sink::MemoryLocation;

/// The locations to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TotalsScope {
    /// Locations in PHP's own memory, which reli's JSON counts.
    OwnMemory,
    /// All locations, including those outside of PHP's own memory, which reli's databases count.
    Everything,
}

/// Counts and sizes by location type and by class, the largest first. With [`TotalsScope::OwnMemory`], a location that two
/// nodes share counts once.
#[doc = crate::doc_graph::graph_example!(
    r#"use borehole_heap::{TotalsScope, totals};

let classes = totals(&graph, TotalsScope::Everything).classes;
assert_eq!((classes[0].count, classes[0].memory_usage), (1, 56));"#
)]
#[must_use]
pub fn totals(graph: &impl Graph, scope: TotalsScope) -> Totals {
    let mut types: HashMap<u16, (u64, u64)> = HashMap::new();
    let mut classes: HashMap<u32, (u64, u64)> = HashMap::new();
    let mut add = |location: &MemoryLocation| {
        let sum = |entry: &mut (u64, u64)| {
            *entry = (entry.0 + 1, entry.1.saturating_add(location.size));
        };
        sum(types.entry(location.location_type.number()).or_default());
        if let Some(class) = location.class {
            sum(classes.entry(class.0).or_default());
        }
    };
    let mut shared = HashSet::new();
    for row in 0..graph.counts().locations {
        let location = graph.location(row);
        let counts = match scope {
            TotalsScope::Everything => true,
            TotalsScope::OwnMemory => location.region.is_some() && is_new(graph, row, &location, &mut shared),
        };
        if counts {
            add(&location);
        }
    }
    let type_name = |number: u16| graph.location_type_name(LocationType::new(number)).to_vec();
    let class_name = |class: u32| graph.string(crate::sink::StringId(class)).to_vec();
    Totals { location_types: ranked(types, type_name), classes: ranked(classes, class_name) }
}

/// Whether this memory has not been counted yet. Only memory of nodes that share some is remembered.
pub(crate) fn is_new(
    graph: &impl Graph,
    row: usize,
    location: &MemoryLocation,
    shared: &mut HashSet<(u64, LocationType)>,
) -> bool {
    let is_alone = graph.canonical(graph.location_node(row)).is_none();
    is_alone || shared.insert((location.address, location.location_type))
}

/// Counts and sizes with their names, the largest size first.
pub(crate) fn ranked<K>(sums: HashMap<K, (u64, u64)>, name: impl Fn(K) -> Vec<u8>) -> Vec<MemoryTotal> {
    let total = |(key, (count, memory_usage))| MemoryTotal { name: name(key), count, memory_usage };
    let mut totals: Vec<MemoryTotal> = sums.into_iter().map(total).collect();
    sort_largest_first(&mut totals, |total| total.memory_usage, |total| &total.name);
    totals
}
