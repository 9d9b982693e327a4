//! The requirements of the specification on readers and writers, sentence by sentence, on hand-made files.

use borehole_formats::Compression;
use borehole_formats::tachyon::layout::{Footer, MAX_DEPTH, RecordKind};
use borehole_formats::tachyon::{ByteOrder, FileHeader, HeaderLayout, Reader, WriterOptions};
use borehole_formats::{ErrorKind, ReadOptions};
use borehole_wire::put_varint;

use super::{Outcome, PlainSample, define, finish, functions, read, read_well, statistics, thread, writer};

/// A file with the frames `f0` to `f299`.
pub(super) struct File {
    pub(super) order: ByteOrder,
    pub(super) records: Vec<u8>,
    pub(super) samples: u64,
    pub(super) threads: u32,
}

impl File {
    pub(super) const fn new(samples: u64, threads: u32) -> Self {
        Self { order: ByteOrder::Little, records: Vec::new(), samples, threads }
    }

    pub(super) fn head(mut self, thread: u64, interpreter: u32, kind: RecordKind) -> Self {
        self.records.extend(self.order.bytes_of_u64(thread));
        self.records.extend(self.order.bytes_of_u32(interpreter));
        self.records.push(kind as u8);
        self
    }

    pub(super) fn numbers(mut self, numbers: &[u64]) -> Self {
        numbers.iter().for_each(|&number| put_varint(&mut self.records, number));
        self
    }

    /// A record with its time and status, its count if it has one, and its frames.
    pub(super) fn record(self, kind: RecordKind, delta_us: u64, number: Option<u64>, frames: &[u64]) -> Self {
        let mut file = self.head(7, 0, kind).numbers(&[delta_us, 1]);
        file = file.numbers(number.as_slice());
        file.numbers(&[frames.len() as u64]).numbers(frames)
    }

    pub(super) fn bytes(self) -> Vec<u8> {
        let mut strings = vec![5];
        strings.extend(b"/a.py");
        let mut frames = Vec::new();
        for number in 0..300_u64 {
            let name = format!("f{number}");
            put_varint(&mut strings, name.len() as u64);
            strings.extend(name.bytes());
            [0, number + 1].into_iter().for_each(|string| put_varint(&mut frames, string));
            frames.extend([2, 0, 4, 6, 255]);
        }
        let strings_offset = 64 + self.records.len() as u64;
        let header = FileHeader {
            byte_order: self.order,
            version: 1,
            python: [3, 15, 2],
            start_us: 1000,
            interval_us: 10,
            samples: self.samples,
            threads: self.threads,
            strings_offset,
            frames_offset: strings_offset + strings.len() as u64,
            ..FileHeader::default()
        };
        let body = [header.encode().to_vec(), self.records, strings, frames].concat();
        let footer = Footer { strings: 301, frames: 300, file_bytes: body.len() as u64 + 32 };
        [body, footer.encode(self.order).to_vec()].concat()
    }

    fn read(self) -> Vec<PlainSample> {
        read_well(&self.bytes())
    }

    fn refused(self) -> Outcome {
        let outcome = read(&self.bytes(), ReadOptions::default());
        assert!(outcome.error.is_some());
        outcome
    }
}

use RecordKind::{Full, PopPush, Repeat, Suffix};

#[test]
fn frames_are_written_innermost_first() {
    let samples = File::new(1, 1).record(Full, 5, None, &[2, 1, 0]).read();
    assert_eq!(functions(&samples[0]), ["f2", "f1", "f0"]);
}

#[test]
fn times_count_from_the_start_and_then_from_the_threads_last_sample() {
    let file = File::new(4, 2).record(Full, 5, None, &[0]);
    let file = file.head(8, 0, Full).numbers(&[50, 1, 1, 0]);
    let samples = file.record(PopPush, 7, Some(0), &[]).head(8, 0, Repeat).numbers(&[1, 3, 1]).read();
    assert_eq!(samples.iter().map(|sample| sample.time_us).collect::<Vec<_>>(), [1005, 1050, 1012, 1053]);
}

#[test]
fn a_clock_that_goes_back_wraps() {
    let samples = File::new(1, 1).record(Full, 5_u64.wrapping_neg(), None, &[0]).read();
    assert_eq!(samples[0].time_us, 995);
}

#[test]
fn a_run_has_a_time_and_a_status_for_each_sample() {
    let file = File::new(4, 1).record(Full, 0, None, &[1, 0]);
    let samples = file.head(7, 0, Repeat).numbers(&[3, 10, 1, 20, 2, 30, 37]).read();
    let seen: Vec<_> = samples.iter().map(|sample| (sample.time_us, sample.status)).collect();
    assert_eq!(seen, [(1000, 1), (1010, 1), (1030, 2), (1060, 37)]);
    assert!(samples.iter().all(|sample| functions(sample) == ["f1", "f0"]));
}

