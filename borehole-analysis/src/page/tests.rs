//! Pages of profiles of any size.

use borehole_model::{Context, Frame, ProfileSink as _, Sample, Segment, Tables};

use super::*;
use crate::ProfileBuilder;

/// A profile of folded stacks, root first, each a sample a millisecond of one of some threads.
fn profile(stacks: &[(String, u64)], threads: u64, has_times: bool) -> Profile {
    let mut tables = Tables::default();
    let stacks: Vec<_> = stacks
        .iter()
        .map(|(names, count)| {
            let frames: Vec<_> = names
                .split(';')
                .rev()
                .map(|name| {
                    let function = tables.intern_string(name.as_bytes()).unwrap();
                    tables.intern_frame(&Frame::named(function)).unwrap()
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
    let page = Page::new(&profile, PageLimits::default()).unwrap();
    assert_eq!(page.cells.iter().map(|cell| cell.samples).sum::<u64>(), 100);
    let rows: Vec<_> = page
        .top
        .iter()
        .map(|row| (String::from_utf8_lossy(&page.functions[row.function].name), row.own, row.total))
        .collect();
    let rows: Vec<_> = rows.iter().map(|(name, own, total)| (&**name, *own, *total)).collect();
    assert_eq!(rows, [("b", 80, 80), ("a", 20, 50), ("main", 0, 100), ("c", 0, 50)]);
    assert_eq!((page.calls.len(), page.pruned.paths, page.distinct_functions), (5, 0, 4));
    assert_eq!(page.dimensions[0].values.len(), 2);
    assert!(page.time.is_some_and(|time| time.slices > 90 && time.slices <= 128));
}

#[test]
fn what_is_too_small_is_counted_beside_its_siblings() {
    let mut all = stacks(&[("main;large", 99_000)]);
    all.extend((0..1000).map(|number| (format!("main;small{number};leaf"), 1)));
    let page = Page::new(&profile(&all, 1, false), PageLimits::default()).unwrap();
    assert_eq!((page.calls.len(), page.pruned.paths, page.pruned.samples), (3, 2000, 1000));
    let small = page.calls.iter().position(|call| call.function.is_none()).unwrap();
    let of_small = page.cells.iter().filter(|cell| cell.call == small);
    assert_eq!(of_small.map(|cell| cell.samples).sum::<u64>(), 1000);
    assert_eq!((page.distinct_functions, page.time), (1003, None));
    assert_eq!(page.cells.iter().map(|cell| cell.samples).sum::<u64>(), 100_000);
}

#[test]
fn limits_hold_however_many_stacks_threads_and_moments_there_are() {
    let all: Vec<_> = (0..3000).map(|number| (format!("main;{};{number}", ["f"; 9].join(";")), 10)).collect();
    let profile = profile(&all, 50, true);
    let limits = PageLimits { calls: 500, cells: 800, ..PageLimits::default() };
    let page = Page::new(&profile, limits).unwrap();
    assert!(page.calls.len() <= 500 && page.cells.len() <= 800, "{} {}", page.calls.len(), page.cells.len());
    assert_eq!(page.cells.iter().map(|cell| cell.samples).sum::<u64>(), 30_000);
}

#[test]
fn nothing_and_very_deep_stacks_have_pages_too() {
    let page = Page::new(&profile(&[], 1, true), PageLimits::default()).unwrap();
    assert_eq!((page.calls.len(), page.cells.len(), page.top.len()), (0, 0, 0));
    let deep = vec![(["f"; 20_000].join(";"), 7)];
    let page = Page::new(&profile(&deep, 1, true), PageLimits::default()).unwrap();
    assert_eq!((page.calls.len(), page.pruned.samples, page.top[0].total), (401, 7, 7));
}
