//! Checks the document of the memory database: its tables match ours, and all its statements work as printed.

use std::collections::BTreeMap;

use borehole_heap::{Edge, GraphBuilder, HeapSink as _, NodeId, NodeType, Strength};
use borehole_sql::dialect::SqlDialect;
use borehole_sql::schema::{INDEXES, NODE_PATHS, TABLES};
use borehole_sql::{Database, ErrorKind, NamedQuery, Parameters, QUERIES, QueryAnswer, SqlValue};
use borehole_testkit::{Scratch, assert_golden, project_file, read_corpus};

use crate::database;

pub(crate) fn document() -> String {
    String::from_utf8(read_corpus("php/sql/memory-database.txt")).unwrap()
}

#[test]
fn the_page_is_that_of_the_tables() {
    assert_golden(project_file("docs/sql.md"), borehole_sql::page().as_bytes());
}

/// The columns of each table and view in the document: name and type.
fn described(document: &str) -> BTreeMap<String, Vec<(String, String)>> {
    let mut tables = BTreeMap::new();
    let mut name = "";
    let mut lines = document.lines();
    while let Some(line) = lines.next() {
        let is_name = |line: &str| line.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        if line == "ColumnTypeDescription" {
            let rows = lines.by_ref().map_while(|line| {
                let at = [line.find("INTEGER"), line.find("TEXT")].into_iter().flatten().min()?;
                let kind = if line[at..].starts_with("INTEGER") { "INTEGER" } else { "TEXT" };
                is_name(&line[..at]).then(|| (line[..at].to_owned(), kind.to_owned()))
            });
            tables.insert(name.to_owned(), rows.collect());
        } else if let Some(word) = line.split_whitespace().find(|word| word.contains('_') && is_name(word)) {
            if line == word || line.starts_with("The ") {
                name = word;
            }
        } else if ["runs", "summary"].contains(&line) {
            name = line;
        }
    }
    tables
}

/// The statements that the document prints in the dialect of SQLite.
pub(crate) fn statements(document: &str) -> Vec<String> {
    let mut statements = Vec::new();
    let mut open: Option<String> = None;
    for line in document.lines() {
        let begins = ["SELECT", "WITH RECURSIVE"].iter().any(|word| line.starts_with(word));
        if open.is_none() && begins {
            open = Some(String::new());
        }
        if let Some(statement) = &mut open {
            statement.push_str(line);
            statement.push('\n');
            if line.ends_with(';') {
                statements.extend(open.take());
            }
        }
    }
    statements
}

#[test]
fn the_tables_have_the_columns_of_the_document() {
    let described = described(&document());
    assert_eq!(described.len(), 11, "{:?}", described.keys());
    for table in TABLES.iter().chain([&NODE_PATHS]) {
        let ours = table.columns.iter().filter(|column| {
            // Columns of reli's program that its document omits.
            !matches!((table.name, column.name), ("context_edges", "id") | (_, "bin_overhead"))
        });
        let kind = |column: &borehole_sql::schema::SchemaColumn| {
            use borehole_sql::schema::SqlType;
            if matches!(column.kind, SqlType::Serial | SqlType::Integer) { "INTEGER" } else { "TEXT" }
        };
        let ours: Vec<_> = ours.map(|column| (column.name.to_owned(), kind(column).to_owned())).collect();
        assert_eq!(Some(&ours), described.get(table.name), "{}", table.name);
    }
}

#[test]
fn the_database_has_the_indexes_of_the_document_and_the_views_their_columns() {
    let scratch = Scratch::new();
    let mut database = Database::read(&database(&scratch, &["m1_objects"])).unwrap();
    let text = document();
    let indexes: Vec<_> =
        text.lines().filter(|line| line.contains("idx_") && line.contains(" on context_")).collect();
    assert_eq!(indexes.len(), INDEXES.len());
    for index in INDEXES {
        let described = format!("{} on {}({})", index.name, index.table, index.columns.join(", "));
        assert!(indexes.iter().any(|line| line.contains(&described)), "{described}");
        let made = database
            .query(&format!("SELECT sql FROM sqlite_schema WHERE type = 'index' AND name = '{}'", index.name))
            .unwrap();
        let expected = SqlDialect::Sqlite.create_index(&index).replace("IF NOT EXISTS ", "");
        assert_eq!(made.rows, [[SqlValue::Text(expected)]]);
    }
    for (view, columns) in described(&text).into_iter().filter(|(name, _)| name.starts_with("v_")) {
        let answer = database.query(&format!("SELECT * FROM {view} LIMIT 1")).unwrap();
        assert_eq!(answer.columns, columns.into_iter().map(|(name, _)| name).collect::<Vec<_>>(), "{view}");
    }
}

