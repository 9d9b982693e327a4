//! The samples on their way to the spool: raw or as one Zstandard frame.
//!
//! Most of the time to write a compressed profile is compression, so large profiles use a separate thread for it. The
//! thread receives the same pieces that the encoder would have received, so the bytes do not depend on who compresses.
//! It touches only memory: its output returns to the caller, which writes the spool and can report the spool's errors.
//! A piece is sent only while few are in flight, so memory does not grow.

use std::fmt;
use std::io::{self, Read, Seek, Write};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;

use borehole_wire::Compression;
use zstd::stream::write::Encoder;

use super::layout::HEADER_BYTES;

/// The compression level of CPython.
///
/// Source: CPython 3.15.2, `writer_init_zstd`.
const ZSTD_LEVEL: i32 = 5;

/// The number of bytes collected before they go to the spool.
const BUFFER_BYTES: usize = 64 << 10;

/// The number of bytes that the caller compresses. Shorter profiles are finished before a thread would have paid off.
const HELPED_FROM_BYTES: u64 = 256 << 10;

/// The number of pieces: enough for each side to continue while the other waits for the disk or for its turn.
const PIECES: usize = 4;

/// The samples on their way to the spool.
///
/// If the spool fails, it is unknown how much of the samples it has: from then on nothing more is stored, and every
/// attempt fails.
pub(super) struct Body<S: Write> {
    buffer: Vec<u8>,
    /// The size of a full buffer in bytes. Any size is full after the spool has failed, so that the caller receives the
    /// error.
    full_bytes: usize,
    spool: S,
    stream: Stream,
    failed: Option<io::ErrorKind>,
}

enum Stream {
    Plain,
    /// The frame, and the number of bytes put into it.
    Frame(Box<ZstdFrame>, u64),
    /// A frame that is written by a separate thread.
    Helped(Helper),
}

impl<S: Read + Write + Seek> Body<S> {
    /// Creates a body whose samples go to `spool`, after its contents.
    pub(super) fn new(spool: S, compression: Compression) -> io::Result<Self> {
        let stream = match compression {
            Compression::Zstd => Stream::Frame(Box::new(ZstdFrame::new()?), 0),
            _ => Stream::Plain,
        };
        let buffer = Vec::with_capacity(2 * BUFFER_BYTES);
        Ok(Self { buffer, full_bytes: BUFFER_BYTES, spool, stream, failed: None })
    }

    #[inline]
    pub(super) const fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    #[inline]
    pub(super) const fn is_full(&self) -> bool {
        self.buffer.len() >= self.full_bytes
    }

    /// Empties the buffer.
    pub(super) fn store(&mut self) -> io::Result<()> {
        self.put(Then::GoOn)
    }

    /// Empties the buffer and ensures that the spool has everything.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.put(Then::Flush)?;
        self.spool.flush()
    }

    /// Ends the samples; returns the spool and the number of bytes of samples in it.
    pub(super) fn finish(mut self) -> io::Result<(S, u64)> {
        self.put(Then::Finish)?;
        self.spool.flush()?;
        let end = self.spool.stream_position()?;
        Ok((self.spool, end.saturating_sub(HEADER_BYTES as u64)))
    }

    fn put(&mut self, then: Then) -> io::Result<()> {
        if let Some(kind) = self.failed {
            return Err(io::Error::new(kind, "an earlier write of the samples failed"));
        }
        let stored = self.try_put(then);
        self.buffer.clear();
        if let Err(error) = &stored {
            (self.failed, self.full_bytes) = (Some(error.kind()), 0);
        } else if then == Then::GoOn {
            self.find_help();
        }
        stored
    }

    fn try_put(&mut self, then: Then) -> io::Result<()> {
        match &mut self.stream {
            Stream::Plain => self.spool.write_all(&self.buffer),
            Stream::Frame(frame, bytes) => {
                *bytes += self.buffer.len() as u64;
                self.spool.write_all(frame.compress(&self.buffer, then)?)
            }
            Stream::Helped(helper) => helper.compress(&mut self.buffer, then, &mut self.spool),
        }
    }

    /// Passes a long frame to a thread. If none can be created, the frame stays.
    fn find_help(&mut self) {
        self.stream = match std::mem::replace(&mut self.stream, Stream::Plain) {
            Stream::Frame(frame, HELPED_FROM_BYTES..) => match Helper::start(frame) {
                Ok(helper) => Stream::Helped(helper),
                Err(frame) => Stream::Frame(frame, 0),
            },
            stream => stream,
        };
    }
}

