//! The result does not depend on how the bytes arrive.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Read};

use borehole_formats::rbt::{Reader, Record};
use borehole_formats::{ReadOptions, Recovery};
use borehole_testkit::corpus;

use super::{build::Trace, gzip::member, line};

/// A reader that returns at most this many bytes at a time.
struct Trickle<'a> {
    bytes: &'a [u8],
    at_most: usize,
}

impl Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = buffer.len().min(self.at_most);
        self.bytes.read(&mut buffer[..count])
    }
}

/// All results of a reader: records, error and warnings.
#[derive(Debug, PartialEq)]
struct Said {
    records: u64,
    hash: u64,
    error: Option<String>,
    recovery: Recovery,
}

fn read(bytes: &[u8], at_most: usize, options: ReadOptions) -> Said {
    let mut reader = Reader::with_options(Trickle { bytes, at_most }, options);
    let (mut records, mut hasher) = (0, DefaultHasher::new());
    let error = loop {
        match reader.next_record() {
            Ok(Some(Record::Sample(sample))) if records > 100_000 => {
                (sample.offset, sample.stack, sample.count, sample.accumulated_us, sample.pid)
                    .hash(&mut hasher);
            }
            Ok(Some(record)) => line(&record).hash(&mut hasher),
            Ok(None) => break None,
            Err(error) => break Some(error.to_string()),
        }
        records += 1;
    };
    Said { records, hash: hasher.finish(), error, recovery: reader.into_recovery() }
}

#[track_caller]
fn assert_chunks_do_not_matter(bytes: &[u8], name: &str) {
    for options in [ReadOptions::default(), ReadOptions::lenient()] {
        let whole = read(bytes, usize::MAX, options);
        let lenient = options.is_lenient();
        assert_eq!(read(bytes, 1, options), whole, "{name}, lenient: {lenient}");
    }
}

#[test]
fn files_read_byte_by_byte_give_the_same_records() {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(corpus("rbt")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if name.ends_with(".rbt") || name.ends_with(".gz") {
            assert_chunks_do_not_matter(&std::fs::read(&path).unwrap(), &name);
            names.push(name);
        }
    }
    assert!(names.len() >= 100, "{names:?}");
}

#[test]
fn damaged_members_read_byte_by_byte_are_recovered_equally() {
    let one = (0..3).fold(Trace::compact(), |trace, id| trace.compact_sample(id % 2)).end().0;
    let whole = [&member(&one)[..], &member(&one), &one, &member(&one)].concat();
    for at in (0..whole.len()).step_by(3) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x41;
        assert_chunks_do_not_matter(&bytes, &format!("byte {at}"));
        assert_chunks_do_not_matter(&whole[..at], &format!("cut at {at}"));
    }
}

#[test]
fn long_events_with_wrong_lengths_are_repaired_equally() {
    let next = Trace::compact().compact_sample(1).end().0;
    let definitions = Trace::compact().compact_sample(0).0;
    for length in [3000_usize, 5000, 60_000, 70_000, 140_000] {
        let zeros = vec![0; length];
        // Lengths beyond the limit, or beyond the end of the input, of a string and a stack.
        let far = [&b"\x0a\xff\xff\xff\x7f\x07"[..], &zeros].concat();
        let string = [&b"\x0a\xff\xff\x3f\x07"[..], &zeros].concat();
        let ids = std::iter::repeat_n(1, length).collect::<Vec<u8>>();
        let depth = length.min(16_383);
        let low = u8::try_from(depth & 0x7f).unwrap() | 0x80;
        let high = u8::try_from(depth >> 7).unwrap();
        let stack = [&[0x02, 0xff, 0xff, 0x3f, 2, low, high][..], &ids[..depth]].concat();
        let far_stack = [b"\x02\xff\xff\xff\x7f", &stack[4..]].concat();
        for event in [far, string, stack, far_stack] {
            let bytes = [&definitions[..], &event, &next].concat();
            assert_chunks_do_not_matter(&bytes, &format!("{length} bytes"));
        }
    }
}
