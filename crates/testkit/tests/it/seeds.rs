//! All inputs that a fuzz target started with, or once failed on.

use std::fs;

use borehole_testkit::fuzzing::targets;
use borehole_testkit::project_file;

#[test]
fn every_seed_replays() {
    for target in targets() {
        let seeds = target.seeds();
        assert!(seeds.len() > target.corpus.len(), "{} has no seeds", target.name);
        for seed in seeds {
            // Printed only if the test fails, perhaps by a panic inside the target.
            println!("{} on {}", target.name, seed.display());
            target.run(&fs::read(seed).unwrap());
        }
    }
}

#[test]
fn every_seed_folder_is_that_of_a_target() {
    let targets = targets();
    for folder in fs::read_dir(project_file("fuzz/seeds")).unwrap() {
        let name = folder.unwrap().file_name();
        assert!(targets.iter().any(|target| *target.name == name), "fuzz/seeds/{}", name.display());
    }
}
