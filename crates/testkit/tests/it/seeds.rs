//! Every input that a fuzz target began with, or once failed on.

use std::fs;

use borehole_testkit::fuzzing::TARGETS;
use borehole_testkit::project_file;

#[test]
fn every_seed_replays() {
    for target in TARGETS {
        let seeds = target.seeds();
        assert!(seeds.len() > target.corpus.len(), "{} has no seeds", target.name);
        for seed in seeds {
            // Said only when the test fails, which may be by a panic inside the target.
            println!("{} on {}", target.name, seed.display());
            (target.run)(&fs::read(seed).unwrap());
        }
    }
}

#[test]
fn every_target_is_known_to_libfuzzer_and_every_seed_folder_to_a_target() {
    let manifest = fs::read_to_string(project_file("fuzz/Cargo.toml")).unwrap();
    for target in TARGETS {
        let source = format!("fuzz/fuzz_targets/{}.rs", target.name);
        let text =
            fs::read_to_string(project_file(&source)).unwrap_or_else(|error| panic!("{source}: {error}"));
        assert!(text.contains(&format!("Target::named(\"{}\")", target.name)), "{source}");
        assert!(
            manifest.contains(&format!("name = \"{}\"", target.name)),
            "fuzz/Cargo.toml: {}",
            target.name
        );
    }
    for folder in fs::read_dir(project_file("fuzz/seeds")).unwrap() {
        let name = folder.unwrap().file_name();
        assert!(TARGETS.iter().any(|target| *target.name == name), "fuzz/seeds/{}", name.display());
    }
}
