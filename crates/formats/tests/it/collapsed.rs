//! Collapsed stacks, compared with the output of CPython's `replay`.

use borehole_formats::collapsed::Exporter;
use borehole_formats::{Export as _, ReadOptions, tachyon};
use borehole_model::{Context, Frame, ProfileSink as _, Sample, Segment, Tables};
use borehole_testkit::{corpus_files, read_corpus};

#[test]
fn every_file_is_collapsed_as_cpython_does() {
    let files = corpus_files("tachyon/corpus", ".bin");
    assert_eq!(files.len(), 31);
    for path in files {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let mut out = Vec::new();
        let mut exporter = Exporter::new(&mut out);
        let mut tables = Tables::default();
        tachyon::import(&bytes, &ReadOptions::default(), &mut tables, &mut exporter).unwrap();
        exporter.finish(&tables).unwrap();
        let lost: Vec<_> = exporter.losses().iter().map(|(what, _)| what).collect();
        assert!(lost.contains(&"timestamps") || bytes.len() < 200, "{name}: {lost:?}");
        assert!(!lost.contains(&"thread ids"), "{name}");
        drop(exporter);
        let expected = read_corpus(&format!("tachyon/corpus/expected/{name}.collapsed.txt"));
        assert!(out == expected, "{name}");
    }
}

#[test]
fn frames_with_equal_names_are_one_line() {
    let mut tables = Tables::default();
    let mut out = Vec::new();
    let mut exporter = Exporter::new(&mut out);
    let segment = Segment::default();
    for (function, line) in [(&b"mod"[..], None), (b"mod", Some(0)), (b"caf\xe9", None), (b"caf\xe8", None)] {
        let (file, function) =
            (tables.intern_string(b"a.py").unwrap(), tables.intern_string(function).unwrap());
        let frame = Frame { file: Some(file), line, ..Frame::named(function) };
        let frame = tables.intern_frame(&frame).unwrap();
        let sample =
            Sample { stack: Some(tables.intern_stack(None, frame).unwrap()), count: 5, ..Sample::default() };
        let _ = exporter.sample(Context { tables: &tables, segment: &segment }, &sample).unwrap();
    }
    exporter.finish(&tables).unwrap();
    drop(exporter);
    assert_eq!(String::from_utf8(out).unwrap(), "a.py:caf\u{fffd}:0 10\na.py:mod:0 10\n");
}
