//! Tests of each check at and near its threshold, with handmade events.

use borehole_model::{Addresses, FieldKind, FieldShape, Segment, Shape};

use super::*;

mod page;

const MS: u64 = 1_000_000;

/// A trace built event by event.
struct Trace {
    tables: Tables,
    sink: TokioSink,
    page: TokioPageSink,
    segment: Segment,
}

fn n(number: u64) -> Value<'static> {
    Value::Unsigned(number)
}

fn t(text: &str) -> Value<'_> {
    Value::Text(text.into())
}

impl Trace {
    /// Creates a sealed trace.
    fn new() -> Self {
        let (tables, sink) = (Tables::default(), TokioSink::new(None));
        let mut trace = Self { tables, sink, page: TokioPageSink::default(), segment: Segment::default() };
        trace.says("segment.complete", "true");
        trace
    }

    /// Creates a sealed trace whose spans and events are grouped by a text.
    fn grouped_by(key: &str) -> Self {
        let mut trace = Self::new();
        trace.sink = trace.sink.grouped_by(key);
        trace
    }

    /// Creates a trace with an ordinary poll.
    fn with_a_poll() -> Self {
        let mut trace = Self::new();
        trace.poll(0, 1, 5, 1000);
        trace
    }

    fn says(&mut self, key: &str, value: &str) {
        self.event("SegmentMetadataEvent", 1, &[("entries", Value::Map(vec![(t(key), t(value))]))]);
    }

