//! Messages and hints of errors.

use std::error::Error as _;
use std::io::{self, Read};

use borehole::model::Count;
use borehole::{Error, Input, InputOptions, Source, import_all};
use borehole_testkit::read_corpus;

fn damaged(name: &str) -> Error {
    let trace = io::Cursor::new(read_corpus("rbt/bitflip_middle.rbt"));
    let input = Input::open(Source::reader(name, trace), &InputOptions::default()).unwrap();
    import_all([input], &mut Count::default()).unwrap_err()
}

#[test]
fn hints_can_be_pasted_into_a_shell() {
    for (name, advice) in [
        ("trace.rbt", "borehole recover trace.rbt -o recovered.rbt"),
        ("a/b.rbt.gz", "borehole recover a/b.rbt.gz -o recovered.rbt.gz"),
        ("Bob's trace", "borehole recover 'Bob'\\''s trace' -o recovered.rbt"),
        ("$(rm x).rbt", "borehole recover '$(rm x).rbt' -o recovered.rbt"),
        ("a.rbt;rm x", "borehole recover 'a.rbt;rm x' -o 'recovered.rbt;rm x'"),
        ("-o.rbt", "borehole recover ./-o.rbt -o recovered.rbt"),
        ("standard input", "borehole recover -o recovered.rbt < FILE"),
    ] {
        assert_eq!(damaged(name).hint().as_deref(), Some(advice), "{name}");
    }
}

#[test]
fn a_cause_appears_once_and_in_lower_case() {
    let error = Source::path("nowhere").err().unwrap();
    assert_eq!(error.to_string(), "nowhere: no such file or directory");
    assert!(error.source().is_none());
    assert_eq!(error.hint(), None);
    let full = io::Error::from_raw_os_error(28);
    let error = Error::Write { name: String::new(), source: full };
    assert_eq!(error.to_string(), "output: no space left on device");
    assert_eq!(error.with_output("a.rbt").to_string(), "a.rbt: no space left on device");
}

/// A reader that fails like a broken disk.
struct Failing;

impl Read for Failing {
    fn read(&mut self, _bytes: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::from_raw_os_error(5))
    }
}

#[test]
fn disk_errors_are_distinguished_from_damage() {
    let mut beginning = read_corpus("rbt/realistic_54k_ts.rbt");
    beginning.truncate(0x10000);
    let source = Source::reader("a.rbt", io::Cursor::new(beginning).chain(Failing));
    let input = Input::open(source, &InputOptions::default()).unwrap();
    let failed = import_all([input], &mut Count::default()).unwrap_err();
    let said = failed.to_string();
    assert!(said.starts_with("a.rbt: input/output error (rbt, at byte 0x"), "{said}");
    let number = |error| match error {
        Error::Read { source, .. } => source.raw_os_error(),
        error => panic!("{error}"),
    };
    assert_eq!(number(failed), Some(5));
    assert_eq!(number(damaged("a.rbt")), None);
}

#[test]
fn only_broken_pipe_errors_are_closed_pipes() {
    let failed = |kind: io::ErrorKind| Error::Write { name: String::new(), source: kind.into() };
    assert!(failed(io::ErrorKind::BrokenPipe).is_closed_pipe());
    assert!(!failed(io::ErrorKind::StorageFull).is_closed_pipe());
    let unread = Error::Open { name: String::new(), source: io::ErrorKind::BrokenPipe.into() };
    assert!(!unread.is_closed_pipe());
}
