//! Call trees, sandwiches and top tables against the naive reading.

use std::collections::BTreeMap;

use borehole_analysis::{
    Calls, Collapse, Direction, FrameName, Lines, Paths, Pattern, Query, Recursion, Selection, SortBy,
    TimeRange, Tree, Weight,
};
use proptest::prelude::*;

use crate::naive;
use crate::profile::{S, profile, reshaped, sample};
use crate::properties::{query, samples};

type Text = Vec<u8>;

fn text(calls: &Calls, row: usize) -> Text {
    calls.frame(row).text(Paths::Full)
}

fn calls(samples: &[S], query: &Query) -> Calls {
    Calls::new(&profile(samples), query, &Selection::default(), Weight::Samples)
}

/// Path, own and total of every node of a tree.
fn all(calls: &Calls, mut tree: Tree) -> BTreeMap<Vec<Text>, (i64, i64)> {
    let mut found = BTreeMap::new();
    let mut open: Vec<(Vec<Text>, usize)> = (0..tree.roots().len()).map(|node| (Vec::new(), node)).collect();
    while let Some((mut path, node)) = open.pop() {
        path.push(text(calls, tree.node(node).frame));
        found.insert(path.clone(), (tree.node(node).own, tree.node(node).total));
        open.extend(tree.open(calls, node).map(|child| (path.clone(), child)));
    }
    found
}

/// The same, of lists of names.
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
        // The same stacks, once they are all that is left.
        let left = reshaped(&samples, &query);
        let lines = Query { lines: query.lines, opcodes: query.opcodes, ..Query::default() };
        let left = Calls::new(&left, &lines, &Selection::default(), Weight::Samples);
        prop_assert_eq!(left.total(), matched);
        prop_assert_eq!(all(&left, Tree::from_roots(&left)), all(&calls, Tree::from_roots(&calls)));
        let top = calls.top(SortBy::Own);
        let own = top.iter().filter(|row| row.own > 0).map(|row| (text(&calls, row.frame), row.own));
        prop_assert_eq!(own.collect::<BTreeMap<_, _>>(), table(expected.own));
        let total = calls.top(SortBy::Total);
        prop_assert!(total.is_sorted_by_key(|row| std::cmp::Reverse((row.total, row.own))));
        let total = total.iter().map(|row| (text(&calls, row.frame), row.total));
        prop_assert_eq!(total.collect::<BTreeMap<_, _>>(), table(expected.total));

        let from_roots = merged(stacks.iter().map(|(stack, count)| (reversed(stack), *count)));
        prop_assert_eq!(all(&calls, Tree::from_roots(&calls)), from_roots);
        let from_leaves = merged(stacks.iter().cloned());
        prop_assert_eq!(all(&calls, Tree::from_leaves(&calls)), from_leaves);
        if !top.is_empty() {
            let frame = pick.get(&top).frame;
            let name = text(&calls, frame);
            let below = stacks.iter().filter_map(|(stack, count)| {
                let at = stack.iter().rposition(|found| *found == name)?;
                Some((reversed(&stack[..=at]), *count))
            });
            prop_assert_eq!(all(&calls, Tree::below(&calls, frame)), merged(below));
            let above = stacks.iter().filter_map(|(stack, count)| {
                let at = stack.iter().position(|found| *found == name)?;
                Some((stack[at..].to_vec(), *count))
            });
            prop_assert_eq!(all(&calls, Tree::above(&calls, frame)), merged(above));
        }
    }
}

#[test]
fn work_and_memory_are_linear_in_deep_stacks() {
    let names: Vec<String> = (0..20_000).map(|depth| format!("f{}", depth % 7)).collect();
    let frames: Vec<&str> = names.iter().map(String::as_str).collect();
    let samples: Vec<S> = (0..200).map(|cut| sample(&frames[cut..], 1)).collect();
    let calls = calls(&samples, &Query::default());
    let top = calls.top(SortBy::Total);
    assert_eq!(top.len(), 7);
    assert!(top.iter().all(|row| row.total == 200));
    let mut tree = Tree::from_roots(&calls);
    let mut node = 0;
    while let Some(child) = tree.open(&calls, node).next() {
        node = child;
    }
    assert_eq!((tree.node(node).depth, tree.node(node).own), (19_999, 1));
    for tree in
        [Tree::above(&calls, top[0].frame), Tree::below(&calls, top[0].frame), Tree::from_leaves(&calls)]
    {
        assert_eq!(tree.roots().iter().map(|node| node.total).sum::<i64>(), 200, "{:?}", tree.direction());
    }
}

