//! The samples and warnings of recovery, and that it makes nothing up.

use borehole_formats::ReadOptions;
use borehole_formats::rbt::{Reader, Record};
use borehole_testkit::manifest::CorpusManifest;
use borehole_testkit::{assert_golden, project_file, read_corpus};

use super::build::Trace;
use super::{Reading, read, recover};

const F: &str = "f /f.php:3";
const G: &str = "f /f.php:3;g /f.php:5";

/// The position, the bytes and the text of each warning.
fn report(reading: &Reading) -> Vec<(u64, u64, &str)> {
    let warnings = reading.recovery.warnings.iter();
    let rows = warnings.map(|warning| (warning.offset.unwrap(), warning.lost_bytes, &*warning.message));
    let rows: Vec<_> = rows.collect();
    assert_eq!(rows.iter().map(|(_, lost, _)| lost).sum::<u64>(), reading.recovery.lost_bytes);
    rows
}

/// Four samples with damage in the middle.
fn before() -> Trace {
    Trace::compact().compact_sample(0).compact_sample(1)
}

fn after(trace: Trace) -> Vec<u8> {
    trace.compact_sample(1).compact_sample(0).checkpoint(2, 2, 4).end().0
}

#[test]
fn a_bad_event_is_passed_over_alone() {
    let cases = [
        (
            Trace::default().event(0x01, b"\x05\x00\x01"),
            "invalid FRAME_DEF: payload truncated: 1 bytes missing",
        ),
        (Trace::default().annotation(&[1, 77_777, 1]), "undefined string 77777"),
        (Trace::default().pid_sample(&[999_999, 1]), "undefined stack 999999"),
    ];
    for (event, reason) in cases {
        let reading = recover(&after(before().then(&event)));
        assert_eq!(reading.samples(), [F, G, G, F], "{reason}");
        let [(offset, lost, message)] = report(&reading)[..] else { panic!("{:?}", reading.warnings()) };
        assert_eq!((offset, lost), (before().here(), event.here()), "{message}");
        assert!(message.contains(reason), "{message}");
    }
}

#[test]
fn stray_bytes_are_searched_through() {
    for stray in [&b"R"[..], b"RELX", b"RELI", &[0x52; 40], b"\x01\xff\xff\xff\xff\x0f\xf0\xf0\xf0"] {
        let reading = recover(&after(before().raw(stray)));
        assert_eq!(reading.samples(), [F, G, G, F], "{stray:x?}");
        let [(offset, lost, _)] = report(&reading)[..] else { panic!("{stray:x?} {:?}", reading.warnings()) };
        assert_eq!((offset, lost), (before().here(), stray.len() as u64), "{stray:x?}");
    }
}

#[test]
fn a_length_that_covers_the_next_events_is_repaired() {
    for length in [9, 30, 127] {
        let mut bytes = after(before().pid_sample(&[1, 7]));
        let at = before().0.len() + 1;
        assert_eq!(bytes[at], 2);
        bytes[at] = length;
        let reading = recover(&bytes);
        assert_eq!(reading.samples(), [F, G, &format!("{G} pid 7"), G, F], "{length}");
        assert_eq!(
            report(&reading)[0],
            (before().here(), 0, "invalid length of PID_SAMPLE: corrected from its fields")
        );
    }
}

#[test]
fn a_length_that_covers_the_next_segments_is_repaired() {
    let next = Trace::compact().compact_sample(1).end();
    let bytes = before().raw(b"\x0a\xff\x07\x04word").compact_sample(0).end().then(&next).then(&next);
    let reading = recover(&bytes.0);
    assert_eq!(reading.samples(), [F, G, F, G, G]);
    assert_eq!(reading.recovery.segments, 3);
    assert_eq!(
        report(&reading),
        [(before().here(), 0, "invalid length of STRING_DEF: corrected from its fields")]
    );
}

