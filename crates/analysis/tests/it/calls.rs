//! Call trees, sandwiches and top tables, compared with a naive reading.

use std::collections::BTreeMap;

use borehole_analysis::{
    Calls, Collapse, FrameName, LazyTree, LineRows, PathStyle, Pattern, Query, Recursion, SampleSelection,
    SortBy, TimeRange, TreeDirection, Weight,
};
use proptest::prelude::*;

use crate::naive;
use crate::profile::{S, profile, reshaped, sample};
use crate::properties::{query, samples};

type Text = Vec<u8>;

fn text(calls: &Calls, row: usize) -> Text {
    calls.frame(row).text(PathStyle::Full)
}

fn calls(samples: &[S], query: &Query) -> Calls {
    Calls::new(&profile(samples), query, &SampleSelection::default(), Weight::Samples)
}

/// The path, self and total of every node of a tree.
fn all(calls: &Calls, mut tree: LazyTree) -> BTreeMap<Vec<Text>, (i64, i64)> {
    let mut found = BTreeMap::new();
    let mut open: Vec<(Vec<Text>, usize)> = (0..tree.roots().len()).map(|node| (Vec::new(), node)).collect();
    while let Some((mut path, node)) = open.pop() {
        path.push(text(calls, tree.node(node).frame));
        found.insert(path.clone(), (tree.node(node).self_weight, tree.node(node).total_weight));
        open.extend(tree.open(calls, node).map(|child| (path.clone(), child)));
    }
    found
}

/// The path, self and total of every node, computed from lists of names.
fn merged(paths: impl Iterator<Item = (Vec<Text>, i64)>) -> BTreeMap<Vec<Text>, (i64, i64)> {
    let mut found: BTreeMap<Vec<Text>, (i64, i64)> = BTreeMap::new();
    for (path, count) in paths {
        for length in 1..=path.len() {
            let node = found.entry(path[..length].to_vec()).or_default();
            node.1 += count;
            node.0 += if length == path.len() { count } else { 0 };
        }
    }
    found
}

fn reversed<T: Clone>(items: &[T]) -> Vec<T> {
    items.iter().rev().cloned().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn trees_and_tables_equal_the_naive_reading(samples in samples(), query in query(), pick in any::<prop::sample::Index>()) {
        let calls = calls(&samples, &query);
        let stacks = naive::stacks(&samples, &query);
        let expected = naive::answers(&samples, &query);
        let matched = i64::try_from(expected.matched).unwrap();
        prop_assert_eq!(calls.total(), matched);
        let table = |counts: naive::Counts<Text>| -> BTreeMap<Text, i64> {
            counts.0.into_iter().map(|(key, count, _)| (key, i64::try_from(count).unwrap())).collect()
        };
        // The rest consists of the same stacks.
        let left = reshaped(&samples, &query);
        let lines = Query { lines: query.lines, opcodes: query.opcodes, ..Query::default() };
        let left = Calls::new(&left, &lines, &SampleSelection::default(), Weight::Samples);
        prop_assert_eq!(left.total(), matched);
        prop_assert_eq!(all(&left, LazyTree::from_roots(&left)), all(&calls, LazyTree::from_roots(&calls)));
        let top = calls.top(SortBy::SelfWeight);
        let self_weights = top.iter().filter(|row| row.self_weight > 0).map(|row| (text(&calls, row.frame), row.self_weight));
        prop_assert_eq!(self_weights.collect::<BTreeMap<_, _>>(), table(expected.self_counts));
        let total = calls.top(SortBy::TotalWeight);
        prop_assert!(total.is_sorted_by_key(|row| std::cmp::Reverse((row.total_weight, row.self_weight))));
        let total = total.iter().map(|row| (text(&calls, row.frame), row.total_weight));
        prop_assert_eq!(total.collect::<BTreeMap<_, _>>(), table(expected.total));

        let from_roots = merged(stacks.iter().map(|(stack, count)| (reversed(stack), *count)));
        prop_assert_eq!(all(&calls, LazyTree::from_roots(&calls)), from_roots);
        let from_leaves = merged(stacks.iter().cloned());
        prop_assert_eq!(all(&calls, LazyTree::from_leaves(&calls)), from_leaves);
        if !top.is_empty() {
            let frame = pick.get(&top).frame;
            let name = text(&calls, frame);
            let below = stacks.iter().filter_map(|(stack, count)| {
                let at = stack.iter().rposition(|found| *found == name)?;
                Some((reversed(&stack[..=at]), *count))
            });
            prop_assert_eq!(all(&calls, LazyTree::below(&calls, frame)), merged(below));
            let above = stacks.iter().filter_map(|(stack, count)| {
                let at = stack.iter().position(|found| *found == name)?;
                Some((stack[at..].to_vec(), *count))
            });
            prop_assert_eq!(all(&calls, LazyTree::above(&calls, frame)), merged(above));
        }
    }
}

#[test]
fn work_and_memory_are_linear_in_deep_stacks() {
    let names: Vec<String> = (0..20_000).map(|depth| format!("f{}", depth % 7)).collect();
    let frames: Vec<&str> = names.iter().map(String::as_str).collect();
    let samples: Vec<S> = (0..200).map(|cut| sample(&frames[cut..], 1)).collect();
    let calls = calls(&samples, &Query::default());
    let top = calls.top(SortBy::TotalWeight);
    assert_eq!(top.len(), 7);
    assert!(top.iter().all(|row| row.total_weight == 200));
    let mut tree = LazyTree::from_roots(&calls);
    let mut node = 0;
    while let Some(child) = tree.open(&calls, node).next() {
        node = child;
    }
    assert_eq!((tree.node(node).depth, tree.node(node).self_weight), (19_999, 1));
    for tree in [
        LazyTree::above(&calls, top[0].frame),
        LazyTree::below(&calls, top[0].frame),
        LazyTree::from_leaves(&calls),
    ] {
        assert_eq!(
            tree.roots().iter().map(|node| node.total_weight).sum::<i64>(),
            200,
            "{:?}",
            tree.direction()
        );
    }
}

