//! What is read past damage, and what is not lost.

use std::io::{self, Read as _};

use borehole_formats::envelope::Envelope;
use borehole_formats::trc::{
    Content, ExportOptions, Exporter, FieldKind, FieldType, Reader, Schema, ValueDef, Writer, import,
};
use borehole_formats::{ReadOptions, Recovery};
use borehole_model::Tables;

use super::stream::read;
use super::{input, names};

/// How many events each batch has, of so many batches.
const EVENTS: u64 = 40;
const BATCHES: u64 = 4;

/// What the first batch is called: nothing that zeros or changed bits make of a number.
const FIRST: u64 = 0x10;

/// Batches whose events say where they belong, and where each batch begins.
fn batches() -> (Vec<u8>, Vec<usize>) {
    let fields = [
        ("batch", FieldType::required(FieldKind::Varint)),
        ("number", FieldType::required(FieldKind::U8)),
        ("name", FieldType::required(FieldKind::PooledString)),
        ("text", FieldType::required(FieldKind::String)),
    ];
    let schema = Schema::new("Numbered", fields).unwrap();
    let mut writer = Writer::new(Vec::new());
    let mut starts = Vec::new();
    for batch in 0..BATCHES {
        starts.push(writer.output().len());
        for number in 0..EVENTS {
            let name = ["alpha", "beta", "gamma"][usize::try_from(number % 3).unwrap()];
            let values = [
                ValueDef::Unsigned(FIRST + batch),
                ValueDef::Unsigned(number),
                ValueDef::Text(name),
                ValueDef::Text("some text of an event"),
            ];
            writer.write_event(&schema, 1_000_000 + batch * 1_000_000 + number * 1000, &values).unwrap();
        }
        writer.end_batch().unwrap();
    }
    let bytes = writer.finish().unwrap();
    starts.push(bytes.len());
    (bytes, starts)
}

