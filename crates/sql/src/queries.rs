//! The named queries, which apply to every heap.
//!
//! They return the results of the examples in reli's document of its database output. They use SQL that all three
//! databases accept, if that terminates. Queries that follow the tree are computed here, because tree edges may form
//! cycles in databases of other programs. `CROSS JOIN` makes SQLite begin with the left table: with `JOIN` it scans all
//! edges for each node.

/// A named query.
#[derive(Clone, Copy, Debug)]
pub struct NamedQuery {
    /// The name.
    pub name: &'static str,
    /// The result that it returns.
    pub doc: &'static str,
    /// The way to compute it.
    pub(crate) means: Means,
}

/// A way to compute a query.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Means {
    /// A statement. `:run` is the run, `:other` a second run, `:node` a node, and `{strength}` the strength of an edge,
    /// which a database may lack.
    Statement(&'static str),
    /// Sums the sizes of the nodes of the tree at each distance from the roots.
    Depths,
    /// Sums the sizes of the nodes of the tree below each root and its children.
    Branches,
    /// Follows the references of the tree towards the root.
    Path,
    /// Follows all references towards the roots. A statement for this could not be limited: MySQL and MariaDB find all
    /// paths before they return the first, and a graph with cycles has far too many.
    AllPaths,
}

impl NamedQuery {
    /// The query with this name.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        QUERIES.iter().find(|query| query.name == name)
    }

    /// The parameters that it needs, of `:run`, `:other` and `:node`.
    #[must_use]
    pub fn needs(&self, parameter: &str) -> bool {
        match self.means {
            Means::Statement(sql) => sql.contains(parameter),
            Means::Depths | Means::Branches => parameter == ":run",
            Means::Path | Means::AllPaths => [":run", ":node"].contains(&parameter),
        }
    }
}

/// The parameters of a [`NamedQuery`]. A second run or a node that is needed and absent is `NULL`, which equals nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parameters {
    /// The run; `None`: the last one.
    pub run: Option<i64>,
    /// A second run.
    pub other: Option<i64>,
    /// A node.
    pub node: Option<i64>,
}

impl Parameters {
    /// Parameters with only a run.
    pub(crate) const fn of_run(run: i64) -> Self {
        Self { run: Some(run), other: None, node: None }
    }

