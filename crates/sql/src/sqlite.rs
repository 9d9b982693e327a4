//! SQLite files.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use rusqlite::types::{Null, ValueRef};
use rusqlite::{Connection, ErrorCode, OpenFlags, Statement, ffi, params_from_iter};

use crate::backend::{Backend, Fill, ResultField, ResultRows};
use crate::cells::{DecodedCell, EncodedCells, encode_cells};
use crate::dialect::SqlDialect;
use crate::error::{Error, ErrorKind, LOCKED};
use crate::foreign::{self, Onlooker};
use crate::pipe::{self, RowBatch};
use crate::rows;
use crate::schema::SchemaTable;
use crate::server::Access;

/// A database file.
pub(crate) struct Sqlite {
    connection: Connection,
    access: Access,
    onlooker: Onlooker,
}

/// Settings for a new file that nobody else can see yet. If the machine fails, there is no file.
///
/// Source: reli's document, "Bulk insert tuning"; a cache of 256 MiB and a second thread serve the sorting of indexes.
const FOR_NEW: &str = "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE; \
                       PRAGMA cache_size = -262144; PRAGMA temp_store = FILE; PRAGMA threads = 2;";

/// The maximum time to wait for another writer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

impl Sqlite {
    /// Creates a database in the empty or missing file at `path`.
    pub(crate) fn create(path: &Path) -> Result<Self, Error> {
        let connection = Connection::open(named(path)).map_err(refused)?;
        connection.execute_batch(FOR_NEW).map_err(refused)?;
        Self::new(connection, Access::Write)
    }

    /// Opens an existing database to change it.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let connection = connect(checked(path)?, Access::Write).map_err(refused)?;
        Self::existing(connection, Access::Write)
    }

    /// Opens a database for reading only. The unfinished changes of a killed writer are rolled back first, which needs
    /// write permission.
    pub(crate) fn read(path: &Path) -> Result<Self, Error> {
        let connected = match connect(checked(path)?, Access::Read) {
            Err(error) if is_unfinished(&error) => {
                drop(Self::open(path)?);
                connect(path, Access::Read)
            }
            connected => connected,
        };
        Self::existing(connected.map_err(refused)?, Access::Read)
    }

    fn existing(connection: Connection, access: Access) -> Result<Self, Error> {
        foreign::check_tables(&connection)?;
        Self::new(connection, access)
    }

    fn new(mut connection: Connection, access: Access) -> Result<Self, Error> {
        let onlooker = Onlooker::new(&mut connection).map_err(refused)?;
        Ok(Self { connection, access, onlooker })
    }
}

/// Makes a path that SQLite cannot misread: it takes one that begins with `file:` for a URI, and `:memory:` for no file.
pub(crate) fn named(path: &Path) -> PathBuf {
    if path.is_absolute() { path.to_owned() } else { Path::new(".").join(path) }
}

/// Rejects a missing file, a folder, for which SQLite would report a disk error, and a device, which it would write to.
fn checked(path: &Path) -> Result<&Path, Error> {
    match path.metadata() {
        Ok(found) if found.is_dir() => {
            Err(Error::new(ErrorKind::Unsupported, "expected an SQLite database, found a directory"))
        }
        Ok(found) if !found.is_file() => {
            Err(Error::new(ErrorKind::Unsupported, "expected an SQLite database, found a device or pipe"))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(Error::caused(ErrorKind::Io, "no such file or directory", error))
        }
        _ => Ok(path),
    }
}

