//! The tests on real servers: PostgreSQL, MariaDB and MySQL.

mod cuts;
mod encryption;
mod faults;
mod limits;
mod lists;
mod settings;
mod sweep;
mod writers;

use borehole_heap::{Graph as _, HeapGraph};
use borehole_sql::dialect::SqlDialect;
use borehole_sql::schema::{SqlType, TABLES};
use borehole_sql::{Access, Database, ErrorKind, Keep, Parameters, QUERIES, QueryAnswer, Server, SqlValue};
use borehole_testkit::Scratch;
use borehole_testkit::servers::{DATABASE, DatabaseServer, GUARDED_PASSWORD, GUARDED_USER, ServerKind};

use crate::{database, document, heap};

fn server(server: &DatabaseServer) -> Server {
    Server::parse(&server.address(DATABASE)).unwrap()
}

fn connect(started: &DatabaseServer) -> Database {
    Database::connect(&server(started), Access::Write).unwrap()
}

#[test]
fn postgresql() {
    everything(ServerKind::Postgresql);
}

#[test]
fn mariadb() {
    everything(ServerKind::Mariadb);
}

#[test]
fn mysql() {
    everything(ServerKind::Mysql);
}

/// MySQL accepts no files by default; then rows are inserted as in MariaDB.
#[test]
fn mysql_that_takes_files() {
    let Some(started) = DatabaseServer::start(ServerKind::Mysql) else { return };
    let loads = "SHOW GLOBAL STATUS LIKE 'Com_load'";
    let count = |number: &str| [["Com_load", number].map(|text| SqlValue::Text(text.to_owned())).to_vec()];
    let mut served = connect(&started);
    served.add_run(&heap("m1_objects"), "2026-11-21T11:00:00Z").unwrap();
    assert_eq!(rows(&mut served, loads), count("0"));
    served.delete_run(1).unwrap();
    served.query("SET GLOBAL local_infile = 1").unwrap();
    drop(served);
    let mut served = connect(&started);
    served.add_run(&heap("m1_objects"), "2026-11-21T11:00:00Z").unwrap();
    assert_eq!(rows(&mut served, loads), count("7"));
    drop(served);
    faults::hostile_names_are_data(&started);
    faults::a_lock_is_waited_for_and_said(&started);
    faults::nothing_half_is_left(started);
}

#[test]
fn a_server_without_room_keeps_what_it_has() {
    // InnoDB allocates megabytes for each table.
    for (kind, size) in
        [(ServerKind::Postgresql, "24m"), (ServerKind::Mariadb, "96m"), (ServerKind::Mysql, "96m")]
    {
        let Some(started) = DatabaseServer::start_on_small_disk(kind, size) else { continue };
        faults::a_full_disk_leaves_whole_runs(started);
    }
}

fn everything(kind: ServerKind) {
    let Some(started) = DatabaseServer::start(kind) else { return };
    those_who_may_not_are_told_what_to_do(&started);
    encryption::a_connection_is_as_safe_as_asked(&started);
    answers_are_those_of_sqlite(&started);
    faults::hostile_names_are_data(&started);
    faults::a_lock_is_waited_for_and_said(&started);
    faults::somebody_else_s_tables_are_refused(&started);
    writers::who_comes_at_once_gets_through(&started);
    lists::paths_in_a_list_on_a_server(&started);
    lists::objects_are_found_by_class_on_a_server(&started);
    match kind {
        ServerKind::Postgresql => writers::statistics_that_wait_cost_no_run(&started),
        ServerKind::Mariadb | ServerKind::Mysql => {
            writers::who_may_make_no_index_has_a_run(&started);
            settings::names_are_those_of_the_graph(&started);
            settings::what_is_longer_than_a_packet_is_read_back(&started);
            settings::tables_are_whole_and_have_keys(&started);
        }
    }
    faults::nothing_half_is_left(started);
}

