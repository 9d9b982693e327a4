//! Concurrent writers, and writers without all privileges.

use std::thread;

use borehole_sql::{Access, Database, ErrorKind, Server, SqlValue};
use borehole_testkit::servers::{DATABASE, DatabaseServer};

use super::settings::fresh;
use super::{connect, rows, server};
use crate::heap;

/// Several programs often begin by writing to the same new database.
pub(super) fn who_comes_at_once_gets_through(started: &DatabaseServer) {
    let address = fresh(started, "together");
    let graph = heap("m1_objects");
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut served = Database::connect(&address, Access::Write).unwrap();
                for _ in 0..2 {
                    let added = served.add_run(&graph, "now").unwrap();
                    assert!(added.unfinished.is_none(), "{added:?}");
                }
                let paths = served.paths(1).unwrap();
                served.write_paths(&paths).unwrap();
            });
        }
    });
    let mut served = Database::connect(&address, Access::Read).unwrap();
    let runs = served.runs().unwrap();
    assert_eq!(runs.len(), 8);
    assert!(runs.iter().all(|run| run.nodes == runs[0].nodes && run.nodes > 100), "{runs:?}");
    let paths = rows(&mut served, "SELECT COUNT(*) FROM node_paths");
    assert_eq!(paths, [[SqlValue::Integer(runs[0].nodes.cast_signed())]]);
}

/// The rows are committed, even if others delay the statistics of a table for long.
pub(super) fn statistics_that_wait_cost_no_run(started: &DatabaseServer) {
    let mut other = postgres::Client::connect(server(started).name(), postgres::NoTls).unwrap();
    let mut served = connect(started);
    served.add_run(&heap("m1_objects"), "now").unwrap();
    other.batch_execute("BEGIN; LOCK TABLE context_edges IN SHARE UPDATE EXCLUSIVE MODE").unwrap();
    let added = served.add_run(&heap("m1_objects"), "now").unwrap();
    assert_eq!(added.unfinished.map(|error| error.kind()), Some(ErrorKind::Locked));
    assert_eq!(served.run_ids().unwrap().last(), Some(&added.run));
}

/// An existing run is never reported as missing, because users would add it again.
pub(super) fn who_may_make_no_index_has_a_run(started: &DatabaseServer) {
    let address = fresh(started, "modest");
    let mut root = connect(started);
    root.query("CREATE USER modest").unwrap();
    root.query("GRANT SELECT, INSERT, CREATE, DELETE ON modest.* TO modest").unwrap();
    let modest = Server::parse(&address.name().replace("root@", "modest@")).unwrap();
    let added = Database::connect(&modest, Access::Write).unwrap().add_run(&heap("m1_objects"), "now");
    let added = added.unwrap();
    let why = added.unfinished.expect("the user may not create indexes").to_string();
    assert!(why.contains("INDEX"), "{why}");
    let mut served = Database::connect(&address, Access::Write).unwrap();
    assert_eq!(served.run_ids().unwrap(), [added.run]);
    // A writer with the privileges repairs it.
    let added = served.add_run(&heap("m1_objects"), "now").unwrap();
    assert!(added.unfinished.is_none(), "{added:?}");
    assert!(!rows(&mut served, "SELECT * FROM v_arrays").is_empty());
    assert_ne!(address.name(), started.address(DATABASE));
}
