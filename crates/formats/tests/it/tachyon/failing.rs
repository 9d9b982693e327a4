//! Disks that are full for a moment.

use borehole_formats::Compression;
use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex};

use borehole_formats::ReadOptions;
use borehole_formats::tachyon::{Reader, Writer, WriterOptions};

use super::{plain_frame, read_well, simple_frame};

/// A file that outlives its writer, and fails once after this many bytes.
#[derive(Clone)]
struct Flaky {
    content: Arc<Mutex<Cursor<Vec<u8>>>>,
    fails_at: Arc<Mutex<Option<u64>>>,
}

impl Flaky {
    fn new(fails_at: Option<u64>) -> Self {
        Self { content: Arc::default(), fails_at: Arc::new(Mutex::new(fails_at)) }
    }

    fn content(&self) -> Vec<u8> {
        self.content.lock().unwrap().get_ref().clone()
    }
}

impl Write for Flaky {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (mut content, mut fails_at) = (self.content.lock().unwrap(), self.fails_at.lock().unwrap());
        let room = fails_at.map_or(u64::MAX, |at| at.saturating_sub(content.position()));
        if room == 0 {
            *fails_at = None;
            return Err(io::ErrorKind::StorageFull.into());
        }
        content.write(&bytes[..bytes.len().min(usize::try_from(room).unwrap())])
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Flaky {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.content.lock().unwrap().read(bytes)
    }
}

impl Seek for Flaky {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.content.lock().unwrap().seek(to)
    }
}

/// Writes samples of different stacks, and returns the numbers of the accepted ones.
fn write(writer: &mut Writer<Flaky>, samples: u64) -> Vec<u64> {
    let thread = writer.thread(1, 0).unwrap();
    let mut random = 1_u32;
    let is_taken = |number: &u64| {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let name = format!("f{}", random >> 18);
        let frame = writer.define_frame(&simple_frame("/a.py", &name, 3)).unwrap();
        writer.write_sample(thread, *number, 1, &[frame]).is_ok()
    };
    (0..samples).filter(is_taken).collect()
}

#[test]
fn a_profile_whose_spool_has_failed_is_not_completed() {
    const SAMPLES: u64 = 100_000;
    for (compression, fails_at) in [
        (Compression::None, None),
        (Compression::None, Some(1_000)),
        (Compression::None, Some(300_000)),
        (Compression::Zstd, None),
        (Compression::Zstd, Some(1_000)),
        // A thread compresses by then.
        (Compression::Zstd, Some(60_000)),
    ] {
        let options = WriterOptions { compression, ..WriterOptions::default() };
        let mut writer = Writer::new(Flaky::new(fails_at), options).unwrap();
        let taken = write(&mut writer, SAMPLES).len() as u64;
        let mut out = Vec::new();
        let finished = writer.finish(&mut out).map_err(|error| error.kind());
        if fails_at.is_none() {
            assert_eq!((taken, finished, read_well(&out).len() as u64), (SAMPLES, Ok(()), SAMPLES));
        } else {
            // Nothing is accepted any more, and the error stays the same.
            assert!(taken < SAMPLES * 3 / 4, "{compression:?} {fails_at:?}: {taken}");
            assert_eq!((finished, out.len()), (Err(io::ErrorKind::StorageFull), 0));
        }
    }
}

#[test]
fn a_journal_that_failed_once_goes_on_where_it_was() {
    for fails_at in [80, 90_000] {
        let (spool, journal) = (Flaky::new(None), Flaky::new(Some(fails_at)));
        let options = WriterOptions { compression: Compression::None, ..WriterOptions::default() };
        let writer = Writer::new(spool.clone(), options).unwrap();
        let mut writer = writer.with_journal(journal.clone()).unwrap();
        let taken = write(&mut writer, 40_000);
        assert_eq!(taken.len(), 39_999);
        writer.flush().unwrap();
        drop(writer);
        let (spool, journal) = (spool.content(), journal.content());
        let mut reader = Reader::with_journal(&spool, &journal, ReadOptions::lenient()).unwrap();
        let mut found = Vec::new();
        while let Some(sample) = reader.next_sample().unwrap() {
            let (_, function, ..) = plain_frame(sample.tables, sample.frames_root_first[0]);
            assert!(!function.starts_with("frame#"), "{function}");
            found.push(sample.time_us);
        }
        assert!(found == taken, "{}", found.len());
    }
}

#[test]
fn a_thread_of_another_writer_is_refused() {
    let mut other = Writer::new(Cursor::new(Vec::new()), WriterOptions::default()).unwrap();
    let thread = other.thread(7, 0).unwrap();
    let mut writer = Writer::new(Cursor::new(Vec::new()), WriterOptions::default()).unwrap();
    let error = writer.write_sample(thread, 0, 0, &[]).unwrap_err();
    assert_eq!(error.to_string(), "thread 0 does not belong to this writer");
    assert!(writer.write_repeat(thread, 0, 0).is_err());
}
