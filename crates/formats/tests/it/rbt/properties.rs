//! Properties of any samples and any bytes.
//!
//! The seed is fixed, so that the test does not depend on chance.

use borehole_formats::rbt::{FrameDef, FunctionName, Header, SampleDef, Writer};
use borehole_testkit::read_corpus;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::build::Trace;
use super::gzip::member;
use super::{read, recover};

/// A frame: its strings by number, its line, and whether it is native.
type PlainFrame = ([usize; 5], i64, bool);

/// Stack, count, difference, process, annotations.
type PlainSample = (Vec<PlainFrame>, u64, Option<i64>, Option<i64>, Option<Vec<(usize, usize)>>);

const STRINGS: [&[u8]; 6] = [b"", b"f", b"App\\Db", b"\xff\xfe", b"/a b.php", b"ZEND_ADD"];

fn frame() -> impl Strategy<Value = PlainFrame> {
    let line = prop_oneof![1..50_i64, Just(-1), any::<i64>()];
    (prop::array::uniform5(0..STRINGS.len()), line, prop::bool::weighted(0.2))
}

fn profile() -> impl Strategy<Value = Vec<PlainSample>> {
    prop::collection::vec(frame(), 1..6).prop_flat_map(|frames| {
        let stack = prop::collection::vec(prop::sample::select(frames), 0..5);
        let count = prop_oneof![4 => 1..5_u64, 1 => 1..1_u64 << 41];
        let delta = prop::option::weighted(0.9, prop_oneof![0..100_000_i64, -9..0_i64]);
        let process = prop::option::weighted(0.2, prop_oneof![0..9_i64, any::<i64>()]);
        let string = || 0..STRINGS.len();
        let annotations = prop::option::weighted(0.4, prop::collection::vec((string(), string()), 0..3));
        prop::collection::vec((stack, count, delta, process, annotations), 0..20)
    })
}

fn frame_def(&(strings, number, native): &PlainFrame) -> FrameDef<'static> {
    let [namespace, class, method, file, opcode] = strings.map(|at| STRINGS[at]);
    if native {
        return FrameDef::Native { symbol: method, module: file, offset: number };
    }
    // An empty opcode is the same frame as none.
    let opcode = Some(opcode).filter(|opcode| !opcode.is_empty());
    FrameDef::Php { name: FunctionName { namespace, class, method }, file, line: number, opcode }
}

fn write(samples: &[PlainSample], header: Header) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), header).unwrap();
    for (frames, count, delta_us, pid, annotations) in samples {
        let frames: Vec<_> = frames.iter().map(frame_def).collect();
        let stack = writer.define_trace(&frames).unwrap();
        let pairs: Option<Vec<_>> = annotations
            .as_ref()
            .map(|pairs| pairs.iter().map(|&(key, value)| (STRINGS[key], STRINGS[value])).collect());
        let sample =
            SampleDef { stack, count: *count, delta_us: *delta_us, pid: *pid, annotations: pairs.as_deref() };
        writer.write_sample(&sample).unwrap();
    }
    writer.finish().unwrap()
}

/// These samples, with short runs if there are timestamps: those are written one by one.
fn with_short_runs(mut samples: Vec<PlainSample>, timed: bool) -> Vec<PlainSample> {
    for sample in samples.iter_mut().filter(|_| timed) {
        sample.1 = (sample.1 - 1) % 4 + 1;
    }
    samples
}

/// The expected lines of a reader, with equal neighbours of a segment without timestamps joined. With timestamps, a run is
/// samples at one time.
fn expected(samples: &[PlainSample], timed: bool) -> Vec<String> {
    let mut rows: Vec<(String, u64, String, bool)> = Vec::new();
    let mut time = Some(0_i64);
    for (frames, count, delta_us, pid, annotations) in samples {
        let frames: Vec<_> = frames.iter().rev().map(frame_text).collect();
        let pid_text = pid.map_or(String::new(), |pid| format!(" pid {pid}"));
        let labels = annotations_text(annotations.as_deref().unwrap_or_default());
        if timed {
            for single in 0..*count {
                let delta_us = delta_us.filter(|_| single == 0).unwrap_or(0);
                time = time.and_then(|time| time.checked_add(delta_us));
                let rest = format!("{pid_text} +{delta_us}us @{}us{labels}", time.unwrap());
                rows.push((frames.join(";"), 1, rest, false));
            }
            continue;
        }
        let joins = pid.is_none();
        let row = (frames.join(";"), *count, pid_text + &labels, joins);
        match rows.last_mut() {
            Some(last) if joins && last.3 && (&last.0, &last.2) == (&row.0, &row.2) => last.1 += count,
            _ => rows.push(row),
        }
    }
    let line = |(frames, count, rest, _)| match count {
        1 => format!("{frames}{rest}"),
        _ => format!("{frames} x{count}{rest}"),
    };
    rows.into_iter().map(line).collect()
}

