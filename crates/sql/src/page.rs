//! The documentation page of the database, generated from the schema.

use std::fmt::Write as _;

use crate::dialect::SqlDialect;
use crate::queries::QUERIES;
use crate::schema::{
    INDEXES, KEY_INDEXES, NODE_PARENTS_INDEX, NODE_PATHS_INDEX, PATH_TABLES, SchemaColumn, SchemaIndex,
    SchemaTable, SqlType, TABLES,
};

const BEGINNING: &str = "\
# The memory database

A PHP heap as tables, as written by `borehole heap capture -o heaps.sqlite3` and `borehole heap export`. Names, keys and indexes
are those of reli's database output. This page is generated from the description that the tables are created from.

Numbers are signed 64-bit integers, so an address above 2⁶³ is negative. Texts are UTF-8 without NUL. A byte that cannot be
stored as text is written as U+FFFD and two hexadecimal digits, and so is each byte of U+FFFD itself.
";

const SERVERS: &str = "
## On servers

Numbers are `BIGINT`. Texts are `TEXT`, compared by code points, in PostgreSQL, and `LONGTEXT` in MySQL and MariaDB, with a
collation that compares by code points and distinguishes trailing spaces. MySQL and MariaDB index the first 191 characters of a
text. PostgreSQL indexes whole texts, unless one is too long for an index, from about 2,600 bytes on. Then it indexes
`left(link_name, 191)` instead of `link_name`, and likewise for `class_name` and `location_type`: a condition on such a column is
correct in any case, and fast if you add the condition `left(link_name, 191) = left('key', 191)`. Servers have plain indexes instead of primary keys that contain texts: ";

/// The page, in Markdown.
#[must_use]
pub fn page() -> String {
    let mut page = BEGINNING.to_owned();
    for table in TABLES.iter().chain(&PATH_TABLES) {
        add_table(&mut page, table);
    }
    page += "\n## Indexes\n\n| index | on | for |\n|---|---|---|\n";
    for index in INDEXES.iter().chain([&NODE_PATHS_INDEX, &NODE_PARENTS_INDEX]) {
        add_index(&mut page, index);
    }
    page += "\n## Views\n\n`v_node_paths` has the columns of `node_paths`, computed on demand. `v_arrays` has a row for each \
             array: its header, its table, and its number of elements. In MySQL and MariaDB, `v_node_paths` has no path \
             (`NULL`) for nodes with more than 1,000 links before the last one; `v_parent_paths` has them.\n\nWith `node_parents` comes `v_parent_paths`, which \
             also has the columns of `node_paths`, and computes the path of a single node quickly: `SELECT path FROM \
             v_parent_paths WHERE run_id = 1 AND node_id = 42`. In MariaDB it calls the function `node_path(1, 42)`, which \
             the user who writes the table must have the right to create. MySQL follows at most as many links as \
             `cte_max_recursion_depth` of the session allows (default: 1000).\n";
    page += SERVERS;
    let of_keys: Vec<_> = KEY_INDEXES.iter().map(|index| format!("`{}`", index.name)).collect();
    let _ = writeln!(page, "{}.", of_keys.join(", "));
    page += "In MySQL and MariaDB these tables have an invisible key, which is selected only by its name, `id`.\n";
    page += "\n## Statements\n\nIn the SQL of SQLite:\n\n```sql\n";
    let (first, last) = SqlDialect::Sqlite.create_all();
    for statement in first.iter().chain(&last) {
        let _ = writeln!(page, "{statement};");
    }
    page += "```\n\n## Named queries\n\n| `borehole heap query FILE --named` | result |\n|---|---|\n";
    for query in QUERIES {
        let _ = writeln!(page, "| `{}` | {} |", query.name, query.doc);
    }
    page
}

fn add_table(page: &mut String, table: &SchemaTable) {
    let _ = writeln!(page, "\n## {}\n\nA row is {}.\n", table.name, table.doc);
    *page += "| column | type | meaning |\n|---|---|---|\n";
    for column in table.columns {
        let _ = writeln!(page, "| `{}` | {} | {} |", column.name, kind(table, column), column.doc);
    }
}

fn kind(table: &SchemaTable, column: &SchemaColumn) -> String {
    let kind = match column.kind {
        SqlType::Serial | SqlType::Integer => "integer",
        SqlType::Key | SqlType::Text => "text",
    };
    let is_key = column.kind == SqlType::Serial || table.key.contains(&column.name);
    match (is_key, column.nullable) {
        (true, _) => format!("{kind}, key"),
        (false, true) => format!("{kind} or absent"),
        (false, false) => kind.to_owned(),
    }
}

fn add_index(page: &mut String, index: &SchemaIndex) {
    let columns = index.columns.join(", ");
    let _ = writeln!(page, "| `{}` | `{}({columns})` | {} |", index.name, index.table, index.doc);
}
