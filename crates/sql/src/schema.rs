//! The tables, indexes and views of the memory database. The statements of every dialect, the documentation and the
//! tests are generated from this description.
//!
//! Source: reli's document of its database output, of April 2026, for names, columns, keys and indexes; reli 0.12 for the
//! columns that the document leaves out: `context_edges.id` and `context_node_locations.bin_overhead`.

/// A table.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct SchemaTable {
    /// The name.
    pub name: &'static str,
    /// The meaning of a row.
    pub doc: &'static str,
    /// The columns, in order.
    pub columns: &'static [SchemaColumn],
    /// The columns of the primary key; a [`SqlType::Serial`] column is a key by itself.
    pub key: &'static [&'static str],
}

/// A column.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct SchemaColumn {
    /// The name.
    pub name: &'static str,
    /// The type of the values.
    pub kind: SqlType,
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
#[non_exhaustive]
pub enum SqlType {
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
#[non_exhaustive]
pub struct SchemaIndex {
    /// The name.
    pub name: &'static str,
    /// The table.
    pub table: &'static str,
    /// The columns, in order.
    pub columns: &'static [&'static str],
    /// The purpose.
    pub doc: &'static str,
}

const fn column(name: &'static str, kind: SqlType, doc: &'static str) -> SchemaColumn {
    SchemaColumn { name, kind, nullable: false, doc, absent: None }
}

const fn nullable(name: &'static str, kind: SqlType, doc: &'static str) -> SchemaColumn {
    SchemaColumn { name, kind, nullable: true, doc, absent: None }
}

/// A column that databases may lack.
const fn late(column: SchemaColumn, absent: &'static str) -> SchemaColumn {
    SchemaColumn { absent: Some(absent), ..column }
}

const RUN: SchemaColumn = column("run_id", SqlType::Integer, "the run");

/// The invocations whose results are in the database.
pub const RUNS: SchemaTable = SchemaTable {
    name: "runs",
    doc: "one heap at one moment",
    columns: &[
        column("run_id", SqlType::Serial, "the number of the run"),
        column("created_at", SqlType::Text, "the time of the capture in ISO 8601 and UTC; empty if unknown"),
    ],
    key: &[],
};

/// Facts about a heap as a whole.
pub const SUMMARY: SchemaTable = SchemaTable {
    name: "summary",
    doc: "a fact about the whole heap",
    columns: &[
        RUN,
        column("key", SqlType::Key, "the name of the fact, such as `memory_get_usage`"),
        nullable("value", SqlType::Text, "its value"),
    ],
    key: &["run_id", "key"],
};

/// Memory by type of location.
pub const LOCATION_TYPES_SUMMARY: SchemaTable = SchemaTable {
    name: "location_types_summary",
    doc: "the total of all locations of one type",
    columns: &[
        RUN,
        column("type", SqlType::Key, "the type of the locations"),
        column("count", SqlType::Integer, "the number of locations"),
        column("memory_usage", SqlType::Integer, "the sum of their sizes in bytes"),
    ],
    key: &["run_id", "type"],
};

/// Memory of objects by class.
pub const CLASS_OBJECTS_SUMMARY: SchemaTable = SchemaTable {
    name: "class_objects_summary",
    doc: "the total of all objects of one class",
    columns: &[
        RUN,
        column("class_name", SqlType::Key, "the fully qualified name of the class"),
        column("count", SqlType::Integer, "the number of objects"),
        column("memory_usage", SqlType::Integer, "the sum of their sizes in bytes"),
    ],
    key: &["run_id", "class_name"],
};

/// The nodes of the graph.
pub const CONTEXT_NODES: SchemaTable = SchemaTable {
    name: "context_nodes",
    doc: "a node: an object, an array, a string, or a structure that holds them",
    columns: &[
        RUN,
        column("node_id", SqlType::Integer, "the number of the node within the run"),
        column("type", SqlType::Text, "the type of the node"),
        late(
            nullable(
                "canonical_node_id",
                SqlType::Integer,
                "the smallest number among the nodes at the same address; absent if no other node shares the address",
            ),
            "NULL",
        ),
    ],
    key: &["run_id", "node_id"],
};

/// The references between nodes.
pub const CONTEXT_EDGES: SchemaTable = SchemaTable {
    name: "context_edges",
    doc: "a reference from one node to another",
    columns: &[
        late(column("id", SqlType::Serial, "the number of the row"), "NULL"),
        RUN,
        nullable("parent_node_id", SqlType::Integer, "the node that refers; absent for a root"),
        column("child_node_id", SqlType::Integer, "the node referred to"),
        column(
            "link_name",
            SqlType::Text,
            "the name of the reference: a variable, a property, a key, or a fixed word",
        ),
        column(
            "is_tree",
            SqlType::Integer,
            "1 if the walk first reached the child by this edge, otherwise 0",
        ),
        late(column("strength", SqlType::Text, "`strong`, `weak` or `structural`"), "'strong'"),
    ],
    key: &[],
};

