//! The schema in the words of each database.

use crate::schema::{Column, INDEXES, Index, Kind, TABLES, Table};

/// A kind of database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// SQLite.
    Sqlite,
    /// PostgreSQL.
    Postgresql,
    /// MySQL and MariaDB.
    Mysql,
}

/// How many characters of a text MySQL keeps in an index: with four bytes each, far below its 3072 for all columns
/// together.
const PREFIX_CHARACTERS: usize = 191;

impl Dialect {
    /// The statement that makes `table`, unless it is there.
    #[must_use]
    pub fn create_table(self, table: &Table) -> String {
        let mut parts: Vec<String> = table.columns.iter().map(|column| self.column(column)).collect();
        if !table.key.is_empty() {
            let key: Vec<String> = table.key.iter().map(|name| self.quoted(name)).collect();
            parts.push(format!("PRIMARY KEY ({})", key.join(", ")));
        }
        let options = match self {
            Self::Mysql => " DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
            Self::Sqlite | Self::Postgresql => "",
        };
        format!("CREATE TABLE IF NOT EXISTS {} (\n    {}\n){options}", table.name, parts.join(",\n    "))
    }

    fn column(self, column: &Column) -> String {
        let name = self.quoted(column.name);
        let null = if column.nullable || column.kind == Kind::Serial { "" } else { " NOT NULL" };
        let default = match column.name {
            "strength" if self != Self::Mysql => " DEFAULT 'strong'",
            "bin_overhead" => " DEFAULT 0",
            _ => "",
        };
        format!("{name} {}{null}{default}", self.kind(column.kind))
    }

