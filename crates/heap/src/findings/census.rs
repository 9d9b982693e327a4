//! The kind of each node and the number of copies of each string, in columns, from one pass over all locations.

use crate::graph::Graph;
use crate::largest::Largest;
use crate::names::LocationType;
use crate::retention::Retention;
use crate::sink::{MemoryLocation, NodeId, StringId};

/// The number of longest strings, and of most referenced objects, that are kept.
const KEPT: usize = 20;

/// The kinds of nodes that findings distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Thing {
    /// An object of this class.
    Object(StringId),
    /// A string with this content; the maximum if it is unknown.
    String(StringId),
    Array,
    /// Everything else: nodes without memory, and parts of the engine.
    Other,
}

/// The two highest bits are the kind of a node; the others are the number of a string: its class or content.
const NUMBER: u32 = u32::MAX >> 2;
const STRING: u32 = 1 << 30;
const ARRAY: u32 = 2 << 30;
const OTHER: u32 = 3 << 30;

/// Replaces a number that does not fit, which only graphs with four gigabytes of strings have.
const UNKNOWN: StringId = StringId(u32::MAX);

impl Thing {
    /// The class of an object.
    pub(super) fn class(self) -> Option<StringId> {
        match self {
            Self::Object(class) => Some(class),
            _ => None,
        }
    }

    fn number(self) -> u32 {
        match self {
            Self::Object(class) => class.0.min(NUMBER),
            Self::String(content) => STRING | content.0.min(NUMBER),
            Self::Array => ARRAY,
            Self::Other => OTHER,
        }
    }

    const fn of(number: u32) -> Self {
        let string = match number & NUMBER {
            NUMBER => UNKNOWN,
            string => StringId(string),
        };
        match number & OTHER {
            0 => Self::Object(string),
            STRING => Self::String(string),
            ARRAY => Self::Array,
            _ => Self::Other,
        }
    }
}

/// The copies of a string's content in PHP's own memory.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Copies {
    pub(super) count: u32,
    pub(super) bytes: u64,
}

impl Copies {
    /// The bytes of all copies but one.
    pub(super) fn saved(self) -> u64 {
        self.bytes - self.bytes.checked_div(self.count.into()).unwrap_or(self.bytes)
    }
}

/// The contents of a graph.
#[derive(Debug)]
pub(super) struct NodeCensus {
    things: Vec<u32>,
    /// Indexed by string number.
    copies: Vec<Copies>,
    pub(super) longest_strings: Largest,
    /// The objects with the most references to them.
    pub(super) most_shared: Largest,
    /// Whether there are any objects.
    pub(super) has_objects: bool,
}

impl NodeCensus {
    pub(super) fn of(graph: &dyn Graph, retention: &Retention) -> Self {
        let counts = graph.counts();
        let mut census = Self {
            things: vec![OTHER; counts.nodes],
            copies: vec![Copies::default(); counts.strings],
            longest_strings: Largest::new(KEPT),
            most_shared: Largest::new(KEPT),
            has_objects: false,
        };
        for row in 0..counts.locations {
            let (node, location) = (graph.location_node(row), graph.location(row));
            // Memory that several nodes share belongs to one of them.
            if retention.representative(node) == node {
                census.take(node, &location, retention.counts(&location));
            }
        }
        census
    }

    fn take(&mut self, node: NodeId, location: &MemoryLocation, is_own: bool) {
        let thing = match location.location_type {
            LocationType::OBJECT => location.class.map_or(Thing::Other, Thing::Object),
            LocationType::ARRAY => Thing::Array,
            LocationType::STRING => Thing::String(location.string.unwrap_or(UNKNOWN)),
            _ => return,
        };
        let Some(entry) = self.things.get_mut(node.0 as usize) else { return };
        *entry = thing.number();
        match thing {
            Thing::Object(_) => {
                self.has_objects = true;
                self.most_shared.push(location.refcount.unwrap_or_default().into(), node);
            }
            Thing::String(_) if is_own => self.take_string(node, location),
            _ => {}
        }
    }

    fn take_string(&mut self, node: NodeId, location: &MemoryLocation) {
        let bytes = location.size.saturating_add(location.bin_overhead.into());
        self.longest_strings.push(bytes, node);
        let content = location.string.and_then(|content| self.copies.get_mut(content.0 as usize));
        if let Some(copies) = content {
            copies.count = copies.count.saturating_add(1);
            copies.bytes = copies.bytes.saturating_add(bytes);
        }
    }

    #[inline]
    pub(super) fn thing(&self, node: NodeId) -> Thing {
        Thing::of(self.things.get(node.0 as usize).copied().unwrap_or(OTHER))
    }

    /// Iterates over all nodes that are not [`Thing::Other`].
    pub(super) fn all(&self) -> impl DoubleEndedIterator<Item = (NodeId, Thing)> {
        let count = u32::try_from(self.things.len()).unwrap_or(u32::MAX);
        let things = (0..count).map(|node| (NodeId(node), self.thing(NodeId(node))));
        things.filter(|&(_, thing)| thing != Thing::Other)
    }

    /// Iterates over all objects, with their classes.
    pub(super) fn objects(&self) -> impl Iterator<Item = (NodeId, StringId)> {
        self.all().filter_map(|(node, thing)| Some((node, thing.class()?)))
    }

    /// The copies of this content.
    pub(super) fn copies(&self, content: StringId) -> Copies {
        self.copies.get(content.0 as usize).copied().unwrap_or_default()
    }

    /// Every content with more than one copy.
    pub(super) fn repeated(&self) -> impl Iterator<Item = (StringId, Copies)> {
        let several = self.copies.iter().enumerate().filter(|(_, copies)| copies.count > 1);
        several.map(|(content, &copies)| (StringId(u32::try_from(content).unwrap_or(u32::MAX)), copies))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_are_kept_in_order() {
        let mut largest = Largest::new(3);
        for (node, bytes) in (0..).zip([5, 9, 1, 9, 7, 0]) {
            largest.push(bytes, NodeId(node));
        }
        assert_eq!(largest.sorted(), [(9, NodeId(1)), (9, NodeId(3)), (7, NodeId(4))]);
    }

    #[test]
    fn things_keep_their_numbers() {
        let numbers = [0, 5, NUMBER - 1].map(StringId);
        for thing in numbers.into_iter().flat_map(|number| [Thing::Object(number), Thing::String(number)]) {
            assert_eq!(Thing::of(thing.number()), thing);
        }
        for thing in [Thing::Array, Thing::Other, Thing::String(UNKNOWN)] {
            assert_eq!(Thing::of(thing.number()), thing);
        }
        assert_eq!(Thing::of(Thing::String(StringId(NUMBER + 7)).number()), Thing::String(UNKNOWN));
    }

    #[test]
    fn all_copies_but_one_are_saved() {
        assert_eq!(Copies { count: 4, bytes: 400 }.saved(), 300);
        assert_eq!(Copies { count: 1, bytes: 32 }.saved(), 0);
        assert_eq!(Copies::default().saved(), 0);
    }
}
