//! Pages of profiles of any size.

use borehole_model::{Context, Frame, ProfileSink as _, Sample, Segment, Tables};

use super::*;
use crate::ProfileBuilder;

/// A profile of folded stacks, root first: one sample per millisecond, in turn for each thread. A function name may be followed
/// by its file.
fn profile(stacks: &[(String, u64)], threads: u64, has_times: bool) -> Profile {
    let mut tables = Tables::default();
    let stacks: Vec<_> = stacks
        .iter()
        .map(|(names, count)| {
            let frames: Vec<_> = names
                .split(';')
                .rev()
                .map(|name| {
                    let (name, file) = name.split_once(' ').unwrap_or((name, ""));
                    let function = tables.intern_string(name.as_bytes()).unwrap();
                    let file = (!file.is_empty()).then(|| tables.intern_string(file.as_bytes()).unwrap());
                    tables.intern_frame(&Frame { file, ..Frame::named(function) }).unwrap()
                })
                .collect();
            (tables.intern_stack_leaf_first(&frames).unwrap(), *count)
        })
        .collect();
    let segment = Segment::default();
    let at = Context { tables: &tables, segment: &segment };
    let mut builder = ProfileBuilder::default();
    builder.segment(at).unwrap();
    let mut time_ns = 0;
    for (stack, count) in stacks {
        for _ in 0..count {
            let thread = Some(u64::try_from(time_ns).unwrap() / 1_000_000 % threads);
            let time = has_times.then_some(time_ns);
            let sample = Sample { stack, count: 1, thread, time_ns: time, ..Sample::default() };
            let _ = builder.sample(at, &sample).unwrap();
            time_ns += 1_000_000;
        }
    }
    builder.finish(&tables).unwrap();
    builder.into_profile(tables)
}

fn stacks(stacks: &[(&str, u64)]) -> Vec<(String, u64)> {
    stacks.iter().map(|&(names, count)| (names.to_owned(), count)).collect()
}

#[test]
fn cells_hold_every_sample_and_the_top_is_of_everything() {
    let profile = profile(&stacks(&[("main;a;b", 30), ("main;a", 20), ("main;c;b", 50)]), 2, true);
    let page = ProfilePage::new(&profile, PageLimits::default()).unwrap();
    assert_eq!(page.cells.iter().map(|cell| cell.value).sum::<i64>(), 100);
    let rows: Vec<_> = page
        .top
        .iter()
        .map(|row| {
            (String::from_utf8_lossy(&page.functions[row.function].name), row.self_weight, row.total_weight)
        })
        .collect();
    let rows: Vec<_> = rows.iter().map(|(name, weight, total)| (&**name, *weight, *total)).collect();
    assert_eq!(rows, [("b", 80, 80), ("a", 20, 50), ("main", 0, 100), ("c", 0, 50)]);
    assert_eq!((page.calls.len(), page.pruned.paths, page.distinct_functions), (5, 0, 4));
    assert_eq!(page.dimensions[0].values.len(), 2);
    assert!(page.time.is_some_and(|time| time.slices > 90 && time.slices <= 128));
}

#[test]
fn functions_of_one_name_are_as_many_as_their_files() {
    let profile =
        profile(&stacks(&[("main;run a.py", 10), ("main;run b.py", 90), ("run b.py;run a.py", 5)]), 1, false);
    let page = ProfilePage::new(&profile, PageLimits::default()).unwrap();
    let rows = page.top.iter().map(|row| {
        let PageFunction { name, file } = &page.functions[row.function];
        (str::from_utf8(name).unwrap(), file.as_deref(), row.self_weight, row.total_weight)
    });
    let expected =
        [("run", Some(&b"b.py"[..]), 90, 95), ("run", Some(b"a.py"), 15, 15), ("main", None, 0, 100)];
    assert_eq!(rows.collect::<Vec<_>>(), expected);
    assert_eq!((page.calls.len(), page.distinct_functions), (5, 3));
}

#[test]
fn the_top_table_has_the_first_by_both_of_its_columns() {
    let leaves = (0..30).map(|leaf| (format!("main;middle;leaf{leaf}"), 100 - leaf));
    let limits = PageLimits { rows: 10, ..PageLimits::default() };
    let page = ProfilePage::new(&profile(&leaves.collect::<Vec<_>>(), 1, false), limits).unwrap();
    let most = page.top.iter().map(|row| (row.total_weight, &*page.functions[row.function].name)).max();
    assert_eq!(most, Some((2565, &b"middle"[..])));
    assert_eq!((page.top.len(), page.top[9].self_weight, page.distinct_functions), (12, 91, 32));
}