#[test]
fn garbage_between_segments_is_passed_over() {
    let one = Trace::compact().compact_sample(0).end();
    for garbage in [&b"\0"[..], b"\0\0\0", b"\0\0\0\0", b"RELICS", b"R", b"REL", &[0xff; 9000]] {
        let reading = recover(&one.clone().raw(garbage).then(&one).0);
        assert_eq!(reading.samples(), [F, F], "{garbage:x?}");
        let [(offset, lost, _)] = report(&reading)[..] else {
            panic!("{garbage:x?} {:?}", reading.warnings())
        };
        assert_eq!((offset, lost), (one.here(), garbage.len() as u64), "{garbage:x?}");
    }
}

/// Each sample is counted once: before the first damage or after one.
fn saved(reading: &Reading) -> Vec<u64> {
    let warnings = reading.recovery.warnings.iter();
    let behind: Vec<_> = warnings.filter_map(|warning| warning.saved_samples).collect();
    let before = reading.recovery.samples - behind.iter().sum::<u64>();
    [&[before], &behind[..]].concat()
}

#[test]
fn each_damage_has_the_number_of_samples_recovered_after_it() {
    let bad = |trace: Trace| trace.event(0x01, b"\x05\x00\x01");
    let trace = bad(before()).compact_sample(0).compact_sample(1).repeat(4).checkpoint(2, 2, 8);
    let trace = bad(trace).metadata(b"host", b"a").checkpoint(2, 2, 8);
    let trace = bad(trace).compact_sample(1).checkpoint(2, 2, 9).end();
    assert_eq!(saved(&recover(&trace.0)), [2, 6, 0, 1]);
    // A repeat after the damage repeats the sample before it.
    assert_eq!(saved(&recover(&bad(before()).repeat(7).end().0)), [2, 7]);
    let cut = before().raw(b"\x0a\x30x");
    assert_eq!(saved(&recover(&cut.0)), [2, 0]);
}

#[test]
fn harmless_warnings_do_not_end_a_lost_region() {
    let trace = before().event(0x01, b"\x05\x00\x01").compact_sample(0).checkpoint(9, 9, 9).compact_sample(1);
    let reading = recover(&trace.0);
    assert!(reading.warnings().len() > 1, "{:?}", reading.warnings());
    assert_eq!(saved(&reading), [2, 2]);
}

#[test]
fn samples_saved_add_up_on_every_damaged_file() {
    let mut damaged = 0;
    for file in CorpusManifest::rbt().files.into_iter().filter(|file| file.strict.error.is_some()) {
        let reading = super::read_with(&file.read(), ReadOptions::lenient());
        let warnings = &reading.recovery.warnings;
        let first = warnings.iter().find(|warning| warning.saved_samples.is_some());
        let Some(first) = first.and_then(|warning| warning.offset) else { continue };
        assert_eq!(saved(&reading)[0], samples_before(&file.read(), first), "{}", file.name);
        damaged += 1;
    }
    assert!(damaged >= 30, "{damaged}");
}

/// The number of samples before `offset`, read without recovery.
fn samples_before(bytes: &[u8], offset: u64) -> u64 {
    let mut reader = Reader::with_options(bytes, ReadOptions::lenient());
    let mut samples = 0;
    while let Ok(Some(record)) = reader.next_record() {
        match record {
            Record::Sample(sample) if sample.offset < offset => samples += sample.count,
            _ => {}
        }
    }
    samples
}

#[test]
fn garbage_before_the_first_segment_is_passed_over() {
    let one = Trace::compact().compact_sample(0).end();
    for garbage in [&b"x"[..], b"\n\n\n", b"RELI\x02\0\0\0\0\0\0\0\0\0\0\0", &[0x41; 70_000]] {
        let reading = recover(&Trace::default().raw(garbage).then(&one).0);
        assert_eq!(reading.samples(), [F], "{}", garbage.len());
        assert_eq!(reading.recovery.lost_bytes, garbage.len() as u64);
        assert_eq!(report(&reading)[0].0, 0);
    }
}

