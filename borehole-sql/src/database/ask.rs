//! Runs of a database, and answers to statements.

use super::Database;
use crate::answer::{Answer, Value};
use crate::backend::Field;
use crate::error::{Error, ErrorKind};
use crate::queries::{Means, Query};
use crate::{Parameters, Run};

impl Database {
    /// The runs, the oldest first.
    ///
    /// # Errors
    /// When the database has no runs or cannot be read.
    pub fn runs(&mut self) -> Result<Vec<Run>, Error> {
        let statement = "SELECT runs.run_id, created_at, COUNT(node_id) FROM runs \
                         LEFT JOIN context_nodes ON context_nodes.run_id = runs.run_id \
                         GROUP BY runs.run_id, created_at ORDER BY runs.run_id";
        self.check_shape()?;
        let mut runs = Vec::new();
        self.backend.select(statement, &[], &mut |fields| {
            let [id, created_at, nodes] = fields else { return Ok(()) };
            let number = |field: &Field<'_>| field.integer().unwrap_or_default();
            runs.push(Run {
                id: number(id),
                created_at: created_at.text(),
                nodes: number(nodes).cast_unsigned(),
            });
            Ok(())
        })?;
        Ok(runs)
    }

    /// The number of `run`, if there is such a run; of `None`, that of the last one.
    ///
    /// # Errors
    /// When there is no such run.
    pub fn run(&mut self, run: Option<i64>) -> Result<i64, Error> {
        let runs = self.run_ids()?;
        let found = match run {
            Some(wanted) => runs.iter().find(|&&id| id == wanted),
            None => runs.last(),
        };
        let there = || match &runs[..] {
            [] => "none".to_owned(),
            runs => runs.iter().map(i64::to_string).collect::<Vec<_>>().join(", "),
        };
        found.copied().ok_or_else(|| {
            let message = match run {
                Some(run) => format!("missing run {run}: the database has {}", there()),
                None => "missing run: the database has none".to_owned(),
            };
            Error::new(ErrorKind::Missing, message)
        })
    }

    /// The numbers of the runs, the oldest first.
    ///
    /// # Errors
    /// When the database has no runs or cannot be read.
    pub fn run_ids(&mut self) -> Result<Vec<i64>, Error> {
        self.check_shape()?;
        let mut ids = Vec::new();
        self.backend.select("SELECT run_id FROM runs ORDER BY run_id", &[], &mut |fields| {
            ids.extend(fields[0].integer());
            Ok(())
        })?;
        Ok(ids)
    }

    /// What a statement of the user's answers.
    ///
    /// # Errors
    /// When the statement is wrong.
    pub fn query(&mut self, statement: &str) -> Result<Answer, Error> {
        self.answer(statement, &[])
    }

    /// What a question with a name answers: of the last run, if none is given. All of it is of one moment, whatever others write.
    ///
    /// # Errors
    /// When there is no such run or no such node, or the database cannot be read.
    pub fn ask(&mut self, query: &Query, parameters: Parameters) -> Result<Answer, Error> {
        let begin = self.dialect().begin_to_read();
        self.within(begin, |database| database.ask_within(query, parameters))
    }

    fn ask_within(&mut self, query: &Query, parameters: Parameters) -> Result<Answer, Error> {
        // What is not there has no rows, which would look like an answer.
        let run = self.run(parameters.run)?;
        let other = parameters.other.map(|other| self.run(Some(other))).transpose()?;
        let node = parameters.node.filter(|_| query.needs(":node"));
        if let Some(node) = node {
            self.check_node(run, node)?;
        }
        match (query.means, node) {
            (Means::Statement(sql), _) => {
                let (statement, numbers) =
                    self.dialect().bind(sql, Parameters { run: Some(run), other, node });
                self.answer(&statement, &numbers)
            }
            (Means::AllPaths, node) => self.all_paths(run, node),
        }
    }

