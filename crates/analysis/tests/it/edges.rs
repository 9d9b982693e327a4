//! Single cases: recursion, emptiness, huge numbers, several periods.

use borehole_analysis::{
    Breakdown, By, GroupValue, LabelText, PathStyle, Pattern, PeriodSamples, ProfileSummary, Query,
    ReportSink, ReportTable,
};
use borehole_model::{
    Context, Frame, Label, LabelValue, ProfileSink, Sample, Segment, StackId, Tables, Thread, ValueType,
    Warning,
};

use crate::profile::{S, sample, view};

fn rows(table: &ReportTable) -> Vec<(String, u64)> {
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    table.rows.iter().map(|row| (text(row.frame.text(PathStyle::Full)), row.share.count)).collect()
}

fn row(name: &str, count: u64) -> (String, u64) {
    (name.to_owned(), count)
}

fn pattern(source: &str) -> Option<Pattern> {
    Some(Pattern::new(source).unwrap())
}

#[test]
fn a_recursive_function_counts_once_in_total() {
    let view = view(&[sample(&["f", "f", "g", "f"], 3), sample(&["g", "f"], 1)], Query::default());
    assert_eq!(rows(&view.total_table), [row("f", 4), row("g", 4)]);
    assert_eq!(rows(&view.self_table), [row("f", 3), row("g", 1)]);
}

#[test]
fn callers_and_callees_start_from_their_own_ends() {
    let samples = [sample(&["leaf", "f", "mid", "f", "main"], 1), sample(&["f"], 2)];
    let query = Query { callers: pattern("^f$"), callees: pattern("^f$"), ..Query::default() };
    let view = view(&samples, query);
    assert_eq!(rows(&view.callers.unwrap()), [row("<root>", 2), row("mid", 1)]);
    assert_eq!(rows(&view.callees.unwrap()), [row("<leaf>", 2), row("mid", 1)]);
}

#[test]
fn hidden_frames_are_not_neighbours() {
    let samples = [sample(&["h1", "f", "h2", "main"], 1), sample(&["h1"], 1)];
    let query =
        Query { hide: pattern("^h"), callers: pattern("^f"), callees: pattern("^f"), ..Query::default() };
    let view = view(&samples, query);
    assert_eq!(rows(&view.callers.unwrap()), [row("main", 1)]);
    assert_eq!(rows(&view.callees.unwrap()), [row("<leaf>", 1)]);
    assert_eq!((view.summary.samples, view.summary.matched), (2, 1));
    assert_eq!(rows(&view.self_table), [row("f", 1)]);
}

#[test]
fn an_empty_stack_is_a_sample_that_does_not_count() {
    let view = view(&[sample(&[], 5), sample(&["f"], 1), sample(&["g"], 0)], Query::default());
    let ProfileSummary { samples, matched, empty, stacks, .. } = view.summary;
    assert_eq!((samples, matched, empty, stacks), (6, 1, 5, 1));
    assert_eq!(rows(&view.total_table), [row("f", 1)]);
}

#[test]
fn a_profile_without_samples_is_all_zeros() {
    let view = view(&[], Query { last: 3, callers: pattern("x"), ..Query::default() });
    assert_eq!(
        view.summary,
        ProfileSummary { value_type: ValueType::samples(), ..ProfileSummary::default() }
    );
    assert_eq!(view.self_table, ReportTable::default());
    assert_eq!(view.callers, Some(ReportTable::default()));
    assert_eq!(view.last, Some(Vec::new()));
}

#[test]
fn each_sample_is_as_long_as_its_own_segments_period() {
    let with = |period_ns, sample: S| S { period_ns, ..sample };
    let samples = [
        with(Some(10_000_000), sample(&["f", "main"], 3)),
        with(Some(1_000_000), sample(&["f", "main"], 4)),
        with(None, sample(&["f", "main"], 100)),
        with(Some(10_000_000), sample(&["g", "main"], 1)),
    ];
    let view = view(&samples, Query::default());
    let wall: Vec<_> = view.self_table.rows.iter().map(|row| row.share.time_ns).collect();
    assert_eq!(wall, [Some(34_000_000), Some(10_000_000)]);
    assert_eq!(rows(&view.total_table), [row("main", 108), row("f", 107), row("g", 1)]);
    assert_eq!(view.total_table.rows[0].share.time_ns, Some(44_000_000));
    assert_eq!(view.total_table.rows[1].share.time_ns, Some(34_000_000));
    assert_eq!(view.summary.time_ns, Some(44_000_000));
    assert_eq!(view.summary.without_period, 100);
    assert_eq!(view.summary.segments, 4);
    let period = |period_ns, samples| PeriodSamples { period_ns, samples };
    assert_eq!(view.summary.periods, [period(10_000_000, 4), period(1_000_000, 4)]);
}

