//! Everything that is drawn, in the order in which a canvas is told.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::io;
use std::rc::Rc;
use std::slice;

use borehole_model::{
    Addresses, Annotation, Context, Event, FieldKind, FieldShape, Frame, Label, LabelValue, Measure,
    ProfileSink as _, Sample, Segment, Shape, StackId, Status, Tables, Thread, Value, ValueType,
};
use proptest::{prop_assert, proptest};

use super::{Canvas, Drawing, Mark, TimelineTrack};
use crate::Export as _;

/// Writes down what it is told, a line for each call.
struct Log(Rc<RefCell<String>>);

impl Log {
    fn line(&self, line: &str) -> io::Result<()> {
        self.0.borrow_mut().push_str(line);
        self.0.borrow_mut().push('\n');
        Ok(())
    }

    fn mark(&self, what: &str, track: &TimelineTrack, mark: &Mark<'_>) -> io::Result<()> {
        let mut line = format!("{} {what} {} {}", mark.time_ns, track.id, mark.name);
        for (name, value) in &mark.details {
            let _ = write!(line, ", {name} {value:?}");
        }
        if let Some(arrow) = mark.arrow {
            let _ = write!(line, ", {arrow:?}");
        }
        self.line(&line)
    }
}

impl Canvas for Log {
    type Output = Rc<RefCell<String>>;

    fn new(output: Self::Output) -> Self {
        Self(output)
    }

    fn track(&mut self, track: &TimelineTrack) -> io::Result<()> {
        let TimelineTrack { id, parent, process, pid, kind, name } = track;
        let parent = parent.map_or_else(String::new, |parent| format!(" in {parent}"));
        let pid = pid.map_or_else(String::new, |pid| format!(" with pid {pid}"));
        self.line(&format!("track {id}{parent} of {process}{pid}: {kind:?} {name:?}"))
    }

    fn begin(&mut self, track: &TimelineTrack, mark: &Mark<'_>) -> io::Result<()> {
        self.mark("begin", track, mark)
    }

    fn end(&mut self, track: &TimelineTrack, time_ns: u64) -> io::Result<()> {
        self.line(&format!("{time_ns} end {}", track.id))
    }

    fn instant(&mut self, track: &TimelineTrack, mark: &Mark<'_>) -> io::Result<()> {
        self.mark("instant", track, mark)
    }

    fn counter(&mut self, track: &TimelineTrack, time_ns: u64, value: f64) -> io::Result<()> {
        self.line(&format!("{time_ns} counter {} {value}", track.id))
    }

    fn wall_clock(&mut self, time_ns: u64, unix_ns: u64) -> io::Result<()> {
        self.line(&format!("{time_ns} is {unix_ns}"))
    }

    fn finish(&mut self) -> io::Result<()> {
        self.line("finish")
    }
}

/// A drawing with its input.
struct Scene {
    tables: Tables,
    segment: Segment,
    drawing: Drawing<Log>,
    log: Rc<RefCell<String>>,
}

impl Scene {
    fn new(segment: Segment) -> Self {
        let log = Rc::new(RefCell::new(String::new()));
        let mut scene =
            Self { tables: Tables::default(), segment, drawing: Drawing::new(Rc::clone(&log)), log };
        scene.begin();
        scene
    }

    /// A segment of samples every 10 ns.
    fn sampled() -> Self {
        Self::new(Segment { period_ns: Some(10), process: Some(7), ..Segment::default() })
    }

    fn begin(&mut self) {
        self.drawing.segment(Context { tables: &self.tables, segment: &self.segment }).unwrap();
    }

    /// A stack of functions from the root on, each in a file of its name, at a line of its length.
    fn stack(&mut self, functions: &str) -> Option<StackId> {
        functions.split_whitespace().fold(None, |parent, function| {
            let name = self.tables.intern_string(function.as_bytes()).unwrap();
            let file = self.tables.intern_string(format!("{function}.py").as_bytes()).unwrap();
            let line = i64::try_from(function.len()).ok();
            let frame =
                self.tables.intern_frame(&Frame { file: Some(file), line, ..Frame::named(name) }).unwrap();
            Some(self.tables.intern_stack(parent, frame).unwrap())
        })
    }

