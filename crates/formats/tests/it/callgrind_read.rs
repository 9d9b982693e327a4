//! Callgrind profiles of other programs, compared with what `callgrind_annotate` says of them.

use std::collections::BTreeMap;

use borehole_formats::{Error, Export as _, ReadOptions, callgrind};
use borehole_model::{ProfileSink as _, Recovery, Tables};
use borehole_testkit::peers::peer;
use borehole_testkit::{Scratch, read_corpus};

use crate::damage::each_change;
use crate::play::{Collect, PlainFrame, collected};

/// The files of the corpus, with an event of each as it is in the file, and its unit in ours.
const FILES: [(&str, &str, i64); 6] = [
    ("calls.callgrind", "Ir", 1),
    ("plain.callgrind", "Ir", 1),
    ("plain.callgrind", "Dr", 1),
    ("calls.cachegrind", "Ir", 1),
    ("calls.xdebug", "Time_(10ns)", 10),
    ("calls.xdebug", "Memory_(bytes)", 1),
];

fn read_with(bytes: &[u8], options: &ReadOptions) -> Result<(Collect, Recovery), Error> {
    collected(|tables, sink| callgrind::import(bytes, options, tables, sink))
}

fn read(text: &str) -> Collect {
    let (collect, recovery) = read_with(text.as_bytes(), &ReadOptions::default()).unwrap();
    assert!(recovery.is_clean(), "{:?}", recovery.warnings);
    collect
}

/// `FILE:FUNCTION`, as `callgrind_annotate` has it.
fn name(frame: &PlainFrame) -> String {
    format!("{}:{}", frame.file.as_deref().unwrap_or("???"), frame.function)
}

/// The sums of leaves, without those that are 0.
fn leaf_sums(collect: &Collect, kind: &str) -> BTreeMap<String, i64> {
    let types = &collect.segments[0].value_types;
    let column = types.iter().position(|(known, _)| known == kind).unwrap();
    let mut sums = BTreeMap::new();
    for sample in collect.samples() {
        *sums.entry(name(&sample.frames_leaf_first[0])).or_default() += sample.values[column];
    }
    sums.retain(|_, sum| *sum != 0);
    sums
}

