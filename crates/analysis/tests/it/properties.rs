//! Random profiles under random queries.

use borehole_analysis::{
    Breakdown, By, Collapse, FrameGroup, GroupValue, LabelText, LineRows, OpcodeRows, PathStyle, Pattern,
    Query, Recursion, ReportTable, ReportView, Share,
};
use proptest::prelude::*;
use proptest::sample::select;

use crate::naive::{self, Answers, Counts};
use crate::profile::{F, S, view};

const FUNCTIONS: [&[u8]; 9] =
    [b"a", b"b", b"App\\C::m", b"App\\C::n", b"D::m", b"\xff\xfe", b"hidden", b"<root>", b"a /x.php:1"];
const FILES: [Option<&[u8]>; 4] = [None, Some(b"/x.php"), Some(b"/dir/y.php"), Some(b"")];
const PATTERNS: [&str; 9] = ["^a", "hidden", "::m", r"\.php:1$", "zzz", ".", r"\xff", r"^App\\", "INIT"];

fn frame() -> impl Strategy<Value = F> {
    let place = (select(&FILES), select(&[None, Some(-1), Some(1), Some(2)][..]));
    let extra = (prop::bool::weighted(0.1), select(&[None, Some("INIT"), Some("")][..]));
    (select(&FUNCTIONS), place, extra).prop_map(|(function, (file, line), (native, opcode))| F {
        function: function.to_vec(),
        file: file.map(<[u8]>::to_vec),
        line,
        module: native.then(|| b"/lib/libc.so".to_vec()),
        opcode: opcode.map(|opcode| opcode.as_bytes().to_vec()),
    })
}

fn labels() -> impl Strategy<Value = Option<Vec<(Vec<u8>, Vec<u8>)>>> {
    let label = (select(&["url", "query"][..]), select(&["/", "/x", ""][..]));
    let bytes = |(key, value): (&str, &str)| (key.as_bytes().to_vec(), value.as_bytes().to_vec());
    prop::option::of(prop::collection::vec(label.prop_map(bytes), 0..3))
}

pub(crate) fn samples() -> impl Strategy<Value = Vec<S>> {
    let frames = prop::collection::vec(frame(), 0..8);
    // Stacks come from a small pool, so that they repeat and share callers.
    prop::collection::vec(frames, 1..6).prop_flat_map(|pool| {
        let stack = (select(pool), prop::collection::vec(frame(), 0..2));
        let stack = stack.prop_map(|(callers, leaves)| [leaves, callers].concat());
        let who = (select(&[None, Some(7), Some(8)][..]), select(&[None, Some(1), Some(2)][..]));
        let period = select(&[None, Some(10), Some(1_000_000)][..]);
        let sample = (stack, 0_u64..5, period, who, labels());
        let sample = sample.prop_map(|(frames, count, period_ns, (process, thread), labels)| S {
            frames,
            count,
            period_ns,
            process,
            thread,
            labels,
            time_ns: None,
        });
        prop::collection::vec(sample, 0..40)
    })
}

pub(crate) fn query() -> impl Strategy<Value = Query> {
    let pattern = || prop::option::of(select(&PATTERNS).prop_map(|source| Pattern::new(source).unwrap()));
    let by = prop::option::of(select(vec![
        By::Label(b"url".to_vec()),
        By::Process,
        By::Thread,
        By::File,
        By::Class,
    ]));
    let detail = (any::<bool>(), any::<bool>(), by, 0_u64..6);
    let shape = (pattern(), pattern(), any::<bool>(), prop::bool::weighted(0.3));
    (detail, shape, pattern(), pattern(), pattern(), pattern()).prop_map(
        |((lines, opcodes, by, last), (exclude, focus, folded, collapsed), hide, keep, callers, callees)| {
            Query {
                exclude: exclude.filter(|_| last % 2 == 0),
                focus: focus.filter(|_| last % 3 == 0),
                recursion: if folded { Recursion::Folded } else { Recursion::Kept },
                collapse: collapsed.then(collapse).into_iter().collect(),
                lines: if lines { LineRows::Apart } else { LineRows::Together },
                opcodes: if opcodes { OpcodeRows::Apart } else { OpcodeRows::Together },
                hide,
                keep,
                callers,
                callees,
                last,
                by,
                ..Query::default()
            }
        },
    )
}

fn collapse() -> Collapse {
    Collapse { pattern: Pattern::new("::m").unwrap(), name: b"[methods]".to_vec() }
}

fn counts(table: &ReportTable) -> Counts<Vec<u8>> {
    assert_eq!(table.rows.len(), table.distinct);
    Counts(table.rows.iter().map(|row| with(row.frame.text(PathStyle::Full), row.share)).collect())
}