fn those_who_may_not_are_told_what_to_do(started: &DatabaseServer) {
    let address = started.address("nowhere");
    let refused = |address: &Server| Database::connect(address, Access::Read).err().unwrap();
    let error = refused(&Server::parse(&address).unwrap());
    assert_eq!(error.kind(), ErrorKind::Missing, "{error}");
    assert!(error.to_string().starts_with("missing database: "), "{error}");

    let kind = Server::parse(&address).unwrap().kind();
    let guarded = Server::new(kind, "127.0.0.1", Some(started.port()), DATABASE, GUARDED_USER);
    let error = refused(&guarded);
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    assert!(error.to_string().starts_with("invalid user, or missing password: "), "{error}");
    let error = refused(&guarded.clone().with_password("close sesame"));
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    assert!(error.to_string().starts_with("invalid user or password: "), "{error}");
    assert!(!error.to_string().contains("close sesame"), "{error}");
    let mut database = Database::connect(&guarded.with_password(GUARDED_PASSWORD), Access::Read).unwrap();
    // There is nothing yet, and reading creates nothing.
    let error = database.runs().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(error.to_string().starts_with("expected a heap database with a table runs of "), "{error}");
    assert!(database.query("CREATE TABLE anything (number INT)").is_err());

    // The address of a port without a listener.
    let nobody = Server::new(kind, "127.0.0.1", Some(1), DATABASE, GUARDED_USER);
    let error = refused(&nobody);
    assert_eq!(error.kind(), ErrorKind::Connection, "{error}");
    assert!(error.to_string().starts_with("no connection to "), "{error}");
}

pub(super) fn rows(database: &mut Database, statement: &str) -> Vec<Vec<SqlValue>> {
    database.query(statement).unwrap_or_else(|error| panic!("{error}: {statement}")).rows
}

fn answers_are_those_of_sqlite(started: &DatabaseServer) {
    let scratch = Scratch::new();
    let programs = ["m1_objects", "m5_mixed"];
    let mut file = Database::read(&database(&scratch, &programs)).unwrap();
    let mut served = connect(started);
    for (run, program) in (1..).zip(programs) {
        let added = served.add_run(&heap(program), "2026-11-21T12:00:00Z").unwrap();
        assert_eq!((added.run, added.unfinished.map(|error| error.to_string())), (run, None));
    }
    assert_eq!(served.runs().unwrap(), file.runs().unwrap());
    for query in QUERIES {
        for node in [0, 42, 300] {
            let parameters = Parameters { run: Some(2), other: Some(1), node: Some(node) };
            let ask = |database: &mut Database| -> QueryAnswer {
                database.ask(query, parameters).unwrap_or_else(|error| panic!("{}: {error}", query.name))
            };
            let (expected, found) = (ask(&mut file), ask(&mut served));
            assert_eq!(found.columns, expected.columns, "{}", query.name);
            assert_eq!(found.rows, expected.rows, "{}", query.name);
        }
    }
    the_tables_have_their_columns(&mut served);
    for (run, program) in (1..).zip(programs) {
        assert!(lines(&served.graph(run).unwrap()) == lines(&file.graph(run).unwrap()), "{program}");
    }
    for view in ["v_node_paths", "v_arrays"] {
        let statement = format!("SELECT * FROM {view} WHERE run_id = 1 ORDER BY run_id, node_id");
        let (found, expected) = (rows(&mut served, &statement), rows(&mut file, &statement));
        assert!(found == expected && !found.is_empty(), "{view}");
    }
    what_is_printed_works(&mut file, &mut served);
    let paths = served.paths(1).unwrap();
    served.write_paths(&paths).unwrap();
    served.write_paths(&paths).unwrap();
    let mut written = rows(&mut served, "SELECT * FROM node_paths ORDER BY run_id, node_id");
    assert_eq!(
        written,
        rows(&mut file, "SELECT * FROM v_node_paths WHERE run_id = 1 ORDER BY run_id, node_id")
    );
    served.write_parents(&paths).unwrap();
    served.write_parents(&paths).unwrap();
    assert!(rows(&mut served, "SELECT * FROM v_parent_paths ORDER BY run_id, node_id") == written);
    let last = written.pop().unwrap();
    let [SqlValue::Integer(run), SqlValue::Integer(node), ..] = last[..] else { panic!("{last:?}") };
    let one = format!("SELECT * FROM v_parent_paths WHERE run_id = {run} AND node_id = {node}");
    assert_eq!(rows(&mut served, &one), [last]);
    let steps = "SELECT COUNT(*) FROM node_parents parents JOIN node_paths paths \
                 ON paths.run_id = parents.run_id AND paths.node_id = parents.node_id AND paths.depth = parents.depth";
    assert_eq!(rows(&mut served, steps), rows(&mut served, "SELECT COUNT(*) FROM node_paths"));
    runs_are_deleted(&mut served);
}

