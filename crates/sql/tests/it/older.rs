//! Databases with the documented schema, and those of older programs, which lack columns.

use borehole_heap::{Graph as _, HeapGraph};
use borehole_sql::{Database, ErrorKind, NamedQuery, Parameters, QUERIES, SqlValue};
use borehole_testkit::Scratch;

use crate::{database, heap};

/// The changes that make a database look as if written before strengths, shared nodes and block overheads.
const AGED: &str = "\
    DROP VIEW v_node_paths; DROP VIEW v_arrays; \
    DROP INDEX idx_context_edges_run_strength; DROP INDEX idx_context_nodes_canonical; \
    CREATE TABLE aged AS SELECT run_id, parent_node_id, child_node_id, link_name, is_tree FROM context_edges ORDER BY id; \
    DROP TABLE context_edges; ALTER TABLE aged RENAME TO context_edges; \
    ALTER TABLE context_nodes DROP COLUMN canonical_node_id; \
    ALTER TABLE context_node_locations DROP COLUMN bin_overhead";

fn aged(scratch: &Scratch, more: &str) -> std::path::PathBuf {
    let path = database(scratch, &["m1_objects"]);
    rusqlite::Connection::open(&path).unwrap().execute_batch(&format!("{AGED}; {more}")).unwrap();
    path
}

/// The lines of edges and nodes, without facts that an older database lacks.
fn lines(graph: &HeapGraph) -> Vec<String> {
    let mut lines = Vec::new();
    borehole_heap::lines::write(graph, &mut lines).unwrap();
    let lines = String::from_utf8(lines).unwrap();
    let line = |line: &str| {
        let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
        let kind = line["type"].as_str().unwrap_or_default().to_owned();
        line.as_object_mut()
            .unwrap()
            .retain(|name, _| !["strength", "bin_overhead", "canonical"].contains(&&**name));
        ["node", "edge", "location"].contains(&&*kind).then(|| line.to_string())
    };
    lines.lines().filter_map(line).collect()
}

#[test]
fn an_older_database_is_read_and_asked() {
    let scratch = Scratch::new();
    let path = aged(&scratch, "");
    let mut database = Database::open(&path).unwrap();
    let (read, written) = (database.graph(1).unwrap(), heap("m1_objects"));
    assert!(lines(&read) == lines(&written) && lines(&read).len() > 1000);
    assert_eq!(
        read.counts(),
        borehole_heap::GraphCounts { strings: read.counts().strings, ..written.counts() }
    );
    assert_eq!(database.runs().unwrap().len(), 1);
    assert_eq!(database.paths(1).unwrap().sizes().nodes, read.counts().nodes as u64);
    // The views exist as soon as a run is added, and in databases of reli.
    let views = borehole_sql::dialect::SqlDialect::Sqlite.create_views().join(";");
    rusqlite::Connection::open(&path).unwrap().execute_batch(&views).unwrap();
    let asked = Parameters { run: Some(1), other: Some(1), node: Some(42) };
    for query in QUERIES {
        database.ask(query, asked).unwrap_or_else(|error| panic!("{}: {error}", query.name));
    }
    let references = database.ask(NamedQuery::find("references").unwrap(), asked).unwrap();
    assert_eq!(references.columns[3], "strength");
    assert_eq!(references.rows[0][3], SqlValue::Text("strong".to_owned()));
}

#[test]
fn an_older_database_gets_the_columns_that_a_new_run_has() {
    let scratch = Scratch::new();
    let mut database = Database::open(&aged(&scratch, "")).unwrap();
    database.add_run(&heap("m3_closures"), "now").unwrap();
    let mut counted =
        |what: &str| match database.query(&format!("SELECT COUNT(*) FROM {what}")).unwrap().rows[0][0] {
            SqlValue::Integer(count) => count,
            ref other => panic!("{other:?}"),
        };
    assert_eq!(counted("context_edges WHERE run_id = 1 AND strength <> 'strong'"), 0);
    assert!(counted("context_edges WHERE run_id = 2 AND strength = 'weak'") > 0);
    assert!(counted("v_arrays") > 0);
    assert!(lines(&database.graph(1).unwrap()) == lines(&heap("m1_objects")));
    assert!(lines(&database.graph(2).unwrap()) == lines(&heap("m3_closures")));
}

#[test]
fn an_unchangeable_older_database_is_reported_as_such() {
    let scratch = Scratch::new();
    // As many columns as SQLite allows.
    let columns: String = (3..2000).map(|number| format!(", x{number}")).collect();
    let of_many_columns = format!(
        "CREATE TABLE wide (run_id INTEGER, node_id INTEGER, type TEXT{columns}); \
         INSERT INTO wide (run_id, node_id, type) SELECT run_id, node_id, type FROM context_nodes ORDER BY node_id; \
         DROP TABLE context_nodes; ALTER TABLE wide RENAME TO context_nodes"
    );
    let mut database = Database::open(&aged(&scratch, &of_many_columns)).unwrap();
    assert!(lines(&database.graph(1).unwrap()) == lines(&heap("m1_objects")));
    let error = database.add_run(&heap("m3_closures"), "now").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let expected = "the database was written by an older program: context_nodes lacks the column canonical_node_id, which cannot be added (";
    assert!(error.to_string().starts_with(expected), "{error}");
    assert_eq!(database.run_ids().unwrap(), [1]);
    let of_others = "ALTER TABLE context_edges DROP COLUMN link_name";
    let mut database = Database::open(&aged(&Scratch::new(), of_others)).unwrap();
    let said = database.graph(1).err().unwrap().to_string();
    let expected = "expected a heap database with a table context_edges of run_id, parent_node_id, child_node_id, link_name, \
                    is_tree: found run_id, parent_node_id, child_node_id, is_tree";
    assert_eq!(said, expected);
}
