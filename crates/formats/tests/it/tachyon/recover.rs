//! Recovery of files that are truncated, unfinished or overwritten.

use borehole_formats::Compression;
use std::collections::HashSet;

use borehole_formats::tachyon::{LOST_FRAME, Reader, WriterOptions};
use borehole_formats::{ReadOptions, Recovery};

use super::{
    Outcome, PlainFrame, PlainSample, define, finish, read, read_well, real, real_names, thread, writer,
};

fn save(bytes: &[u8]) -> Outcome {
    let outcome = read(bytes, ReadOptions::lenient());
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
    outcome
}

/// Samples without the start of profiling, which is in the lost header.
fn without_start(samples: &[PlainSample], start_us: u64) -> Vec<PlainSample> {
    let shifted = |sample: &PlainSample| PlainSample { time_us: sample.time_us - start_us, ..sample.clone() };
    samples.iter().map(shifted).collect()
}

#[test]
fn a_header_of_zeros_costs_the_start_time_only() {
    for name in real_names() {
        let mut bytes = real(&name);
        let start_us = Reader::new(&bytes).unwrap().header().start_us;
        let whole = without_start(&read_well(&bytes), start_us);
        bytes[..64].fill(0);
        assert!(save(&bytes).samples == whole, "{name}");
    }
}

#[test]
fn a_big_endian_file_without_a_header_is_recognised() {
    for name in ["02_cpu_zstd", "05_threads20_none", "21_slow_10hz"] {
        let mut bytes = borehole_testkit::read_corpus(&format!("tachyon/bigendian/{name}.bin"));
        let start_us = Reader::new(&bytes).unwrap().header().start_us;
        let whole = without_start(&read_well(&bytes), start_us);
        bytes[..64].fill(0);
        assert!(save(&bytes).samples == whole, "{name}");
    }
}

#[test]
fn samples_without_later_sections_are_all_recovered() {
    for name in real_names() {
        let bytes = real(&name);
        let whole = read_well(&bytes);
        let end = usize::try_from(Reader::new(&bytes).unwrap().header().strings_offset).unwrap();
        let saved = save(&bytes[..end]).samples;
        assert_eq!(saved.len(), whole.len(), "{name}");
        for (saved, sample) in saved.iter().zip(&whole) {
            assert_eq!(saved.time_us, sample.time_us, "{name}");
            assert_eq!(saved.frames_leaf_first.len(), sample.frames_leaf_first.len(), "{name}");
        }
    }
}

#[test]
fn data_after_the_file_costs_nothing() {
    for name in ["05_threads20_none", "06_threads20_zstd", "37_config_unknown_nostats"] {
        let bytes = real(name);
        let with_rest = [&bytes[..], &[0x5a; 1000]].concat();
        let outcome = save(&with_rest);
        assert!(outcome.samples == read_well(&bytes), "{name}");
        assert!(!outcome.recovery.is_clean());
    }
}

#[test]
fn a_cut_loses_only_data_after_it() {
    let bytes = real("05_threads20_none");
    let whole = read_well(&bytes);
    let end = usize::try_from(Reader::new(&bytes).unwrap().header().strings_offset).unwrap();
    let mut last = 0;
    for cut in (64..end).step_by(997) {
        let saved = save(&bytes[..cut]).samples;
        assert!(saved.len() >= last, "{} samples before byte {cut}, {last} before less", saved.len());
        for (saved, sample) in saved.iter().zip(&whole) {
            assert_eq!((saved.thread, saved.time_us), (sample.thread, sample.time_us));
        }
        last = saved.len();
    }
    assert!(last > whole.len() * 9 / 10);
}

#[test]
fn a_cut_stream_saves_its_whole_blocks() {
    let mut writer = writer(WriterOptions::default());
    let names: Vec<_> = (0..1000).map(|number| format!("f{number}")).collect();
    let frames = define(&mut writer, &names.iter().map(String::as_str).collect::<Vec<_>>());
    let slot = thread(&mut writer, 1);
    let mut random = 1_u64;
    for time in 0..100_000_u64 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let first = usize::try_from(random >> 40).unwrap() % 990;
        writer.write_sample(slot, time * 1000, 1, &frames[first..first + 5]).unwrap();
    }
    let bytes = finish(writer);
    let whole = read_well(&bytes);
    let end = usize::try_from(Reader::new(&bytes).unwrap().header().strings_offset).unwrap();
    for cut in [end / 3, end / 2, end - 1] {
        let saved = save(&bytes[..cut]).samples;
        let share = cut as f64 / end as f64;
        assert!(saved.len() as f64 > (share - 0.1) * whole.len() as f64, "{} before {cut}", saved.len());
        let times = |samples: &[PlainSample]| samples.iter().map(|sample| sample.time_us).collect::<Vec<_>>();
        assert_eq!(times(&saved), times(&whole[..saved.len()]));
    }
}

