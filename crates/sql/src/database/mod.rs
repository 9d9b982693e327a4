//! A database of heaps, independent of its kind.

mod add;
mod all_paths;
mod ask;
mod below;
mod keep;
mod path;
mod paths;
mod read;
mod shape;

use std::collections::HashSet;
#[cfg(feature = "sqlite")]
use std::path::Path;
use std::time::Duration;

use crate::backend::Backend;
use crate::dialect::SqlDialect;
use crate::error::Error;
#[cfg(not(all(feature = "postgresql", feature = "mysql")))]
use crate::error::ErrorKind;
use crate::server::{Access, Server};
#[cfg(feature = "sqlite")]
use crate::sqlite::Sqlite;

pub use add::{AddStep, AddedRun};
pub use ask::StoredRun;
pub use keep::Keep;

/// A database: a SQLite file, or a database of a server.
pub struct Database {
    backend: Box<dyn Backend>,
}

impl Database {
    /// Creates a database in the empty or missing file at `path`. Nobody else may use it until it is complete; if
    /// writing fails, the file is useless.
    ///
    /// # Errors
    /// If the file cannot be written.
    #[cfg(feature = "sqlite")]
    pub fn create(path: &Path) -> Result<Self, Error> {
        Ok(Self { backend: Box::new(Sqlite::create(path)?) })
    }

    /// Opens an existing database file to add or change runs.
    ///
    /// # Errors
    /// If the file cannot be read, or is not a database.
    #[cfg(feature = "sqlite")]
    pub fn open(path: &Path) -> Result<Self, Error> {
        Ok(Self { backend: Box::new(Sqlite::open(path)?) })
    }

    /// Opens a database file for reading only.
    ///
    /// # Errors
    /// If the file cannot be read, or is not a database.
    #[cfg(feature = "sqlite")]
    pub fn read(path: &Path) -> Result<Self, Error> {
        Ok(Self { backend: Box::new(Sqlite::read(path)?) })
    }

    /// Connects to a database of a server.
    ///
    /// # Errors
    /// If the connection fails, the database does not exist, or the server is too old.
    pub fn connect(server: &Server, access: Access) -> Result<Self, Error> {
        Ok(Self { backend: connected(server, access)? })
    }

    /// Sets how long to wait for the next row of an answer of a file [default: ten minutes]; for a server, the limit of its
    /// [`Server`] holds.
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.backend.set_timeout(timeout);
    }

    /// The dialect of the database.
    #[must_use]
    pub fn dialect(&self) -> SqlDialect {
        self.backend.dialect()
    }

    /// Runs `act` in a transaction: does all of it or nothing.
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
            // If the connection is gone, the server rolls back by itself; the first error is the one reported.
            drop(self.backend.execute("ROLLBACK"));
        }
        done
    }

    /// Runs `act` while no other writer has the turn.
    fn in_turn<T>(&mut self, act: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        self.backend.take_turn()?;
        let done = act(self);
        self.backend.end_turn();
        done
    }

    fn execute(&mut self, statements: &[String]) -> Result<(), Error> {
        statements.iter().try_for_each(|statement| self.backend.execute(statement))
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
}

/// Connects to a server whose kind this build supports.
fn connected(server: &Server, access: Access) -> Result<Box<dyn Backend>, Error> {
    match server.kind() {
        #[cfg(feature = "postgresql")]
        crate::ServerSoftware::Postgresql => {
            Ok(Box::new(crate::postgresql::Postgresql::connect(server, access)?))
        }
        #[cfg(feature = "mysql")]
        crate::ServerSoftware::Mysql => Ok(Box::new(crate::mysql::Mysql::connect(server, access)?)),
        #[cfg(not(all(feature = "postgresql", feature = "mysql")))]
        other => {
            let message = format!("unsupported server: this build has no client for {other:?} ({access:?})");
            Err(Error::new(ErrorKind::Unsupported, message))
        }
    }
}
