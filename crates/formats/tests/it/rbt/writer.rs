//! The writer, byte by byte.

use std::io::{self, Write};

use borehole_formats::rbt::{FrameDef, FrameId, Header, SampleDef, StackId, Writer};

use super::build::Trace;
use super::{read, samples};

const COMPACT: Header = Header { has_timestamps: false, period_us: 10_000 };
const TIMED: Header = Header { has_timestamps: true, period_us: 10_000 };

/// A writer with the definitions of [`Trace::compact`], and its two stacks.
fn writer(header: Header) -> (Writer<Vec<u8>>, [StackId; 2]) {
    let mut writer = Writer::new(Vec::new(), header).unwrap();
    let f = FrameDef::php("f", "/f.php", 3);
    let g = FrameDef::php("g", "/f.php", 5);
    let ids = [f, g].map(|frame| writer.define_frame(&frame).unwrap());
    // The strings are defined as the frames need them: "", f, /f.php, g.
    let stacks =
        [&ids[..1], &[ids[1], ids[0]]].map(|frames: &[FrameId]| writer.define_stack(frames).unwrap());
    (writer, stacks)
}

/// These definitions in the order of the writer.
fn defined(header: Header) -> Trace {
    Trace::default()
        .header(u8::from(header.has_timestamps), header.period_us)
        .string(0, b"")
        .string(1, b"f")
        .string(2, b"/f.php")
        .frame(&[0, 0, 0, 0, 1, 2, 3])
        .string(3, b"g")
        .frame(&[1, 0, 0, 0, 3, 2, 5])
        .stack(&[0, 1, 0])
        .stack(&[1, 2, 1, 0])
}

type Pairs<'a> = &'a [(&'a [u8], &'a [u8])];

