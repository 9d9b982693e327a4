//! Tests of the page's data.

use super::*;

#[test]
fn a_page_has_each_poll_and_says_who_woke_it_and_whom_it_woke() {
    let mut trace = Trace::new();
    let wake = |trace: &mut Trace, time_ns, waker, woken| {
        let fields = [("waker_task_id", n(waker)), ("woken_task_id", n(woken)), ("target_worker", n(0))];
        trace.event("WakeEventEvent", time_ns, &fields);
    };
    trace.poll_start(0, MS, 5, &[("local_queue", n(3))]);
    wake(&mut trace, 2 * MS, 5, 6);
    trace.event("PollEndEvent", 3 * MS, &[("worker_id", n(0))]);
    trace.next_batch();
    trace.moves("WorkerParkEvent", 3 * MS, 0, 7);
    let fields = [("worker_id", n(0)), ("sched_wait_ns", n(MS)), ("tid", n(7))];
    trace.event("WorkerUnparkEvent", 10 * MS, &fields);
    trace.poll(1, 4 * MS, 6, 2 * MS);
    let page = trace.page();
    assert_eq!(page.origin_ns, MS);
    assert_eq!(page.lanes.iter().map(|lane| lane.worker).collect::<Vec<_>>(), [0, 1]);
    assert_eq!((&page.polls.lane[..], &page.polls.start_ns[..]), (&[0, 1][..], &[0, 3_000_000][..]));
    assert_eq!((&page.polls.woken_ns[..], &page.polls.waker[..]), (&[-1, 1_000_000][..], &[0, 5][..]));
    assert_eq!((&page.wakes.poll[..], &page.wakes.woken[..]), (&[0][..], &[6][..]));
    let lane = &page.lanes[0];
    let sums = [&lane.busy_ns, &lane.parked_ns, &lane.waited_ns].map(|column| column.iter().sum::<u64>());
    assert_eq!(sums, [2 * MS, 7 * MS, MS]);
    assert_eq!((lane.queue.iter().max(), lane.longest[0]), (Some(&3), 0));
    assert_eq!(page.counts.polls, (2, 2));
}

#[test]
fn a_poll_that_never_ends_is_there_until_the_end_and_its_flag_leads_to_it() {
    let mut trace = Trace::with_a_poll();
    trace.poll_start(1, 100 * MS, 9, &[]);
    trace.poll(0, 400 * MS, 7, MS);
    let page = trace.page();
    let [open] = page.polls.open[..] else { panic!("{:?}", page.polls) };
    assert_eq!((page.polls.task[open], page.polls.duration_ns[open]), (9, 301 * MS));
    let flag = &page.flags[0];
    assert_eq!(
        (flag.check, flag.worker, flag.time_ns),
        ("stuck-poll", Some(1), Some(page.polls.start_ns[open]))
    );
    assert_eq!(page.lanes[1].busy_ns.iter().sum::<u64>(), 301 * MS);
}

#[test]
fn a_page_of_a_long_trace_is_bounded_and_counts_what_it_lacks() {
    let mut trace = Trace::new();
    for poll in 0..40_000 {
        trace.poll(poll % 4, 1000 + poll * 20_000, 5 + poll % 6000, 10_000 + poll % 7);
        span(&mut trace, "SpanEnter:query", poll, 1000 + poll * 20_000);
        span(&mut trace, "SpanExit:query", poll, 1500 + poll * 20_000);
    }
    let page = trace.page();
    let shown = page.polls.task.len() as u64;
    assert_eq!(page.counts.polls, (40_000, shown));
    assert!((10_000..20_000).contains(&shown), "{shown}");
    assert_eq!((page.counts.spans, page.counts.tasks), ((40_000, 10_000), (6000, 2000)));
    assert_eq!(page.spans.name.len(), 10_000);
    assert_eq!(page.lanes.iter().flat_map(|lane| &lane.polls).sum::<u32>(), 40_000);
}

#[test]
fn samples_are_of_the_poll_of_their_thread_and_stacks_are_counted() {
    let mut trace = Trace::new();
    trace.moves("WorkerUnparkEvent", 500, 0, 7);
    trace.poll(0, 1000, 5, 20_000);
    let addresses = [16u64, 32].map(u64::to_le_bytes);
    for (time_ns, thread, source) in [(1500, 7, 1), (1600, 7, 0), (1700, 8, 0)] {
        let stack = Value::Stack(Addresses(&addresses));
        let fields = [("worker_id", n(255)), ("tid", n(thread)), ("source", n(source)), ("callchain", stack)];
        trace.event("CpuSampleEvent", time_ns, &fields);
    }
    let page = trace.page();
    assert_eq!((&page.samples.poll[..], &page.samples.is_off_cpu[..]), (&[0, 0, -1][..], &[1, 0, 0][..]));
    let stack = &page.stacks[0];
    assert_eq!((stack.on_cpu, stack.off_cpu), (2, 1));
    let names: Vec<_> = stack.functions.iter().map(|&row| page.texts[row].as_str()).collect();
    assert_eq!(names, ["0x10", "0x20"]);
}

#[test]
fn spans_keep_their_fields_and_are_grouped_by_one() {
    let enter = |trace: &mut Trace, id, time_ns, route| {
        let fields = [("span_id", n(id)), ("span_name", t("request")), ("route", t(route)), ("user", t("u"))];
        trace.event("SpanEnter:app:request", time_ns, &fields);
        let fields = [("span_id", n(id)), ("span_name", t("request"))];
        trace.event("SpanExit:app:request", time_ns + id * MS, &fields);
    };
    let mut trace = Trace::with_a_poll();
    trace.sink = TokioSink::new(None).grouped_by("route");
    enter(&mut trace, 1, 1000, "/a");
    enter(&mut trace, 9, 2000, "/b");
    enter(&mut trace, 2, 3000, "/a");
    let Trace { mut sink, page, tables, .. } = trace;
    sink.finish(&tables).unwrap();
    let rows = sink.into_views().remove(0).spans.rows;
    let rows: Vec<_> =
        rows.iter().map(|row| (row.group.as_deref(), row.durations.count, row.durations.max_ns)).collect();
    assert_eq!(rows, [(Some("/b"), 1, 9 * MS), (Some("/a"), 2, 2 * MS)]);
    let trace = Trace { sink: TokioSink::new(None), page, tables, segment: Segment::default() };
    let page = trace.page();
    let fields: Vec<_> =
        page.spans.fields.iter().map(|&row| page.texts[usize::try_from(row).unwrap()].as_str()).collect();
    assert_eq!(fields, ["route=/a user=u", "route=/b user=u", "route=/a user=u"]);
}
