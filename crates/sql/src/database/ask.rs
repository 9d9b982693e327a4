//! Lists the runs of a database, and answers queries.

use std::borrow::Cow;

use super::Database;
use crate::answer::{AnswerSink, QueryAnswer, give};
use crate::backend::{ResultField, ResultRows};
use crate::error::{Error, ErrorKind};
use crate::queries::{Means, NamedQuery, Parameters};
use crate::schema::CONTEXT_EDGES;

/// A run of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredRun {
    /// The number of the run.
    pub id: i64,
    /// The time when its heap was captured, in ISO 8601; empty if unknown.
    pub created_at: String,
    /// The number of nodes.
    pub nodes: u64,
}

impl Database {
    /// Lists the runs, the oldest first.
    ///
    /// # Errors
    /// If the database has no runs or cannot be read.
    pub fn runs(&mut self) -> Result<Vec<StoredRun>, Error> {
        let statement = "SELECT runs.run_id, created_at, COUNT(node_id) FROM runs \
                         LEFT JOIN context_nodes ON context_nodes.run_id = runs.run_id \
                         GROUP BY runs.run_id, created_at ORDER BY runs.run_id";
        self.check_shape()?;
        let mut runs = Vec::new();
        self.backend.select(statement, &[], &mut |fields| {
            let [id, created_at, nodes] = fields else { return Ok(()) };
            let number = |field: &ResultField<'_>| field.integer().unwrap_or_default();
            runs.push(StoredRun {
                id: number(id),
                created_at: created_at.text(),
                nodes: number(nodes).cast_unsigned(),
            });
            Ok(())
        })?;
        Ok(runs)
    }

    /// Checks that `run` exists and returns its number; for `None`, the number of the last run.
    ///
    /// # Errors
    /// If there is no such run.
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

    /// Lists the numbers of the runs, the oldest first.
    ///
    /// # Errors
    /// If the database has no runs or cannot be read.
    pub fn run_ids(&mut self) -> Result<Vec<i64>, Error> {
        self.check_shape()?;
        let mut ids = Vec::new();
        self.backend.select("SELECT run_id FROM runs ORDER BY run_id", &[], &mut |fields| {
            ids.extend(fields[0].integer());
            Ok(())
        })?;
        Ok(ids)
    }

    /// Runs a statement of the user, and returns its result.
    ///
    /// # Errors
    /// If the statement is invalid.
    pub fn query(&mut self, statement: &str) -> Result<QueryAnswer, Error> {
        let mut answer = QueryAnswer::default();
        self.query_into(statement, Parameters::default(), &mut answer)?;
        Ok(answer)
    }

    /// Runs a statement of the user, and passes its result to `sink`. In the statement, `:run` is the run (default: the
    /// last one), `:other` is a second run, and `:node` is a node.
    ///
    /// # Errors
    /// If the statement is invalid, there is no such run or node, or `sink` fails.
    pub fn query_into<S: AnswerSink>(
        &mut self,
        statement: &str,
        parameters: Parameters,
        sink: &mut S,
    ) -> Result<(), S::Error> {
        give(sink, |rows| self.query_rows(statement, parameters, rows))
    }

    fn query_rows(
        &mut self,
        statement: &str,
        parameters: Parameters,
        rows: &mut dyn ResultRows,
    ) -> Result<(), Error> {
        let dialect = self.dialect();
        if dialect.is_nothing(statement) {
            return Err(Error::new(ErrorKind::Statement, "missing statement: expected SQL"));
        }
        let asked = self.known(parameters, |name| dialect.uses(statement, name))?;
        let (statement, numbers) = dialect.bind(statement, asked);
        self.backend.answer(&statement, &numbers, rows)
    }

    /// Answers a named query; without a run, for the last one. All of the result is from one moment, even if others
    /// write meanwhile.
    ///
    /// # Errors
    /// If there is no such run or node, or the database cannot be read.
    pub fn ask(&mut self, query: &NamedQuery, parameters: Parameters) -> Result<QueryAnswer, Error> {
        let mut answer = QueryAnswer::default();
        self.ask_into(query, parameters, &mut answer)?;
        Ok(answer)
    }

    /// Like [`Self::ask`], row by row.
    ///
    /// # Errors
    /// As [`Self::ask`], or if `sink` fails.
    pub fn ask_into<S: AnswerSink>(
        &mut self,
        query: &NamedQuery,
        parameters: Parameters,
        sink: &mut S,
    ) -> Result<(), S::Error> {
        let begin = self.dialect().begin_to_read();
        give(sink, |rows| self.within(begin, |database| database.ask_rows(query, parameters, rows)))
    }

