//! Hostile names and contents, and files that are not databases.

use borehole_heap::{
    Edge, GraphBuilder, HeapGraph, HeapSink as _, LocationType, MemoryLocation, NodeId, NodeType, Strength,
    StringId,
};
use borehole_sql::text::unescape;
use borehole_sql::{Database, ErrorKind, SpentLimit, SqlValue};
use borehole_testkit::Scratch;

use crate::{database, heap};

#[test]
fn hostile_names_are_data() {
    let scratch = Scratch::new();
    let path = scratch.path("hostile.db");
    let names: [&[u8]; 5] = [
        b"'; DROP TABLE runs; --",
        b"caf\xe9\0\xff",
        "\u{fffd}00 \u{1f4a9}".as_bytes(),
        b"",
        &[b'x'; 1 << 20],
    ];
    let graph = strings(names, |node, string| MemoryLocation {
        refcount: Some(u32::MAX),
        ..located(string, u64::MAX - u64::from(node.0), u64::MAX >> 1)
    });
    let mut database = Database::create(&path).unwrap();
    // The sum of the sizes exceeds 64 bits: it is refused, and nothing is left.
    assert!(database.add_run(&graph, "now").is_err());
    drop(database);
    let mut database = Database::create(&scratch.path("fresh.db")).unwrap();
    // The same graph with smaller sizes.
    let graph = strings(names, |_, string| located(string, 16, 24));
    database.add_run(&graph, "now").unwrap();
    let answer = database
        .query("SELECT string_value, class_name FROM context_node_locations ORDER BY node_id")
        .unwrap();
    for (row, name) in answer.rows.iter().zip(names) {
        let [SqlValue::Text(string), SqlValue::Text(class)] = &row[..] else { panic!("{row:?}") };
        assert_eq!((&*unescape(string), string), (name, class));
    }
    assert_eq!(answer.rows.len(), names.len());
    let links = database.query("SELECT link_name FROM context_edges ORDER BY child_node_id").unwrap();
    assert_eq!(links.rows.len(), names.len());
}

/// A graph of strings whose class and reference name are their contents.
fn strings(names: [&[u8]; 5], located: impl Fn(NodeId, StringId) -> MemoryLocation) -> HeapGraph {
    let mut builder = GraphBuilder::new();
    for name in names {
        let (node, link) = (builder.node(NodeType::STRING), builder.string(name));
        builder.edge(Edge { parent: None, child: node, link, is_tree: true, strength: Strength::Strong });
        builder.location(node, &located(node, link));
    }
    builder.finish().unwrap()
}

fn located(string: StringId, address: u64, size: u64) -> MemoryLocation {
    let (class, string) = (Some(string), Some(string));
    MemoryLocation { class, string, ..MemoryLocation::new(LocationType::STRING, address, size) }
}

#[test]
fn other_files_are_refused_and_stay_as_they_are() {
    let scratch = Scratch::new();
    let text = scratch.path("notes.db");
    std::fs::write(&text, "Buy milk. Buy more milk, and then some, until there are many bytes here.")
        .unwrap();
    let error = Database::open(&text).err().unwrap();
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (ErrorKind::Unsupported, "expected an SQLite database")
    );
    let error = Database::read(&scratch.path("missing.db")).err().unwrap();
    assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Io, "no such file or directory"));

    let error = Database::read(&scratch.path("")).err().unwrap();
    assert_eq!(error.to_string(), "expected an SQLite database, found a directory");

    // A foreign table of the same name.
    let other = scratch.path("other.db");
    let connection = rusqlite::Connection::open(&other).unwrap();
    connection.execute_batch("CREATE TABLE summary (a, b); INSERT INTO summary VALUES (1, 2)").unwrap();
    let error = Database::open(&other).unwrap().add_run(&heap("m1_objects"), "now").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    let tables: i64 = connection
        .query_row("SELECT COUNT(*) FROM sqlite_schema WHERE type = 'table'", [], |row| row.get(0))
        .unwrap();
    assert_eq!(tables, 1);

    // An empty file is an empty database, which has no heaps.
    let empty = scratch.path("empty.db");
    std::fs::write(&empty, []).unwrap();
    let error = Database::read(&empty).unwrap().runs().unwrap_err();
    assert!(error.to_string().starts_with("expected a heap database with a table runs of "), "{error}");
}