/// The lines of the events of one batch.
fn of_batch(lines: &[String], batch: u64) -> Vec<&String> {
    let wanted = format!(r#"batch={{"uint":{}}}"#, FIRST + batch);
    lines.iter().filter(|line| line.contains(&wanted)).collect()
}

#[test]
fn damage_inside_a_batch_loses_at_most_the_rest_of_that_batch() {
    let (whole, starts) = batches();
    let (all, error, _) = read(&whole, ReadOptions::default());
    assert!(error.is_none() && all.len() as u64 == EVENTS * BATCHES);
    let (mut saved, mut cases) = (0, 0);
    for at in starts[1]..starts[2] {
        for kind in 0..4 {
            let mut bytes = whole.clone();
            match kind {
                0 => bytes[at] ^= 0x55,
                1 => bytes[at..starts[2].min(at + 16)].fill(0),
                2 => drop(bytes.drain(at..starts[2].min(at + 7))),
                _ => drop(bytes.splice(at..at, [0xee; 5])),
            }
            let (lines, error, recovery) = read(&bytes, ReadOptions::lenient());
            assert!(error.is_none(), "{at} {kind}: {error:?}");
            for batch in [0, 2, 3] {
                assert_eq!(
                    of_batch(&lines, batch),
                    of_batch(&all, batch),
                    "{at} {kind} {:?}",
                    recovery.warnings
                );
            }
            saved += of_batch(&lines, 1).len();
            cases += 1;
        }
    }
    let share = saved as f64 / (f64::from(cases) * EVENTS as f64);
    assert!(share > 0.9, "only {share} of the damaged batch is saved");
}

#[test]
fn a_damaged_length_does_not_swallow_the_next_batch() {
    let (whole, starts) = batches();
    let (all, _, _) = read(&whole, ReadOptions::default());
    let lengths = (starts[1]..starts[2]).filter(|&at| whole[at..].starts_with(&[21, 0, 0, 0, b's']));
    let mut cases = 0;
    for at in lengths {
        for high in 1..12 {
            let mut bytes = whole.clone();
            bytes[at + 1] = high;
            let (lines, _, recovery) = read(&bytes, ReadOptions::lenient());
            assert_eq!(of_batch(&lines, 2), of_batch(&all, 2), "{at} {high}: {:?}", recovery.warnings);
            cases += 1;
        }
    }
    assert_eq!(cases, 11 * EVENTS);
}

/// What can be decompressed of a gzip member that is cut off.
fn before_the_cut(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    // It ends with an error, behind all that there is.
    let _ = flate2::read::MultiGzDecoder::new(bytes).read_to_end(&mut plain);
    plain
}

#[test]
fn a_gzip_that_is_cut_off_yields_every_event_before_the_cut() {
    for name in ["real_057_blocked.bin.gz", "real_032_cpu.bin.gz"] {
        let whole = input(name);
        let cuts = (0..whole.len()).step_by(whole.len() / 23).chain([whole.len() - 1, whole.len() - 8]);
        let mut last = 0;
        for cut in cuts {
            let plain = before_the_cut(&whole[..cut]);
            let (expected, _, _) = read(&plain, ReadOptions::default());
            let (found, error, recovery) = read(&whole[..cut], ReadOptions::default());
            assert!(error.is_none(), "{name} {cut}: {error:?}");
            assert!(found.starts_with(&expected), "{name} {cut}: {} of {}", found.len(), expected.len());
            assert!(cut == 0 || !recovery.is_clean(), "{name} {cut} ends silently");
            last = last.max(found.len());
        }
        assert!(last > 1000, "{name}: {last}");
    }
}

#[test]
fn a_killed_recording_yields_every_event_in_it() {
    let (events, error, recovery) = read(&input("real_057_killed.bin.active"), ReadOptions::default());
    assert!(error.is_none() && recovery.is_clean(), "{error:?} {recovery:?}");
    // As many as the reference reads, which is to the last byte.
    assert_eq!(events.len(), 303);
}

/// Reads past damage and writes what came out, as `recover` does.
fn recovered(bytes: &[u8]) -> (Vec<u8>, Recovery) {
    let mut output = Vec::new();
    let mut tables = Tables::default();
    let recovery = {
        let mut exporter = Exporter::new(&mut output, ExportOptions::default());
        let recovery =
            import(bytes, &ReadOptions::lenient(), io::Cursor::new(Vec::new()), &mut tables, &mut exporter)
                .unwrap();
        borehole_model::ProfileSink::finish(&mut exporter, &tables).unwrap();
        recovery
    };
    (output, recovery)
}

#[test]
fn what_is_recovered_is_clean_and_keeps_symbols_and_metadata() {
    let mut plain = Vec::new();
    Envelope::new(input("real_057_blocked.bin.gz").as_slice()).read_to_end(&mut plain).unwrap();
    let kept = |bytes: &[u8]| {
        let (lines, error, recovery) = read(bytes, ReadOptions::default());
        assert!(error.is_none() && recovery.is_clean(), "{error:?}");
        let is_kept =
            |line: &String| line.starts_with("SymbolTableEntry") || line.starts_with("SegmentMetadata");
        let kept: Vec<_> = lines.iter().filter(|line| is_kept(line)).map(|line| without_ids(line)).collect();
        (lines.len(), kept)
    };
    let (all, expected) = kept(&plain);
    assert!(expected.len() > 100, "{}", expected.len());
    let mut reader = Reader::new(plain.as_slice());
    let mut middle = 0;
    reader
        .for_each_event(|event| {
            middle = if event.name() == "PollStartEvent" { event.offset() } else { middle }
        })
        .unwrap();
    let mut damaged = plain.clone();
    let middle = usize::try_from(middle).unwrap() / 2;
    damaged[middle..middle + 20].fill(0xee);
    let (clean, recovery) = recovered(&damaged);
    assert!(recovery.lost_bytes > 0 && !recovery.warnings.is_empty());
    let (saved, found) = kept(&clean);
    assert_eq!(found, expected);
    assert!(saved + 40 > all, "{saved} of {all}");
}

/// Pools have other ids in another file.
fn without_ids(line: &str) -> String {
    line.split("\"pstr\":")
        .map(|part| part.trim_start_matches(|digit: char| digit.is_ascii_digit()))
        .collect()
}

#[test]
fn no_file_of_the_corpus_ends_lenient_reading_with_an_error() {
    for name in names() {
        let (_, error, _) = read(&input(&name), ReadOptions::lenient());
        assert!(error.is_none(), "{name}: {error:?}");
    }
}

#[test]
fn of_an_input_without_a_header_one_warning_says_so() {
    let warnings = |bytes: &[u8], options: ReadOptions| {
        let (events, error, recovery) = read(bytes, options);
        assert!(events.is_empty() && error.is_none(), "{error:?}");
        recovery.warnings.into_iter().map(|warning| warning.message).collect::<Vec<_>>()
    };
    for options in [ReadOptions::default(), ReadOptions::lenient()] {
        assert_eq!(warnings(b"", options), ["missing header: expected 5 bytes, found none"]);
    }
    let cut = "truncated: the last 3 bytes are the beginning of a frame";
    assert_eq!(warnings(b"TRC", ReadOptions::default()), [cut]);
    assert_eq!(warnings(b"TRC", ReadOptions::lenient()), ["truncated: 1 bytes missing"]);
}

#[test]
fn another_version_is_told_of_in_the_same_words_wherever_its_header_stands() {
    let said = "unsupported version: expected 1, found 9; read all the same";
    for bytes in [&b"TRC\0\x09"[..], b"TRC\0\x01TRC\0\x09"] {
        let (_, error, recovery) = read(bytes, ReadOptions::lenient());
        assert!(error.is_none());
        let said_of: Vec<_> = recovery.warnings.iter().map(|warning| warning.message.as_str()).collect();
        assert_eq!(said_of, [said]);
    }
}

#[test]
fn a_header_that_is_mended_is_given_out_as_the_frame_that_it_was() {
    let (mut bytes, starts) = batches();
    bytes[starts[1] + 1] = b'r';
    let mut reader = Reader::with_options(bytes.as_slice(), ReadOptions::lenient());
    let mut headers = Vec::new();
    while let Some(frame) = reader.next_frame().unwrap() {
        if let Content::Header { version } = frame.content {
            headers.push((frame.offset, frame.bytes.len(), version));
        }
    }
    let expected = starts[..4].iter().map(|&start| (start as u64, 5, 1));
    assert_eq!(headers, expected.collect::<Vec<_>>());
    assert_eq!((reader.recovery().segments, reader.recovery().events), (BATCHES, BATCHES * EVENTS));
}