    fn put(&mut self, sample: &Sample<'_>) {
        let at = Context { tables: &self.tables, segment: &self.segment };
        assert!(self.drawing.sample(at, sample).unwrap().is_continue());
    }

    /// A sample of thread 9.
    fn sample(&mut self, time_ns: i64, functions: &str, status: Option<u8>) {
        let stack = self.stack(functions);
        let status = status.map(Status);
        self.put(&Sample {
            stack,
            count: 1,
            time_ns: Some(time_ns),
            thread: Some(9),
            status,
            ..Sample::default()
        });
    }

    fn event(&mut self, time_ns: u64, name: &str, fields: &[(&str, Value<'_>)]) {
        self.annotated(Some(time_ns), name, fields, &[]);
    }

    fn annotated(
        &mut self,
        time_ns: Option<u64>,
        name: &str,
        fields: &[(&str, Value<'_>)],
        annotations: &[(u32, &str, &str)],
    ) {
        let mut text = |text: &str| self.tables.intern_string(text.as_bytes()).unwrap();
        let shape = Shape {
            name: text(name),
            fields: fields
                .iter()
                .map(|(name, _)| FieldShape { name: text(name), kind: FieldKind::default(), optional: false })
                .collect(),
            annotations: annotations
                .iter()
                .map(|&(field, key, value)| Annotation { field, key: text(key), value: text(value) })
                .collect(),
        };
        let shape = self.tables.intern_shape(&shape).unwrap();
        let values: Vec<Value<'_>> = fields.iter().map(|(_, value)| value.clone()).collect();
        let event = Event { shape, type_id: None, time_ns, values: &values };
        let at = Context { tables: &self.tables, segment: &self.segment };
        assert!(self.drawing.event(at, &event).unwrap().is_continue());
    }

    /// Everything drawn since the last call.
    fn told(&self) -> String {
        std::mem::take(&mut *self.log.borrow_mut())
    }

    fn finish(&mut self) -> String {
        self.drawing.finish(&self.tables).unwrap();
        self.told()
    }
}

#[test]
fn equal_neighbours_are_one_call_until_a_sample_is_missing() {
    let mut scene = Scene::sampled();
    scene.segment.start_unix_ns = Some(1000);
    scene.begin();
    scene.sample(100, "a bb", None);
    assert_eq!(
        scene.told(),
        "\
100 is 1100
track 1 of 1 with pid 7: Process \"process 7\"
track 2 in 1 of 1 with pid 7: Thread(9) \"thread 9\"
100 begin 2 a, file Text(\"a.py\"), line Signed(1)
100 begin 2 bb, file Text(\"bb.py\"), line Signed(2)
"
    );
    scene.sample(110, "a ccc", None);
    assert_eq!(scene.told(), "110 end 2\n110 begin 2 ccc, file Text(\"ccc.py\"), line Signed(3)\n");
    // Half a period late is on time.
    scene.sample(125, "a ccc", None);
    assert_eq!(scene.told(), "");
    scene.sample(141, "a", None);
    assert_eq!(scene.told(), "135 end 2\n135 end 2\n141 begin 2 a, file Text(\"a.py\"), line Signed(1)\n");
    scene.sample(150, "", None);
    assert_eq!(scene.told(), "150 end 2\n");
    assert_eq!(scene.finish(), "finish\n");
}

#[test]
fn samples_older_than_what_is_drawn_of_their_lane_are_on_a_row_of_their_own() {
    let mut scene = Scene::sampled();
    scene.sample(160, "a", None);
    scene.told();
    scene.sample(159, "a", Some(0b10));
    assert_eq!(
        scene.told(),
        "\
track 3 in 2 of 1 with pid 7: Row \"thread 9 (row 2)\"
159 begin 3 a, file Text(\"a.py\"), line Signed(1)
track 4 in 3 of 1 with pid 7: Row \"CPU\"
159 begin 4 on CPU
"
    );
    // That row goes on as long as it can.
    scene.sample(170, "a", None);
    assert_eq!(scene.told(), "");
    scene.sample(169, "a", None);
    assert_eq!(scene.told(), "");
    assert_eq!(scene.finish(), "179 end 2\n180 end 3\n180 end 4\nfinish\n");
    assert!(scene.drawing.losses().is_empty());
}

#[test]
fn a_lane_has_eight_rows() {
    let mut scene = Scene::sampled();
    for late in 0..3_u64 {
        let mut scene = Scene::sampled();
        for number in 0..8 + late {
            scene.sample(1000 - i64::try_from(number).unwrap(), "a", None);
        }
        let told = scene.told();
        assert_eq!(told.matches("track").count(), 9);
        assert_eq!(told.matches("begin").count(), 8, "{told}");
        let expected =
            if late == 0 { String::new() } else { format!("times of samples out of order dropped: {late}") };
        assert_eq!(scene.drawing.losses().to_string(), expected);
    }
    scene.sample(1000, "a", None);
    scene.told();
    assert_eq!(scene.finish(), "1010 end 2\nfinish\n");
}

proptest! {
    /// Whatever the order of samples: on each track, time never runs backwards, and each end has a beginning.
    #[test]
    fn slices_nest_in_the_order_of_time_whatever_the_order_of_samples(
        samples in proptest::collection::vec((0..200_i64, 0..3_usize, 0..3_u64, 0..4_u8), 1..80),
        is_timed in proptest::bool::ANY,
    ) {
        let types = ["cpu", "alloc"].map(|kind| ValueType::new(kind, "nanoseconds"));
        let mut scene = Scene::new(if is_timed {
            let default_measure = Some(Measure::Value(0));
            Segment { value_types: types.to_vec(), is_uncounted: true, default_measure, ..Segment::default() }
        } else {
            Segment { period_ns: Some(10), ..Segment::default() }
        });
        for (time_ns, stack, thread, status) in samples {
            let stack = scene.stack(["a", "a bb", "a ccc d"][stack]);
            let values = [i64::from(status) * 5, i64::from(status == 0)];
            let values = if is_timed { &values[..] } else { &[] };
            let (time_ns, thread, status) = (Some(time_ns), Some(thread), Some(Status(status)));
            scene.put(&Sample { stack, count: 1, time_ns, thread, status, values, ..Sample::default() });
        }
        let mut rows = std::collections::BTreeMap::<String, (u64, u32)>::new();
        for line in scene.finish().lines() {
            let mut words = line.split(' ');
            let (time_ns, what, track) = (words.next(), words.next(), words.next());
            let (Some(Ok(time_ns)), Some(track)) = (time_ns.map(str::parse), track) else { continue };
            let (last_ns, depth) = rows.entry(track.to_owned()).or_default();
            match what {
                Some("begin") => *depth += 1,
                Some("end") => *depth = depth.checked_sub(1).expect("an end without a beginning"),
                _ => continue,
            }
            prop_assert!(*last_ns <= time_ns, "{line}");
            *last_ns = time_ns;
        }
        prop_assert!(rows.values().all(|&(_, depth)| depth == 0));
    }
}

#[test]
fn a_sample_of_a_moment_does_not_end_the_calls_of_one_that_lasts() {
    let types = [("cpu", "nanoseconds"), ("samples", "count"), ("alloc", "bytes")];
    let mut scene = Scene::new(Segment {
        value_types: types.map(|(kind, unit)| ValueType::new(kind, unit)).to_vec(),
        default_measure: Some(Measure::Value(0)),
        is_uncounted: true,
        ..Segment::default()
    });
    let mut put = |time_ns, functions, values: &[i64]| {
        let stack = scene.stack(functions);
        let thread = Some(9);
        scene.put(&Sample { stack, count: 1, time_ns: Some(time_ns), thread, values, ..Sample::default() });
        scene.told()
    };
    put(100, "a", &[20, 1, 0]);
    assert_eq!(put(105, "bb", &[0, 0, 64]), "105 instant 2 alloc, bytes Signed(64), stack Text(\"bb\")\n");
    // One of no time, which is seen all the same.
    assert_eq!(
        put(110, "bb", &[0, 1, 0]),
        "110 end 2\n110 begin 2 bb, file Text(\"bb.py\"), line Signed(2)\n"
    );
    scene.segment.is_uncounted = false;
    scene.begin();
    let stack = scene.stack("a");
    scene.put(&Sample {
        stack,
        count: 1,
        time_ns: Some(120),
        thread: Some(9),
        values: &[0, 0, 64],
        ..Sample::default()
    });
    assert!(!scene.told().contains("instant"));
}

#[test]
fn a_call_that_moves_to_another_line_goes_on() {
    let mut scene = Scene::new(Segment::default());
    scene.sample(0, "a bb", None);
    scene.told();
    let stack = scene.stack("a bb").unwrap();
    let leaf = Frame { line: Some(99), ..scene.tables.frame(scene.tables.leaf(stack)) };
    let moved = scene.tables.intern_frame(&leaf).unwrap();
    let elsewhere = scene.tables.intern_frame(&Frame { file: None, ..leaf }).unwrap();
    let parent = scene.tables.parent(stack);
    for (time_ns, frame, told) in [
        (1_000_000, moved, ""),
        (2_000_000, elsewhere, "2000000 end 2\n2000000 begin 2 bb, line Signed(99)\n"),
    ] {
        let stack = Some(scene.tables.intern_stack(parent, frame).unwrap());
        scene.put(&Sample { stack, count: 1, time_ns: Some(time_ns), thread: Some(9), ..Sample::default() });
        assert_eq!(scene.told(), told);
    }
    // Nothing tells how long a sample lasts: until the next one, and the last one not at all.
    assert_eq!(scene.finish(), "2000000 end 2\n2000000 end 2\nfinish\n");
}

#[test]
fn states_of_a_thread_have_rows_of_their_own() {
    let mut scene = Scene::sampled();
    scene.sample(100, "", Some(0b11));
    assert_eq!(
        scene.told(),
        "\
track 1 of 1 with pid 7: Process \"process 7\"
track 2 in 1 of 1 with pid 7: Thread(9) \"thread 9\"
track 3 in 2 of 1 with pid 7: Row \"GIL\"
100 begin 3 has the GIL
track 4 in 2 of 1 with pid 7: Row \"CPU\"
100 begin 4 on CPU
"
    );
    scene.sample(110, "", Some(0b1000));
    assert_eq!(scene.told(), "110 end 3\n110 begin 3 waits for the GIL\n110 end 4\n");
    scene.sample(120, "", Some(0b1000));
    scene.sample(130, "", None);
    assert_eq!(scene.told(), "");
    // Who has it does not wait for it.
    scene.sample(140, "", Some(0b1001));
    assert_eq!(scene.told(), "140 end 3\n140 begin 3 has the GIL\n");
    scene.sample(150, "", Some(0));
    assert_eq!(scene.told(), "150 end 3\n");
    scene.sample(160, "", Some(0b10));
    assert_eq!(scene.told(), "160 begin 4 on CPU\n");
    assert_eq!(scene.finish(), "170 end 4\nfinish\n");
    assert!(scene.drawing.losses().is_empty());
}

#[test]
fn lanes_are_named_by_what_is_known_of_them() {
    let mut scene = Scene::new(Segment::default());
    let main = scene.tables.intern_string(b"main").unwrap();
    let at = Context { tables: &scene.tables, segment: &scene.segment };
    scene.drawing.thread(at, Thread { process: None, number: 1 }, main).unwrap();
    for (thread, interpreter) in
        [(Some(1), None), (Some(1), Some(2)), (Some(3), Some(0)), (None, None), (None, Some(1))]
    {
        scene.put(&Sample { count: 1, time_ns: Some(0), thread, interpreter, ..Sample::default() });
    }
    assert_eq!(
        scene.told(),
        "\
track 1 of 1: Process \"process\"
track 2 in 1 of 1: Thread(1) \"main\"
track 3 in 1 of 1: Row \"main, thread 1, interpreter 2\"
track 4 in 1 of 1: Thread(3) \"thread 3\"
track 5 in 1 of 1: Row \"samples\"
track 6 in 1 of 1: Row \"samples, interpreter 1\"
"
    );
    scene.drawing.source("second").unwrap();
    scene.sample(0, "", None);
    assert_eq!(
        scene.told(),
        "track 7 of 7: Process \"second: process\"\ntrack 8 in 7 of 7: Thread(9) \"thread 9\"\n"
    );
    assert_eq!(scene.finish(), "finish\n");
}

/// Labels of a sample that a source calls `kind`, and a number.
fn labelled(scene: &mut Scene, kind: &str, functions: &str) {
    let mut text = |text: &str| scene.tables.intern_string(text.as_bytes()).unwrap();
    let source = Label { key: text("source"), value: LabelValue::Text(text(kind)) };
    let size = Label { key: text("size"), value: LabelValue::Number { value: 64, unit: None } };
    let labels = Some(scene.tables.intern_labels(&[source, size]).unwrap());
    let stack = scene.stack(functions);
    scene.put(&Sample { stack, count: 2, time_ns: Some(5), thread: Some(9), labels, ..Sample::default() });
}

#[test]
fn samples_of_what_was_not_executing_are_instants() {
    let mut scene = Scene::sampled();
    labelled(&mut scene, "off-cpu", "a bb");
    let told = scene.told();
    let instant = told.lines().last().unwrap();
    let details = "source Text(\"off-cpu\"), stack Text(\"a;bb\"), size Signed(64)";
    assert_eq!(instant, format!("5 instant 2 off CPU, {details}"));
    labelled(&mut scene, "alloc", "a");
    labelled(&mut scene, "task-dump", "");
    assert_eq!(
        scene.told(),
        "\
5 instant 2 allocation, source Text(\"alloc\"), stack Text(\"a\"), size Signed(64)
5 instant 2 task dump, source Text(\"task-dump\"), stack Text(\"\"), size Signed(64)
"
    );
    labelled(&mut scene, "cpu", "a");
    labelled(&mut scene, "anything", "a");
    assert_eq!(scene.told(), "5 begin 2 a, file Text(\"a.py\"), line Signed(1)\n");
    // Two samples each.
    assert_eq!(scene.drawing.losses().to_string(), "annotations dropped: 10");
}

#[test]
fn the_stack_of_an_instant_has_at_most_64_kib() {
    let mut scene = Scene::sampled();
    // With its separator, a name takes 1 KiB.
    let name = "f".repeat(1023);
    for (count, is_cut) in [(63, false), (64, false), (65, true)] {
        labelled(&mut scene, "off-cpu", &[name.as_str()].repeat(count).join(" "));
        let told = scene.told();
        assert_eq!(told.contains("Text(\"…;"), is_cut, "{count}");
        assert_eq!(told.matches(&name).count(), count.min(64));
    }
}

#[test]
fn what_has_no_time_is_counted() {
    for count in 0..3_u64 {
        let mut scene = Scene::sampled();
        scene.segment.start_unix_ns = Some(1000);
        scene.begin();
        scene.sample(0, "a", None);
        scene.put(&Sample { count, ..Sample::default() });
        for _ in 0..count {
            scene.annotated(None, "E", &[], &[]);
        }
        // 500 ns before the clock of the first input.
        scene.segment.start_unix_ns = Some(500);
        scene.begin();
        scene.put(&Sample { count, time_ns: Some(499), ..Sample::default() });
        scene.put(&Sample { count, time_ns: Some(500), ..Sample::default() });
        let expected = match count {
            0 => String::new(),
            count => format!(
                "samples without a time dropped: {count}, samples before the clock's origin dropped: {count}, \
                 events without a time dropped: {count}"
            ),
        };
        assert_eq!(scene.drawing.losses().to_string(), expected);
    }
}

#[test]
fn nothing_cannot_be_drawn() {
    let mut scene = Scene::sampled();
    let error = scene.drawing.finish(&scene.tables).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    assert_eq!(error.to_string(), "nothing to draw: expected samples or events with times, found none");
}

/// A segment of events.
fn traced() -> Scene {
    Scene::new(Segment { format: "trc", ..Segment::default() })
}

#[test]
fn workers_poll_tasks_and_rest() {
    let mut scene = traced();
    let worker = ("worker_id", Value::Unsigned(0));
    let queue = ("local_queue", Value::Unsigned(3));
    scene.event(5, "WorkerUnparkEvent", &[worker.clone(), queue.clone()]);
    assert_eq!(
        scene.told(),
        "\
track 1 of 1: Process \"process\"
track 2 in 1 of 1: Row \"worker 0\"
track 3 in 2 of 1: Row \"worker 0 state\"
5 begin 3 active, worker_id Unsigned(0), local_queue Unsigned(3)
track 4 in 2 of 1: Counter \"worker 0 local queue\"
5 counter 4 3
"
    );
    let task = |number| ("task_id", Value::Unsigned(number));
    let place = ("spawn_loc", Value::Text("main.rs:1".into()));
    scene.event(7, "PollStartEvent", &[worker.clone(), task(5), place]);
    assert_eq!(
        scene.told(),
        "\
7 begin 2 main.rs:1, worker_id Unsigned(0), task_id Unsigned(5), spawn_loc Text(\"main.rs:1\")
track 5 in 1 of 1: Row \"task 5\"
7 begin 5 poll, worker_id Unsigned(0), task_id Unsigned(5), spawn_loc Text(\"main.rs:1\")
"
    );
    // A lost end; and a task without a number.
    scene.event(8, "PollStartEvent", &[worker.clone(), task(0), queue]);
    assert_eq!(
        scene.told(),
        "\
8 end 2
8 end 5
8 begin 2 poll, worker_id Unsigned(0), task_id Unsigned(0), local_queue Unsigned(3)
8 counter 4 3
"
    );
    scene.event(9, "PollEndEvent", slice::from_ref(&worker));
    scene.event(10, "PollEndEvent", slice::from_ref(&worker));
    assert_eq!(scene.told(), "9 end 2\n");
    scene.event(11, "WorkerParkEvent", &[worker]);
    assert_eq!(scene.told(), "11 end 3\n11 begin 3 parked, worker_id Unsigned(0)\n");
    scene.event(12, "PollEndEvent", &[("worker_id", Value::Unsigned(255))]);
    assert_eq!(
        scene.told(),
        "track 6 in 1 of 1: Row \"PollEndEvent\"\n12 instant 6 PollEndEvent, worker_id Unsigned(255)\n"
    );
    assert_eq!(scene.finish(), "12 end 3\nfinish\n");
}

#[test]
fn an_arrow_leads_from_a_wake_to_the_next_poll_of_the_task() {
    let mut scene = traced();
    let poll = [("worker_id", Value::Unsigned(1)), ("task_id", Value::Unsigned(5))];
    scene.event(1, "PollStartEvent", &poll);
    scene.told();
    let woken = ("woken_task_id", Value::Unsigned(5));
    scene.event(2, "WakeEventEvent", &[woken.clone(), ("target_worker", Value::Unsigned(1))]);
    assert_eq!(
        scene.told(),
        "2 instant 2 wake, woken_task_id Unsigned(5), target_worker Unsigned(1), From(1)\n"
    );
    scene.event(3, "WakeEventEvent", &[woken, ("target_worker", Value::Unsigned(255))]);
    assert_eq!(
        scene.told(),
        "\
track 4 in 1 of 1: Row \"wakes from outside\"
3 instant 4 wake, woken_task_id Unsigned(5), target_worker Unsigned(255), From(2)
"
    );
    scene.event(4, "PollStartEvent", &poll);
    assert!(scene.told().contains("4 begin 2 poll, worker_id Unsigned(1), task_id Unsigned(5), To(2)\n"));
    scene.event(5, "PollStartEvent", &poll);
    assert!(!scene.told().contains("To("));
    assert_eq!(scene.finish(), "5 end 2\n5 end 3\nfinish\n");
}

#[test]
fn spans_nest_and_end() {
    let mut scene = traced();
    let span = ("span_id", Value::Unsigned(8));
    scene.event(1, "SpanEnter:x", &[span.clone(), ("span_name", Value::Text("load".into()))]);
    scene.event(2, "SpanEnter:x", slice::from_ref(&span));
    assert_eq!(
        scene.told(),
        "\
track 1 of 1: Process \"process\"
track 2 in 1 of 1: Shared \"spans\"
1 begin 2 load, span_id Unsigned(8), span_name Text(\"load\")
2 begin 2 SpanEnter:x, span_id Unsigned(8)
"
    );
    for time_ns in 3..6 {
        scene.event(time_ns, "SpanExit:x", slice::from_ref(&span));
    }
    scene.event(6, "SpanCloseEvent", slice::from_ref(&span));
    assert_eq!(scene.told(), "3 end 2\n4 end 2\n");
    scene.event(7, "RuntimeEnter", slice::from_ref(&span));
    scene.event(8, "RuntimeExit", &[span]);
    scene.event(9, "RuntimeExit", &[]);
    assert_eq!(
        scene.told(),
        "\
7 begin 2 RuntimeEnter, span_id Unsigned(8)
8 end 2
track 3 in 1 of 1: Row \"RuntimeExit\"
9 instant 3 RuntimeExit
"
    );
}

#[test]
fn activities_end_with_their_source_in_the_order_of_their_tracks() {
    let mut scene = traced();
    for worker in 0..20 {
        scene.event(worker, "WorkerParkEvent", &[("worker_id", Value::Unsigned(worker))]);
        scene.event(worker, "SpanEnter:x", &[("span_id", Value::Unsigned(worker))]);
    }
    scene.told();
    scene.drawing.source("b").unwrap();
    let ends: Vec<u64> =
        scene.told().lines().map(|line| line.strip_prefix("19 end ").unwrap().parse().unwrap()).collect();
    assert_eq!(ends.len(), 40);
    assert!(ends.is_sorted());
}

#[test]
fn numbers_that_are_measured_are_counters() {
    let mut scene = traced();
    let fields = [
        ("runtime_name", Value::Text("rt".into())),
        ("global_queue_depth", Value::Unsigned(4)),
        ("change", Value::Signed(-2)),
        ("load", Value::Float(0.5)),
        ("unknown", Value::Float(f64::NAN)),
    ];
    scene.event(1, "RuntimeMetricsEvent", &fields);
    assert_eq!(
        scene.told(),
        "\
track 1 of 1: Process \"process\"
track 2 in 1 of 1: Counter \"global_queue_depth rt\"
1 counter 2 4
track 3 in 1 of 1: Counter \"change rt\"
1 counter 3 -2
track 4 in 1 of 1: Counter \"load rt\"
1 counter 4 0.5
"
    );
    let fields = [("used", Value::Unsigned(1)), ("size", Value::Unsigned(2))];
    for kind in ["gauge", "counter", "updown-counter"] {
        scene.annotated(
            Some(2),
            kind,
            &fields,
            &[(0, "kind", kind), (0, "unit", "bytes"), (7, "kind", "gauge")],
        );
    }
    let told = scene.told();
    assert_eq!(told, "track 5 in 1 of 1: Counter \"used\"\n2 counter 5 1\n2 counter 5 1\n2 counter 5 1\n");
    scene.annotated(Some(3), "Other", &fields, &[(0, "kind", "id"), (1, "unit", "gauge")]);
    assert!(scene.told().ends_with("3 instant 6 Other, used Unsigned(1), size Unsigned(2)\n"));
}

#[test]
fn the_texts_in_the_name_of_a_counter_have_at_most_1_kib() {
    for (bytes, is_named) in [(1022, true), (1023, true), (1024, false)] {
        let mut scene = traced();
        let text = "t".repeat(bytes);
        scene.event(
            1,
            "QueueSampleEvent",
            &[("a", Value::Text(text.as_str().into())), ("n", Value::Unsigned(1))],
        );
        assert_eq!(scene.told().contains(&format!("\"n {text}\"")), is_named, "{bytes}");
    }
}

#[test]
fn other_events_are_instants_with_all_their_fields() {
    let mut scene = traced();
    let addresses = [[0; 8]; 2];
    let pair = |name: &'static str, value| (Value::Text(name.into()), value);
    let fields = [
        ("unsigned", Value::Unsigned(1)),
        ("signed", Value::Signed(-1)),
        ("float", Value::Float(1.5)),
        ("bool", Value::Bool(true)),
        ("text", Value::Text("t".into())),
        ("id", Value::Unresolved(6)),
        ("bytes", Value::Bytes(b"abc")),
        ("stack", Value::Stack(Addresses(&addresses))),
        ("list", Value::List(vec![Value::Map(vec![pair("x", Value::Absent)]), Value::Absent])),
        ("none", Value::Absent),
        (
            "map",
            Value::Map(vec![
                pair("member", Value::Map(vec![pair("inner", Value::Bool(false))])),
                pair("empty", Value::Absent),
                (Value::Unsigned(1), Value::Unsigned(2)),
            ]),
        ),
    ];
    scene.event(1, "E", &fields);
    assert_eq!(
        scene.told(),
        "\
track 1 of 1: Process \"process\"
track 2 in 1 of 1: Row \"E\"
1 instant 2 E, unsigned Unsigned(1), signed Signed(-1), float Float(1.5), bool Bool(true), text Text(\"t\"), \
id Text(\"unresolved 6\"), bytes Text(\"3 bytes\"), stack Text(\"2 addresses\"), list Text(\"2 values\"), \
member Text(\"1 entries\")
"
    );
    for hidden in ["SymbolTableEntry", "SegmentMetadataEvent", "ClockSyncEvent", "SpanCloseEvent"] {
        scene.event(1, hidden, &[("n", Value::Unsigned(1))]);
    }
    assert_eq!(scene.told(), "");
}

#[test]
fn events_of_other_formats_are_on_the_clock_of_the_document() {
    let mut scene = Scene::new(Segment { start_unix_ns: Some(100), ..Segment::default() });
    scene.event(7, "E", &[]);
    assert!(scene.told().ends_with("7 instant 2 E\n"));
    scene.segment.start_unix_ns = Some(150);
    scene.begin();
    scene.event(7, "E", &[]);
    assert_eq!(scene.told(), "57 instant 2 E\n");
    scene.segment.start_unix_ns = Some(93);
    scene.begin();
    scene.event(7, "E", &[]);
    assert_eq!(scene.told(), "0 instant 2 E\n");
    scene.event(6, "E", &[]);
    scene.event(u64::MAX, "E", &[]);
    assert_eq!(scene.told(), "");
    assert_eq!(scene.drawing.losses().to_string(), "events without a time dropped: 2");
    scene.segment.format = "trc";
    let last = u64::MAX / 2;
    scene.event(last, "E", &[]);
    assert_eq!(scene.told(), format!("{last} instant 2 E\n"));
}
