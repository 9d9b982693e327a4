//! Differences between programs whose true behaviour is known.

use borehole_model::{
    Context, Frame, Label, LabelValue, Mode, ProfileSink as _, Sample, Segment, StackId, Tables,
};

use super::*;

/// A program that answers requests, and remains in each of its functions for a while.
struct Program {
    /// The relative frequency of calls of each function.
    weights: Vec<f64>,
    /// The mean number of samples that a function lasts.
    stays: u64,
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn part(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

const SEGMENT: Segment = Segment {
    format: "rbt",
    index: 0,
    offset: None,
    period_ns: Some(1_000_000),
    has_times: false,
    is_ordered: true,
    start_unix_ns: None,
    began_ns: None,
    depth_limit: None,
    process: None,
    metadata: Vec::new(),
    mode: Mode::Wall,
    value_types: Vec::new(),
    default_measure: None,
    is_uncounted: false,
};

fn stack(tables: &mut Tables, names_leaf_first: &[&str]) -> StackId {
    let frames: Vec<_> = names_leaf_first
        .iter()
        .map(|name| {
            let function = tables.intern_string(name.as_bytes()).unwrap();
            tables.intern_frame(&Frame::named(function)).unwrap()
        })
        .collect();
    tables.intern_stack_leaf_first(&frames).unwrap().unwrap()
}

impl Program {
    /// Many functions with very different weights.
    fn usual() -> Self {
        Self { weights: (1..=60).map(|rank| 1.0 / f64::from(rank)).collect(), stays: 6 }
    }

    fn with(mut self, function: usize, factor: f64) -> Self {
        self.weights[function] *= factor;
        self
    }

    /// A run of the program: the function that was executing at each sample, and its handler.
    fn run(&self, random: &mut Random, samples: usize) -> Vec<(usize, usize)> {
        let sum: f64 = self.weights.iter().sum();
        let (mut function, mut handler) = (0, 0);
        let run = (0..samples).map(|_| {
            if random.next().is_multiple_of(self.stays) {
                let mut rest = random.part() * sum;
                let called = self.weights.iter().position(|weight| {
                    rest -= weight;
                    rest <= 0.0
                });
                function = called.unwrap_or(0);
                if random.next().is_multiple_of(20) {
                    handler = usize::try_from(random.next() % 5).unwrap();
                }
            }
            (function, handler)
        });
        run.collect()
    }
}

fn compare_runs(query: DiffQuery, sides: [Vec<Vec<(usize, usize)>>; 2]) -> DiffView {
    let mut tables = Tables::default();
    let stacks: Vec<Vec<StackId>> = (0..60)
        .map(|function| {
            let names = (0..5).map(|handler| {
                stack(&mut tables, &[&format!("function{function}"), &format!("handler{handler}"), "main"])
            });
            names.collect()
        })
        .collect();
    let at = Context { tables: &tables, segment: &SEGMENT };
    let mut sink = DiffSink::new(DiffQuery { inputs: [sides[0].len(), sides[1].len()], ..query });
    for side in sides {
        for run in side {
            sink.segment(at).unwrap();
            for (function, handler) in run {
                let stack = Some(stacks[function][handler]);
                let _ = sink.sample(at, &Sample { stack, count: 1, ..Sample::default() }).unwrap();
            }
        }
        sink.begin_after();
    }
    sink.finish(&tables).unwrap();
    sink.into_view()
}

fn marked(view: &DiffView) -> usize {
    let rows = view.functions.iter().filter(|row| row.self_change.is_marked || row.total_change.is_marked);
    rows.count()
        + view.paths.iter().filter(|path| path.self_change.is_marked || path.total_change.is_marked).count()
}

const PAIRS: usize = 200;

/// The number of pairs of runs, out of [`PAIRS`], in which anything is marked.
fn alarms(samples: usize, inputs: usize) -> usize {
    let (program, mut random) = (Program::usual(), Random(0x9e37_79b9_7f4a_7c15));
    let mut runs = || (0..inputs).map(|_| program.run(&mut random, samples)).collect::<Vec<_>>();
    (0..PAIRS).filter(|_| marked(&compare_runs(DiffQuery::default(), [runs(), runs()])) > 0).count()
}

#[test]
fn an_unchanged_program_is_marked_in_at_most_one_run_of_twenty() {
    // Functions and paths are two families of differences, each at 5%. The observed number is printed on failure.
    for (samples, inputs) in [(4_000, 1), (20_000, 1), (2_000, 5)] {
        let alarms = alarms(samples, inputs);
        assert!(alarms <= PAIRS / 10, "{samples} samples, {inputs} inputs: {alarms} of {PAIRS}");
    }
}

#[test]
fn samples_taken_for_independent_would_be_wrong_most_of_the_time() {
    let (program, mut random) = (Program::usual(), Random(7));
    let alarms = (0..40).filter(|_| {
        let runs = [(); 2].map(|()| vec![program.run(&mut random, 20_000)]);
        let view = compare_runs(DiffQuery::default(), runs);
        view.functions.iter().any(|row| {
            let [first, second] = [row.self_change.before, row.self_change.after].map(|amount| amount.value);
            let pooled = (first + second) / 2.0;
            let deviation = (pooled * (1.0 - pooled) * 2.0 / 20_000.0).sqrt();
            (second - first).abs() > 4.0 * deviation
        })
    });
    assert!(alarms.count() > 20);
}

#[test]
fn a_change_of_a_known_size_is_found_and_nothing_beside_it() {
    let mut random = Random(0x1234_5678_9abc_def1);
    let (mut found, mut wrong) = (0, 0);
    for _ in 0..PAIRS {
        // The fourth function has 5.3% of the samples before, and 9.6% after.
        let before = Program::usual().run(&mut random, 40_000);
        let after = Program::usual().with(3, 1.9).run(&mut random, 40_000);
        let view = compare_runs(DiffQuery::default(), [vec![before], vec![after]]);
        let row = view.functions.iter().find(|row| row.frame.function == b"function3").unwrap();
        found += usize::from(row.self_change.is_marked && row.self_change.difference() > 0.0);
        // The others lose a little of their share; marking that is not wrong.
        wrong += view
            .functions
            .iter()
            .filter(|row| row.self_change.is_marked && row.self_change.difference() > 0.0)
            .count();
    }
    assert!(found > PAIRS * 95 / 100, "{found} of {PAIRS}");
    assert!(wrong - found <= PAIRS / 10, "{} more than {found}", wrong - found);
}

#[test]
fn intervals_hold_the_truth_as_often_as_they_say() {
    let (program, mut random) = (Program::usual(), Random(99));
    let (mut held, mut all) = (0_u32, 0_u32);
    for _ in 0..50 {
        let runs = [(); 2].map(|()| vec![program.run(&mut random, 10_000)]);
        for row in compare_runs(DiffQuery::default(), runs).functions.iter().take(30) {
            held += u32::from(row.self_change.difference().abs() <= row.self_change.margin);
            all += 1;
        }
    }
    // The rows are those that differ most, so a few per cent fewer of them hold than of all rows.
    assert!(f64::from(held) / f64::from(all) > 0.9, "{held} of {all}");
}

/// A view of folded stacks, root first, as if they were read from `format`.
fn folded(format: &'static str, query: DiffQuery, sides: [&[(&str, u64)]; 2]) -> DiffView {
    let mut tables = Tables::default();
    let sides = sides.map(|side| {
        let stacks = side.iter().map(|(names, count)| {
            let names: Vec<_> = names.split(';').rev().collect();
            (stack(&mut tables, &names), *count)
        });
        stacks.collect::<Vec<_>>()
    });
    let segment = Segment { format, ..SEGMENT };
    let at = Context { tables: &tables, segment: &segment };
    let mut sink = DiffSink::new(query);
    for side in sides {
        sink.segment(at).unwrap();
        for (stack, count) in side {
            let _ = sink.sample(at, &Sample { stack: Some(stack), count, ..Sample::default() }).unwrap();
        }
        sink.begin_after();
    }
    sink.finish(&tables).unwrap();
    sink.into_view()
}

fn row<'v>(view: &'v DiffView, function: &str) -> &'v DiffRow {
    view.functions.iter().find(|row| row.frame.function == function.as_bytes()).unwrap()
}

