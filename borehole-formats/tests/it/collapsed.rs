//! Collapsed stacks against what CPython's `replay` printed.

use borehole_formats::collapsed::Exporter;
use borehole_formats::{Export as _, ReadOptions, tachyon};
use borehole_model::{ProfileSink as _, Tables};
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
