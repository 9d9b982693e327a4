//! Problems of servers: names, locks, tables of others, and the end of a connection or of the server itself.

use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use borehole_heap::{Edge, GraphBuilder, HeapGraph, HeapSink as _, MemoryLocation, Strength};
use borehole_sql::{Access, Database, Error, ErrorKind, Server, SqlValue};
use borehole_testkit::servers::DatabaseServer;
use mysql::prelude::Queryable as _;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::{connect, rows, server};
use crate::heap;

/// A graph in which each of `names` is used for everything with a name.
pub(super) fn named(names: &[Vec<u8>]) -> HeapGraph {
    let mut builder = GraphBuilder::new();
    for name in names {
        let (node_type, location_type) = (builder.node_type(name), builder.location_type(name));
        let (node, string) = (builder.node(node_type), builder.string(name));
        let (parent, strength) = (None, Strength::Strong);
        builder.edge(Edge { parent, child: node, link: string, is_tree: true, strength });
        let location = MemoryLocation {
            class: Some(string),
            string: Some(string),
            refcount: Some(u32::MAX),
            ..MemoryLocation::new(location_type, u64::MAX - u64::from(node.0), 5 << 30)
        };
        builder.location(node, &location);
        builder.attribute_text(node, string, name, borehole_heap::ValueKind::guess(name, name));
    }
    builder.finish().unwrap()
}

pub(super) fn lines(graph: &HeapGraph) -> Vec<String> {
    let mut lines = Vec::new();
    borehole_heap::lines::write(graph, &mut lines).unwrap();
    // The first says when the graph was created.
    String::from_utf8(lines).unwrap().lines().skip(1).map(str::to_owned).collect()
}

/// Incompressible bytes.
pub(super) fn noise(length: usize) -> Vec<u8> {
    let mut state = 7_u64;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state.to_be_bytes()[0]
    };
    (0..length).map(next).collect()
}

