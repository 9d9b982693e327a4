//! Reading and writing events allocates nothing once their types are known; reading a stream holds one frame.

use std::io::{self, Read};

use borehole_testkit::allocations::{Allocations, allocations};
use borehole_trc::{FieldKind, FieldType, Reader, Schema, ValueDef, WriteOptions, Writer};

const NONE: Allocations = Allocations { count: 0, bytes: 0, peak_bytes: 0 };

/// The numbers of events for warming up, and for counting.
const EVENTS: [u64; 2] = [5_000, 100_000];

struct Types {
    poll: Schema,
    sample: Schema,
    measured: Schema,
}

fn types() -> Types {
    let (must, may) = (FieldType::required, FieldType::optional);
    let schema = |name, fields: &[(&'static str, FieldType)]| Schema::new(name, fields.to_vec()).unwrap();
    Types {
        poll: schema(
            "Poll",
            &[
                ("worker", must(FieldKind::Varint)),
                ("queue", must(FieldKind::U8)),
                ("location", must(FieldKind::PooledString)),
            ],
        ),
        sample: schema(
            "Sample",
            &[
                ("tid", must(FieldKind::U32)),
                ("stack", must(FieldKind::PooledStack)),
                ("cpu", may(FieldKind::Varint)),
            ],
        ),
        measured: schema(
            "Measured",
            &[
                ("name", must(FieldKind::String)),
                ("values", must(FieldKind::List)),
                ("labels", must(FieldKind::StringMap)),
                ("ratio", may(FieldKind::F64)),
            ],
        ),
    }
}

fn write<W: io::Write>(writer: &mut Writer<W>, types: &Types, number: u64) {
    let at = 1000 + number * 700;
    let outcome = match number % 3 {
        0 => {
            let location = ["src/a.rs:1", "src/b.rs:22"][usize::from(number % 2 == 1)];
            writer
                .begin_event(&types.poll, at)
                .unsigned(number)
                .unsigned(number % 256)
                .text(location)
                .finish()
        }
        1 => {
            let stack = [0x5000 + number % 50, 0x6000, 0x7000];
            writer.begin_event(&types.sample, at).unsigned(7).stack(&stack).absent().finish()
        }
        _ => {
            let list =
                [ValueDef::Unsigned(number), ValueDef::List(&[ValueDef::Text("x"), ValueDef::Float(0.5)])];
            let values = [
                ValueDef::Text("cache.hit"),
                ValueDef::List(&list),
                ValueDef::TextMap(&[("k", "v")]),
                ValueDef::Float(1.5),
            ];
            writer.write_event(&types.measured, at, &values)
        }
    };
    outcome.unwrap();
}

/// All events in one batch.
fn one_batch() -> Vec<u8> {
    let options = WriteOptions { batch_bytes: usize::MAX, ..WriteOptions::default() };
    let mut writer = Writer::with_options(Vec::new(), options);
    let types = types();
    (0..EVENTS.iter().sum()).for_each(|number| write(&mut writer, &types, number));
    writer.finish().unwrap()
}

/// A writer whose batches hold more than is counted at once.
fn writer() -> Writer<io::Sink> {
    Writer::with_options(io::sink(), WriteOptions { batch_bytes: 1 << 20, ..WriteOptions::default() })
}

/// Calls `step` often enough to warm up, and then counts its allocations.
fn after_warm_up(mut step: impl FnMut(u64)) -> Allocations {
    let [warm_up, counted] = EVENTS;
    (0..warm_up).for_each(&mut step);
    let ((), found) = allocations(|| (warm_up..warm_up + counted).for_each(&mut step));
    found
}

#[test]
fn reading_events_allocates_nothing() {
    let bytes = one_batch();
    let mut reader = Reader::new(bytes.as_slice());
    let mut values = 0_u64;
    let found = after_warm_up(|_| {
        let event = reader.next_event().unwrap().unwrap();
        values += event.values().filter(|value| !value.is_absent()).count() as u64;
    });
    assert_eq!(found, NONE);
    assert!(values > 300_000, "{values}");
}

#[test]
fn writing_events_allocates_nothing_inside_a_batch() {
    let types = types();
    let mut writer = writer();
    // Several batches, after which all memory is allocated, and then one whose types are all known.
    (0..EVENTS[1]).for_each(|number| write(&mut writer, &types, number));
    writer.end_batch().unwrap();
    (0..300).for_each(|number| write(&mut writer, &types, number));
    let ((), found) = allocations(|| (300..15_000).for_each(|number| write(&mut writer, &types, number)));
    assert_eq!(found, NONE);
}

#[test]
fn another_batch_allocates_no_more_than_its_types_ask_for() {
    let types = types();
    let mut writer = writer();
    let mut batch = || {
        (0..10_000).for_each(|number| write(&mut writer, &types, number));
        writer.end_batch().unwrap();
    };
    (0..3).for_each(|_| batch());
    let ((), found) = allocations(|| (0..10).for_each(|_| batch()));
    assert!(found.count <= 10 * 3 * 2, "{found:?}");
}

/// An endless stream of one batch after another.
struct Endless {
    batch: Vec<u8>,
    at: usize,
    left: usize,
}

impl Read for Endless {
    fn read(&mut self, output: &mut [u8]) -> io::Result<usize> {
        if self.at == self.batch.len() {
            if self.left == 0 {
                return Ok(0);
            }
            (self.at, self.left) = (0, self.left - 1);
        }
        let count = output.len().min(self.batch.len() - self.at);
        output[..count].copy_from_slice(&self.batch[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

#[test]
fn streaming_holds_a_frame_and_not_the_file() {
    let batch = one_batch();
    let batches = 40;
    let bytes = batch.len() * (batches + 1);
    let (events, found) = allocations(|| {
        let mut reader = Reader::new(Endless { at: 0, left: batches, batch });
        reader.for_each_event(|_| {}).unwrap();
        reader.into_recovery().events
    });
    assert_eq!(events, 41 * EVENTS.iter().sum::<u64>());
    assert!(bytes > 100 << 20 && found.peak_bytes < 512 << 10, "{bytes}: {found:?}");
}