/// The memory that nodes represent.
pub const CONTEXT_NODE_LOCATIONS: SchemaTable = SchemaTable {
    name: "context_node_locations",
    doc: "a range of memory that a node represents",
    columns: &[
        column("id", SqlType::Serial, "the number of the row"),
        RUN,
        column("node_id", SqlType::Integer, "the node"),
        nullable("address", SqlType::Integer, "the start address in the process"),
        nullable("size", SqlType::Integer, "the size of the content in bytes"),
        column("location_type", SqlType::Text, "the type of the content"),
        nullable("class_name", SqlType::Text, "the class of an object"),
        nullable("string_value", SqlType::Text, "the content of a string"),
        nullable("refcount", SqlType::Integer, "the reference count, if the value has one"),
        nullable("type_info", SqlType::Integer, "PHP's type flags, if the value has them"),
        nullable("region", SqlType::Text, "the region of PHP's memory; absent outside of it"),
        late(
            nullable("bin_overhead", SqlType::Integer, "the bytes of the allocator's block beyond `size`"),
            "0",
        ),
    ],
    key: &[],
};

/// Further facts about nodes.
pub const CONTEXT_NODE_ATTRIBUTES: SchemaTable = SchemaTable {
    name: "context_node_attributes",
    doc: "a fact about a node",
    columns: &[
        column("id", SqlType::Serial, "the number of the row"),
        RUN,
        column("node_id", SqlType::Integer, "the node"),
        column("key", SqlType::Text, "the name of the fact, such as `#count`"),
        nullable(
            "value",
            SqlType::Text,
            "the value as text: `true` is `1`, `false` is empty, and a number without a fraction is only its digits. When read back, `true` and `1.0` are therefore the number 1",
        ),
    ],
    key: &[],
};

/// The path of each node in the tree, as text; filled on request.
pub const NODE_PATHS: SchemaTable = SchemaTable {
    name: "node_paths",
    doc: "the path from the root to a node",
    columns: &[
        RUN,
        column("node_id", SqlType::Integer, "the node"),
        column("path", SqlType::Text, "the link names of the path, separated by ` -> `"),
        column("depth", SqlType::Integer, "the number of links before the last one"),
    ],
    key: &["run_id", "node_id"],
};

/// The compact form of the paths: the parent of each node and its distance from the root.
pub const NODE_PARENTS: SchemaTable = SchemaTable {
    name: "node_parents",
    doc: "the last step of the path to a node; `v_parent_paths` builds paths from these steps",
    columns: &[
        RUN,
        column("node_id", SqlType::Integer, "the node"),
        nullable("parent_node_id", SqlType::Integer, "the parent in the tree; absent for a root"),
        column("link_name", SqlType::Text, "the name of the link from the parent"),
        column("depth", SqlType::Integer, "the number of links before this one"),
    ],
    key: &["run_id", "node_id"],
};

/// The tables that a database has only on request.
pub const PATH_TABLES: [SchemaTable; 2] = [NODE_PATHS, NODE_PARENTS];

/// The tables of every database.
pub const TABLES: [SchemaTable; 8] = [
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
) -> SchemaIndex {
    SchemaIndex { name, table, columns, doc }
}

/// The indexes, which are created after the rows.
pub const INDEXES: [SchemaIndex; 9] = [
    index(
        "idx_context_edges_run_parent_tree",
        "context_edges",
        &["run_id", "parent_node_id", "is_tree"],
        "paths: the references of a node",
    ),
    index(
        "idx_context_edges_run_child",
        "context_edges",
        &["run_id", "child_node_id"],
        "the references to a node",
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
        "references by name",
    ),
    index(
        "idx_context_edges_run_strength",
        "context_edges",
        &["run_id", "strength"],
        "references by strength",
    ),
    index(
        "idx_context_nodes_canonical",
        "context_nodes",
        &["run_id", "canonical_node_id"],
        "nodes that share an address",
    ),
];

/// The indexes that replace keys beginning with texts on servers, which limit the length of a key.
pub const KEY_INDEXES: [SchemaIndex; 3] = [
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
pub const NODE_PARENTS_INDEX: SchemaIndex =
    index("idx_node_parents_run_depth", "node_parents", &["run_id", "depth"], "nodes by depth");

/// The index of [`NODE_PATHS`].
pub const NODE_PATHS_INDEX: SchemaIndex =
    index("idx_node_paths_run_depth", "node_paths", &["run_id", "depth"], "paths by depth");