#[test]
fn own_and_total_are_those_of_each_side_and_recursion_counts_once() {
    let view = folded(
        "folded",
        DiffQuery::default(),
        [&[("main;a;b;a", 30), ("main;a", 50), ("main;gone", 20)], &[("main;a;b", 100), ("main;new", 100)]],
    );
    let values = |change: ValueChange| (change.before.value, change.after.value);
    assert_eq!(values(row(&view, "a").self_change), (0.8, 0.0));
    assert_eq!(values(row(&view, "a").total_change), (0.8, 0.5));
    assert_eq!(values(row(&view, "b").self_change), (0.0, 0.5));
    assert_eq!(values(row(&view, "main").total_change), (1.0, 1.0));
    assert_eq!(Presence::of(&row(&view, "gone").total_change), Presence::Vanished);
    assert_eq!(Presence::of(&row(&view, "new").total_change), Presence::Appeared);
    assert_eq!(Presence::of(&row(&view, "b").total_change), Presence::Both);
    assert_eq!((view.basis, view.measure), (NoiseBasis::Independent, DiffMeasure::Share));
    let paths: Vec<_> = view.paths.iter().map(|path| path.frames.len()).collect();
    assert_eq!(paths.len(), 5);
    let roots: Vec<_> = view.tree.iter().filter(|node| node.caller.is_none()).collect();
    assert_eq!((roots.len(), roots[0].total_values), (1, [1.0, 1.0]));
}

