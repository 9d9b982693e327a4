//! Live files.

use borehole_formats::Compression;
use std::fs::File;
use std::io::{self, Read as _, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use borehole_capture::{
    Error, Look, RbtOptions, RbtOutput, SampleOptions, SamplingSession, SegmentMetadata, SessionControl,
    SharedStream, StopMode, Subject,
};
use borehole_formats::ReadOptions;
use borehole_formats::rbt::{Reader, Record};
use borehole_model::{Context, ProfileSink as _, Segment, Tables};

use crate::fake::Act::{Gone, Stack};
use crate::fake::{Fake, arrived, stack};

/// The samples, the segments, and the metadata of all segments.
fn read(file: &[u8]) -> (u64, usize, Vec<String>) {
    let (mut samples, mut segments, mut facts) = (0, 0, Vec::new());
    let mut reader = Reader::with_options(file, ReadOptions::lenient());
    while let Some(record) = reader.next_record().unwrap() {
        match record {
            Record::Sample(sample) => samples += sample.count,
            Record::Segment(_) => segments += 1,
            Record::Metadata { key, value } => {
                facts.push(format!("{}={}", String::from_utf8_lossy(key), String::from_utf8_lossy(value)));
            }
        }
    }
    (samples, segments, facts)
}

fn content(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    File::open(path).unwrap().read_to_end(&mut bytes).unwrap();
    bytes
}

#[test]
fn samples_are_in_the_file_within_a_second() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("live.rbt");
    for compression in [Compression::None, Compression::Gzip] {
        let mut output = RbtOutput::single(
            RbtOptions { compression, ..RbtOptions::default() },
            File::create(&path).unwrap(),
        );
        let shared = SessionControl::default();
        let stop = shared.clone();
        let options = SampleOptions {
            period: Some(Duration::from_millis(1)),
            stop: StopMode::Never,
            ..SampleOptions::default()
        };
        let arrivals = arrived(vec![Fake::boxed(7, &[Stack; 100_000])]);
        let session = std::thread::spawn(move || {
            SamplingSession::new(options, SegmentMetadata::default(), &mut output, shared)
                .run(&arrivals)
                .unwrap()
        });
        // The session still runs, so a killed one would leave the same file.
        let start = std::time::Instant::now();
        while read(&content(&path)).0 < 300 {
            assert!(start.elapsed() < Duration::from_secs(20), "{compression:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
        stop.stop();
        let statistics = session.join().unwrap();
        let (samples, segments, facts) = read(&content(&path));
        assert_eq!((samples, segments), (statistics.taken, 1));
        assert!(facts.contains(&"pid=7".to_owned()), "{facts:?}");
        assert!(facts.contains(&format!("samples.taken={samples}")), "{facts:?}");
    }
}

#[test]
fn each_compressed_segment_is_a_gzip_member() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("all.rbt.gz");
    let file = SharedStream::from(File::create(&path).unwrap());
    let options = RbtOptions { compression: Compression::Gzip, timestamps: true, ..RbtOptions::default() };
    let mut output = RbtOutput::single(options, file);
    let options = SampleOptions {
        period: Some(Duration::from_millis(10)),
        rotate: Some(Duration::from_millis(1)),
        duration: Some(Duration::from_millis(1300)),
        ..SampleOptions::default()
    };
    let arrivals = arrived(vec![Fake::boxed(7, &[Stack; 1000])]);
    let statistics =
        SamplingSession::new(options, SegmentMetadata::default(), &mut output, SessionControl::default())
            .run(&arrivals)
            .unwrap();
    let bytes = content(&path);
    let (samples, segments, _) = read(&bytes);
    assert_eq!((samples, segments), (statistics.taken, 3));
    let is_member =
        |at: &&[u8]| at.starts_with(&borehole_wire::envelope::MEMBER_MAGIC) && at[2] == 8 && at[3] == 0;
    let members = bytes.windows(10).filter(is_member).count();
    assert_eq!(members, 3);
}

#[test]
fn each_segment_may_have_a_file_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_owned();
    let open = move |number| Ok(SharedStream::from(File::create(place.join(format!("{number}.rbt")))?));
    let mut output = RbtOutput::new(RbtOptions::default(), Box::new(open));
    let options = SampleOptions {
        period: Some(Duration::from_millis(10)),
        rotate: Some(Duration::from_millis(1)),
        duration: Some(Duration::from_millis(700)),
        ..SampleOptions::default()
    };
    let arrivals = arrived(vec![Fake::boxed(7, &[Stack; 1000])]);
    let statistics =
        SamplingSession::new(options, SegmentMetadata::default(), &mut output, SessionControl::default())
            .run(&arrivals)
            .unwrap();
    let files = [0, 1].map(|number| read(&content(&folder.path().join(format!("{number}.rbt")))));
    assert_eq!(files[0].0 + files[1].0, statistics.taken);
    assert_eq!((files[0].1, files[1].1), (1, 1));
    assert!(!folder.path().join("2.rbt").exists());
}