fn with<K>(key: K, share: Share) -> (K, u64, u128) {
    (key, share.count, share.time_ns.unwrap_or(0))
}

fn value(value: &GroupValue) -> Option<(Option<i64>, Vec<u8>)> {
    match value {
        GroupValue::Absent => None,
        GroupValue::Label(LabelText::Text(text)) => Some((None, text.clone())),
        GroupValue::Label(LabelText::Number(..)) => panic!("the profiles have no numeric labels"),
        GroupValue::Process(process) => Some((Some(*process), Vec::new())),
        GroupValue::Interpreter(_) => panic!("no query is about interpreters"),
        GroupValue::Thread { process, thread, .. } => Some((*process, thread.to_string().into_bytes())),
    }
}

fn check_breakdown(breakdown: &Breakdown, expected: &Answers) {
    match breakdown {
        Breakdown::Samples { rows, distinct } => {
            let found = rows.iter().map(|row| with(value(&row.value), row.share)).collect();
            assert_eq!(Counts(found), expected.groups);
            assert_eq!(rows.len(), *distinct);
        }
        Breakdown::Frames { rows, distinct } => {
            let total = rows.iter().map(|row| with(row.name.clone(), row.total_share));
            assert_eq!(sorted(total.collect()), sorted(expected.part_total.0.clone()));
            let self_counts = rows.iter().map(|row| with(row.name.clone(), row.self_share));
            let self_counts = self_counts.filter(|row| row.1 > 0).collect();
            assert_eq!(sorted(self_counts), sorted(expected.part_self.0.clone()));
            // Percentages are those of times if every sample has a period.
            let key = |row: &FrameGroup| (row.self_share.percent, row.total_share.percent);
            assert!(rows.is_sorted_by(|one, other| key(one) >= key(other)));
            assert_eq!(rows.len(), *distinct);
        }
    }
}

fn sorted<T: Ord>(mut rows: Vec<T>) -> Vec<T> {
    rows.sort();
    rows
}

fn check_last(view: &ReportView, expected: &Answers) {
    let mut found = Vec::new();
    let runs = view.last.iter().flatten();
    let mut later: u64 = runs.clone().map(|run| run.count).sum();
    for run in runs {
        later -= run.count;
        assert_eq!(run.age, later);
        assert_eq!(run.depth, run.frames_leaf_first.len());
        let frames: Vec<_> = run.frames_leaf_first.iter().map(|frame| frame.text(PathStyle::Full)).collect();
        found.extend(std::iter::repeat_n(frames, usize::try_from(run.count).unwrap()));
    }
    assert_eq!(found, expected.last);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn views_equal_the_naive_reading(samples in samples(), query in query()) {
        let expected = naive::answers(&samples, &query);
        let found = view(&samples, query.clone());
        prop_assert_eq!(found.summary.samples, expected.samples);
        prop_assert_eq!(found.summary.matched, expected.matched);
        prop_assert_eq!(found.summary.frames, expected.total.0.len());
        prop_assert_eq!(counts(&found.self_table), expected.self_counts.clone());
        prop_assert_eq!(counts(&found.total_table), expected.total.clone());
        let callers = query.callers.is_some().then(|| expected.callers.clone());
        prop_assert_eq!(found.callers.as_ref().map(counts), callers);
        let callees = query.callees.is_some().then(|| expected.callees.clone());
        prop_assert_eq!(found.callees.as_ref().map(counts), callees);
        prop_assert_eq!(found.breakdown.is_some(), query.by.is_some());
        found.breakdown.iter().for_each(|breakdown| check_breakdown(breakdown, &expected));
        check_last(&found, &expected);
    }

    #[test]
    fn a_limit_cuts_tables_and_says_so(samples in samples(), limit in 0_usize..4) {
        let all = view(&samples, Query { by: Some(By::Process), ..Query::default() });
        let cut = view(&samples, Query { by: Some(By::Process), limit: Some(limit), ..Query::default() });
        for (all, cut) in [(&all.self_table, &cut.self_table), (&all.total_table, &cut.total_table)] {
            prop_assert_eq!(&all.rows[..limit.min(all.rows.len())], &cut.rows[..]);
            prop_assert_eq!(all.distinct, cut.distinct);
        }
        let (Some(Breakdown::Samples { rows, distinct }), Some(Breakdown::Samples { rows: cut, distinct: same })) =
            (all.breakdown, cut.breakdown) else { panic!("processes are selected by samples") };
        prop_assert_eq!(distinct, same);
        prop_assert_eq!(&rows[..limit.min(rows.len())], &cut[..]);
    }
}
