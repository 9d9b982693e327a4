//! Errors and warnings as data.

use std::fmt;
use std::io::{self, Read};

use borehole::model::{Count, Tables, WarningKind};
use borehole::{
    Advice, Compression, Error, ErrorKind, Existing, Format, Input, InputOptions, Output, Position,
    ReadOptions, Source, Target, convert, create_live, import_all,
};
use borehole_testkit::{Scratch, corpus, read_corpus};

fn damaged(name: &str) -> Error {
    let trace = io::Cursor::new(read_corpus("rbt/bitflip_middle.rbt"));
    let input = Input::open(Source::reader(name, trace), &InputOptions::default()).unwrap();
    import_all([input], &mut Count::default()).unwrap_err()
}

#[test]
fn errors_have_kinds_positions_and_advice_and_no_words_of_the_command() {
    let error = damaged("trace.rbt");
    assert_eq!((error.kind(), error.name()), (ErrorKind::Malformed, "trace.rbt"));
    assert_eq!(error.position(), Position::Byte(0x12a));
    assert_eq!(error.advice(), Some(Advice::ReadOn));
    let missing = Source::path("nowhere").err().unwrap();
    assert_eq!((missing.kind(), missing.position()), (ErrorKind::Io, Position::Whole));
    assert_eq!(missing.advice(), None);
    let scratch = Scratch::new();
    let path = scratch.write("a", b"");
    let taken = Output::create(&path, Existing::Keep, Compression::None).err().unwrap();
    assert_eq!(taken.to_string(), format!("{}: file exists", path.display()));
    assert_eq!(taken.kind(), ErrorKind::Output);
    assert_eq!(taken.advice(), Some(Advice::Replace { is_unfinished: false }));
    let live = create_live(&path, Existing::Replace).and_then(|_| create_live(&path, Existing::Keep));
    assert_eq!(live.err().map(|error| error.kind()), Some(io::ErrorKind::AlreadyExists));
}

#[test]
fn a_conversion_within_its_budget_is_whole_and_any_other_an_error() {
    let converted = |memory_bytes: Option<usize>| {
        let options = InputOptions { memory_bytes, ..InputOptions::default() };
        // Tables of all inputs share the budget.
        let inputs = [
            "rbt/daemon_worker.rbt",
            "rbt/realistic_54k_ts.rbt",
            "speedscope/lanes-two-threads.speedscope.json",
        ]
        .map(|name| Input::open(Source::path(corpus(name)).unwrap(), &options).unwrap());
        let mut folded = Vec::new();
        convert(inputs, &Target::new(Format::Folded), &mut folded).map(|_| folded)
    };
    let whole = converted(None).unwrap();
    let mut refused = Vec::new();
    for bytes in (10..30).map(|power| 1 << power) {
        match converted(Some(bytes)) {
            Ok(folded) => assert_eq!(folded, whole, "{bytes}"),
            Err(error) => {
                assert_eq!((error.kind(), error.is_memory()), (ErrorKind::Memory, true), "{error}");
                refused.push(error.name().to_owned());
            }
        }
    }
    refused.dedup();
    assert!(refused.len() > 1, "not only one input reaches it: {refused:?}");
    assert_eq!(converted(Some(1 << 30)).unwrap(), whole);
}

/// An error of a program's own reader.
#[derive(Debug, PartialEq)]
struct NetworkError(u16);

impl fmt::Display for NetworkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "status {}", self.0)
    }
}

impl std::error::Error for NetworkError {}

#[test]
fn the_error_of_a_program_s_own_reader_is_the_source() {
    struct Download;
    impl Read for Download {
        fn read(&mut self, _bytes: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other(NetworkError(503)))
        }
    }
    let beginning = io::Cursor::new(read_corpus("rbt/realistic_54k_ts.rbt")).take(0x10000);
    let source = Source::reader("a.rbt", beginning.chain(Download));
    let input = Input::open(source, &InputOptions::default()).unwrap();
    let failed = import_all([input], &mut Count::default()).unwrap_err();
    assert!(failed.to_string().starts_with("a.rbt: status 503 (rbt, at byte 0x"), "{failed}");
    let causes = std::iter::successors(Some(&failed as &dyn std::error::Error), |error| error.source());
    let own: Vec<_> = causes.filter_map(|cause| cause.downcast_ref::<io::Error>()).collect();
    assert_eq!(own.len(), 1);
    assert_eq!(own[0].get_ref().unwrap().downcast_ref(), Some(&NetworkError(503)));
    assert!(std::ptr::eq(own[0], failed.io_error().unwrap()));
}

#[test]
fn warnings_say_of_which_kind_they_are_and_of_which_input() {
    let warnings = |bytes: Vec<u8>, read| {
        let source = Source::reader("a.rbt", io::Cursor::new(bytes));
        let input = Input::open(source, &InputOptions { read, ..InputOptions::default() }).unwrap();
        let recovery = input.read_into(&mut Tables::default(), &mut Count::default()).unwrap();
        let warnings = recovery.warnings.into_iter().chain(recovery.notes);
        warnings.map(|warning| (warning.kind, warning.input.unwrap().to_string())).collect::<Vec<_>>()
    };
    let of = |kind| vec![(kind, "a.rbt".to_owned())];
    let mut cut = read_corpus("rbt/daemon_worker.rbt");
    cut.truncate(cut.len() - 1);
    assert_eq!(warnings(cut, ReadOptions::default()), of(WarningKind::Truncated));
    let damaged = read_corpus("rbt/bitflip_middle.rbt");
    let damaged = warnings(damaged, ReadOptions::lenient());
    assert!(damaged.contains(&of(WarningKind::Damaged)[0]), "{damaged:?}");
    assert_eq!(warnings(Vec::new(), ReadOptions::default()), of(WarningKind::Note));
}

#[test]
fn a_cause_appears_once_and_in_lower_case() {
    let error = Source::path("nowhere").err().unwrap();
    assert_eq!(error.to_string(), "nowhere: no such file or directory");
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
