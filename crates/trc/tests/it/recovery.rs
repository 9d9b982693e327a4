//! Reading past damage, and data that must not be lost.

use std::io::{self, Read as _};

use borehole_model::Tables;
use borehole_trc::{
    Content, ExportOptions, Exporter, FieldKind, FieldType, Reader, Schema, ValueDef, Writer, import,
};
use borehole_trc::{ReadOptions, Recovery};
use borehole_wire::envelope::Envelope;

use borehole_testkit::read_corpus;

use super::stream::{Stream, read};
use super::{input, names};

/// The number of events per batch, and the number of batches.
const EVENTS: u64 = 40;
const BATCHES: u64 = 4;

/// The number of the first batch, which zeros or changed bits never produce.
const FIRST: u64 = 0x10;

/// Batches whose events contain their position, and the offsets of the batches.
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

/// The data that can be decompressed from a truncated gzip member.
fn before_the_cut(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    // It ends with an error after all available data.
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
    // As many as the reference, which reads to the last byte.
    assert_eq!(events.len(), 303);
}

/// Reads past damage and writes the result, as `recover` does.
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
fn recovered_traces_are_sound_and_keep_symbols_and_metadata() {
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
fn a_missing_header_gives_one_warning() {
    let warnings = |bytes: &[u8], options: ReadOptions| {
        let (events, error, recovery) = read(bytes, options);
        assert!(events.is_empty() && error.is_none(), "{error:?}");
        recovery.warnings.into_iter().map(|warning| warning.message).collect::<Vec<_>>()
    };
    for options in [ReadOptions::default(), ReadOptions::lenient()] {
        assert_eq!(warnings(b"", options), ["missing header: expected 5 bytes, found none"]);
    }
    let cut = "truncated: the last 3 bytes are an incomplete frame";
    assert_eq!(warnings(b"TRC", ReadOptions::default()), [cut]);
    assert_eq!(warnings(b"TRC", ReadOptions::lenient()), ["truncated: 1 bytes missing"]);
}

#[test]
fn unsupported_versions_are_reported_equally_everywhere() {
    let said = "unsupported version: expected 1, found 9; read as version 1";
    for bytes in [&b"TRC\0\x09"[..], b"TRC\0\x01TRC\0\x09"] {
        let (_, error, recovery) = read(bytes, ReadOptions::lenient());
        assert!(error.is_none());
        let said_of: Vec<_> = recovery.warnings.iter().map(|warning| warning.message.as_str()).collect();
        assert_eq!(said_of, [said]);
    }
}

#[test]
fn a_repaired_header_is_returned_as_its_frame() {
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

/// Events with times relative to the previous one, a gap, and more of them; then the time is set, and two more follow.
fn with_a_hole() -> Vec<u8> {
    let of = |stream: Stream, numbers: std::ops::Range<u8>| {
        numbers.fold(stream, |stream, number| stream.event(1, 1000, &[number]))
    };
    let begun = Stream::new().schema(1, "Poll", 1, &[("number", 11)]);
    let holed = of(of(begun, 0..10).bytes(&[0; 40]), 20..27);
    let set = holed.bytes(&[5]).bytes(&50_000_u64.to_le_bytes());
    of(set, 30..32).0
}

#[test]
fn the_number_of_early_times_after_a_gap_is_reported() {
    let (events, error, recovery) = read(&with_a_hole(), ReadOptions::lenient());
    assert!(error.is_none() && events.len() == 19, "{events:?}");
    let [damage, times] = &recovery.warnings[..] else { panic!("{:?}", recovery.warnings) };
    let place = damage.offset.unwrap();
    let expected =
        format!("times of 7 events after the damage at byte {place:#x} are early by an unknown time");
    assert_eq!((&*times.message, times.offset), (&*expected, Some(place + 40)));
}

#[test]
fn a_reset_after_a_gap_makes_times_right() {
    let whole = with_a_hole();
    let hole = whole.windows(40).position(|bytes| bytes == [0; 40]).unwrap();
    // Without the events between the gap and the reset.
    let mut bytes = whole.clone();
    bytes.drain(hole + 40..hole + 40 + 7 * 7);
    let (events, error, recovery) = read(&bytes, ReadOptions::lenient());
    assert!(error.is_none() && events.len() == 12, "{events:?}");
    assert_eq!(recovery.warnings.len(), 1, "{:?}", recovery.warnings);
}

#[test]
fn events_after_a_gap_are_counted() {
    let bytes = read_corpus("damage/recover-times-hole.trc.gz");
    let mut reader = Reader::with_options(bytes.as_slice(), ReadOptions::lenient());
    let mut early = 0;
    reader.for_each_event(|event| early += u64::from(event.is_recovered())).unwrap();
    let of = borehole_text::counted(early, "event");
    let said = format!("times of {of} after the damage at byte 0x118f4 are early by an unknown time");
    let messages: Vec<_> = reader.recovery().warnings.iter().map(|warning| &*warning.message).collect();
    assert!(early > 1000 && messages.contains(&&*said), "{early} {messages:?}");
}

#[test]
fn recovered_traces_keep_their_warnings() {
    let (written, recovery) = recovered(&with_a_hole());
    let said: Vec<_> = recovery.warnings.iter().map(|warning| warning.message.clone()).collect();
    assert_eq!(said.len(), 2);
    let (again, second) = recovered(&written);
    assert!(second.is_clean() && second.events == recovery.events, "{second:?}");
    let noted: Vec<_> = second.notes.iter().map(|note| note.message.as_str()).collect();
    for (noted, said) in noted.iter().zip(&said) {
        assert!(noted.starts_with(&format!("from an earlier recovery: {said} (at byte 0x")), "{noted}");
    }
    assert_eq!(noted.len(), 2);
    // This holds for repeated rewriting.
    assert_eq!(recovered(&again).1.notes, second.notes);
}

/// A small stream.
fn inner() -> Vec<u8> {
    Stream::new().schema(1, "Inner", 1, &[("a", 9)]).event(1, 5, &[7]).0
}

/// Events, some of which contain `held` as bytes or as `text`, with and without further data.
fn holding(held: &[u8], text: &[u8]) -> Stream {
    let len = u32::try_from(held.len()).unwrap().to_le_bytes();
    let begun = Stream::new()
        .schema(1, "Blob", 1, &[("data", 5), ("n", 9)])
        .schema(2, "Last", 0, &[("data", 5)])
        .schema(3, "Text", 1, &[("data", 4)]);
    let small = |stream: Stream| stream.event(1, 1, &[1, 0, 0, 0, b'x', 1]);
    let value = [&len[..], held].concat();
    let first = small(begun).event(1, 1, &[&value[..], &[2]].concat());
    let middle = small(first).untimed(2, &value).untimed(2, &value);
    let text = &[&u32::try_from(text.len()).unwrap().to_le_bytes()[..], text].concat();
    small(middle.schema(4, "Late", 0, &[]).untimed(4, &[])).event(3, 1, text).event(3, 1, text)
}

#[test]
fn streams_inside_values_are_values() {
    let bytes = read_corpus("damage/trc-stream-in-bytes.trc");
    let mut inputs = vec![(bytes, 3)];
    // Alone, twice, truncated, and longer than the searched range.
    let long = [inner(), vec![7; 9000]].concat();
    for held in [inner(), inner().repeat(2), inner()[..9].to_vec(), long] {
        inputs.push((holding(&held, &inner()).0, 9));
    }
    for (bytes, count) in inputs {
        let (strict, error, sound) = read(&bytes, ReadOptions::default());
        assert!(error.is_none() && sound.is_clean() && strict.len() == count, "{error:?} {}", strict.len());
        let (lenient, error, recovery) = read(&bytes, ReadOptions::lenient());
        assert!(error.is_none() && recovery.is_clean(), "{:?}", recovery.warnings);
        assert_eq!(lenient, strict);
    }
}

#[test]
fn streams_inside_values_are_values_around_damage() {
    let long = [inner(), vec![7; 9000]].concat();
    for held in [inner(), long] {
        let clean = holding(&held, &inner());
        let (strict, _, _) = read(&clean.0, ReadOptions::default());
        let schemas = clean.0.windows(4).position(|bytes| bytes == [2, 1, 0, 1]).unwrap();
        // Before the first event, before the one that contains the stream, and after all.
        for at in [schemas, schemas + 12, clean.0.len()] {
            let mut bytes = clean.0.clone();
            bytes.splice(at..at, [0; 21]);
            let (lenient, error, recovery) = read(&bytes, ReadOptions::lenient());
            assert!(error.is_none() && recovery.lost_bytes == 21, "{:?}", recovery.warnings);
            assert_eq!(lenient.len(), strict.len(), "{:?}", recovery.warnings);
        }
    }
}
