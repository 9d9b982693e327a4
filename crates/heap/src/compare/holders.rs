//! Compares the holders of heaps: the nodes with large retained sizes.

use std::cmp::Reverse;
use std::hash::{BuildHasher as _, Hasher as _};

use hashbrown::{DefaultHashBuilder, HashMap};

use super::{HolderChange, delta, is_steady};
use crate::graph::{Graph, TreeParents, locations, stored_count};
use crate::names::NodeType;
use crate::path;
use crate::retention::Retention;
use crate::sink::NodeId;

/// The minimum retained size of a holder in bytes; a smaller node counts as a part of its dominator.
pub const LEAST_BYTES: u64 = 1024;

/// A node with a large retained size.
#[derive(Clone, Debug)]
pub(super) struct LargeHolder {
    node: NodeId,
    /// The path along tree references.
    path: PathHash,
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
    // The unused part of an array's table is nothing that holds a value: it counts for the array.
    let is_unused = |node| graph.node_type(node) == NodeType::ARRAY_POSSIBLE_OVERHEAD;
    let is_large = |&node: &NodeId| retention.retained(node) >= LEAST_BYTES && !is_unused(node);
    for node in retention.nodes().filter(is_large) {
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

/// The hashes of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct PathHash {
    whole: u64,
    /// Without the integer keys of arrays, so that elements of a list are alike.
    shape: u64,
}

/// Hashes of paths, each derived from the hash of the node above.
struct PathHashes<'g> {
    graph: &'g dyn Graph,
    parents: &'g TreeParents,
    known: HashMap<NodeId, PathHash, DefaultHashBuilder>,
    hasher: std::hash::BuildHasherDefault<std::hash::DefaultHasher>,
}

impl PathHashes<'_> {
    fn hash(&mut self, node: NodeId) -> PathHash {
        let mut unknown = Vec::new();
        let mut next = Some(node);
        let mut hash = PathHash::default();
        while let Some(node) = next {
            if let Some(&known) = self.known.get(&node) {
                hash = known;
                break;
            }
            // A damaged tree may have a cycle.
            self.known.insert(node, PathHash::default());
            unknown.push(node);
            next = self.parents.parent(node);
        }
        while let Some(node) = unknown.pop() {
            let link = self.parents.link(node).map_or(&[][..], |link| self.graph.string(link));
            let key = if is_list_element(self.graph, self.parents, node) { &[][..] } else { link };
            hash = PathHash {
                whole: self.step(hash.whole, node, link),
                shape: self.step(hash.shape, node, key),
            };
            self.known.insert(node, hash);
        }
        hash
    }

    fn step(&self, above: u64, node: NodeId, link: &[u8]) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write_u64(above);
        hasher.write(self.graph.node_type_name(node));
        hasher.write_u8(0);
        hasher.write(link);
        hasher.finish()
    }
}

/// Whether a node is the element of an array with an integer key.
pub(super) fn is_list_element(graph: &dyn Graph, parents: &TreeParents, node: NodeId) -> bool {
    let is_in_array = |above| graph.node_type(above) == NodeType::ARRAY_ELEMENTS;
    parents.parent(node).is_some_and(is_in_array)
        && parents.link(node).is_some_and(|link| path::is_integer(graph.string(link)))
}

/// A holder in each heap, or holders that are alike.
#[derive(Clone, Debug)]
pub(super) struct HolderRow {
    /// The holder in each heap; of several ones, that which changed most.
    holders: Vec<Option<LargeHolder>>,
    /// The number of holders.
    alike: u64,
    /// The retained sizes and the stored counts of all of them, in each heap.
    retained: Vec<Option<u64>>,
    counts: Vec<Option<u64>>,
    growth: i64,
    largest: i64,
}

impl HolderRow {
    fn of(holders: Vec<Option<LargeHolder>>) -> Self {
        Self { holders, alike: 1, retained: Vec::new(), counts: Vec::new(), growth: 0, largest: 0 }
    }

    /// The row with its numbers.
    fn with(&self, growth: i64) -> Self {
        let each = |of: &dyn Fn(&LargeHolder) -> Option<u64>| -> Vec<Option<u64>> {
            self.holders.iter().map(|holder| of(holder.as_ref()?)).collect()
        };
        Self {
            holders: self.holders.clone(),
            alike: 1,
            retained: each(&|holder| Some(holder.retained)),
            counts: each(&|holder| holder.count),
            growth,
            largest: growth,
        }
    }