fn pattern(source: &str) -> Option<Pattern> {
    Some(Pattern::new(source).unwrap())
}

/// Paths of whole stacks, root first, with their counts.
fn paths(samples: &[S], query: &Query) -> Vec<String> {
    let calls = calls(samples, query);
    let found = all(&calls, Tree::from_roots(&calls));
    let line = |(path, (own, _)): (Vec<Text>, (i64, i64))| {
        let names: Vec<_> = path.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        (own > 0).then(|| format!("{} {own}", names.join(";")))
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
    // What is hidden decides nothing.
    let hidden = Query { hide: pattern("lib1"), ..exclude };
    assert_eq!(paths(&samples, &hidden), ["main;boot 1", "main;handle;handle 2", "main;handle;lib2;query 3"]);
}

#[test]
fn a_selection_takes_samples_by_what_they_are_beside_their_stack() {
    let at =
        |thread, time_ns, count| S { thread: Some(thread), time_ns: Some(time_ns), ..sample(&["f"], count) };
    let mut samples = vec![at(1, 0, 1), at(2, 5_000_000, 10), at(1, 9_000_000, 100)];
    samples.push(S {
        labels: Some(vec![(b"url".to_vec(), b"/".to_vec())]),
        period_ns: Some(7),
        ..sample(&["f"], 1000)
    });
    let profile = profile(&samples);
    let weighs =
        |selection: Selection, weight| Calls::new(&profile, &Query::default(), &selection, weight).total();
    let all = Selection::default();
    assert_eq!(weighs(all.clone(), Weight::Samples), 1111);
    assert_eq!(weighs(all.clone(), Weight::Value), 7000);
    assert_eq!(weighs(all.clone(), Weight::OnCpu), 0);
    assert_eq!(weighs(Selection { threads: vec![1], ..all.clone() }, Weight::Samples), 101);
    assert_eq!(weighs(Selection { processes: vec![1], ..all.clone() }, Weight::Samples), 0);
    let label = |value: &str| vec![(b"url".to_vec(), value.into())];
    assert_eq!(weighs(Selection { labels: label("/"), ..all.clone() }, Weight::Samples), 1000);
    assert_eq!(weighs(Selection { labels: label("/x"), ..all.clone() }, Weight::Samples), 0);
    let span = profile.timespan().unwrap();
    assert_eq!(weighs(Selection { time: Some(span.whole()), ..all.clone() }, Weight::Samples), 111);
    let time = TimeRange { start_ns: 4_500_000, end_ns: 9_000_000 };
    assert_eq!(weighs(Selection { time: Some(time), ..all }, Weight::Samples), 110);
}

#[test]
fn rows_may_be_files_classes_and_namespaces() {
    use borehole_analysis::Rows;
    let samples = [
        sample(&[r"App\Db::query", r"App\Web\Home::show", r"App\Web\Home::run", "main"], 2),
        sample(&[r"App\helper", "std::thread::run"], 1),
    ];
    let by = |rows| {
        paths(
            &samples,
            &Query { rows, lines: Lines::Together, recursion: Recursion::Folded, ..Query::default() },
        )
    };
    assert_eq!(by(Rows::Classes), [r"<no class>;App\Web\Home;App\Db 2", "std::thread;<no class> 1"]);
    assert_eq!(by(Rows::Namespaces), [r"<no namespace>;App\Web;App 2", "std::thread;App 1"]);
    assert_eq!(by(Rows::Files), ["<no file> 3"]);
    let calls = calls(&samples, &Query::default());
    let name = FrameName { function: b"main".to_vec(), ..FrameName::default() };
    let row = calls.find(&name).unwrap();
    assert_eq!(Tree::below(&calls, row).direction(), Direction::Callees);
    assert_eq!(calls.find(&FrameName::default()), None);
}
