//! Compares the holders of heaps: the nodes with large retained sizes.

use std::cmp::Reverse;
use std::hash::{BuildHasher as _, Hasher as _};

use hashbrown::{DefaultHashBuilder, HashMap};

use super::{HolderChange, delta, is_steady};
use crate::graph::{Graph, TreeParents, locations, stored_count};
use crate::names::NodeType;
use crate::retention::Retention;
use crate::sink::NodeId;

/// The minimum retained size of a holder in bytes; a smaller node counts as a part of its dominator.
pub const LEAST_BYTES: u64 = 1024;

/// A node with a large retained size.
#[derive(Clone, Debug)]
pub(super) struct LargeHolder {
    node: NodeId,
    /// A hash of the path along tree references.
    path: u64,
    /// The type of the node and its first address; 0 for none.
    place: (NodeType, u64),
    retained: u64,
    count: Option<u64>,
    /// The index of the holder that dominates it.
    above: Option<u32>,
}

/// The holders of a heap, dominators first.
pub(super) fn holders(graph: &dyn Graph, retention: &Retention) -> Vec<LargeHolder> {
    let parents = TreeParents::of(&graph);
    let mut paths = PathHashes { graph, parents: &parents, known: HashMap::new(), hasher: fixed_hasher() };
    let mut positions: HashMap<NodeId, u32> = HashMap::new();
    let mut holders = Vec::new();
    for node in retention.nodes().filter(|&node| retention.retained(node) >= LEAST_BYTES) {
        let above = retention.dominator(node).and_then(|above| positions.get(&above).copied());
        positions.insert(node, u32::try_from(holders.len()).unwrap_or(u32::MAX));
        holders.push(LargeHolder {
            node,
            path: paths.hash(node),
            place: (graph.node_type(node), address(graph, node)),
            retained: retention.retained(node),
            count: stored_count(graph, node),
            above,
        });
    }
    holders
}

fn address(graph: &dyn Graph, node: NodeId) -> u64 {
    locations(graph, node).next().map_or(0, |location| location.address)
}

/// A hasher with the same result for every heap.
fn fixed_hasher() -> std::hash::BuildHasherDefault<std::hash::DefaultHasher> {
    std::hash::BuildHasherDefault::default()
}

/// Hashes of paths, each derived from the hash of the node above.
struct PathHashes<'g> {
    graph: &'g dyn Graph,
    parents: &'g TreeParents,
    known: HashMap<NodeId, u64, DefaultHashBuilder>,
    hasher: std::hash::BuildHasherDefault<std::hash::DefaultHasher>,
}

impl PathHashes<'_> {
    fn hash(&mut self, node: NodeId) -> u64 {
        let mut unknown = Vec::new();
        let mut next = Some(node);
        let mut hash = 0;
        while let Some(node) = next {
            if let Some(&known) = self.known.get(&node) {
                hash = known;
                break;
            }
            // A damaged tree may have a cycle.
            self.known.insert(node, 0);
            unknown.push(node);
            next = self.parents.parent(node);
        }
        while let Some(node) = unknown.pop() {
            let mut hasher = self.hasher.build_hasher();
            hasher.write_u64(hash);
            hasher.write(self.graph.node_type_name(node));
            hasher.write_u8(0);
            hasher.write(self.parents.link(node).map_or(&[][..], |link| self.graph.string(link)));
            hash = hasher.finish();
            self.known.insert(node, hash);
        }
        hash
    }
}

/// A holder in each heap.
#[derive(Clone, Debug)]
pub(super) struct HolderRow {
    holders: Vec<Option<LargeHolder>>,
    growth: i64,
}

impl HolderRow {
    fn first(&self) -> Option<&LargeHolder> {
        self.holders.first()?.as_ref()
    }

    fn last(&self) -> Option<&LargeHolder> {
        self.holders.last()?.as_ref()
    }

    fn retained(&self) -> Vec<Option<u64>> {
        self.holders.iter().map(|holder| holder.as_ref().map(|holder| holder.retained)).collect()
    }

    fn delta(&self) -> i64 {
        delta(self.first().map(|holder| holder.retained), self.last().map(|holder| holder.retained))
    }

    fn is_steady(&self) -> bool {
        let retained: Option<Vec<u64>> = self.retained().into_iter().collect();
        retained.is_some_and(|retained| is_steady(&retained))
    }

