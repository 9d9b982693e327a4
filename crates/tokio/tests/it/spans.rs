//! Spans of `tracing`.

use std::fs::{self, File};

use borehole_recorder::Recorder;
use borehole_recorder::trc::{Reader, Value};
use borehole_tokio::SpanLayer;
use tracing::{Instrument as _, Span, field, info_span};
use tracing_subscriber::layer::SubscriberExt as _;

use super::scratch::Scratch;

/// The kind, the number of the span, and its fields.
type SpanEvent = (String, u64, Vec<(String, String)>);

/// The events of the spans that `program` has, in their order on its thread.
fn recorded(program: impl FnOnce()) -> Vec<SpanEvent> {
    let folder = Scratch::new();
    let recorder = Recorder::builder(folder.folder()).start().unwrap();
    let subscriber = tracing_subscriber::registry().with(SpanLayer::new(recorder.handle()));
    tracing::subscriber::with_default(subscriber, program);
    assert_eq!(recorder.finish().unwrap().lost_events, 0);
    let mut events = Vec::new();
    for entry in fs::read_dir(folder.folder()).unwrap() {
        let mut reader = Reader::new(File::open(entry.unwrap().path()).unwrap());
        reader
            .for_each_event(|event| {
                if let Some(span) = event.value_of("span_id").and_then(Value::as_u64) {
                    let kind = event.name().split("::").next().unwrap().to_owned();
                    let text = |value: Value<'_>| value.as_str().map(str::to_owned);
                    let names = ["name", "route", "items", "status", "debug"];
                    let fields = names.iter().filter_map(|name| {
                        event.value_of(name).and_then(text).map(|value| ((*name).to_owned(), value))
                    });
                    events.push((kind, span, fields.collect()));
                }
            })
            .unwrap();
    }
    events
}

fn kinds(events: &[SpanEvent]) -> Vec<&str> {
    events.iter().map(|event| event.0.split(':').next().unwrap()).collect()
}

#[test]
fn spans_are_entered_left_and_closed_with_their_fields() {
    let events = recorded(|| {
        let span =
            info_span!("checkout", route = "/cart", items = 3_u64, status = field::Empty, debug = ?[1]);
        span.in_scope(|| drop(Span::current().record("status", -1).clone()));
        span.in_scope(|| {});
    });
    assert_eq!(kinds(&events), ["SpanEnter", "SpanExit", "SpanEnter", "SpanExit", "SpanCloseEvent"]);
    let fields = |index: usize| {
        events[index].2.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(fields(0), "route=/cart items=3 debug=[1]");
    assert_eq!(fields(2), "route=/cart items=3 status=-1 debug=[1]");
    assert!(events.iter().all(|event| event.1 == events[0].1));
}

#[test]
fn a_span_over_an_await_is_entered_with_each_poll() {
    let events = recorded(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let work = async {
            for _ in 0..3 {
                tokio::task::yield_now().await;
            }
        };
        runtime.block_on(work.instrument(info_span!("work")));
    });
    let enters = kinds(&events).iter().filter(|kind| **kind == "SpanEnter").count();
    // The last one is that of the drop of the future.
    assert_eq!(enters, 5, "{events:?}");
    assert_eq!(kinds(&events).last(), Some(&"SpanCloseEvent"));
}

#[test]
fn values_without_end_are_cut_off() {
    let events = recorded(|| {
        let span = info_span!("long", route = "é".repeat(20_000), status = field::Empty);
        (0..100_u64).for_each(|number| drop(span.record("status", number).clone()));
        span.in_scope(|| {});
    });
    let route = &events[0].2[0].1;
    assert!(route.len() == 16 << 10 && route.chars().all(|letter| letter == 'é'), "{}", route.len());
    assert_eq!(events.len(), 3);
}
