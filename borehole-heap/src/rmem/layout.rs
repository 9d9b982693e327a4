//! Where things stand in an `.rmem` file.
//!
//! Source: reli 0.12, the container of its memory profiler; `docs/formats/rmem.md` describes it, and our additions.

/// The name of the format in messages.
pub(crate) const FORMAT: &str = "rmem";

/// How every file begins.
pub const MAGIC: [u8; 4] = *b"RMEM";

/// The only version there is.
pub(crate) const VERSION: u32 = 1;

/// The bit of the flags that says little-endian.
pub(crate) const LITTLE_ENDIAN: u32 = 1;

pub(crate) const HEADER_BYTES: usize = 64;
pub(crate) const NAME_BYTES: usize = 16;

pub(crate) const NODE_BYTES: usize = 16;
pub(crate) const EDGE_BYTES: usize = 16;
pub(crate) const LOCATION_BYTES: usize = 48;
pub(crate) const ATTRIBUTE_BYTES: usize = 12;
pub(crate) const FACT_BYTES: usize = 8;

/// The number that is no string and no node.
pub(crate) const NULL: u32 = u32::MAX;

// The sections that reli writes and reads.
pub(crate) const STRINGS: &str = "string_dict";
pub(crate) const NODES: &str = "nodes";
pub(crate) const EDGES: &str = "edges";
pub(crate) const LOCATIONS: &str = "locations";
pub(crate) const ATTRIBUTES: &str = "attributes";
pub(crate) const SUMMARY: &str = "summary";
pub(crate) const RUNS: &str = "runs";

// Sections of ours, which reli's readers skip.

/// The version of our sections, and the lists of names. With it, the rows of all sections are sorted by node.
pub(crate) const OURS: &str = "bh_names";
/// Where every sixteenth string begins in its section.
pub(crate) const STRING_STARTS: &str = "bh_strings";
/// The first reference of every 64th parent; the roots' parent is 0, node N is parent N + 1.
pub(crate) const EDGE_STARTS: &str = "bh_edges";
/// The first location of every 64th node.
pub(crate) const LOCATION_STARTS: &str = "bh_locations";
/// The first attribute of every 64th node.
pub(crate) const ATTRIBUTE_STARTS: &str = "bh_attributes";
/// What each attribute's text is.
pub(crate) const KINDS: &str = "bh_kinds";
/// The nodes whose smallest companion is node 0, which reli's number for none hides.
pub(crate) const ZERO_GROUP: &str = "bh_zero_group";
/// Totals that the rows do not show.
pub(crate) const TOTALS: &str = "bh_totals";

/// The version of our sections.
pub(crate) const OURS_VERSION: u32 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    /// The page that describes the format names every section, and the sizes of its rows.
    #[test]
    fn the_sections_are_those_of_the_page() {
        let page = include_str!("../../../docs/formats/rmem.md");
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
