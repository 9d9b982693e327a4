//! Timelines as Chrome's trace events, and the times of several inputs.

use borehole_formats::{Export as _, ReadOptions, chrome_trace, gecko};
use serde_json::Value;

use super::gecko::exporter;
use super::play::{PlainLabel, PlainSample, PlainSegment, collected, named, play_inputs};

const DAY_NS: i64 = 86_400_000_000_000;

/// Two samples a millisecond apart, of an input with this start.
fn input(start_unix_ns: Option<i64>) -> PlainSegment {
    let sample = |time_ns| PlainSample {
        frames_leaf_first: vec![named("f")],
        count: 1,
        time_ns: Some(time_ns),
        thread: Some(1),
        ..PlainSample::default()
    };
    let samples = vec![sample(0), sample(1_000_000)];
    PlainSegment {
        period_ns: Some(1_000_000),
        has_times: true,
        start_unix_ns,
        samples,
        ..PlainSegment::default()
    }
}

/// The trace events of inputs without metadata, and the losses.
fn drawn(inputs: &[PlainSegment]) -> (Vec<Value>, String) {
    let mut text = Vec::new();
    let mut exporter = chrome_trace::Exporter::new(&mut text);
    play_inputs(&inputs.iter().map(std::slice::from_ref).collect::<Vec<_>>(), &mut exporter);
    let losses = exporter.losses().to_string();
    drop(exporter);
    let document: Value = serde_json::from_slice(&text).unwrap();
    let events = document["traceEvents"].as_array().unwrap().iter();
    (events.filter(|event| event["ph"] != "M").cloned().collect(), losses)
}

#[test]
fn inputs_that_began_on_different_days_are_days_apart_on_a_timeline() {
    let times = |starts: &[Option<i64>]| {
        let (events, losses) = drawn(&starts.iter().copied().map(input).collect::<Vec<_>>());
        (events.iter().map(|event| event["ts"].as_f64().unwrap()).collect::<Vec<_>>(), losses)
    };
    let day_us = 86_400e6;
    let (found, losses) = times(&[Some(5 * DAY_NS), Some(6 * DAY_NS)]);
    assert_eq!((found, losses), (vec![0.0, 2000.0, day_us, day_us + 2000.0], String::new()));
    // Nothing on a timeline is before its start.
    let (found, losses) = times(&[Some(6 * DAY_NS), Some(5 * DAY_NS)]);
    assert_eq!(
        (found, losses),
        (vec![0.0, 2000.0], "samples before the clock's origin dropped: 2".to_owned())
    );
    assert_eq!(times(&[None, Some(DAY_NS)]).0.len(), 4);
}

#[test]
fn inputs_that_began_on_different_days_are_days_apart_for_firefox_profiler() {
    for starts in [[5, 6], [6, 5]] {
        let inputs = starts.map(|day| input(Some(day * DAY_NS)));
        let mut document = Vec::new();
        play_inputs(&inputs.each_ref().map(std::slice::from_ref), &mut exporter(&mut document));
        let (collect, _) = collected(|tables, sink| {
            gecko::import(document.as_slice(), &ReadOptions::default(), tables, sink)
        })
        .unwrap();
        let of_segment = |segment: &PlainSegment| {
            let start = segment.start_unix_ns.unwrap();
            segment.samples.iter().map(|sample| start + sample.time_ns.unwrap()).collect::<Vec<_>>()
        };
        let found: Vec<_> = collect.segments.iter().map(of_segment).collect();
        assert_eq!(found, starts.map(|day| [0, 1_000_000].map(|time_ns| day * DAY_NS + time_ns)));
    }
}

#[test]
fn only_samples_of_other_kinds_become_events() {
    for (source, phases) in [("cron", ["B", "E"].as_slice()), ("cpu", &["B", "E"]), ("alloc", &["i", "i"])] {
        let mut input = input(None);
        for sample in &mut input.samples {
            sample.labels = vec![PlainLabel::Text("source".to_owned(), source.to_owned())];
        }
        let (events, _) = drawn(&[input]);
        assert_eq!(events.iter().map(|event| &event["ph"]).collect::<Vec<_>>(), phases, "{source}");
    }
}