#[test]
fn every_statement_of_the_document_works_as_printed() {
    let scratch = Scratch::new();
    let path = database(&scratch, &["m1_objects", "m5_mixed"]);
    let mut database = Database::open(&path).unwrap();
    let paths = database.paths(1).unwrap();
    database.write_paths(&paths).unwrap();
    drop(database);
    let mut database = Database::read(&path).unwrap();
    let statements = statements(&document());
    assert_eq!(statements.len(), 23);
    // Statements without results for these heaps; reli's JSON has no regions either.
    let empty = ["'App\\\\MyClass'", "canonical_node_id = 100", "node_id = 42", "region IS NOT NULL"];
    for statement in statements {
        // All acyclic paths: in a heap of objects that refer to each other, there are too many to list.
        if statement.contains("visited") {
            continue;
        }
        let answer = database.query(&statement).unwrap_or_else(|error| panic!("{error}: {statement}"));
        let may_be_empty = empty.iter().any(|part| statement.contains(part));
        assert!(may_be_empty || !answer.rows.is_empty(), "{statement}");
    }
}

#[test]
fn the_paths_without_a_cycle_are_found_as_printed() {
    let scratch = Scratch::new();
    let mut builder = GraphBuilder::new();
    let edge = |builder: &mut GraphBuilder, parent: Option<NodeId>, child, link: &[u8], is_tree| {
        let link = builder.string(link);
        builder.edge(Edge { parent, child, link, is_tree, strength: Strength::Strong });
    };
    for at in 0..50 {
        let node = builder.node(NodeType::OBJECT);
        edge(&mut builder, (at > 0).then(|| NodeId(at - 1)), node, b"next", true);
    }
    edge(&mut builder, Some(NodeId(42)), NodeId(7), b"back", false);
    edge(&mut builder, Some(NodeId(3)), NodeId(41), b"across", false);
    let mut database = Database::create(&scratch.path("paths.db")).unwrap();
    database.add_run(&builder.finish().unwrap(), "now").unwrap();
    let statements = statements(&document());
    let printed = statements.iter().find(|statement| statement.contains("visited")).unwrap();
    let answer = database.query(printed).unwrap();
    let depths: Vec<_> = answer.rows.iter().map(|row| row[1].clone()).collect();
    assert_eq!(depths, [SqlValue::Integer(5), SqlValue::Integer(42)]);
    let named = Parameters { run: Some(1), other: None, node: Some(42) };
    let found = database.ask(NamedQuery::find("all-paths").unwrap(), named).unwrap();
    assert_eq!(found, answer);
}

/// A graph of 40 nodes, each of which refers to the next three, and the last ones to the first; `roots` lead to the first.
fn round(roots: usize) -> Database {
    let mut builder = GraphBuilder::new();
    let nodes: Vec<NodeId> = (0..40).map(|_| builder.node(NodeType::OBJECT)).collect();
    let link = builder.string(b"next");
    let edge = |parent, child, is_tree| Edge { parent, child, link, is_tree, strength: Strength::Strong };
    for &root in &nodes[..roots] {
        builder.edge(edge(None, root, true));
    }
    for (at, &node) in nodes.iter().enumerate() {
        for step in 1..=3 {
            builder.edge(edge(Some(node), nodes[(at + step) % 40], step == 1 && at < 39));
        }
    }
    let scratch = Scratch::new();
    let mut database = Database::create(&scratch.path("round.db")).unwrap();
    database.add_run(&builder.finish().unwrap(), "now").unwrap();
    database
}

