//! An external merge sort: sorted runs in temporary files, merged at the end.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, BufReader, BufWriter, Read as _, Seek as _, Write as _};
use std::ops::ControlFlow;

use crate::spool::{TempSpool, spool};

/// The number of bytes that wait in memory before a run is written.
pub(super) const MEMORY_BYTES: usize = 64 << 20;

/// The maximum number of runs merged at a time: each has an open file and a buffer.
const MOST_RUNS: usize = 64;

/// The size of an entry's header in a run: its time, whether it has one, and its length.
const HEAD_BYTES: usize = 8 + 1 + 8;

/// The position of an entry in memory, in sort order.
#[derive(Debug, Default)]
struct RunEntry {
    time_ns: Option<u64>,
    start: usize,
    end: usize,
}

#[derive(Debug, Default)]
pub(super) struct Runs {
    memory_bytes: usize,
    bytes: Vec<u8>,
    rows: Vec<RunEntry>,
    files: Vec<TempSpool>,
}

impl Runs {
    pub(super) fn new(memory_bytes: usize) -> Self {
        Self { memory_bytes, ..Self::default() }
    }

    pub(super) const fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.files.is_empty()
    }

    /// Adds an entry with that time, whose bytes `encode` appends.
    pub(super) fn push(&mut self, time_ns: Option<u64>, encode: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let start = self.bytes.len();
        encode(&mut self.bytes);
        self.rows.push(RunEntry { time_ns, start, end: self.bytes.len() });
        let rows_bytes = self.rows.len() * size_of::<RunEntry>();
        if self.bytes.len() + rows_bytes >= self.memory_bytes { self.spill() } else { Ok(()) }
    }

    /// Writes the entries in memory as a run. Too many runs are merged into one, which stays first, like its entries.
    fn spill(&mut self) -> io::Result<()> {
        self.rows.sort_by_key(|row| row.time_ns);
        let mut run = BufWriter::new(spool());
        for row in &self.rows {
            write(&mut run, row.time_ns, &self.bytes[row.start..row.end])?;
        }
        self.rows.clear();
        self.bytes.clear();
        self.files.push(rewound(run)?);
        if self.files.len() < MOST_RUNS {
            return Ok(());
        }
        let mut merged = BufWriter::new(spool());
        let _ = merge(std::mem::take(&mut self.files), |time_ns, bytes| {
            write(&mut merged, time_ns, bytes)?;
            Ok(ControlFlow::Continue(()))
        })?;
        self.files.push(rewound(merged)?);
        Ok(())
    }

    /// Passes on all entries in order, until the receiver has enough.
    pub(super) fn each(
        mut self,
        mut take: impl FnMut(Option<u64>, &[u8]) -> io::Result<ControlFlow<()>>,
    ) -> io::Result<ControlFlow<()>> {
        if !self.files.is_empty() {
            self.spill()?;
            return merge(self.files, take);
        }
        self.rows.sort_by_key(|row| row.time_ns);
        for row in &self.rows {
            if take(row.time_ns, &self.bytes[row.start..row.end])?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

fn rewound(run: BufWriter<TempSpool>) -> io::Result<TempSpool> {
    let mut file = run.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.rewind()?;
    Ok(file)
}

fn write(run: &mut BufWriter<TempSpool>, time_ns: Option<u64>, bytes: &[u8]) -> io::Result<()> {
    run.write_all(&time_ns.unwrap_or_default().to_le_bytes())?;
    run.write_all(&[u8::from(time_ns.is_some())])?;
    run.write_all(&(bytes.len() as u64).to_le_bytes())?;
    run.write_all(bytes)
}

/// A run being read: its next entry.
struct Front {
    run: BufReader<TempSpool>,
    bytes: Vec<u8>,
}

impl Front {
    /// Reads the next entry; returns its time, or `None` at the end.
    fn advance(&mut self) -> io::Result<Option<Option<u64>>> {
        let mut head = [0; HEAD_BYTES];
        match self.run.read_exact(&mut head) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        let mut head = super::event::EventBytes(&head);
        let time_ns = head.number()?;
        let (has_time, rest) = head.0.split_first().ok_or(io::ErrorKind::UnexpectedEof)?;
        let length = super::event::EventBytes(rest).number()?;
        self.bytes.resize(usize::try_from(length).map_err(io::Error::other)?, 0);
        self.run.read_exact(&mut self.bytes)?;
        Ok(Some((*has_time > 0).then_some(time_ns)))
    }
}

/// Merges `files` in order; of equal times those in the earlier file come first.
fn merge(
    files: Vec<TempSpool>,
    mut take: impl FnMut(Option<u64>, &[u8]) -> io::Result<ControlFlow<()>>,
) -> io::Result<ControlFlow<()>> {
    let mut fronts: Vec<_> =
        files.into_iter().map(|file| Front { run: BufReader::new(file), bytes: Vec::new() }).collect();
    let mut heap = BinaryHeap::new();
    for (index, front) in fronts.iter_mut().enumerate() {
        heap.extend(front.advance()?.map(|time_ns| Reverse((time_ns, index))));
    }
    while let Some(Reverse((time_ns, index))) = heap.pop() {
        if take(time_ns, &fronts[index].bytes)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        heap.extend(fronts[index].advance()?.map(|time_ns| Reverse((time_ns, index))));
    }
    Ok(ControlFlow::Continue(()))
}