/// The bytes written for runs, each with a stack, a count and annotations, up to the checkpoint.
fn written(runs: &[(usize, u64, Option<Pairs<'_>>)]) -> Vec<u8> {
    let (mut writer, stacks) = writer(COMPACT);
    let mut total = 0;
    for &(stack, count, annotations) in runs {
        for _ in 0..count {
            writer.write_sample(&SampleDef { annotations, ..SampleDef::of(stacks[stack]) }).unwrap();
        }
        total += i64::try_from(count).unwrap();
    }
    let bytes = writer.finish().unwrap();
    let end = Trace::default().checkpoint(2, 2, total).end().0;
    bytes.strip_suffix(&end[..]).unwrap_or_else(|| panic!("{bytes:x?}")).to_vec()
}

#[test]
fn no_samples_are_a_header_a_checkpoint_and_an_end() {
    let bytes = Writer::new(Vec::new(), COMPACT).unwrap().finish().unwrap();
    assert_eq!(bytes, Trace::bare().checkpoint(0, 0, 0).end().0);
}

#[test]
fn runs_of_one_and_two_are_samples_and_longer_ones_a_repeat() {
    let base = || defined(COMPACT);
    assert_eq!(written(&[(0, 1, None)]), base().compact_sample(0).0);
    assert_eq!(written(&[(0, 2, None)]), base().compact_sample(0).compact_sample(0).0);
    assert_eq!(written(&[(0, 3, None)]), base().compact_sample(0).repeat(2).0);
    assert_eq!(written(&[(0, 300, None)]), base().compact_sample(0).repeat(299).0);
    let mixed = base().compact_sample(0).repeat(3).compact_sample(1).compact_sample(0);
    assert_eq!(written(&[(0, 4, None), (1, 1, None), (0, 1, None)]), mixed.0);
}

#[test]
fn another_annotation_breaks_a_run() {
    let (one, two): (Pairs<'_>, Pairs<'_>) = (&[(b"q", b"1")], &[(b"q", b"2")]);
    let expected = defined(COMPACT)
        .compact_sample(0)
        .string(4, b"q")
        .string(5, b"1")
        .annotation(&[1, 4, 5])
        .repeat(2)
        .compact_sample(0)
        .string(6, b"2")
        .annotation(&[1, 4, 6])
        .compact_sample(0)
        .annotation(&[1, 4, 6])
        .compact_sample(0);
    assert_eq!(written(&[(0, 3, Some(one)), (0, 2, Some(two)), (0, 1, None)]), expected.0);
}

#[test]
fn the_order_of_annotations_counts() {
    let (one, two): (Pairs<'_>, Pairs<'_>) = (&[(b"a", b""), (b"b", b"")], &[(b"b", b""), (b"a", b"")]);
    let expected = defined(COMPACT)
        .compact_sample(0)
        .string(4, b"a")
        .string(5, b"b")
        .annotation(&[2, 4, 0, 5, 0])
        .compact_sample(0)
        .annotation(&[2, 5, 0, 4, 0]);
    assert_eq!(written(&[(0, 1, Some(one)), (0, 1, Some(two))]), expected.0);
}

#[test]
fn none_and_an_empty_list_write_nothing_but_break_a_run() {
    let empty: Pairs<'_> = &[];
    let expected = defined(COMPACT).compact_sample(0).repeat(2).compact_sample(0).repeat(2);
    assert_eq!(written(&[(0, 3, None), (0, 3, Some(empty))]), expected.0);
    assert_eq!(
        written(&[(0, 3, Some(empty)), (0, 3, Some(empty))]),
        defined(COMPACT).compact_sample(0).repeat(5).0
    );
}

#[test]
fn runs_handed_over_as_such_are_the_same() {
    let (mut writer, [stack, _]) = writer(COMPACT);
    for count in [0, 1, 1 << 40, 0] {
        writer.write_sample(&SampleDef { count, ..SampleDef::of(stack) }).unwrap();
    }
    let total = 1 + (1 << 40);
    let expected = defined(COMPACT).compact_sample(0).repeat(total - 1).checkpoint(2, 2, total).end();
    assert_eq!(writer.finish().unwrap(), expected.0);
}

#[test]
fn metadata_and_checkpoints_break_a_run() {
    let (mut writer, [stack, _]) = writer(COMPACT);
    let sample = SampleDef { count: 4, ..SampleDef::of(stack) };
    writer.write_sample(&sample).unwrap();
    writer.write_metadata(b"host", b"web1").unwrap();
    writer.write_sample(&sample).unwrap();
    writer.write_checkpoint().unwrap();
    writer.write_sample(&sample).unwrap();
    let run = |trace: Trace| trace.compact_sample(0).repeat(3);
    let trace = run(run(run(defined(COMPACT)).metadata(b"host", b"web1")).checkpoint(2, 2, 8));
    assert_eq!(writer.finish().unwrap(), trace.checkpoint(2, 2, 12).end().0);
}

#[test]
fn a_checkpoint_comes_at_each_interval() {
    let (writer, [stack, _]) = writer(COMPACT);
    let mut writer = writer.checkpoint_every(5);
    for _ in 0..12 {
        writer.write_sample(&SampleDef::of(stack)).unwrap();
    }
    let trace = defined(COMPACT).compact_sample(0).repeat(4).checkpoint(2, 2, 5);
    let trace = trace.compact_sample(0).repeat(4).checkpoint(2, 2, 10).compact_sample(0).compact_sample(0);
    assert_eq!(writer.finish().unwrap(), trace.checkpoint(2, 2, 12).end().0);
}

#[test]
fn samples_with_a_process_keep_their_order_among_compact_ones() {
    let (mut writer, [f, g]) = writer(COMPACT);
    for pid in [None, None, None, Some(7), Some(7), None] {
        let stack = if pid.is_some() { g } else { f };
        writer.write_sample(&SampleDef { pid, ..SampleDef::of(stack) }).unwrap();
    }
    // Reli writes the pending run of three after both samples of process 7.
    let trace = defined(COMPACT)
        .compact_sample(0)
        .repeat(2)
        .pid_sample(&[1, 7])
        .pid_sample(&[1, 7])
        .compact_sample(0);
    assert_eq!(writer.finish().unwrap(), trace.checkpoint(2, 2, 6).end().0);
}

#[test]
fn samples_with_timestamps_stand_alone() {
    let (mut writer, [f, g]) = writer(TIMED);
    for (stack, delta_us, pid) in [(f, 0, None), (f, 10, None), (g, -1, Some(-9)), (g, 70_000, Some(8))] {
        let sample = SampleDef { delta_us: Some(delta_us), pid, ..SampleDef::of(stack) };
        writer.write_sample(&sample).unwrap();
    }
    writer.write_sample(&SampleDef { count: 3, delta_us: Some(5), ..SampleDef::of(f) }).unwrap();
    writer.write_sample(&SampleDef::of(f)).unwrap();
    let trace = defined(TIMED).sample(&[0, 0]).sample(&[0, 10]).pid_sample(&[1, -9, -1]);
    let trace = trace.pid_sample(&[1, 8, 70_000]).sample(&[0, 5]).sample(&[0, 0]).sample(&[0, 0]);
    assert_eq!(writer.finish().unwrap(), trace.sample(&[0, 0]).checkpoint(2, 2, 8).end().0);
}

#[test]
fn every_sample_of_a_segment_with_timestamps_has_a_difference_also_in_runs_and_after_a_rotation() {
    let annotations: Option<Pairs<'_>> = Some(&[(b"k", b"v")]);
    let (mut writer, [stack, _]) = writer(TIMED);
    let sample = SampleDef { count: 3, delta_us: Some(5), annotations, ..SampleDef::of(stack) };
    writer.write_sample(&sample).unwrap();
    writer.write_sample(&SampleDef { pid: Some(7), ..SampleDef::of(stack) }).unwrap();
    writer.start_segment(TIMED).unwrap();
    writer.write_trace(&[FrameDef::php("f", "/f.php", 3)]).unwrap();
    let run = defined(TIMED).sample(&[0, 5]).string(4, b"k").string(5, b"v").annotation(&[1, 4, 5]);
    let run = run.sample(&[0, 0]).annotation(&[1, 4, 5]).sample(&[0, 0]).annotation(&[1, 4, 5]);
    let bytes = writer.finish().unwrap();
    assert!(bytes.starts_with(&run.pid_sample(&[0, 7, 0]).checkpoint(2, 2, 4).end().0), "{bytes:x?}");
    assert!(samples(&bytes)[4].ends_with(" +0us @0us"));
}

#[test]
fn a_run_that_is_too_long_to_write_out_ends_in_a_repeat_that_takes_no_time() {
    let (mut writer, [stack, _]) = writer(TIMED);
    let count = 1 << 40;
    writer.write_sample(&SampleDef { count, delta_us: Some(9), ..SampleDef::of(stack) }).unwrap();
    let lines = samples(&writer.finish().unwrap());
    assert_eq!((lines.len(), &*lines[0]), (1 << 16, "f /f.php:3 +9us @9us"));
    assert_eq!(lines[lines.len() - 1], format!("f /f.php:3 x{} +0us @9us", count - (1 << 16) + 1));
}

#[test]
fn a_frame_is_the_same_by_name_file_line_and_opcode() {
    let mut writer = Writer::new(Vec::new(), COMPACT).unwrap();
    let php = |opcode: Option<&'static [u8]>, line| match FrameDef::php("f", "/f.php", line) {
        FrameDef::Php { name, file, line, .. } => FrameDef::Php { name, file, line, opcode },
        native @ FrameDef::Native { .. } => native,
    };
    let native = |offset| FrameDef::Native { symbol: b"f", module: b"/f.php", offset };
    let mut define = |frame: FrameDef<'_>| writer.define_frame(&frame).unwrap();
    let none = define(php(None, 3));
    assert_eq!(define(php(Some(b""), 3)), none, "an empty opcode is none");
    let ids =
        [none, define(php(Some(b"X"), 3)), define(php(None, -1)), define(native(3)), define(native(-3))];
    assert_eq!(ids.iter().collect::<std::collections::HashSet<_>>().len(), 5);
    let expected =
        Trace::bare().string(0, b"").string(1, b"f").string(2, b"/f.php").frame(&[0, 0, 0, 0, 1, 2, 3]);
    let expected = expected.string(3, b"X").frame(&[1, 2, 0, 0, 1, 2, 3, 3]).frame(&[2, 0, 0, 0, 1, 2, -1]);
    let expected = expected.frame(&[3, 1, 1, 2, 3]).frame(&[4, 1, 1, 2, -3]).checkpoint(5, 0, 0).end();
    assert_eq!(writer.finish().unwrap(), expected.0);
}

#[test]
fn an_empty_opcode_that_comes_first_is_written() {
    let mut writer = Writer::new(Vec::new(), COMPACT).unwrap();
    let FrameDef::Php { name, file, line, .. } = FrameDef::php("f", "/f.php", 3) else { unreachable!() };
    writer.define_frame(&FrameDef::Php { name, file, line, opcode: Some(b"") }).unwrap();
    let frame =
        Trace::bare().string(0, b"").string(1, b"f").string(2, b"/f.php").frame(&[0, 2, 0, 0, 1, 2, 3, 0]);
    assert_eq!(writer.finish().unwrap(), frame.checkpoint(1, 0, 0).end().0);
}

#[test]
fn an_empty_stack_is_a_stack() {
    let mut writer = Writer::new(Vec::new(), COMPACT).unwrap();
    writer.write_trace(&[]).unwrap();
    assert_eq!(
        writer.finish().unwrap(),
        Trace::bare().stack(&[0, 0]).compact_sample(0).checkpoint(0, 1, 1).end().0
    );
}

#[test]
fn callers_shared_with_the_trace_before_are_found_again() {
    let names = ["a", "b", "c", "d"];
    let trace =
        |path: &[usize]| path.iter().map(|&at| FrameDef::php(names[at], "/f.php", 1)).collect::<Vec<_>>();
    let mut writer = Writer::new(Vec::new(), COMPACT).unwrap();
    let paths: [&[usize]; 7] = [&[0, 1, 2], &[3, 1, 2], &[1, 2], &[2], &[], &[0, 1, 2], &[0, 0, 1, 2]];
    for path in paths {
        writer.write_trace(&trace(path)).unwrap();
    }
    let line = |path: &[usize]| {
        path.iter().rev().map(|&at| format!("{} /f.php:1", names[at])).collect::<Vec<_>>().join(";")
    };
    assert_eq!(samples(&writer.finish().unwrap()), paths.map(line));
}

#[test]
fn a_new_segment_defines_everything_anew() {
    let (mut writer, [stack, _]) = writer(COMPACT);
    writer.write_sample(&SampleDef::of(stack)).unwrap();
    writer.start_segment(TIMED).unwrap();
    writer.write_trace(&[FrameDef::php("g", "/f.php", 5)]).unwrap();
    let second = Trace::default().header(1, 10_000).string(0, b"").string(1, b"g").string(2, b"/f.php");
    let second =
        second.frame(&[0, 0, 0, 0, 1, 2, 5]).stack(&[0, 1, 0]).sample(&[0, 0]).checkpoint(1, 1, 1).end();
    let expected = defined(COMPACT).compact_sample(0).checkpoint(2, 2, 1).end().then(&second);
    assert_eq!(writer.finish().unwrap(), expected.0);
}

/// An output with shared contents.
#[derive(Clone, Default)]
struct Shared(std::rc::Rc<std::cell::RefCell<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn flushed_samples_can_be_read() {
    let output = Shared::default();
    let mut writer = Writer::new(output.clone(), COMPACT).unwrap();
    for count in 1..20 {
        writer.write_trace(&[FrameDef::php("f", "/f.php", count % 3)]).unwrap();
        writer.flush().unwrap();
        let reading = read(&output.0.borrow());
        assert!(reading.error.is_none() && reading.recovery.is_clean());
        assert_eq!(reading.recovery.samples, count.unsigned_abs());
    }
}

#[test]
fn a_writer_that_is_dropped_writes_what_it_holds() {
    let output = Shared::default();
    let mut writer = Writer::new(output.clone(), COMPACT).unwrap();
    for _ in 0..5 {
        writer.write_trace(&[FrameDef::php("f", "/f.php", 3)]).unwrap();
    }
    drop(writer);
    let reading = read(&output.0.borrow());
    assert!(reading.error.is_none() && reading.recovery.is_clean());
    assert_eq!(reading.samples(), ["f /f.php:3 x5"]);
    // What cannot be written is lost without a panic; `finish` would have said so.
    let mut full = Writer::new(Full(20), COMPACT).unwrap();
    full.write_trace(&[FrameDef::php("f", "/f.php", 3)]).unwrap();
    drop(full);
}

#[test]
fn an_output_that_panics_is_not_written_again() {
    struct Panics;
    impl Write for Panics {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            panic!("no output")
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let writer = Writer::new(Panics, COMPACT).unwrap();
    // A second panic, in the drop, would end the process.
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| writer.finish())).is_err());
}

