//! Objects by class.

use hashbrown::HashMap;
use serde::Serialize;

use super::Heap;
use crate::largest::sort_largest_first;
use crate::serialized;
use crate::sink::{NodeId, StringId};

/// The objects of a class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ClassView {
    /// The name of the class.
    #[serde(rename = "class", serialize_with = "serialized::text")]
    pub name: Vec<u8>,
    /// The number of objects.
    #[serde(rename = "objects")]
    pub count: u64,
    /// The bytes of their own blocks.
    pub shallow_bytes: u64,
    /// The bytes retained by the objects that no other object of the class dominates: at least this much would be freed
    /// without all of them.
    pub retained_bytes: u64,
    /// The object with the largest retained size.
    #[serde(rename = "largest_node_id")]
    pub largest: NodeId,
}

/// All classes that have objects, the largest retained size first.
#[doc = crate::doc_graph::graph_example!(
    r#"use borehole_heap::retention::Follow;
use borehole_heap::views::{Heap, classes};

let found = classes(&Heap::new(&graph, Follow::default()));
assert_eq!((found[0].largest, found[0].retained_bytes), (object, 4152));"#
)]
#[must_use]
pub fn classes(heap: &Heap<'_>) -> Vec<ClassView> {
    let (graph, retention) = (heap.graph(), heap.retention());
    let mut found: HashMap<StringId, ClassView> = HashMap::new();
    for node in retention.nodes() {
        let Some(class) = heap.class(node) else { continue };
        let retained = retention.retained(node);
        let entry = found.entry(class).or_insert_with(|| ClassView {
            name: graph.string(class).to_vec(),
            count: 0,
            shallow_bytes: 0,
            retained_bytes: 0,
            largest: node,
        });
        entry.count += 1;
        entry.shallow_bytes = entry.shallow_bytes.saturating_add(retention.shallow(&graph, node));
        if retained > retention.retained(entry.largest) {
            entry.largest = node;
        }
    }
    add_retained(heap, &mut found);
    let mut classes: Vec<ClassView> = found.into_values().collect();
    sort_largest_first(&mut classes, |class| class.retained_bytes, |class| &class.name);
    classes
}

/// Sums the retained sizes of the outermost objects of each class: those that no object of the class dominates.
fn add_retained(heap: &Heap<'_>, classes: &mut HashMap<StringId, ClassView>) {
    let (retention, dominated) = (heap.retention(), heap.dominated());
    // The number of objects of each class on the path from the top.
    let mut above: HashMap<StringId, u32> = HashMap::new();
    let below = |node| dominated.dominated(retention, node);
    let mut path = vec![(None, below(None))];
    while let Some((class_here, rest)) = path.last_mut() {
        let Some(node) = rest.next() else {
            if let Some(count) = class_here.and_then(|class| above.get_mut(&class)) {
                *count -= 1;
            }
            path.pop();
            continue;
        };
        let class = heap.class(node);
        if let Some(class) = class {
            let count = above.entry(class).or_default();
            if let Some(view) = classes.get_mut(&class).filter(|_| *count == 0) {
                view.retained_bytes = view.retained_bytes.saturating_add(retention.retained(node));
            }
            *count += 1;
        }
        path.push((class, below(Some(node))));
    }
}