    fn ask_rows(
        &mut self,
        query: &NamedQuery,
        parameters: Parameters,
        rows: &mut dyn ResultRows,
    ) -> Result<(), Error> {
        let asked = self.known(parameters, |name| query.needs(name))?;
        match query.means {
            Means::Statement(sql) => {
                let mut sql = Cow::Borrowed(sql);
                if sql.contains("{strength}") {
                    sql = sql.replace("{strength}", &self.selected(&CONTEXT_EDGES, "strength")?).into();
                }
                let (statement, numbers) = self.dialect().bind(&sql, asked);
                self.backend.answer(&statement, &numbers, rows)
            }
            Means::Depths => self.depths(asked, rows),
            Means::Branches => self.branches(asked, rows),
            Means::Path => self.path(asked, rows),
            Means::AllPaths => self.all_paths(asked, rows),
        }
    }

    /// The `parameters` that a query `needs`, after checking that they exist: a missing run or node has no rows, which
    /// would look like a valid result.
    fn known(&mut self, parameters: Parameters, needs: impl Fn(&str) -> bool) -> Result<Parameters, Error> {
        let run = if needs(":run") { Some(self.run(parameters.run)?) } else { None };
        let other = parameters.other.filter(|_| needs(":other"));
        let other = other.map(|other| self.run(Some(other))).transpose()?;
        let node = parameters.node.filter(|_| needs(":node"));
        if let (Some(run), Some(node)) = (run, node) {
            self.check_node(run, node)?;
        }
        Ok(Parameters { run, other, node })
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
}

#[cfg(all(test, feature = "sqlite"))]
mod tests {
    use borehole_heap::{Edge, GraphBuilder, HeapSink as _, NodeType, Strength};
    use borehole_testkit::Scratch;

    use super::*;
    use crate::backend::{Backend, Fill};
    use crate::dialect::SqlDialect;
    use crate::sqlite::Sqlite;

    /// A connection to a file in which another connection makes a change after a node has been looked up.
    struct Meanwhile {
        connection: Sqlite,
        others: Box<dyn FnMut() + Send>,
    }

    impl Backend for Meanwhile {
        fn dialect(&self) -> SqlDialect {
            self.connection.dialect()
        }

        fn execute(&mut self, statement: &str) -> Result<(), Error> {
            self.connection.execute(statement)
        }

        fn answer(
            &mut self,
            statement: &str,
            numbers: &[Option<i64>],
            rows: &mut dyn ResultRows,
        ) -> Result<(), Error> {
            let answered = self.connection.answer(statement, numbers, rows);
            if statement.starts_with("SELECT 1 FROM context_nodes") {
                (self.others)();
            }
            answered
        }

        fn insert_run(&mut self, created_at: &str) -> Result<i64, Error> {
            self.connection.insert_run(created_at)
        }

        fn load(&mut self, fill: &mut Fill<'_>) -> Result<(), Error> {
            self.connection.load(fill)
        }
    }

    #[test]
    fn results_are_consistent_if_the_run_is_deleted_meanwhile() {
        let mut builder = GraphBuilder::new();
        let (link, child) = (builder.string(b"holds"), builder.node(NodeType::OBJECT));
        builder.edge(Edge { parent: None, child, link, is_tree: true, strength: Strength::Strong });
        let graph = builder.finish().unwrap();
        let scratch = Scratch::new();
        let path = scratch.path("heaps.db");
        Database::create(&path).unwrap().add_run(&graph, "now").unwrap();
        // In this mode a writer does not wait for readers.
        Sqlite::open(&path).unwrap().select("PRAGMA journal_mode = WAL", &[], &mut |_| Ok(())).unwrap();
        for name in ["path", "references", "all-paths"] {
            let run = Database::open(&path).unwrap().add_run(&graph, "now").unwrap().run;
            let file = path.clone();
            let others = Box::new(move || Database::open(&file).unwrap().delete_run(run).unwrap());
            let connection = Sqlite::read(&path).unwrap();
            let mut database = Database { backend: Box::new(Meanwhile { connection, others }) };
            let asked = Parameters { node: Some(0), ..Parameters::of_run(run) };
            let answer = database.ask(NamedQuery::find(name).unwrap(), asked).unwrap();
            assert_eq!(answer.rows.len(), 1, "{name}");
            let error = Database::read(&path).unwrap().run(Some(run)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Missing, "{name}");
        }
    }
}
