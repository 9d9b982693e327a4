//! The documentation page of the database, generated from the schema.

use std::fmt::Write as _;

use crate::dialect::Dialect;
use crate::queries::QUERIES;
use crate::schema::{
    Column, INDEXES, Index, KEY_INDEXES, Kind, NODE_PARENTS_INDEX, NODE_PATHS_INDEX, PATH_TABLES, TABLES,
    Table,
};

const BEGINNING: &str = "\
# The memory database

A heap of PHP as tables, as `borehole heap capture -o heaps.sqlite3` and `borehole heap export` write it. Names, keys and
indexes are those of reli's database output. This page is made of the description that the tables are made of.

Numbers have 64 bits and a sign: an address above 2⁶³ is negative. Texts are UTF-8 without NUL; a byte that cannot stand in
one is written as U+FFFD and two hexadecimal digits, as is each byte of U+FFFD itself.
";

const SERVERS: &str = "
## On servers

Numbers are `BIGINT`. Texts are `TEXT` that is compared by code points in PostgreSQL, and `LONGTEXT` in MySQL and MariaDB, with
the collation that does so and tells spaces at the end. Servers index the first 191 characters of a text: PostgreSQL has
`left(class_name, 191)` in the place of `class_name`, and of `link_name` and `location_type`; an equation of such a column is right all the same, and
fast if the other equation, `left(class_name, 191) = left('App\\Order', 191)`, stands beside it. In the place of primary keys
with texts in them there are plain indexes: ";

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
    page += "\n## Views\n\n`v_node_paths` has the columns of `node_paths`, worked out when it is asked. `v_arrays` has a row \
             for each array: its header, its table, and how many elements it has.\n\nWith `node_parents` comes \
             `v_parent_paths`, which has the columns of `node_paths` too, and works out the path of a node that is asked for at \
             once: `SELECT path FROM v_parent_paths WHERE run_id = 1 AND node_id = 42`. In MariaDB it asks a function, \
             `node_path(1, 42)`, which whoever writes it must have the right to make; MySQL goes as far up as \
             `cte_max_recursion_depth` of the session lets it, 1000 links unless it is set.\n";
    page += SERVERS;
    let of_keys: Vec<_> = KEY_INDEXES.iter().map(|index| format!("`{}`", index.name)).collect();
    let _ = writeln!(page, "{}.", of_keys.join(", "));
    page += "In MySQL and MariaDB these tables have a key that is not seen unless it is asked for by its name, `id`.\n";
    page += "\n## Statements\n\nAs SQLite takes them:\n\n```sql\n";
    let (first, last) = Dialect::Sqlite.create_all();
    for statement in first.iter().chain(&last) {
        let _ = writeln!(page, "{statement};");
    }
    page += "```\n\n## Questions with names\n\n| `borehole heap query FILE --named` | what it answers |\n|---|---|\n";
    for query in QUERIES {
        let _ = writeln!(page, "| `{}` | {} |", query.name, query.doc);
    }
    page
}

fn add_table(page: &mut String, table: &Table) {
    let _ = writeln!(page, "\n## {}\n\nA row is {}.\n", table.name, table.doc);
    *page += "| column | type | what it is |\n|---|---|---|\n";
    for column in table.columns {
        let _ = writeln!(page, "| `{}` | {} | {} |", column.name, kind(table, column), column.doc);
    }
}

fn kind(table: &Table, column: &Column) -> String {
    let kind = match column.kind {
        Kind::Serial | Kind::Integer => "integer",
        Kind::Key | Kind::Text => "text",
    };
    let is_key = column.kind == Kind::Serial || table.key.contains(&column.name);
    match (is_key, column.nullable) {
        (true, _) => format!("{kind}, key"),
        (false, true) => format!("{kind} or absent"),
        (false, false) => kind.to_owned(),
    }
}

fn add_index(page: &mut String, index: &Index) {
    let columns = index.columns.join(", ");
    let _ = writeln!(page, "| `{}` | `{}({columns})` | {} |", index.name, index.table, index.doc);
}
