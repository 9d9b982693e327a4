//! A database of heaps, whatever keeps it.

mod ask;
mod keep;
mod paths;
mod read;

use std::collections::HashSet;
#[cfg(feature = "sqlite")]
use std::path::Path;

use borehole_heap::Graph;

use crate::backend::Backend;
use crate::dialect::Dialect;
use crate::error::{Error, ErrorKind};
use crate::rows;
use crate::schema::TABLES;
use crate::server::{Access, Server};
#[cfg(feature = "sqlite")]
use crate::sqlite::Sqlite;

pub use keep::Keep;

/// A step on the way of a run into a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// All rows of the graph are in their tables.
    Rows,
    /// They are added up by type and class. What is left is what makes questions fast: indexes, views, statistics.
    Sums,
}

/// A database: a file of SQLite, or one of a server.
pub struct Database {
    backend: Box<dyn Backend>,
    /// Whether the file is only ours until it is complete: then there is nothing to protect from.
    is_new: bool,
}

impl Database {
    /// A new database in the empty or missing file at `path`, which is not seen by anybody else until it is complete: if
    /// writing fails, the file is of no use.
    ///
    /// # Errors
    /// When the file cannot be written.
    #[cfg(feature = "sqlite")]
    pub fn create(path: &Path) -> Result<Self, Error> {
        Ok(Self { backend: Box::new(Sqlite::create(path)?), is_new: true })
    }

    /// A database file that exists, to add runs to or to change.
    ///
    /// # Errors
    /// When the file cannot be read, or is no database.
    #[cfg(feature = "sqlite")]
    pub fn open(path: &Path) -> Result<Self, Error> {
        Ok(Self { backend: Box::new(Sqlite::open(path)?), is_new: false })
    }

    /// A database file that is only read.
    ///
    /// # Errors
    /// When the file cannot be read, or is no database.
    #[cfg(feature = "sqlite")]
    pub fn read(path: &Path) -> Result<Self, Error> {
        Ok(Self { backend: Box::new(Sqlite::read(path)?), is_new: false })
    }

    /// The database of a server.
    ///
    /// # Errors
    /// When there is no connection, no such database, or the server is too old.
    pub fn connect(server: &Server, access: Access) -> Result<Self, Error> {
        Ok(Self { backend: connected(server, access)?, is_new: false })
    }

    /// What it speaks.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        self.backend.dialect()
    }

    /// Adds `graph` as a run of its own, with all tables, indexes and views that are missing, and answers its number. The
    /// run is there whole or not at all.
    ///
    /// # Errors
    /// When the database cannot be written, or holds tables of another shape.
    pub fn add_run<G: Graph>(&mut self, graph: &G, created_at: &str) -> Result<i64, Error> {
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
    ) -> Result<i64, Error> {
        let dialect = self.dialect();
        if !dialect.commits_what_it_makes() {
            return self.change(|database| {
                database.make_tables()?;
                let run = database.insert(graph, created_at, done)?;
                database.make_rest()?;
                Ok(run)
            });
        }
        self.make_tables()?;
        let run = self.change(|database| database.insert(graph, created_at, done))?;
        // The run is there: what fails from here on makes questions slow, and is made good by the next run.
        self.make_rest()?;
        Ok(run)
    }

    /// Does all that `act` does, or nothing of it.
    fn change<T>(&mut self, act: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        let begin = self.dialect().begin();
        self.within(begin, act)
    }

    fn within<T>(
        &mut self,
        begin: &str,
        act: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.backend.execute(begin)?;
        let done = act(self).and_then(|done| self.backend.execute("COMMIT").map(|()| done));
        if done.is_err() {
            // Where the connection is gone, the server does it by itself; what went wrong before is what is said.
            drop(self.backend.execute("ROLLBACK"));
        }
        done
    }

    fn execute(&mut self, statements: &[String]) -> Result<(), Error> {
        statements.iter().try_for_each(|statement| self.backend.execute(statement))
    }

    fn make_tables(&mut self) -> Result<(), Error> {
        let dialect = self.dialect();
        let existing = self.existing()?;
        let missing = TABLES.iter().filter(|table| !existing.contains(table.name));
        let statements: Vec<_> = missing.map(|table| dialect.create_table(table)).collect();
        self.execute(&statements)?;
        if self.is_new { Ok(()) } else { self.check_shape() }
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
        let views = ["v_node_paths", "v_arrays"].into_iter().zip(dialect.create_views());
        let views: Vec<_> =
            views.filter(|(name, _)| !existing.contains(*name)).map(|(_, statement)| statement).collect();
        self.execute(&views)?;
        self.execute(&dialect.statistics())
    }

    /// The names of all tables, indexes and views.
    fn existing(&mut self) -> Result<HashSet<String>, Error> {
        let mut names = HashSet::new();
        let statement = self.dialect().existing();
        self.backend.select(statement, &[], &mut |fields| {
            names.insert(fields[0].text());
            Ok(())
        })?;
        Ok(names)
    }

    /// Refuses tables that lack columns.
    fn check_shape(&mut self) -> Result<(), Error> {
        let dialect = self.dialect();
        for table in TABLES {
            let columns = table.columns.iter().map(|column| dialect.quoted(column.name));
            let columns = columns.collect::<Vec<_>>().join(", ");
            let probe = format!("SELECT {columns} FROM {} LIMIT 0", table.name);
            let probed = self.backend.select(&probe, &[], &mut |_| Ok(()));
            probed.map_err(|error| match error.kind() {
                ErrorKind::Statement => {
                    let message = format!(
                        "expected a database of heaps, with a table {} of {columns}: {error}",
                        table.name
                    );
                    Error::new(ErrorKind::Unsupported, message)
                }
                _ => error,
            })?;
        }
        Ok(())
    }
}

/// A connection to a server of a kind that this build knows.
fn connected(server: &Server, access: Access) -> Result<Box<dyn Backend>, Error> {
    match server.kind() {
        #[cfg(feature = "postgresql")]
        crate::ServerKind::Postgresql => {
            Ok(Box::new(crate::postgresql::Postgresql::connect(server, access)?))
        }
        #[cfg(feature = "mysql")]
        crate::ServerKind::Mysql => Ok(Box::new(crate::mysql::Mysql::connect(server, access)?)),
        #[cfg(not(all(feature = "postgresql", feature = "mysql")))]
        other => {
            let message = format!("unsupported server: this build knows no {other:?}, for {access:?}");
            Err(Error::new(ErrorKind::Unsupported, message))
        }
    }
}