fn frame_text(&(strings, number, native): &PlainFrame) -> String {
    let [namespace, class, method, file, opcode] = strings.map(|at| STRINGS[at]);
    if native {
        return format!("{}!{}+{number}", file.escape_ascii(), method.escape_ascii());
    }
    let name = FunctionName { namespace, class, method }.join();
    let opcode = if opcode.is_empty() { String::new() } else { format!(" [{}]", opcode.escape_ascii()) };
    format!("{} {}:{number}{opcode}", String::from_utf8_lossy(&name), file.escape_ascii())
}

/// Of equal keys the last value counts, at the place of the first. An empty list has no effect.
fn annotations_text(pairs: &[(usize, usize)]) -> String {
    let mut kept: Vec<(usize, usize)> = Vec::new();
    for &(key, value) in pairs {
        match kept.iter_mut().find(|(other, _)| *other == key) {
            Some(pair) => pair.1 = value,
            None => kept.push((key, value)),
        }
    }
    let text = |at: usize| STRINGS[at].escape_ascii();
    let pairs: Vec<_> = kept.iter().map(|&(key, value)| format!("{}={}", text(key), text(value))).collect();
    if pairs.is_empty() { String::new() } else { format!(" {{{}}}", pairs.join(",")) }
}

/// Joins neighbours that the reader returns separately, because an empty list of annotations is between them, or because a
/// run of two is two samples.
fn joined(lines: Vec<String>, timed: bool) -> Vec<String> {
    let mut rows: Vec<(String, u64)> = Vec::new();
    for line in lines {
        let (text, count) = split_count(&line);
        match rows.last_mut() {
            Some((last, total)) if !timed && *last == text && !text.contains(" pid ") => *total += count,
            _ => rows.push((text, count)),
        }
    }
    rows.into_iter().map(|(text, count)| format!("{text} *{count}")).collect()
}

/// A line without its count, and the count.
fn split_count(line: &str) -> (String, u64) {
    let words: Vec<_> = line.split(' ').collect();
    let count = |word: &str| word.strip_prefix('x').and_then(|count| count.parse().ok());
    match words.iter().position(|word| count(word).is_some()) {
        Some(at) => ([&words[..at], &words[at + 1..]].concat().join(" "), count(words[at]).unwrap()),
        None => (line.to_owned(), 1),
    }
}

/// Segments that end properly.
fn segments() -> Vec<Vec<u8>> {
    let names = ["annotations.rbt", "daemon_worker.rbt", "native.rbt", "pid_samples.rbt", "run_of_3.rbt"];
    let mut segments: Vec<_> = names.iter().map(|name| read_corpus(&format!("rbt/{name}"))).collect();
    segments.retain(|bytes| bytes.len() < 4000 && bytes.ends_with(&Trace::default().end().0));
    assert!(segments.len() >= 3);
    let zipped: Vec<_> = segments.iter().map(|bytes| member(bytes)).collect();
    segments.extend(zipped);
    segments
}

