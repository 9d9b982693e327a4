//! Lines that are truncated, changed, foreign or wrong.

use borehole_formats::jsonl::import;
use borehole_formats::{ErrorKind, Limits, Position, ReadError, ReadOptions};
use borehole_model::{ProfileSink, Recovery, Tables};

use super::plain::{Call, PlainSample, Recorder};
use super::{FLAT, TABLES, export, page, read, read_strictly};

fn samples(calls: &[Call]) -> Vec<&PlainSample> {
    let samples = calls.iter().filter_map(|call| match call {
        Call::Sample(sample) => Some(sample),
        _ => None,
    });
    samples.collect()
}

fn all_lines() -> Vec<Vec<u8>> {
    let profiles = page::profiles();
    profiles
        .iter()
        .flat_map(|(calls, warnings)| [TABLES, FLAT].map(|options| export(calls, warnings, options)))
        .collect()
}

#[test]
fn every_prefix_is_read_to_its_end_with_all_complete_samples() {
    for lines in all_lines() {
        for cut in 0..lines.len() {
            let prefix = &lines[..cut];
            let complete = prefix.split_inclusive(|&byte| byte == b'\n').filter(|line| {
                line.starts_with(b"{\"type\":\"sample\"")
                    && serde_json::from_slice::<serde_json::Value>(line).is_ok()
            });
            let (calls, recovery) = read_strictly(prefix);
            assert_eq!(samples(&calls).len(), complete.count(), "cut at {cut}");
            let whole = cut == lines.len() - 1;
            let told = recovery.warnings.iter().any(|warning| warning.message.starts_with("truncated"));
            assert_eq!(told, !whole || page::ends_in_a_truncation(&lines), "cut at {cut}");
        }
    }
}

#[test]
fn every_single_byte_change_is_survived() {
    for lines in all_lines() {
        let count = lines
            .split(|&byte| byte == b'\n')
            .filter(|line| line.starts_with(b"{\"type\":\"sample\""))
            .count();
        for at in 0..lines.len() {
            let mut changed = lines.clone();
            for value in [lines[at] ^ 1, b'"', b'{', b'\n', b'9', b'\\', 0, 0xff] {
                changed[at] = value;
                let (recorder, outcome) = read(&changed, &ReadOptions::lenient());
                outcome.unwrap();
                assert!(samples(&recorder.calls).len() <= count);
                if let (_, Err(ReadError::Sink(error))) = read(&changed, &ReadOptions::default()) {
                    panic!("byte {at} as {value:#x}: {error}");
                }
            }
        }
    }
}

#[test]
fn a_bad_line_is_an_error_with_its_number_or_a_warning() {
    let bad = [
        ("nonsense", "invalid line: expected ident at column 2"),
        ("{\"type\":\"sample\",\"stack\":7}", "unknown stack: expected the id of an earlier line, found 7"),
        (
            "{\"type\":\"sample\",\"count\":-1}",
            "invalid line: invalid value: integer `-1`, expected u64 at column 27",
        ),
        ("{\"type\":\"sample\",\"status\":[\"lazy\"]}", "expected a thread state, found \"lazy\""),
        ("{\"type\":\"sample\",\"status\":[\"bit8\"]}", "expected a thread state, found \"bit8\""),
        ("{\"type\":\"stack\",\"id\":1}", "invalid line: missing field `frames` at column 23"),
        ("{\"stack\":1}", "invalid line: missing field `type` at column 11"),
        (
            "{\"type\":\"segment\",\"period_us\":18446744073709551615}",
            "period_us too large: 18446744073709551615 microseconds",
        ),
        (
            "{\"type\":\"thread\",\"tid\":1,\"name\":{\"hex\":\"0\"}}",
            "invalid line: expected pairs of hexadecimal digits at column 43",
        ),
        (
            "{\"type\":\"sample\",\"labels\":[[\"k\",{}]]}",
            "invalid line: expected one of the keys hex and number at column 34",
        ),
        ("{\"type\":\"file\",\"schema_version\":2}", "unsupported schema_version: expected 1, found 2"),
    ];
    for (line, message) in bad {
        let lines =
            format!("{{\"type\":\"sample\"}}\n{line}\n{{\"type\":\"sample\"}}\n{{\"type\":\"end\"}}\n");
        let (recorder, outcome) = read(lines.as_bytes(), &ReadOptions::default());
        let Err(ReadError::Input(error)) = outcome else { panic!("{line} was taken") };
        assert_eq!((error.message(), error.position()), (message, Position::Line(2)));
        let expected = if line.contains("file") { ErrorKind::Unsupported } else { ErrorKind::Malformed };
        assert_eq!(error.kind(), expected);
        assert_eq!(samples(&recorder.calls).len(), 1);

        let (recorder, outcome) = read(lines.as_bytes(), &ReadOptions::lenient());
        let recovery = outcome.unwrap();
        assert_eq!(samples(&recorder.calls).len(), 2, "{line}");
        assert_eq!(recovery.warnings[0].message, format!("{message} (line 2)"));
        assert_eq!((recovery.warnings[0].offset, recovery.lost_bytes), (Some(18), line.len() as u64));
        assert_eq!(recovery.warnings, recorder.outcome.warnings);
    }
}

