//! The tables, indexes and views of the memory database. The statements of every dialect, the documentation and the
//! tests are generated from this description.
//!
//! Source: reli's document of its database output, of April 2026, for names, columns, keys and indexes; reli 0.12 for the
//! columns that the document leaves out: `context_edges.id` and `context_node_locations.bin_overhead`.

/// A table.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// The name.
    pub name: &'static str,
    /// The meaning of a row.
    pub doc: &'static str,
    /// The columns, in order.
    pub columns: &'static [Column],
    /// The columns of the primary key; a [`Kind::Serial`] column is a key by itself.
    pub key: &'static [&'static str],
}

/// A column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// The name.
    pub name: &'static str,
    /// The type of the values.
    pub kind: Kind,
    /// Whether a value may be absent.
    pub nullable: bool,
    /// The meaning of a value.
    pub doc: &'static str,
    /// The SQL that replaces the column in a database without it, because reli's document or older versions of reli
    /// leave it out.
    pub absent: Option<&'static str>,
}

/// The type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number that the database assigns.
    Serial,
    /// A signed 64-bit number.
    Integer,
    /// Text that is part of a key.
    Key,
    /// Text of any length.
    Text,
}

/// An index.
#[derive(Clone, Copy, Debug)]
pub struct Index {
    /// The name.
    pub name: &'static str,
    /// The table.
    pub table: &'static str,
    /// The columns, in order.
    pub columns: &'static [&'static str],
    /// The purpose.
    pub doc: &'static str,
}

const fn column(name: &'static str, kind: Kind, doc: &'static str) -> Column {
    Column { name, kind, nullable: false, doc, absent: None }
}

const fn nullable(name: &'static str, kind: Kind, doc: &'static str) -> Column {
    Column { name, kind, nullable: true, doc, absent: None }
}

/// A column that databases may lack.
const fn late(column: Column, absent: &'static str) -> Column {
    Column { absent: Some(absent), ..column }
}

const RUN: Column = column("run_id", Kind::Integer, "the run");

/// The invocations whose results are in the database.
pub const RUNS: Table = Table {
    name: "runs",
    doc: "a heap, as of one moment",
    columns: &[
        column("run_id", Kind::Serial, "the run's number"),
        column(
            "created_at",
            Kind::Text,
            "when the heap was captured: ISO 8601, UTC; empty where that is not known",
        ),
    ],
    key: &[],
};

/// Facts about a heap as a whole.
pub const SUMMARY: Table = Table {
    name: "summary",
    doc: "a fact about the heap as a whole",
    columns: &[
        RUN,
        column("key", Kind::Key, "its name, such as `memory_get_usage`"),
        nullable("value", Kind::Text, "its value"),
    ],
    key: &["run_id", "key"],
};

/// Memory by type of location.
pub const LOCATION_TYPES_SUMMARY: Table = Table {
    name: "location_types_summary",
    doc: "all locations of one type together",
    columns: &[
        RUN,
        column("type", Kind::Key, "the type of the locations"),
        column("count", Kind::Integer, "how many there are"),
        column("memory_usage", Kind::Integer, "their sizes together, in bytes"),
    ],
    key: &["run_id", "type"],
};

/// Memory of objects by class.
pub const CLASS_OBJECTS_SUMMARY: Table = Table {
    name: "class_objects_summary",
    doc: "all objects of one class together",
    columns: &[
        RUN,
        column("class_name", Kind::Key, "the class, fully qualified"),
        column("count", Kind::Integer, "how many objects there are"),
        column("memory_usage", Kind::Integer, "their sizes together, in bytes"),
    ],
    key: &["run_id", "class_name"],
};

/// The nodes of the graph.
pub const CONTEXT_NODES: Table = Table {
    name: "context_nodes",
    doc: "a node: an object, an array, a string, or what holds them",
    columns: &[
        RUN,
        column("node_id", Kind::Integer, "its number in the run"),
        column("type", Kind::Text, "what it stands for"),
        late(
            nullable(
                "canonical_node_id",
                Kind::Integer,
                "of nodes that share an address, the smallest number; absent where the address is the node's alone",
            ),
            "NULL",
        ),
    ],
    key: &["run_id", "node_id"],
};

/// The references between nodes.
pub const CONTEXT_EDGES: Table = Table {
    name: "context_edges",
    doc: "a reference from a node to another",
    columns: &[
        late(column("id", Kind::Serial, "the row's number"), "NULL"),
        RUN,
        nullable("parent_node_id", Kind::Integer, "who refers; absent for a root"),
        column("child_node_id", Kind::Integer, "to whom"),
        column("link_name", Kind::Text, "by what name: a variable, a property, a key, or a fixed word"),
        column("is_tree", Kind::Integer, "1 if the walk came to the child by this edge first, otherwise 0"),
        late(column("strength", Kind::Text, "`strong`, `weak` or `structural`"), "'strong'"),
    ],
    key: &[],
};

