//! The layout of an `.rmem` file.
//!
//! Source: reli 0.12, the container of its memory profiler; `docs/formats/rmem.md` describes it, and our additions.

/// The name of the format in messages.
pub(crate) const FORMAT: &str = "rmem";

/// The first bytes of every file.
pub const MAGIC: [u8; 4] = *b"RMEM";

/// The only version.
pub(crate) const VERSION: u32 = 1;

/// The flag for little-endian.
pub(crate) const LITTLE_ENDIAN: u32 = 1;

pub(crate) const HEADER_BYTES: usize = 64;
pub(crate) const NAME_BYTES: usize = 16;

pub(crate) const NODE_BYTES: usize = 16;
pub(crate) const EDGE_BYTES: usize = 16;
pub(crate) const LOCATION_BYTES: usize = 48;
pub(crate) const ATTRIBUTE_BYTES: usize = 12;
pub(crate) const FACT_BYTES: usize = 8;

/// The number that means no string or no node.
pub(crate) const NULL: u32 = u32::MAX;

// The sections that reli writes and reads.
pub(crate) const STRINGS: &str = "string_dict";
pub(crate) const NODES: &str = "nodes";
pub(crate) const EDGES: &str = "edges";
pub(crate) const LOCATIONS: &str = "locations";
pub(crate) const ATTRIBUTES: &str = "attributes";
pub(crate) const SUMMARY: &str = "summary";
pub(crate) const RUNS: &str = "runs";

// Our sections, which reli's readers skip.

/// The version of our sections, and the lists of names. With it, the rows of all sections are sorted by node.
pub(crate) const OURS: &str = "bh_names";
/// The start of every sixteenth string in its section.
pub(crate) const STRING_STARTS: &str = "bh_strings";
/// The first reference of every 64th parent; the roots' parent is 0, node N is parent N + 1.
pub(crate) const EDGE_STARTS: &str = "bh_edges";
/// The first location of every 64th node.
pub(crate) const LOCATION_STARTS: &str = "bh_locations";
/// The first attribute of every 64th node.
pub(crate) const ATTRIBUTE_STARTS: &str = "bh_attributes";
/// The type of each attribute's text.
pub(crate) const KINDS: &str = "bh_kinds";
/// The nodes whose group's smallest node is node 0, because reli uses 0 for no group.
pub(crate) const ZERO_GROUP: &str = "bh_zero_group";
/// Totals that cannot be computed from the rows.
pub(crate) const TOTALS: &str = "bh_totals";

/// The version of our sections.
pub(crate) const OURS_VERSION: u32 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    /// The page that describes the format names every section, and the sizes of its rows.
    #[test]
    fn the_sections_are_those_of_the_page() {
        let page = include_str!("../../../../docs/formats/rmem.md");
        let names =
            [STRINGS, NODES, EDGES, LOCATIONS, ATTRIBUTES, SUMMARY, RUNS, OURS, STRING_STARTS, EDGE_STARTS];
        let ours = [LOCATION_STARTS, ATTRIBUTE_STARTS, KINDS, ZERO_GROUP, TOTALS];
        for name in names.into_iter().chain(ours) {
            assert!(page.contains(&format!("`{name}`")) && name.len() <= NAME_BYTES, "{name}");
        }
        for (name, bytes) in [
            (NODES, NODE_BYTES),
            (EDGES, EDGE_BYTES),
            (LOCATIONS, LOCATION_BYTES),
            (ATTRIBUTES, ATTRIBUTE_BYTES),
        ] {
            assert!(page.contains(&format!("| `{name}` | rows of {bytes} bytes:")), "{name}");
        }
    }
}
