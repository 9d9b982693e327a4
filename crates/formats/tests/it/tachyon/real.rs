//! Files of the real profiler.

use borehole_formats::Compression;
use borehole_formats::tachyon::{ByteOrder, HeaderLayout, Opcodes, Reader};
use borehole_testkit::read_corpus;
use serde_json::Value;

use super::{comparable, expected, read_well, real, real_names, reference, rewrite};

#[test]
fn every_file_and_its_big_endian_copy_read_as_cpython_reads_them() {
    for name in real_names() {
        let want = reference(&name);
        assert!(read_well(&real(&name)) == want, "{name}");
        let swapped = read_corpus(&format!("tachyon/bigendian/{name}.bin"));
        assert!(read_well(&swapped) == want, "bigendian/{name}");
    }
}

#[test]
fn header_tables_statistics_and_records_are_those_that_cpython_reports() {
    for name in real_names() {
        let bytes = real(&name);
        let expected: Value = serde_json::from_slice(&expected(&name, "info.json")).unwrap();
        let (info, stats) = (&expected["info"], &expected["reader_stats"]);
        let mut reader = Reader::new(&bytes).unwrap();
        let header = *reader.header();
        assert_eq!(info["python_version"], serde_json::json!(header.python), "{name}");
        for (key, found) in [
            ("start_time_us", header.start_us),
            ("sample_interval_us", header.interval_us),
            ("sample_count", header.samples),
            ("thread_count", u64::from(header.threads)),
            ("string_count", reader.tables().string_count() as u64),
            ("frame_count", reader.tables().frame_count() as u64),
            ("compression_type", u64::from(header.compression)),
        ] {
            assert_eq!(info[key].as_u64(), Some(found), "{name} {key}");
        }
        let mode = u64::from(header.config.mode_number()).checked_sub(1);
        assert_eq!(info["mode"].as_u64(), mode, "{name}");
        let features = (header.config.0 & 8 != 0).then_some(u64::from(header.config.0 >> 4 & 31));
        assert_eq!(info["capture_features"].as_u64(), features, "{name}");
        let statistics = reader.statistics().copied();
        for (key, found) in [
            ("duration_sec", statistics.map(|found| found.duration_s)),
            ("sample_rate", statistics.map(|found| found.sample_rate)),
            ("error_rate", statistics.and_then(|found| found.error_rate)),
            ("missed_samples", statistics.and_then(|found| found.missed_samples)),
        ] {
            // The parser of the expected value may be off by the last digit.
            let rounded = |number: f64| format!("{number:.12e}");
            assert_eq!(info[key].as_f64().map(rounded), found.map(rounded), "{name} {key}");
        }
        while reader.next_sample().unwrap().is_some() {}
        let counts = *reader.record_counts();
        let keys = ["repeat_records", "full_records", "suffix_records", "pop_push_records"];
        assert_eq!(keys.map(|key| stats[key].as_u64().unwrap()), counts.records, "{name}");
        assert_eq!(stats["repeat_samples"].as_u64(), Some(counts.run_samples), "{name}");
    }
}

#[test]
fn every_file_is_written_again_byte_for_byte() {
    for name in real_names() {
        let bytes = real(&name);
        let again = rewrite(&bytes, |_| {});
        assert!(comparable(&again) == comparable(&bytes), "{name}");
        if Reader::new(&bytes).unwrap().header().compression == 0 {
            assert!(again == bytes, "{name}");
        }
        // The footer contains the length of the file.
        assert_eq!(again[again.len() - 24..again.len() - 16], (again.len() as u64).to_le_bytes());
    }
}

#[test]
fn bytes_are_swapped_as_the_copies_of_the_corpus_are() {
    for name in real_names() {
        let swapped = rewrite(&real(&name), |options| options.byte_order = ByteOrder::Big);
        let copy = read_corpus(&format!("tachyon/bigendian/{name}.bin"));
        assert!(comparable(&swapped) == comparable(&copy), "{name}");
        let back = rewrite(&copy, |options| options.byte_order = ByteOrder::Little);
        assert!(comparable(&back) == comparable(&real(&name)), "{name}");
    }
}

#[test]
fn the_old_layout_and_other_compression_hold_the_same_samples() {
    for name in real_names() {
        let bytes = real(&name);
        let want = read_well(&bytes);
        let old = rewrite(&bytes, |options| options.layout = HeaderLayout::Old);
        assert_eq!(Reader::new(&old).unwrap().header().layout, HeaderLayout::Old, "{name}");
        for compression in [Compression::None, Compression::Zstd] {
            let other = rewrite(&old, |options| options.compression = compression);
            assert!(read_well(&other) == want, "{name}");
        }
    }
}

#[test]
fn opcodes_have_the_names_of_the_recorded_version() {
    for (minor, count) in
        [(8, 120), (9, 119), (10, 127), (11, 110), (12, 140), (13, 224), (14, 238), (15, 245)]
    {
        let file = read_corpus(&format!("tachyon/opcodes/opcodes_3.{minor}.json"));
        let file: Value = serde_json::from_slice(&file).unwrap();
        let names = file["names"].as_object().unwrap();
        assert_eq!(names.len(), count);
        let opcodes = Opcodes::of(3, minor);
        for (number, name) in names {
            let Ok(number @ 0..=254) = number.parse::<u8>() else { continue };
            assert_eq!(opcodes.name(number), name.as_str().unwrap(), "3.{minor} {number}");
        }
    }
}