pub(super) fn hostile_names_are_data(started: &DatabaseServer) {
    let mut served = connect(started);
    let same = |names: &[Vec<u8>], served: &mut Database| {
        let graph = named(names);
        let run = served.add_run(&graph, "now").unwrap().run;
        assert!(lines(&served.graph(run).unwrap()) == lines(&graph), "{names:?}");
        let classes =
            rows(served, &format!("SELECT COUNT(*) FROM class_objects_summary WHERE run_id = {run}"));
        let distinct = names.iter().collect::<std::collections::HashSet<_>>().len();
        assert_eq!(classes, [[SqlValue::Integer(distinct.try_into().unwrap())]], "{names:?}");
    };
    let known: [&[u8]; 12] = [
        b"'; DROP TABLE runs; --",
        b"\\N",
        b"\\",
        b"a\tb\nc\rd\\t",
        b"",
        b"a",
        b"a ",
        b"A",
        b"caf\xe9\0\xff",
        "\u{fffd}00 \u{1f4a9} \u{e9} e\u{301}".as_bytes(),
        &noise(100_000),
        &[b'x'; 2 << 20],
    ];
    same(&known.map(<[u8]>::to_vec), &mut served);
    let bytes = prop::collection::vec(any::<u8>(), 0..40);
    let signs = prop::collection::vec(prop::sample::select(br#"\'"`;%_$:?-N0 abAB"#.to_vec()), 0..12);
    let names = prop::collection::vec(prop_oneof![bytes, signs], 1..20);
    let served = std::cell::RefCell::new(served);
    let mut runner = TestRunner::new(Config { cases: 6, failure_persistence: None, ..Config::default() });
    runner
        .run(&names, |names| {
            same(&names, &mut served.borrow_mut());
            Ok(())
        })
        .unwrap();
}

/// Blocks other writers until it is dropped.
enum Lock {
    Postgresql(Box<postgres::Client>),
    Mysql(Box<mysql::Conn>),
}

impl Lock {
    fn hold(address: &str) -> Self {
        if address.starts_with("postgresql:") {
            let mut client = postgres::Client::connect(address, postgres::NoTls).unwrap();
            client.batch_execute("BEGIN; LOCK TABLE runs IN ACCESS EXCLUSIVE MODE").unwrap();
            return Self::Postgresql(Box::new(client));
        }
        let opts =
            mysql::OptsBuilder::from_opts(mysql::Opts::from_url(address).unwrap()).prefer_socket(false);
        let mut connection = mysql::Conn::new(opts).unwrap();
        connection.query_drop("LOCK TABLES runs WRITE").unwrap();
        Self::Mysql(Box::new(connection))
    }

    fn free(self) {
        match self {
            Self::Postgresql(client) => client.close().unwrap(),
            Self::Mysql(connection) => drop(connection),
        }
    }
}

pub(super) fn a_lock_is_waited_for_and_said(started: &DatabaseServer) {
    let mut served = connect(started);
    let before = served.run_ids().unwrap();
    let lock = Lock::hold(server(started).name());
    let error = served.add_run(&heap("m1_objects"), "now").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked, "{error}");
    lock.free();
    assert_eq!(served.run_ids().unwrap(), before);
    served.add_run(&heap("m1_objects"), "now").unwrap();
}

pub(super) fn somebody_else_s_tables_are_refused(started: &DatabaseServer) {
    let other = Server::parse(&started.address("other")).unwrap();
    if started.address("").starts_with("postgresql:") {
        let mut client = postgres::Client::connect(server(started).name(), postgres::NoTls).unwrap();
        client.batch_execute("CREATE DATABASE other TEMPLATE template0").unwrap();
        let mut client = postgres::Client::connect(other.name(), postgres::NoTls).unwrap();
        client.batch_execute("CREATE TABLE summary (a INT)").unwrap();
    } else {
        let opts = mysql::Opts::from_url(server(started).name()).unwrap();
        let opts = mysql::OptsBuilder::from_opts(opts).prefer_socket(false);
        let mut connection = mysql::Conn::new(opts).unwrap();
        connection.query_drop("CREATE DATABASE other").unwrap();
        connection.query_drop("CREATE TABLE other.summary (a INT)").unwrap();
    }
    let mut database = Database::connect(&other, Access::Write).unwrap();
    let error = database.add_run(&heap("m1_objects"), "now").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(error.to_string().starts_with("expected a heap database with a table summary of "), "{error}");
    // Nothing else is created.
    let tables = "SELECT table_name FROM information_schema.tables WHERE table_schema IN ('public', 'other')";
    assert_eq!(rows(&mut database, tables), [[SqlValue::Text("summary".to_owned())]]);
}

/// Adds runs until that fails. Returns the number of complete ones and the error. `break_it` is called after the first.
fn write_until_it_breaks(writer: Database, break_it: impl FnOnce()) -> (u64, Error) {
    let mut writer = writer;
    let (whole, first) = channel();
    let writing = thread::spawn(move || {
        let graph = heap("m1_objects");
        loop {
            match writer.add_run(&graph, "2026-11-21T12:00:00Z") {
                Ok(_) => drop(whole.send(())),
                Err(error) => return error,
            }
        }
    });
    first.recv().unwrap();
    thread::sleep(Duration::from_millis(60));
    break_it();
    let error = writing.join().unwrap();
    (1 + u64::try_from(first.try_iter().count()).unwrap(), error)
}

pub(super) fn nothing_half_is_left(mut started: DatabaseServer) {
    let before = u64::try_from(connect(&started).run_ids().unwrap().len()).unwrap();
    // The connection is ended.
    let (cut, error) = write_until_it_breaks(connect(&started), || cut_all_others(&mut connect(&started)));
    assert_eq!(error.kind(), ErrorKind::Connection, "{error}");
    assert!(error.to_string().starts_with("lost connection to the server: "), "{error}");
    check_runs(&started, before + cut);
    // The server is killed.
    let (killed, error) = write_until_it_breaks(connect(&started), || started.kill());
    assert_eq!(error.kind(), ErrorKind::Connection, "{error}");
    started.restart();
    check_runs(&started, before + cut + killed);
    connect(&started).add_run(&heap("m5_mixed"), "now").unwrap();
}

pub(super) fn a_full_disk_leaves_whole_runs(mut started: DatabaseServer) {
    let mut served = connect(&started);
    let graph = heap("m1_objects");
    let mut whole = 0;
    let error = loop {
        match served.add_run(&graph, "2026-11-21T12:00:00Z") {
            Ok(_) => whole += 1,
            Err(error) => break error,
        }
        assert!(whole < 200, "the disk is not full");
    };
    if started.log().contains("got signal") {
        // MariaDB may end itself when it can neither continue nor roll back; it is restarted with more space.
        assert_eq!(error.kind(), ErrorKind::Connection, "{error}");
        started.kill();
        started.grow_disk("256m");
        started.restart();
    } else {
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
        assert!(error.to_string().starts_with("the server's disk is full: "), "{error}");
    }
    assert!(whole > 0, "{error}");
    check_runs(&started, whole);
    connect(&started).delete_old_runs(&borehole_sql::Keep::Last(1)).unwrap();
    check_runs(&started, 1);
}

fn cut_all_others(database: &mut Database) {
    let others = match database.dialect() {
        borehole_sql::dialect::SqlDialect::Postgresql => {
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE pid <> pg_backend_pid() AND datname = current_database()"
        }
        _ => "SELECT id FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND db = DATABASE()",
    };
    let found = rows(database, others);
    assert_eq!(found.len(), 1);
    if let (SqlValue::Integer(id), false) = (&found[0][0], others.contains("pg_")) {
        database.query(&format!("KILL {id}")).unwrap();
    }
}

/// There are this many runs, or one more that was complete although its writer got no reply, and nothing else.
fn check_runs(started: &DatabaseServer, expected: u64) {
    let mut served = connect(started);
    let runs = served.runs().unwrap();
    let found = u64::try_from(runs.len()).unwrap();
    assert!((expected..=expected + 1).contains(&found), "{found} {expected}");
    let whole = heap("m1_objects");
    for run in runs.iter().filter(|run| run.created_at.starts_with("2026")) {
        assert!(lines(&served.graph(run.id).unwrap()).len() > 1000);
        assert_eq!(run.nodes, borehole_heap::Graph::counts(&whole).nodes as u64);
    }
    for table in borehole_sql::schema::TABLES {
        let stray =
            format!("SELECT COUNT(*) FROM {} WHERE run_id NOT IN (SELECT run_id FROM runs)", table.name);
        assert_eq!(rows(&mut served, &stray), [[SqlValue::Integer(0)]], "{}", table.name);
    }
}