impl<S: Write> fmt::Debug for Body<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").field("buffered", &self.buffer.len()).finish_non_exhaustive()
    }
}

/// The state of a frame after a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    GoOn,
    /// All input so far is output.
    Flush,
    Finish,
}

/// A Zstandard frame that is being written.
struct ZstdFrame {
    encoder: Encoder<'static, Vec<u8>>,
}

impl ZstdFrame {
    fn new() -> io::Result<Self> {
        Ok(Self { encoder: Encoder::new(Vec::new(), ZSTD_LEVEL)? })
    }

    /// Puts `bytes` into the frame; returns the output.
    fn compress(&mut self, bytes: &[u8], then: Then) -> io::Result<&mut Vec<u8>> {
        self.encoder.get_mut().clear();
        self.encoder.write_all(bytes)?;
        match then {
            Then::GoOn => {}
            Then::Flush => self.encoder.flush()?,
            Then::Finish => self.encoder.do_finish()?,
        }
        Ok(self.encoder.get_mut())
    }
}

/// The message to the thread and its answer; both buffers are reused.
struct SampleChunk {
    bytes: Vec<u8>,
    compressed: Vec<u8>,
}

impl SampleChunk {
    fn new() -> Self {
        let [bytes, compressed] = [2 * BUFFER_BYTES; 2].map(Vec::with_capacity);
        Self { bytes, compressed }
    }
}

/// A thread that compresses. It ends when the helper is dropped.
struct Helper {
    orders: SyncSender<(SampleChunk, Then)>,
    answers: Receiver<io::Result<SampleChunk>>,
    free: Vec<SampleChunk>,
    under_way: usize,
}

impl Helper {
    /// Passes `frame` to a new thread; returns it if there is none.
    fn start(frame: Box<ZstdFrame>) -> Result<Self, Box<ZstdFrame>> {
        // Without room, so that the thread runs once the frame is handed over: one that starts while this one uses up the memory
        // would abort the process, because the C library needs some of it.
        let (hand_over, handed_over) = mpsc::sync_channel::<Box<ZstdFrame>>(0);
        let (orders, received) = mpsc::sync_channel(PIECES);
        let (answer, answers) = mpsc::sync_channel(PIECES);
        let help = move || {
            if let Ok(mut frame) = handed_over.recv() {
                serve(&mut frame, &received, &answer);
            }
        };
        if thread::Builder::new().name("compress".to_owned()).spawn(help).is_err() {
            return Err(frame);
        }
        match hand_over.send(frame) {
            Ok(()) => {
                let free = std::iter::repeat_with(SampleChunk::new).take(PIECES).collect();
                Ok(Self { orders, answers, free, under_way: 0 })
            }
            Err(mpsc::SendError(frame)) => Err(frame),
        }
    }

    /// Sends the contents of `buffer` and leaves an empty one there. Compressed data goes to `spool` when no piece is
    /// left to send; all of it unless the frame continues.
    fn compress(&mut self, buffer: &mut Vec<u8>, then: Then, spool: &mut impl Write) -> io::Result<()> {
        if self.free.is_empty() && self.under_way > 0 {
            self.store_next(spool)?;
        }
        let mut piece = self.free.pop().ok_or_else(gone)?;
        std::mem::swap(buffer, &mut piece.bytes);
        self.under_way += 1;
        self.orders.send((piece, then)).map_err(|_| gone())?;
        while then != Then::GoOn && self.under_way > 0 {
            self.store_next(spool)?;
        }
        Ok(())
    }

    fn store_next(&mut self, spool: &mut impl Write) -> io::Result<()> {
        let answer = self.answers.recv().map_err(|_| gone())?;
        self.under_way -= 1;
        let mut piece = answer?;
        piece.bytes.clear();
        let stored = spool.write_all(&piece.compressed);
        self.free.push(piece);
        stored
    }
}

