//! Sizes that contradict each other: more memory in a graph than its heap has.

use hashbrown::HashSet;

use crate::graph::Graph;
use crate::totals::is_new;

/// The key of the summary for the contradiction that a walk has found in its own sizes.
pub const CONTRADICTION: &str = "heap_memory_contradiction";

/// The keys of the summary for the size of the heap.
const HEAP_SIZES: [&[u8]; 2] = [b"zend_mm_heap_total", b"memory_get_real_usage"];

/// The reason why no size in `graph` can be trusted; `None` if the sizes fit.
///
/// A node's memory, and what it retains, are sums of locations. So they fit if all locations in the heap, each counted once, fit.
/// Without the size of the heap in the summary, only what the walk has found is known.
#[doc = crate::doc_graph::graph_example!(
    r#"assert_eq!(borehole_heap::contradiction(&graph), None);"#
)]
#[must_use]
pub fn contradiction(graph: &impl Graph) -> Option<String> {
    let text = |string| String::from_utf8_lossy(graph.string(string)).into_owned();
    let summary = graph.summary();
    let said = summary.iter().find(|(key, _)| graph.string(*key) == CONTRADICTION.as_bytes());
    if let Some(&(_, said)) = said {
        return Some(text(said));
    }
    let sizes = summary.iter().filter(|(key, _)| HEAP_SIZES.contains(&graph.string(*key)));
    let size = sizes
        .filter_map(|&(_, size)| text(size).trim().parse::<u64>().ok())
        .max()
        .filter(|&size| size > 0)?;
    let mut shared = HashSet::new();
    let mut found = 0_u64;
    for row in 0..graph.counts().locations {
        let location = graph.location(row);
        if location.region.is_some() && is_new(graph, row, &location, &mut shared) {
            found = found.saturating_add(location.size).saturating_add(location.bin_overhead.into());
        }
    }
    (found > size)
        .then(|| format!("inconsistent sizes: expected at most {size} bytes in the heap, found {found}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::GraphBuilder;
    use crate::names::{LocationType, NodeType, Region};
    use crate::sink::{HeapSink as _, MemoryLocation};

    /// The contradiction in a graph with two locations of 3,000 bytes, and these facts.
    fn found(facts: &[(&str, &str)]) -> Option<String> {
        let mut builder = GraphBuilder::new();
        for address in [0x1000, 0x2000] {
            let node = builder.node(NodeType::STRING);
            let location = MemoryLocation {
                location_type: LocationType::STRING,
                address,
                size: 3000,
                bin_overhead: 0,
                class: None,
                string: None,
                refcount: None,
                type_info: None,
                region: Some(Region::HEAP),
            };
            builder.location(node, &location);
        }
        facts.iter().for_each(|(key, value)| builder.summary(key, value));
        contradiction(&builder.finish().unwrap())
    }

    #[test]
    fn memory_larger_than_its_heap_is_a_contradiction() {
        assert_eq!(found(&[]), None, "the size of the heap is unknown");
        assert_eq!(found(&[("zend_mm_heap_total", "6000")]), None);
        assert_eq!(found(&[("zend_mm_heap_total", "4096"), ("memory_get_real_usage", "8192")]), None);
        let text = "inconsistent sizes: expected at most 4096 bytes in the heap, found 6000";
        assert_eq!(found(&[("zend_mm_heap_total", "4096")]).as_deref(), Some(text));
        assert_eq!(found(&[("zend_mm_heap_total", "6000"), (CONTRADICTION, "why")]).as_deref(), Some("why"));
    }
}
