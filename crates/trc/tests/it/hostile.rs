//! Small inputs that claim to be large.

use std::io;
use std::ops::ControlFlow;

use borehole_model::{Context, Event, ProfileSink, Sample, StringId, Tables, Thread};
use borehole_testkit::allocations::allocations;
use borehole_trc::{Definition, Field, FieldKind, FieldType, Reader, Schema, ValueDef, Writer, import};
use borehole_trc::{Limits, ReadError, ReadOptions, Recovery, SampleKind};

use super::stream::Stream;

/// An event type, timed or not, with all fields required.
fn schema(name: &str, has_timestamp: bool, fields: &[(&str, FieldKind)]) -> Schema {
    let field = |&(name, kind): &(&str, FieldKind)| Field {
        name: name.to_owned(),
        field_type: FieldType::required(kind),
    };
    let fields = fields.iter().map(field).collect();
    Schema::define(Definition { name: name.into(), has_timestamp, fields, annotations: Vec::new() }).unwrap()
}

/// The depth of each sample's stack, and its measures.
#[derive(Default)]
struct Depths(Vec<(u32, Vec<i64>)>);

impl ProfileSink for Depths {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        let depth = sample.stack.map_or(0, |stack| at.tables.depth(stack));
        self.0.push((depth, sample.values.to_vec()));
        Ok(ControlFlow::Continue(()))
    }
}

fn samples(trace: &[u8], kind: SampleKind) -> (Depths, Recovery) {
    let options = ReadOptions { samples: kind, ..ReadOptions::default() };
    let mut sink = Depths::default();
    let spool = io::Cursor::new(Vec::new());
    let recovery = import(trace, &options, spool, &mut Tables::default(), &mut sink).unwrap();
    (sink, recovery)
}

#[test]
fn functions_at_one_address_are_kept_up_to_a_limit() {
    use FieldKind::{PooledString, Stack, U8, U32, Varint};
    let symbol = schema(
        "SymbolTableEntry",
        false,
        &[("addr", Varint), ("symbol_name", PooledString), ("inline_depth", Varint)],
    );
    let cpu = schema("CpuSampleEvent", true, &[("tid", U32), ("source", U8), ("callchain", Stack)]);
    let mut writer = Writer::new(Vec::new());
    for depth in 0..1000 {
        let values = [ValueDef::Unsigned(7), ValueDef::Text("f"), ValueDef::Unsigned(depth)];
        writer.write_event(&symbol, None, &values).unwrap();
    }
    let values = [ValueDef::Unsigned(1), ValueDef::Unsigned(0), ValueDef::Stack(&[7; 100])];
    writer.write_event(&cpu, 1, &values).unwrap();
    let (found, recovery) = samples(&writer.finish().unwrap(), SampleKind::Cpu);
    assert_eq!(found.0, [(100 * 128, vec![])]);
    let said: Vec<_> = recovery.warnings.iter().map(|warning| warning.message.as_str()).collect();
    assert_eq!(said, ["too many functions at one address: expected at most 128; left out 872"]);
}

/// The most that a reader of these tests may hold, in bytes.
const LIMIT_BYTES: usize = 16 << 20;

/// Imports `trace` within [`LIMIT_BYTES`]. Returns the outcome, and the most bytes that it held.
fn import_within(trace: &[u8]) -> (Result<Recovery, ReadError>, u64) {
    let limits = Limits { memory_bytes: LIMIT_BYTES, ..Limits::default() };
    let options = ReadOptions { limits, ..ReadOptions::default() };
    let (outcome, held) = allocations(|| {
        let spool = io::Cursor::new(Vec::new());
        import(trace, &options, spool, &mut Tables::default(), &mut Depths::default())
    });
    (outcome, held.peak_bytes)
}

