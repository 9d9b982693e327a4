//! SQLite files of others: what they may do when they are opened, and what they may cost.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, Error as SqliteError};

use crate::error::{Error, ErrorKind, SpentLimit};
use crate::schema::TABLES;
use crate::server::Access;

/// The time limit for the next row of an answer, unless another one is set: sorting a large run takes long.
const PATIENCE: Duration = Duration::from_secs(600);

/// The number of SQLite's instructions after which the time is looked at: less than a millisecond's.
const INSTRUCTIONS: i32 = 100_000;

/// The largest cache of pages, in bytes.
const CACHE: usize = 256 << 20;

/// Makes sure that opening and reading a file only reads: nothing in its schema is executed that could do harm, and nothing
/// on adding a row. The memory that SQLite itself takes stays within half of the program's budget, and a text within an eighth,
/// for there are copies of it.
pub(crate) fn restrict(connection: &Connection, access: Access) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    let budget = borehole_memory::budget();
    let cache = CACHE.min(budget / 8);
    connection.execute_batch(&format!("PRAGMA cache_size = -{}; PRAGMA threads = 2", cache / 1024))?;
    if budget == usize::MAX {
        return Ok(());
    }
    // It has a row with the limit.
    connection.query_row(&format!("PRAGMA hard_heap_limit = {}", budget / 2), [], |_| Ok(()))?;
    if access == Access::Read {
        connection
            .set_limit(Limit::SQLITE_LIMIT_LENGTH, i32::try_from(longest(budget)).unwrap_or(i32::MAX))?;
    }
    Ok(())
}

/// The longest text that is read, in bytes.
const fn longest(budget: usize) -> usize {
    budget / 8
}

/// Refuses a database in which something else has the name of a table: a view may compute for ever.
pub(crate) fn check_tables(connection: &Connection) -> Result<(), Error> {
    let statement = "SELECT name, type FROM pragma_table_list WHERE schema = 'main' AND type <> 'table'";
    let mut statement = connection.prepare(statement).map_err(crate::sqlite::refused)?;
    let mut others = statement.query([]).map_err(crate::sqlite::refused)?;
    while let Some(other) = others.next().map_err(crate::sqlite::refused)? {
        let [name, kind] = [0, 1].map(|column| other.get::<_, String>(column).unwrap_or_default());
        if TABLES.iter().any(|table| table.name.eq_ignore_ascii_case(&name)) {
            let message =
                format!("expected a heap database with a table {name}, found a {kind} of that name");
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
    }
    Ok(())
}

/// The error that a text is too long, or that SQLite needs more memory than it may take.
pub(crate) fn too_large(what: &str) -> Error {
    let most = longest(borehole_memory::budget()) >> 20;
    let message = format!("{what}: texts of at most {most} MiB are read within the limit of memory");
    Error::new(ErrorKind::Io, message).spending(SpentLimit::Memory)
}

/// Interrupts a statement that gives no row for too long.
#[derive(Debug)]
pub(crate) struct Onlooker {
    begun: Instant,
    /// When the statement is interrupted, in milliseconds from `begun`.
    deadline_ms: Arc<AtomicU64>,
    limit: Duration,
}

impl Onlooker {
    /// Looks on while `connection` works.
    pub(crate) fn new(connection: &mut Connection) -> rusqlite::Result<Self> {
        let (begun, deadline_ms) = (Instant::now(), Arc::new(AtomicU64::new(u64::MAX)));
        let seen = Arc::clone(&deadline_ms);
        let is_late = move || since_ms(begun) > seen.load(Ordering::Relaxed);
        connection.progress_handler(INSTRUCTIONS, Some(is_late))?;
        Ok(Self { begun, deadline_ms, limit: PATIENCE })
    }

    pub(crate) const fn set_limit(&mut self, limit: Duration) {
        self.limit = limit;
    }

    /// Begins to wait for a row.
    pub(crate) fn waits(&self) {
        let limit_ms = u64::try_from(self.limit.as_millis()).unwrap_or(u64::MAX);
        self.deadline_ms.store(since_ms(self.begun).saturating_add(limit_ms), Ordering::Relaxed);
    }

    /// Waits for nothing any more.
    pub(crate) fn rests(&self) {
        self.deadline_ms.store(u64::MAX, Ordering::Relaxed);
    }

    /// The error of a statement that was interrupted.
    pub(crate) fn late(&self, error: SqliteError) -> Error {
        if error.sqlite_error_code() != Some(rusqlite::ErrorCode::OperationInterrupted) {
            return crate::sqlite::refused(error);
        }
        let limit = crate::time_limits::duration(self.limit);
        let message = format!("waited {limit} for a row of the answer");
        Error::new(ErrorKind::Statement, message).spending(SpentLimit::Time)
    }
}

fn since_ms(begun: Instant) -> u64 {
    u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX)
}
