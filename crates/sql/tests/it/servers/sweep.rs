//! Servers that close their connections, or fall silent, at any byte of an exchange.

use std::time::Duration;

use borehole_heap::HeapGraph;
use borehole_sql::{Access, Database, Error, ErrorKind, Server};
use borehole_testkit::servers::{DATABASE, DatabaseServer, Proxy, ProxyFailure, ServerKind};

use super::connect;
use super::cuts::{check_whole, tree, wait_for_all_others};

/// The number of nodes of the heap that is loaded: few, so that handshakes and commits are met as often as rows.
const NODES: u32 = 40;

/// The number of bytes after which connections are closed, and after which they fall silent, which takes longer.
const CLOSED: u64 = 200;
const SILENT: u64 = 20;

/// The time limit for a server that falls silent.
const LIMIT: Duration = Duration::from_millis(200);

#[test]
fn postgresql_that_closes_at_any_byte_leaves_whole_runs() {
    at_any_byte(ServerKind::Postgresql, ProxyFailure::Close, CLOSED);
}

#[test]
fn mariadb_that_closes_at_any_byte_leaves_whole_runs() {
    at_any_byte(ServerKind::Mariadb, ProxyFailure::Close, CLOSED);
}

#[test]
fn mysql_that_closes_at_any_byte_leaves_whole_runs() {
    at_any_byte(ServerKind::Mysql, ProxyFailure::Close, CLOSED);
}

#[test]
fn postgresql_that_falls_silent_at_any_byte_is_given_up() {
    at_any_byte(ServerKind::Postgresql, ProxyFailure::Silence, SILENT);
}

#[test]
fn mariadb_that_falls_silent_at_any_byte_is_given_up() {
    at_any_byte(ServerKind::Mariadb, ProxyFailure::Silence, SILENT);
}

#[test]
fn mysql_that_falls_silent_at_any_byte_is_given_up() {
    at_any_byte(ServerKind::Mysql, ProxyFailure::Silence, SILENT);
}

/// Half of the moments are met plain, half of them encrypted.
fn at_any_byte(kind: ServerKind, failure: ProxyFailure, moments: u64) {
    let Some(started) = DatabaseServer::start(kind) else { return };
    if kind == ServerKind::Mysql {
        connect(&started).query("SET GLOBAL local_infile = 1").unwrap();
    }
    let graph = tree(NODES);
    connect(&started).add_run(&graph, "now").unwrap();
    for mode in ["disable", "require"] {
        let all = Proxy::start(started.port(), u64::MAX, failure);
        exchange(&address(kind, all.port(), mode), &graph, Duration::from_secs(30)).unwrap();
        let whole = all.passed();
        for moment in 0..moments / 2 {
            let most = whole * moment / (moments / 2);
            let proxy = Proxy::start(started.port(), most, failure);
            let limit = if failure == ProxyFailure::Silence { LIMIT } else { Duration::from_secs(30) };
            let before = connect(&started).run_ids().unwrap().len();
            let ended = exchange(&address(kind, proxy.port(), mode), &graph, limit);
            drop(proxy);
            wait_for_all_others(&started);
            let place = format!("{kind:?} {mode}, after {most} of {whole} bytes");
            check_end(ended.as_ref().err(), failure, &place);
            let runs = connect(&started).run_ids().unwrap();
            // A server may commit without an answer that arrives.
            let least = if ended.is_ok() { before + 1 } else { before };
            assert!(
                (least..=before + 1).contains(&runs.len()),
                "{place}: {before} before, {} now",
                runs.len()
            );
            check_whole(&started, &graph, &runs);
        }
    }
}

fn address(kind: ServerKind, port: u16, mode: &str) -> String {
    let (scheme, user) =
        if kind == ServerKind::Postgresql { ("postgresql", "postgres") } else { ("mysql", "root") };
    format!("{scheme}://{user}@127.0.0.1:{port}/{DATABASE}?sslmode={mode}")
}

/// Adds a run, and reads it.
fn exchange(address: &str, graph: &HeapGraph, limit: Duration) -> Result<(), Error> {
    let server = Server::parse(address).unwrap().with_timeout(limit);
    let mut database = Database::connect(&server, Access::Write)?;
    let added = database.add_run(graph, "now")?;
    added.unfinished.map_or(Ok(()), Err)?;
    database.query("SELECT * FROM context_node_locations")?;
    database.graph(added.run).map(drop)
}

fn check_end(error: Option<&Error>, failure: ProxyFailure, place: &str) {
    let Some(error) = error else { return };
    let said = error.to_string();
    assert_eq!(error.kind(), ErrorKind::Connection, "{place}: {said}");
    let beginnings = ["no connection to ", "lost connection to the server: "];
    assert!(beginnings.iter().any(|beginning| said.starts_with(beginning)), "{place}: {said}");
    if failure == ProxyFailure::Silence {
        assert!(said.contains("waited 0.2 s for "), "{place}: {said}");
    }
}
