//! Profiles of gperftools and the text of Go, compared with what pprof reads in them.

use borehole_formats::{Error, Format, ReadOptions, detect, legacy_pprof};
use borehole_model::Recovery;
use borehole_testkit::read_corpus;

use crate::damage::each_change;
use crate::play::{Collect, PlainLabel, collected};

/// The texts of the corpus, and whether they name their frames.
const TEXTS: [(&str, bool); 5] = [
    ("alloc.heap", false),
    ("go-heap.txt", true),
    ("go-goroutine.txt", true),
    ("go-block.txt", true),
    ("go-mutex.txt", true),
];

fn read_text(bytes: &[u8], options: &ReadOptions) -> Result<(Collect, Recovery), Error> {
    collected(|tables, sink| legacy_pprof::import(bytes, options, tables, sink))
}

fn read_cpu(bytes: &[u8], options: &ReadOptions) -> Result<(Collect, Recovery), Error> {
    collected(|tables, sink| legacy_pprof::import_cpu(bytes, options, tables, sink))
}

/// The numbers and the depth of each sample, and the types of the numbers, as `pprof -raw` prints them.
fn raw(name: &str) -> (Vec<String>, Vec<(Vec<i64>, usize)>) {
    let text = String::from_utf8(read_corpus(&format!("pprof-text/{name}.raw")).to_vec()).unwrap();
    let mut lines = text.lines().skip_while(|line| *line != "Samples:").skip(1);
    let types = lines.next().unwrap().split_whitespace().map(str::to_owned).collect();
    let lines = lines.take_while(|line| *line != "Locations");
    let sample = |line: &str| {
        let (values, locations) = line.split_once(':')?;
        let values: Result<Vec<_>, _> = values.split_whitespace().map(str::parse).collect();
        Some((values.ok()?, locations.split_whitespace().count()))
    };
    (types, lines.filter_map(sample).collect())
}

#[test]
fn texts_are_read_as_pprof_reads_them() {
    for (name, names_frames) in TEXTS {
        let bytes = read_corpus(&format!("pprof-text/{name}"));
        assert_eq!(detect::detect(&bytes), Some(Format::PprofText), "{name}");
        let (collect, recovery) = read_text(&bytes, &ReadOptions::default()).unwrap();
        assert!(recovery.is_clean(), "{name}: {:?}", recovery.warnings);
        let (types, theirs) = raw(name);
        let own = collect.segments[0].value_types.iter().map(|(kind, unit)| format!("{kind}/{unit}"));
        assert_eq!(own.collect::<Vec<_>>(), types, "{name}");
        let ours: Vec<_> =
            collect.samples().map(|sample| (sample.values.clone(), sample.frames_leaf_first.len())).collect();
        assert!(!theirs.is_empty());
        if names_frames {
            // Go leaves out its own functions at the leaf, and pprof reads the addresses.
            let values = |samples: &[(Vec<i64>, usize)]| -> Vec<Vec<i64>> {
                samples.iter().map(|(values, _)| values.clone()).collect()
            };
            assert_eq!(values(&ours), values(&theirs), "{name}");
        } else {
            assert_eq!(ours, theirs, "{name}");
        }
    }
}

#[test]
fn cpu_profiles_are_read_as_pprof_reads_them() {
    let bytes = read_corpus("pprof-text/alloc.cpu");
    assert_eq!(detect::detect(&bytes), Some(Format::Gperftools));
    let (collect, recovery) = read_cpu(&bytes, &ReadOptions::default()).unwrap();
    assert!(recovery.is_clean());
    let (_, theirs) = raw("alloc.cpu");
    let mut ours: Vec<_> = collect
        .samples()
        .map(|sample| {
            let count = i64::try_from(sample.count).unwrap();
            (vec![count, count * 10_000_000], sample.frames_leaf_first.len())
        })
        .collect();
    let mut theirs = theirs;
    ours.sort();
    theirs.sort();
    assert_eq!(ours, theirs);
    assert_eq!(collect.segments[0].period_ns, Some(10_000_000));
    // The loop of `hot`, in a program that is always at the same address.
    let mut frames = collect.samples().flat_map(|sample| &sample.frames_leaf_first);
    let frame = frames.find(|frame| frame.function == "0x11f6").unwrap();
    assert!(frame.native.as_ref().unwrap().0.ends_with("/alloc"));
}

#[test]
fn frames_and_labels_of_go_are_read() {
    let text =
        b"goroutine profile: total 3\n2 @ 0x437516 0x4b47df\n# labels: {\"job\":\"a b\", \"id\":\"7\"}\n\
        #\t0x4b47de\tmain.wait+0x1e\t\t./work.go:31\n#\t0x4b40\n\n1 @\n#\t0x0\n";
    let (collect, recovery) = read_text(text, &ReadOptions::default()).unwrap();
    assert!(recovery.is_clean());
    let samples: Vec<_> = collect.samples().collect();
    assert_eq!((&samples[0].values[..], &samples[1].values[..]), (&[2][..], &[1][..]));
    let frames: Vec<_> =
        samples[0].frames_leaf_first.iter().map(|frame| (&*frame.function, frame.line)).collect();
    assert_eq!(frames, [("main.wait", Some(31)), ("0x4b40", None)]);
    assert!(samples[1].frames_leaf_first.is_empty());
    let label = |key: &str, value: &str| PlainLabel::Text(key.to_owned(), value.to_owned());
    let mut labels = samples[0].labels.clone();
    labels.sort();
    assert_eq!(labels, [label("id", "7"), label("job", "a b")]);
}

#[test]
fn damage_is_named() {
    let text = b"heap profile: 1: 2 [1: 2] @ heapprofile\n1: 2 [1: 2] @ 0x1\nwhat\n1: 2 [1: 2] @ 0x2\n";
    let error = read_text(text, &ReadOptions::default()).err().unwrap();
    assert_eq!(error.to_string(), "expected a sample, a frame or a mapped file (pprof-text, at line 3)");
    let (collect, recovery) = read_text(text, &ReadOptions::lenient()).unwrap();
    assert_eq!((collect.samples().count(), recovery.warnings.len()), (2, 1));
    let error = read_text(b"profile\n", &ReadOptions::default()).err().unwrap();
    assert!(error.message().starts_with("expected the first line of a profile, found"));
    let bytes = read_corpus("pprof-text/alloc.cpu");
    let (collect, recovery) = read_cpu(&bytes[..170], &ReadOptions::default()).unwrap();
    assert_eq!((collect.samples().count(), recovery.is_clean()), (1, false));
}

#[test]
fn every_prefix_and_every_changed_byte_is_survived() {
    let text = &read_corpus("pprof-text/go-goroutine.txt")[..];
    let cpu = &read_corpus("pprof-text/alloc.cpu")[..700];
    for bytes in [text, cpu] {
        for cut in 0..bytes.len() {
            let _ = (
                read_text(&bytes[..cut], &ReadOptions::default()),
                read_cpu(&bytes[..cut], &ReadOptions::default()),
            );
        }
        each_change(bytes, 1, &[0, b'0', b'@', b'\n', 0xff], |changed, at| {
            assert!(read_text(changed, &ReadOptions::lenient()).is_ok(), "{at}");
            assert!(read_cpu(changed, &ReadOptions::lenient()).is_ok(), "{at}");
        });
    }
}