/// The numbers that `callgrind_annotate` prints; `None` if it is skipped.
fn annotated(file: &str, event: &str, inclusive: &str) -> Option<BTreeMap<String, i64>> {
    let annotate = peer("callgrind_annotate")?;
    peer("perl")?;
    let scratch = Scratch::new();
    let path = scratch.write(file, &read_corpus(&format!("callgrind/{file}")));
    let mut command = annotate.command();
    command.args(["--threshold=100", "--auto=no", "--show-percs=no"]);
    command.args([format!("--show={event}"), format!("--sort={event}"), format!("--inclusive={inclusive}")]);
    let output = command.arg(&path).current_dir(scratch.folder()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let shown = String::from_utf8(output.stdout).unwrap();
    let lines = shown.lines().skip_while(|line| !line.contains("file:function")).skip(2);
    let mut sums = BTreeMap::new();
    for line in lines.take_while(|line| !line.is_empty()) {
        let (count, name) = line.trim().split_once("  ").unwrap();
        let name = name.rsplit_once(" [").map_or(name, |(name, _object)| name);
        sums.insert(name.to_owned(), if count == "." { 0 } else { count.replace(',', "").parse().unwrap() });
    }
    sums.retain(|_, sum| *sum != 0);
    Some(sums)
}

#[test]
fn sums_of_functions_are_those_of_callgrind_annotate() {
    for (file, event, unit) in FILES {
        let (collect, recovery) =
            read_with(&read_corpus(&format!("callgrind/{file}")), &ReadOptions::default()).unwrap();
        assert!(recovery.is_clean());
        let kind = event.split("_(").next().unwrap();
        for (kind, inclusive) in [(kind.to_owned(), "no"), (format!("{kind}_total"), "yes")] {
            let Some(theirs) = annotated(file, event, inclusive) else { return };
            let ours = leaf_sums(&collect, &kind);
            // It stops at the threshold, which functions of negative sums reach early.
            let shown: BTreeMap<_, _> = theirs.into_iter().map(|(name, sum)| (name, sum * unit)).collect();
            assert!(shown.len() >= 3, "{file} {kind}: {}", shown.len());
            for (name, sum) in shown {
                assert_eq!(ours.get(&name), Some(&sum), "{file} {kind} {name}");
            }
        }
    }
}

#[test]
fn calls_have_their_line_and_their_number() {
    let collect = read(
        "version: 1\npositions: line\nevents: Ir Dr\n\nob=(1) /bin/a\nfl=(1) a.c\nfn=(1) main\n10 5 1\n\
         cfi=(2) b.c\ncfn=(2) f\ncalls=7 +90\n+2 70\n\nfl=(2)\nfn=(2)\n100 70 0\n",
    );
    let call = collect.samples().find(|sample| sample.frames_leaf_first.len() == 2).unwrap();
    let frames: Vec<_> = call.frames_leaf_first.iter().map(|frame| (name(frame), frame.line)).collect();
    assert_eq!(frames, [("b.c:f".to_owned(), None), ("a.c:main".to_owned(), Some(12))]);
    let types: Vec<_> = collect.segments[0].value_types.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(types, ["Ir", "Dr", "Ir_total", "Dr_total", "calls"]);
    assert_eq!(call.values, [0, 0, 70, 0, 7]);
    let root = collect.samples().find(|sample| sample.values[2] == 75).unwrap();
    assert_eq!(
        (name(&root.frames_leaf_first[0]), &root.values[..]),
        ("a.c:main".to_owned(), &[0, 0, 75, 1, 0][..])
    );
    assert_eq!(root.frames_leaf_first[0].native, Some(("/bin/a".to_owned(), None)));
}

#[test]
fn samples_that_we_wrote_are_counted_again() {
    let folded = b"main /a.php:5;f /b.php:7 12\nmain /a.php:6 3\n";
    let (mut tables, mut text) = (Tables::default(), Vec::new());
    let mut exporter = callgrind::Exporter::new(&mut text);
    borehole_formats::folded::import(&folded[..], &ReadOptions::default(), &mut tables, &mut exporter)
        .unwrap();
    exporter.finish(&tables).unwrap();
    assert!(exporter.losses().is_empty());
    drop(exporter);
    let collect = read(std::str::from_utf8(&text).unwrap());
    assert_eq!(collect.count(), 15);
    let totals = leaf_sums(&collect, "samples_total");
    assert_eq!(totals, [("/a.php:main".to_owned(), 15), ("/b.php:f".to_owned(), 12)].into());
}

#[test]
fn what_is_invalid_is_named() {
    for (text, message) in [
        ("events: Ir\nfn=(4)\n", "unknown name: (4)"),
        ("events: Ir\nfn=f\n3 4 5\n", "expected costs, a name or a header, found \"3 4 5\""),
        ("events: Ir\nwhat\n", "expected costs, a name or a header, found \"what\""),
    ] {
        let error = read_with(text.as_bytes(), &ReadOptions::default()).err().unwrap();
        assert_eq!(error.message(), message);
        assert!(!read_with(text.as_bytes(), &ReadOptions::lenient()).unwrap().1.is_clean());
    }
}

#[test]
fn every_prefix_and_every_changed_byte_is_survived() {
    let bytes = &read_corpus("callgrind/calls.callgrind")[..2500];
    for cut in 0..bytes.len() {
        assert!(read_with(&bytes[..cut], &ReadOptions::lenient()).is_ok(), "{cut}");
    }
    each_change(bytes, 1, &[b'0', b'(', b'+', b'\n', b'=', 0xff], |changed, at| {
        assert!(read_with(changed, &ReadOptions::lenient()).is_ok(), "{at}");
    });
}
