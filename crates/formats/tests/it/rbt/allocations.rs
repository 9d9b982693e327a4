//! Reading and writing samples allocates nothing after the first ones.

use borehole_formats::Compression;
use borehole_formats::rbt::StackId;
use borehole_formats::rbt::{FrameDef, Header, Reader, Record, SampleDef, SegmentedWriter, Writer};
use borehole_testkit::allocations::{Allocations, allocations};
use std::io;

const NONE: Allocations = Allocations { count: 0, bytes: 0, peak_bytes: 0 };

/// The numbers of samples for warming up, and for counting.
const SAMPLES: [usize; 2] = [5_000, 100_000];

const COMPACT: Header = Header { has_timestamps: false, period_us: 10_000 };
const TIMED: Header = Header { has_timestamps: true, period_us: 10_000 };

const NAMES: [&str; 4] = ["App\\Db::query", "App\\Cart::total", "App\\View::render", "main"];

/// Three traces that share callers, the last one far deeper than the others.
fn traces() -> [Vec<FrameDef<'static>>; 3] {
    let frame = |depth: i64| FrameDef::php(NAMES[usize::try_from(depth).unwrap() % 4], "/app/a.php", depth);
    [3, 7, 40].map(|depth| (0..depth).rev().map(frame).collect())
}

fn define<W: io::Write>(writer: &mut Writer<W>) -> [StackId; 3] {
    traces().map(|trace| writer.define_trace(&trace).unwrap())
}

/// A file with more samples than are read, no two neighbours equal, some with annotations and processes.
fn file(header: Header) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), header).unwrap();
    let stacks = define(&mut writer);
    for number in 0..SAMPLES.iter().sum() {
        let annotations: Option<&[(&[u8], &[u8])]> = match number % 7 {
            0 => Some(&[(b"query", b"SELECT 1"), (b"route", b"/cart")]),
            _ => None,
        };
        let pid = (number % 5 == 0).then_some(42);
        let sample =
            SampleDef { annotations, pid, delta_us: Some(9_990), ..SampleDef::of(stacks[number % 3]) };
        writer.write_sample(&sample).unwrap();
    }
    writer.finish().unwrap()
}

/// Calls `step` often enough to warm up, and then counts its allocations.
fn after_warm_up(mut step: impl FnMut(usize)) -> Allocations {
    let [warm_up, counted] = SAMPLES;
    (0..warm_up).for_each(&mut step);
    let ((), found) = allocations(|| (warm_up..warm_up + counted).for_each(&mut step));
    found
}

#[test]
fn reading_samples_allocates_nothing() {
    for header in [COMPACT, TIMED] {
        let bytes = file(header);
        let mut reader = Reader::new(bytes.as_slice());
        let mut samples = 0;
        let found = after_warm_up(|_| {
            if let Some(Record::Sample(sample)) = reader.next_record().unwrap() {
                samples += sample.count;
            }
        });
        assert_eq!(found, NONE, "{header:?}");
        assert!(samples > 100_000, "{header:?}: {samples} samples");
    }
}

#[test]
fn writing_samples_of_defined_stacks_allocates_nothing() {
    for header in [COMPACT, TIMED] {
        let mut writer = Writer::new(io::sink(), header).unwrap();
        let stacks = define(&mut writer);
        let found = after_warm_up(|number| {
            let stack = stacks[number % 3];
            writer.write_sample(&SampleDef { delta_us: Some(9_990), ..SampleDef::of(stack) }).unwrap();
        });
        assert_eq!(found, NONE, "{header:?}");
    }
}

#[test]
fn writing_annotated_samples_of_processes_allocates_nothing() {
    for header in [COMPACT, TIMED] {
        let mut writer = Writer::new(io::sink(), header).unwrap();
        let stacks = define(&mut writer);
        let lists: [&[(&[u8], &[u8])]; 2] = [&[(b"query", b"SELECT 1")], &[(b"route", b"/"), (b"x", b"")]];
        let found = after_warm_up(|number| {
            let pid = (number % 5 == 0).then_some(42);
            let annotations = Some(lists[number % 2]);
            let sample = SampleDef { annotations, pid, ..SampleDef::of(stacks[number % 3]) };
            writer.write_sample(&sample).unwrap();
        });
        assert_eq!(found, NONE, "{header:?}");
    }
}

#[test]
fn writing_known_frames_allocates_nothing() {
    let traces = traces();
    let mut writer = Writer::new(io::sink(), COMPACT).unwrap();
    assert_eq!(after_warm_up(|number| writer.write_trace(&traces[number % 3]).unwrap()), NONE);
    let mut writer = SegmentedWriter::single(io::sink(), 10_000, u64::MAX, Compression::None).unwrap();
    let found = after_warm_up(|number| writer.write_trace(&traces[number % 3], number as u64).unwrap());
    assert_eq!(found, NONE);
}

#[test]
fn defining_does_allocate() {
    let mut writer = Writer::new(io::sink(), COMPACT).unwrap();
    let (_, found) = allocations(|| define(&mut writer));
    assert!(found.count > 0, "allocations are not counted");
}