    fn check_node(&mut self, run: i64, node: i64) -> Result<(), Error> {
        let sought = "SELECT 1 FROM context_nodes WHERE run_id = :run AND node_id = :node";
        let asked = Parameters { node: Some(node), ..Parameters::of_run(run) };
        let (statement, numbers) = self.dialect().bind(sought, asked);
        let mut is_there = false;
        self.backend.select(&statement, &numbers, &mut |_| {
            is_there = true;
            Ok(())
        })?;
        if is_there {
            return Ok(());
        }
        let message = format!("unknown node: expected one of run {run}, found {node}");
        Err(Error::new(ErrorKind::UnknownNode, message))
    }

    fn answer(&mut self, statement: &str, numbers: &[Option<i64>]) -> Result<Answer, Error> {
        let mut rows = Vec::new();
        let columns = self.backend.select(statement, numbers, &mut |fields| {
            rows.push(fields.iter().copied().map(value).collect());
            Ok(())
        })?;
        Ok(Answer { columns, rows })
    }
}

fn value(field: Field<'_>) -> Value {
    match field {
        Field::Null => Value::Null,
        Field::Integer(number) => Value::Integer(number),
        Field::Real(number) => Value::Real(number),
        Field::Text(_) => Value::Text(field.text()),
    }
}

#[cfg(all(test, feature = "sqlite"))]
mod tests {
    use borehole_heap::{Builder, Edge, HeapSink as _, NodeType, Strength};
    use borehole_testkit::Scratch;

    use super::*;
    use crate::backend::{Backend, Fill, Take};
    use crate::dialect::Dialect;
    use crate::sqlite::Sqlite;

    /// A connection to a file, beside which somebody else does something once a node has been looked for.
    struct Meanwhile {
        connection: Sqlite,
        others: Box<dyn FnMut() + Send>,
    }

    impl Backend for Meanwhile {
        fn dialect(&self) -> Dialect {
            self.connection.dialect()
        }

        fn execute(&mut self, statement: &str) -> Result<(), Error> {
            self.connection.execute(statement)
        }

        fn select(
            &mut self,
            statement: &str,
            numbers: &[Option<i64>],
            take: &mut Take<'_>,
        ) -> Result<Vec<String>, Error> {
            let columns = self.connection.select(statement, numbers, take);
            if statement.starts_with("SELECT 1 FROM context_nodes") {
                (self.others)();
            }
            columns
        }

        fn insert_run(&mut self, created_at: &str) -> Result<i64, Error> {
            self.connection.insert_run(created_at)
        }

        fn load(&mut self, fill: &mut Fill<'_>) -> Result<(), Error> {
            self.connection.load(fill)
        }
    }

    #[test]
    fn an_answer_is_of_one_moment_though_its_run_is_deleted_meanwhile() {
        let mut builder = Builder::new();
        let (link, child) = (builder.string(b"holds"), builder.node(NodeType::OBJECT));
        builder.edge(Edge { parent: None, child, link, is_tree: true, strength: Strength::Strong });
        let graph = builder.finish().unwrap();
        let scratch = Scratch::new();
        let path = scratch.path("heaps.db");
        Database::create(&path).unwrap().add_run(&graph, "now").unwrap();
        // So that who writes does not wait for who reads.
        Sqlite::open(&path).unwrap().select("PRAGMA journal_mode = WAL", &[], &mut |_| Ok(())).unwrap();
        for name in ["path", "references", "all-paths"] {
            let run = Database::open(&path).unwrap().add_run(&graph, "now").unwrap().run;
            let file = path.clone();
            let others = Box::new(move || Database::open(&file).unwrap().delete_run(run).unwrap());
            let connection = Sqlite::read(&path).unwrap();
            let mut database = Database { backend: Box::new(Meanwhile { connection, others }) };
            let asked = Parameters { node: Some(0), ..Parameters::of_run(run) };
            let answer = database.ask(Query::find(name).unwrap(), asked).unwrap();
            assert_eq!(answer.rows.len(), 1, "{name}");
            let error = Database::read(&path).unwrap().run(Some(run)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Missing, "{name}");
        }
    }
}
