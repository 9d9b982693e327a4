//! Prepares the place of a new SQLite file.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{fs, io};

use rusqlite::{Connection, OpenFlags};

use crate::error::{Error, ErrorKind};
use crate::sqlite::{PATIENCE, named, refused};

/// A database file that is about to be replaced, locked against all others until this is dropped.
///
/// SQLite finds the leftovers of a writer by name alone: it would apply a journal of the old file to the new one.
pub struct Replaced(#[expect(dead_code, reason = "it holds the lock of the file")] Option<Connection>);

/// The suffixes of the files that SQLite creates beside a database.
///
/// Source: SQLite's documentation, "Temporary Files Used By SQLite".
const BESIDE: [&str; 3] = ["-journal", "-wal", "-shm"];

impl Replaced {
    /// Prepares `path`, after resolving links, for a new file. First it rolls back the unfinished changes of a dead
    /// writer, so that the old database stays intact if it is not replaced after all. Then it removes the files beside
    /// it. A file that is not a database, or is damaged, stays unchanged.
    ///
    /// # Errors
    /// If the database is being written, or a file beside it cannot be removed.
    pub fn at(path: &Path) -> Result<Self, Error> {
        let whole = if path.is_file() { settled(path) } else { Ok(None) };
        let locked = match whole.map_err(refused) {
            Err(error) if error.kind() == ErrorKind::Locked => return Err(error),
            // A database that cannot be opened cannot be rolled back either.
            whole => whole.ok().flatten(),
        };
        BESIDE.iter().try_for_each(|suffix| remove(path, suffix))?;
        Ok(Self(locked))
    }
}

/// The database at `path`, without the leftovers of a writer, and with a lock on it.
fn settled(path: &Path) -> rusqlite::Result<Option<Connection>> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(named(path), flags)?;
    connection.busy_timeout(PATIENCE)?;
    // The first statement rolls back unfinished changes; the second applies and ends a write-ahead log.
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    connection.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(()))?;
    connection.execute_batch("BEGIN EXCLUSIVE")?;
    Ok(Some(connection))
}

/// The file beside `path` with this suffix.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut beside = OsString::from(path);
    beside.push(suffix);
    beside.into()
}

fn remove(path: &Path, suffix: &str) -> Result<(), Error> {
    let beside = beside(path, suffix);
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            let message =
                format!("cannot remove {}, which belongs to the old database: {error}", beside.display());
            Err(Error::caused(ErrorKind::Io, message, error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use borehole_testkit::Scratch;

    use super::*;
    use crate::{Database, ErrorKind};

    /// A database as a killed writer leaves it: a thousand rows, and then an unfinished transaction in `mode`.
    fn left_by_a_killed_writer(scratch: &Scratch, mode: &str, end: &str) -> PathBuf {
        let (whole, left) = (scratch.path("whole.db"), scratch.path(&format!("{mode}.db")));
        let connection = Connection::open(&whole).unwrap();
        connection.query_row(&format!("PRAGMA journal_mode = {mode}"), [], |_| Ok(())).unwrap();
        let rows = "WITH RECURSIVE row(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM row WHERE n < 1000) \
                    INSERT INTO filled SELECT n, hex(randomblob(500)) FROM row";
        let begun = format!(
            "PRAGMA cache_size = 2; CREATE TABLE filled (n, text); {rows}; BEGIN; \
                             UPDATE filled SET text = hex(randomblob(500)); {rows}; {end}"
        );
        connection.execute_batch(&begun).unwrap();
        fs::copy(&whole, &left).unwrap();
        for suffix in BESIDE {
            if beside(&whole, suffix).exists() {
                fs::copy(beside(&whole, suffix), beside(&left, suffix)).unwrap();
            }
        }
        drop(connection);
        fs::remove_file(&whole).unwrap();
        left
    }

    fn rows(path: &Path) -> i64 {
        let connection = Connection::open(path).unwrap();
        let check: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(check, "ok");
        connection.query_row("SELECT COUNT(*) FROM filled", [], |row| row.get(0)).unwrap()
    }

    fn left(path: &Path) -> Vec<PathBuf> {
        let all = BESIDE.map(|suffix| beside(path, suffix));
        all.into_iter().filter(|path| path.exists()).collect()
    }

    #[test]
    fn leftovers_of_a_killed_writer_do_not_reach_the_new_file() {
        let scratch = Scratch::new();
        for (mode, end, expected) in [("delete", "", 1000), ("wal", "COMMIT", 2000)] {
            let path = left_by_a_killed_writer(&scratch, mode, end);
            assert!(!left(&path).is_empty(), "{mode}");
            let replaced = Replaced::at(&path).unwrap();
            assert_eq!(left(&path), Vec::<PathBuf>::new());
            // If the program is killed here, the old file is intact.
            let old = scratch.path("old.db");
            fs::copy(&path, &old).unwrap();
            assert_eq!(rows(&old), expected, "{mode}");
            let new = scratch.path("new.db");
            Connection::open(&new).unwrap().execute_batch("CREATE TABLE filled (n, text)").unwrap();
            fs::rename(&new, &path).unwrap();
            drop(replaced);
            assert_eq!(rows(&path), 0, "{mode}");
        }
    }

    #[test]
    fn leftovers_without_a_database_are_removed() {
        let scratch = Scratch::new();
        let path = scratch.path("gone.db");
        for there in [None, Some("Buy milk. Buy more milk, and then some more.")] {
            if let Some(text) = there {
                fs::write(&path, text).unwrap();
            }
            for suffix in BESIDE {
                fs::write(beside(&path, suffix), "left").unwrap();
            }
            drop(Replaced::at(&path).unwrap());
            assert_eq!(left(&path), Vec::<PathBuf>::new());
            assert_eq!(fs::read_to_string(&path).ok().as_deref(), there);
        }
    }

    #[test]
    fn a_database_being_written_is_not_replaced() {
        let scratch = Scratch::new();
        let path = scratch.path("busy.db");
        let writing = Connection::open(&path).unwrap();
        writing.execute_batch("CREATE TABLE a (b); BEGIN IMMEDIATE; INSERT INTO a VALUES (1)").unwrap();
        let before = left(&path);
        let error = Replaced::at(&path).err().unwrap();
        assert_eq!((error.kind(), left(&path)), (ErrorKind::Locked, before));
        writing.execute_batch("COMMIT").unwrap();
        // The file to be replaced is not written.
        let replaced = Replaced::at(&path).unwrap();
        assert_eq!(Database::open(&path).err().unwrap().kind(), ErrorKind::Locked);
        drop(replaced);
        Database::open(&path).unwrap();
    }
}
