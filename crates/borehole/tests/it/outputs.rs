//! Outputs appear whole or not at all.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{PermissionsExt as _, lchown, symlink};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use borehole::{Compression, Existing, Format, Input, InputOptions, Output, Source, Target, convert};
use borehole_testkit::{Scratch, corpus};

#[test]
fn a_dropped_output_leaves_nothing() {
    for compression in [Compression::None, Compression::Gzip] {
        let scratch = Scratch::new();
        let path = scratch.path("a");
        let mut output = Output::create(&path, Existing::Keep, compression).unwrap();
        output.write_all(b"half of").unwrap();
        assert!(output.unfinished().unwrap().starts_with(scratch.folder()));
        assert_eq!(fs::read_dir(scratch.folder()).unwrap().count(), 1);
        drop(output);
        assert_eq!(fs::read_dir(scratch.folder()).unwrap().count(), 0);
    }
}

#[test]
fn a_file_that_appears_meanwhile_is_kept_too() {
    let scratch = Scratch::new();
    let path = scratch.path("a");
    let output = Output::create(&path, Existing::Keep, Compression::None).unwrap();
    fs::write(&path, b"theirs").unwrap();
    let error = output.complete().unwrap_err();
    assert!(error.to_string().ends_with("a: file exists; --force replaces it"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), b"theirs");
}

#[test]
fn links_that_lead_in_a_circle_end() {
    let scratch = Scratch::new();
    let [one, two] = ["one", "two"].map(|name| scratch.path(name));
    symlink(&one, &two).unwrap();
    symlink(&two, &one).unwrap();
    // Whatever becomes of them, it is decided.
    if let Ok(output) = Output::create(&one, Existing::Keep, Compression::None) {
        assert!(output.complete().is_err());
    }
    assert_eq!(fs::read_dir(scratch.folder()).unwrap().count(), 2);
}

#[test]
fn a_link_that_a_stranger_laid_where_anybody_may_is_not_followed() {
    let scratch = Scratch::new();
    let (target, link) = (scratch.path("precious"), scratch.path("link"));
    fs::write(&target, b"precious").unwrap();
    symlink(&target, &link).unwrap();
    let replace = || {
        let mut output = Output::create(&link, Existing::Replace, Compression::None)?;
        output.write_all(b"new").unwrap();
        output.complete()
    };
    // Links of strangers are for the superuser to make.
    let is_theirs = lchown(&link, Some(65534), None).is_ok();
    let set_mode = |mode| fs::set_permissions(scratch.folder(), fs::Permissions::from_mode(mode)).unwrap();
    set_mode(0o1777);
    if is_theirs {
        let refused = replace().unwrap_err().to_string();
        assert!(refused.contains("found a link of user 65534"), "{refused}");
        assert_eq!(fs::read(&target).unwrap(), b"precious");
        lchown(&link, Some(std::os::unix::fs::MetadataExt::uid(&fs::metadata(&target).unwrap())), None)
            .unwrap();
    }
    replace().unwrap();
    set_mode(0o700);
    assert_eq!(fs::read(&target).unwrap(), b"new");
    assert_eq!(fs::read_dir(scratch.folder()).unwrap().count(), 2);
}

#[test]
fn a_file_in_place_of_a_private_one_is_private_from_its_first_moment() {
    let scratch = Scratch::new();
    let path = scratch.write("a", b"old");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let done = AtomicBool::new(false);
    let seen = thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut seen = 0;
            while !done.load(Ordering::Relaxed) {
                for entry in fs::read_dir(scratch.folder()).unwrap().flatten() {
                    seen |= entry.metadata().map_or(0, |found| found.permissions().mode());
                }
            }
            seen
        });
        for _ in 0..3000 {
            Output::create(&path, Existing::Replace, Compression::None).unwrap().complete().unwrap();
        }
        done.store(true, Ordering::Relaxed);
        watcher.join().unwrap()
    });
    assert_eq!(seen & 0o777, 0o600, "{seen:o}");
}

/// A stream that others can look at, which fails after so many bytes.
#[derive(Clone)]
struct Limited(Arc<Mutex<Vec<u8>>>, usize);

impl Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut written = self.0.lock().unwrap();
        if written.len() + bytes.len() > self.1 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        written.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn compressed_output_that_was_not_completed_does_not_look_complete() {
    let written = Arc::<Mutex<Vec<u8>>>::default();
    let mut output = Output::direct("there", Limited(written.clone(), 1 << 20), Compression::Gzip);
    output.write_all(b"half of").unwrap();
    output.flush().unwrap();
    drop(output);
    let bytes = written.lock().unwrap().clone();
    let unpacked = io::read_to_string(borehole_formats::envelope::Envelope::new(&bytes[..]));
    assert_eq!(unpacked.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
}

#[test]
fn every_format_passes_on_that_its_output_failed() {
    for facts in borehole::formats_table().iter().filter(|facts| facts.writable) {
        let source = Source::path(corpus("rbt/realistic_54k_ts.rbt")).unwrap();
        let input = Input::open(source, &InputOptions::default()).unwrap();
        let output = Limited(Arc::default(), 100);
        let error = convert([input], &Target::new(facts.format), output).unwrap_err();
        let borehole::Error::Write { source, .. } = error else { panic!("{}: {error}", facts.name) };
        assert_eq!(source.kind(), io::ErrorKind::StorageFull, "{}", facts.name);
    }
}

#[test]
fn everything_comes_back_from_a_compressed_file() {
    let scratch = Scratch::new();
    let path = scratch.path("a.rbt.gz");
    let mut output = Output::create(&path, Existing::Keep, Compression::Gzip).unwrap();
    let source = Source::path(corpus("rbt/annotations_ts.rbt")).unwrap();
    let input = Input::open(source, &InputOptions::default()).unwrap();
    convert([input], &Target::new(Format::Rbt), &mut output).unwrap();
    output.complete().unwrap();
    let lines = |path| {
        let input = Input::open(Source::path(path).unwrap(), &InputOptions::default()).unwrap();
        let mut lines = Vec::new();
        convert([input], &Target::new(Format::Jsonl), &mut lines).unwrap();
        String::from_utf8(lines).unwrap()
    };
    assert_eq!(lines(path), lines(corpus("rbt/annotations_ts.rbt")));
}
