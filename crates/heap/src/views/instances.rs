//! The objects of each class.

use hashbrown::HashMap;
use std::ops::Range;

use super::Heap;
use crate::sink::NodeId;

/// All objects by class, the largest retained size first.
#[doc = crate::doc_graph::graph_example!(
    r#"use borehole_heap::{retention::Follow, views::{Heap, Instances}};

let instances = Instances::of(&Heap::new(&graph, Follow::default()));
assert_eq!(instances.class(b"App\\Cache"), [object]);"#
)]
#[derive(Debug, Default)]
pub struct Instances {
    objects: Vec<NodeId>,
    classes: HashMap<Vec<u8>, Range<usize>>,
}

impl Instances {
    /// Collects the objects of a heap.
    #[must_use]
    pub fn of(heap: &Heap<'_>) -> Self {
        let retention = heap.retention();
        let objects = retention.nodes().filter_map(|node| heap.class(node).zip(Some(node)));
        let mut rows: Vec<(u32, u64, u32)> =
            objects.map(|(class, node)| (class.0, u64::MAX - retention.retained(node), node.0)).collect();
        rows.sort_unstable();
        let mut found = Self { objects: Vec::with_capacity(rows.len()), ..Self::default() };
        for rows in rows.chunk_by(|left, right| left.0 == right.0) {
            let start = found.objects.len();
            found.objects.extend(rows.iter().map(|&(_, _, node)| NodeId(node)));
            let name = heap.graph().string(crate::sink::StringId(rows[0].0));
            found.classes.insert(name.to_vec(), start..found.objects.len());
        }
        found
    }

    /// The objects of a class.
    #[must_use]
    pub fn class(&self, name: &[u8]) -> &[NodeId] {
        self.classes.get(name).and_then(|range| self.objects.get(range.clone())).unwrap_or_default()
    }
}
