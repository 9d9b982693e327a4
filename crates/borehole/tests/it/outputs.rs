//! Outputs appear completely or not at all.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, lchown, symlink};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use borehole::{
    Compression, Existing, Format, Input, InputOptions, Output, Source, Target, append_live, convert,
    create_live, open_live,
};
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
fn a_file_that_appears_during_the_write_is_kept() {
    let scratch = Scratch::new();
    let path = scratch.path("a");
    let output = Output::create(&path, Existing::Keep, Compression::None).unwrap();
    fs::write(&path, b"theirs").unwrap();
    let error = output.complete().unwrap_err();
    assert!(error.to_string().ends_with("a: file exists"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), b"theirs");
}

#[test]
fn cyclic_links_are_an_error() {
    let scratch = Scratch::new();
    let [one, two] = ["one", "two"].map(|name| scratch.path(name));
    symlink(&one, &two).unwrap();
    symlink(&two, &one).unwrap();
    for existing in [Existing::Keep, Existing::Replace] {
        let error = Output::create(&one, existing, Compression::None).err().unwrap().to_string();
        assert!(error.ends_with("too many levels of symbolic links: they may be circular"), "{error}");
        assert!(create_live(&one, existing).is_err() && append_live(&one).is_err());
    }
    assert_eq!(fs::read_dir(scratch.folder()).unwrap().count(), 2);
}

#[test]
fn links_of_other_users_in_shared_folders_are_not_followed() {
    let scratch = Scratch::new();
    let (target, link) = (scratch.path("precious"), scratch.path("link"));
    fs::write(&target, b"precious").unwrap();
    symlink(&target, &link).unwrap();
    let replace = || {
        let mut output = Output::create(&link, Existing::Replace, Compression::None)?;
        output.write_all(b"new").unwrap();
        output.complete()
    };
    // Only root can create links that belong to others.
    let is_theirs = lchown(&link, Some(65534), None).is_ok();
    let set_mode = |mode| fs::set_permissions(scratch.folder(), fs::Permissions::from_mode(mode)).unwrap();
    set_mode(0o1777);
    if is_theirs {
        let refused = replace().unwrap_err().to_string();
        assert!(refused.contains("found a link of user 65534"), "{refused}");
        assert_eq!(fs::read(&target).unwrap(), b"precious");
        lchown(&link, Some(fs::metadata(&target).unwrap().uid()), None).unwrap();
    }
    replace().unwrap();
    if is_theirs {
        lchown(&link, Some(65534), None).unwrap();
        for live in [create_live(&link, Existing::Replace), append_live(&link), open_live(&link)] {
            assert_eq!(live.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        }
        // A file of their own would show them what is appended; replacing it does not.
        let theirs = scratch.write("theirs", b"theirs");
        lchown(&theirs, Some(65534), None).unwrap();
        assert_eq!(append_live(&theirs).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        let own = create_live(&theirs, Existing::Replace).unwrap().metadata().unwrap();
        assert_eq!((own.uid(), own.mode() & 0o777), (fs::metadata(&target).unwrap().uid(), 0o600));
        fs::remove_file(theirs).unwrap();
    }
    set_mode(0o700);
    assert_eq!(fs::read(&target).unwrap(), b"new");
    assert_eq!(fs::read_dir(scratch.folder()).unwrap().count(), 2);
}

#[test]
fn a_replaced_file_keeps_its_owner_and_mode() {
    for is_live in [false, true] {
        let scratch = Scratch::new();
        let path = scratch.write("a", b"old");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o664)).unwrap();
        // Only root can give files away.
        let _ = lchown(&path, Some(1234), Some(1235));
        let old = fs::metadata(&path).unwrap();
        if is_live {
            create_live(&path, Existing::Replace).unwrap().write_all(b"new").unwrap();
        } else {
            let mut output = Output::create(&path, Existing::Replace, Compression::None).unwrap();
            output.write_all(b"new").unwrap();
            output.complete().unwrap();
        }
        let new = fs::metadata(&path).unwrap();
        assert_eq!((new.uid(), new.gid(), new.mode()), (old.uid(), old.gid(), old.mode()));
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }
}

#[test]
fn a_replaced_private_file_is_private_from_the_start() {
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

/// A stream with shared contents that fails after a number of bytes.
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
fn incomplete_compressed_output_looks_incomplete() {
    let written = Arc::<Mutex<Vec<u8>>>::default();
    let mut output = Output::direct("there", Limited(written.clone(), 1 << 20), Compression::Gzip).unwrap();
    output.write_all(b"half of").unwrap();
    output.flush().unwrap();
    drop(output);
    let bytes = written.lock().unwrap().clone();
    let unpacked = io::read_to_string(borehole_wire::envelope::Envelope::new(&bytes[..]));
    assert_eq!(unpacked.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
}

#[test]
fn every_format_passes_output_errors_on() {
    for &format in Format::ALL.iter().filter(|format| format.writable()) {
        let source = Source::path(corpus("rbt/realistic_54k_ts.rbt")).unwrap();
        let input = Input::open(source, &InputOptions::default()).unwrap();
        let output = Limited(Arc::default(), 100);
        let error = convert([input], &Target::new(format), output).unwrap_err();
        let borehole::Error::Write { source, .. } = error else { panic!("{}: {error}", format.name()) };
        assert_eq!(source.kind(), io::ErrorKind::StorageFull, "{}", format.name());
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
