//! The documentation, followed in a new crate.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::scratch::Scratch;
use super::trace::Seen;

/// The root of the project.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

/// The code block of a document that begins with this line after its fence.
fn block<'a>(document: &'a str, language: &str) -> &'a str {
    let (_, rest) = document.split_once(&format!("```{language}\n")).unwrap();
    rest.split_once("```").unwrap().0
}

#[test]
fn the_first_page_works_pasted_into_a_new_crate() {
    let document = fs::read_to_string(root().join("docs/start-tokio.md")).unwrap();
    let (dependencies, program) = (block(&document, "toml"), block(&document, "rust"));
    let example = fs::read_to_string(root().join("examples/tokio_service.rs")).unwrap();
    assert!(example.ends_with(program), "the example and docs/start-tokio.md differ");

    let folder = Scratch::new();
    let here = folder.folder();
    fs::create_dir(folder.path("src")).unwrap();
    let package = "[package]\nname = \"service\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n\n";
    let dependencies = dependencies.replace("../borehole/", &format!("{}/", root().display()));
    fs::write(folder.path("Cargo.toml"), format!("{package}{dependencies}")).unwrap();
    fs::write(folder.path("src/main.rs"), program).unwrap();
    // The versions that the project is tested with, which are there without a network.
    fs::copy(root().join("Cargo.lock"), folder.path("Cargo.lock")).unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["run", "--quiet", "--offline"]).current_dir(here);
    // What is built stays for the next run of this test.
    cargo.env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("guide"));
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let seen = Seen::in_folder(&folder.path("traces"));
    // The accepting task, and two for each request.
    assert_eq!((seen.tasks().len(), seen.blocked_on().len()), (201, 1));
    assert!(seen.spawned.values().all(|place| place.starts_with("src/main.rs:")), "{:?}", seen.spawned);
    assert!(seen.longest_poll_ns >= 80_000_000, "{}", seen.longest_poll_ns);
}

#[test]
fn every_setting_is_in_the_documentation() {
    let document = fs::read_to_string(root().join("docs/record-tokio.md")).unwrap();
    for (end, about) in borehole_recorder::SETTINGS {
        let row = format!("| `{}{end}` | {about} |", borehole_recorder::PREFIX);
        assert!(document.contains(&row), "{row}");
    }
}
