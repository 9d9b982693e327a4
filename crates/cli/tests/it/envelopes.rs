//! Detection of compressed files by their contents.

use borehole_testkit::{Scratch, corpus};

use crate::program::{piped, run};

/// An empty file, compressed with gzip.
const NOTHING: [u8; 20] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0];

#[test]
fn compressed_heaps_are_recognised() {
    let heap = corpus("php/reli-json/m1_objects.json.gz");
    let said = run(&["info", heap.to_str().unwrap()]).failed();
    assert!(said.contains("hint: the file holds a heap; use borehole heap info "), "{said}");
    assert!(said.contains("found a file that begins \"{"), "{said}");
}

#[test]
fn garbage_after_a_compressed_profile_is_a_warning() {
    let scratch = Scratch::new();
    let mut bytes = borehole_testkit::read_corpus("rbt/gzip_single.rbt.gz");
    bytes.extend_from_slice(b"trailing garbage");
    let file = scratch.write("a.rbt.gz", &bytes);
    let ended = run(&["convert", file.to_str().unwrap(), "--to", "folded"]);
    assert!(ended.code == 3 && !ended.stdout.is_empty(), "{ended:?}");
    let warning = "ignored the bytes after a gzip member: they are not rbt; 16 bytes lost";
    assert!(ended.stderr.contains(warning), "{}", ended.stderr);
    assert_eq!(run(&["check", file.to_str().unwrap()]).code, 3);
}

#[test]
fn profiles_are_recognised_if_a_heap_is_expected() {
    let scratch = Scratch::new();
    let folded = scratch.write("a.folded", b"main;query 3\n");
    for file in [corpus("rbt/native.rbt"), corpus("trc/in/real_057_blocked.bin.gz"), folded] {
        let file = file.to_str().unwrap();
        let said = run(&["heap", "info", file]).failed();
        assert!(
            said.ends_with(&format!("\nhint: the file holds a profile; use borehole info {file}\n")),
            "{said}"
        );
    }
}

#[test]
fn inputs_without_a_heap_are_reported_like_others() {
    let scratch = Scratch::new();
    let empty = scratch.write("empty", b"");
    let (empty, folder) = (empty.to_str().unwrap(), scratch.folder().to_str().unwrap());
    let said = |file: &str| piped(&["heap", "info", file], b"RMEM").failed();
    assert!(said(empty).ends_with("or a core file, found an empty file\n"), "{}", said(empty));
    assert_eq!(said(folder), format!("error: {folder}: expected a file, found a directory\n"));
    assert_eq!(said("/dev/stdin"), "error: /dev/stdin: expected a file, found a pipe\n");
    assert_eq!(said("-"), "error: standard input: expected a file with a heap, found `-`\n");
}

#[test]
fn a_compressed_empty_file_is_sound_only_with_a_given_format() {
    let scratch = Scratch::new();
    let file = scratch.write("empty.rbt.gz", &NOTHING);
    let file = file.to_str().unwrap();
    let ended = run(&["check", file]);
    let said = String::from_utf8(ended.stdout).unwrap();
    assert!(ended.code == 3 && said.contains("expected rbt, found an empty file"), "{said}");
    run(&["check", "--from", "rbt", file]).quietly();
}