#[test]
fn the_paths_without_a_cycle_are_bounded() {
    let all = NamedQuery::find("all-paths").unwrap();
    let of = |node| Parameters { run: None, other: None, node: Some(node) };
    let found = round(1).ask(all, of(30)).unwrap();
    let depths: Vec<_> = found.rows.iter().map(|row| row[1].clone()).collect();
    assert_eq!(depths.len(), 100);
    assert_eq!((&depths[0], &depths[1]), (&SqlValue::Integer(10), &SqlValue::Integer(11)));
    // No root leads there, and there are endlessly many ways.
    let error = round(0).ask(all, of(30)).unwrap_err();
    assert!(
        error.to_string().starts_with("too many paths to the node: none of the first 1000000 "),
        "{error}"
    );
}

#[test]
fn missing_nodes_and_runs_are_errors() {
    let scratch = Scratch::new();
    let mut database = Database::read(&database(&scratch, &["m1_objects", "m5_mixed"])).unwrap();
    let mut refused = |name: &str, parameters| {
        let error = database.ask(NamedQuery::find(name).unwrap(), parameters).unwrap_err();
        (error.kind(), error.to_string())
    };
    let asked = Parameters { run: None, other: None, node: Some(-7) };
    for name in ["references", "path", "all-paths"] {
        let expected = (ErrorKind::UnknownNode, "unknown node: expected one of run 2, found -7".to_owned());
        assert_eq!(refused(name, asked), expected);
    }
    let expected = |run| (ErrorKind::Missing, format!("missing run {run}: the database has 1, 2"));
    assert_eq!(refused("types", Parameters { run: Some(9), ..asked }), expected(9));
    assert_eq!(refused("new-classes", Parameters { other: Some(8), ..asked }), expected(8));
}

/// The named queries give the same answers as the statements of the document, for their common columns.
#[test]
fn questions_with_names_answer_as_the_document_does() {
    let scratch = Scratch::new();
    let mut database = Database::read(&database(&scratch, &["m1_objects", "m5_mixed"])).unwrap();
    let parameters = Parameters { run: Some(1), other: Some(2), node: Some(42) };
    let pairs = [
        (
            "classes",
            "FROM class_objects_summary\nWHERE run_id = 1\n",
            [0, 1, 2].as_slice(),
            [0, 1, 2].as_slice(),
        ),
        ("duplicate-strings", "HAVING COUNT(*) > 1", &[1, 2, 3], &[1, 2, 3]),
        ("depths", "WITH RECURSIVE node_depth", &[0, 1, 2], &[0, 1, 2]),
        ("large-strings", "LIMIT 10;", &[0], &[0]),
        ("class-growth", "AS mem_diff", &[1, 2, 3, 4, 5, 6], &[1, 2, 3, 4, 5, 6]),
        ("references", "WHERE e.run_id = 1 AND e.child_node_id = 42", &[0, 1, 2], &[0, 1, 2]),
    ];
    let statements = statements(&document());
    for (name, part, ours, theirs) in pairs {
        let statement = statements.iter().rfind(|statement| statement.contains(part)).unwrap();
        let expected = database.query(statement).unwrap();
        let found = database.ask(NamedQuery::find(name).unwrap(), parameters).unwrap();
        assert!(!expected.rows.is_empty(), "{name}");
        assert_eq!(columns(&found, ours), columns(&expected, theirs), "{name}: {statement}");
    }
    for query in QUERIES {
        database.ask(query, parameters).unwrap_or_else(|error| panic!("{}: {error}", query.name));
    }
}

/// The numbers and texts of some columns, sorted, because rows of equal size have no order.
fn columns(answer: &QueryAnswer, columns: &[usize]) -> Vec<String> {
    let row = |row: &Vec<SqlValue>| {
        columns.iter().map(|&at| format!("{:?}", row[at])).collect::<Vec<_>>().join(" ")
    };
    let mut rows: Vec<_> = answer.rows.iter().map(row).collect();
    rows.sort();
    rows
}
