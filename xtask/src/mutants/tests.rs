//! A tiny crate, through the whole chore; and the changes that are found in lines of code.

use std::fs;
use std::path::Path;

use super::{Options, draw, find, tried};

/// The sources of a project with one crate.
const TINY: &[(&str, &str)] = &[
    (
        "Cargo.toml",
        "[workspace]\nresolver = \"3\"\nmembers = [\"tiny\"]\n[profile.quick]\ninherits = \"dev\"\n",
    ),
    ("Cargo.lock", "version = 4\n\n[[package]]\nname = \"borehole-tiny\"\nversion = \"0.1.0\"\n"),
    ("tiny/Cargo.toml", "[package]\nname = \"borehole-tiny\"\nversion = \"0.1.0\"\nedition = \"2024\"\n"),
    (
        "tiny/src/lib.rs",
        r#"
mod rest;
pub fn half(number: u32) -> Result<u32, String> {
    if number > 9 {
        return Err(format!("too large: {number}"));
    }
    Ok(number / 2)
}
#[cfg(test)]
mod tests;
"#,
    ),
    (
        "tiny/src/rest.rs",
        "pub struct Odd;\npub fn odd() -> Odd { Odd }\npub fn not(flag: bool) -> bool { !flag }\n",
    ),
    (
        "tiny/src/tests.rs",
        r#"
use super::half;
#[test]
fn small_numbers_are_halved() {
    assert_eq!(half(4), Ok(2));
    assert!(half(20).is_err());
}
#[test]
fn numbers_are_odd() {
    panic!("they are not");
}
"#,
    ),
];

#[test]
fn a_run_lists_what_no_test_notices() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("project");
    for (path, text) in TINY {
        let file = root.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    let mut options = Options {
        package: "borehole-tiny".to_owned(),
        with: Vec::new(),
        within: String::new(),
        tests: String::new(),
        sample: None,
        seed: 5,
    };
    let target = folder.path().join("target");
    let report = tried(&root, &target, &options).unwrap();
    assert_eq!(
        report,
        "\
borehole-tiny, seed 5: noticed 6 of 12 changes (50 %); 1 more do not compile
not used, because they fail without a change: tests::numbers_are_odd

arithmetic: 1 of 1

comparisons: 0 of 1
  tiny/src/lib.rs:4 half: `number > 9` with >=

conditions: 2 of 2

whole functions: 2 of 4
  tiny/src/rest.rs:3 not: reached by no test: the function is `true`
  tiny/src/rest.rs:3 not: reached by no test: the function is `false`

integers: 1 of 2
  tiny/src/lib.rs:4 half: `9` -> `10`

negations: 0 of 1
  tiny/src/rest.rs:3 not: reached by no test: `!flag` -> `flag`

texts: 0 of 1
  tiny/src/lib.rs:5 half: `\"too large: {number}\"` -> `\"¤too large: {number}\"`"
    );
    options.tests = "odd".to_owned();
    let report = tried(&root, &target, &options).unwrap();
    assert!(report.starts_with("borehole-tiny, seed 5: noticed 0 of 12 changes"), "{report}");
    options.tests = String::new();
    options.within = "rest".to_owned();
    options.sample = Some(2);
    let report = tried(&root, &target, &options).unwrap();
    assert!(report.starts_with("borehole-tiny, seed 5: noticed 0 of "), "{report}");
    assert!(
        fs::read_to_string(root.join("tiny/src/lib.rs")).unwrap() == TINY[3].1,
        "the project itself changed"
    );
}

/// The changes to a function with this body, in words.
fn found(body: &str) -> Vec<String> {
    let changes = find::changes(&format!("fn f() {{ {body} }}")).unwrap().changes;
    // The first one is that of the whole function.
    changes.into_iter().skip(1).map(|change| change.about).collect()
}

#[test]
fn every_kind_of_change_is_found() {
    assert_eq!(found("a <= b"), ["`a <= b` with <"]);
    assert_eq!(found("let c = a && !b;"), ["`a && !b` with ||", "`!b` -> `b`"]);
    assert_eq!(
        found("x += 0x0f;"),
        ["delete `x += 0x0f;`", "`x += 0x0f` with -=", "`x += 0x0f` with *=", "`0x0f` -> `16`"]
    );
    assert_eq!(found("g(\"a\", true)"), ["`\"a\"` -> `\"¤a\"`", "`true` -> `false`"]);
    assert_eq!(found("a.iter().any(g)"), ["`a.iter().any(g)` with all"]);
    assert_eq!(found("a.is_empty()"), ["negate `a.is_empty()`"]);
    assert_eq!(found("while g() { h() }"), ["`g()` always false"]);
    assert_eq!(found("write!(out, \"{}\", a + 1)").len(), 4);
    assert_eq!(
        found("match a { A | B => g(), C if c => h(), _ => {} }"),
        ["`c` always true", "`c` always false", "without the arm `A | B`"]
    );
}

#[test]
fn nothing_is_found_where_no_switch_can_be() {
    assert_eq!(found("if let Some(1) = a && let 2..5 = b {}"), [""; 0]);
    assert_eq!(found("const N: usize = 1 + 2; let a: [u8; 4] = g::<3>();"), [""; 0]);
    assert_eq!(found("let a = b.expect(\"a reason\");"), [""; 0]);
    let tests = find::changes(
        "const fn f() -> u8 { 1 } #[cfg(test)] mod a { fn g() -> u8 { 1 } } #[test] fn t() { f(); }",
    );
    let tests = tests.unwrap();
    assert_eq!((tests.changes.len(), tests.test_modules), (0, vec!["a".to_owned()]));
}

#[test]
fn samples_depend_on_the_seed_only() {
    let drawn = |count, seed| draw((0..1000).collect::<Vec<u32>>(), count, seed);
    assert_eq!(drawn(20, 7), drawn(20, 7));
    assert_ne!(drawn(20, 7), drawn(20, 8));
    let mut all = drawn(2000, 7);
    all.sort_unstable();
    assert_eq!(all, (0..1000).collect::<Vec<u32>>());
    assert_eq!(super::module_folder(Path::new("src/a/mod.rs")), Path::new("src/a/"));
    assert_eq!(super::module_folder(Path::new("src/a.rs")), Path::new("src/a"));
}
