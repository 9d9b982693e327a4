//! The schema in the SQL of each database.

use crate::schema::{INDEXES, KEY_INDEXES, SchemaColumn, SchemaIndex, SchemaTable, SqlType, TABLES};

/// A kind of database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SqlDialect {
    /// SQLite.
    Sqlite,
    /// PostgreSQL.
    Postgresql,
    /// MySQL.
    Mysql,
    /// MariaDB.
    Mariadb,
}

/// The number of characters of a text that servers store in an index. With four bytes each, they are far below the
/// limits: 3072 bytes for all columns together in MySQL, and 2704 in PostgreSQL.
const PREFIX_CHARACTERS: usize = 191;

/// Names that are keywords of MySQL.
const WORDS_OF_MYSQL: &[&str] = &["key", "value", "count", "type"];

/// The number of links of a path that is handed down from node to node in `v_node_paths`. With more of them, the paths of a
/// long list would take the square of its length.
const SHARED_LINKS: u32 = 1000;

/// The part of a text that an index covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IndexedText {
    /// All of it, or as much as the dialect can.
    Whole,
    /// The beginning, where a text is too long for an index.
    Beginning,
}

/// A function that follows the tree from a node to its root, for MariaDB. It joins short parts, because each addition to a
/// long path copies it.
const NODE_PATH: &str = "\
CREATE FUNCTION node_path(run BIGINT, node BIGINT) RETURNS LONGTEXT CHARACTER SET utf8mb4
READS SQL DATA
BEGIN
    DECLARE path, part, link LONGTEXT CHARACTER SET utf8mb4;
    DECLARE EXIT HANDLER FOR NOT FOUND RETURN NULL;
    WHILE node IS NOT NULL DO
        SELECT step.link_name, step.parent_node_id INTO link, node
        FROM node_parents step WHERE step.run_id = run AND step.node_id = node;
        SET part = CONCAT_WS(' -> ', link, part);
        IF LENGTH(part) > 10000 THEN
            SET path = CONCAT_WS(' -> ', part, path);
            SET part = NULL;
        END IF;
    END WHILE;
    RETURN CONCAT_WS(' -> ', part, path);
END";

/// Whether a column of a table contains texts.
fn is_text(table: &str, name: &str) -> bool {
    let table = TABLES.iter().find(|known| known.name == table);
    let column = table.and_then(|table| table.columns.iter().find(|column| column.name == name));
    column.is_some_and(|column| matches!(column.kind, SqlType::Text | SqlType::Key))
}

impl SqlDialect {
    /// The statement that creates `table` if it does not exist.
    #[must_use]
    pub fn create_table(self, table: &SchemaTable) -> String {
        let mut parts: Vec<String> = table.columns.iter().map(|column| self.column(column)).collect();
        if self.is_key(table) {
            let key: Vec<String> = table.key.iter().map(|name| self.quoted(name)).collect();
            parts.push(format!("PRIMARY KEY ({})", key.join(", ")));
        }
        let unseen = if table.key.is_empty() || self.is_key(table) { "" } else { self.unseen_key() };
        // The engine is stated because a server's default engine may not support transactions.
        let options = match self {
            Self::Mysql => " ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_bin",
            Self::Mariadb => " ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin",
            Self::Sqlite | Self::Postgresql => "",
        };
        let parts = parts.join(",\n    ");
        format!("CREATE TABLE IF NOT EXISTS {} (\n    {parts}{unseen}\n){options}", table.name)
    }

    /// Whether it is MySQL or MariaDB, which is derived from it.
    pub(crate) const fn is_mysql(self) -> bool {
        matches!(self, Self::Mysql | Self::Mariadb)
    }

    /// Whether the table can have its primary key: servers do not accept texts of any length in one.
    fn is_key(self, table: &SchemaTable) -> bool {
        let is_text = |column: &SchemaColumn| column.kind == SqlType::Key;
        !table.key.is_empty() && (self == Self::Sqlite || !table.columns.iter().any(is_text))
    }