/// Opens a file that others may use at the same time, and may have made.
fn connect(path: &Path, access: Access) -> rusqlite::Result<Connection> {
    let flags = match access {
        Access::Read => OpenFlags::SQLITE_OPEN_READ_ONLY,
        Access::Write => OpenFlags::SQLITE_OPEN_READ_WRITE,
    };
    let connection = Connection::open_with_flags(named(path), flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(PATIENCE)?;
    foreign::restrict(&connection, access)?;
    // The first read of the file.
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    Ok(connection)
}

/// Whether the file needs a rollback of a dead writer's changes but may not be written.
fn is_unfinished(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error().map(|error| error.extended_code);
    [ffi::SQLITE_READONLY_ROLLBACK, ffi::SQLITE_READONLY_RECOVERY].map(Some).contains(&code)
}

impl Backend for Sqlite {
    fn dialect(&self) -> SqlDialect {
        SqlDialect::Sqlite
    }

    fn execute(&mut self, statement: &str) -> Result<(), Error> {
        self.connection.execute_batch(statement).map_err(refused)
    }

    fn answer(
        &mut self,
        statement: &str,
        numbers: &[Option<i64>],
        rows: &mut dyn ResultRows,
    ) -> Result<(), Error> {
        let mut statement = self.connection.prepare(statement).map_err(refused)?;
        // `VACUUM INTO` writes another file even if this one is opened read-only.
        if self.access == Access::Read && !statement.readonly() {
            let message = "expected a read-only statement, found one that changes the database";
            return Err(Error::new(ErrorKind::Statement, message));
        }
        let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
        rows.columns(&columns)?;
        let mut found = statement.query(params_from_iter(numbers)).map_err(refused)?;
        loop {
            self.onlooker.waits();
            let next = found.next();
            self.onlooker.rests();
            let Some(row) = next.map_err(|error| self.onlooker.late(error))? else { return Ok(()) };
            let fields = (0..columns.len()).map(|index| row.get_ref(index).map(field));
            let fields: Vec<_> = fields.collect::<Result<_, _>>().map_err(refused)?;
            rows.row(&fields)?;
        }
    }

    fn set_timeout(&mut self, timeout: Duration) {
        self.onlooker.set_limit(timeout);
    }

    fn insert_run(&mut self, created_at: &str) -> Result<i64, Error> {
        let statement = "INSERT INTO runs (created_at) VALUES (?1)";
        self.connection.execute(statement, [created_at]).map_err(refused)?;
        Ok(self.connection.last_insert_rowid())
    }

    fn load(&mut self, fill: &mut Fill<'_>) -> Result<(), Error> {
        let connection = &mut self.connection;
        pipe::run(encode_cells, fill, |table, batches| insert(connection, table, batches))
    }
}

const fn field(value: ValueRef<'_>) -> ResultField<'_> {
    match value {
        ValueRef::Null => ResultField::Null,
        ValueRef::Integer(number) => ResultField::Integer(number),
        ValueRef::Real(number) => ResultField::Real(number),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => ResultField::Text(bytes),
    }
}

/// The number of rows per insert statement: with more rows, SQLite searches less often for the place of a row.
const ROWS: u32 = 100;

fn insert(
    connection: &mut Connection,
    table: &'static SchemaTable,
    batches: Receiver<RowBatch>,
) -> Result<(), Error> {
    let columns: Vec<_> = rows::given(table).collect();
    let prepare = |count: u32| {
        let row = format!("({})", vec!["?"; columns.len()].join(", "));
        let rows = vec![&*row; count as usize].join(", ");
        connection.prepare(&format!("INSERT INTO {} ({}) VALUES {rows}", table.name, columns.join(", ")))
    };
    let mut many = prepare(ROWS).map_err(refused)?;
    let mut one = prepare(1).map_err(refused)?;
    for batch in batches {
        let mut cells = EncodedCells(&batch.bytes);
        for _ in 0..batch.rows / u64::from(ROWS) {
            insert_rows(&mut many, &mut cells).map_err(refused)?;
        }
        for _ in 0..batch.rows % u64::from(ROWS) {
            insert_rows(&mut one, &mut cells).map_err(refused)?;
        }
    }
    Ok(())
}

/// Inserts as many rows as the statement has placeholders for.
fn insert_rows(statement: &mut Statement<'_>, cells: &mut EncodedCells<'_>) -> rusqlite::Result<()> {
    for (index, cell) in (1..=statement.parameter_count()).zip(cells) {
        match cell {
            DecodedCell::Null => statement.raw_bind_parameter(index, Null),
            DecodedCell::Integer(number) => statement.raw_bind_parameter(index, number),
            DecodedCell::Text(text) => statement.raw_bind_parameter(index, text),
        }?;
    }
    statement.raw_execute().map(drop)
}

/// Converts an error of SQLite, and adds a remedy.
#[cold]
pub(crate) fn refused(error: rusqlite::Error) -> Error {
    let code = error.sqlite_error_code();
    // SQLite's own message would not help.
    if code == Some(ErrorCode::DatabaseCorrupt) {
        return Error::new(ErrorKind::Damaged, "the database is damaged");
    }
    let (kind, message) = match code {
        Some(ErrorCode::NotADatabase) => (ErrorKind::Unsupported, "expected an SQLite database".to_owned()),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => (ErrorKind::Locked, LOCKED.to_owned()),
        Some(ErrorCode::TooBig) => return foreign::too_large("text too large"),
        Some(ErrorCode::OutOfMemory) => return foreign::too_large("not enough memory for SQLite"),
        Some(ErrorCode::DiskFull) => (ErrorKind::Io, "the disk is full".to_owned()),
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            (ErrorKind::Io, format!("cannot open or write the database: {error}"))
        }
        Some(ErrorCode::SystemIoFailure) => (ErrorKind::Io, error.to_string()),
        _ if matches!(error, rusqlite::Error::InvalidParameterCount(..)) => {
            let message = "unsupported parameter in the statement: expected only :run, :other and :node";
            (ErrorKind::Statement, message.to_owned())
        }
        _ => (ErrorKind::Statement, error.to_string()),
    };
    // The source would add only SQLite's number for the same message.
    Error::new(kind, message)
}