#[test]
fn a_damaged_header_is_read_as_if_it_were_whole() {
    for at in 0..16 {
        let mut bytes =
            Trace::compact().compact_sample(0).end().then(&Trace::compact().compact_sample(1).end()).0;
        let second = usize::try_from(Trace::compact().compact_sample(0).end().here()).unwrap();
        bytes[second + at] ^= 0x10;
        let reading = recover(&bytes);
        assert_eq!(reading.samples(), [F, G], "byte {at}");
        // Flags, reserved bytes and the period cannot be checked.
        if at < 5 {
            let message = "damaged segment header: read as if it were whole";
            assert_eq!(report(&reading)[..], [(second as u64, 0, message)], "byte {at}");
        }
    }
}

#[test]
fn a_segment_after_a_truncated_event_is_complete() {
    let next = Trace::compact().compact_sample(1).end();
    let many = (0..90).fold(before(), |trace, id| trace.stack(&[id + 2, 1, 0]));
    let events = [
        many.clone().string(4, b"a string of some length").0,
        many.clone().stack(&[92, 12, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1]).0,
        many.clone().frame(&[2, 0, 0, 0, 1, 2, 300]).0,
        many.clone().metadata(b"a key", b"a value").0,
        many.clone().compact_sample(300).0,
        many.clone().pid_sample(&[1, 300]).0,
    ];
    for whole in events {
        for length in many.0.len() + 1..whole.len() {
            let reading = recover(&[&whole[..length], &next.0].concat());
            assert_eq!(reading.samples(), [F, G, G], "{:x?}", &whole[many.0.len()..length]);
            // The existing part of a string is kept.
            let lost = if whole[many.0.len()] == 0x0a { 0 } else { length - many.0.len() };
            assert!(reading.recovery.lost_bytes >= lost as u64, "{:?}", reading.recovery);
            assert!(!reading.recovery.is_clean());
        }
    }
}

#[test]
fn samples_of_lost_definitions_are_kept() {
    // The definition of frame 2 is unreadable; stack 2 and its samples refer to it.
    let trace = before().event(0x01, b"\x02\x00\x00").stack(&[2, 2, 0, 2]).compact_sample(2);
    let reading = recover(&after(trace));
    assert_eq!(reading.samples(), [F, G, "<lost frame 2> :-1;f /f.php:3", G, F]);
    let messages: Vec<_> = report(&reading).into_iter().map(|(.., message)| message).collect();
    assert!(messages.contains(&"frame 2 was lost and is replaced by <lost frame 2>"), "{messages:?}");
}

#[test]
fn a_truncated_end_loses_no_complete_sample() {
    let bytes = after(before());
    let reading = recover(&bytes[..bytes.len() - 4]);
    assert_eq!(reading.samples(), [F, G, G, F]);
    let [(_, lost, message)] = report(&reading)[..] else { panic!("{:?}", reading.warnings()) };
    assert_eq!((lost, message), (3, "truncated CHECKPOINT: 2 bytes missing at the end"));
}

#[test]
fn processes_annotations_times_metadata_and_periods_survive() {
    let rich = |period_us, pid: &[u8]| {
        let trace = Trace::default().header(1, period_us).metadata(b"pid", pid);
        let definitions = Trace::timed().0[16..].to_vec();
        let trace = trace.raw(&definitions).pid_sample(&[0, 9, 10]).annotation(&[1, 1, 3]).repeat(2);
        trace.raw(b"\x01\x02??").sample(&[1, 40]).checkpoint(2, 2, 4).end()
    };
    let reading = recover(&rich(500, b"7").then(&rich(700, b"8")).0);
    let body = [format!("{F} x3 pid 9 +10us @10us {{f=g}}"), format!("{G} +40us @50us")];
    let segment = |period: &str, pid: &str| [format!("segment timed {period}us"), format!("pid = {pid}")];
    let expected = [&segment("500", "7")[..], &body, &segment("700", "8"), &body].concat();
    assert_eq!(reading.lines, expected);
    let lost: Vec<_> = report(&reading).iter().map(|(_, lost, _)| *lost).collect();
    assert_eq!(lost, [4, 4]);
}

