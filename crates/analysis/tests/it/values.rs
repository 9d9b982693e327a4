//! Profiles whose samples have values, and samplers of other clocks.

use borehole_analysis::{
    Breakdown, By, Calls, DimensionKind, LazyTree, PageLimits, PathStyle, Profile, ProfileBuilder,
    ProfilePage, Query, ReportSink, ReportTable, ReportView, SampleSelection, SortBy,
};
use borehole_model::{
    Context, Frame, Mode, ProfileSink, Sample, Sampled, Segment, Tables, ValueType, Weigher,
};

/// A segment and its samples: a folded stack, root first, a count, and values.
struct Part<'a>(Segment, &'a [(&'a str, u64, &'a [i64])]);

fn valued(types: &[(&str, &str)]) -> Segment {
    let value_types = types.iter().map(|&(kind, unit)| ValueType::new(kind, unit)).collect();
    Segment { value_types, is_uncounted: true, ..Segment::default() }
}

fn sampled(mode: Mode, period_ns: Option<u64>) -> Segment {
    Segment { mode, period_ns, ..Segment::default() }
}

fn read(parts: &[Part<'_>], sink: &mut dyn ProfileSink) -> Tables {
    let mut tables = Tables::default();
    for Part(segment, samples) in parts {
        sink.segment(Context { tables: &tables, segment }).unwrap();
        for &(names, count, values) in *samples {
            let frames: Vec<_> = names
                .rsplit(';')
                .map(|name| {
                    let name = tables.intern_string(name.as_bytes()).unwrap();
                    tables.intern_frame(&Frame::named(name)).unwrap()
                })
                .collect();
            let stack = tables.intern_stack_leaf_first(&frames).unwrap();
            let sample = Sample { stack, count, values, ..Sample::default() };
            let _ = sink.sample(Context { tables: &tables, segment }, &sample).unwrap();
        }
    }
    sink.finish(&tables).unwrap();
    tables
}

fn view(parts: &[Part<'_>], query: Query) -> ReportView {
    let mut sink = ReportSink::new(query);
    read(parts, &mut sink);
    sink.into_view()
}

fn profile(parts: &[Part<'_>]) -> Profile {
    let mut builder = ProfileBuilder::default();
    let tables = read(parts, &mut builder);
    builder.into_profile(tables)
}

/// A function, its value, and its share in tenths of a percent.
fn rows(table: &ReportTable) -> Vec<(String, i128, f64)> {
    let row = |row: &borehole_analysis::ReportRow| {
        let name = String::from_utf8(row.frame.text(PathStyle::Full)).unwrap();
        (name, row.share.value, (row.share.percent * 10.0).round() / 10.0)
    };
    table.rows.iter().map(row).collect()
}

fn row(name: &str, value: i128, percent: f64) -> (String, i128, f64) {
    (name.to_owned(), value, percent)
}

const HEAP: &[(&str, u64, &[i64])] = &[("main;alloc", 1, &[3, 958]), ("main;other", 0, &[40, 42])];

fn heap() -> Part<'static> {
    Part(valued(&[("inuse_objects", "count"), ("inuse_space", "bytes")]), HEAP)
}

#[test]
fn tables_add_up_the_default_value_and_name_the_others() {
    let seen = view(&[heap()], Query::default());
    assert_eq!(rows(&seen.self_table), [row("alloc", 958, 95.8), row("other", 42, 4.2)]);
    assert_eq!(rows(&seen.total_table)[0], row("main", 1000, 100.0));
    let summary = seen.summary;
    assert_eq!((summary.value_type.to_string().as_str(), summary.value), ("inuse_space/bytes", 1000));
    assert_eq!(summary.other_value_types, [ValueType::new("inuse_objects", "count")]);
    assert!(summary.is_valued && summary.time_ns.is_none() && summary.hidden.is_empty());
}

#[test]
fn another_value_can_be_asked_for() {
    let weigher = Weigher::new(Some("inuse_objects"), Sampled::Count);
    let mut sink = ReportSink::new(Query::default()).weighing(weigher);
    read(&[heap()], &mut sink);
    let seen = sink.into_view();
    assert_eq!(rows(&seen.self_table), [row("other", 40, 93.0), row("alloc", 3, 7.0)]);
}

#[test]
fn hidden_value_types_are_reported() {
    let parts = [
        Part(sampled(Mode::Wall, Some(10)), &[("f", 3, &[])]),
        heap(),
        Part(sampled(Mode::Cpu, Some(10)), &[("g", 5, &[])]),
        Part(sampled(Mode::Wall, None), &[("h", 1, &[])]),
    ];
    let seen = view(&parts, Query::default());
    assert_eq!(rows(&seen.self_table), [row("f", 3, 75.0), row("h", 1, 25.0)]);
    let hidden: Vec<_> = seen.summary.hidden.iter().map(|(kind, count)| (kind.to_string(), *count)).collect();
    assert_eq!(hidden, [("inuse_space/bytes".to_owned(), 1), ("cpu/nanoseconds".to_owned(), 5)]);
    assert_eq!((seen.summary.samples, seen.summary.mode), (4, Mode::Wall));
    let calls = profile(&parts);
    assert_eq!((calls.summary().samples, calls.summary().hidden_samples), (4, 6));
}

#[test]
fn shares_of_mixed_periods_are_shares_of_time() {
    let mixed = [
        Part(sampled(Mode::Cpu, Some(10)), &[("f", 9, &[])]),
        Part(sampled(Mode::Cpu, Some(110)), &[("g", 1, &[])]),
    ];
    let seen = view(&mixed, Query::default());
    assert_eq!(rows(&seen.self_table), [row("g", 110, 55.0), row("f", 90, 45.0)]);
    assert_eq!(seen.summary.value_type, ValueType::time(Mode::Cpu));
}

#[test]
fn negative_sums_are_kept() {
    let parts = [Part(
        valued(&[("cpu", "ms")]),
        &[("main;f", 1, &[7]), ("main;g", 1, &[-5]), ("main;g;h", 1, &[i64::MIN]), ("x", 1, &[0])],
    )];
    let profile = profile(&parts);
    let weight = profile.default_weight();
    let calls = Calls::new(&profile, &Query::default(), &SampleSelection::default(), weight);
    let tree = LazyTree::from_roots(&calls);
    assert_eq!(tree.roots().len(), 1);
    assert!(tree.roots()[0].total_weight < 0 && calls.total() < 0);
    let seen = view(&parts, Query::default());
    assert_eq!(rows(&seen.self_table)[0].1, 7_000_000);
    assert!(ProfilePage::new(&profile, PageLimits::default()).is_ok());
}

/// All views of a profile have the same sums.
#[test]
fn views_agree() {
    let recursive: &[(&str, u64, &[i64])] =
        &[("a;b;a", 1, &[5]), ("a;b", 1, &[7]), ("c", 2, &[11]), ("a;b;a", 1, &[2])];
    for segment in [valued(&[("cpu", "nanoseconds")]), sampled(Mode::Wall, Some(4)), sampled(Mode::Gil, None)]
    {
        let parts = [Part(segment, recursive)];
        let (seen, profile) = (view(&parts, Query::default()), profile(&parts));
        let calls =
            Calls::new(&profile, &Query::default(), &SampleSelection::default(), profile.default_weight());
        let value = |share: borehole_analysis::Share| {
            if seen.summary.is_valued { share.value } else { i128::from(share.count) }
        };
        let sorted = |mut rows: Vec<(String, i128)>| {
            rows.sort();
            rows
        };
        let name = |name: &[u8]| String::from_utf8(name.to_vec()).unwrap();
        let of_report = |table: &ReportTable| {
            let rows = table.rows.iter().map(|row| (name(&row.frame.function), value(row.share)));
            sorted(rows.collect())
        };
        let top = calls.top(SortBy::SelfWeight);
        let of_calls = |pick: fn(&borehole_analysis::TopRow) -> i64| {
            let rows = top.iter().map(|row| (name(&calls.frame(row.frame).function), i128::from(pick(row))));
            sorted(rows.filter(|(_, value)| *value != 0).collect())
        };
        assert_eq!(of_report(&seen.self_table), of_calls(|row| row.self_weight));
        assert_eq!(of_report(&seen.total_table), of_calls(|row| row.total_weight));
        let page = ProfilePage::new(&profile, PageLimits::default()).unwrap();
        let of_page =
            page.top.iter().map(|row| (name(&page.functions[row.function].name), row.total_weight.into()));
        assert_eq!(sorted(of_page.collect()), of_report(&seen.total_table));
        assert_eq!(page.cells.iter().map(|cell| cell.value).sum::<i64>(), calls.total());
        assert_eq!(profile.summary().value, seen.summary.value);
    }
}

#[test]
fn samples_are_separated_by_interpreter_and_segment_metadata() {
    let mut tables = Tables::default();
    let [key, pay, search] =
        ["service.name", "pay", "search"].map(|text| tables.intern_string(text.as_bytes()).unwrap());
    let frame = tables.intern_frame(&Frame::named(key)).unwrap();
    let stack = tables.intern_stack_leaf_first(&[frame]).unwrap();
    let play = |sink: &mut dyn ProfileSink| {
        for (time_ns, interpreter, value) in [(0, 0, pay), (10, 1, search), (20, 0, search)] {
            let segment = Segment { index: 1, metadata: vec![(key, value)], ..Segment::default() };
            let at = Context { tables: &tables, segment: &segment };
            sink.segment(at).unwrap();
            let (interpreter, time_ns) = (Some(interpreter), Some(time_ns));
            let sample = Sample { stack, count: 2, interpreter, time_ns, ..Sample::default() };
            let _ = sink.sample(at, &sample).unwrap();
        }
        sink.finish(&tables).unwrap();
    };
    let service = By::Label(b"service.name".to_vec());
    for by in [By::Interpreter, service.clone()] {
        let mut sink = ReportSink::new(Query { by: Some(by), ..Query::default() });
        play(&mut sink);
        let Some(Breakdown::Samples { rows, .. }) = sink.into_view().breakdown else { panic!("no groups") };
        assert_eq!(rows.iter().map(|row| row.share.count).collect::<Vec<_>>(), [4, 2]);
    }
    let mut builder = ProfileBuilder::default();
    play(&mut builder);
    let profile = builder.into_profile(tables);
    let everything = SampleSelection::default();
    let calls = Calls::new(&profile, &Query::default(), &everything, profile.default_weight());
    for by in [By::Interpreter, service] {
        let rows = calls.by(&profile, &everything, &by);
        assert_eq!(rows.iter().map(|row| row.weight).collect::<Vec<_>>(), [4, 2]);
    }
    assert_eq!(profile.label_keys(), [b"service.name".to_vec()]);
    let page = ProfilePage::new(&profile, PageLimits::default()).unwrap();
    let kinds: Vec<_> = page.dimensions.iter().map(|dimension| dimension.kind.clone()).collect();
    assert_eq!(kinds, [DimensionKind::Interpreter, DimensionKind::Label(b"service.name".to_vec())]);
    let timeline = profile.timeline(&everything, profile.default_weight()).unwrap();
    let rows: Vec<_> = timeline.rows.iter().map(|row| (row.interpreter, row.weight)).collect();
    assert_eq!(rows, [(Some(0), 4), (Some(1), 2)]);
    let of_search =
        SampleSelection { labels: vec![(b"service.name".to_vec(), b"search".to_vec())], ..everything };
    let chosen = Calls::new(&profile, &Query::default(), &of_search, profile.default_weight());
    assert_eq!(chosen.total(), 4);
}
