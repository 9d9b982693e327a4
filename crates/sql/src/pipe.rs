//! Passes rows from the graph to the database: one thread encodes them, another one sends them.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::{io, thread};

use crate::backend::Fill;
use crate::error::{Error, ErrorKind};
use crate::rows::{CellValue, RowSink};
use crate::schema::SchemaTable;

/// The number of bytes encoded before they are sent.
const BUFFER_BYTES: usize = 256 << 10;

/// The maximum number of buffers waiting to be sent.
const BUFFERS: usize = 8;

/// Encoded rows.
#[derive(Default)]
pub(crate) struct RowBatch {
    pub(crate) bytes: Vec<u8>,
    pub(crate) rows: u64,
}

/// Runs `fill`, encodes its rows with `encode`, and sends them with `send` on another thread, table by table. An error
/// of `send` takes precedence over one of `fill`.
pub(crate) fn run(
    encode: fn(&[CellValue<'_>], &mut Vec<u8>),
    fill: &mut Fill<'_>,
    mut send: impl FnMut(&'static SchemaTable, Receiver<RowBatch>) -> Result<(), Error> + Send,
) -> Result<(), Error> {
    thread::scope(|scope| {
        let (tables, begun) = sync_channel::<(&'static SchemaTable, Receiver<RowBatch>)>(1);
        let sending = move || begun.iter().try_for_each(|(table, rows)| send(table, rows));
        let sending =
            thread::Builder::new().spawn_scoped(scope, sending).map_err(|error| no_thread(&error))?;
        let mut encoder = Encoder { encode, tables, rows: None, batch: RowBatch::default() };
        let filled = fill(&mut encoder).and_then(|()| encoder.flush());
        drop(encoder);
        let sent = sending.join().expect("sending does not panic");
        sent.and(filled)
    })
}

#[cold]
fn no_thread(error: &io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot start the thread that sends rows: {error}"))
}

/// Encodes rows.
struct Encoder {
    encode: fn(&[CellValue<'_>], &mut Vec<u8>),
    tables: SyncSender<(&'static SchemaTable, Receiver<RowBatch>)>,
    /// The channel for the rows of the current table.
    rows: Option<SyncSender<RowBatch>>,
    batch: RowBatch,
}

impl Encoder {
    fn flush(&mut self) -> Result<(), Error> {
        let batch = std::mem::take(&mut self.batch);
        match &self.rows {
            Some(rows) if batch.rows > 0 => rows.send(batch).map_err(|_| stopped()),
            _ => Ok(()),
        }
    }
}

/// The error that the sending thread has stopped; that thread reports the cause.
#[cold]
fn stopped() -> Error {
    Error::new(ErrorKind::Io, "the database accepts no more rows")
}

impl RowSink for Encoder {
    fn begin(&mut self, table: &'static SchemaTable) -> Result<(), Error> {
        self.flush()?;
        let (rows, receiver) = sync_channel(BUFFERS);
        // This ends the rows of the previous table.
        self.rows = Some(rows);
        self.tables.send((table, receiver)).map_err(|_| stopped())
    }

    fn row(&mut self, cells: &[CellValue<'_>]) -> Result<(), Error> {
        if self.batch.bytes.capacity() == 0 {
            self.batch.bytes.reserve(BUFFER_BYTES + BUFFER_BYTES / 8);
        }
        (self.encode)(cells, &mut self.batch.bytes);
        self.batch.rows += 1;
        if self.batch.bytes.len() >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }
}
