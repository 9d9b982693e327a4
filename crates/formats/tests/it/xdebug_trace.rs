//! Traces of Xdebug: both formats of one program, and the times of one by another sum.

use std::collections::BTreeMap;

use borehole_formats::{Error, ReadError, ReadOptions, xdebug_trace};
use borehole_model::{Count, Recovery, Tables};
use borehole_testkit::read_corpus;

use crate::damage::each_change;
use crate::play::{Collect, collected};

fn read_with(bytes: &[u8], options: &ReadOptions) -> Result<(Collect, Recovery), Error> {
    collected(|tables, sink| xdebug_trace::import(bytes, options, tables, sink))
}

fn read(file: &str) -> Collect {
    let (collect, recovery) =
        read_with(&read_corpus(&format!("xdebug/{file}")), &ReadOptions::default()).unwrap();
    assert!(recovery.is_clean(), "{:?}", recovery.warnings);
    collect
}

/// By stack of functions: the calls, and the time in nanoseconds.
fn sums(collect: &Collect) -> BTreeMap<String, [i64; 2]> {
    let mut sums = BTreeMap::<_, [i64; 2]>::new();
    for sample in collect.samples() {
        let names = sample.frames_leaf_first.iter().rev().map(|frame| frame.function.as_str());
        let sum = sums.entry(names.collect::<Vec<_>>().join(";")).or_default();
        sum[0] += sample.values[0];
        sum[1] += sample.values[1];
    }
    sums
}

#[test]
fn calls_and_times_are_those_of_the_lines() {
    let text = String::from_utf8(read_corpus("xdebug/calls.1.xt")).unwrap();
    let rows = text.lines().map(|line| line.split('\t').collect::<Vec<_>>()).filter(|row| row.len() > 4);
    let rows: Vec<_> = rows.collect();
    let time = |row: &[&str]| row[3].replace('.', "").parse::<i64>().unwrap() * 1000;
    let (mut calls, mut totals) = (BTreeMap::<_, i64>::new(), BTreeMap::<_, i64>::new());
    for row in rows.iter().filter(|row| row[2] == "0") {
        *calls.entry(row[5].to_owned()).or_default() += 1;
        let end = rows.iter().find(|end| end[1] == row[1] && end[2] == "1").unwrap();
        *totals.entry(row[5].to_owned()).or_default() += time(end) - time(row);
    }
    let collect = read("calls.1.xt");
    let (mut our_calls, mut our_totals) = (BTreeMap::<_, i64>::new(), BTreeMap::<_, i64>::new());
    for sample in collect.samples() {
        *our_calls.entry(sample.frames_leaf_first[0].function.clone()).or_default() += sample.values[0];
        // A function that calls itself is in progress as often as it is in the stack.
        for frame in &sample.frames_leaf_first {
            *our_totals.entry(frame.function.clone()).or_default() += sample.values[1];
        }
    }
    assert!(calls["fib"] == 15 && calls.len() == 9, "{calls:?}");
    assert_eq!(our_calls, calls);
    assert_eq!(our_totals, totals);
}

#[test]
fn both_formats_have_the_same_calls() {
    let calls = |file: &str| {
        let sums = sums(&read(file)).into_iter().filter(|(_, [calls, _])| *calls > 0);
        sums.map(|(stack, [calls, _])| (stack, calls)).collect::<BTreeMap<_, _>>()
    };
    assert_eq!(calls("calls.0.xt"), calls("calls.1.xt"));
    let total = |file: &str| sums(&read(file)).values().map(|[_, time]| time).sum::<i64>();
    // The format for people has four digits behind the point.
    let both = [total("calls.0.xt"), total("calls.1.xt")];
    assert!(both.iter().all(|&total| total > 2_000_000), "{both:?}");
}

#[test]
fn callers_have_the_places_of_their_calls() {
    let collect = read("calls.1.xt");
    let sample = collect.samples().find(|sample| sample.frames_leaf_first[0].function == "usleep").unwrap();
    let place = |index: usize| {
        let frame = &sample.frames_leaf_first[index];
        (&*frame.function, frame.file.as_deref(), frame.line)
    };
    assert_eq!(place(0), ("usleep", None, None));
    assert_eq!(place(1), ("Shop::open", Some("/srv/shop/calls.php"), Some(6)));
    assert_eq!(place(2), ("{main}", Some("/srv/shop/calls.php"), Some(8)));
}

#[test]
fn a_trace_that_is_cut_off_has_the_calls_so_far() {
    let bytes = read_corpus("xdebug/calls.1.xt");
    let text = String::from_utf8(bytes).unwrap();
    let cut: String = text.lines().take(7).map(|line| format!("{line}\n")).collect();
    let (collect, recovery) = read_with(cut.as_bytes(), &ReadOptions::default()).unwrap();
    assert!(recovery.is_clean());
    assert_eq!(sums(&collect).values().map(|[calls, _]| calls).sum::<i64>(), 3);
    let error = read_with(format!("{cut}nothing\n").as_bytes(), &ReadOptions::default()).err().unwrap();
    assert_eq!(error.message(), "expected a call or its end, found \"nothing\"");
}

#[test]
fn every_prefix_and_every_changed_byte_is_survived() {
    let bytes = read_corpus("xdebug/calls.1.xt");
    let bytes = &bytes[..bytes.len().min(2000)];
    for cut in 0..bytes.len() {
        let _ = read_with(&bytes[..cut], &ReadOptions::lenient());
    }
    each_change(bytes, 1, &[b'0', b'\t', b'9', b' ', b'\n', 0xff], |changed, _| {
        let _ = read_with(changed, &ReadOptions::lenient());
    });
}

#[test]
fn calls_in_progress_are_bounded_by_the_memory() {
    let deep = |depth: usize| {
        let call = |depth| format!("{depth}\t{depth}\t0\t0.1\t1\tf\t1\t\t/a.php\t3\t0\n");
        format!("Version: 3\n{}", (1..=depth).map(call).collect::<String>())
    };
    let counted = |options: &ReadOptions| {
        let mut count = Count::default();
        let text = deep(20_000);
        xdebug_trace::import(text.as_bytes(), options, &mut Tables::default(), &mut count)
            .map(|_| count.samples)
    };
    let mut options = ReadOptions::default();
    assert_eq!(counted(&options).unwrap(), 20_000);
    options.limits.memory_bytes = 100 << 10;
    assert!(matches!(counted(&options), Err(ReadError::Input(error)) if error.is_memory()));
}