/// The statements of reli's document that suit all dialects work as printed; all others are named queries.
fn what_is_printed_works(file: &mut Database, served: &mut Database) {
    let printed = document::statements(&document::document());
    let of_sqlite = ["printf(", "||", "instr(", "AS INTEGER)", "AS REAL)"];
    let plain: Vec<_> =
        printed.iter().filter(|text| !of_sqlite.iter().any(|word| text.contains(word))).collect();
    assert_eq!((printed.len(), plain.len()), (23, 15));
    for statement in plain {
        let sorted = |database: &mut Database| {
            let rows = rows(database, statement);
            let mut rows: Vec<String> = rows.iter().map(|row| format!("{row:?}")).collect();
            rows.sort();
            rows
        };
        let (found, expected) = (sorted(served), sorted(file));
        // Among rows of equal size, the ones before a limit are arbitrary.
        let is_same =
            if statement.contains("LIMIT") { found.len() == expected.len() } else { found == expected };
        assert!(is_same, "{statement}: {found:#?} {expected:#?}");
    }
}

/// Names, types and nullability, as the server describes them.
fn the_tables_have_their_columns(served: &mut Database) {
    let dialect = served.dialect();
    let (text, seen) = match dialect {
        SqlDialect::Postgresql => ("text", "1 = 1"),
        _ => ("longtext", "extra NOT LIKE '%INVISIBLE%'"),
    };
    for table in TABLES {
        let statement = format!(
            "SELECT column_name, data_type, is_nullable FROM information_schema.columns \
             WHERE table_name = '{}' AND table_schema NOT IN ('information_schema', 'pg_catalog') AND {seen} \
             ORDER BY ordinal_position",
            table.name
        );
        let columns = table.columns.iter().map(|column| {
            let kind =
                if matches!(column.kind, SqlType::Serial | SqlType::Integer) { "bigint" } else { text };
            let is_nullable = if column.nullable { "YES" } else { "NO" };
            [column.name, kind, is_nullable].map(|text| SqlValue::Text(text.to_owned())).to_vec()
        });
        assert_eq!(rows(served, &statement), columns.collect::<Vec<_>>(), "{}", table.name);
    }
}

fn runs_are_deleted(served: &mut Database) {
    let error = served.delete_run(7).unwrap_err();
    assert_eq!(
        (error.kind(), &*error.to_string()),
        (ErrorKind::Missing, "missing run 7: the database has 1, 2")
    );
    assert_eq!(served.delete_old_runs(&Keep::Last(2)).unwrap(), [0_i64; 0]);
    assert_eq!(served.delete_old_runs(&Keep::Since("2026-11-21T11:59:59Z".to_owned())).unwrap(), [0_i64; 0]);
    assert_eq!(served.delete_old_runs(&Keep::Last(1)).unwrap(), [1]);
    assert_eq!(rows(served, "SELECT COUNT(*) FROM node_paths"), [[SqlValue::Integer(0)]]);
    assert_eq!(served.run_ids().unwrap(), [2]);
    assert_eq!(served.delete_old_runs(&Keep::Since("2026-11-21T12:00:01Z".to_owned())).unwrap(), [2]);
    assert_eq!(rows(served, "SELECT COUNT(*) FROM context_edges"), [[SqlValue::Integer(0)]]);
}

fn lines(graph: &HeapGraph) -> String {
    let mut lines = Vec::new();
    borehole_heap::lines::write(graph, &mut lines).unwrap();
    assert!(graph.counts().nodes > 100);
    String::from_utf8(lines).unwrap()
}