#[test]
fn a_run_before_any_stack_is_of_the_empty_one() {
    let samples = File::new(1, 1).head(7, 0, Repeat).numbers(&[1, 10, 1]).read();
    assert!(samples[0].frames_leaf_first.is_empty());
}

#[test]
fn a_run_may_be_empty() {
    assert!(File::new(0, 1).head(7, 0, Repeat).numbers(&[0]).read().is_empty());
}

#[test]
fn a_suffix_shares_frames_from_the_bottom() {
    let file = File::new(4, 1).record(Full, 0, None, &[2, 1, 0]).record(Suffix, 0, Some(3), &[4, 3]);
    let samples = file.record(Suffix, 0, Some(1), &[9]).record(Suffix, 0, Some(1), &[]).read();
    let stacks: Vec<_> = samples.iter().map(functions).collect();
    assert_eq!(stacks[1..], [vec!["f4", "f3", "f2", "f1", "f0"], vec!["f9", "f0"], vec!["f0"]]);
}

#[test]
fn pop_and_push_work_at_the_top() {
    let file = File::new(4, 1).record(Full, 0, None, &[2, 1, 0]).record(PopPush, 0, Some(2), &[5, 4]);
    let samples = file.record(PopPush, 0, Some(1), &[]).record(PopPush, 0, Some(0), &[]).read();
    let stacks: Vec<_> = samples.iter().map(functions).collect();
    assert_eq!(stacks[1..], [vec!["f5", "f4", "f0"], vec!["f4", "f0"], vec!["f4", "f0"]]);
}

#[test]
fn threads_and_interpreters_are_separated() {
    let file = File::new(4, 3).record(Full, 1, None, &[0]);
    let file = file.head(7, 1, Full).numbers(&[2, 4, 1, 1]).head(1 << 40, 0, Full).numbers(&[3, 4, 1, 2]);
    let samples = file.record(Suffix, 1, Some(1), &[3]).read();
    let owners: Vec<_> = samples.iter().map(|sample| (sample.thread, sample.interpreter)).collect();
    assert_eq!(owners, [(7, 0), (7, 1), (1 << 40, 0), (7, 0)]);
    assert_eq!(functions(&samples[3]), ["f3", "f0"]);
}

#[test]
fn numbers_of_fixed_width_are_swapped_in_a_big_endian_file() {
    let file = File { order: ByteOrder::Big, ..File::new(1, 1) };
    let file = file.head(0x0102_0304_0506_0708, 0x090a_0b0c, Full).numbers(&[300, 1, 1, 299]);
    let bytes = file.bytes();
    assert!(bytes.starts_with(b"TACH"));
    let samples = read_well(&bytes);
    assert_eq!((samples[0].thread, samples[0].interpreter), (0x0102_0304_0506_0708, 0x090a_0b0c));
    assert_eq!((samples[0].time_us, functions(&samples[0])), (1300, vec!["f299"]));
}

#[test]
fn stacks_are_at_most_256_deep() {
    let deep: Vec<u64> = (0..256).collect();
    assert_eq!(File::new(1, 1).record(Full, 0, None, &deep).read()[0].frames_leaf_first.len(), MAX_DEPTH);
    let outcome = File::new(2, 1).record(Full, 0, None, &deep).record(Suffix, 0, Some(256), &[1]).refused();
    assert_eq!(outcome.samples.len(), 1);
}

#[test]
fn sharing_more_frames_than_exist_is_an_error() {
    let outcome = File::new(2, 1).record(Full, 0, None, &[0]).record(Suffix, 0, Some(2), &[1]).refused();
    assert_eq!(outcome.samples.len(), 1);
    assert!(outcome.error.unwrap().is_malformed());
}

#[test]
fn popping_too_many_frames_leaves_none_and_is_reported() {
    let file = File::new(2, 1).record(Full, 0, None, &[1, 0]).record(PopPush, 0, Some(9), &[3]);
    let outcome = read(&file.bytes(), ReadOptions::default());
    assert!(outcome.error.is_none());
    assert_eq!(functions(&outcome.samples[1]), ["f3"]);
    assert_eq!(outcome.recovery.warnings.len(), 1);
}

#[test]
fn wrong_counts_are_errors() {
    let file = |samples, threads| File::new(samples, threads).record(Full, 0, None, &[0]);
    assert_eq!(file(2, 1).refused().samples.len(), 1);
    assert_eq!(file(1, 0).refused().samples.len(), 0);
    let more = read(&file(1, 2).bytes(), ReadOptions::default());
    assert!(more.error.is_none());
    assert_eq!(more.recovery.warnings[0].message, "expected 2 threads, found 1");
}

#[test]
fn undefined_frames_are_errors() {
    let outcome = File::new(1, 1).record(Full, 0, None, &[300]).refused();
    let error = outcome.error.unwrap();
    assert_eq!(error.message(), "expected a frame below 300, found frame 300");
    assert_eq!(error.offset(), Some(64));
}