#[test]
fn a_bad_last_line_is_bad_and_a_cut_one_is_the_end() {
    let (_, outcome) = read(b"{\"type\":\"sample\"}\n{\"type\":7}", &ReadOptions::default());
    assert!(matches!(outcome, Err(ReadError::Input(error)) if error.position() == Position::Line(2)));
    let (calls, recovery) = read_strictly(b"{\"type\":\"sample\"}\n{\"type\":\"sam");
    assert_eq!(samples(&calls).len(), 1);
    assert_eq!(recovery.warnings.len(), 1);
    assert_eq!(recovery.warnings[0].message, "truncated: line 2 is cut off");
    assert_eq!((recovery.warnings[0].offset, recovery.lost_bytes), (Some(18), 12));
}

#[test]
fn unknown_keys_and_types_are_skipped() {
    let lines = br#"
        {"type":"file","schema_version":1,"future":{"a":[1,2]}}
        {"type":"weather","name":"rain","fields":[["x",{"f64":"NaN"}]]}

        {"x":1,"count":3,"more":null,"type":"sample","pid":null}
        {"samples":3,"type":"end","later":[]}
    "#;
    let (calls, recovery) = read_strictly(lines);
    assert_eq!(samples(&calls), [&PlainSample { count: 3, ..PlainSample::default() }]);
    assert_eq!(recovery, Recovery { samples: 3, segments: 1, ..Recovery::default() });
}

#[test]
fn escapes_line_ends_and_orders_of_other_writers_are_read() {
    let lines = "{\"id\":900,\"frames\":[{\"line\":3,\"function\":\"\\u0061\\/\\ud83d\\ude00\"}],\"type\":\"st\\u0061ck\"}\r\n\
                 {\"stack\":900,\"type\":\"sample\"}\r\n{\"type\":\"end\"}";
    let (calls, recovery) = read_strictly(lines.as_bytes());
    assert_eq!(samples(&calls)[0].frames[0].function, "a/😀".as_bytes());
    assert!(recovery.is_clean());
}

#[test]
fn a_wrong_number_of_samples_is_reported() {
    let (_, recovery) = read_strictly(b"{\"type\":\"sample\"}\n{\"type\":\"end\",\"samples\":3}\n");
    assert_eq!(recovery.warnings[0].message, "missing samples: expected 3, found 1");
}

#[test]
fn nesting_and_long_lines_are_bounded() {
    let deep = format!("{{\"type\":\"other\",\"x\":{}", "[".repeat(1_000_000));
    read(deep.as_bytes(), &ReadOptions::lenient()).1.unwrap();
    let limits = Limits { line_bytes: 100, ..Limits::default() };
    let options = ReadOptions { limits, ..ReadOptions::lenient() };
    let (_, outcome) = read(deep.as_bytes(), &options);
    assert!(matches!(outcome, Err(ReadError::Input(error)) if error.is_limit()));
}

#[test]
fn a_sink_that_has_enough_stops_the_reader() {
    let lines = b"{\"type\":\"sample\"}\n".repeat(9);
    let mut recorder = Recorder { stop_after: Some(4), ..Recorder::default() };
    let options = ReadOptions::default();
    let recovery =
        borehole_formats::jsonl::import(&*lines, &options, &mut Tables::default(), &mut recorder).unwrap();
    assert_eq!((recovery.samples, recovery.stopped, recovery.is_clean()), (4, true, true));
}

#[test]
fn dropped_events_with_stacks_are_reported() {
    let lines = concat!(
        "{\"type\":\"event\",\"name\":\"CpuSampleEvent\",\"fields\":[[\"callchain\",{\"stack\":[4096]}]]}\n",
        "{\"type\":\"event\",\"name\":\"PollStartEvent\",\"fields\":[[\"worker_id\",1]]}\n",
        "{\"type\":\"end\",\"samples\":0,\"events\":2}\n"
    );
    let notes = |sink: &mut dyn ProfileSink| {
        let options = ReadOptions::default();
        let recovery = import(lines.as_bytes(), &options, &mut Tables::default(), sink).unwrap();
        recovery.notes.into_iter().map(|note| note.message).collect::<Vec<_>>()
    };
    let note = "stacks of 1 events are not read as samples: convert the lines to trc first";
    assert_eq!(notes(&mut crate::play::Collect::default()), [note]);
    assert_eq!(notes(&mut Recorder::default()), [""; 0]);
}
