//! Unusual and damaged files: those that CPython rejects, and those that it reads.

use borehole_formats::ReadOptions;
use serde_json::Value;

use super::{corrupt_file, manifest, plain_frame, read};
use borehole_testkit::{corpus, read_corpus};

/// Valid files that CPython rejects.
const BEYOND_CPYTHON: [&str; 1] = ["old_layout_u32_samples.bin"];

/// The files in the manifest that the corpus contains.
fn cases() -> Vec<(String, Value)> {
    let names = |case: Value| (case["file"].as_str().unwrap().to_owned(), case);
    let folder = corpus("tachyon/corrupt");
    let cases = manifest().into_iter().map(names).filter(|(name, _)| folder.join(name).exists());
    let cases: Vec<_> = cases.collect();
    assert_eq!(cases.len(), 117);
    cases
}

#[test]
fn strict_reading_accepts_what_cpython_accepts() {
    for (name, case) in cases() {
        let outcome = read(&corrupt_file(&name), ReadOptions::default());
        let delivered = case["emitted_samples"].as_u64().unwrap_or(0);
        let is_refused = case["open"] != "ok" || case["replay"].is_string();
        if BEYOND_CPYTHON.contains(&name.as_str()) {
            assert!(outcome.error.is_none() && !outcome.samples.is_empty(), "{name}: {:?}", outcome.error);
            continue;
        }
        assert_eq!(outcome.error.is_some(), is_refused, "{name}: {:?}", outcome.error);
        // CPython decompresses everything before it returns anything.
        let found = outcome.samples.len() as u64;
        assert!(found == delivered || (name.starts_with("zstd") && is_refused), "{name}: {found} samples");
        if let Some(error) = outcome.error {
            assert!(!error.is_io() && !error.is_limit(), "{name}: {error}");
        }
    }
}

/// A gigabyte of runs without samples, which only one test reads.
const LONG: &str = "zstd_bomb_1100MB.bin";

/// CPython keeps the wrong end of a stack here, but its writer never causes that.
const QUIRK: &str = "suffix_new0_shared_less.bin";

#[test]
fn the_first_and_the_last_sample_are_those_of_cpython() {
    let mut compared = 0;
    for (name, case) in cases().into_iter().filter(|(name, _)| name != QUIRK && name != LONG) {
        let outcome = read(&corrupt_file(&name), ReadOptions::default());
        let ends = [("first", outcome.samples.first()), ("last", outcome.samples.last())];
        for (key, found) in ends {
            let (Some(want), Some(found)) = (case.get(key).filter(|want| !want.is_null()), found) else {
                continue;
            };
            assert_eq!(want["tid"].as_u64(), Some(found.thread), "{name} {key}");
            assert_eq!(want["iid"].as_u64(), Some(u64::from(found.interpreter)), "{name} {key}");
            let depth = found.frames_leaf_first.len() as u64;
            assert_eq!(want["depth"].as_u64(), Some(depth), "{name} {key}");
            let times = want["ts"].as_array().unwrap();
            assert!(times.contains(&Value::from(found.time_us)), "{name} {key}");
            if want["top"].is_array() {
                let found = found.frames_leaf_first[0].clone();
                assert_eq!(top(&want["top"]), found, "{name} {key}");
            }
            compared += 1;
        }
    }
    assert!(compared >= 100, "only {compared} compared");
}

fn top(frame: &Value) -> super::PlainFrame {
    let text = |index: usize| frame[index].as_str().unwrap().to_owned();
    let place =
        frame[2].as_array().map(|place| [0, 1, 2, 3].map(|index: usize| place[index].as_i64().unwrap()));
    (text(0), text(1), place, frame[3].as_u64().map(|opcode| opcode.try_into().unwrap()))
}

#[test]
fn recovery_finds_at_least_the_samples_of_cpython() {
    for (name, case) in cases().into_iter().filter(|(name, _)| name != LONG) {
        let bytes = corrupt_file(&name);
        let outcome = read(&bytes, ReadOptions::lenient());
        assert!(outcome.error.is_none(), "{name}: {:?}", outcome.error);
        let delivered = case["emitted_samples"].as_u64().unwrap_or(0);
        assert!(outcome.samples.len() as u64 >= delivered, "{name}: {} samples", outcome.samples.len());
        let strict = read(&bytes, ReadOptions::default());
        // A frame without samples is skipped silently.
        if strict.error.is_some() && name != "zstd_skippable_first.bin" {
            assert!(!outcome.recovery.is_clean(), "{name}");
        }
    }
}

#[test]
fn damage_that_touches_no_sample_costs_none() {
    for (name, samples) in [
        ("magic_bad.bin", 8),
        ("version_2.bin", 8),
        ("stroff_past_eof.bin", 8),
        ("stroff_minus1.bin", 8),
        ("stroff_64_no_samples.bin", 8),
        ("frameoff_past_eof.bin", 8),
        ("truncated_1.bin", 8),
        ("truncated_32.bin", 8),
        ("cut_at_stroff.bin", 8),
        ("truncated_half.bin", 7),
        ("ftr_strings_zero.bin", 8),
        ("ftr_frames_huge.bin", 8),
        ("zstd_checksum_wrong.bin", 8),
        ("zstd_trailing_garbage.bin", 8),
        ("version_swapped_magic_only.bin", 8),
    ] {
        let outcome = read(&corrupt_file(name), ReadOptions::lenient());
        assert_eq!(outcome.samples.len(), samples, "{name}: {:?}", outcome.recovery.warnings);
        let has_tables = !["cut_at_stroff.bin", "truncated_half.bin"].contains(&name);
        let named = outcome.samples[0].frames_leaf_first.iter().all(|frame| !frame.1.starts_with("frame#"));
        assert_eq!(named, has_tables, "{name}");
    }
}

#[test]
fn any_prefix_and_any_change_of_a_byte_is_taken() {
    let files = [
        "corrupt/ok_base.bin",
        "corrupt/zstd_ok.bin",
        "bigendian/21_slow_10hz.bin",
        "corrupt/suffix_first.bin",
    ];
    for file in files {
        let whole = read_corpus(&format!("tachyon/{file}"));
        for cut in 0..whole.len() {
            both(&whole[..cut]);
        }
        for at in 0..whole.len() {
            for change in [0x01, 0x80, 0xff] {
                let mut changed = whole.clone();
                changed[at] ^= change;
                both(&changed);
            }
        }
    }
}

/// Strict reading, and reading past damage, which never fails and finds at least as much.
fn both(bytes: &[u8]) {
    let strict = read(bytes, ReadOptions::default());
    let lenient = read(bytes, ReadOptions::lenient());
    assert!(lenient.error.is_none(), "{:?}", lenient.error);
    assert!(strict.error.is_some() || lenient.samples.len() >= strict.samples.len());
    assert!(lenient.recovery.lost_bytes <= bytes.len() as u64 + 1024);
}

#[test]
fn frames_without_names_are_numbers() {
    let outcome = read(&corrupt_file("cut_at_stroff.bin"), ReadOptions::lenient());
    let frame = &outcome.samples[0].frames_leaf_first[0];
    assert_eq!(*frame, plain_frame(&borehole_formats::tachyon::FileTables::default(), 0));
}
