//! Queries with known answers.

use borehole_heap::{
    Edge, GraphBuilder, HeapSink as _, MemoryLocation, NodeId, NodeType, Strength, ValueKind,
};
use borehole_sql::{AnswerSink, Database, Error, ErrorKind, NamedQuery, Parameters, QueryAnswer, SqlValue};
use borehole_testkit::Scratch;

use crate::database;

const OF_NODE: Parameters = Parameters { run: Some(1), other: None, node: Some(2) };

fn ask(database: &mut Database, name: &str, parameters: Parameters) -> Vec<Vec<SqlValue>> {
    database.ask(NamedQuery::find(name).unwrap(), parameters).unwrap().rows
}

/// The numbers in the first columns.
fn numbers<const COLUMNS: usize>(rows: &[Vec<SqlValue>]) -> Vec<[i64; COLUMNS]> {
    let number = |value: &SqlValue| match value {
        SqlValue::Integer(number) => *number,
        other => panic!("{other:?}"),
    };
    rows.iter().map(|row| std::array::from_fn(|column| number(&row[column]))).collect()
}

/// Adds an array: the number of its elements, their bytes, and the further bytes of its table. Returns its node.
fn array(builder: &mut GraphBuilder, count: u32, used: u64, unused: u64) -> NodeId {
    let mut node = |parent, link: &[u8], kind: &[u8], size| {
        let (link, location_type) = (builder.string(link), builder.location_type(kind));
        let child = builder.node(NodeType::OBJECT);
        builder.edge(Edge { parent, child, link, is_tree: true, strength: Strength::Strong });
        if size > 0 {
            builder.location(child, &MemoryLocation::new(location_type, 64, size));
        }
        child
    };
    let header = node(None, b"array", b"ZendArrayMemoryLocation", 56);
    let elements = node(Some(header), b"array_elements", b"ZendArrayTableMemoryLocation", used);
    let overhead = b"ZendArrayTableOverheadMemoryLocation";
    node(Some(header), b"possible_unused_area", overhead, unused);
    let key = builder.string(b"#count");
    builder.attribute_text(elements, key, count.to_string().as_bytes(), ValueKind::Integer);
    header
}

#[test]
fn arrays_are_ranked_by_unused_bytes() {
    let scratch = Scratch::new();
    let mut builder = GraphBuilder::new();
    let small = array(&mut builder, 2, 640, 64);
    let large = array(&mut builder, 100, 3200, 9000);
    array(&mut builder, 0, 0, 0);
    let emptied = array(&mut builder, 0, 320, 0);
    let mut database = Database::create(&scratch.path("arrays.db")).unwrap();
    database.add_run(&builder.finish().unwrap(), "now").unwrap();
    let node = |node: NodeId| i64::from(node.0);
    let wasteful = ask(&mut database, "wasteful-arrays", Parameters::default());
    assert_eq!(numbers::<4>(&wasteful), [[node(large), 100, 3200, 9000], [node(small), 2, 640, 64]]);
    let empty = ask(&mut database, "empty-arrays", Parameters::default());
    assert_eq!(numbers::<2>(&empty), [[node(emptied), 376]]);
}

/// A database whose tree has these edges, from a parent or none to a child.
fn tree(scratch: &Scratch, edges: &[(Option<i64>, i64)]) -> Database {
    let path = database(scratch, &["m1_objects"]);
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute_batch("BEGIN; DELETE FROM context_edges").unwrap();
    let insert = "INSERT INTO context_edges (run_id, parent_node_id, child_node_id, link_name, is_tree) \
                  VALUES (1, ?1, ?2, 'to ' || ?2, 1)";
    for edge in edges {
        connection.execute(insert, *edge).unwrap();
    }
    connection.execute_batch("COMMIT").unwrap();
    Database::read(&path).unwrap()
}

#[test]
fn paths_end_at_cycles_of_the_tree() {
    let path = |edges: &[_]| {
        let answer = ask(&mut tree(&Scratch::new(), edges), "path", OF_NODE);
        let link = |row: &[SqlValue]| match row {
            [SqlValue::Integer(parent), SqlValue::Text(link)] => format!("{parent} {link}"),
            [SqlValue::Null, SqlValue::Text(link)] => format!("- {link}"),
            other => panic!("{other:?}"),
        };
        answer.iter().map(|row| link(row)).collect::<Vec<_>>()
    };
    let line = [(None, 0), (Some(0), 1), (Some(1), 2), (Some(2), 3)];
    assert_eq!(path(&line), ["- to 0", "0 to 1", "1 to 2"]);
    assert_eq!(path(&line[1..]), ["0 to 1", "1 to 2"], "without roots");
    assert_eq!(path(&[(Some(2), 1), (Some(1), 2)]), ["2 to 1", "1 to 2"], "a circle");
    assert_eq!(path(&[(Some(2), 2)]), ["2 to 2"], "itself");
    assert_eq!(path(&[(Some(0), 1)]), Vec::<String>::new());
    // Two ways for each of very many links.
    let twice: Vec<_> = (3..300).flat_map(|node| [(Some(node + 1), node); 2]).chain([(Some(3), 2)]).collect();
    assert_eq!(path(&twice).len(), 298);
}