#[test]
fn reading_continues_after_a_damaged_record() {
    for name in ["03_rec300_none", "05_threads20_none", "27_realapp_none", "32_attach_blocking"] {
        let bytes = real(name);
        let whole = read_well(&bytes);
        let end = usize::try_from(Reader::new(&bytes).unwrap().header().strings_offset).unwrap();
        let mut least = whole.len();
        for at in (100..end - 40).step_by(end / 60) {
            let mut damaged = bytes.clone();
            damaged[at..at + 20].fill(0xff);
            let mut reader = Reader::with_options(&damaged, ReadOptions::lenient()).unwrap();
            let mut count = 0;
            while reader.next_sample().unwrap().is_some() {
                count += 1;
            }
            assert!(!reader.recovery().is_clean(), "{name} {at}");
            least = least.min(count);
        }
        // The longest run accounts for the largest gap that twenty bytes can cause.
        assert!(least > whole.len() / 2, "{name}: {least} of {} samples", whole.len());
    }
}

#[test]
fn frames_after_a_gap_are_marked_lost_until_a_full_stack() {
    let bytes = real("32_attach_blocking");
    let whole = read_well(&bytes);
    let lost = format!("frame#{LOST_FRAME}");
    let is_lost = |frame: &PlainFrame| frame.1 == lost;
    let mut met = 0;
    for at in (5000..15_000).step_by(1001) {
        let mut damaged = bytes.clone();
        damaged[at..at + 20].fill(0xff);
        let samples = save(&damaged).samples;
        for sample in samples.iter().filter(|sample| sample.frames_leaf_first.iter().any(is_lost)).take(100) {
            // No stack is made up: without the lost root, each is the leaf part of a real one.
            let inner: Vec<_> = sample.frames_leaf_first.iter().take_while(|frame| !is_lost(frame)).collect();
            let begins = |sample: &PlainSample| {
                sample.frames_leaf_first.iter().take(inner.len()).eq(inner.iter().copied())
            };
            assert!(whole.iter().any(begins), "{inner:?}");
            met += 1;
        }
    }
    assert!(met > 0);
}

/// The samples of `name` recovered without its tables, with those of `lender`; the numbers of frames in all samples with and
/// without names.
fn borrowed(name: &str, lender: &[u8]) -> (Vec<String>, usize, usize) {
    let bytes = real(name);
    let end = usize::try_from(Reader::new(&bytes).unwrap().header().strings_offset).unwrap();
    let whole = read_well(&bytes);
    let cut = &bytes[..end];
    let mut reader = Reader::with_options(cut, ReadOptions::lenient()).unwrap();
    reader.borrow_tables(cut, lender).unwrap();
    let (mut named, mut numbered, mut samples) = (0, 0, whole.iter());
    while let Some(sample) = reader.next_sample().unwrap() {
        let expected = &samples.next().unwrap().frames_leaf_first;
        assert_eq!(expected.len(), sample.frames_root_first.len());
        for (&frame, expected) in sample.frames_root_first.iter().zip(expected.iter().rev()) {
            let Some(frame) = sample.tables.frame(frame) else {
                numbered += 1;
                continue;
            };
            let function = String::from_utf8_lossy(sample.tables.string(frame.function).unwrap());
            named += usize::from(function == expected.1);
        }
    }
    assert!(samples.next().is_none());
    let warnings = reader.recovery().warnings.iter().map(|warning| warning.message.clone());
    (warnings.collect(), named, numbered)
}

#[test]
fn tables_are_borrowed_from_a_file_that_numbers_its_frames_alike() {
    for name in ["03_rec300_none", "05_threads20_none", "06_threads20_zstd", "26_realapp_zstd"] {
        let (warnings, named, numbered) = borrowed(name, &real(name));
        let frames: usize = read_well(&real(name)).iter().map(|sample| sample.frames_leaf_first.len()).sum();
        assert_eq!((named, numbered), (frames, 0), "{name}");
        assert!(
            warnings.iter().any(|said| said.starts_with("names borrowed from another file")),
            "{warnings:?}"
        );
    }
}

#[test]
fn frames_after_the_first_difference_stay_numbers() {
    let (warnings, _, numbered) = borrowed("05_threads20_none", &real("03_rec300_none"));
    assert!(numbered > 0);
    let said = warnings.iter().find(|said| said.starts_with("names borrowed from another file")).unwrap();
    assert!(!said.contains("for 0 of 0"), "{said}");
    assert!(
        Reader::with_options(&[0; 80], ReadOptions::lenient()).unwrap().borrow_tables(&[0; 80], b"").is_err()
    );
}