#[test]
fn reading_a_database_needs_no_other_privileges() {
    let scratch = Scratch::new();
    let path = database(&scratch, &["m1_objects"]);
    let copy = scratch.path("copy.db");
    let mut database = Database::read(&path).unwrap();
    for statement in [&*format!("VACUUM INTO '{}'", copy.display()), "DELETE FROM runs", "CREATE TABLE a (b)"]
    {
        let error = database.query(statement).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Statement, "{statement}");
        assert_eq!(error.to_string(), "expected a read-only statement, found one that changes the database");
    }
    assert!(!copy.exists());
    assert_eq!(database.query("SELECT run_id FROM runs").unwrap().rows, [[SqlValue::Integer(1)]]);
}

#[test]
fn failed_writes_leave_no_partial_run() {
    let scratch = Scratch::new();
    let path = database(&scratch, &["m1_objects"]);
    let mut database = Database::open(&path).unwrap();
    let full = rusqlite::Connection::open(&path).unwrap();
    // Another process is writing.
    full.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = database.add_run(&heap("m3_closures"), "now").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked, "{error}");
    full.execute_batch("COMMIT").unwrap();
    assert_eq!(database.runs().unwrap().len(), 1);
    database.add_run(&heap("m3_closures"), "now").unwrap();
    assert_eq!(database.runs().unwrap().len(), 2);
}

#[test]
fn damaged_databases_are_distinguished_from_other_files() {
    let scratch = Scratch::new();
    let path = database(&scratch, &["m1_objects"]);
    let mut bytes = std::fs::read(&path).unwrap();
    let length = bytes.len();
    bytes[4096..length / 2].fill(0x5a);
    std::fs::write(&path, bytes).unwrap();
    let error = Database::read(&path).and_then(|mut database| database.graph(1)).err().unwrap();
    assert_eq!((error.kind(), &*error.to_string()), (ErrorKind::Damaged, "the database is damaged"));
}

/// Endless rows, if they were read.
const ENDLESS: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i";

/// A database in whose place of `table` is what `made` makes; the table itself is `real`.
fn with_other(scratch: &Scratch, table: &str, made: &str) -> std::path::PathBuf {
    let path = database(scratch, &["m1_objects"]);
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute_batch(&format!("ALTER TABLE {table} RENAME TO real; {made}")).unwrap();
    path
}

#[test]
fn a_table_is_a_table() {
    for (table, made, kind) in [
        ("runs", format!("CREATE VIEW runs(run_id, created_at) AS {ENDLESS}, 'x' FROM n"), "view"),
        ("summary", format!("CREATE VIEW Summary(run_id, key, value) AS {ENDLESS}, 'x', 'y' FROM n"), "view"),
        ("runs", "CREATE VIRTUAL TABLE runs USING fts5(run_id, created_at)".to_owned(), "virtual"),
    ] {
        let scratch = Scratch::new();
        let path = with_other(&scratch, table, &made);
        for opened in [Database::read(&path), Database::open(&path)] {
            let error = opened.err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
            let said = error.to_string().to_lowercase();
            assert_eq!(
                said,
                format!("expected a heap database with a table {table}, found a {kind} of that name")
            );
        }
    }
}

#[test]
fn adding_a_run_runs_nothing_that_the_file_holds() {
    let scratch = Scratch::new();
    let path = database(&scratch, &["m1_objects"]);
    let connection = rusqlite::Connection::open(&path).unwrap();
    let trigger =
        "CREATE TABLE seen (a); CREATE TRIGGER t AFTER INSERT ON runs BEGIN INSERT INTO seen VALUES (1); END";
    connection.execute_batch(trigger).unwrap();
    Database::open(&path).unwrap().add_run(&heap("m5_mixed"), "now").unwrap();
    let seen: i64 = connection.query_row("SELECT COUNT(*) FROM seen", [], |row| row.get(0)).unwrap();
    assert_eq!(seen, 0);
}

#[test]
fn a_statement_without_an_end_is_interrupted() {
    let scratch = Scratch::new();
    let path = database(&scratch, &["m1_objects"]);
    rusqlite::Connection::open(&path)
        .unwrap()
        .execute_batch(&format!("CREATE VIEW endless AS {ENDLESS} FROM n"))
        .unwrap();
    let mut database = Database::read(&path).unwrap();
    database.set_timeout(std::time::Duration::from_millis(200));
    let error = database.query("SELECT COUNT(*) FROM endless").unwrap_err();
    let said = "waited 0.2 s for a row of the answer";
    assert_eq!((error.kind(), &*error.to_string()), (ErrorKind::Statement, said));
    assert_eq!(error.spent(), Some(SpentLimit::Time));
    // The connection still works.
    assert_eq!(database.run_ids().unwrap(), [1]);
}
