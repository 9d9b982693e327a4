//! Heap databases in files, on the command line.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use borehole_testkit::Scratch;

use crate::heap::refused;
use crate::program::{corpus, listing, program, run, text};

/// A dump of the corpus as a graph.
fn graph(scratch: &Scratch) -> String {
    let path = scratch.path("worker.rmem");
    run(&["heap", "analyze", &corpus("php/heap/7.4.33.rdump"), "-o", text(&path)]).done();
    text(&path).to_owned()
}

#[test]
fn journals_of_an_old_database_do_not_reach_the_new_one() {
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
fn errors_of_a_new_database_name_its_final_path() {
    let scratch = Scratch::new();
    let graph = graph(&scratch);
    let folder = scratch.path("small");
    fs::create_dir(&folder).unwrap();
    let _small = borehole_testkit::servers::SmallDisk::mount(&folder, "1m");
    let database = folder.join("heaps.sqlite3");
    let said = format!("error: {}: the disk is full\n", database.display());
    refused(&["heap", "export", &graph, "-o", text(&database)], &said);
    assert_eq!(listing(&folder), Vec::<String>::new());
}

/// A database with two runs of the graph.
fn database(scratch: &Scratch) -> String {
    let (graph, path) = (graph(scratch), scratch.path("heaps.sqlite3"));
    for _ in 0..2 {
        run(&["heap", "export", &graph, "-o", text(&path)]).done();
    }
    text(&path).to_owned()
}

#[test]
fn answers_from_a_heap_whose_sizes_contradict_each_other_carry_a_warning() {
    let scratch = Scratch::new();
    let database = database(&scratch);
    let change =
        "UPDATE summary SET value = '4096' WHERE key IN ('zend_mm_heap_total', 'memory_get_real_usage')";
    assert!(rusqlite::Connection::open(&database).unwrap().execute(change, []).unwrap() >= 2);
    let page = scratch.path("heap.html");
    let said =
        format!("warning: {database}: inconsistent sizes: expected at most 4096 bytes in the heap, found ");
    for arguments in [
        &["heap", "ask", &database, "top-classes"][..],
        &["heap", "compare", &database],
        &["heap", "viz", &database, "-o", text(&page)],
    ] {
        let ended = run(arguments);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        assert!(ended.stderr.starts_with(&said), "{arguments:?}: {}", ended.stderr);
    }
}

#[test]
fn query_options_work_or_are_refused() {
    let scratch = Scratch::new();
    let database = database(&scratch);
    let asked = |more: &[&str]| {
        let arguments = [&["heap", "query", &database, "--csv"], more].concat();
        String::from_utf8(run(&arguments).quietly()).unwrap()
    };
    let statement = "SELECT DISTINCT run_id, :node AS node FROM context_nodes WHERE run_id IN (:run, :other)";
    let options = ["--run-id", "1", "--other-run", "2", "--node"];
    for node in ["#40", "40"] {
        let answer = asked(&[&[statement][..], &options, &[node]].concat());
        assert_eq!(answer, "run_id,node\r\n1,40\r\n2,40\r\n");
    }
    assert_eq!(asked(&["SELECT :run AS run, ':run' AS text"]), "run,text\r\n2,:run\r\n");
    let not_asked = |more: &[&str], why: &str| {
        refused(&[&["heap", "query", &database], more].concat(), why);
    };
    not_asked(&["SELECT 1", "--run-id", "1"], "unsupported --run-id 1: the statement does not use :run");
    not_asked(&["SELECT :node"], "missing --node: the statement needs it");
    not_asked(&["--named", "types", "--node", "#40"], "unsupported --node 40: types does not use :node");
    not_asked(&["SELECT :other", "--other-run", "9"], "missing run 9: the database has 1, 2");
    not_asked(&["SELECT :node", "--node", "x"], "'--node <NODE>': expected a node such as #17, found x");
    not_asked(&[""], "missing statement: expected SQL");
    let folder = scratch.path("");
    refused(&["heap", "query", text(&folder), "SELECT 1"], "expected an SQLite database, found a directory");
    let graph = scratch.path("worker.rmem");
    let graph = text(&graph);
    let export = format!(
        "\nhint: the file holds a heap; convert it with borehole heap export {graph} -o heaps.sqlite3\n"
    );
    refused(&["heap", "query", graph, "SELECT 1"], &format!(": expected an SQLite database{export}"));
    // Without SQLite's error number.
    not_asked(&["SELECT"], ": incomplete input\n");
    let deleted = run(&["heap", "runs", &database, "--keep-last", "1"]);
    assert_eq!((deleted.code, &*deleted.stderr), (0, "1 run deleted\n"));
}

#[test]
fn rows_are_streamed_and_a_closed_pipe_ends_them_quietly() {
    let scratch = Scratch::new();
    let database = database(&scratch);
    // This query would never end.
    let endless = "WITH RECURSIVE row(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM row) SELECT n FROM row";
    for (form, first) in [("--json", "{\"n\":1}"), ("--csv", "n\r")] {
        let mut query = program(&["heap", "query", &database, form, endless]);
        let mut query = query.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(query.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, format!("{first}\n"));
        let ended = query.wait_with_output().unwrap();
        assert_eq!((ended.status.code(), &*ended.stderr), (Some(0), &b""[..]), "{form}");
    }
}

#[test]
fn a_damaged_database_has_a_hint_and_is_not_read_leniently() {
    let scratch = Scratch::new();
    let database = database(&scratch);
    refused(
        &["heap", "info", "--lenient", &database],
        "unsupported --lenient: expected a dump or a core file",
    );
    let mut bytes = fs::read(&database).unwrap();
    let length = bytes.len();
    bytes[4096..length / 2].fill(0x5a);
    // A name that a shell would execute.
    let database = text(&scratch.write("a;id.db", &bytes)).to_owned();
    let said = format!(
        "error: {database}: the database is damaged\nhint: print what is left as SQL with sqlite3 '{database}' .recover\n"
    );
    refused(&["heap", "info", &database], &said);
}
