//! Connections and servers that end at any moment of a load.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use borehole_heap::{Edge, GraphBuilder, HeapGraph, HeapSink as _, MemoryLocation, NodeType, Strength};
use borehole_sql::dialect::SqlDialect;
use borehole_sql::{AddedRun, Database, Error, ErrorKind, SqlValue};
use borehole_testkit::servers::{DatabaseServer, ServerKind};

use super::{connect, rows};

/// The number of nodes of the heap that is loaded.
const NODES: u32 = 20_000;

/// The number of moments, spread over a load, at which it is cut.
const MOMENTS: u32 = 20;

/// At every how many of them the server is killed too, which takes longer.
const MOMENTS_PER_KILL: u32 = 4;

/// The time after which a writer that has not ended hangs.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn postgresql_that_ends_at_any_moment_leaves_whole_runs() {
    at_any_moment(ServerKind::Postgresql);
}

#[test]
fn mariadb_that_ends_at_any_moment_leaves_whole_runs() {
    at_any_moment(ServerKind::Mariadb);
}

#[test]
fn mysql_that_ends_at_any_moment_leaves_whole_runs() {
    at_any_moment(ServerKind::Mysql);
}

fn at_any_moment(kind: ServerKind) {
    let Some(mut started) = DatabaseServer::start(kind) else { return };
    let graph = many_nodes();
    if kind == ServerKind::Mysql {
        // Rows as a file are what its connection is most often busy with.
        connect(&started).query("SET GLOBAL local_infile = 1").unwrap();
    }
    let begin = Instant::now();
    connect(&started).add_run(&graph, "now").unwrap();
    let whole = begin.elapsed();
    let moments = moments();
    for moment in 0..moments {
        cut_at(&mut started, &graph, whole * moment / moments, cut_all_others);
        if moment % MOMENTS_PER_KILL == 0 {
            cut_at(&mut started, &graph, whole * moment / moments, |started| {
                started.kill();
                started.restart();
            });
        }
    }
    let added = connect(&started).add_run(&graph, "now").unwrap();
    assert!(added.unfinished.is_none(), "{added:?}");
}

/// `BOREHOLE_CUTS` raises the number, for more than a test run has time for.
fn moments() -> u32 {
    std::env::var("BOREHOLE_CUTS").ok().and_then(|count| count.parse().ok()).unwrap_or(MOMENTS)
}

pub(super) fn many_nodes() -> HeapGraph {
    tree(NODES)
}

/// A tree whose nodes all have memory and a fact.
pub(super) fn tree(nodes: u32) -> HeapGraph {
    let mut builder = GraphBuilder::new();
    let (link, key) = (builder.string(b"holds"), builder.string(b"#count"));
    let location_type = builder.location_type(b"ZendStringMemoryLocation");
    let content = builder.string(&[b'x'; 400]);
    for number in 0..nodes {
        let child = builder.node(NodeType::OBJECT);
        let parent = number.checked_sub(1).map(|above| borehole_heap::NodeId(above / 8));
        builder.edge(Edge { parent, child, link, is_tree: true, strength: Strength::Strong });
        let location = MemoryLocation::new(location_type, u64::from(number) * 128, 128);
        builder.location(child, &MemoryLocation { string: Some(content), ..location });
        builder.attribute_text(child, key, b"7", borehole_heap::ValueKind::guess(b"#count", b"7"));
    }
    builder.finish().unwrap()
}