#[test]
fn without_a_period_no_time_is_claimed() {
    let view = view(&[sample(&["f"], 1)], Query::default());
    assert_eq!(view.summary.time_ns, None);
    assert_eq!(view.self_table.rows[0].share.time_ns, None);
}

#[test]
fn huge_counts_saturate() {
    let tera = S { period_ns: Some(10_000_000), ..sample(&["f", "main"], 1_000_000_000_000) };
    let seen = view(&[tera.clone(), tera], Query { last: 2, ..Query::default() });
    assert_eq!(seen.summary.samples, 2_000_000_000_000);
    assert_eq!(seen.total_table.rows[1].share.time_ns, Some(20_000_000_000_000_000_000));
    let run = |run: &borehole_analysis::RecentRun| (run.count, run.age);
    assert_eq!(seen.last.unwrap().iter().map(run).collect::<Vec<_>>(), [(2, 0)]);

    let most = S { period_ns: Some(u64::MAX), ..sample(&["f", "main"], u64::MAX) };
    let query = Query { last: u64::MAX, by: Some(By::Process), ..Query::default() };
    let seen = view(&vec![most; 4], query);
    assert_eq!(seen.summary.matched, u64::MAX);
    assert_eq!(seen.self_table.rows[0].share.count, u64::MAX);
    assert_eq!(seen.self_table.rows[0].share.time_ns, Some(u128::MAX >> 1));
    assert_eq!(seen.total_table.rows[0].share.percent, 100.0);
}

#[test]
fn last_samples_show_only_counted_frames() {
    let samples = [sample(&["f", "h", "main"], 1), sample(&["x"], 9), sample(&["g", "main"], 2)];
    let query = Query {
        hide: pattern("^h"),
        keep: pattern("main"),
        last: 2,
        last_depth: Some(1),
        ..Query::default()
    };
    let last = |query: &Query| view(&samples, query.clone()).last.unwrap();
    let runs = last(&query);
    assert_eq!(runs.len(), 1);
    assert_eq!((runs[0].count, runs[0].age, runs[0].depth, runs[0].frames_leaf_first.len()), (2, 0, 2, 1));
    let runs = last(&Query { last: 50, ..query });
    assert_eq!(runs.iter().map(|run| (run.count, run.age)).collect::<Vec<_>>(), [(1, 2), (2, 0)]);
    assert_eq!((runs[0].depth, runs[0].frames_leaf_first[0].function.as_slice()), (2, b"f".as_slice()));
}

/// A chain of `depth` frames of one function, sampled at every level, with a fan of leaves at its end.
fn deep_profile(tables: &mut Tables, depth: u32) -> Vec<StackId> {
    let name = tables.intern_string(b"f").unwrap();
    let frame = tables.intern_frame(&Frame::named(name)).unwrap();
    let mut stacks = Vec::new();
    for _ in 0..depth {
        let parent = stacks.last().copied();
        stacks.push(tables.intern_stack(parent, frame).unwrap());
    }
    stacks
}

#[test]
fn work_is_linear_in_deep_recursion() {
    // Walking each of these stacks in full would be 2·10¹⁰ steps.
    let mut tables = Tables::default();
    let stacks = deep_profile(&mut tables, 200_000);
    let mut sink = ReportSink::new(Query { callers: pattern("f"), ..Query::default() });
    let segment = Segment::default();
    for &stack in stacks.iter().rev() {
        let sample = Sample { stack: Some(stack), count: 1, ..Sample::default() };
        let _ = sink.sample(Context { tables: &tables, segment: &segment }, &sample).unwrap();
    }
    sink.finish(&tables).unwrap();
    let view = sink.into_view();
    assert_eq!(rows(&view.total_table), [row("f", 200_000)]);
    assert_eq!(rows(&view.callers.unwrap()), [row("f", 199_999), row("<root>", 1)]);
}