#[test]
fn a_focus_divides_by_the_whole_and_hidden_frames_are_passed_over() {
    let pattern = |source: &str| Some(crate::Pattern::new(source).unwrap());
    let query = DiffQuery { focus: pattern("^pay$"), hide: pattern("^glue$"), ..DiffQuery::default() };
    let sides: [&[(&str, u64)]; 2] =
        [&[("main;glue;pay;db", 100), ("main;idle", 900)], &[("main;pay;db", 300), ("main;idle", 700)]];
    let view = folded("folded", query, sides);
    assert_eq!((view.whole.before.value, view.whole.after.value), (0.1, 0.3));
    assert_eq!(row(&view, "db").self_change.difference(), 0.3 - 0.1);
    assert!(view.functions.iter().all(|row| row.frame.function != b"idle" && row.frame.function != b"glue"));
    assert_eq!(view.paths[0].frames.len(), 3);
}

#[test]
fn time_per_request_is_sampled_time_over_distinct_values_of_the_label() {
    let mut tables = Tables::default();
    let [work, idle] = ["work", "idle"].map(|name| stack(&mut tables, &[name]));
    let key = tables.intern_string(b"request").unwrap();
    let requests: Vec<_> = (0..10)
        .map(|value| {
            tables.intern_labels(&[Label { key, value: LabelValue::Number { value, unit: None } }]).unwrap()
        })
        .collect();
    let query = DiffQuery { per: Per::Label(b"request".to_vec()), ..DiffQuery::default() };
    let at = Context { tables: &tables, segment: &SEGMENT };
    let mut sink = DiffSink::new(query.clone());
    for (each, requests) in [(20, &requests[..10]), (30, &requests[..5])] {
        sink.segment(at).unwrap();
        for &labels in requests {
            let sample = Sample { stack: Some(work), count: each, labels: Some(labels), ..Sample::default() };
            let _ = sink.sample(at, &sample).unwrap();
        }
        let _ = sink.sample(at, &Sample { stack: Some(idle), count: 7, ..Sample::default() }).unwrap();
        sink.begin_after();
    }
    sink.finish(&tables).unwrap();
    let view = sink.into_view();
    assert_eq!((view.measure, view.before.divisor, view.after.divisor), (DiffMeasure::Seconds, 10.0, 5.0));
    let work = row(&view, "work").self_change;
    assert!((work.before.value - 0.020).abs() < 1e-12 && (work.after.value - 0.030).abs() < 1e-12);

    let mut none = DiffSink::new(query);
    none.segment(at).unwrap();
    let _ = none.sample(at, &Sample { stack: Some(idle), count: 1, ..Sample::default() }).unwrap();
    let error = none.finish(&tables).unwrap_err().to_string();
    assert_eq!(
        error,
        "missing label: expected samples with the label 'request' on both sides, found a side without it"
    );
}

#[test]
fn nothing_one_sample_and_huge_runs_are_compared_too() {
    let empty = folded("rbt", DiffQuery::default(), [&[], &[]]);
    assert_eq!((empty.functions.len(), marked(&empty)), (0, 0));
    let one = folded("rbt", DiffQuery::default(), [&[("main", 1)], &[]]);
    assert_eq!((row(&one, "main").self_change.before.value, marked(&one)), (1.0, 0));
    let huge = folded("rbt", DiffQuery::default(), [&[("a", 1 << 40), ("b", 1 << 40)], &[("a", 1 << 62)]]);
    assert_eq!(row(&huge, "a").self_change.before.value, 0.5);
    let deep = vec!["f"; 20_000].join(";");
    let deep = folded("rbt", DiffQuery::default(), [&[(&deep, 10)], &[(&deep, 10)]]);
    assert_eq!((deep.functions.len(), deep.distinct_paths), (1, 20_000));
}

#[test]
fn a_clock_that_goes_back_stays_in_its_input() {
    let mut tables = Tables::default();
    let work = stack(&mut tables, &["work"]);
    let segment = Segment { has_times: true, ..SEGMENT };
    let at = Context { tables: &tables, segment: &segment };
    let mut sink = DiffSink::new(DiffQuery::default());
    for times in [[5_000_000_000_i64, -9, i64::MIN, 7_000_000_000], [1, i64::MAX, i64::MIN, 3]] {
        sink.segment(at).unwrap();
        for time_ns in times {
            let sample = Sample { stack: Some(work), count: 1, time_ns: Some(time_ns), ..Sample::default() };
            let _ = sink.sample(at, &sample).unwrap();
        }
        sink.begin_after();
    }
    sink.finish(&tables).unwrap();
    let view = sink.into_view();
    assert_eq!((row(&view, "work").self_change.before.value, marked(&view)), (1.0, 0));
}