fn pattern(source: &str) -> Option<Pattern> {
    Some(Pattern::new(source).unwrap())
}

/// Whole stacks, root first, with their counts.
fn paths(samples: &[S], query: &Query) -> Vec<String> {
    let calls = calls(samples, query);
    let found = all(&calls, LazyTree::from_roots(&calls));
    let line = |(path, (weight, _)): (Vec<Text>, (i64, i64))| {
        let names: Vec<_> = path.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        (weight > 0).then(|| format!("{} {weight}", names.join(";")))
    };
    found.into_iter().filter_map(line).collect()
}

#[test]
fn filters_shape_stacks_before_they_are_counted() {
    let samples = [
        sample(&["query", "lib2", "lib1", "handle", "main"], 3),
        sample(&["handle", "handle", "main"], 2),
        sample(&["boot", "main"], 1),
    ];
    let all = Query::default();
    let focus = Query { focus: pattern("^handle"), ..all.clone() };
    assert_eq!(paths(&samples, &focus), ["handle;handle 2", "handle;lib1;lib2;query 3"]);
    let exclude = Query { exclude: pattern("lib1"), ..all.clone() };
    assert_eq!(paths(&samples, &exclude), ["main;boot 1", "main;handle;handle 2"]);
    let folded = Query { recursion: Recursion::Folded, ..exclude.clone() };
    assert_eq!(paths(&samples, &folded), ["main;boot 1", "main;handle 2"]);
    let lib = Collapse { pattern: Pattern::new("^lib").unwrap(), name: b"[lib]".to_vec() };
    let collapsed = Query { collapse: vec![lib], hide: pattern("main"), ..all };
    assert_eq!(paths(&samples, &collapsed), ["boot 1", "handle;[lib];query 3", "handle;handle 2"]);
    // Hidden frames do not affect the order.
    let hidden = Query { hide: pattern("lib1"), ..exclude };
    assert_eq!(paths(&samples, &hidden), ["main;boot 1", "main;handle;handle 2", "main;handle;lib2;query 3"]);
}

#[test]
fn selections_use_properties_other_than_stacks() {
    let at =
        |thread, time_ns, count| S { thread: Some(thread), time_ns: Some(time_ns), ..sample(&["f"], count) };
    let mut samples = vec![at(1, 0, 1), at(2, 5_000_000, 10), at(1, 9_000_000, 100)];
    samples.push(S {
        labels: Some(vec![(b"url".to_vec(), b"/".to_vec())]),
        period_ns: Some(7),
        ..sample(&["f"], 1000)
    });
    let profile = profile(&samples);
    let weighs = |selection: SampleSelection, weight| {
        Calls::new(&profile, &Query::default(), &selection, weight).total()
    };
    let all = SampleSelection::default();
    assert_eq!(weighs(all.clone(), Weight::Samples), 1111);
    assert_eq!(weighs(all.clone(), Weight::Value), 7000);
    assert_eq!(weighs(all.clone(), Weight::OnCpu), 0);
    assert_eq!(weighs(SampleSelection { threads: vec![1], ..all.clone() }, Weight::Samples), 101);
    assert_eq!(weighs(SampleSelection { processes: vec![1], ..all.clone() }, Weight::Samples), 0);
    let label = |value: &str| vec![(b"url".to_vec(), value.into())];
    assert_eq!(weighs(SampleSelection { labels: label("/"), ..all.clone() }, Weight::Samples), 1000);
    assert_eq!(weighs(SampleSelection { labels: label("/x"), ..all.clone() }, Weight::Samples), 0);
    let span = profile.timespan().unwrap();
    assert_eq!(weighs(SampleSelection { time: Some(span.whole()), ..all.clone() }, Weight::Samples), 111);
    let time = TimeRange { start_ns: 4_500_000, end_ns: 9_000_000 };
    assert_eq!(weighs(SampleSelection { time: Some(time), ..all }, Weight::Samples), 110);
}

#[test]
fn rows_may_be_files_classes_and_namespaces() {
    use borehole_analysis::RowKind;
    let samples = [
        sample(&[r"App\Db::query", r"App\Web\Home::show", r"App\Web\Home::run", "main"], 2),
        sample(&[r"App\helper", "std::thread::run"], 1),
    ];
    let by = |rows| {
        paths(
            &samples,
            &Query { rows, lines: LineRows::Together, recursion: Recursion::Folded, ..Query::default() },
        )
    };
    assert_eq!(by(RowKind::Classes), [r"<no class>;App\Web\Home;App\Db 2", "std::thread;<no class> 1"]);
    assert_eq!(by(RowKind::Namespaces), [r"<no namespace>;App\Web;App 2", "std::thread;App 1"]);
    assert_eq!(by(RowKind::Files), ["<no file> 3"]);
    let calls = calls(&samples, &Query::default());
    let name = FrameName { function: b"main".to_vec(), ..FrameName::default() };
    let row = calls.find(&name).unwrap();
    assert_eq!(LazyTree::below(&calls, row).direction(), TreeDirection::Callees);
    assert_eq!(calls.find(&FrameName::default()), None);
}
