//! Adds runs to a database.

use borehole_heap::Graph;

use super::Database;
use crate::dialect::{IndexedText, SqlDialect};
use crate::error::{Error, ErrorKind};
use crate::rows;
use crate::schema::{SchemaIndex, SchemaTable, TABLES};

/// A completed step of adding a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddStep {
    /// All rows are in their tables. Indexes, views and statistics, which make queries fast, remain.
    Rows,
}

/// A run that is completely in a database.
#[derive(Debug)]
pub struct AddedRun {
    /// The number of the run.
    pub run: i64,
    /// The reason why the work that servers do after a run is incomplete: statistics, and in MySQL and MariaDB also
    /// indexes and views. Without them queries are slow or rejected; adding the next run completes them.
    pub unfinished: Option<Error>,
}

/// Adds the rows of a run, and returns its number.
type Insert<'i> = dyn FnMut(&mut Database) -> Result<i64, Error> + 'i;

const VIEWS: [&str; 2] = ["v_node_paths", "v_arrays"];

impl Database {
    /// Adds `graph` as a new run, and creates all missing tables, indexes and views. The run appears complete or not at all.
    ///
    /// # Errors
    /// If the database cannot be written, or has tables of another shape. Then the run is not added.
    pub fn add_run<G: Graph>(&mut self, graph: &G, created_at: &str) -> Result<AddedRun, Error> {
        self.add_run_in_steps(graph, created_at, &mut |_| ())
    }

    /// Like [`Self::add_run`], and calls `done` after each step.
    ///
    /// # Errors
    /// As [`Self::add_run`].
    pub fn add_run_in_steps<G: Graph>(
        &mut self,
        graph: &G,
        created_at: &str,
        done: &mut dyn FnMut(AddStep),
    ) -> Result<AddedRun, Error> {
        let mut insert = |database: &mut Self| database.insert(graph, created_at, done);
        match self.dialect() {
            SqlDialect::Sqlite => self.add_to_file(&mut insert),
            SqlDialect::Postgresql => self.add_in_transaction(&mut insert),
            SqlDialect::Mysql | SqlDialect::Mariadb => self.add_in_parts(&mut insert),
        }
    }

    /// Does everything in one transaction, which excludes all other writers.
    fn add_to_file(&mut self, insert: &mut Insert<'_>) -> Result<AddedRun, Error> {
        let run = self.change(|database| {
            let run = database.insert_and_make(insert)?;
            database.execute(&database.dialect().statistics())?;
            Ok(run)
        })?;
        Ok(AddedRun { run, unfinished: None })
    }

    /// Does everything in one transaction, alongside other writers. If something is missing, the first writer creates
    /// it and the others wait, because two writers that create the same object, or an index of rows that both have
    /// written, would block each other.
    fn add_in_transaction(&mut self, insert: &mut Insert<'_>) -> Result<AddedRun, Error> {
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
            None => self.insert_or_remake(insert)?,
        };
        // Outside the run's transaction: other writers may block statistics for a long time, which must not fail the run.
        let unfinished = self.execute(&self.dialect().statistics()).err();
        Ok(AddedRun { run, unfinished })
    }

    /// Adds the rows to existing tables. If one has a text that is too long for an index, the indexes on texts are made
    /// anew, on their beginnings.
    fn insert_or_remake(&mut self, insert: &mut Insert<'_>) -> Result<i64, Error> {
        let run = self.change(|database| {
            database.check_shape()?;
            insert(database)
        });
        match run {
            Err(error) if error.kind() == ErrorKind::TooLong => self.change(|database| {
                database.backend.take_turn()?;
                database.execute(&database.dialect().drop_text_indexes())?;
                database.insert_and_make(insert)
            }),
            run => run,
        }
    }

    /// Creates tables, adds the rows in one transaction, and then does the rest, because a statement that creates
    /// something ends a transaction. Writers in MariaDB always take turns, because loading rows keeps the lock of a
    /// table's counter until the end.
    fn add_in_parts(&mut self, insert: &mut Insert<'_>) -> Result<AddedRun, Error> {
        match self.dialect() == SqlDialect::Mariadb || self.lacks_something()? {
            true => self.in_turn(|database| database.add_parts(insert)),
            false => self.add_parts(insert),
        }
    }

    fn add_parts(&mut self, insert: &mut Insert<'_>) -> Result<AddedRun, Error> {
        self.make_tables()?;
        let run = self.change(insert)?;
        let made = self.make_rest().and_then(|()| self.execute(&self.dialect().statistics()));
        Ok(AddedRun { run, unfinished: made.err() })
    }

    fn insert_and_make(&mut self, insert: &mut Insert<'_>) -> Result<i64, Error> {
        self.make_tables()?;
        let run = insert(self)?;
        self.make_rest()?;
        Ok(run)
    }

    /// Creates missing tables and columns. Checks the existing ones first, so that nothing is created in a database of
    /// another program.
    fn make_tables(&mut self) -> Result<(), Error> {
        let dialect = self.dialect();
        let existing = self.existing()?;
        let (known, missing): (Vec<&SchemaTable>, Vec<&SchemaTable>) =
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
        done: &mut dyn FnMut(AddStep),
    ) -> Result<i64, Error> {
        let run = self.backend.insert_run(created_at)?;
        self.backend.load(&mut |sink| rows::write(graph, run, sink))?;
        done(AddStep::Rows);
        Ok(run)
    }

    /// Creates the objects that come after the rows, if they are missing: recreating them would block other programs.
    fn make_rest(&mut self) -> Result<(), Error> {
        let dialect = self.dialect();
        let existing = self.existing()?;
        let missing: Vec<_> = dialect.indexes().filter(|index| !existing.contains(index.name)).collect();
        self.make_indexes(&missing)?;
        let views = VIEWS.into_iter().zip(dialect.create_views());
        let views: Vec<_> =
            views.filter(|(name, _)| !existing.contains(*name)).map(|(_, statement)| statement).collect();
        self.execute(&views)
    }

    fn make_indexes(&mut self, missing: &[&SchemaIndex]) -> Result<(), Error> {
        let dialect = self.dialect();
        missing.iter().try_for_each(|index| match dialect {
            SqlDialect::Postgresql => self.make_fitting_index(index),
            // `ALTER TABLE` would create all at once, but needs another privilege, and takes the same time.
            SqlDialect::Sqlite | SqlDialect::Mysql | SqlDialect::Mariadb => {
                self.backend.execute(&dialect.create_index(index))
            }
        })
    }

    /// Creates an index within a transaction, on the beginnings of texts if a text is too long for it.
    fn make_fitting_index(&mut self, index: &SchemaIndex) -> Result<(), Error> {
        let dialect = self.dialect();
        self.backend.execute("SAVEPOINT whole_texts")?;
        match self.backend.execute(&dialect.create_index(index)) {
            Err(error) if error.kind() == ErrorKind::TooLong => {
                self.backend.execute("ROLLBACK TO SAVEPOINT whole_texts")?;
                self.backend.execute(&dialect.create_index_on(index, IndexedText::Beginning))
            }
            made => made,
        }
    }

    /// Whether a table, column, index or view is missing.
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
