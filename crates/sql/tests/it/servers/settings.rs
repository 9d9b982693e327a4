//! Settings of servers, which must not change results.

use borehole_heap::HeapGraph;
use borehole_sql::dialect::SqlDialect;
use borehole_sql::{Access, Database, Error, ErrorKind, Server, SqlValue};
use borehole_testkit::servers::{DATABASE, DatabaseServer};

use super::faults::{lines, named};
use super::{connect, rows, server};
use crate::heap;

/// A database of its own for a test.
pub(super) fn fresh(started: &DatabaseServer, name: &str) -> Server {
    connect(started).query(&format!("CREATE DATABASE {name}")).unwrap();
    Server::parse(&started.address(name)).unwrap()
}

pub(super) fn names_are_those_of_the_graph(started: &DatabaseServer) {
    let graph = named(&["Größe", "日本", "\u{1f4a9}"].map(|name| name.as_bytes().to_vec()));
    let mut root = connect(started);
    root.query("CREATE USER anybody").unwrap();
    root.query(&format!("GRANT ALL ON {DATABASE}.* TO anybody")).unwrap();
    // The server does not run it for privileged users.
    root.query("SET GLOBAL init_connect = 'SET NAMES latin1'").unwrap();
    let address = server(started).name().replace("root@", "anybody@");
    for takes_files in [1, 0] {
        root.query(&format!("SET GLOBAL local_infile = {takes_files}")).unwrap();
        let mut served = Database::connect(&Server::parse(&address).unwrap(), Access::Write).unwrap();
        let run = served.add_run(&graph, "now").unwrap().run;
        let read = |database: &mut Database| lines(&database.graph(run).unwrap()) == lines(&graph);
        assert!(read(&mut served) && read(&mut root), "{takes_files}");
    }
    root.query("SET GLOBAL init_connect = ''").unwrap();
}

pub(super) fn what_is_longer_than_a_packet_is_read_back(started: &DatabaseServer) {
    let mut root = connect(started);
    let before = ["max_allowed_packet", "local_infile"].map(|name| {
        let value = rows(&mut root, &format!("SELECT @@GLOBAL.{name}")).remove(0).remove(0);
        let SqlValue::Integer(value) = value else { panic!("{name}: {value:?}") };
        format!("SET GLOBAL {name} = {value}")
    });
    let long = |lengths: &[usize]| {
        let name = |(number, &length): (usize, &usize)| {
            let mut name = number.to_string().into_bytes();
            name.resize(length, b'x');
            name
        };
        named(&lengths.iter().enumerate().map(name).collect::<Vec<_>>())
    };
    let mut is_read_back = |packet_bytes: usize, takes_files: u8, graph: &HeapGraph| {
        root.query(&format!("SET GLOBAL max_allowed_packet = {packet_bytes}")).unwrap();
        root.query(&format!("SET GLOBAL local_infile = {takes_files}")).unwrap();
        let mut served = connect(started);
        let run = served.add_run(graph, "now")?.run;
        assert!(lines(&served.graph(run).unwrap()) == lines(graph), "{takes_files}");
        Ok(())
    };
    // A file has no limit.
    is_read_back(1 << 20, 1, &long(&[3 << 20])).unwrap();
    // Rows that exceed the size of a statement take several.
    is_read_back(1 << 20, 0, &long(&[60_000, 300_000, 60_000])).unwrap();
    is_read_back(64 << 10, 0, &long(&[1500; 600])).unwrap();
    let error: Error = is_read_back(1 << 20, 0, &long(&[60_000, 400_000])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    let said = error.to_string();
    assert!(said.starts_with("context_node_locations: row too large: expected at most 1048"), "{said}");
    assert!(said.ends_with("; raise the server's max_allowed_packet"), "{said}");
    for statement in before {
        root.query(&statement).unwrap();
    }
}

/// Hosted servers require keys, and old ones create tables without transactions.
pub(super) fn tables_are_whole_and_have_keys(started: &DatabaseServer) {
    let address = fresh(started, "chosen");
    let mut root = connect(started);
    let demand = match root.dialect() {
        SqlDialect::Mariadb => "innodb_force_primary_key",
        _ => "sql_require_primary_key",
    };
    root.query("SET GLOBAL default_storage_engine = MyISAM").unwrap();
    root.query(&format!("SET GLOBAL {demand} = 1")).unwrap();
    let mut served = Database::connect(&address, Access::Write).unwrap();
    let added = served.add_run(&heap("m1_objects"), "now").unwrap();
    assert!(added.unfinished.is_none(), "{added:?}");
    root.query("SET GLOBAL default_storage_engine = InnoDB").unwrap();
    root.query(&format!("SET GLOBAL {demand} = 0")).unwrap();
    let engines = "SELECT DISTINCT engine FROM information_schema.tables \
                   WHERE table_schema = 'chosen' AND table_type = 'BASE TABLE'";
    assert_eq!(rows(&mut served, engines), [[SqlValue::Text("InnoDB".to_owned())]]);
    // The keys are invisible.
    assert_eq!(served.query("SELECT * FROM summary").unwrap().columns, ["run_id", "key", "value"]);
}
