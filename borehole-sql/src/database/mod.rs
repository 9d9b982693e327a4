//! A database of heaps, whatever keeps it.

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

use crate::backend::Backend;
use crate::dialect::Dialect;
use crate::error::Error;
#[cfg(not(all(feature = "postgresql", feature = "mysql")))]
use crate::error::ErrorKind;
use crate::server::{Access, Server};
#[cfg(feature = "sqlite")]
use crate::sqlite::Sqlite;

pub use add::{Added, Step};
pub use keep::Keep;

/// A database: a file of SQLite, or one of a server.
pub struct Database {
    backend: Box<dyn Backend>,
}

impl Database {
    /// A new database in the empty or missing file at `path`, which is not seen by anybody else until it is complete: if
    /// writing fails, the file is of no use.
    ///
    /// # Errors
    /// When the file cannot be written.
    #[cfg(feature = "sqlite")]
    pub fn create(path: &Path) -> Result<Self, Error> {
        Ok(Self { backend: Box::new(Sqlite::create(path)?) })
    }

    /// A database file that exists, to add runs to or to change.
    ///
    /// # Errors
    /// When the file cannot be read, or is no database.
    #[cfg(feature = "sqlite")]
    pub fn open(path: &Path) -> Result<Self, Error> {
        Ok(Self { backend: Box::new(Sqlite::open(path)?) })
    }

    /// A database file that is only read.
    ///
    /// # Errors
    /// When the file cannot be read, or is no database.
    #[cfg(feature = "sqlite")]
    pub fn read(path: &Path) -> Result<Self, Error> {
        Ok(Self { backend: Box::new(Sqlite::read(path)?) })
    }

    /// The database of a server.
    ///
    /// # Errors
    /// When there is no connection, no such database, or the server is too old.
    pub fn connect(server: &Server, access: Access) -> Result<Self, Error> {
        Ok(Self { backend: connected(server, access)? })
    }

    /// What it speaks.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        self.backend.dialect()
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

    /// Does what `act` does while nobody else has the turn to write.
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