/// Begins a load and calls `cut` after `delay`. The load ends with a run or with an error, and either way all runs are
/// whole.
#[expect(clippy::print_stderr, clippy::exit, reason = "a panic would wait for the thread that hangs")]
fn cut_at(
    started: &mut DatabaseServer,
    graph: &HeapGraph,
    delay: Duration,
    cut: impl FnOnce(&mut DatabaseServer),
) {
    let before = connect(started).run_ids().unwrap().len();
    let mut writer = connect(started);
    let ended = thread::scope(|scope| {
        let (ending, end) = channel();
        scope.spawn(move || {
            // Nobody receives it after the time limit.
            let _ = ending.send(writer.add_run(graph, "now"));
        });
        thread::sleep(delay);
        cut(started);
        match end.recv_timeout(PATIENCE) {
            Ok(ended) => ended,
            Err(RecvTimeoutError::Timeout) => {
                eprintln!("the writer hangs {delay:?} after its start");
                started.kill();
                std::process::exit(101);
            }
            Err(RecvTimeoutError::Disconnected) => panic!("the writer panics {delay:?} after its start"),
        }
    });
    check_end(ended.as_ref(), delay);
    wait_for_all_others(started);
    let runs = connect(started).run_ids().unwrap();
    // A server may end between its commit and its reply.
    let most = before + 1;
    let least = if ended.is_ok() { most } else { before };
    assert!((least..=most).contains(&runs.len()), "{delay:?}: {before} runs before, {} now", runs.len());
    check_whole(started, graph, &runs);
}

fn check_end(ended: Result<&AddedRun, &Error>, delay: Duration) {
    let error = match ended {
        Ok(added) => added.unfinished.as_ref(),
        Err(error) => Some(error),
    };
    if let Some(error) = error {
        assert_eq!(error.kind(), ErrorKind::Connection, "{delay:?}: {error}");
        assert!(error.to_string().starts_with("lost connection to the server: "), "{delay:?}: {error}");
    }
}

/// Ends the connections of all others, if the load has not ended before.
fn cut_all_others(started: &mut DatabaseServer) {
    let mut database = connect(started);
    if database.dialect() == SqlDialect::Postgresql {
        let others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                      WHERE pid <> pg_backend_pid() AND datname = current_database()";
        rows(&mut database, others);
        return;
    }
    let others =
        "SELECT id FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND db = DATABASE()";
    for other in rows(&mut database, others) {
        let SqlValue::Integer(id) = other[0] else { panic!("{other:?}") };
        // It may have ended meanwhile.
        let _ = database.query(&format!("KILL {id}"));
    }
}

/// Waits until the server has ended the connections of all others: a commit that it was told takes effect before that, and
/// perhaps after the writer gave up.
pub(super) fn wait_for_all_others(started: &DatabaseServer) {
    let mut database = connect(started);
    let others = if database.dialect() == SqlDialect::Postgresql {
        "SELECT COUNT(*) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database() \
         AND backend_type = 'client backend'"
    } else {
        "SELECT COUNT(*) FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND db = DATABASE()"
    };
    let begin = Instant::now();
    while rows(&mut database, others) != [[SqlValue::Integer(0)]] {
        assert!(begin.elapsed() < PATIENCE, "connections are left");
        thread::sleep(Duration::from_millis(1));
    }
}

/// The last run has all its rows, and no row belongs to none.
pub(super) fn check_whole(started: &DatabaseServer, graph: &HeapGraph, runs: &[i64]) {
    let mut database: Database = connect(started);
    let counts = borehole_heap::Graph::counts(graph);
    let run = runs.last().unwrap();
    for (table, expected) in [
        ("context_nodes", counts.nodes),
        ("context_edges", counts.edges),
        ("context_node_locations", counts.locations),
        ("context_node_attributes", counts.attributes),
        ("location_types_summary", 1),
    ] {
        let count = |of: &str| format!("SELECT COUNT(*) FROM {table} WHERE run_id {of}");
        let expected = SqlValue::Integer(expected.try_into().unwrap());
        assert_eq!(rows(&mut database, &count(&format!("= {run}"))), [[expected]], "{table}");
        let stray = count("NOT IN (SELECT run_id FROM runs)");
        assert_eq!(rows(&mut database, &stray), [[SqlValue::Integer(0)]], "{table}");
    }
    // Each load meets tables of the same size.
    while database.run_ids().unwrap().len() > 1 {
        database.delete_old_runs(&borehole_sql::Keep::Last(1)).unwrap();
    }
}
