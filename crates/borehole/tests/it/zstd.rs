//! Inputs in Zstandard frames, including files of the recorder.

use std::fmt::Write as _;
use std::io::Write as _;

use borehole::model::{Count, Tables};
use borehole::{Format, Input, InputOptions, Source, Target, convert};
use borehole_recorder::trc::TraceEvent;
use borehole_recorder::{Compression, Recorder};
use borehole_testkit::{Scratch, corpus, read_corpus};
use borehole_wire::zstd::{FRAME_MAGIC, ZstdWriter};

fn open(file: impl AsRef<std::path::Path>) -> Input {
    Input::open(Source::path(file).unwrap(), &InputOptions::default()).unwrap()
}

fn folded(input: Input) -> Vec<u8> {
    let mut output = Vec::new();
    convert([input], &Target::new(Format::Folded), &mut output).unwrap();
    output
}

fn frame(bytes: &[u8]) -> Vec<u8> {
    let mut writer = ZstdWriter::new(Vec::new()).unwrap();
    writer.write_all(bytes).unwrap();
    writer.complete().unwrap()
}

#[test]
fn compressed_files_are_detected_and_read_like_plain_ones() {
    for (packed, plain, format) in [
        ("zstd/realistic_54k_ts.rbt.zst", "rbt/realistic_54k_ts.rbt", Format::Rbt),
        ("zstd/real_032_cpu.bin.zst", "trc/in/real_032_cpu.bin.gz", Format::Trc),
    ] {
        let input = open(corpus(packed));
        assert_eq!(input.format(), format);
        let found = folded(input);
        assert!(found.len() > 1000 && found == folded(open(corpus(plain))), "{packed}");
    }
    let input = open(corpus("zstd/two.folded.zst"));
    assert_eq!((input.format(), folded(input)), (Format::Folded, b"main;query 3\nmain 1\n".to_vec()));
}

#[test]
fn compressed_files_are_not_mapped() {
    let scratch = Scratch::new();
    let plain = corpus("tachyon/corpus/05_threads20_none.bin");
    let packed =
        scratch.write("profile.bin.zst", &frame(&read_corpus("tachyon/corpus/05_threads20_none.bin")));
    let input = open(packed);
    assert_eq!(input.format(), Format::Tachyon);
    assert_eq!(folded(input), folded(open(plain)));
}

#[test]
fn the_first_block_may_be_longer_than_the_detected_prefix() {
    let mut seed = 1u64;
    let mut text = String::new();
    while text.len() < 300 << 10 {
        text.push_str("main;");
        for _ in 0..64 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            text.push(char::from(b'?' + u8::try_from(seed >> 58).unwrap()));
        }
        writeln!(text, " 1").unwrap();
    }
    let packed = frame(text.as_bytes());
    // The header of a block, after a frame header without a size.
    let block = u32::from_le_bytes([packed[6], packed[7], packed[8], 0]) >> 3;
    assert!(packed.starts_with(&FRAME_MAGIC) && block > 64 << 10, "{block}");
    let open = |bytes: Vec<u8>| {
        let source = Source::reader("input", std::io::Cursor::new(bytes));
        Input::open(source, &InputOptions::default()).unwrap()
    };
    assert_eq!(folded(open(packed)), folded(open(text.into_bytes())));
}

#[test]
fn the_name_decides_if_the_content_is_ambiguous() {
    let scratch = Scratch::new();
    let packed = scratch.write("cut.folded.zst", &FRAME_MAGIC);
    assert_eq!(open(packed).format(), Format::Folded);
}

#[test]
fn a_truncated_compressed_text_is_an_error_with_a_position() {
    let packed = read_corpus("zstd/two.folded.zst");
    let cut = packed.len() - 1;
    let source = Source::reader("cut.folded.zst", std::io::Cursor::new(packed[..cut].to_vec()));
    let input = Input::open(source, &InputOptions::default()).unwrap();
    let error = convert([input], &Target::new(Format::Folded), Vec::new()).unwrap_err().to_string();
    let expected = "truncated zstd frame: starts at byte 0x0 of the compressed file, is damaged at byte 0x1c";
    assert!(error.contains(expected), "{error}");
}

#[derive(TraceEvent)]
struct Step {
    #[traceevent(timestamp)]
    at_ns: u64,
    number: u64,
}

#[test]
fn compressed_files_of_the_recorder_open() {
    let folder = Scratch::new();
    let builder = Recorder::builder(folder.folder()).compression(Compression::Zstd).segment_bytes(4_000);
    let recorder = builder.start().unwrap();
    let handle = recorder.handle();
    for number in 0..2_000 {
        handle.record_now(|at_ns| Step { at_ns, number });
        if number % 100 == 0 {
            handle.flush();
        }
    }
    let summary = recorder.finish().unwrap();
    let files: Vec<_> =
        std::fs::read_dir(folder.folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() > 3 && files.len() as u64 == summary.segments, "{files:?}");
    assert!(files.iter().all(|path| path.to_string_lossy().ends_with(".bin.zst")), "{files:?}");
    assert!(files.iter().all(|path| std::fs::read(path).unwrap().starts_with(&FRAME_MAGIC)));
    let (mut tables, mut count) = (Tables::default(), Count::default());
    let inputs: Vec<_> = files.iter().map(open).collect();
    assert!(inputs.iter().all(|input| input.format() == Format::Trc));
    for input in inputs {
        let recovery = input.read_into(&mut tables, &mut count).unwrap();
        assert!(recovery.is_clean(), "{recovery:?}");
    }
    // There are two clock events at the start of each file and one at its end, and a description with each of the first two.
    assert_eq!(count.events, 2_000 + 5 * summary.segments);
}
