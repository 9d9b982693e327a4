//! Counting the records of a file.

use borehole::Compression;
use std::fs::File;
use std::io::{Cursor, Write as _};

use borehole::formats::tachyon::{PythonFrame, Writer, WriterOptions};
use borehole::model::{Count, Tables};
use borehole::{Format, Input, InputOptions, Source, count_records};
use borehole_testkit::allocations::allocations;

/// Many samples, plain or compressed: a file much larger than the memory for reading it.
fn large(compression: Compression, samples: u64) -> Vec<u8> {
    let options = WriterOptions { compression, ..WriterOptions::default() };
    let mut writer = Writer::new(Cursor::new(Vec::new()), options).unwrap();
    let frame = |name: &'static str| PythonFrame {
        file: b"a.py",
        function: name.as_bytes(),
        line: 1,
        end_line: 1,
        column: 0,
        end_column: 1,
        opcode: None,
    };
    let frames = ["a", "b"].map(|name| writer.define_frame(&frame(name)).unwrap());
    let slot = writer.thread(7, 0).unwrap();
    for number in 0..samples {
        let leaf = usize::from(number % 2 == 0);
        writer.write_sample(slot, number * 1000, 1, &frames[leaf..=leaf]).unwrap();
    }
    let mut out = Vec::new();
    writer.finish(&mut out).unwrap();
    out
}

#[test]
fn counting_records_takes_no_more_memory_than_reading() {
    let folder = tempfile::tempdir().unwrap();
    for compression in [Compression::None, Compression::Zstd] {
        let path = folder.path().join("large.bin");
        let samples = 1_000_000;
        File::create(&path).unwrap().write_all(&large(compression, samples)).unwrap();
        let source = || Source::path(&path).unwrap();
        let (counts, counting) = allocations(|| count_records(Format::Tachyon, source()));
        assert_eq!(counts.by_type["FULL"], samples, "{compression:?}: {counts:?}");
        let (_, reading) = allocations(|| {
            let input = Input::open(source(), &InputOptions::default()).unwrap();
            input.read_into(&mut Tables::default(), &mut Count::default()).unwrap()
        });
        let most = reading.peak_bytes + (1 << 20);
        assert!(counting.peak_bytes <= most && most < 8 << 20, "{compression:?}: {counting:?} {reading:?}");
    }
}