#[test]
fn inlined_functions_of_a_deep_stack_are_counted_as_they_are_made() {
    use FieldKind::{PooledStack, PooledString, U8, U32, Varint};
    let symbol = schema(
        "SymbolTableEntry",
        false,
        &[("addr", Varint), ("symbol_name", PooledString), ("inline_depth", Varint)],
    );
    let cpu = schema("CpuSampleEvent", true, &[("tid", U32), ("source", U8), ("callchain", PooledStack)]);
    let mut writer = Writer::new(Vec::new());
    for depth in 0..128 {
        let values = [ValueDef::Unsigned(7), ValueDef::Text("f"), ValueDef::Unsigned(depth)];
        writer.write_event(&symbol, None, &values).unwrap();
    }
    // 128 frames of each address: 12.8 million.
    let values = [ValueDef::Unsigned(1), ValueDef::Unsigned(0), ValueDef::Stack(&[7; 100_000])];
    writer.write_event(&cpu, 1, &values).unwrap();
    let (outcome, peak_bytes) = import_within(&writer.finish().unwrap());
    let error = outcome.unwrap_err();
    assert_eq!(error.to_string(), "needs more than 16 MiB of memory");
    assert!(peak_bytes < 2 * LIMIT_BYTES as u64, "{peak_bytes}");
}

#[test]
fn stacks_that_share_nothing_count_with_the_frames_to_come() {
    use FieldKind::{PooledStack, U8, U32};
    let cpu = schema("CpuSampleEvent", true, &[("tid", U32), ("source", U8), ("callchain", PooledStack)]);
    let mut writer = Writer::new(Vec::new());
    for address in 0..100 {
        let stack = [address; 10_000];
        let values = [ValueDef::Unsigned(1), ValueDef::Unsigned(0), ValueDef::Stack(&stack)];
        writer.write_event(&cpu, 1, &values).unwrap();
    }
    let (outcome, peak_bytes) = import_within(&writer.finish().unwrap());
    assert_eq!(outcome.unwrap_err().to_string(), "needs more than 16 MiB of memory");
    assert!(peak_bytes < 2 * LIMIT_BYTES as u64, "{peak_bytes}");
}

#[test]
fn definitions_of_a_batch_count_with_their_maps() {
    // One string each, under ids far from each other: 13 bytes in the trace, 32 and more in a map.
    let mut trace = b"TRC\0\x01".to_vec();
    for id in 0..300_000_u32 {
        trace.extend([3, 1, 0, 0, 0]);
        trace.extend((id * 4096).to_le_bytes());
        trace.extend([0, 0, 0, 0]);
    }
    assert!(trace.len() < LIMIT_BYTES);
    let (outcome, peak_bytes) = import_within(&trace);
    let error = outcome.unwrap_err();
    assert!(matches!(&error, ReadError::Input(error) if error.is_memory()), "{error}");
    assert!(error.to_string().starts_with("needs more than 16 MiB of memory for the definitions of a batch"));
    assert!(peak_bytes < 3 * LIMIT_BYTES as u64, "{peak_bytes}");
}

#[test]
fn huge_counts_and_sizes_saturate() {
    use FieldKind::{PooledString, StringMap, U8, U32, Varint};
    let fields = [
        ("tid", U32),
        ("source", U8),
        ("thread_name", PooledString),
        ("count", Varint),
        ("labels", StringMap),
    ];
    let (cpu, alloc) = (
        schema("CpuSampleEvent", true, &fields),
        schema("AllocEvent", true, &[("tid", U32), ("size", Varint)]),
    );
    let mut writer = Writer::new(Vec::new());
    for time_ns in 0..2 {
        let values = [
            ValueDef::Unsigned(1),
            ValueDef::Unsigned(0),
            ValueDef::Text("t"),
            ValueDef::Unsigned(u64::MAX),
            ValueDef::TextMap(&[]),
        ];
        writer.write_event(&cpu, time_ns, &values).unwrap();
    }
    writer.write_event(&alloc, 3, &[ValueDef::Unsigned(1), ValueDef::Unsigned(u64::MAX)]).unwrap();
    let (found, recovery) = samples(&writer.finish().unwrap(), SampleKind::Allocation);
    assert_eq!(found.0, [(0, vec![1, i64::MAX])]);
    let said = "18,446,744,073,709,551,615 cpu samples left out: the selected kind is alloc";
    assert_eq!(recovery.notes.iter().map(|note| &note.message).collect::<Vec<_>>(), [said]);
}

