//! Servers that do not answer, and what is not a server.

use std::net::TcpListener;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use borehole_sql::{Access, Database, Error, ErrorKind, Server, SqlValue};
use borehole_testkit::servers::{DATABASE, DatabaseServer, ServerKind};

use super::cuts::many_nodes;
use super::{rows, server};

fn refused(address: &str) -> String {
    let error = Database::connect(&Server::parse(address).unwrap(), Access::Read).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Connection, "{error}");
    error.to_string()
}

#[test]
fn a_program_that_accepts_and_is_silent_is_given_up() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = silent.local_addr().unwrap();
    for (scheme, key, waited_for) in [
        ("postgresql", "connect_timeout", "the answer of a PostgreSQL server"),
        ("mysql", "connect_timeout", "the greeting of a MySQL or MariaDB server"),
        ("mariadb", "connect-timeout", "the greeting of a MySQL or MariaDB server"),
    ] {
        for mode in ["disable", "prefer", "require"] {
            let said = refused(&format!("{scheme}://me@{place}/heaps?{key}=1&sslmode={mode}"));
            let expected = format!(": waited 1 s for {waited_for}");
            assert!(said.starts_with("no connection to ") && said.ends_with(&expected), "{said}");
        }
        let said = refused(&format!("{scheme}://me@{place}/heaps?{key}=soon"));
        assert!(said.ends_with(": expected connect_timeout in whole seconds, found soon"), "{said}");
        let address = format!("{scheme}://me@{place}/heaps");
        let hasty = Server::parse(&address).unwrap().with_timeout(Duration::from_millis(500));
        let said = Database::connect(&hasty, Access::Read).err().unwrap().to_string();
        assert!(said.contains(": waited 0.5 s for "), "{said}");
    }
}

#[test]
fn the_port_of_another_database_is_given_up() {
    let (Some(one), Some(other)) =
        (DatabaseServer::start(ServerKind::Postgresql), DatabaseServer::start(ServerKind::Mariadb))
    else {
        return;
    };
    let at = |scheme: &str, server: &DatabaseServer| {
        format!("{scheme}://me@127.0.0.1:{}/{DATABASE}?connect_timeout=1", server.port())
    };
    let said = refused(&at("mysql", &one));
    assert!(said.contains("waited 1 s for the greeting of a MySQL or MariaDB server"), "{said}");
    for mode in ["disable", "prefer"] {
        let said = refused(&format!("{}&sslmode={mode}", at("postgresql", &other)));
        // The other server greets in its own way, and ends the connection soon after.
        let complaints = [": expected a PostgreSQL server, found", ": error communicating with the server"];
        assert!(complaints.iter().any(|complaint| said.contains(complaint)), "{said}");
    }
}

#[test]
fn postgresql_that_stops_is_given_up() {
    a_silent_server(ServerKind::Postgresql, "SELECT CAST(pg_sleep(7) AS TEXT)");
}

#[test]
fn mariadb_that_stops_is_given_up() {
    a_silent_server(ServerKind::Mariadb, "SELECT SLEEP(7)");
}

#[test]
fn mysql_that_stops_is_given_up() {
    a_silent_server(ServerKind::Mysql, "SELECT SLEEP(7)");
}

/// How long a server is waited for: on a busy machine, one that works takes more than a second to answer a new connection.
const PATIENCE: Duration = Duration::from_secs(3);

fn a_silent_server(kind: ServerKind, long: &str) {
    let Some(started) = DatabaseServer::start(kind) else { return };
    let hasty = server(&started).with_timeout(PATIENCE);
    let connect = || Database::connect(&hasty, Access::Write).unwrap();
    let patient = || Database::connect(&server(&started), Access::Write).unwrap();
    let frozen = |mut database: Database, mut act: Box<dyn FnMut(&mut Database) -> Error>| {
        started.freeze(true);
        let error = act(&mut database);
        // Its end may be a word to the server.
        drop(database);
        started.freeze(false);
        assert_eq!(error.kind(), ErrorKind::Connection, "{error}");
        error.to_string()
    };
    // A server that works is waited for.
    assert_eq!(rows(&mut connect(), long).len(), 1);
    let said = frozen(connect(), Box::new(|database| database.query("SELECT 1").unwrap_err()));
    let expected = "lost connection to the server: waited 3 s for the answer to SELECT 1, and it does not answer a \
                    new connection";
    assert_eq!(said, expected);
    let (graph, count) = (many_nodes(), "SELECT COUNT(*) FROM context_nodes");
    patient().add_run(&graph, "now").unwrap();
    let before = rows(&mut patient(), count);
    let (begun, begin) = channel();
    let mut writer = connect();
    let error = thread::scope(|scope| {
        let writing = scope.spawn(|| {
            begun.send(()).unwrap();
            loop {
                if let Some(error) = writer.add_run(&graph, "now").map_or_else(Some, |added| added.unfinished)
                {
                    return error;
                }
            }
        });
        begin.recv().unwrap();
        thread::sleep(Duration::from_millis(200));
        started.freeze(true);
        let error = writing.join().unwrap();
        started.freeze(false);
        error
    });
    assert_eq!(error.kind(), ErrorKind::Connection, "{error}");
    let said = error.to_string();
    assert!(said.starts_with("lost connection to the server: waited 3 s for "), "{said}");
    drop(writer);
    let whole = rows(&mut patient(), count);
    let [SqlValue::Integer(whole), SqlValue::Integer(before)] = [&whole[0][0], &before[0][0]] else {
        panic!()
    };
    assert!(whole % before == 0, "{whole} {before}");
}
