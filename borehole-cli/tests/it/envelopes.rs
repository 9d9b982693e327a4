//! Files that are told by what is in their envelope.

use borehole_testkit::{Scratch, corpus};

use crate::program::run;

/// Nothing, compressed with gzip.
const NOTHING: [u8; 20] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0];

#[test]
fn a_heap_in_an_envelope_is_told_to_be_one() {
    let heap = corpus("php/reli-json/m1_objects.json.gz");
    let said = run(&["info", heap.to_str().unwrap()]).failed();
    assert!(said.contains("hint: it holds a heap: borehole heap info "), "{said}");
    assert!(said.contains("found a file that begins \"{"), "{said}");
}

#[test]
fn an_envelope_of_nothing_is_no_sound_profile_unless_its_format_is_named() {
    let scratch = Scratch::new();
    let file = scratch.write("empty.rbt.gz", &NOTHING);
    let file = file.to_str().unwrap();
    let ended = run(&["check", file]);
    let said = String::from_utf8(ended.stdout).unwrap();
    assert!(ended.code == 3 && said.contains("expected rbt, found an empty file"), "{said}");
    run(&["check", "--from", "rbt", file]).quietly();
}