/// The processes of samples and of named threads.
#[derive(Default)]
struct Processes {
    of_samples: Vec<Option<i64>>,
    of_threads: Vec<Option<i64>>,
}

impl ProfileSink for Processes {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        self.of_samples.push(at.process(sample));
        Ok(ControlFlow::Continue(()))
    }

    fn thread(&mut self, _: Context<'_>, thread: Thread, _: StringId) -> io::Result<()> {
        self.of_threads.push(thread.process);
        Ok(())
    }
}

#[test]
fn a_late_process_applies_to_earlier_samples_of_its_threads() {
    use FieldKind::{PooledString, StringMap, U8, U32};
    let cpu = schema("CpuSampleEvent", true, &[("tid", U32), ("source", U8), ("thread_name", PooledString)]);
    let metadata = schema("SegmentMetadataEvent", false, &[("entries", StringMap)]);
    let mut writer = Writer::new(Vec::new());
    let values = [ValueDef::Unsigned(1), ValueDef::Unsigned(0), ValueDef::Text("t")];
    writer.write_event(&cpu, 1, &values).unwrap();
    writer.write_event(&metadata, None, &[ValueDef::TextMap(&[("process.id", "7")])]).unwrap();
    let (trace, spool) = (writer.finish().unwrap(), io::Cursor::new(Vec::new()));
    let mut found = Processes::default();
    import(&trace[..], &ReadOptions::default(), spool, &mut Tables::default(), &mut found).unwrap();
    assert_eq!((found.of_samples, found.of_threads), (vec![Some(7)], vec![Some(7)]));
}

/// A sink that takes events and ignores them.
struct Events(u64);

impl ProfileSink for Events {
    fn sample(&mut self, _: Context<'_>, _: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        Ok(ControlFlow::Continue(()))
    }

    fn event(&mut self, _: Context<'_>, _: &Event<'_>) -> io::Result<ControlFlow<()>> {
        self.0 += 1;
        Ok(ControlFlow::Continue(()))
    }

    fn keeps_events(&mut self) -> bool {
        true
    }
}

#[test]
fn repeated_annotations_keep_the_first_values() {
    let mut stream = Stream::new().schema(7, "E", 1, &[("v", FieldKind::Varint as u8)]);
    for number in 0..1000_u32 {
        let key = stream.bytes(&[6, 7, 1, 0, 0, 0, 4, 0]).bytes(b"unit");
        stream = key.u32(4).bytes(&number.to_le_bytes().map(|byte| byte & 0x7f)).event(7, 1, &[5]);
    }
    let mut reader = Reader::new(stream.0.as_slice());
    let mut most = 0;
    reader.for_each_event(|event| most = most.max(event.schema().annotations().len())).unwrap();
    let recovery = reader.recovery();
    assert_eq!((most, recovery.events, recovery.lost_bytes), (64, 1000, 0));
    let said: Vec<_> = recovery.warnings.iter().map(|warning| warning.message.as_str()).collect();
    assert_eq!(
        said,
        ["too many annotations for type id 7: expected at most 64 frames in one batch; the rest is ignored"]
    );
    let (mut sink, mut tables) = (Events(0), Tables::default());
    let spool = io::Cursor::new(Vec::new());
    import(stream.0.as_slice(), &ReadOptions::default(), spool, &mut tables, &mut sink).unwrap();
    assert_eq!((sink.0, tables.shape_count()), (1000, 64));
}