#[test]
fn retained_sizes_count_once_in_a_broken_tree() {
    let asked = |edges: &[_]| {
        let mut database = tree(&Scratch::new(), edges);
        let mut ask = |name| ask(&mut database, name, Parameters::default());
        (ask("depths"), ask("roots"))
    };
    let mut edges: Vec<_> =
        [(None, 0)].into_iter().chain((1..300).map(|node| (Some(node - 1), node))).collect();
    let line = asked(&edges);
    assert!(line.0.len() == 30 && !line.1.is_empty(), "{line:?}");
    edges.extend([(Some(2), 1), (Some(299), 299), (Some(299), 0)]);
    assert_eq!(asked(&edges), line, "circles");
    edges.extend((1..300).map(|node| (Some(node - 1), node)));
    assert_eq!(asked(&edges), line, "two ways for each of very many links");
    assert_eq!(asked(&edges[1..]), (Vec::new(), Vec::new()), "without roots");
}

#[test]
fn user_statements_may_use_names() {
    let scratch = Scratch::new();
    let mut database = Database::read(&database(&scratch, &["m1_objects", "m5_mixed"])).unwrap();
    let mut asked = |statement: &str, run, other, node| {
        let mut answer = QueryAnswer::default();
        let parameters = Parameters { run, other, node };
        database.query_into(statement, parameters, &mut answer).map(|()| numbers::<3>(&answer.rows)[0])
    };
    let all = "SELECT :run, COALESCE(:other, 0), COALESCE(:node, 0) WHERE ':run' <> 'x'";
    assert_eq!(asked(all, Some(1), Some(2), Some(3)).unwrap(), [1, 2, 3]);
    assert_eq!(asked(all, None, None, None).unwrap(), [2, 0, 0], "the last run");
    for parameters in [(Some(9), None, None), (None, Some(9), None)] {
        let error = asked(all, parameters.0, parameters.1, parameters.2).unwrap_err();
        assert_eq!(error.to_string(), "missing run 9: the database has 1, 2");
    }
    assert_eq!(asked(all, None, None, Some(-1)).unwrap_err().kind(), ErrorKind::UnknownNode);
    for other in ["SELECT ?", "SELECT :runs", "SELECT $run"] {
        let error = asked(other, None, None, None).unwrap_err();
        assert!(error.to_string().starts_with("unsupported parameter in the statement: "), "{error}");
    }
    for nothing in ["", " ", "-- nothing"] {
        let error = asked(nothing, None, None, None).unwrap_err();
        assert_eq!(error.to_string(), "missing statement: expected SQL");
    }
}

/// Takes this many rows.
struct Few(usize);

#[derive(Debug)]
enum Ended {
    Enough,
    Failed(Error),
}

impl From<Error> for Ended {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl AnswerSink for Few {
    type Error = Ended;

    fn columns(&mut self, names: &[String]) -> Result<(), Ended> {
        assert_eq!(names, ["n"]);
        Ok(())
    }

    fn row(&mut self, row: Vec<SqlValue>) -> Result<(), Ended> {
        assert_eq!(row.len(), 1);
        self.0 = self.0.checked_sub(1).ok_or(Ended::Enough)?;
        Ok(())
    }
}

#[test]
fn rows_are_streamed_until_the_caller_stops() {
    let scratch = Scratch::new();
    let mut database = Database::read(&database(&scratch, &["m1_objects"])).unwrap();
    let endless = "WITH RECURSIVE row(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM row) SELECT n FROM row";
    let ended = database.query_into(endless, Parameters::default(), &mut Few(1000)).unwrap_err();
    assert!(matches!(ended, Ended::Enough), "{ended:?}");
    let ended = database.query_into("SELECT", Parameters::default(), &mut Few(1)).unwrap_err();
    assert!(matches!(ended, Ended::Failed(error) if error.kind() == ErrorKind::Statement));
}