/// The memory that nodes represent.
pub const CONTEXT_NODE_LOCATIONS: Table = Table {
    name: "context_node_locations",
    doc: "memory that a node stands for",
    columns: &[
        column("id", Kind::Serial, "the row's number"),
        RUN,
        column("node_id", Kind::Integer, "the node"),
        nullable("address", Kind::Integer, "where it begins in the process"),
        nullable("size", Kind::Integer, "bytes that its content needs"),
        column("location_type", Kind::Text, "what it holds"),
        nullable("class_name", Kind::Text, "the class, of objects"),
        nullable("string_value", Kind::Text, "the content, of strings"),
        nullable("refcount", Kind::Integer, "the reference count, of what has one"),
        nullable("type_info", Kind::Integer, "PHP's flags, of what has them"),
        nullable("region", Kind::Text, "the part of PHP's memory; absent elsewhere"),
        late(
            nullable("bin_overhead", Kind::Integer, "bytes that the allocator's block has beyond `size`"),
            "0",
        ),
    ],
    key: &[],
};

/// Further facts about nodes.
pub const CONTEXT_NODE_ATTRIBUTES: Table = Table {
    name: "context_node_attributes",
    doc: "a fact about a node",
    columns: &[
        column("id", Kind::Serial, "the row's number"),
        RUN,
        column("node_id", Kind::Integer, "the node"),
        column("key", Kind::Text, "its name, such as `#count`"),
        nullable(
            "value",
            Kind::Text,
            "its value as text: `1` of `true`, nothing of `false`, and of a number without a fraction its digits, so that from a database `true` and `1.0` come back as the number 1",
        ),
    ],
    key: &[],
};

/// The path of each node in the tree, as text; filled on request.
pub const NODE_PATHS: Table = Table {
    name: "node_paths",
    doc: "the path from the root to a node",
    columns: &[
        RUN,
        column("node_id", Kind::Integer, "the node"),
        column("path", Kind::Text, "the names of the tree's links, with ` -> ` between them"),
        column("depth", Kind::Integer, "how many links there are before the last one"),
    ],
    key: &["run_id", "node_id"],
};

/// The compact form of the paths: the parent of each node and its distance from the root.
pub const NODE_PARENTS: Table = Table {
    name: "node_parents",
    doc: "the step that leads to a node, of which `v_parent_paths` makes paths",
    columns: &[
        RUN,
        column("node_id", Kind::Integer, "the node"),
        nullable("parent_node_id", Kind::Integer, "the node above it; absent for a root"),
        column("link_name", Kind::Text, "the name of the tree's link"),
        column("depth", Kind::Integer, "how many links there are before this one"),
    ],
    key: &["run_id", "node_id"],
};

/// The tables that a database has only on request.
pub const PATH_TABLES: [Table; 2] = [NODE_PATHS, NODE_PARENTS];

/// The tables of every database.
pub const TABLES: [Table; 8] = [
    RUNS,
    SUMMARY,
    LOCATION_TYPES_SUMMARY,
    CLASS_OBJECTS_SUMMARY,
    CONTEXT_NODES,
    CONTEXT_EDGES,
    CONTEXT_NODE_LOCATIONS,
    CONTEXT_NODE_ATTRIBUTES,
];

const fn index(
    name: &'static str,
    table: &'static str,
    columns: &'static [&'static str],
    doc: &'static str,
) -> Index {
    Index { name, table, columns, doc }
}

/// The indexes, which are created after the rows.
pub const INDEXES: [Index; 9] = [
    index(
        "idx_context_edges_run_parent_tree",
        "context_edges",
        &["run_id", "parent_node_id", "is_tree"],
        "paths: what a node refers to",
    ),
    index(
        "idx_context_edges_run_child",
        "context_edges",
        &["run_id", "child_node_id"],
        "who refers to a node",
    ),
    index(
        "idx_context_node_locations_run_node",
        "context_node_locations",
        &["run_id", "node_id"],
        "the memory of a node",
    ),
    index(
        "idx_context_node_locations_run_class",
        "context_node_locations",
        &["run_id", "class_name"],
        "the objects of a class",
    ),
    index(
        "idx_context_node_attributes_run_node",
        "context_node_attributes",
        &["run_id", "node_id"],
        "the facts about a node",
    ),
    index(
        "idx_context_node_locations_run_type",
        "context_node_locations",
        &["run_id", "location_type"],
        "the locations of a type",
    ),
    index(
        "idx_context_edges_run_link_parent_tree",
        "context_edges",
        &["run_id", "link_name", "parent_node_id", "is_tree"],
        "references by their name",
    ),
    index(
        "idx_context_edges_run_strength",
        "context_edges",
        &["run_id", "strength"],
        "references by their strength",
    ),
    index(
        "idx_context_nodes_canonical",
        "context_nodes",
        &["run_id", "canonical_node_id"],
        "the nodes that are one value",
    ),
];

/// The indexes that replace keys beginning with texts on servers, which limit the length of a key.
pub const KEY_INDEXES: [Index; 3] = [
    index("idx_summary_run_key", "summary", &["run_id", "key"], "a fact by its name"),
    index("idx_location_types_summary_run_type", "location_types_summary", &["run_id", "type"], "a type"),
    index(
        "idx_class_objects_summary_run_class",
        "class_objects_summary",
        &["run_id", "class_name"],
        "a class",
    ),
];

/// The index of [`NODE_PARENTS`].
pub const NODE_PARENTS_INDEX: Index =
    index("idx_node_parents_run_depth", "node_parents", &["run_id", "depth"], "nodes by their depth");

/// The index of [`NODE_PATHS`].
pub const NODE_PATHS_INDEX: Index =
    index("idx_node_paths_run_depth", "node_paths", &["run_id", "depth"], "paths by their length");
