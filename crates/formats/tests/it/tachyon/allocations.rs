//! Reading and writing samples allocates nothing once their frames and threads are known.

use borehole_formats::Compression;
use std::io::{self, Read, Seek, Write};

use borehole_formats::ReadOptions;
use borehole_formats::tachyon::{FrameSlot, Reader, Writer, WriterOptions, import};
use borehole_model::{Context, ProfileSink, Sample, Tables};
use borehole_testkit::allocations::{Allocations, allocations};

use super::{define, finish, writer};

const NONE: Allocations = Allocations { count: 0, bytes: 0, peak_bytes: 0 };

/// The numbers of samples for warming up, and for counting.
const SAMPLES: [u64; 2] = [50_000, 200_000];

/// The frames of a sample: changes of all kinds, and runs.
fn stack(frames: &[FrameSlot], number: u64) -> &[FrameSlot] {
    let start = usize::try_from(number / 5 % 40).unwrap();
    &frames[start..start + 10 + start % 7]
}

fn write<S: Read + Write + Seek>(writer: &mut Writer<S>, frames: &[FrameSlot], number: u64) {
    let thread = writer.thread(number % 3, 0).unwrap();
    writer.write_sample(thread, number * 1000, 1, stack(frames, number)).unwrap();
}

fn profile(compression: Compression) -> Vec<u8> {
    let mut writer = writer(WriterOptions { compression, ..WriterOptions::default() });
    let names: Vec<_> = (0..60).map(|number| format!("f{number}")).collect();
    let frames = define(&mut writer, &names.iter().map(String::as_str).collect::<Vec<_>>());
    (0..SAMPLES.iter().sum()).for_each(|number| write(&mut writer, &frames, number));
    finish(writer)
}

#[test]
fn reading_samples_allocates_nothing() {
    for compression in [Compression::None, Compression::Zstd] {
        let bytes = profile(compression);
        let mut reader = Reader::new(&bytes).unwrap();
        let mut depth = 0;
        let mut read = |count| {
            for _ in 0..count {
                depth += reader.next_sample().unwrap().unwrap().frames_root_first.len();
            }
        };
        read(SAMPLES[0]);
        let ((), found) = allocations(|| read(SAMPLES[1]));
        assert_eq!(found, NONE, "{compression:?}");
        assert!(depth > 2_000_000);
    }
}

/// A sink that counts the allocations between two samples.
#[derive(Default)]
struct Between {
    samples: u64,
}

impl ProfileSink for Between {
    fn sample(&mut self, _: Context<'_>, _: &Sample<'_>) -> io::Result<std::ops::ControlFlow<()>> {
        self.samples += 1;
        Ok(std::ops::ControlFlow::Continue(()))
    }
}

#[test]
fn a_profile_twice_as_long_takes_no_more_memory() {
    let bytes = profile(Compression::None);
    let mut tables = Tables::default();
    let through = |tables: &mut Tables| {
        let mut sink = Between::default();
        import(&bytes, &ReadOptions::default(), tables, &mut sink).unwrap();
        sink.samples
    };
    through(&mut tables);
    // All names are known now. The rest is the memory of a reader, which does not depend on the number of samples.
    let (samples, found) = allocations(|| through(&mut tables));
    assert_eq!(samples, SAMPLES.iter().sum::<u64>());
    assert!(found.count < 300 && found.peak_bytes < 64 << 10, "{found:?}");
}

/// A spool that discards its contents.
#[derive(Default)]
struct Nowhere(u64);

impl Write for Nowhere {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Nowhere {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Ok(0)
    }
}

impl Seek for Nowhere {
    fn seek(&mut self, _: io::SeekFrom) -> io::Result<u64> {
        Ok(self.0)
    }
}

#[test]
fn writing_samples_allocates_nothing() {
    for compression in [Compression::None, Compression::Zstd] {
        let options = WriterOptions { compression, ..WriterOptions::default() };
        let mut writer = Writer::new(Nowhere::default(), options).unwrap();
        let names: Vec<_> = (0..60).map(|number| format!("f{number}")).collect();
        let frames: Vec<_> = names
            .iter()
            .map(|name| writer.define_frame(&super::simple_frame("/a.py", name, 1)).unwrap())
            .collect();
        (0..SAMPLES[0]).for_each(|number| write(&mut writer, &frames, number));
        let rounds = (1..=4).map(|round| {
            let numbers = SAMPLES[0] + SAMPLES[1] * (round - 1)..SAMPLES[0] + SAMPLES[1] * round;
            allocations(|| numbers.for_each(|number| write(&mut writer, &frames, number))).1
        });
        // When one thread first waits for the compressing thread to take something, and when it first waits to get something
        // back, a list of waiting threads is allocated. When this happens depends on the load of the machine.
        let most = if compression == Compression::Zstd { 3 } else { 0 };
        let found: Vec<_> = rounds.collect();
        assert!(found.iter().map(|found| found.count).sum::<u64>() <= most, "{compression:?}: {found:?}");
    }
}