    fn first(&self) -> Option<&LargeHolder> {
        self.holders.first()?.as_ref()
    }

    fn last(&self) -> Option<&LargeHolder> {
        self.holders.last()?.as_ref()
    }

    fn delta(&self) -> i64 {
        delta(self.first().map(|holder| holder.retained), self.last().map(|holder| holder.retained))
    }

    fn is_steady(&self) -> bool {
        let retained: Option<Vec<u64>> = self.retained.iter().copied().collect();
        retained.is_some_and(|retained| is_steady(&retained))
    }

    /// The shape of its path in the last heap that has it.
    fn shape(&self) -> u64 {
        self.holders.iter().rev().flatten().next().map_or(0, |holder| holder.path.shape)
    }

    /// Adds the numbers of a holder that is alike.
    fn add(&mut self, other: &Self) {
        let sum = |of: &mut Vec<Option<u64>>, more: &[Option<u64>]| {
            for (sum, &more) in of.iter_mut().zip(more) {
                *sum = sum.map_or(more, |sum| Some(sum.saturating_add(more.unwrap_or(0))));
            }
        };
        sum(&mut self.retained, &other.retained);
        sum(&mut self.counts, &other.counts);
        self.alike += other.alike;
        self.growth = self.growth.saturating_add(other.growth);
        if other.largest.saturating_abs() > self.largest.saturating_abs() {
            (self.largest, self.holders) = (other.largest, other.holders.clone());
        }
    }

    /// The change, without its path.
    pub(super) fn change(&self) -> HolderChange {
        HolderChange {
            path: Vec::new(),
            node_type: Vec::new(),
            alike: self.alike,
            nodes: self.holders.iter().map(|holder| holder.as_ref().map(|holder| holder.node)).collect(),
            retained: self.retained.clone(),
            counts: self.counts.clone(),
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
        match (row.first(), row.last()) {
            (Some(_), Some(_)) if growth[position] != 0 => changes.changed.push(row.with(growth[position])),
            (None, Some(_)) if above(last, row.last()).is_none_or(|above| rows[above].first().is_some()) => {
                changes.added.push(row.with(row.delta()));
            }
            (Some(_), None) if above(first, row.first()).is_none_or(|above| rows[above].last().is_some()) => {
                changes.removed.push(row.with(row.delta()));
            }
            _ => {}
        }
    }
    for list in [&mut changes.changed, &mut changes.added, &mut changes.removed] {
        *list = joined(std::mem::take(list));
        list.sort_by_key(|row| {
            (Reverse(heaps.len() > 2 && row.is_steady()), Reverse(row.growth.saturating_abs()))
        });
    }
    changes
}

/// Joins holders that are alike and changed in one direction: the elements of a list.
fn joined(rows: Vec<HolderRow>) -> Vec<HolderRow> {
    let mut joined: Vec<HolderRow> = Vec::new();
    let mut places: HashMap<(u64, bool), usize> = HashMap::new();
    for row in rows {
        let place = *places.entry((row.shape(), row.growth < 0)).or_insert(joined.len());
        match joined.get_mut(place) {
            Some(known) => known.add(&row),
            None => joined.push(row),
        }
    }
    joined
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
            if let Some(&row) = by_path.get(&holder.path.whole).filter(|&&row| is_free(&rows, row)) {
                rows[row].holders[position] = Some(holder.clone());
                *found = row;
            }
        }
        for (found, holder) in of_heap.iter_mut().zip(*holders).filter(|(found, _)| **found == usize::MAX) {
            let known = by_place.get(&holder.place).filter(|&&row| same_process && is_free(&rows, row));
            let row = known.copied().unwrap_or_else(|| {
                rows.push(HolderRow::of(vec![None; heaps.len()]));
                rows.len() - 1
            });
            rows[row].holders[position] = Some(holder.clone());
            *found = row;
        }
        for (&row, holder) in of_heap.iter().zip(*holders) {
            by_path.insert(holder.path.whole, row);
            if holder.place.1 != 0 {
                by_place.insert(holder.place, row);
            }
        }
        places.push(of_heap);
    }
    (rows, places)
}
