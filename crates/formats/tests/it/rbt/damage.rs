//! Every cut and every changed byte of small files.

use borehole_formats::rbt::{Reader, Record};
use borehole_formats::{ReadOptions, Recovery};
use borehole_testkit::allocations::allocations;
use borehole_testkit::read_corpus;
use serde_json::Value;

use super::gzip::member;
use super::{Reading, read, recover};

/// The memory limit for each of these small inputs and its lines, all allocations together, which an endless loop would
/// exceed.
const MOST_BYTES: u64 = 1 << 22;

/// Small files, one of each kind.
const SMALL: [&str; 14] = [
    "annotations.rbt",
    "checkpoint_1000.rbt",
    "concat_no_end.rbt",
    "daemon_worker.rbt",
    "gzip_members.rbt.gz",
    "gzip_then_raw.rbt.gz",
    "length_swallows_all.rbt",
    "native.rbt",
    "opcode_flag_missing.rbt",
    "pid_mixed_compact.rbt",
    "run_of_3.rbt",
    "ts_negative_delta.rbt",
    "unknown_events.rbt",
    "zero_depth.rbt",
];

fn small_files() -> impl Iterator<Item = (&'static str, Vec<u8>)> {
    let files = SMALL.iter().map(|name| (*name, read_corpus(&format!("rbt/{name}"))));
    files.map(|(name, mut bytes)| {
        bytes.truncate(1500);
        (name, bytes)
    })
}

fn counted(what: &str, read: impl FnOnce() -> Reading) -> Reading {
    let (reading, found) = allocations(read);
    assert!(found.bytes < MOST_BYTES, "{what}: {found:?}");
    reading
}

/// Whether `part` is the beginning of `whole`, except that its last sample may lack later parts.
fn is_beginning(part: &[String], whole: &[String]) -> bool {
    let Some((last, before)) = part.split_last() else { return true };
    let Some(next) = whole.get(before.len()) else { return false };
    let unfinished = |line: &str| line.split([' ', '{']).next().map(str::to_owned);
    *before == whole[..before.len()] && (last == next || unfinished(last) == unfinished(next))
}

#[test]
fn every_prefix_gives_the_beginning_of_the_samples() {
    for (name, bytes) in small_files() {
        let whole = recover(&bytes);
        for length in 0..bytes.len() {
            let strict = counted(name, || read(&bytes[..length]));
            let lenient = counted(name, || recover(&bytes[..length]));
            assert!(is_beginning(&strict.lines, &whole.lines), "{name} {length}: {:?}", strict.lines.last());
            assert!(strict.recovery.samples <= lenient.recovery.samples, "{name} {length}");
        }
    }
}

/// A length beyond the end of a segment looks repairable only once the segment is present, so longer prefixes of a damaged
/// file may be read differently. For intact files, this holds without exception.
#[test]
fn every_prefix_of_a_whole_file_reads_the_same_over_damage() {
    for (name, bytes) in small_files() {
        let whole = read(&bytes);
        if whole.error.is_some() || bytes.len() == 1500 || name.contains("swallows") {
            continue;
        }
        for length in 0..bytes.len() {
            let (strict, lenient) = (read(&bytes[..length]), recover(&bytes[..length]));
            assert!(strict.error.is_none(), "{name} {length}: {:?}", strict.error);
            assert!(
                is_beginning(&lenient.lines, &whole.lines),
                "{name} {length}: {:?}",
                lenient.lines.last()
            );
        }
    }
}

#[test]
fn every_flipped_bit_is_survived() {
    for (name, mut bytes) in small_files() {
        for at in 0..bytes.len() {
            for bit in 0..8 {
                bytes[at] ^= 1 << bit;
                counted(name, || read(&bytes));
                counted(name, || recover(&bytes));
                bytes[at] ^= 1 << bit;
            }
        }
    }
}

/// Reads past damage without keeping anything.
fn recovery(bytes: &[u8]) -> Recovery {
    let mut reader = Reader::with_options(bytes, ReadOptions::lenient());
    while let Some(record) = reader.next_record().unwrap() {
        if let Record::Sample(sample) = record {
            assert!(sample.count > 0);
        }
    }
    reader.into_recovery()
}

/// For each sweep over the base file: the samples saved in all cases, and those that reli saves. The file has 12 samples;
/// extra repeats from damaged counts are not included.
pub(super) fn sweep_totals() -> Vec<String> {
    let base = read_corpus("rbt/sweeps/base.rbt");
    let mut totals = Vec::new();
    for sweep in ["truncation", "corruption"] {
        let lines = String::from_utf8(read_corpus(&format!("rbt/sweeps/{sweep}.jsonl"))).unwrap();
        let (mut saved, mut reli) = (0, 0);
        for line in lines.lines() {
            let case: Value = serde_json::from_str(line).unwrap();
            let want = case["recover"][0].as_u64().unwrap();
            let recovery = recovery(&damaged(&base, &case));
            assert!(recovery.samples >= want, "{line}: {} {:?}", recovery.samples, recovery.warnings);
            saved += recovery.samples.min(12);
            reli += want.min(12);
        }
        totals.push(format!("{sweep} saved={saved} reli={reli} of={}", lines.lines().count() * 12));
    }
    totals.push(every_value(&base));
    totals.push(appended());
    totals
}

/// Checks this for every value of a byte.
fn every_value(base: &[u8]) -> String {
    let mut bytes = base.to_vec();
    let mut saved = 0;
    for at in 0..base.len() {
        for value in 0..=255 {
            bytes[at] = value;
            counted("base", || read(&bytes));
            saved += counted("base", || recover(&bytes)).recovery.samples.min(12);
        }
        bytes[at] = base[at];
    }
    format!("every_value saved={saved} of={}", base.len() * 256 * 12)
}

/// The number of cuts of a segment after which the next segment is read in full.
fn appended() -> String {
    let names = ["annotations.rbt", "daemon_worker.rbt", "native.rbt", "pid_samples.rbt", "run_of_3.rbt"];
    let segments = names.map(|name| read_corpus(&format!("rbt/{name}")));
    let zipped = segments.each_ref().map(|segment| member(segment));
    let pairs = |first| segments.iter().chain(&zipped).map(move |second| (first, second));
    let (mut found, mut all) = (0, 0);
    for (first, second) in segments.iter().flat_map(pairs) {
        let wanted = read(second).lines;
        for length in 0..first.len().min(1500) {
            all += 1;
            let lines = recover(&[&first[..length], second].concat()).lines;
            found += u64::from(lines.ends_with(&wanted));
        }
    }
    format!("appended found={found} of={all}")
}

/// The base file, cut or with one byte changed.
fn damaged(base: &[u8], case: &Value) -> Vec<u8> {
    let number = |key: &str| case[key].as_u64().map(|number| usize::try_from(number).unwrap());
    let mut bytes = base.to_vec();
    match number("cut") {
        Some(cut) => bytes.truncate(cut),
        None => bytes[number("pos").unwrap()] = u8::try_from(number("val").unwrap()).unwrap(),
    }
    bytes
}