    const fn kind(self, kind: Kind) -> &'static str {
        match (self, kind) {
            (Self::Sqlite, Kind::Serial) => "INTEGER PRIMARY KEY",
            (Self::Sqlite, Kind::Integer) => "INTEGER",
            (Self::Sqlite | Self::Postgresql, Kind::Key | Kind::Text) => "TEXT",
            (Self::Postgresql, Kind::Serial) => "BIGSERIAL PRIMARY KEY",
            (Self::Postgresql | Self::Mysql, Kind::Integer) => "BIGINT",
            (Self::Mysql, Kind::Serial) => "BIGINT PRIMARY KEY AUTO_INCREMENT",
            (Self::Mysql, Kind::Key) => "VARCHAR(700)",
            (Self::Mysql, Kind::Text) => "LONGTEXT",
        }
    }

    /// A column's name: some are words of a dialect.
    #[must_use]
    pub fn quoted(self, name: &str) -> String {
        match (self, name) {
            (Self::Mysql, "key" | "value" | "count" | "type") => format!("`{name}`"),
            _ => name.to_owned(),
        }
    }

    /// The statement that makes `index`.
    #[must_use]
    pub fn create_index(self, index: &Index) -> String {
        let columns: Vec<String> = index.columns.iter().map(|name| self.indexed(index.table, name)).collect();
        let condition = if self == Self::Mysql { "" } else { "IF NOT EXISTS " };
        format!("CREATE INDEX {condition}{} ON {}({})", index.name, index.table, columns.join(", "))
    }

    fn indexed(self, table: &str, name: &str) -> String {
        let table = TABLES.iter().find(|known| known.name == table);
        let column = table.and_then(|table| table.columns.iter().find(|column| column.name == name));
        let is_text = column.is_some_and(|column| column.kind == Kind::Text);
        match self {
            Self::Mysql if is_text => format!("{}({PREFIX_CHARACTERS})", self.quoted(name)),
            _ => self.quoted(name),
        }
    }

    /// The statements that make the views, unless they are there.
    #[must_use]
    pub fn create_views(self) -> [String; 2] {
        let create = match self {
            Self::Sqlite => "CREATE VIEW IF NOT EXISTS",
            Self::Postgresql | Self::Mysql => "CREATE OR REPLACE VIEW",
        };
        [
            format!("{create} v_node_paths AS\n{}", self.paths()),
            format!("{create} v_arrays AS\n{}", self.arrays()),
        ]
    }

    /// The canonical path of every node.
    fn paths(self) -> String {
        let joined = match self {
            Self::Mysql => "CONCAT(above.path, ' -> ', edge.link_name)",
            Self::Sqlite | Self::Postgresql => "above.path || ' -> ' || edge.link_name",
        };
        // The type of the first row decides; MySQL would cut the paths to the length of the first.
        let first = match self {
            Self::Mysql => "CAST(link_name AS CHAR(16000000))",
            Self::Sqlite | Self::Postgresql => "link_name",
        };
        format!(
            "WITH RECURSIVE walked(run_id, node_id, path, depth) AS (\n\
             \x20   SELECT run_id, child_node_id, {first}, 0\n\
             \x20   FROM context_edges WHERE parent_node_id IS NULL AND is_tree = 1\n\
             \x20   UNION ALL\n\
             \x20   SELECT edge.run_id, edge.child_node_id, {joined}, above.depth + 1\n\
             \x20   FROM walked above JOIN context_edges edge\n\
             \x20       ON edge.run_id = above.run_id AND edge.parent_node_id = above.node_id AND edge.is_tree = 1\n\
             )\n\
             SELECT run_id, node_id, path, depth FROM walked"
        )
    }

    /// Arrays with their tables.
    fn arrays(self) -> String {
        let integer = match self {
            Self::Mysql => "SIGNED",
            Self::Sqlite | Self::Postgresql => "BIGINT",
        };
        let (key, value) = (self.quoted("key"), self.quoted("value"));
        format!(
            "SELECT header.run_id, header.node_id, header.address, header.size AS header_size,\n\
             \x20   COALESCE(content.size, 0) AS table_size,\n\
             \x20   header.size + COALESCE(content.size, 0) AS total_size,\n\
             \x20   CAST(counted.{value} AS {integer}) AS element_count, header.refcount\n\
             FROM context_node_locations header\n\
             LEFT JOIN context_edges edge ON edge.run_id = header.run_id\n\
             \x20   AND edge.parent_node_id = header.node_id AND edge.is_tree = 1\n\
             \x20   AND edge.link_name = 'array_elements'\n\
             LEFT JOIN context_node_locations content ON content.run_id = edge.run_id\n\
             \x20   AND content.node_id = edge.child_node_id\n\
             \x20   AND content.location_type = 'ZendArrayTableMemoryLocation'\n\
             LEFT JOIN context_node_attributes counted ON counted.run_id = edge.run_id\n\
             \x20   AND counted.node_id = edge.child_node_id AND counted.{key} = '#count'\n\
             WHERE header.location_type = 'ZendArrayMemoryLocation'"
        )
    }

    /// The statements that add up the locations of a run by type and by class, the largest sums first.
    #[must_use]
    pub(crate) fn add_up(self, run: i64) -> Vec<String> {
        let add_up = |table: &str, name: &str, column: &str| {
            let (name, count) = (self.quoted(name), self.quoted("count"));
            format!(
                "INSERT INTO {table} (run_id, {name}, {count}, memory_usage) \
                 SELECT {run}, {column}, COUNT(*), SUM(size) FROM context_node_locations \
                 WHERE run_id = {run} AND {column} IS NOT NULL GROUP BY {column} ORDER BY SUM(size) DESC"
            )
        };
        vec![
            add_up("location_types_summary", "type", "location_type"),
            add_up("class_objects_summary", "class_name", "class_name"),
        ]
    }

    /// Everything but the rows, in the order in which it is made: before the rows, and behind them.
    #[must_use]
    pub fn create_all(self) -> (Vec<String>, Vec<String>) {
        let tables = TABLES.iter().map(|table| self.create_table(table)).collect();
        let indexes = INDEXES.iter().map(|index| self.create_index(index));
        (tables, indexes.chain(self.create_views()).collect())
    }
}