#[test]
fn the_summary_has_times_threads_and_damage() {
    let tables = Tables::default();
    let mut sink = ReportSink::new(Query::default());
    let mut take = |index, process, thread, time_ns| {
        let segment = Segment { index, process: Some(7), ..Segment::default() };
        let at = Context { tables: &tables, segment: &segment };
        sink.segment(at).unwrap();
        let sample = Sample { count: 1, process, thread, time_ns, ..Sample::default() };
        let _ = sink.sample(at, &sample).unwrap();
    };
    take(0, None, Some(1), Some(100));
    take(1, Some(8), Some(1), Some(400));
    take(2, None, Some(1), Some(-50));
    // The second input has a clock of its own.
    take(0, None, None, Some(1_000_000));
    take(1, None, None, Some(1_000_007));
    sink.warning(&Warning::new("odd").losing(12)).unwrap();
    sink.finish(&tables).unwrap();
    let ProfileSummary { processes, threads, span_ns, warnings, lost_bytes, .. } = sink.into_view().summary;
    assert_eq!((processes, threads, span_ns, warnings, lost_bytes), (2, 2, Some(457), 1, 12));
}

#[test]
fn the_list_of_periods_is_bounded() {
    let periods = (1..=1000).map(|period| S { period_ns: Some(period), ..sample(&["f"], 1) });
    let view = view(&periods.collect::<Vec<_>>(), Query::default());
    assert_eq!(view.summary.periods.len(), ProfileSummary::MAX_PERIODS);
    assert_eq!(view.summary.time_ns, Some(500_500));
}

#[test]
fn threads_have_names_and_labels_have_numbers() {
    let mut tables = Tables::default();
    let stacks = deep_profile(&mut tables, 1);
    let [key, unit, name] =
        [b"size".as_slice(), b"bytes", b"worker"].map(|text| tables.intern_string(text).unwrap());
    let value = LabelValue::Number { value: -3, unit: Some(unit) };
    let labels = tables.intern_labels(&[Label { key, value }]).unwrap();
    let segment = Segment::default();
    let at = Context { tables: &tables, segment: &segment };
    let values = |by| {
        let mut sink = ReportSink::new(Query { by: Some(by), last: 1, ..Query::default() });
        sink.thread(at, Thread { process: None, number: 9 }, name).unwrap();
        let sample = Sample { stack: Some(stacks[0]), count: 1, thread: Some(9), ..Sample::default() };
        let _ = sink.sample(at, &Sample { labels: Some(labels), ..sample }).unwrap();
        sink.finish(&tables).unwrap();
        match sink.into_view().breakdown {
            Some(Breakdown::Samples { rows, .. }) => rows[0].value.clone(),
            other => panic!("expected a breakdown of samples, found {other:?}"),
        }
    };
    assert_eq!(
        values(By::Label(b"size".to_vec())),
        GroupValue::Label(LabelText::Number(-3, Some(b"bytes".to_vec())))
    );
    assert_eq!(values(By::Label(b"other".to_vec())), GroupValue::Absent);
    let name = Some(b"worker".to_vec());
    assert_eq!(values(By::Thread), GroupValue::Thread { process: None, thread: 9, name });
}

#[test]
fn the_deepest_stacks_of_every_format_are_counted() {
    let mut tables = Tables::default();
    let stacks = deep_profile(&mut tables, 5);
    let mut sink = ReportSink::new(Query::default());
    for (depth_limit, count) in [(None, 1), (Some(4), 10), (Some(5), 100)] {
        let segment = Segment { depth_limit, ..Segment::default() };
        let at = Context { tables: &tables, segment: &segment };
        sink.segment(at).unwrap();
        for &stack in &stacks {
            let _ = sink.sample(at, &Sample { stack: Some(stack), count, ..Sample::default() }).unwrap();
        }
    }
    sink.finish(&tables).unwrap();
    let summary = sink.into_view().summary;
    assert_eq!((summary.at_depth_limit, summary.depth_limit), (120, Some(5)));
}