    /// The change, without its path.
    pub(super) fn change(&self) -> HolderChange {
        let each = |of: &dyn Fn(&LargeHolder) -> Option<u64>| {
            self.holders.iter().map(|holder| of(holder.as_ref()?)).collect()
        };
        HolderChange {
            path: Vec::new(),
            node_type: Vec::new(),
            nodes: self.holders.iter().map(|holder| holder.as_ref().map(|holder| holder.node)).collect(),
            retained: self.retained(),
            counts: each(&|holder| holder.count),
            growth: self.growth,
            is_steady: self.is_steady(),
            is_static: false,
        }
    }
}

/// The changes of holders.
#[derive(Default)]
pub(super) struct HolderChanges {
    pub(super) changed: Vec<HolderRow>,
    pub(super) added: Vec<HolderRow>,
    pub(super) removed: Vec<HolderRow>,
}

/// Compares the holders of heaps.
pub(super) fn compare(heaps: &[&[LargeHolder]], same_process: bool) -> HolderChanges {
    let (rows, places) = matched(heaps, same_process);
    let (Some(first), Some(last)) = (places.first(), places.last()) else { return HolderChanges::default() };
    let above = |places: &[usize], holder: Option<&LargeHolder>| {
        holder.and_then(|holder| holder.above).map(|above| places[above as usize])
    };
    let mut growth: Vec<i64> = rows.iter().map(HolderRow::delta).collect();
    for row in &rows {
        // If both existed before, the growth of a part belongs to the part.
        let is_old = row.first().is_some() && row.last().is_some();
        let holder = above(last, row.last()).filter(|&above| is_old && rows[above].first().is_some());
        if let Some(above) = holder {
            growth[above] = growth[above].saturating_sub(row.delta());
        }
    }
    let mut changes = HolderChanges::default();
    for (position, row) in rows.iter().enumerate() {
        let row_with = |growth| HolderRow { growth, ..row.clone() };
        match (row.first(), row.last()) {
            (Some(_), Some(_)) if growth[position] != 0 => changes.changed.push(row_with(growth[position])),
            (None, Some(_)) if above(last, row.last()).is_none_or(|above| rows[above].first().is_some()) => {
                changes.added.push(row_with(row.delta()));
            }
            (Some(_), None) if above(first, row.first()).is_none_or(|above| rows[above].last().is_some()) => {
                changes.removed.push(row_with(row.delta()));
            }
            _ => {}
        }
    }
    for list in [&mut changes.changed, &mut changes.added, &mut changes.removed] {
        list.sort_by_key(|row| {
            (Reverse(heaps.len() > 2 && row.is_steady()), Reverse(row.growth.saturating_abs()))
        });
    }
    changes
}

/// A row for each holder with its node in each heap, and for each heap the row of each of its holders.
fn matched(heaps: &[&[LargeHolder]], same_process: bool) -> (Vec<HolderRow>, Vec<Vec<usize>>) {
    let mut rows: Vec<HolderRow> = Vec::new();
    let mut by_path: HashMap<u64, usize> = HashMap::new();
    let mut by_place: HashMap<(NodeType, u64), usize> = HashMap::new();
    let mut places = Vec::new();
    for (position, holders) in heaps.iter().enumerate() {
        let mut of_heap = vec![usize::MAX; holders.len()];
        let is_free = |rows: &[HolderRow], row: usize| rows[row].holders[position].is_none();
        // All paths first, because an address may have been reused.
        for (found, holder) in of_heap.iter_mut().zip(*holders) {
            if let Some(&row) = by_path.get(&holder.path).filter(|&&row| is_free(&rows, row)) {
                rows[row].holders[position] = Some(holder.clone());
                *found = row;
            }
        }
        for (found, holder) in of_heap.iter_mut().zip(*holders).filter(|(found, _)| **found == usize::MAX) {
            let known = by_place.get(&holder.place).filter(|&&row| same_process && is_free(&rows, row));
            let row = known.copied().unwrap_or_else(|| {
                rows.push(HolderRow { holders: vec![None; heaps.len()], growth: 0 });
                rows.len() - 1
            });
            rows[row].holders[position] = Some(holder.clone());
            *found = row;
        }
        for (&row, holder) in of_heap.iter().zip(*holders) {
            by_path.insert(holder.path, row);
            if holder.place.1 != 0 {
                by_place.insert(holder.place, row);
            }
        }
        places.push(of_heap);
    }
    (rows, places)
}