/// An output with a limited number of bytes.
pub(super) struct Full(pub(super) usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0 == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let count = bytes.len().min(self.0);
        self.0 -= count;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.0 == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
}

/// An output that fails once after this many bytes, like a disk that is full for a moment.
#[derive(Debug)]
pub(super) struct Flaky {
    pub(super) written: Vec<u8>,
    pub(super) fails_at: Option<usize>,
}

impl Flaky {
    pub(super) fn new(fails_at: usize) -> Self {
        Self { written: Vec::new(), fails_at: Some(fails_at) }
    }
}

impl Write for Flaky {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.fails_at.map_or(usize::MAX, |at| at - self.written.len());
        if room == 0 {
            self.fails_at = None;
            return Err(io::ErrorKind::StorageFull.into());
        }
        let count = bytes.len().min(room);
        self.written.extend_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn retried_bytes_are_written_once() {
    for (header, fails_at) in
        [COMPACT, TIMED].into_iter().flat_map(|header| [(header, 0), (header, 1000), (header, 65_536)])
    {
        let mut writer = Writer::new(Flaky::new(fails_at), header).unwrap();
        let (mut taken, mut errors) = (Vec::new(), 0);
        for number in 0..30_000 {
            let name = format!("f{number}");
            let mut write = || -> io::Result<()> {
                let stack = writer.define_trace(&[FrameDef::php(&name, "/a.php", 1)])?;
                writer.write_sample(&SampleDef { delta_us: Some(7), ..SampleDef::of(stack) })
            };
            match write() {
                Ok(()) => taken.push(format!("{name} /a.php:1")),
                Err(error) => {
                    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
                    errors += 1;
                }
            }
        }
        let reading = read(&writer.finish().unwrap().written);
        assert!(errors == 1 && reading.error.is_none() && reading.recovery.is_clean(), "{fails_at}");
        let found: Vec<_> = reading.samples().iter().map(|line| line.split(" +").next().unwrap()).collect();
        assert!(found == taken, "{fails_at}: {} of {}", found.len(), taken.len());
    }
}

#[test]
fn a_flush_that_failed_goes_on_where_it_was() {
    let mut writer = Writer::new(Flaky::new(100), COMPACT).unwrap();
    for number in 0..100 {
        writer.write_trace(&[FrameDef::php(&format!("f{number}"), "/a.php", 1)]).unwrap();
    }
    assert!(writer.flush().is_err());
    writer.flush().unwrap();
    let reading = read(&writer.finish().unwrap().written);
    assert!(reading.samples().len() == 100 && reading.error.is_none() && reading.recovery.is_clean());
}

#[test]
fn ids_of_another_segment_are_refused() {
    for header in [COMPACT, TIMED] {
        let (mut writer, [stack, _]) = writer(header);
        let frame = writer.define_frame(&FrameDef::php("f", "/f.php", 3)).unwrap();
        let sample = SampleDef { delta_us: Some(0), ..SampleDef::of(stack) };
        writer.write_sample(&sample).unwrap();
        writer.start_segment(header).unwrap();
        writer.write_trace(&[FrameDef::php("g", "/f.php", 5)]).unwrap();
        let error = writer.write_sample(&sample).unwrap_err();
        assert_eq!(error.to_string(), "stack belongs to another segment");
        assert!(writer.write_sample(&SampleDef { pid: Some(1), ..sample }).is_err());
        let error = writer.define_stack(&[frame]).unwrap_err();
        assert_eq!(error.to_string(), "frame belongs to another segment");
        // Another writer fails in the same way.
        assert!(Writer::new(Vec::new(), header).unwrap().write_sample(&sample).is_err());
        let reading = read(&writer.finish().unwrap());
        assert_eq!((reading.samples().len(), reading.recovery.is_clean()), (2, true));
    }
}

#[test]
fn counts_of_any_size_survive() {
    for (header, count) in [COMPACT, TIMED]
        .into_iter()
        .flat_map(|header| [1 << 63, (1 << 63) + 1, (1 << 63) + 2, u64::MAX].map(|count| (header, count)))
    {
        let (mut writer, [stack, _]) = writer(header);
        writer.write_sample(&SampleDef { count, ..SampleDef::of(stack) }).unwrap();
        let reading = read(&writer.finish().unwrap());
        assert_eq!(reading.recovery.samples, count);
        assert!(reading.recovery.is_clean(), "{:?}", reading.warnings());
    }
}

#[test]
fn a_full_output_is_an_error_wherever_it_is_met() {
    let attempt = |room| -> io::Result<()> {
        let mut writer = Writer::new(Full(room), COMPACT)?;
        for line in 0..20_000 {
            let frames = [FrameDef::php("a_function", "/some/where/in/a/file.php", line)];
            let stack = writer.define_trace(&frames)?;
            let annotations: Pairs<'_> = &[(b"query", b"SELECT 1")];
            writer.write_sample(&SampleDef { annotations: Some(annotations), ..SampleDef::of(stack) })?;
        }
        writer.finish().map(drop)
    };
    let enough = 1 << 20;
    attempt(enough).unwrap();
    for room in [0, 1, 15, 16, 17, 1000, 65_535, 65_536, 70_000, 200_000] {
        assert_eq!(attempt(room).unwrap_err().kind(), io::ErrorKind::StorageFull, "{room}");
    }
}