#[test]
fn on_whole_files_reading_over_damage_changes_nothing() {
    let mut compared = 0;
    for file in CorpusManifest::rbt().files {
        // A repeat that reli reads without error as one sample a billion times.
        let bytes = file.read();
        if bytes.len() > 300_000 {
            continue;
        }
        let strict = read(&bytes);
        if strict.error.is_some() {
            continue;
        }
        let lenient = recover(&bytes);
        assert_eq!(lenient.lines, strict.lines, "{}", file.name);
        assert_eq!(lenient.recovery.lost_bytes, strict.recovery.lost_bytes, "{}", file.name);
        compared += 1;
    }
    assert!(compared >= 70, "{compared}");
}

/// The number of samples recovered from all damaged files, which must not fall.
#[test]
fn as_many_samples_are_saved_as_before() {
    let mut table = String::new();
    for file in CorpusManifest::rbt().files {
        if file.strict.error.is_none() {
            continue;
        }
        let reading = super::read_with(&file.read(), ReadOptions::lenient());
        let Reading { recovery, .. } = &reading;
        let reli = file.recover.samples.unwrap_or(0);
        let line = format!(
            "{} saved={} reli={reli} lost_bytes={} warnings={}\n",
            file.name,
            recovery.samples,
            recovery.lost_bytes,
            recovery.warnings.len()
        );
        table.push_str(&line);
    }
    for total in super::damage::sweep_totals() {
        table.push_str(&total);
        table.push('\n');
    }
    assert_golden(project_file("crates/formats/tests/golden/rbt-recovery.txt"), table.as_bytes());
}

/// The samples of a trace with a lost header, and the segments.
fn without_header(mut bytes: Vec<u8>) -> (Vec<String>, u64) {
    bytes[..16].fill(0);
    let reading = recover(&bytes);
    assert_eq!(reading.recovery.lost_bytes, 16, "{:?}", reading.warnings());
    (reading.samples().into_iter().map(str::to_owned).collect(), reading.recovery.segments)
}

#[test]
fn a_first_segment_without_its_header_is_a_segment() {
    for (name, samples, segments) in [("recover-no-header", 2, 1), ("recover-no-first-header", 6, 2)] {
        let reading = recover(&read_corpus(&format!("damage/{name}.rbt")));
        let found = (reading.recovery.samples, reading.recovery.segments, reading.recovery.lost_bytes);
        assert_eq!(found, (samples, segments, 16), "{name} {:?}", reading.warnings());
    }
}

#[test]
fn a_long_trace_without_its_header_loses_no_sample() {
    let mut plain = Vec::new();
    let packed = read_corpus("rbt/realistic_54k.rbt.gz");
    std::io::Read::read_to_end(&mut flate2::read::MultiGzDecoder::new(&packed[..]), &mut plain).unwrap();
    let whole = recover(&plain);
    assert!(whole.recovery.is_clean() && whole.recovery.samples >= 54_000);
    plain[..16].fill(0);
    let reading = recover(&plain);
    assert_eq!(reading.recovery.samples, whole.recovery.samples, "{:?}", reading.warnings());
    assert_eq!(reading.samples(), whole.samples());
}

#[test]
fn timestamps_are_detected_without_a_header() {
    let timed = Trace::timed().sample(&[0, 5]).sample(&[1, 300]).end().0;
    let untimed = before().end().0;
    for bytes in [timed, untimed] {
        let whole = recover(&bytes);
        assert!(whole.recovery.is_clean(), "{:?}", whole.warnings());
        let (samples, segments) = without_header(bytes.clone());
        assert_eq!((samples, segments), (whole.samples().into_iter().map(str::to_owned).collect(), 1));
    }
}

#[test]
fn a_later_segment_without_its_header_is_a_segment_too() {
    let first = after(before());
    let mut bytes = [first.clone(), first.clone(), first.clone()].concat();
    bytes[first.len()..][..16].fill(0);
    let reading = recover(&bytes);
    assert_eq!((reading.recovery.samples, reading.recovery.segments), (12, 3), "{:?}", reading.warnings());
}