#[test]
fn the_size_in_the_footer_is_checked() {
    let mut bytes = File::new(1, 1).record(Full, 0, None, &[0]).bytes();
    let at = bytes.len() - 24;
    bytes[at] ^= 1;
    let outcome = read(&bytes, ReadOptions::default());
    assert!(outcome.error.is_none() && outcome.samples.len() == 1);
    assert_eq!(outcome.recovery.warnings[0].offset, Some(at as u64));
}

#[test]
fn a_version_of_the_future_is_unsupported() {
    let mut bytes = File::new(1, 1).record(Full, 0, None, &[0]).bytes();
    bytes[4] = 2;
    let error = Reader::new(&bytes).err().unwrap();
    assert_eq!((error.kind(), error.offset()), (ErrorKind::Unsupported, Some(4)));
    assert!(error.message().ends_with("found 2 (Python 3.15.2)"));
}

#[test]
fn strings_may_hold_anything() {
    for name in ["", "a\0b", "é", "\u{1f40d}"] {
        let mut writer = writer(WriterOptions::default());
        let frames = define(&mut writer, &[name]);
        let slot = thread(&mut writer, 1);
        writer.write_sample(slot, 0, 0, &frames).unwrap();
        assert_eq!(functions(&read_well(&finish(writer))[0]), [name]);
    }
}

#[test]
fn a_file_without_samples_is_one_empty_frame() {
    let mut writer = writer(WriterOptions::default());
    writer.set_statistics(Some(statistics()));
    let bytes = finish(writer);
    // The form that CPython writes.
    assert_eq!(bytes[64..73], [0x28, 0xb5, 0x2f, 0xfd, 0x20, 0x00, 0x01, 0x00, 0x00]);
    assert!(read_well(&bytes).is_empty());
    assert_eq!(Reader::new(&bytes).unwrap().statistics(), Some(&statistics()));
}

#[test]
fn a_stream_has_neither_size_nor_checksum() {
    let mut writer = writer(WriterOptions::default());
    let frames = define(&mut writer, &["f", "g"]);
    let slot = thread(&mut writer, 1);
    for time in 0..100_000 {
        writer.write_sample(slot, time * 1000, 1, &frames[..usize::from(time % 3 == 0)]).unwrap();
    }
    let bytes = finish(writer);
    assert_eq!(bytes[68], 0, "the frame's descriptor");
    assert_eq!(read_well(&bytes).len(), 100_000);
}

#[test]
fn a_run_is_written_when_the_next_sample_might_not_fit() {
    // A difference of three bytes and a status: 4096 of these are too many for 16 KiB and one of eleven bytes.
    for (delta, length) in [(1, 8187), (1000, 5458), (100_000, 4094)] {
        let options = WriterOptions { compression: Compression::None, ..WriterOptions::default() };
        let mut writer = writer(options);
        let slot = thread(&mut writer, 1);
        for index in 1..=length + 1 {
            writer.write_repeat(slot, index * delta, 0).unwrap();
        }
        let bytes = finish(writer);
        let mut reader = Reader::new(&bytes).unwrap();
        while reader.next_sample().unwrap().is_some() {}
        assert_eq!(reader.record_counts().records, [2, 0, 0, 0], "{delta}");
        let mut count = Vec::new();
        put_varint(&mut count, length);
        assert_eq!(bytes[77..77 + count.len()], count, "{delta}");
    }
}

#[test]
fn runs_that_are_open_at_the_end_come_in_the_order_of_their_threads() {
    let mut writer = writer(WriterOptions::default());
    let frames = define(&mut writer, &["f"]);
    let slots = [3, 1, 2].map(|id| thread(&mut writer, id));
    for slot in slots {
        writer.write_sample(slot, 1, 0, &frames).unwrap();
    }
    for slot in slots.into_iter().rev() {
        writer.write_repeat(slot, 2, 0).unwrap();
    }
    let samples = read_well(&finish(writer));
    assert_eq!(samples.iter().map(|sample| sample.thread).collect::<Vec<_>>(), [3, 1, 2, 3, 1, 2]);
}

#[test]
fn too_deep_stacks_keep_the_leaf_frames() {
    let mut writer = writer(WriterOptions::default());
    let names: Vec<_> = (0..300).map(|number| format!("f{number}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let frames = define(&mut writer, &names);
    let slot = thread(&mut writer, 1);
    writer.write_sample(slot, 0, 0, &frames).unwrap();
    assert_eq!(functions(&read_well(&finish(writer))[0]), names[..256]);
}

#[test]
fn the_old_layout_is_read_although_cpython_rejects_it() {
    let whole = File::new(1, 1).record(Full, 0, None, &[0]).bytes();
    let header = FileHeader::decode(whole.first_chunk().unwrap(), ByteOrder::Little, HeaderLayout::New);
    let old = FileHeader { layout: HeaderLayout::Old, ..header };
    let bytes = [old.encode().as_slice(), &whole[64..]].concat();
    assert_eq!(read_well(&bytes), read_well(&whole));
}