#[test]
fn a_file_with_tables_borrows_none() {
    let bytes = real("05_threads20_none");
    let mut reader = Reader::with_options(&bytes, ReadOptions::lenient()).unwrap();
    let lender = real("03_rec300_none");
    reader.borrow_tables(&bytes, &lender).unwrap();
    assert_eq!(reader.tables().frame_count(), Reader::new(&bytes).unwrap().tables().frame_count());
    assert!(reader.recovery().warnings[0].message.contains("has its own"));
}

/// The warnings about early times.
fn said_early(outcome: &Outcome) -> Vec<&str> {
    let messages = outcome.recovery.warnings.iter().map(|warning| &warning.message[..]);
    messages.filter(|said| said.starts_with("times of ")).collect()
}

#[test]
fn early_times_after_a_gap_are_reported_with_their_number() {
    let outcome = save(&borehole_testkit::read_corpus("tachyon/made/times_hole.bin"));
    let damage = outcome.recovery.warnings[0].offset.unwrap();
    let saved = outcome.samples.len();
    // Each sample has 18 bytes and is taken a millisecond after the previous one.
    let before = usize::try_from((damage - 64) / 18).unwrap();
    let said = format!(
        "times of {} samples of thread 7 after the damage at byte {damage} are early by an unknown time",
        saved - before
    );
    assert_eq!(said_early(&outcome), [said]);
    assert!(saved > before && saved < 3000, "{saved} saved, {before} before the damage");
}

#[test]
fn times_without_a_warning_are_right() {
    let mut met = 0;
    for name in ["05_threads20_none", "09_subinterp", "27_realapp_none", "35_mode_all_contention"] {
        let bytes = real(name);
        let reader = Reader::new(&bytes).unwrap();
        let (end, is_plain) = (reader.header().strings_offset, reader.compressed_bytes().is_none());
        assert!(is_plain, "{name}");
        let whole = read_well(&bytes);
        let key = |sample: &PlainSample| (sample.thread, sample.interpreter, sample.time_us);
        let right: HashSet<_> = whole.iter().map(key).collect();
        for at in (100..usize::try_from(end).unwrap() - 40).step_by(1777) {
            let mut damaged = bytes.clone();
            damaged[at..at + 20].fill(0xff);
            let outcome = save(&damaged);
            let early = said_early(&outcome);
            met += early.len();
            let is_named = |sample: &PlainSample| {
                let PlainSample { thread, interpreter, .. } = sample;
                let named = match interpreter {
                    0 => format!(" of thread {thread} after"),
                    _ => format!(" of thread {thread} in interpreter {interpreter} after"),
                };
                early.iter().any(|said| said.contains(&named))
            };
            let all_are_named = !early.iter().any(|said| said.contains(" more threads "));
            for sample in outcome.samples.iter().filter(|_| all_are_named) {
                assert!(
                    right.contains(&key(sample)) || is_named(sample),
                    "{name} {at}: {sample:?} {early:?}"
                );
            }
        }
    }
    assert!(met > 50, "{met}");
}

#[test]
fn threads_whose_times_are_early_are_listed_up_to_a_bound_and_never_left_out() {
    let mut writer = writer(WriterOptions { compression: Compression::None, ..WriterOptions::default() });
    let frames = define(&mut writer, &["a", "b"]);
    for time in 0..4000_u64 {
        let slot = thread(&mut writer, 1 + time % 20);
        let frame = usize::try_from(time / 20 % 2).unwrap();
        writer.write_sample(slot, time * 1000, 1, &frames[frame..=frame]).unwrap();
    }
    let mut bytes = finish(writer);
    bytes[10_000..14_000].fill(0xff);
    let outcome = save(&bytes);
    let early = said_early(&outcome);
    assert_eq!(early.len(), 9, "{early:?}");
    assert!(early[8].contains(" samples of 12 more threads after the damage"), "{early:?}");
    let counted = early.iter().map(|said| said.split(' ').nth(2).unwrap().parse::<usize>().unwrap());
    let behind: usize = counted.sum();
    assert!(behind > 2000 && behind < outcome.samples.len(), "{behind}");
    // More damage than there is room for warnings.
    for at in (14_100..60_000).step_by(45) {
        bytes[at..at + 14].fill(0xff);
    }
    let outcome = save(&bytes);
    assert_eq!(outcome.recovery.warnings.len(), Recovery::MAX_WARNINGS);
    assert!(outcome.recovery.more_warnings > 0);
    assert_eq!(said_early(&outcome).len(), 9);
}

#[test]
fn invisible_gaps_make_times_uncertain() {
    let mut bytes = borehole_testkit::read_corpus("tachyon/made/cpu_mode.bin");
    let count = Reader::new(&bytes).unwrap().header().samples;
    bytes[28..36].copy_from_slice(&(count + 7).to_le_bytes());
    let warnings = save(&bytes).recovery.warnings;
    let said = "times after the 7 missing samples may be early by an unknown time";
    assert!(warnings.iter().any(|warning| warning.message == said), "{warnings:?}");
}
