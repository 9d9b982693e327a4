//! Heaps whose tree is a long list, and heaps with many objects.

use borehole_heap::{
    Edge, GraphBuilder, HeapGraph, HeapSink as _, MemoryLocation, NodeId, NodeType, Strength,
};
use borehole_sql::dialect::SqlDialect;
use borehole_sql::{Access, Database, NamedQuery, Parameters, SqlValue};
use borehole_testkit::Scratch;
use borehole_testkit::servers::DatabaseServer;

use super::rows;
use super::settings::fresh;

/// The number of nodes of the list.
const NODES: u32 = 82_000;

/// A list: each node holds the next one.
fn list() -> HeapGraph {
    let mut builder = GraphBuilder::new();
    let link = builder.string(b"next");
    for number in 0..NODES {
        let child = builder.node(NodeType::OBJECT);
        let parent = number.checked_sub(1).map(NodeId);
        builder.edge(Edge { parent, child, link, is_tree: true, strength: Strength::Strong });
    }
    builder.finish().unwrap()
}

#[test]
fn paths_in_a_list_in_a_file() {
    let scratch = Scratch::new();
    paths_in_a_list(&mut Database::create(&scratch.path("list.db")).unwrap());
}

pub(super) fn paths_in_a_list_on_a_server(started: &DatabaseServer) {
    paths_in_a_list(&mut Database::connect(&fresh(started, "list"), Access::Write).unwrap());
}

/// If the path of a node held those of all nodes above it, the last one would take the square of the length.
fn paths_in_a_list(database: &mut Database) {
    database.add_run(&list(), "now").unwrap();
    let last = i64::from(NODES) - 1;
    let paths = database.paths(1).unwrap();
    database.write_parents(&paths).unwrap();
    let path = Parameters { node: Some(last), ..Parameters::default() };
    let links = database.ask(NamedQuery::find("path").unwrap(), path).unwrap();
    assert_eq!(links.rows.len(), NODES as usize);
    let whole = vec!["next"; NODES as usize].join(" -> ").len().try_into().map(SqlValue::Integer).unwrap();
    let view = |view: &str, node: i64| {
        format!("SELECT LENGTH(path), depth FROM {view} WHERE run_id = 1 AND node_id = {node}")
    };
    let (depth, dialect) = (SqlValue::Integer(last), database.dialect());
    if dialect != SqlDialect::Mysql {
        let found = rows(database, &view("v_parent_paths", last));
        assert_eq!(found, [[whole.clone(), depth.clone()]]);
    }
    let is_cut = matches!(dialect, SqlDialect::Mysql | SqlDialect::Mariadb);
    let long = if is_cut { SqlValue::Null } else { whole };
    assert_eq!(rows(database, &view("v_node_paths", last)), [[long, depth]]);
    // Both ways of joining links meet here.
    for node in [999, 1000, 1001] {
        let bytes =
            if node > 1000 && is_cut { SqlValue::Null } else { SqlValue::Integer(8 * (node + 1) - 4) };
        assert_eq!(rows(database, &view("v_node_paths", node)), [[bytes, SqlValue::Integer(node)]]);
    }
}

/// Many objects of one class, and a few of another.
fn objects(longest_class: usize) -> HeapGraph {
    let mut builder = GraphBuilder::new();
    let link = builder.string(b"holds");
    let location_type = builder.location_type(b"ZendObjectMemoryLocation");
    let mut noise = super::faults::noise(longest_class);
    noise.iter_mut().for_each(|byte| *byte = b' ' + *byte % 90);
    let classes = [&b"App\\Order"[..], b"App\\Item", &noise].map(|class| builder.string(class));
    for number in 0..20_000_u32 {
        let child = builder.node(NodeType::OBJECT);
        builder.edge(Edge { parent: None, child, link, is_tree: true, strength: Strength::Strong });
        let class = Some(classes[if number == 7 { 0 } else { 1 + usize::from(number == 8) }]);
        let location = MemoryLocation::new(location_type, u64::from(number) * 64, 64);
        builder.location(child, &MemoryLocation { class, ..location });
    }
    builder.finish().unwrap()
}

#[test]
fn objects_are_found_by_class_in_a_file() {
    let scratch = Scratch::new();
    objects_are_found_by_class(&mut Database::create(&scratch.path("objects.db")).unwrap());
}

pub(super) fn objects_are_found_by_class_on_a_server(started: &DatabaseServer) {
    let mut served = Database::connect(&fresh(started, "objects"), Access::Write).unwrap();
    objects_are_found_by_class(&mut served);
    // A name that is too long for an index is stored all the same, first or later.
    for name in ["early", "late"] {
        let mut served = Database::connect(&fresh(started, name), Access::Write).unwrap();
        if name == "late" {
            served.add_run(&objects(10), "now").unwrap();
        }
        let added = served.add_run(&objects(20_000), "now").unwrap();
        assert!(added.unfinished.is_none(), "{added:?}");
        let longest =
            format!("SELECT MAX(LENGTH(class_name)) FROM class_objects_summary WHERE run_id = {}", added.run);
        assert_eq!(rows(&mut served, &longest), [[SqlValue::Integer(20_000)]]);
        assert_eq!(served.run_ids().unwrap().len(), 1 + usize::from(name == "late"));
    }
}

fn objects_are_found_by_class(database: &mut Database) {
    database.add_run(&objects(10), "now").unwrap();
    let class = match database.dialect() {
        SqlDialect::Mysql | SqlDialect::Mariadb => "'App\\\\Order'",
        SqlDialect::Sqlite | SqlDialect::Postgresql => "'App\\Order'",
    };
    let explain = if database.dialect() == SqlDialect::Sqlite { "EXPLAIN QUERY PLAN" } else { "EXPLAIN" };
    let statement = format!("SELECT * FROM context_node_locations WHERE run_id = 1 AND class_name = {class}");
    let plan = format!("{:?}", rows(database, &format!("{explain} {statement}")));
    assert!(plan.contains("idx_context_node_locations_run_class"), "{plan}");
    let count =
        format!("SELECT COUNT(*) FROM context_node_locations WHERE run_id = 1 AND class_name = {class}");
    assert_eq!(rows(database, &count), [[SqlValue::Integer(1)]]);
}