/// Compresses one piece after the other, until an end of the channel closes.
fn serve(
    frame: &mut ZstdFrame,
    orders: &Receiver<(SampleChunk, Then)>,
    answers: &SyncSender<io::Result<SampleChunk>>,
) {
    for (mut piece, then) in orders {
        let answer = frame.compress(&piece.bytes, then).map(|compressed| {
            std::mem::swap(compressed, &mut piece.compressed);
            piece
        });
        if answers.send(answer).is_err() {
            return;
        }
    }
}

/// The thread does not end before its helper unless it panics.
fn gone() -> io::Error {
    io::Error::other("the compression thread has ended")
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, SeekFrom};

    use super::*;

    /// Roughly the records of a profile: repeated pieces among numbers that do not repeat.
    fn piece(number: u64) -> Vec<u8> {
        (0..200_u64)
            .flat_map(|at| [number / 7, number.wrapping_mul(at).rotate_right(5)])
            .flat_map(u64::to_le_bytes)
            .collect()
    }

    fn body() -> Body<Cursor<Vec<u8>>> {
        Body::new(Cursor::new(vec![0; HEADER_BYTES]), Compression::Zstd).unwrap()
    }

    /// Puts pieces into `body` as a writer does, and returns all of them.
    fn fill<S: Read + Write + Seek>(body: &mut Body<S>, pieces: u64) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        for number in 0..pieces {
            all.extend(piece(number));
            body.buffer().extend(piece(number));
            if body.is_full() {
                body.store()?;
            }
        }
        Ok(all)
    }

    const LONG: u64 = 2 * HELPED_FROM_BYTES / 3200 + 60;

    #[test]
    fn compression_by_a_thread_gives_the_same_bytes() {
        for pieces in [0, 1, 60, LONG, 5 * LONG] {
            let mut body = body();
            body.spool.seek(SeekFrom::End(0)).unwrap();
            let all = fill(&mut body, pieces).unwrap();
            assert_eq!(matches!(body.stream, Stream::Helped(_)), pieces >= LONG);
            let (spool, bytes) = body.finish().unwrap();
            let frame = &spool.get_ref()[HEADER_BYTES..];
            assert_eq!(frame.len() as u64, bytes);
            let mut alone = ZstdFrame::new().unwrap();
            assert!(frame == alone.compress(&all, Then::Finish).unwrap());
            assert!(zstd::decode_all(frame).unwrap() == all);
        }
    }

    #[test]
    fn flushed_samples_are_in_the_spool() {
        let mut body = body();
        body.spool.seek(SeekFrom::End(0)).unwrap();
        let mut all = Vec::new();
        for _ in 0..3 {
            all.extend(fill(&mut body, LONG).unwrap());
            body.flush().unwrap();
            let mut decoder = zstd::stream::raw::Decoder::new().unwrap();
            let mut found = vec![0; all.len() + 1];
            let frame = &body.spool.get_ref()[HEADER_BYTES..];
            let status =
                zstd::stream::raw::Operation::run_on_buffers(&mut decoder, frame, &mut found).unwrap();
            assert!(status.bytes_read == frame.len() && found[..status.bytes_written] == all);
        }
    }

    /// A disk that soon is full.
    struct Full(usize);

    impl Read for Full {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Ok(0)
        }
    }

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Seek for Full {
        fn seek(&mut self, _: SeekFrom) -> io::Result<u64> {
            Ok(0)
        }
    }

    #[test]
    fn a_full_disk_is_reported_to_the_caller() {
        for room in [0, 100_000, 300_000] {
            let mut body = Body::new(Full(room), Compression::Zstd).unwrap();
            let outcome = fill(&mut body, 20 * LONG).and_then(|_| body.flush());
            assert_eq!(outcome.unwrap_err().kind(), io::ErrorKind::StorageFull);
        }
        let mut body = Body::new(Full(usize::MAX), Compression::Zstd).unwrap();
        fill(&mut body, LONG).unwrap();
        assert!(matches!(body.stream, Stream::Helped(_)));
        // Pieces in flight when a writer is dropped block nothing.
        drop(body);
    }
}