#[test]
fn errors_name_the_segment_that_could_not_be_opened() {
    let open = |number| match number {
        0 => Ok(SharedStream::new(std::io::sink())),
        _ => Err(std::io::ErrorKind::PermissionDenied.into()),
    };
    let mut output = RbtOutput::new(RbtOptions::default(), Box::new(open));
    assert_eq!(output.segment_number(), 0);
    let options = SampleOptions {
        period: Some(Duration::from_millis(10)),
        rotate: Some(Duration::from_millis(1)),
        ..SampleOptions::default()
    };
    let arrivals = arrived(vec![Fake::boxed(7, &[Stack; 100_000])]);
    let error =
        SamplingSession::new(options, SegmentMetadata::default(), &mut output, SessionControl::default())
            .run(&arrivals)
            .unwrap_err();
    assert!(error.to_string().contains("permission denied"), "{error}");
    assert_eq!(output.segment_number(), 1);
}

#[test]
fn errors_name_the_segment_that_could_not_be_completed() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let open = |number| match number {
        0 => Ok(SharedStream::new(Full)),
        _ => Ok(SharedStream::new(io::sink())),
    };
    let mut output = RbtOutput::new(RbtOptions::default(), Box::new(open));
    let (tables, segment) = (Tables::default(), Segment::default());
    let at = Context { tables: &tables, segment: &segment };
    output.segment(at).unwrap();
    assert_eq!(output.segment(at).unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert_eq!(output.segment_number(), 0);
    output.segment(at).unwrap();
    assert_eq!(output.segment_number(), 1);
}

#[test]
fn a_stream_that_cannot_be_written_ends_the_session_with_its_error() {
    let mut output =
        RbtOutput::single(RbtOptions::default(), File::options().write(true).open("/dev/full").unwrap());
    let arrivals = arrived(vec![Fake::boxed(7, &[Stack, Gone])]);
    let session = SamplingSession::new(
        SampleOptions::default(),
        SegmentMetadata::default(),
        &mut output,
        SessionControl::default(),
    );
    let error = session.run(&arrivals).unwrap_err();
    assert!(error.to_string().contains("No space left"), "{error}");
}

