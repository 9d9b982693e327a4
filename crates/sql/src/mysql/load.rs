//! Loads rows into tables of MySQL and MariaDB.

use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use mysql::prelude::Queryable as _;
use mysql::{Conn, LocalInfileHandler, Params, Statement, Value};

use super::link::{Link, Watch};
use super::refused;
use crate::backend::Fill;
use crate::cells::{DecodedCell, EncodedCells, encode_cells};
use crate::dialect::SqlDialect;
use crate::error::{Error, ErrorKind};
use crate::pipe::{self, RowBatch};
use crate::rows::{self, CellValue};
use crate::schema::SchemaTable;

/// Sends the rows of a table as a local file that the server asks for.
pub(super) fn files(link: &mut Link, fill: &mut Fill<'_>) -> Result<(), Error> {
    pipe::run(encode_line, fill, |table, batches| {
        let waited_for = waited_for(table);
        link.wait(&waited_for, |connection, watch| file(connection, watch, table, batches))
    })
}

fn waited_for(table: &SchemaTable) -> String {
    format!("the rows of {} to be taken", table.name)
}

/// Encodes a row as a line in the default format of `LOAD DATA`.
fn encode_line(cells: &[CellValue<'_>], bytes: &mut Vec<u8>) {
    for (index, cell) in cells.iter().enumerate() {
        if index > 0 {
            bytes.push(b'\t');
        }
        match cell {
            CellValue::Null => bytes.extend_from_slice(b"\\N"),
            CellValue::Integer(number) => write!(bytes, "{number}").expect("memory takes all"),
            CellValue::Text(text) => push_escaped(bytes, text.as_bytes()),
        }
    }
    bytes.push(b'\n');
}

fn push_escaped(bytes: &mut Vec<u8>, text: &[u8]) {
    if !text.iter().any(|byte| matches!(byte, b'\\' | b'\t' | b'\n')) {
        return bytes.extend_from_slice(text);
    }
    for &byte in text {
        match byte {
            b'\\' => bytes.extend_from_slice(b"\\\\"),
            b'\t' => bytes.extend_from_slice(b"\\t"),
            b'\n' => bytes.extend_from_slice(b"\\n"),
            other => bytes.push(other),
        }
    }
}

fn columns(table: &SchemaTable) -> String {
    rows::given(table).map(|name| SqlDialect::Mysql.quoted(name)).collect::<Vec<_>>().join(", ")
}

fn file(
    connection: &mut Conn,
    watch: &Arc<Watch>,
    table: &'static SchemaTable,
    batches: Receiver<RowBatch>,
) -> Result<(), Error> {
    let (count, counted) = std::sync::mpsc::channel();
    let (mut given, watch) = (0, Arc::clone(watch));
    connection.set_local_infile_handler(Some(LocalInfileHandler::new(move |_, file| {
        for batch in &batches {
            file.write_all(&batch.bytes)?;
            given += batch.rows;
            watch.goes_on();
        }
        count.send(given).map_err(io::Error::other)
    })));
    let statement = format!(
        "LOAD DATA LOCAL INFILE 'rows' INTO TABLE {} CHARACTER SET utf8mb4 FIELDS TERMINATED BY '\\t' \
         ESCAPED BY '\\\\' LINES TERMINATED BY '\\n' ({})",
        table.name,
        columns(table)
    );
    let loaded = connection.query_drop(statement);
    // Without a receiver of the batches, their sender ends too, instead of waiting forever.
    connection.set_local_infile_handler(None);
    loaded.map_err(refused)?;
    // `LOAD DATA` only warns of values that do not fit, and skips duplicate rows.
    let (taken, warnings) = (connection.affected_rows(), connection.warnings());
    let given = counted.try_iter().last().unwrap_or(0);
    if taken == given && warnings == 0 {
        return Ok(());
    }
    let warning: Option<(String, u16, String)> = connection.query_first("SHOW WARNINGS").map_err(refused)?;
    let why = warning.map_or_else(String::new, |(_, _, message)| format!(": {message}"));
    let message =
        format!("{}: expected the server to store {given} rows unchanged, found {taken}{why}", table.name);
    Err(Error::new(ErrorKind::Statement, message))
}

/// The maximum number of placeholders in a statement.
const MOST_PLACES: usize = 60_000;

/// The maximum number of rows per insert statement.
const ROWS: usize = 1000;

/// Sends many rows per statement, in at most `longest` bytes.
pub(super) fn inserts(link: &mut Link, longest: usize, fill: &mut Fill<'_>) -> Result<(), Error> {
    pipe::run(encode_cells, fill, |table, batches| {
        link.wait(&waited_for(table), |connection, watch| {
            Inserts::new(connection, longest, table).all(batches, watch)
        })
    })
}

/// The bytes of a statement in addition to its text and its rows.
const STATEMENT_BYTES: usize = 64;

/// The bytes of the type of a value and of its bit in the null bitmap.
const PLACE_BYTES: usize = 3;

/// Rows to be inserted into a table.
struct Inserts<'c> {
    connection: &'c mut Conn,
    table: &'static SchemaTable,
    /// The statement without its rows, and the placeholders of one row.
    begin: String,
    places: String,
    /// The number of values in a row.
    width: usize,
    /// The maximum number of rows in a statement, and the maximum number of their bytes.
    most: usize,
    most_bytes: usize,
    /// The prepared statement with the maximum number of rows.
    full: Option<Statement>,
}

