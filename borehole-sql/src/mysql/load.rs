//! Rows into tables of MySQL and MariaDB.

use std::io::{self, Write as _};
use std::sync::mpsc::Receiver;

use mysql::prelude::Queryable as _;
use mysql::{Conn, LocalInfileHandler, Params, Value};

use super::refused;
use crate::backend::Fill;
use crate::cells::{Cells, Decoded, encode_cells};
use crate::dialect::Dialect;
use crate::error::{Error, ErrorKind};
use crate::pipe::{self, Batch};
use crate::rows::{self, Cell};
use crate::schema::Table;

/// As if the rows of a table were in a file of ours that the server asks for.
pub(super) fn files(connection: &mut Conn, fill: &mut Fill<'_>) -> Result<(), Error> {
    let loaded = pipe::run(encode_line, fill, |table, batches| file(connection, table, batches));
    connection.set_local_infile_handler(None);
    loaded
}

/// A line of fields as `LOAD DATA` takes them without being told otherwise.
fn encode_line(cells: &[Cell<'_>], bytes: &mut Vec<u8>) {
    for (index, cell) in cells.iter().enumerate() {
        if index > 0 {
            bytes.push(b'\t');
        }
        match cell {
            Cell::Null => bytes.extend_from_slice(b"\\N"),
            Cell::Integer(number) => write!(bytes, "{number}").expect("memory takes all"),
            Cell::Text(text) => push_escaped(bytes, text.as_bytes()),
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

fn columns(table: &Table) -> String {
    rows::given(table).map(|name| Dialect::Mysql.quoted(name)).collect::<Vec<_>>().join(", ")
}

fn file(connection: &mut Conn, table: &'static Table, batches: Receiver<Batch>) -> Result<(), Error> {
    let (count, counted) = std::sync::mpsc::channel();
    let mut given = 0;
    connection.set_local_infile_handler(Some(LocalInfileHandler::new(move |_, file| {
        for batch in &batches {
            file.write_all(&batch.bytes)?;
            given += batch.rows;
        }
        count.send(given).map_err(io::Error::other)
    })));
    let statement = format!(
        "LOAD DATA LOCAL INFILE 'rows' INTO TABLE {} CHARACTER SET utf8mb4 FIELDS TERMINATED BY '\\t' \
         ESCAPED BY '\\\\' LINES TERMINATED BY '\\n' ({})",
        table.name,
        columns(table)
    );
    connection.query_drop(statement).map_err(refused)?;
    // What does not fit is only warned of here, and what is there twice passed over.
    let (taken, warnings) = (connection.affected_rows(), connection.warnings());
    let given = counted.try_iter().last().unwrap_or(0);
    if taken == given && warnings == 0 {
        return Ok(());
    }
    let warning: Option<(String, u16, String)> = connection.query_first("SHOW WARNINGS").map_err(refused)?;
    let why = warning.map_or_else(String::new, |(_, _, message)| format!(": {message}"));
    let message =
        format!("{}: expected {given} rows to be taken as they are, found {taken}{why}", table.name);
    Err(Error::new(ErrorKind::Statement, message))
}

/// How many values a statement may have places for.
const MOST_PLACES: usize = 60_000;

/// How many rows a statement inserts.
const ROWS: u64 = 1000;

/// Many rows a statement.
pub(super) fn inserts(connection: &mut Conn, fill: &mut Fill<'_>) -> Result<(), Error> {
    pipe::run(encode_cells, fill, |table, batches| insert(connection, table, batches))
}

fn insert(connection: &mut Conn, table: &'static Table, batches: Receiver<Batch>) -> Result<(), Error> {
    let width = rows::given(table).count();
    let places = format!("({})", vec!["?"; width].join(", "));
    let statement = |rows: usize| {
        format!("INSERT INTO {} ({}) VALUES {}", table.name, columns(table), vec![&*places; rows].join(", "))
    };
    let most = (MOST_PLACES / width).min(usize::try_from(ROWS).unwrap_or(usize::MAX));
    let mut full = None;
    for batch in batches {
        let mut cells = Cells(&batch.bytes);
        let mut left = usize::try_from(batch.rows).expect("a batch is in memory");
        while left > 0 {
            let rows = left.min(most);
            let values: Vec<Value> = cells.by_ref().take(rows * width).map(value).collect();
            if rows == most {
                if full.is_none() {
                    full = Some(connection.prep(statement(most)).map_err(refused)?);
                }
                let full = full.as_ref().expect("it was just prepared");
                connection.exec_drop(full, Params::Positional(values)).map_err(refused)?;
            } else {
                connection.exec_drop(statement(rows), Params::Positional(values)).map_err(refused)?;
            }
            left -= rows;
        }
    }
    Ok(())
}

fn value(cell: Decoded<'_>) -> Value {
    match cell {
        Decoded::Null => Value::NULL,
        Decoded::Integer(number) => Value::Int(number),
        Decoded::Text(text) => Value::Bytes(text.as_bytes().to_vec()),
    }
}
