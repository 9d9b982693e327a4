//! One table of all that the reader says: each error and warning, provoked once, with its kind, place and numbers.

use borehole_formats::Compression;
use std::fmt::Write as _;

use borehole_formats::ReadOptions;
use borehole_formats::tachyon::layout::{MAX_DEPTH, RecordKind};
use borehole_formats::tachyon::{Reader, WriterOptions};
use borehole_testkit::{assert_golden, project_file};

use super::musts::File;
use super::{define, finish, read, statistics, thread, writer};

use RecordKind::{Full, PopPush, Repeat, Suffix};

/// Three samples of one thread: 19, 16 and 15 bytes of records.
fn base() -> File {
    File::new(3, 1).record(Full, 5, None, &[2, 1, 0]).record(Suffix, 5, Some(2), &[3]).record(
        PopPush,
        5,
        Some(1),
        &[],
    )
}

/// `bytes` with others in the place `at`.
fn with(bytes: &[u8], at: usize, other: &[u8]) -> Vec<u8> {
    let mut changed = bytes.to_vec();
    changed[at..at + other.len()].copy_from_slice(other);
    changed
}

/// A file with compressed samples and statistics, and where its tables begin.
fn compressed() -> (Vec<u8>, usize) {
    let mut writer = writer(WriterOptions { compression: Compression::Zstd, ..WriterOptions::default() });
    writer.set_statistics(Some(statistics()));
    let frames = define(&mut writer, &["f", "g", "h"]);
    let slot = thread(&mut writer, 7);
    for time in 0..100_u64 {
        let depth = usize::try_from(time * time % 7 % 3).unwrap();
        writer.write_sample(slot, time * time, 1, &frames[..=depth]).unwrap();
    }
    let bytes = finish(writer);
    let strings = usize::try_from(Reader::new(&bytes).unwrap().header().strings_offset).unwrap();
    (bytes, strings)
}

/// Faults of the header, the footer and the tables.
fn outside_of_samples() -> Vec<(&'static str, Vec<u8>)> {
    let base = base().bytes();
    let (len, footer) = (base.len() as u64, base.len() - 32);
    let number = |at: usize| u64::from_le_bytes(*base[at..].first_chunk().unwrap());
    let (strings, frames) = (number(40), number(48));
    let count = |count: u64| u32::try_from(count).unwrap().to_le_bytes();
    let most_frames = (len - frames) / 7;
    vec![
        ("nothing is wrong", base.clone()),
        ("empty", Vec::new()),
        ("header cut", base[..63].to_vec()),
        ("header only", base[..64].to_vec()),
        ("footer cut", base[..base.len() - 1].to_vec()),
        ("another magic number", with(&base, 0, b"X")),
        ("another version", with(&base, 4, &[2])),
        ("the last mode", with(&base, 60, &[5])),
        ("a mode too many", with(&base, 60, &[6])),
        ("strings within the header", with(&base, 40, &63_u64.to_le_bytes())),
        ("strings behind the file", with(&base, 40, &(len + 1).to_le_bytes())),
        ("frames before the strings", with(&base, 48, &(strings - 1).to_le_bytes())),
        ("frames behind the file", with(&base, 48, &(len + 1).to_le_bytes())),
        ("another compression", with(&base, 56, &[2])),
        ("as many strings as bytes", with(&base, footer, &count(len - strings))),
        ("more strings than bytes", with(&base, footer, &count(len - strings + 1))),
        ("as many frames as fit", with(&base, footer + 4, &count(most_frames))),
        ("more frames than fit", with(&base, footer + 4, &count(most_frames + 1))),
        ("a string less", with(&base, footer, &count(300))),
        ("a string more", with(&base, footer, &count(302))),
        ("a frame less", with(&base, footer + 4, &count(299))),
        ("a frame more", with(&base, footer + 4, &count(301))),
        ("another size", with(&base, footer + 8, &(len + 1).to_le_bytes())),
        ("bytes behind the footer", [&base[..], &[0; 5]].concat()),
        ("no header", with(&base, 0, &[0; 64])),
    ]
}

fn in_statistics() -> Vec<(&'static str, Vec<u8>)> {
    let (bytes, _) = compressed();
    let tail = bytes.len() - 32 - 16;
    vec![
        ("statistics of another version", with(&bytes, tail + 8, &[2])),
        ("statistics of another version without a size", with(&bytes, tail + 8, &[2, 0, 0, 0, 15])),
        ("statistics that are too short", with(&bytes, tail + 12, &[31])),
        ("statistics that are not finite", with(&bytes, tail - 40, &f64::NAN.to_le_bytes())),
    ]
}