impl<'c> Inserts<'c> {
    fn new(connection: &'c mut Conn, longest: usize, table: &'static SchemaTable) -> Self {
        let width = rows::given(table).count();
        let begin = format!("INSERT INTO {} ({}) VALUES ", table.name, columns(table));
        Self {
            connection,
            table,
            places: format!("({})", vec!["?"; width].join(", ")),
            width,
            most: (MOST_PLACES / width).min(ROWS),
            most_bytes: longest.saturating_sub(STATEMENT_BYTES + begin.len()),
            begin,
            full: None,
        }
    }

    fn all(mut self, batches: Receiver<RowBatch>, watch: &Watch) -> Result<(), Error> {
        batches.into_iter().try_for_each(|batch| {
            watch.goes_on();
            self.batch(&batch)
        })
    }

    fn batch(&mut self, batch: &RowBatch) -> Result<(), Error> {
        let mut cells = EncodedCells(&batch.bytes);
        let (mut values, mut bytes) = (Vec::new(), 0);
        for _ in 0..batch.rows {
            let before = values.len();
            values.extend(cells.by_ref().take(self.width).map(value));
            let added = self.row_bytes(&values[before..])?;
            if before > 0 && (before == self.most * self.width || bytes + added > self.most_bytes) {
                let last = values.split_off(before);
                self.insert(std::mem::replace(&mut values, last))?;
                bytes = 0;
            }
            bytes += added;
        }
        if values.is_empty() { Ok(()) } else { self.insert(values) }
    }

    /// The bytes that a row takes in a statement: in its text or as values, whichever of the two is sent.
    fn row_bytes(&self, row: &[Value]) -> Result<usize, Error> {
        let of_value = |value: &Value| usize::try_from(value.bin_len()).unwrap_or(usize::MAX);
        let bytes = row.iter().map(of_value).fold(self.width * PLACE_BYTES, usize::saturating_add);
        let bytes = bytes.max(self.places.len() + ", ".len());
        if bytes <= self.most_bytes {
            return Ok(bytes);
        }
        let message = format!(
            "{}: row too large: expected at most {} bytes, found {bytes}; raise the server's max_allowed_packet",
            self.table.name, self.most_bytes
        );
        Err(Error::new(ErrorKind::Io, message))
    }

    fn insert(&mut self, values: Vec<Value>) -> Result<(), Error> {
        let rows = values.len() / self.width;
        let statement = || self.begin.clone() + &vec![&*self.places; rows].join(", ");
        let values = Params::Positional(values);
        if rows < self.most {
            return self.connection.exec_drop(statement(), values).map_err(refused);
        }
        if self.full.is_none() {
            self.full = Some(self.connection.prep(statement()).map_err(refused)?);
        }
        let full = self.full.as_ref().expect("it was just prepared");
        self.connection.exec_drop(full, values).map_err(refused)
    }
}

fn value(cell: DecodedCell<'_>) -> Value {
    match cell {
        DecodedCell::Null => Value::NULL,
        DecodedCell::Integer(number) => Value::Int(number),
        DecodedCell::Text(text) => Value::Bytes(text.as_bytes().to_vec()),
    }
}