    fn event(&mut self, name: &str, time_ns: u64, fields: &[(&str, Value<'_>)]) {
        let kind = |value: &Value<'_>| match value {
            Value::Text(_) => FieldKind::PooledText,
            _ => FieldKind::Undeclared,
        };
        let mut id = |text: &str| self.tables.intern_string(text.as_bytes()).unwrap();
        let field = |name, value| FieldShape { name, kind: kind(value), optional: true };
        let fields_shape = fields.iter().map(|(name, value)| field(id(name), value)).collect();
        let shape = Shape { name: id(name), fields: fields_shape, annotations: Vec::new() };
        let shape = self.tables.intern_shape(&shape).unwrap();
        let values: Vec<_> = fields.iter().map(|(_, value)| value.clone()).collect();
        let event = Event { shape, type_id: None, time_ns: Some(time_ns), values: &values };
        let at = Context { tables: &self.tables, segment: &self.segment };
        assert!(self.sink.event(at, &event).unwrap().is_continue());
        assert!(self.page.event(at, &event).unwrap().is_continue());
    }

    fn next_batch(&mut self) {
        self.segment.index += 1;
    }

    fn poll(&mut self, worker: u64, start_ns: u64, task: u64, duration_ns: u64) {
        self.poll_start(worker, start_ns, task, &[]);
        self.event("PollEndEvent", start_ns + duration_ns, &[("worker_id", n(worker))]);
    }

    fn poll_start(&mut self, worker: u64, start_ns: u64, task: u64, more: &[(&str, Value<'_>)]) {
        let known = [("worker_id", n(worker)), ("task_id", n(task)), ("spawn_loc", t("main.rs:1"))];
        self.event("PollStartEvent", start_ns, &[&known[..], more].concat());
    }

    fn moves(&mut self, name: &str, time_ns: u64, cpu_ns: u64, thread: u64) {
        let fields = [("worker_id", n(0)), ("cpu_time_ns", n(cpu_ns)), ("tid", n(thread))];
        self.event(name, time_ns, &fields);
    }

    /// Makes worker 0 active for some time, and parked for as long.
    fn active(&mut self, start_ns: u64, wall_ns: u64, cpu_ns: u64) {
        self.moves("WorkerUnparkEvent", start_ns, 0, 7);
        self.moves("WorkerParkEvent", start_ns + wall_ns, cpu_ns, 7);
    }

    fn view(mut self) -> TokioView {
        self.sink.finish(&self.tables).unwrap();
        self.sink.into_views().remove(0)
    }

    fn page(mut self) -> TokioPage {
        self.page.finish(&self.tables).unwrap();
        self.page.into_pages().remove(0)
    }

    /// The findings: severity, check and time.
    fn found(self) -> Vec<(&'static str, &'static str, Option<u64>)> {
        let findings = self.view().findings.into_iter();
        findings.map(|finding| (finding.severity.name(), finding.check, finding.time_ns)).collect()
    }
}

#[test]
fn a_sealed_trace_of_short_polls_is_clean() {
    assert_eq!(Trace::with_a_poll().found(), []);
}

#[test]
fn without_polls_or_a_seal_nothing_is_said_to_be_fine() {
    let metrics = [("global_queue_depth", n(0)), ("alive_tasks", n(9))];
    let mut trace = Trace::new();
    trace.event("RuntimeMetricsEvent", 5, &metrics);
    assert_eq!(trace.found(), [("warning", "no-polls", None)]);
    let mut trace = Trace::with_a_poll();
    trace.sink.coverage.seals = coverage::Seals::default();
    assert_eq!(trace.found(), [("info", "unsealed-file", None)]);
}

#[test]
fn a_file_that_says_that_it_is_incomplete_is_believed_whatever_follows() {
    let mut trace = Trace::with_a_poll();
    trace.says("segment.complete", "false");
    trace.says("segment.complete", "true");
    assert_eq!(trace.found(), [("warning", "incomplete-file", None)]);
}

#[test]
fn a_file_that_was_begun_after_a_sealed_one_and_is_none_itself_is_told_in_whatever_order_they_are_read() {
    let begins = |trace: &mut Trace, time_ns| {
        trace.event(
            "SegmentMetadataEvent",
            time_ns,
            &[("entries", Value::Map(vec![(t("service"), t("shop"))]))],
        );
    };
    let mut trace = Trace::with_a_poll();
    begins(&mut trace, 2000);
    assert_eq!(trace.found(), [("info", "unsealed-file", None)]);
    let mut trace = Trace::with_a_poll();
    begins(&mut trace, 0);
    assert_eq!(trace.found(), []);
}

#[test]
fn events_that_were_not_recorded_are_told() {
    let mut trace = Trace::with_a_poll();
    for (time_ns, lost) in [(600, 3), (500, 4)] {
        trace.event("EventsLostEvent", time_ns, &[("lost_events", n(lost)), ("thread_name", t("main"))]);
    }
    assert_eq!(trace.found(), [("warning", "events-lost", Some(500))]);
}

#[test]
fn polls_over_10_and_50_ms_are_long() {
    let mut trace = Trace::new();
    for (start_ns, duration_ns) in [(100, 10 * MS), (200 * MS, 10 * MS + 1), (300 * MS, 50 * MS)] {
        trace.poll(0, start_ns, 5, duration_ns);
    }
    let warnings = [("warning", "long-poll", Some(300 * MS)), ("warning", "long-poll", Some(200 * MS))];
    assert_eq!(trace.found(), warnings);
    let mut trace = Trace::new();
    (1..=4).for_each(|poll| trace.poll(0, poll * 100 * MS, 5, 50 * MS + poll));
    let found = trace.found();
    assert_eq!(found[0], ("critical", "long-poll", Some(400 * MS)));
    assert_eq!((found.len(), found[3]), (4, ("critical", "long-poll", None)), "three, and how many in all");
}

#[test]
fn tasks_that_more_than_double_and_are_at_their_peak_leak() {
    let counted = |counts: &[u64]| {
        let mut trace = Trace::with_a_poll();
        for (time_ns, &alive) in (100..).zip(counts) {
            trace.event("RuntimeMetricsEvent", time_ns, &[("alive_tasks", n(alive))]);
        }
        trace.found().len()
    };
    let growing = |samples: usize, last: u64| [vec![10; samples - 1], vec![last]].concat();
    assert_eq!([counted(&growing(11, 21)), counted(&growing(10, 21)), counted(&growing(11, 20))], [1, 0, 0]);
    let fallen = [growing(11, 30), vec![29]].concat();
    assert_eq!(counted(&fallen), 0);
}

/// Reports the number of a runtime's tasks and the length of its queue.
fn runtime(trace: &mut Trace, name: &str, time_ns: u64, alive: u64, depth: u64) {
    let fields = [("runtime_name", t(name)), ("alive_tasks", n(alive)), ("global_queue_depth", n(depth))];
    trace.event("RuntimeMetricsEvent", time_ns, &fields);
}

#[test]
fn runtimes_that_report_at_times_of_their_own_are_added() {
    let mut trace = Trace::with_a_poll();
    for round in 0..10 {
        runtime(&mut trace, "small", round * 10 * MS + 100, 10, 60);
        runtime(&mut trace, "large", round * 10 * MS + 200, 21, 41);
    }
    let view = trace.view();
    let counted = view.tasks.counted.unwrap();
    assert_eq!((counted.samples, counted.first, counted.last, counted.peak), (20, 31, 31, 31));
    let queue = view.queue.unwrap();
    assert_eq!((queue.samples, queue.max, queue.max_ns, queue.high), (20, 101, 100, 20));
    assert_eq!(view.findings[0].check, "queue-depth");
    assert_eq!(view.findings.len(), 1, "no task is lost");
}

#[test]
fn a_runtime_that_came_late_and_went_counts_while_it_was_there() {
    let mut trace = Trace::with_a_poll();
    for second in 1..10 {
        runtime(&mut trace, "main", second * 1000 * MS, 10, 0);
        if second == 4 {
            runtime(&mut trace, "short", second * 1000 * MS + 1, 5, 0);
        }
    }
    let counted = trace.view().tasks.counted.unwrap();
    assert_eq!((counted.first, counted.last, counted.peak, counted.peak_ns), (10, 10, 15, 4000 * MS + 1));
}

#[test]
fn ends_of_blocking_tasks_do_not_hide_a_leak() {
    let mut trace = Trace::with_a_poll();
    for task in 100..112 {
        trace.event("TaskSpawnEvent", task, &[("task_id", n(task)), ("spawn_loc", t("main.rs:2"))]);
        trace.event("TaskTerminateEvent", task, &[("task_id", n(task + 1000))]);
    }
    let view = trace.view();
    assert_eq!((view.tasks.alive, view.tasks.blocking), (12, 12));
    assert_eq!(view.findings[0].check, "task-leak");
}

#[test]
fn waits_over_5_and_50_ms_are_high() {
    let found = |delay_ns| {
        let mut trace = Trace::new();
        trace.poll_start(0, 100 * MS, 5, &[("scheduling_delay_ns", n(delay_ns))]);
        trace.event("PollEndEvent", 100 * MS + 1, &[("worker_id", n(0))]);
        trace.found()
    };
    assert_eq!(found(5 * MS), []);
    assert_eq!(found(5 * MS + 1), [("warning", "sched-delay", Some(95 * MS - 1))]);
    assert_eq!(found(50 * MS), [("warning", "sched-delay", Some(50 * MS))]);
    assert_eq!(found(50 * MS + 1), [("critical", "sched-delay", Some(50 * MS - 1))]);
}

#[test]
fn a_stack_that_blocks_six_times_in_polls_is_a_blocking_call() {
    let found = |inside: u64, idle: u64| {
        let mut trace = Trace::new();
        let stack = [16u64.to_le_bytes()];
        let sample = |time_ns| {
            let stack = Value::Stack(Addresses(&stack));
            (time_ns, [("worker_id", n(0)), ("tid", n(7)), ("source", n(1)), ("callchain", stack)])
        };
        // Samples are in a batch of their own, before the polls.
        for (time_ns, fields) in
            (0..inside).map(|at| 1000 + at).chain((0..idle).map(|at| MS + at)).map(sample)
        {
            trace.event("CpuSampleEvent", time_ns, &fields);
        }
        trace.next_batch();
        trace.poll(0, 900, 5, 20_000);
        trace.found()
    };
    assert_eq!([found(5, 0), found(0, 100)], [[], []]);
    assert_eq!(found(6, 3), [("warning", "blocking-calls", Some(1000))]);
}

#[test]
fn a_worker_that_never_parks_is_on_the_thread_where_it_was_seen_last() {
    let samples_in_polls = |threads: [u64; 2], sampled: u64| {
        let mut trace = Trace::new();
        trace.moves("WorkerUnparkEvent", 100, 0, threads[0]);
        trace.next_batch();
        trace.moves("WorkerUnparkEvent", 50_000, 0, threads[1]);
        trace.next_batch();
        trace.poll(0, 100_000, 5, 20_000);
        let stack = [16u64.to_le_bytes()];
        let sample = [("tid", n(sampled)), ("source", n(0)), ("callchain", Value::Stack(Addresses(&stack)))];
        trace.event("CpuSampleEvent", 110_000, &[&[("worker_id", n(255))], &sample[..]].concat());
        trace.view().cpu.in_polls
    };
    assert_eq!(samples_in_polls([7, 7], 7), 1);
    assert_eq!(samples_in_polls([7, 8], 7), 0);
    assert_eq!(samples_in_polls([7, 8], 8), 1);
}

#[test]
fn queues_over_100_and_1000_of_all_runtimes_together_are_deep() {
    let found = |depths: &[u64]| {
        let mut trace = Trace::with_a_poll();
        for (name, &depth) in ["first", "second"].into_iter().zip(depths) {
            runtime(&mut trace, name, 700, 0, depth);
        }
        trace.found()
    };
    assert_eq!(found(&[100]), []);
    assert_eq!(found(&[60, 41]), [("warning", "queue-depth", Some(700))]);
    assert_eq!(found(&[1000]), [("warning", "queue-depth", Some(700))]);
    assert_eq!(found(&[1001]), [("critical", "queue-depth", Some(700))]);
}

#[test]
fn a_worker_with_over_three_times_the_polls_of_another_is_an_imbalance() {
    let found = |polls: u64| {
        let mut trace = Trace::with_a_poll();
        (0..polls).for_each(|poll| trace.poll(1, 10_000 * poll, 6, 10));
        // The blocking pool and the unknown one are not workers.
        (0..100).for_each(|poll| trace.poll(255, 10_000 * poll, 7, 10));
        trace.found()
    };
    assert_eq!(found(3), []);
    assert_eq!(found(4), [("info", "worker-imbalance", None)]);
}

#[test]
fn numbers_of_no_worker_are_none_whatever_they_do() {
    let mut trace = Trace::new();
    for worker in [0, 253, 254, 255, 256] {
        trace.poll(worker, 1000 * worker, 5, 10);
        let fields = [("worker_id", n(worker))];
        trace.event("WorkerParkEvent", 1000 * worker + 20, &fields);
        trace.event(
            "WakeEventEvent",
            7,
            &[("waker_task_id", n(1)), ("woken_task_id", n(5)), ("target_worker", n(worker))],
        );
    }
    let view = trace.view();
    assert_eq!(view.workers.iter().map(|row| row.worker).collect::<Vec<_>>(), [0, 253, 256]);
    assert_eq!((view.wakes.count, view.wakes.off_worker), (5, 2));
}

#[test]
fn over_a_tenth_of_stretches_with_under_half_a_cpu_is_contention() {
    let found = |low: u64, all: u64, wall_ns: u64, cpu_ns: u64| {
        let mut trace = Trace::with_a_poll();
        for stretch in 0..all {
            let start_ns = 10_000 + stretch * 10 * MS;
            let (wall_ns, cpu_ns) = if stretch < low { (wall_ns, cpu_ns) } else { (1000, 1000) };
            trace.active(start_ns, wall_ns, cpu_ns);
        }
        trace.found()
    };
    let contention = [("warning", "cpu-contention", Some(10_000))];
    assert_eq!(found(2, 11, 2 * MS, MS - 1), contention);
    assert_eq!(found(2, 11, 2 * MS, MS), [], "half");
    assert_eq!(found(2, 11, MS, 10), [], "not over 1 ms");
    assert_eq!(found(2, 10, 2 * MS, 10), [], "too few");
    assert_eq!([found(2, 20, 2 * MS, 10).len(), found(3, 20, 2 * MS, 10).len()], [0, 1], "a tenth");
}

#[test]
fn a_stretch_that_the_worker_spent_elsewhere_is_none() {
    let mut trace = Trace::with_a_poll();
    trace.next_batch();
    trace.moves("WorkerUnparkEvent", 10 * MS, 5, 7);
    trace.moves("WorkerParkEvent", 90 * MS, 10, 7);
    trace.next_batch();
    // In between, on another thread with another CPU clock.
    trace.moves("WorkerUnparkEvent", 30 * MS, 900, 8);
    trace.moves("WorkerParkEvent", 35 * MS, 900 + 4 * MS, 8);
    let view = trace.view();
    assert_eq!((view.workers[0].active_ns, view.workers[0].cpu_ns), (5 * MS, Some(4 * MS)));
}

#[test]
fn waits_of_the_kernel_over_1_and_10_ms_are_told() {
    let found = |wait_ns| {
        let mut trace = Trace::with_a_poll();
        let fields = [("worker_id", n(0)), ("sched_wait_ns", n(wait_ns))];
        trace.event("WorkerUnparkEvent", 900, &fields);
        trace.found()
    };
    assert_eq!(found(MS), []);
    assert_eq!(found(MS + 1), [("info", "kernel-sched-wait", Some(900))]);
    assert_eq!(found(10 * MS), [("info", "kernel-sched-wait", Some(900))]);
    assert_eq!(found(10 * MS + 1), [("warning", "kernel-sched-wait", Some(900))]);
}

fn span(trace: &mut Trace, name: &str, id: u64, time_ns: u64) {
    let fields = [("span_id", n(id)), ("span_name", t("query")), ("dial9.tokio.task_id", n(5))];
    trace.event(name, time_ns, &fields);
}

#[test]
fn over_20_spans_inside_a_poll_are_many() {
    let found = |spans: u64| {
        let mut trace = Trace::new();
        span(&mut trace, "SpanEnter:query", 99, 50);
        trace.poll_start(0, 100, 5, &[]);
        // It began before the poll.
        span(&mut trace, "SpanExit:query", 99, 101);
        for id in 0..spans {
            span(&mut trace, "SpanEnter:query", id, 200 + 2 * id);
            span(&mut trace, "SpanExit:query", id, 201 + 2 * id);
        }
        trace.event("PollEndEvent", 5000, &[("worker_id", n(0))]);
        let found = trace.found();
        found.into_iter().filter(|(_, check, _)| *check == "many-spans-per-poll").collect::<Vec<_>>()
    };
    assert_eq!(found(20), []);
    assert_eq!(found(21), [("warning", "many-spans-per-poll", Some(100))]);
}

#[test]
fn spans_over_ten_times_the_median_are_outliers_and_those_that_are_not_left_unmatched() {
    let found = |usual: u64, longest_ns: u64| {
        let mut trace = Trace::with_a_poll();
        for id in 0..usual {
            span(&mut trace, "SpanEnter:query", id, 10_000 * id);
            span(&mut trace, "SpanExit:query", id, 10_000 * id + 100);
        }
        span(&mut trace, "SpanEnter:query", 99, 7);
        span(&mut trace, "SpanExit:query", 99, 7 + longest_ns);
        trace.found()
    };
    assert_eq!([found(9, 1000), found(8, 1001)], [[], []]);
    assert_eq!(found(9, 1001), [("info", "span-duration-outlier", Some(7))]);
    let mut trace = Trace::with_a_poll();
    span(&mut trace, "SpanEnter:query", 1, 10);
    assert_eq!(trace.found(), [("info", "unmatched-spans", None)]);
}

#[test]
fn events_that_nobody_knows_have_their_numbers_told() {
    let mut trace = Trace::new();
    for at in 0..11u64 {
        let fields = [("size", n(at)), ("load", Value::Float(-1.5)), ("who", t("me"))];
        trace.event("MyEvent", at * 100 * MS, &fields);
    }
    let view = trace.view();
    let row = &view.other_events.rows[0];
    assert_eq!((&*row.name, row.count, row.per_second), ("MyEvent", 11, Some(10.0)));
    let fields: Vec<_> =
        row.fields.iter().map(|field| (&*field.name, field.min, field.p50, field.max)).collect();
    assert_eq!(fields[0].0, "size");
    assert!((fields[0].1, fields[0].3) == (0.0, 10.0) && (fields[0].2 - 5.0).abs() < 0.1, "{fields:?}");
    assert_eq!((fields[1], fields.len()), (("load", -1.5, -1.5, -1.5), 2));
    let value = TextValueRow { value: "me".to_owned(), count: 11 };
    assert_eq!(row.texts, [TextRow { name: "who".to_owned(), count: 11, distinct: 1, values: vec![value] }]);
}

#[test]
fn events_that_nobody_knows_are_grouped_by_a_text() {
    let mut trace = Trace::grouped_by("route");
    for at in 0..30u64 {
        let route = if at % 3 == 0 { "/slow" } else { "/fast" };
        let took = if at % 3 == 0 { 900 } else { 10 };
        trace.event("Request", at * MS, &[("route", t(route)), ("took", n(took)), ("who", t("me"))]);
    }
    trace.event("Request", 30 * MS, &[("took", n(5))]);
    let view = trace.view();
    let rows: Vec<_> =
        view.other_events.rows.iter().map(|row| (row.full_name(), row.count, row.fields[0].max)).collect();
    let expected = [("Request [/fast]", 20, 10.0), ("Request [/slow]", 10, 900.0), ("Request", 1, 5.0)];
    assert_eq!(rows, expected.map(|(name, count, max)| (name.to_owned(), count, max)));
    let texts: Vec<_> = view.other_events.rows[0].texts.iter().map(|text| &*text.name).collect();
    assert_eq!(texts, ["who"]);
}

#[test]
fn there_is_an_end_to_the_groups_of_events() {
    let mut trace = Trace::grouped_by("route");
    for at in 0..2000u64 {
        trace.event("Request", at, &[("route", t(&format!("/{at}"))), ("took", n(at))]);
    }
    let rows = trace.view().other_events;
    assert_eq!(rows.rows.iter().map(|row| row.count).sum::<u64>(), 2000);
    assert_eq!((rows.distinct, &*rows.rows[0].name, rows.rows[0].count), (512, "(others)", 2000 - 511));
}

#[test]
fn measurements_of_an_idle_runtime_make_no_trace_longer() {
    let ends = |name, field| {
        let mut trace = Trace::with_a_poll();
        trace.event(name, 1000 * MS, &[(field, n(0))]);
        let view = trace.view();
        (view.start_ns, view.end_ns)
    };
    assert_eq!(ends("RuntimeMetricsEvent", "global_queue_depth"), (1, 1001));
    assert_eq!(ends("QueueSampleEvent", "global_queue"), (1, 1001));
}

#[test]
fn a_poll_that_goes_on_at_the_end_lasts_until_there() {
    let stuck = |until_ns: u64, last: &str| {
        let mut trace = Trace::with_a_poll();
        trace.poll_start(1, 100 * MS, 6, &[("local_queue", n(200))]);
        // It records nothing more, while the runtime is measured.
        trace.event(last, until_ns, &[("global_queue_depth", n(0)), ("worker_id", n(1))]);
        trace.view()
    };
    let view = stuck(61_100 * MS, "RuntimeMetricsEvent");
    let finding = &view.findings[0];
    assert_eq!((finding.severity, finding.check), (Severity::Critical, "stuck-poll"));
    assert_eq!((finding.time_ns, finding.worker, finding.task), (Some(100 * MS), Some(1), Some(6)));
    assert!(finding.evidence.contains("1.02 min") && finding.evidence.contains("main.rs:1"), "{finding:?}");
    assert!(finding.evidence.contains("200 tasks"), "{finding:?}");
    assert_eq!((view.workers[1].busy_ns, view.workers[1].longest_poll_ns), (61_000 * MS, 61_000 * MS));
    assert_eq!((view.polls.longest.rows[0].is_open, view.polls.durations.count), (true, 1));
    assert_eq!((view.end_ns, view.polls.unended), (61_100 * MS, 1));
    assert_eq!(stuck(105 * MS, "RuntimeMetricsEvent").findings, []);
    // Its end is missing: it has done something else since.
    assert_eq!(stuck(61_100 * MS, "WorkerUnparkEvent").findings, []);
}

#[test]
fn of_threads_that_had_not_handed_over_all_nothing_is_said_that_is_not_sure() {
    let stuck = |late_ns: u64| {
        let mut trace = Trace::with_a_poll();
        trace.sink.coverage.seals = coverage::Seals::default();
        trace.next_batch();
        trace.poll_start(1, 100 * MS, 6, &[]);
        trace.next_batch();
        trace.poll(0, 90 * MS, 5, MS);
        trace.poll(0, 90 * MS + late_ns, 5, MS);
        trace.found().first().copied()
    };
    assert_eq!(stuck(1000 * MS), Some(("info", "unsealed-file", None)), "a batch may hold a second");
    assert_eq!(stuck(40_000 * MS), Some(("critical", "stuck-poll", Some(100 * MS))));
}

#[test]
fn tasks_that_wait_for_nothing_any_more_are_told() {
    let mut trace = Trace::with_a_poll();
    for task in [6, 7] {
        trace.event("TaskSpawnEvent", task, &[("task_id", n(task)), ("spawn_loc", t("main.rs:2"))]);
        trace.poll(0, 10 * task * MS, task, 1000);
    }
    let wake = [("waker_task_id", n(5)), ("woken_task_id", n(6)), ("target_worker", n(0))];
    trace.event("WakeEventEvent", 100 * MS, &wake);
    trace.poll(0, 11_000 * MS, 5, 1000);
    let expected =
        [("critical", "starved-task", Some(100 * MS)), ("warning", "unwoken-task", Some(70 * MS + 1000))];
    assert_eq!(trace.found(), expected);
}

#[test]
fn a_task_that_wakes_itself_all_the_time_is_a_busy_loop_and_one_that_is_woken_is_not() {
    let busy = |waker: u64, apart_ns: u64, parks: bool| {
        let mut trace = Trace::new();
        for round in 0..6000 {
            let start_ns = 1000 + round * apart_ns;
            trace.poll(0, start_ns, 5, 1000);
            if parks {
                trace.moves("WorkerParkEvent", start_ns + 1100, 0, 7);
                trace.moves("WorkerUnparkEvent", start_ns + 1200, 0, 7);
            }
            let wake = [("waker_task_id", n(waker)), ("woken_task_id", n(5)), ("target_worker", n(0))];
            trace.event("WakeEventEvent", start_ns + 1300, &wake);
        }
        trace.poll(0, MS * 2000, 5, 1000);
        let found = trace.found();
        found.iter().filter(|(_, check, _)| *check == "busy-task").count()
    };
    // By itself; yielding; by another task; after the worker slept; and 5,000 times a second.
    let found = [busy(5, 20_000, false), busy(0, 20_000, false), busy(6, 20_000, false)];
    assert_eq!(found, [1, 1, 0]);
    assert_eq!([busy(0, 20_000, true), busy(5, 200_000, false)], [0, 0]);
}

#[test]
fn a_poll_whose_worker_goes_on_elsewhere_blocks_in_place() {
    let blocked = |returns: bool| {
        let mut trace = Trace::new();
        trace.moves("WorkerUnparkEvent", 500, 0, 7);
        trace.poll_start(0, 1000, 5, &[]);
        if returns {
            trace.event("PollEndEvent", 900 * MS, &[("worker_id", n(0))]);
        }
        trace.next_batch();
        trace.moves("WorkerUnparkEvent", 2000, 0, 8);
        (1..60).for_each(|poll| trace.poll(0, poll * 50 * MS, 6, MS));
        trace.moves("WorkerParkEvent", 2990 * MS, 0, 8);
        trace.found()
    };
    assert_eq!(blocked(false), [("warning", "blocking-in-place", Some(1000))]);
    assert!(blocked(true).iter().all(|(_, check, _)| *check == "long-poll"));
}

#[test]
fn tasks_that_wait_for_each_other_in_turn_hold_a_lock_over_an_await() {
    let mut trace = Trace::new();
    for task in 5..30 {
        trace.poll(0, task * 10 * MS, task, 1000);
        trace.poll_start(0, task * 10 * MS + 9 * MS, task, &[]);
        let wake = [("waker_task_id", n(task)), ("woken_task_id", n(task + 1)), ("target_worker", n(0))];
        trace.poll(1, task * 10 * MS + 9 * MS, task + 1, 1000);
        trace.event("WakeEventEvent", task * 10 * MS + 9 * MS + 500, &wake);
        trace.event("PollEndEvent", task * 10 * MS + 9 * MS + 1000, &[("worker_id", n(0))]);
    }
    let found = trace.found();
    assert!(found.contains(&("warning", "lock-over-await", Some(59 * MS + 500))), "{found:?}");
}

#[test]
fn a_trace_says_which_tasks_it_saw_and_the_only_thing_in_it() {
    let mut trace = Trace::with_a_poll();
    trace.says("tokio.poll_coverage", "dial9-spawns-only");
    let view = trace.view();
    assert_eq!(view.poll_coverage, PollCoverage::Spawned);
    assert_eq!((view.findings[0].severity, view.findings[0].check), (Severity::Info, "poll-coverage"));
    let mut trace = Trace::new();
    trace.event("AllocEvent", 5, &[("addr", n(16)), ("size", n(100))]);
    let view = trace.view();
    assert_eq!(view.contents.only(), Some("allocations"));
    assert!(view.findings[0].evidence.contains("only allocations"), "{:?}", view.findings);
}

#[test]
fn a_trace_that_only_describes_itself_is_said_to_be_empty() {
    let mut trace = Trace::new();
    trace.event("ClockSyncEvent", 5, &[("realtime_ns", n(7))]);
    assert_eq!(trace.found(), [("warning", "empty-trace", None)]);
}

#[test]
fn allocations_alone_are_told() {
    let mut trace = Trace::new();
    trace.event("AllocEvent", 500, &[("addr", n(16)), ("size", n(64))]);
    let view = trace.view();
    assert_eq!((view.allocations.map(|memory| memory.allocations), view.start_ns), (Some(1), 500));
}

/// The start and duration of an event of two fields whose annotations make it a span.
fn whole_span(time_ns: u64, fields: [(&str, u64); 2], unit: &str) -> Option<(u64, u64)> {
    let mut trace = Trace::with_a_poll();
    let mut id = |text: &str| trace.tables.intern_string(text.as_bytes()).unwrap();
    let field = |name| FieldShape { name, kind: FieldKind::Unsigned64, optional: false };
    let mut annotations = Vec::new();
    for (at, (role, _)) in (0..).zip(fields) {
        for (key, value) in [("dial9.role", role), ("unit", unit)] {
            annotations.push(borehole_model::Annotation { field: at, key: id(key), value: id(value) });
        }
    }
    let shape = Shape { name: id("Work"), fields: vec![field(id("a")), field(id("b"))], annotations };
    let shape = trace.tables.intern_shape(&shape).unwrap();
    let values = fields.map(|(_, value)| n(value));
    let event = Event { shape, type_id: None, time_ns: Some(time_ns), values: &values };
    let at = Context { tables: &trace.tables, segment: &trace.segment };
    assert!(trace.sink.event(at, &event).unwrap().is_continue());
    let view = trace.view();
    view.spans.rows.first().map(|row| (row.longest_start_ns, row.durations.max_ns))
}

#[test]
fn a_whole_span_is_told_by_any_two_of_start_duration_and_end() {
    let expected = Some((3_000, 2_000));
    assert_eq!(whole_span(5_000, [("span.start", 3_000), ("other", 7)], "ns"), expected);
    assert_eq!(whole_span(5_000, [("span.duration", 2), ("other", 7)], "us"), expected);
    assert_eq!(whole_span(9_000, [("span.start", 3), ("span.end", 5)], "us"), expected);
    assert_eq!(whole_span(9_000, [("span.end", 5), ("span.duration", 2)], "us"), expected);
    assert_eq!(whole_span(9_000, [("span.start", 3_000), ("span.duration", 2_000)], "ns"), expected);
    assert_eq!(whole_span(3_000, [("span.end", 5_000), ("other", 7)], "ns"), expected);
    assert_eq!(whole_span(5_000, [("span.start", 6_000), ("other", 7)], "ns"), None);
    assert_eq!(whole_span(5_000, [("other", 6_000), ("another", 7)], "ns"), None);
}

#[test]
fn a_trace_of_samples_alone_is_none_of_a_tokio_program() {
    let mut trace = Trace::new();
    trace.event("CpuSampleEvent", 5, &[("source", n(0))]);
    trace.sink.finish(&trace.tables).unwrap();
    assert!(trace.sink.into_views().is_empty());
}