#[test]
fn the_number_of_early_times_after_a_gap_is_reported() {
    let holed =
        Trace::timed().sample(&[0, 5]).sample(&[1, 7]).raw(&[0xee; 9]).sample(&[1, 9]).sample(&[0, 1]);
    // Times continue over segments; samples without times are never early.
    let bytes = holed.end().then(&Trace::timed().sample(&[0, 5]).end()).then(&before().end()).0;
    let reading = recover(&bytes);
    let place = reading.recovery.warnings[0].offset.unwrap();
    let said = format!("times of 3 samples after the damage at byte {place:#x} are early by an unknown time");
    assert_eq!((reading.recovery.samples, reading.warnings()[1]), (7, &*said));
    let untimed = recover(&after(before().raw(&[0xee; 9])));
    assert!(untimed.warnings().iter().all(|said| !said.contains("early")), "{:?}", untimed.warnings());
}

#[test]
fn times_are_right_again_from_the_next_wall_clock_on() {
    let clocked = |clock: &[u8]| {
        let header = Trace::default().header(1, 10_000).metadata(b"start_unix_ns", clock);
        header.raw(&Trace::timed().0[16..])
    };
    let holed = clocked(b"1000000000").sample(&[0, 0]).raw(&[0xee; 9]).sample(&[1, 9]).sample(&[0, 1]);
    let bytes = holed.end().then(&clocked(b"1000900000").sample(&[0, 5]).sample(&[0, 5]).end()).0;
    let reading = recover(&bytes);
    let place = reading.recovery.warnings[0].offset.unwrap();
    let said = format!("times of 2 samples after the damage at byte {place:#x} are early by an unknown time");
    assert_eq!((reading.recovery.samples, reading.warnings()[1]), (5, &*said));
}

/// Events that reli's writer does not write here, but its reader takes, and the samples that they add after [`before`].
fn unusual() -> Vec<(Trace, Vec<String>)> {
    let pid = |sample: &str| format!("{sample} pid 7");
    let event = Trace::default;
    let samples = |lines: &[&str]| lines.iter().map(|&line| line.to_owned()).collect::<Vec<_>>();
    vec![
        (event().sample(&[0]), samples(&[F, G, F])),
        (event().sample(&[0, 10]), samples(&[F, G, F])),
        (event().pid_sample(&[0, 7]), vec![F.to_owned(), G.to_owned(), pid(F)]),
        (event().pid_sample(&[0, 7, 10]), vec![F.to_owned(), G.to_owned(), pid(F)]),
        (event().repeat(0), samples(&[F, G])),
        (event().repeat(-1), samples(&[F, G])),
        (event().repeat(1).repeat(0), vec![F.to_owned(), format!("{G} x2")]),
        (event().annotation(&[0]), vec![F.to_owned(), format!("{G} {{}}")]),
        (event().string(0, b"again"), samples(&[F, G])),
        (event().stack(&[0, 1, 0]), samples(&[F, G])),
        (event().stack(&[900, 0]), samples(&[F, G])),
        (event().checkpoint(1, 1, 1), samples(&[F, G])),
        (event().metadata("schlüssel".as_bytes(), b""), samples(&[F, G])),
        (event().event(0x04, b""), samples(&[F, G])),
    ]
}

#[test]
fn unknown_events_beside_unusual_ones_are_skipped_alone_in_every_mode() {
    for unknown in [event_of(0x0c, b""), event_of(0x7f, b"\x08\x01\x08\x01"), event_of(0xff, &[0x2a; 300])] {
        for (unusual, wanted) in unusual() {
            let orders = [
                unknown.clone().then(&unusual),
                unusual.clone().then(&unknown),
                unknown.clone().then(&unusual).then(&unknown),
                unusual.clone().then(&unknown).then(&unknown),
            ];
            for middle in orders {
                let trace = before().then(&middle).compact_sample(1).end();
                let wanted = [wanted.clone(), vec![G.to_owned()]].concat();
                for reading in [read(&trace.0), recover(&trace.0)] {
                    assert_eq!(reading.samples(), wanted, "{:x?} {:?}", middle.0, reading.warnings());
                    assert_eq!(reading.recovery.lost_bytes, 0, "{:x?}", middle.0);
                }
            }
        }
    }
}

fn event_of(event_type: u8, payload: &[u8]) -> Trace {
    Trace::default().event(event_type, payload)
}
