//! Heaps in a file of SQLite.

mod ask;
mod load;
mod paths;
mod read;

use std::path::Path;
use std::time::Duration;

use borehole_heap::Graph;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::dialect::Dialect;
use crate::error::{Error, ErrorKind};
use crate::rows;
use crate::schema::TABLES;
use load::Loader;

/// A database file.
pub struct Sqlite {
    connection: Connection,
    /// Whether the file is only ours until it is complete: then there is nothing to protect from.
    is_new: bool,
}

const DIALECT: Dialect = Dialect::Sqlite;

/// Settings for a file that nobody else sees yet: if the machine fails, there is no file.
///
/// Source: reli's document, "Bulk insert tuning"; a cache of 256 MiB and a second thread serve the sorting of indexes.
const FOR_NEW: &str = "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE; \
                       PRAGMA cache_size = -262144; PRAGMA temp_store = FILE; PRAGMA threads = 2;";

/// Settings for a file that others may read meanwhile.
const FOR_EXISTING: &str = "PRAGMA cache_size = -262144; PRAGMA threads = 2;";

/// What tells SQLite how many rows an index leads to. Without it, it takes the wrong one for paths and depths, and looks at
/// all nodes for each node.
const STATISTICS: &str = "PRAGMA analysis_limit = 1000; ANALYZE;";

/// How long to wait for somebody else who writes.
const PATIENCE: Duration = Duration::from_secs(5);

impl Sqlite {
    /// A new database in the empty or missing file at `path`, which is not seen by anybody else until it is complete: if
    /// writing fails, the file is of no use.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn create(path: &Path) -> Result<Self, Error> {
        let connection = Connection::open(path).map_err(refused)?;
        connection.execute_batch(FOR_NEW).map_err(refused)?;
        Ok(Self { connection, is_new: true })
    }

    /// A database that exists, to add runs to or to change.
    ///
    /// # Errors
    /// When the file cannot be read, or is no database.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Self::open_with(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
    }

    /// A database that is only read.
    ///
    /// # Errors
    /// When the file cannot be read, or is no database.
    pub fn read(path: &Path) -> Result<Self, Error> {
        Self::open_with(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
    }

    fn open_with(path: &Path, flags: OpenFlags) -> Result<Self, Error> {
        let connection = Connection::open_with_flags(path, flags).map_err(refused)?;
        connection.busy_timeout(PATIENCE).map_err(refused)?;
        connection.execute_batch(FOR_EXISTING).map_err(refused)?;
        // Reads the file for the first time.
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(())).map_err(refused)?;
        Ok(Self { connection, is_new: false })
    }

    /// Adds `graph` as a run of its own, with all tables, indexes and views that are missing, and answers its number. The
    /// run is there whole or not at all.
    ///
    /// # Errors
    /// When the database cannot be written, or holds tables of another shape.
    pub fn add_run<G: Graph>(&mut self, graph: &G, created_at: &str) -> Result<i64, Error> {
        let transaction = self.connection.transaction().map_err(refused)?;
        let (first, last) = DIALECT.create_all();
        execute(&transaction, &first)?;
        if !self.is_new {
            check_shape(&transaction)?;
        }
        transaction.execute("INSERT INTO runs (created_at) VALUES (?1)", [created_at]).map_err(refused)?;
        let run = transaction.last_insert_rowid();
        rows::write(graph, run, &mut Loader::new(&transaction))?;
        execute(&transaction, &DIALECT.add_up(run))?;
        execute(&transaction, &last)?;
        transaction.execute_batch(STATISTICS).map_err(refused)?;
        transaction.commit().map_err(refused)?;
        Ok(run)
    }
}

fn execute(connection: &Connection, statements: &[String]) -> Result<(), Error> {
    statements.iter().try_for_each(|statement| connection.execute_batch(statement)).map_err(refused)
}

/// Refuses tables that lack columns.
fn check_shape(connection: &Connection) -> Result<(), Error> {
    for table in TABLES {
        let columns = table.columns.iter().map(|column| column.name).collect::<Vec<_>>().join(", ");
        let probe = format!("SELECT {columns} FROM {} LIMIT 0", table.name);
        connection.prepare(&probe).map_err(|error| {
            let message =
                format!("expected a database of heaps, with a table {} of {columns}: {error}", table.name);
            Error::new(ErrorKind::Unsupported, message)
        })?;
    }
    Ok(())
}

/// An error of SQLite's with what to do about it.
#[cold]
fn refused(error: rusqlite::Error) -> Error {
    let code = error.sqlite_error_code();
    let (kind, message) = match code {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            (ErrorKind::Unsupported, "expected a database of SQLite".to_owned())
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => (
            ErrorKind::Locked,
            "somebody else is writing the database; try again when they are done".to_owned(),
        ),
        Some(ErrorCode::DiskFull) => (ErrorKind::Io, "the disk is full".to_owned()),
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            (ErrorKind::Io, format!("the database cannot be opened or written: {error}"))
        }
        _ => (ErrorKind::Statement, error.to_string()),
    };
    Error::caused(kind, message, error)
}