    /// A replacement key for a table that cannot have its own, added after the columns, because some servers reject a
    /// table without a key. It is invisible unless it is selected by name. MySQL has such columns from 8.0.23 on.
    const fn unseen_key(self) -> &'static str {
        match self {
            Self::Mysql => "/*!80023 , id BIGINT AUTO_INCREMENT PRIMARY KEY INVISIBLE */",
            Self::Mariadb => ",\n    id BIGINT AUTO_INCREMENT PRIMARY KEY INVISIBLE",
            Self::Sqlite | Self::Postgresql => "",
        }
    }

    fn column(self, column: &SchemaColumn) -> String {
        let name = self.quoted(column.name);
        let null = if column.nullable || column.kind == SqlType::Serial { "" } else { " NOT NULL" };
        let default = match column.name {
            "strength" if !self.is_mysql() => " DEFAULT 'strong'",
            "bin_overhead" => " DEFAULT 0",
            _ => "",
        };
        format!("{name} {}{null}{default}", self.kind(column.kind))
    }

    const fn kind(self, kind: SqlType) -> &'static str {
        match (self, kind) {
            (Self::Sqlite, SqlType::Serial) => "INTEGER PRIMARY KEY",
            (Self::Sqlite, SqlType::Integer) => "INTEGER",
            (Self::Sqlite, SqlType::Key | SqlType::Text) => "TEXT",
            // Compare by code points, like the other databases.
            (Self::Postgresql, SqlType::Key | SqlType::Text) => "TEXT COLLATE \"C\"",
            (Self::Postgresql, SqlType::Serial) => "BIGSERIAL PRIMARY KEY",
            (_, SqlType::Integer) => "BIGINT",
            (Self::Mysql | Self::Mariadb, SqlType::Serial) => "BIGINT PRIMARY KEY AUTO_INCREMENT",
            (Self::Mysql | Self::Mariadb, SqlType::Key | SqlType::Text) => "LONGTEXT",
        }
    }

    /// A column's name, quoted if it is a keyword of the dialect.
    #[must_use]
    pub fn quoted(self, name: &str) -> String {
        if self.is_mysql() && WORDS_OF_MYSQL.contains(&name) { format!("`{name}`") } else { name.to_owned() }
    }

    /// The indexes of a database: the documented ones, and those that replace keys.
    pub(crate) fn indexes(self) -> impl Iterator<Item = &'static SchemaIndex> {
        let of_keys: &[SchemaIndex] = if self == Self::Sqlite { &[] } else { &KEY_INDEXES };
        INDEXES.iter().chain(of_keys)
    }

    /// The statement that creates `index`.
    #[must_use]
    pub fn create_index(self, index: &SchemaIndex) -> String {
        self.create_index_on(index, IndexedText::Whole)
    }

    /// The statement that creates `index` with as much of texts.
    pub(crate) fn create_index_on(self, index: &SchemaIndex, text: IndexedText) -> String {
        // MySQL has no `IF NOT EXISTS` here; the caller checks before.
        let condition = if self.is_mysql() { "" } else { "IF NOT EXISTS " };
        format!("CREATE INDEX {condition}{} ON {}({})", index.name, index.table, self.columns_of(index, text))
    }

    fn columns_of(self, index: &SchemaIndex, text: IndexedText) -> String {
        let columns = index.columns.iter().map(|name| self.indexed(index.table, name, text));
        columns.collect::<Vec<_>>().join(", ")
    }

    fn indexed(self, table: &str, name: &str, text: IndexedText) -> String {
        let quoted = self.quoted(name);
        match self {
            _ if !is_text(table, name) => quoted,
            // An index on the beginning serves a condition on the whole.
            Self::Mysql | Self::Mariadb => format!("{quoted}({PREFIX_CHARACTERS})"),
            // Here it does not, so that it is for texts that are too long alone.
            Self::Postgresql if text == IndexedText::Beginning => {
                format!("left({quoted}, {PREFIX_CHARACTERS})")
            }
            Self::Postgresql | Self::Sqlite => quoted,
        }
    }

    /// The statements that create the views if they do not exist.
    #[must_use]
    pub fn create_views(self) -> [String; 2] {
        let create = match self {
            Self::Sqlite => "CREATE VIEW IF NOT EXISTS",
            Self::Postgresql | Self::Mysql | Self::Mariadb => "CREATE OR REPLACE VIEW",
        };
        [
            format!("{create} v_node_paths AS\n{}", self.paths()),
            format!("{create} v_arrays AS\n{}", self.arrays()),
        ]
    }

    /// The view of the canonical path of every node. The tree is walked from the roots, and each node takes over the path
    /// above it as long as that is short.
    fn paths(self) -> String {
        let joined = match self {
            Self::Mysql | Self::Mariadb => "CONCAT(above.path, ' -> ', edge.link_name)",
            Self::Sqlite | Self::Postgresql => "above.path || ' -> ' || edge.link_name",
        };
        let path = self.path_of_walked();
        // The first row decides the type; MySQL would truncate the paths to the length of the first one.
        let first = match self {
            Self::Mysql | Self::Mariadb => "CAST(link_name AS CHAR(16000000))",
            Self::Sqlite | Self::Postgresql => "link_name",
        };
        format!(
            "WITH RECURSIVE walked(run_id, node_id, path, depth) AS (\n\
             \x20   SELECT run_id, child_node_id, {first}, 0\n\
             \x20   FROM context_edges WHERE parent_node_id IS NULL AND is_tree = 1\n\
             \x20   UNION ALL\n\
             \x20   SELECT edge.run_id, edge.child_node_id,\n\
             \x20       CASE WHEN above.depth < {SHARED_LINKS} THEN {joined} END, above.depth + 1\n\
             \x20   FROM walked above JOIN context_edges edge\n\
             \x20       ON edge.run_id = above.run_id AND edge.parent_node_id = above.node_id AND edge.is_tree = 1\n\
             )\n\
             SELECT run_id, node_id, {path} AS path, depth FROM walked"
        )
    }

    /// The path of the node of a row of `walked`; `NULL` for a long one where texts cannot be joined in any length.
    fn path_of_walked(self) -> String {
        let Some(joined) = self.links_joined() else { return "path".to_owned() };
        let step = "edge.run_id = walked.run_id AND edge.is_tree = 1";
        format!(
            "COALESCE(path, (\n\
             \x20   WITH RECURSIVE above(node_id, link_name, distance) AS (\n\
             \x20       SELECT edge.parent_node_id, edge.link_name, 0 FROM context_edges edge\n\
             \x20       WHERE {step} AND edge.child_node_id = walked.node_id\n\
             \x20       UNION ALL\n\
             \x20       SELECT edge.parent_node_id, edge.link_name, above.distance + 1\n\
             \x20       FROM above CROSS JOIN context_edges edge\n\
             \x20       WHERE {step} AND edge.child_node_id = above.node_id AND above.distance < walked.depth\n\
             \x20   )\n\
             \x20   {joined}\n\
             ))"
        )
    }

    /// The query that joins the links of `above`, the farthest first; `None` where the result has a limit.
    const fn links_joined(self) -> Option<&'static str> {
        match self {
            // Its older versions know no order within an aggregate; they keep the one of the subquery.
            Self::Sqlite => Some(
                "SELECT group_concat(link_name, ' -> ') FROM (SELECT link_name FROM above ORDER BY distance DESC)",
            ),
            Self::Postgresql => {
                Some("SELECT string_agg(link_name, ' -> ' ORDER BY distance DESC) FROM above")
            }
            // By default, MySQL joins 1024 bytes.
            Self::Mysql | Self::Mariadb => None,
        }
    }

    /// The statements that create the view of the paths computed from `node_parents`, each with the name of what it
    /// creates. The path of a row is computed when it is read, by following the tree from its node.
    pub(crate) fn parent_paths(self) -> Vec<(&'static str, String)> {
        let path = match self {
            // MariaDB's nested queries cannot refer to the row outside.
            Self::Mariadb => "node_path(node.run_id, node.node_id)".to_owned(),
            _ => self.path_upwards(),
        };
        let view = format!(
            "CREATE VIEW v_parent_paths AS\n\
             SELECT node.run_id, node.node_id, {path} AS path, node.depth\n\
             FROM node_parents node"
        );
        let function = (self == Self::Mariadb).then(|| ("node_path", NODE_PATH.to_owned()));
        function.into_iter().chain([("v_parent_paths", view)]).collect()
    }

    /// The path of `node`, as a subquery.
    fn path_upwards(self) -> String {
        // The rows hold links or paths. MySQL needs the type of a path, as in [`Self::paths`].
        let (column, first, next, joined) = match self.links_joined() {
            Some(joined) => {
                ("link_name, distance", "node.link_name, 0", "step.link_name, above.distance + 1", joined)
            }
            None => (
                "path",
                "CAST(node.link_name AS CHAR(16000000))",
                "CONCAT(step.link_name, ' -> ', above.path)",
                "SELECT path FROM above WHERE node_id IS NULL",
            ),
        };
        format!(
            "(\n\
             \x20   WITH RECURSIVE above(node_id, {column}) AS (\n\
             \x20       SELECT node.parent_node_id, {first}\n\
             \x20       UNION ALL\n\
             \x20       SELECT step.parent_node_id, {next}\n\
             \x20       FROM above CROSS JOIN node_parents step\n\
             \x20       WHERE step.run_id = node.run_id AND step.node_id = above.node_id\n\
             \x20   )\n\
             \x20   {joined}\n\
             )"
        )
    }

    /// The view of arrays with their tables.
    fn arrays(self) -> String {
        let (key, value) = (self.quoted("key"), self.quoted("value"));
        let count = match self {
            Self::Mysql | Self::Mariadb => format!("CAST(counted.{value} AS SIGNED)"),
            Self::Sqlite => "CAST(counted.value AS BIGINT)".to_owned(),
            // The others convert text that is not a number to 0.
            Self::Postgresql => {
                "CASE WHEN counted.value ~ '^[0-9]{1,18}$' THEN CAST(counted.value AS BIGINT) \
                                 WHEN counted.value IS NOT NULL THEN 0 END"
                    .to_owned()
            }
        };
        format!(
            "SELECT header.run_id, header.node_id, header.address, header.size AS header_size,\n\
             \x20   COALESCE(content.size, 0) AS table_size,\n\
             \x20   header.size + COALESCE(content.size, 0) AS total_size,\n\
             \x20   {count} AS element_count, header.refcount\n\
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

    /// The statements that drop the indexes that cover whole texts, which may be too long for them; none where an index
    /// never does.
    pub(crate) fn drop_text_indexes(self) -> Vec<String> {
        let indexes =
            self.indexes().filter(|index| index.columns.iter().any(|name| is_text(index.table, name)));
        match self {
            Self::Postgresql => indexes.map(|index| format!("DROP INDEX IF EXISTS {}", index.name)).collect(),
            Self::Sqlite | Self::Mysql | Self::Mariadb => Vec::new(),
        }
    }

    /// The statements that create everything but the rows, in order: those before the rows, and those after them.
    #[must_use]
    pub fn create_all(self) -> (Vec<String>, Vec<String>) {
        let tables = TABLES.iter().map(|table| self.create_table(table)).collect();
        let indexes = self.indexes().map(|index| self.create_index(index));
        (tables, indexes.chain(self.create_views()).collect())
    }

    /// Whether a statement that creates something ends the transaction.
    pub(crate) const fn commits_what_it_makes(self) -> bool {
        self.is_mysql()
    }

    /// The statement that lists the names of all tables, indexes, views and functions.
    pub(crate) const fn existing(self) -> &'static str {
        match self {
            Self::Sqlite => "SELECT name FROM sqlite_schema",
            Self::Postgresql => "SELECT CAST(relname AS TEXT) FROM pg_class WHERE pg_table_is_visible(oid)",
            Self::Mysql | Self::Mariadb => {
                "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() \
                 UNION SELECT index_name FROM information_schema.statistics WHERE table_schema = DATABASE() \
                 UNION SELECT routine_name FROM information_schema.routines WHERE routine_schema = DATABASE()"
            }
        }
    }

    /// The statement that begins a transaction for changes, which others see all at once or not at all.
    pub(crate) const fn begin(self) -> &'static str {
        match self {
            Self::Sqlite => "BEGIN IMMEDIATE",
            Self::Postgresql => "BEGIN",
            Self::Mysql | Self::Mariadb => "START TRANSACTION",
        }
    }

    /// The statement that begins a transaction in which all reads are from one moment.
    pub(crate) const fn begin_to_read(self) -> &'static str {
        match self {
            Self::Sqlite => "BEGIN",
            Self::Postgresql => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            Self::Mysql | Self::Mariadb => "START TRANSACTION WITH CONSISTENT SNAPSHOT",
        }
    }

    /// The statements that update the statistics of the indexes. Without them, SQLite chooses the wrong index for paths
    /// and depths and scans all nodes for each node; servers update them by themselves, but later.
    pub(crate) fn statistics(self) -> Vec<String> {
        let tables = TABLES.map(|table| table.name);
        match self {
            Self::Sqlite => vec!["PRAGMA analysis_limit = 1000".to_owned(), "ANALYZE".to_owned()],
            Self::Postgresql => tables.map(|table| format!("ANALYZE {table}")).to_vec(),
            Self::Mysql | Self::Mariadb => {
                vec![format!("ANALYZE NO_WRITE_TO_BINLOG TABLE {}", tables.join(", "))]
            }
        }
    }

    /// The SQL that orders the rows of a table as they were written, with a number in the column `id` or without one.
    pub(crate) const fn written_order(self, has_numbers: bool) -> &'static str {
        match (self, has_numbers) {
            (Self::Sqlite, _) => " ORDER BY rowid",
            (Self::Postgresql | Self::Mysql | Self::Mariadb, true) => " ORDER BY id",
            (Self::Postgresql, false) => " ORDER BY ctid",
            // Tables without a key are in this order as long as no index is used.
            (Self::Mysql | Self::Mariadb, false) => "",
        }
    }

    /// The statement that adds a missing column to a table.
    pub(crate) fn add_column(self, table: &SchemaTable, column: &SchemaColumn) -> String {
        let default = match column.absent {
            Some(absent) if self.is_mysql() && !column.nullable => format!(" DEFAULT ({absent})"),
            _ => String::new(),
        };
        format!("ALTER TABLE {} ADD COLUMN {}{default}", table.name, self.column(column))
    }

    /// The condition for the rows of `:run` in a table that numbers its rows, if they are needed in order of these
    /// numbers. The rows of a run are adjacent. SQLite would otherwise use an index of the run, and sort.
    pub(crate) fn rows_of_run(self, table: &str) -> String {
        let end = |end: &str| format!("(SELECT {end}(rowid) FROM {table} WHERE run_id = :run)");
        match self {
            Self::Sqlite => format!("rowid BETWEEN {} AND {} AND +run_id = :run", end("MIN"), end("MAX")),
            Self::Postgresql | Self::Mysql | Self::Mariadb => "run_id = :run".to_owned(),
        }
    }
}
