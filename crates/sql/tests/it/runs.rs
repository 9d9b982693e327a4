//! Several runs in one file, and the paths of their nodes.

use borehole_heap::{Graph as _, HeapGraph, TreeParents};
use borehole_sql::{AddStep, Database, ErrorKind, PathSizes, SqlValue};
use borehole_testkit::Scratch;

use crate::{database, heap};

fn count(database: &mut Database, statement: &str) -> i64 {
    match database.query(statement).unwrap().rows[..] {
        [ref row] => match row[..] {
            [SqlValue::Integer(count)] => count,
            ref other => panic!("{other:?}"),
        },
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn a_run_has_all_rows_of_its_graph() {
    let scratch = Scratch::new();
    let graph = heap("m5_mixed");
    let mut database = Database::read(&database(&scratch, &["m1_objects", "m5_mixed"])).unwrap();
    let counts = graph.counts();
    let tables = [
        ("context_nodes", counts.nodes),
        ("context_edges", counts.edges),
        ("context_node_locations", counts.locations),
        ("context_node_attributes", counts.attributes),
    ];
    for (table, expected) in tables {
        let rows = count(&mut database, &format!("SELECT COUNT(*) FROM {table} WHERE run_id = 2"));
        assert_eq!(usize::try_from(rows), Ok(expected), "{table}");
    }
    let runs = database.runs().unwrap();
    assert_eq!(runs.iter().map(|run| run.id).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(runs[1].nodes, counts.nodes as u64);
    // The sums are those of the locations.
    let difference = "SELECT (SELECT SUM(size) FROM context_node_locations WHERE run_id = 2) \
                      - (SELECT SUM(memory_usage) FROM location_types_summary WHERE run_id = 2)";
    assert_eq!(count(&mut database, difference), 0);
}

#[test]
fn progress_is_reported_per_step() {
    let scratch = Scratch::new();
    let mut database = Database::create(&scratch.path("heap.sqlite3")).unwrap();
    let mut steps = Vec::new();
    let run =
        database.add_run_in_steps(&heap("m1_objects"), "2026-11-22T00:00:00Z", &mut |step| steps.push(step));
    assert_eq!((run.unwrap().run, steps), (1, vec![AddStep::Rows]));
}

#[test]
fn a_deleted_run_leaves_the_others_as_they_were() {
    let scratch = Scratch::new();
    let path = database(&scratch, &["m1_objects", "m3_closures"]);
    let mut database = Database::open(&path).unwrap();
    for run in database.run_ids().unwrap() {
        let paths = database.paths(run).unwrap();
        database.write_paths(&paths).unwrap();
    }
    let before = count(&mut database, "SELECT COUNT(*) FROM node_paths WHERE run_id = 2");
    database.delete_run(1).unwrap();
    assert_eq!(database.runs().unwrap().len(), 1);
    for table in borehole_sql::schema::TABLES {
        assert_eq!(count(&mut database, &format!("SELECT COUNT(*) FROM {} WHERE run_id = 1", table.name)), 0);
    }
    assert_eq!(count(&mut database, "SELECT COUNT(*) FROM node_paths WHERE run_id = 2"), before);
    let error = database.delete_run(1).unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string()),
        (ErrorKind::Missing, "missing run 1: the database has 2".into())
    );
}

#[test]
fn paths_are_those_of_the_view_and_of_the_graph() {
    let scratch = Scratch::new();
    let path = database(&scratch, &["m4_generators"]);
    let mut database = Database::open(&path).unwrap();
    let paths = database.paths(1).unwrap();
    let sizes = paths.sizes();
    database.write_paths(&paths).unwrap();
    let written = "SELECT SUM(LENGTH(CAST(path AS BLOB))) FROM node_paths";
    assert_eq!(count(&mut database, written).cast_unsigned(), sizes.bytes);
    let nodes = heap("m4_generators").counts().nodes;
    assert_eq!(sizes, PathSizes { nodes: nodes as u64, ..sizes });
    let difference = "SELECT COUNT(*) FROM node_paths own LEFT JOIN v_node_paths view USING (run_id, node_id) \
                      WHERE own.path IS NOT view.path OR own.depth IS NOT view.depth";
    assert_eq!(count(&mut database, difference), 0);
    assert_eq!(count(&mut database, "SELECT COUNT(*) FROM v_node_paths"), i64::try_from(nodes).unwrap());
    let graph = heap("m4_generators");
    let parents = TreeParents::of(&graph);
    let deepest =
        database.query("SELECT node_id, path FROM node_paths ORDER BY depth DESC, node_id LIMIT 1").unwrap();
    let [SqlValue::Integer(node), SqlValue::Text(path)] = &deepest.rows[0][..] else { panic!("{deepest:?}") };
    let node = borehole_heap::NodeId(u32::try_from(*node).unwrap());
    let links = parents.path(node).into_iter().map(|node| graph.string(parents.link(node).unwrap()));
    let links: Vec<_> = links.map(String::from_utf8_lossy).collect();
    assert_eq!(*path, links.join(" -> "));
}

#[test]
fn the_compact_form_gives_the_same_paths() {
    let scratch = Scratch::new();
    let path = database(&scratch, &["m1_objects", "m4_generators"]);
    let mut database = Database::open(&path).unwrap();
    for run in [1, 2, 2] {
        let paths = database.paths(run).unwrap();
        database.write_parents(&paths).unwrap();
    }
    let difference = "SELECT COUNT(*) FROM v_node_paths view LEFT JOIN v_parent_paths own USING (run_id, node_id) \
                      WHERE own.path IS NOT view.path OR own.depth IS NOT view.depth";
    assert_eq!(count(&mut database, difference), 0);
    let [paths, nodes] =
        ["v_parent_paths", "context_nodes"].map(|rows| format!("SELECT COUNT(*) FROM {rows}"));
    assert_eq!(count(&mut database, &paths), count(&mut database, &nodes));
}

#[test]
fn nodes_may_have_any_numbers() {
    let scratch = Scratch::new();
    let path = database(&scratch, &["m1_objects"]);
    let mut sizes = Vec::new();
    // The largest 32-bit number, and the next one.
    for shift in [0, 4_294_960_000_i64, 1 << 40] {
        let connection = rusqlite::Connection::open(&path).unwrap();
        for (table, column) in [
            ("context_nodes", "node_id"),
            ("context_edges", "parent_node_id"),
            ("context_edges", "child_node_id"),
        ] {
            let shifted = format!("UPDATE {table} SET {column} = {column} + {shift}");
            connection.execute_batch(&shifted).unwrap();
        }
        let mut database = Database::open(&path).unwrap();
        let paths = database.paths(1).unwrap();
        sizes.push(paths.sizes());
        database.write_paths(&paths).unwrap();
        let difference = "SELECT COUNT(*) FROM node_paths own LEFT JOIN v_node_paths view USING (run_id, node_id) \
                          WHERE own.path IS NOT view.path OR own.depth IS NOT view.depth";
        assert_eq!(count(&mut database, difference), 0);
    }
    assert!(sizes.iter().all(|size| *size == sizes[0] && size.nodes > 100), "{sizes:?}");
}

#[test]
fn a_run_is_read_back_as_it_was_written() {
    let scratch = Scratch::new();
    for program in ["m1_objects", "m3_closures"] {
        let path = scratch.path(program);
        let graph = heap(program);
        Database::create(&path).unwrap().add_run(&graph, "2026-11-21T12:00:00Z").unwrap();
        let mut database = Database::read(&path).unwrap();
        let read = database.graph(1).unwrap();
        assert_eq!(read.created(), "2026-11-21T12:00:00Z");
        let lines = |graph: &HeapGraph| {
            let mut lines = Vec::new();
            borehole_heap::lines::write(graph, &mut lines).unwrap();
            let lines = String::from_utf8(lines).unwrap();
            // The first says when the graph was created; of the facts, a database keeps the text, not its type.
            let differs =
                |line: &str| line.contains("\"type\":\"heap\"") || line.contains("\"type\":\"attribute\"");
            lines.lines().filter(|line| !differs(line)).map(str::to_owned).collect::<Vec<_>>()
        };
        let (expected, found) = (lines(&graph), lines(&read));
        assert!(expected.len() > graph.counts().nodes + graph.counts().edges);
        assert!(expected == found, "{program}");
        assert_eq!(
            read.counts(),
            borehole_heap::GraphCounts { strings: read.counts().strings, ..graph.counts() }
        );
    }
}

#[test]
fn nodes_are_numbered_anew_where_their_numbers_have_gaps() {
    let scratch = Scratch::new();
    let path = scratch.path("gaps.db");
    let graph = heap("m1_objects");
    Database::create(&path).unwrap().add_run(&graph, "now").unwrap();
    let connection = rusqlite::Connection::open(&path).unwrap();
    let shifts = "UPDATE context_nodes SET node_id = node_id + 1000000 WHERE node_id >= 100; \
                  UPDATE context_edges SET parent_node_id = parent_node_id + 1000000 WHERE parent_node_id >= 100; \
                  UPDATE context_edges SET child_node_id = child_node_id + 1000000 WHERE child_node_id >= 100; \
                  UPDATE context_node_locations SET node_id = node_id + 1000000 WHERE node_id >= 100; \
                  UPDATE context_node_attributes SET node_id = node_id + 1000000 WHERE node_id >= 100;";
    connection.execute_batch(shifts).unwrap();
    let read = Database::read(&path).unwrap().graph(1).unwrap();
    let lines = |graph: &HeapGraph| {
        let mut lines = Vec::new();
        borehole_heap::json::write(graph, borehole_heap::json::JsonLayout::Compact, &mut lines).unwrap();
        serde_json::from_slice::<serde_json::Value>(&lines).unwrap()["context"]["objects_store"].take()
    };
    assert!(lines(&read) == lines(&graph));
    // A reference to a missing node is reported and leads nowhere.
    connection.execute_batch("UPDATE context_edges SET child_node_id = 103 WHERE id = 50").unwrap();
    let error = Database::read(&path).unwrap().graph(1).err().unwrap();
    assert_eq!(error.to_string(), "invalid node number 103 in run 1: missing node");
}
