//! Databases of heaps in files, on the command line.

use std::fs;

use borehole_testkit::Scratch;

use crate::heap::refused;
use crate::program::{corpus, listing, run, text};

/// A dump of the corpus as a graph.
fn graph(scratch: &Scratch) -> String {
    let path = scratch.path("worker.rmem");
    run(&["heap", "analyze", &corpus("php/heap/7.4.33.rdump"), "-o", text(&path)]).done();
    text(&path).to_owned()
}

#[test]
fn what_is_left_beside_an_old_database_does_not_reach_the_new_one() {
    let scratch = Scratch::new();
    let graph = graph(&scratch);
    let folder = scratch.path("databases");
    fs::create_dir(&folder).unwrap();
    let database = folder.join("heaps.sqlite3");
    for is_there in [false, true] {
        for suffix in ["-journal", "-wal", "-shm"] {
            fs::write(folder.join(format!("heaps.sqlite3{suffix}")), "left").unwrap();
        }
        let force = ["--force"];
        let more = if is_there { &force[..] } else { &[] };
        run(&[&["heap", "export", &graph, "-o", text(&database)], more].concat()).quietly();
        assert_eq!(listing(&folder), ["heaps.sqlite3"]);
    }
    run(&["heap", "info", text(&database)]).done();
}

#[test]
fn what_goes_wrong_with_a_new_database_is_said_of_its_own_name() {
    let scratch = Scratch::new();
    let graph = graph(&scratch);
    let folder = scratch.path("small");
    fs::create_dir(&folder).unwrap();
    let _small = borehole_testkit::servers::SmallDisk::mount(&folder, "1m");
    let database = folder.join("heaps.sqlite3");
    let said = format!("{}: the disk is full", database.display());
    refused(&["heap", "export", &graph, "-o", text(&database)], &said);
    assert_eq!(listing(&folder), Vec::<String>::new());
}