    /// The parameters with their names.
    pub(crate) const fn all(self) -> [(&'static str, Option<i64>); 3] {
        [(":run", self.run), (":other", self.other), (":node", self.node)]
    }
}

/// All named queries.
pub const QUERIES: &[NamedQuery] = &[
    NamedQuery {
        name: "types",
        doc: "memory by type",
        means: Means::Statement(
            "SELECT type, count, memory_usage, ROUND(memory_usage * 100.0 / \
                (SELECT SUM(memory_usage) FROM location_types_summary WHERE run_id = :run), 1) AS percent \
              FROM location_types_summary WHERE run_id = :run ORDER BY memory_usage DESC, type",
        ),
    },
    NamedQuery {
        name: "classes",
        doc: "memory of objects by class",
        means: Means::Statement(
            "SELECT class_name, count, memory_usage, ROUND(memory_usage * 1.0 / count, 1) AS bytes_per_object \
              FROM class_objects_summary WHERE run_id = :run ORDER BY memory_usage DESC, class_name LIMIT 20",
        ),
    },
    NamedQuery {
        name: "duplicate-strings",
        doc: "strings with equal content",
        means: Means::Statement(
            "SELECT string_value, COUNT(*) AS copies, SUM(size) AS total_bytes, size AS bytes_per_copy \
              FROM context_node_locations \
              WHERE run_id = :run AND location_type = 'ZendStringMemoryLocation' AND string_value IS NOT NULL \
              GROUP BY string_value, size HAVING COUNT(*) > 1 ORDER BY total_bytes DESC, string_value LIMIT 20",
        ),
    },
    NamedQuery {
        name: "high-refcounts",
        doc: "values with the most references",
        means: Means::Statement(
            "SELECT location_type, class_name, address, size, refcount FROM context_node_locations \
              WHERE run_id = :run AND refcount IS NOT NULL ORDER BY refcount DESC, address LIMIT 20",
        ),
    },
    NamedQuery { name: "depths", doc: "memory by distance from the roots", means: Means::Depths },
    NamedQuery {
        name: "empty-arrays",
        doc: "empty arrays that have a table",
        means: Means::Statement(
            "SELECT node_id, total_size, refcount FROM v_arrays \
              WHERE run_id = :run AND element_count = 0 AND table_size > 0 ORDER BY total_size DESC, node_id LIMIT 20",
        ),
    },
    NamedQuery {
        name: "back-references",
        doc: "references to nodes already reached: shared values and cycles",
        means: Means::Statement(
            "SELECT parent_node_id, child_node_id, link_name FROM context_edges \
              WHERE run_id = :run AND is_tree = 0 ORDER BY parent_node_id, child_node_id LIMIT 20",
        ),
    },
    NamedQuery { name: "roots", doc: "memory below each root and its children", means: Means::Branches },
    NamedQuery {
        name: "large-strings",
        doc: "the largest strings",
        means: Means::Statement(
            "SELECT size, refcount, address, SUBSTR(string_value, 1, 80) AS preview FROM context_node_locations \
              WHERE run_id = :run AND location_type = 'ZendStringMemoryLocation' \
              ORDER BY size DESC, address LIMIT 10",
        ),
    },
    NamedQuery {
        name: "wasteful-arrays",
        doc: "arrays with the most unused space in their tables",
        means: Means::Statement(
            "SELECT arrays.node_id, element_count, table_size, unused.size AS unused_bytes, \
                ROUND((table_size + unused.size) * 1.0 / element_count, 1) AS bytes_per_element \
              FROM v_arrays arrays CROSS JOIN context_edges edge CROSS JOIN context_node_locations unused \
              WHERE arrays.run_id = :run AND element_count > 0 \
                AND edge.run_id = :run AND edge.parent_node_id = arrays.node_id AND edge.is_tree = 1 \
                AND edge.link_name = 'possible_unused_area' \
                AND unused.run_id = :run AND unused.node_id = edge.child_node_id \
                AND unused.location_type = 'ZendArrayTableOverheadMemoryLocation' \
              ORDER BY unused.size DESC, arrays.node_id LIMIT 15",
        ),
    },
    NamedQuery {
        name: "regions",
        doc: "memory by region and type",
        means: Means::Statement(
            "SELECT region, location_type, COUNT(*) AS count, SUM(size) AS total_bytes \
              FROM context_node_locations WHERE run_id = :run AND region IS NOT NULL \
              GROUP BY region, location_type ORDER BY total_bytes DESC, region, location_type LIMIT 20",
        ),
    },
    NamedQuery {
        name: "references",
        doc: "the references to a node",
        means: Means::Statement(
            "SELECT parent_node_id, link_name, is_tree, {strength} FROM context_edges \
              WHERE run_id = :run AND child_node_id = :node ORDER BY COALESCE(parent_node_id, -1), link_name",
        ),
    },
    NamedQuery { name: "path", doc: "the links from a root to a node, one per row", means: Means::Path },
    NamedQuery {
        name: "all-paths",
        doc: "paths from a root to a node that pass no node twice, the shortest first. At most 100, found among at most a million partial paths in at most a hundred million steps",
        means: Means::AllPaths,
    },
    NamedQuery {
        name: "class-growth",
        doc: "the change in memory of each class between two runs",
        means: Means::Statement(
            "SELECT earlier.class_name, earlier.count AS count_before, later.count AS count_after, \
                later.count - earlier.count AS count_growth, earlier.memory_usage AS bytes_before, \
                later.memory_usage AS bytes_after, later.memory_usage - earlier.memory_usage AS bytes_growth \
              FROM class_objects_summary earlier JOIN class_objects_summary later \
                ON later.class_name = earlier.class_name \
              WHERE earlier.run_id = :run AND later.run_id = :other \
              ORDER BY bytes_growth DESC, earlier.class_name LIMIT 20",
        ),
    },
    NamedQuery {
        name: "new-classes",
        doc: "classes that exist only in the second of two runs",
        means: Means::Statement(
            "SELECT later.class_name, later.count, later.memory_usage FROM class_objects_summary later \
              LEFT JOIN class_objects_summary earlier \
                ON earlier.class_name = later.class_name AND earlier.run_id = :run \
              WHERE later.run_id = :other AND earlier.class_name IS NULL \
              ORDER BY later.memory_usage DESC, later.class_name",
        ),
    },
];
