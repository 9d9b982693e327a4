//! Runs, added.

use borehole_heap::Graph;

use super::Database;
use crate::dialect::Dialect;
use crate::error::Error;
use crate::rows;
use crate::schema::{TABLES, Table};

/// A step on the way of a run into a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// All rows of the graph are in their tables.
    Rows,
    /// They are added up by type and class. What is left is what makes questions fast: indexes, views, statistics.
    Sums,
}

/// A run that is in a database, whole.
#[derive(Debug)]
pub struct Added {
    /// Its number.
    pub run: i64,
    /// Why what servers make behind a run is not complete: statistics, and in MySQL and MariaDB indexes and views. Without them
    /// questions are slow, or refused; the next run makes them good.
    pub unfinished: Option<Error>,
}

/// Adds the rows of a run, and answers its number.
type Insert<'i> = dyn FnMut(&mut Database) -> Result<i64, Error> + 'i;

const VIEWS: [&str; 2] = ["v_node_paths", "v_arrays"];

impl Database {
    /// Adds `graph` as a run of its own, with all tables, indexes and views that are missing. The run is there whole or not at
    /// all.
    ///
    /// # Errors
    /// When the database cannot be written, or holds tables of another shape. Then there is no such run.
    pub fn add_run<G: Graph>(&mut self, graph: &G, created_at: &str) -> Result<Added, Error> {
        self.add_run_in_steps(graph, created_at, &mut |_| ())
    }

    /// The same, and tells `done` of each step as it is done.
    ///
    /// # Errors
    /// As [`Self::add_run`].
    pub fn add_run_in_steps<G: Graph>(
        &mut self,
        graph: &G,
        created_at: &str,
        done: &mut dyn FnMut(Step),
    ) -> Result<Added, Error> {
        let mut insert = |database: &mut Self| database.insert(graph, created_at, done);
        match self.dialect() {
            Dialect::Sqlite => self.add_to_file(&mut insert),
            Dialect::Postgresql => self.add_in_transaction(&mut insert),
            Dialect::Mysql | Dialect::Mariadb => self.add_in_parts(&mut insert),
        }
    }

    /// Everything in one transaction, which nobody else can write beside.
    fn add_to_file(&mut self, insert: &mut Insert<'_>) -> Result<Added, Error> {
        let run = self.change(|database| {
            let run = database.insert_and_make(insert)?;
            database.execute(&database.dialect().statistics())?;
            Ok(run)
        })?;
        Ok(Added { run, unfinished: None })
    }

    /// Everything in one transaction, beside others. While something is missing, who comes first makes it, and the others wait
    /// until it is there: two who make the same, or an index of what both have written, are in each other's way.
    fn add_in_transaction(&mut self, insert: &mut Insert<'_>) -> Result<Added, Error> {
        let mut run = None;
        if self.lacks_something()? {
            run = self.change(|database| {
                database.backend.take_turn()?;
                let is_first = database.lacks_something()?;
                is_first.then(|| database.insert_and_make(insert)).transpose()
            })?;
        }
        let run = match run {
            Some(run) => run,
            None => self.change(|database| {
                database.check_shape()?;
                insert(database)
            })?,
        };
        // Beside the run, as others may keep statistics from being made for long: the run is no worse for it.
        let unfinished = self.execute(&self.dialect().statistics()).err();
        Ok(Added { run, unfinished })
    }

    /// Tables, the rows in one transaction, and the rest: a statement that makes something ends a transaction. MariaDB has its
    /// writers take turns in any case: who loads rows keeps the lock of a table's numbers to the end.
    fn add_in_parts(&mut self, insert: &mut Insert<'_>) -> Result<Added, Error> {
        match self.dialect() == Dialect::Mariadb || self.lacks_something()? {
            true => self.in_turn(|database| database.add_parts(insert)),
            false => self.add_parts(insert),
        }
    }

    fn add_parts(&mut self, insert: &mut Insert<'_>) -> Result<Added, Error> {
        self.make_tables()?;
        let run = self.change(insert)?;
        let made = self.make_rest().and_then(|()| self.execute(&self.dialect().statistics()));
        Ok(Added { run, unfinished: made.err() })
    }

    fn insert_and_make(&mut self, insert: &mut Insert<'_>) -> Result<i64, Error> {
        self.make_tables()?;
        let run = insert(self)?;
        self.make_rest()?;
        Ok(run)
    }

    /// Makes the tables and columns that are missing. What is there is looked at first, so that nothing is made beside what is somebody
    /// else's.
    fn make_tables(&mut self) -> Result<(), Error> {
        let dialect = self.dialect();
        let existing = self.existing()?;
        let (known, missing): (Vec<&Table>, Vec<&Table>) =
            TABLES.iter().partition(|table| existing.contains(table.name));
        known.iter().try_for_each(|table| self.lacking(table).map(drop))?;
        known.into_iter().try_for_each(|table| self.add_columns(table))?;
        let statements: Vec<_> = missing.into_iter().map(|table| dialect.create_table(table)).collect();
        self.execute(&statements)
    }

    fn insert<G: Graph>(
        &mut self,
        graph: &G,
        created_at: &str,
        done: &mut dyn FnMut(Step),
    ) -> Result<i64, Error> {
        let run = self.backend.insert_run(created_at)?;
        self.backend.load(&mut |sink| rows::write(graph, run, sink))?;
        done(Step::Rows);
        self.execute(&self.dialect().add_up(run))?;
        done(Step::Sums);
        Ok(run)
    }

    /// What is made after the rows, if it is not there: making it anew would keep others waiting.
    fn make_rest(&mut self) -> Result<(), Error> {
        let dialect = self.dialect();
        let existing = self.existing()?;
        let indexes = dialect.indexes().filter(|index| !existing.contains(index.name));
        let indexes: Vec<_> = indexes.map(|index| dialect.create_index(index)).collect();
        self.execute(&indexes)?;
        let views = VIEWS.into_iter().zip(dialect.create_views());
        let views: Vec<_> =
            views.filter(|(name, _)| !existing.contains(*name)).map(|(_, statement)| statement).collect();
        self.execute(&views)
    }

    /// Whether a table, a column, an index or a view is missing.
    fn lacks_something(&mut self) -> Result<bool, Error> {
        let existing = self.existing()?;
        let indexes = self.dialect().indexes().map(|index| index.name);
        let mut all = TABLES.iter().map(|table| table.name).chain(indexes).chain(VIEWS);
        if !all.all(|name| existing.contains(name)) {
            return Ok(true);
        }
        TABLES.iter().try_fold(false, |lacks, table| Ok(lacks || self.lacks_columns(table)?))
    }
}