fn in_records() -> Vec<(&'static str, Vec<u8>)> {
    let first = || File::new(1, 1).head(7, 0, Full);
    let more = |bytes: &[u8]| {
        let mut file = base();
        file.records.extend(bytes);
        file
    };
    let mut long = more(&[7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    long.samples = 4;
    let mut too_long = first();
    too_long.records.extend([0x80; 10]);
    too_long.records.push(0);
    vec![
        ("an unknown kind", with(&base().bytes(), 64 + 12, &[4])),
        ("the rest of a record", more(&[7, 0, 0]).bytes()),
        ("a record without numbers", long.bytes()),
        ("a number too long", too_long.bytes()),
        ("a number too large", first().numbers(&[0, 1, 1 << 32]).bytes()),
    ]
}

fn in_stacks() -> Vec<(&'static str, Vec<u8>)> {
    let frames: Vec<u64> = (0..256).collect();
    let one = |frames: &[u64]| File::new(1, 1).record(Full, 0, None, frames).bytes();
    let then = |kind, number| {
        File::new(2, 1).record(Full, 0, None, &[1]).record(kind, 0, Some(number), &[2]).bytes()
    };
    let cut_run = File::new(4, 1).record(Full, 0, None, &[1]).head(7, 0, Repeat).numbers(&[3, 1, 1, 2]);
    vec![
        ("the deepest stack", one(&frames)),
        ("a stack too deep", one(&[&frames[..], &[0]].concat())),
        ("as many shared frames as there are", then(Suffix, 1)),
        ("more shared frames than there are", then(Suffix, 2)),
        ("a shared stack grown too deep", deepest_and(Suffix, 256)),
        ("as many popped frames as there are", then(PopPush, 1)),
        ("more popped frames than there are", then(PopPush, 2)),
        ("a stack pushed too deep", deepest_and(PopPush, 0)),
        ("an undefined frame", one(&[300])),
        ("a run that is cut", cut_run.bytes()),
        (
            "a run that is too long",
            File::new(1, 1).head(7, 0, Repeat).numbers(&[u64::from(u32::MAX)]).bytes(),
        ),
    ]
}

fn in_counts() -> Vec<(&'static str, Vec<u8>)> {
    let with = |samples, threads| File { samples, threads, ..base() }.bytes();
    vec![
        ("fewer threads", with(3, 2)),
        ("more threads", with(3, 0)),
        ("fewer samples", with(4, 1)),
        ("more samples", with(2, 1)),
    ]
}

/// The deepest stack, and a record that adds a frame to it.
fn deepest_and(kind: RecordKind, number: u64) -> Vec<u8> {
    let frames: Vec<u64> = (0..MAX_DEPTH as u64).collect();
    File::new(2, 1).record(Full, 0, None, &frames).record(kind, 0, Some(number), &[1]).bytes()
}

fn in_streams() -> Vec<(&'static str, Vec<u8>)> {
    let (bytes, strings) = compressed();
    let without = |from: usize, to: usize| [&bytes[..from], &bytes[to..]].concat();
    vec![
        ("a skippable frame before the samples", with(&bytes, 64, &[0x50, 0x2a, 0x4d, 0x18])),
        ("a damaged block", with(&bytes, 64 + 6, &[0xff; 3])),
        ("a stream that is cut", without(strings - 3, strings)),
        ("a stream that is not there", without(64, strings)),
        ("compression that is not stated", with(&bytes, 56, &[0])),
        ("compression that is only stated", with(&base().bytes(), 56, &[1])),
        ("no tables", bytes[..strings].to_vec()),
        ("no header", with(&bytes, 0, &[0; 64])),
    ]
}

/// A line for the outcome, and one for everything that was said.
fn told(bytes: &[u8], options: ReadOptions) -> String {
    let outcome = read(bytes, options);
    let mut out = format!("{} samples", outcome.samples.len());
    if let Some(error) = outcome.error {
        let place = error.offset().map_or_else(|| "the whole".to_owned(), |offset| offset.to_string());
        let _ = write!(out, "\n    {:?} at {place}: {}", error.kind(), error.message());
    }
    for warning in outcome.recovery.warnings {
        let place = warning.offset.map_or_else(|| "the whole".to_owned(), |offset| offset.to_string());
        let _ = write!(out, "\n    at {place}, {} bytes lost", warning.lost_bytes);
        if let Some(saved) = warning.saved_samples {
            let _ = write!(out, ", {saved} samples saved");
        }
        let _ = write!(out, ": {}", warning.message);
    }
    out
}

#[test]
fn each_fault_is_told_once_with_its_place() {
    let mut table = String::new();
    for cases in [outside_of_samples(), in_statistics(), in_records(), in_stacks(), in_counts(), in_streams()]
    {
        for (name, bytes) in cases {
            let _ = writeln!(table, "{name}");
            for (reading, options) in
                [("strict", ReadOptions::default()), ("lenient", ReadOptions::lenient())]
            {
                let _ = writeln!(table, "  {reading}: {}", told(&bytes, options));
            }
        }
    }
    assert_golden(project_file("crates/formats/tests/golden/tachyon-messages.txt"), table.as_bytes());
}