#[test]
fn what_is_too_small_is_counted_beside_its_siblings() {
    let mut all = stacks(&[("main;large", 99_000)]);
    all.extend((0..1000).map(|number| (format!("main;small{number};leaf"), 1)));
    let page = ProfilePage::new(&profile(&all, 1, false), PageLimits::default()).unwrap();
    assert_eq!((page.calls.len(), page.pruned.paths, page.pruned.value), (3, 2000, 1000));
    let small = page.calls.iter().position(|call| call.function.is_none()).unwrap();
    let of_small = page.cells.iter().filter(|cell| cell.call == small);
    assert_eq!(of_small.map(|cell| cell.value).sum::<i64>(), 1000);
    assert_eq!((page.distinct_functions, page.time), (1003, None));
    assert_eq!(page.cells.iter().map(|cell| cell.value).sum::<i64>(), 100_000);
}

#[test]
fn limits_hold_however_many_stacks_threads_and_moments_there_are() {
    let all: Vec<_> = (0..3000).map(|number| (format!("main;{};{number}", ["f"; 9].join(";")), 10)).collect();
    let profile = profile(&all, 50, true);
    let limits = PageLimits { calls: 500, cells: 800, ..PageLimits::default() };
    let page = ProfilePage::new(&profile, limits).unwrap();
    assert!(page.calls.len() <= 500 && page.cells.len() <= 800, "{} {}", page.calls.len(), page.cells.len());
    assert_eq!(page.cells.iter().map(|cell| cell.value).sum::<i64>(), 30_000);
}

#[test]
fn nothing_and_very_deep_stacks_have_pages_too() {
    let page = ProfilePage::new(&profile(&[], 1, true), PageLimits::default()).unwrap();
    assert_eq!((page.calls.len(), page.cells.len(), page.top.len()), (0, 0, 0));
    let deep = vec![(["f"; 20_000].join(";"), 7)];
    let page = ProfilePage::new(&profile(&deep, 1, true), PageLimits::default()).unwrap();
    assert_eq!((page.calls.len(), page.pruned.value, page.top[0].total_weight), (401, 7, 7));
}

/// As after a selection of samples by thread or time.
#[test]
fn stacks_without_samples_have_no_place_on_a_page() {
    let all = stacks(&[("other;a;b", 0), ("main;a", 5), ("main;c;d", 0), ("last", 0)]);
    let page = ProfilePage::new(&profile(&all, 1, true), PageLimits::default()).unwrap();
    assert_eq!((page.calls.len(), page.pruned.paths), (2, 0));
    assert!(page.cells.iter().all(|cell| cell.call == 1));
    assert_eq!(page.cells.iter().map(|cell| cell.value).sum::<i64>(), 5);
    let none = ProfilePage::new(&profile(&all[..1], 1, true), PageLimits::default()).unwrap();
    assert_eq!((none.calls.len(), none.cells.len()), (0, 0));
}

#[test]
fn a_page_below_a_call_shows_what_the_page_of_everything_is_too_small_for() {
    let mut folded = stacks(&[("main;a", 40), ("main", 10), ("other;a;b", 30), ("main;b;a", 20)]);
    folded.extend((0..100).map(|leaf| (format!("main;a;leaf{leaf}"), 1)));
    let profile = profile(&folded, 3, true);
    let limits = PageLimits { calls: 20, ..PageLimits::default() };
    let selection = SampleSelection::default();
    let names = |page: &ProfilePage, call: &PageCall| {
        call.function.map(|place| String::from_utf8(page.functions[place].name.clone()).unwrap())
    };
    let everything = ProfilePage::new(&profile, limits).unwrap();
    assert!(everything.calls.len() <= 20 && everything.pruned.paths == 100, "{:?}", everything.pruned);

    let below = |path: &[&str]| {
        let is_called = |level: usize, name: &[u8]| path[level].as_bytes() == name;
        let pattern = CallPattern { levels: path.len(), is_called: &is_called };
        let limits = PageLimits { calls: 200, ..limits };
        ProfilePage::below(&profile, &selection, pattern, limits).unwrap()
    };
    let page = below(&["main", "a"]);
    assert_eq!((page.calls.len(), page.pruned.paths), (102, 0));
    assert_eq!(names(&page, &page.calls[0]).as_deref(), Some("main"));
    assert_eq!((page.calls[1].caller, names(&page, &page.calls[1]).as_deref()), (Some(0), Some("a")));
    // Samples of the caller itself, and of the same function elsewhere, are not below it.
    assert_eq!(page.cells.iter().map(|cell| cell.value).sum::<i64>(), 140);
    assert!(page.cells.iter().all(|cell| cell.call > 0));
    let top = page.top.iter().find(|row| page.functions[row.function].name == b"a").unwrap();
    assert_eq!((top.self_weight, top.total_weight, page.distinct_functions), (40, 140, 102));
    // The end of the path may be the root, or nowhere.
    assert_eq!(below(&["other"]).cells.iter().map(|cell| cell.value).sum::<i64>(), 30);
    assert_eq!((below(&["main", "c"]).calls.len(), below(&["a"]).cells.len()), (0, 0));
    assert_eq!(below(&[]).cells.iter().map(|cell| cell.value).sum::<i64>(), 200);
}
