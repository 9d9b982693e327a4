//! The corpus matches its manifest.

use borehole_testkit::manifest::{CorpusConversion, CorpusManifest, ReadOutcome};
use borehole_testkit::{corpus, corpus_files, read_corpus, sha256_hex};

#[test]
fn every_trace_is_the_one_that_the_manifest_describes() {
    let manifest = CorpusManifest::rbt();
    assert_eq!(manifest.files.len(), 107);
    for trace in &manifest.files {
        let bytes = trace.read();
        assert_eq!(
            (bytes.len() as u64, sha256_hex(&bytes)),
            (trace.bytes, trace.sha256.clone()),
            "{}",
            trace.name
        );
        let outcomes = [&trace.strict, &trace.recover].into_iter();
        outcomes.for_each(|outcome| assert_outcome_is_there(&trace.name, outcome));
        trace.converters.values().for_each(assert_conversion);
    }
}

#[test]
fn every_text_is_the_one_that_the_manifest_describes() {
    let manifest = CorpusManifest::rbt();
    for file in corpus_files("rbt/text", ".txt") {
        let name = format!("text/{}", file.file_name().unwrap().display());
        let text = manifest.text.iter().find(|text| text.name == name);
        let text = text.unwrap_or_else(|| panic!("{name} is not in the manifest"));
        assert_eq!(read_corpus(&format!("rbt/{name}")).len() as u64, text.bytes, "{name}");
        text.converters.values().for_each(assert_conversion);
    }
}

#[test]
fn every_trace_of_the_corpus_is_in_the_manifest() {
    let manifest = CorpusManifest::rbt();
    let files = corpus_files("rbt", ".rbt").into_iter().chain(corpus_files("rbt", ".rbt.gz"));
    for file in files {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        assert_eq!(manifest.trace(&name).name, name);
    }
}

fn assert_outcome_is_there(name: &str, outcome: &ReadOutcome) {
    assert!(corpus(&format!("rbt/{}", outcome.expected)).is_file(), "{name}");
}

fn assert_conversion(conversion: &CorpusConversion) {
    let Some(file) = &conversion.file else { return };
    let bytes = read_corpus(&format!("rbt/{file}"));
    assert_eq!(sha256_hex(&bytes), conversion.sha256, "{file}");
}