fn garbage() -> impl Strategy<Value = Vec<u8>> {
    // Raw segments: a truncated member swallows some of what follows.
    let cut = (0..segments().len() / 2, any::<prop::sample::Index>(), any::<prop::sample::Index>());
    let piece = cut.prop_map(|(which, from, to)| {
        let segment = &segments()[which];
        let (from, to) = (from.index(segment.len()), to.index(segment.len()));
        segment[from.min(to)..from.max(to)].to_vec()
    });
    prop_oneof![
        1 => Just(Vec::new()),
        2 => prop::collection::vec(any::<u8>(), 1..40),
        1 => prop::collection::vec(any::<u8>(), 1..3000),
        1 => prop::collection::vec(prop::sample::select(&b"RELI\x01\0\x08\x09\x0a\x1f\x8b"[..]), 1..60),
        2 => piece,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    #[test]
    fn written_samples_are_read_back_equal(samples in profile(), timed: bool) {
        let samples = with_short_runs(samples, timed);
        let header = Header { has_timestamps: timed, period_us: 77 };
        let reading = read(&write(&samples, header));
        prop_assert!(reading.error.is_none() && reading.recovery.is_clean(), "{:?}", reading.recovery);
        let found = reading.lines[1..].to_vec();
        prop_assert_eq!(joined(found, timed), joined(expected(&samples, timed), timed));
    }

    #[test]
    fn lenient_reading_of_written_files_equals_strict_reading(samples in profile(), timed: bool) {
        let samples = with_short_runs(samples, timed);
        let bytes = write(&samples, Header { has_timestamps: timed, period_us: 77 });
        let (strict, lenient) = (read(&bytes), recover(&bytes));
        prop_assert_eq!(strict.lines, lenient.lines);
        prop_assert!(lenient.recovery.is_clean(), "{:?}", lenient.recovery);
    }

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..2000), headed: bool) {
        let bytes = if headed { [Trace::compact().0, bytes].concat() } else { bytes };
        let strict = read(&bytes);
        let lenient = recover(&bytes);
        // A record takes a byte at least.
        prop_assert!(strict.lines.len().max(lenient.lines.len()) <= bytes.len());
        prop_assert!(lenient.recovery.samples >= strict.recovery.samples || strict.error.is_none());
    }

    #[test]
    fn every_whole_segment_is_found_between_garbage(
        parts in prop::collection::vec((garbage(), 0..segments().len()), 1..5),
        tail in garbage(),
    ) {
        let segments = segments();
        let mut bytes = Vec::new();
        for (garbage, which) in &parts {
            bytes.extend_from_slice(garbage);
            bytes.extend_from_slice(&segments[*which]);
        }
        bytes.extend_from_slice(&tail);
        let found = recover(&bytes);
        let mut from = 0;
        for (_, which) in &parts {
            let wanted = read(&segments[*which]).lines;
            let at = found.lines[from..].windows(wanted.len()).position(|lines| is_same(lines, &wanted));
            prop_assert!(at.is_some(), "{wanted:?} in {:?}, {:?}", found.lines, found.recovery.warnings);
            from += at.unwrap() + wanted.len();
        }
    }
}

/// Whether lines are equal, except that garbage after the last sample may look like a repeat or an annotation of it.
fn is_same(found: &[String], wanted: &[String]) -> bool {
    let stack = |line: &String| line.split([' ', '{']).next().map(str::to_owned);
    let last = wanted.len() - 1;
    found[..last] == wanted[..last] && stack(&found[last]) == stack(&wanted[last])
}

/// Random bytes that are the same on every run.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed;
    let mut byte = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state.to_be_bytes()[0]
    };
    (0..length).map(|_| byte()).collect()
}

#[test]
fn no_samples_are_made_up_from_noise() {
    let mut made_up = 0;
    for seed in 0..400 {
        made_up += recover(&noise(seed, 10_000)).recovery.samples;
    }
    // Four million bytes.
    assert_eq!(made_up, 0);
}

#[test]
fn few_samples_are_made_up_from_noise_inside_a_segment() {
    let (mut made_up, mut places) = (0, 0);
    for seed in 0..400 {
        let before = Trace::compact().compact_sample(0).compact_sample(1);
        let after = Trace::compact().compact_sample(1).end();
        let found = recover(&before.raw(&noise(seed, 10_000)).then(&after).0);
        assert_eq!(
            found.lines[found.lines.len() - 2..],
            ["segment 10000us", "f /f.php:3;g /f.php:5"],
            "{seed}"
        );
        let invented = found.samples().len().abs_diff(3);
        made_up += invented;
        places += usize::from(invented > 0);
    }
    println!("{made_up} samples made up in {places} of 400 places of 10,000 bytes each");
    assert!(made_up <= 8, "{made_up} samples made up, in {places} places");
}