#[test]
fn the_time_between_two_segments_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("all.rbt");
    for compression in [Compression::None, Compression::Gzip] {
        let options = RbtOptions { timestamps: true, compression, ..RbtOptions::default() };
        let mut output = RbtOutput::single(options, File::create(&path).unwrap());
        let options = SampleOptions { period: Some(Duration::from_millis(1)), ..SampleOptions::default() };
        let (sender, arrivals) = std::sync::mpsc::channel();
        sender.send(Fake::boxed(7, &[Stack, Stack, Gone])).unwrap();
        let shared = SessionControl::default();
        let seen = shared.clone();
        let later = std::thread::spawn(move || {
            while seen.progress().statistics.failed == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
            std::thread::sleep(Duration::from_millis(300));
            sender.send(Fake::boxed(8, &[Stack, Gone])).unwrap();
        });
        let session = SamplingSession::new(options, SegmentMetadata::default(), &mut output, shared);
        session.run(&arrivals).unwrap();
        later.join().unwrap();
        let bytes = content(&path);
        let (mut reader, mut deltas_us) = (Reader::new(bytes.as_slice()), Vec::new());
        while let Some(record) = reader.next_record().unwrap() {
            if let Record::Sample(sample) = record {
                deltas_us.push(sample.delta_us.unwrap());
            }
        }
        assert!(deltas_us.len() == 3 && deltas_us[0] == 0, "{deltas_us:?}");
        assert!(deltas_us[2] > 200_000, "{deltas_us:?}");
    }
}

#[test]
fn sampling_at_the_maximum_rate_has_no_period() {
    for (period, wanted_us) in [(None, 0), (Some(Duration::from_millis(2)), 2000)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("all.rbt");
        let mut output = RbtOutput::single(RbtOptions::default(), File::create(&path).unwrap());
        let options = SampleOptions { period, samples: Some(1), ..SampleOptions::default() };
        let arrivals = arrived(vec![Fake::boxed(7, &[Stack; 9])]);
        SamplingSession::new(options, SegmentMetadata::default(), &mut output, SessionControl::default())
            .run(&arrivals)
            .unwrap();
        let bytes = content(&path);
        let mut reader = Reader::new(bytes.as_slice());
        let Some(Record::Segment(start)) = reader.next_record().unwrap() else { panic!("no segment") };
        assert_eq!(start.header.period_us, wanted_us);
    }
}

/// A subject with new names at every look.
struct Hoarder {
    looks: u64,
    /// The number of names per look, and the length of each.
    names: u64,
    bytes: usize,
    forgotten: Arc<AtomicUsize>,
}

impl Subject for Hoarder {
    fn process(&self) -> i32 {
        7
    }

    fn lanes(&self) -> usize {
        1
    }

    fn thread(&self, _lane: usize) -> Option<u64> {
        None
    }

    fn look(&mut self, _lane: usize, tables: &mut Tables) -> Result<Look, Error> {
        for name in 0..self.names {
            let mut name = (self.looks * self.names + name).to_le_bytes().to_vec();
            name.resize(self.bytes, 0);
            tables.intern_string(&name).unwrap();
        }
        self.looks += 1;
        Ok(Look::Stack { stack: stack(tables, &self.looks.to_string()), omitted: 0 })
    }

    fn forget(&mut self) {
        self.forgotten.fetch_add(1, Ordering::Relaxed);
    }

    fn refresh(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn facts(&self) -> Vec<(String, String)> {
        Vec::new()
    }
}

fn hoard(names: u64, bytes: usize, options: SampleOptions) {
    let forgotten = Arc::new(AtomicUsize::new(0));
    let subject = Box::new(Hoarder { looks: 0, names, bytes, forgotten: Arc::clone(&forgotten) });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("all.rbt");
    let mut output = RbtOutput::single(RbtOptions::default(), File::create(&path).unwrap());
    let options = SampleOptions { samples: Some(30), ..options };
    let arrivals = arrived(vec![subject]);
    SamplingSession::new(options, SegmentMetadata::default(), &mut output, SessionControl::default())
        .run(&arrivals)
        .unwrap();
    let (samples, segments, _) = read(&content(&path));
    let times = forgotten.load(Ordering::Relaxed);
    assert!(times >= 1, "{times}");
    assert_eq!((samples, segments), (30, times + 1));
}

#[test]
fn endless_names_do_not_fill_the_memory() {
    hoard(200_000, 8, SampleOptions { period: None, ..SampleOptions::default() });
}

#[test]
fn long_names_do_not_fill_the_memory() {
    hoard(8, 1 << 20, SampleOptions { period: Some(Duration::from_millis(40)), ..SampleOptions::default() });
}
