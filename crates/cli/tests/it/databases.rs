//! Heaps in database servers, on the command line.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use borehole_testkit::Scratch;
use borehole_testkit::servers::{
    DATABASE, DatabaseServer, GUARDED_PASSWORD, GUARDED_USER, ServerKind, SmallDisk,
};
use serde_json::Value;

use crate::heap::{Waiting, refused};
use crate::program::{corpus, program, run, wait_for};

fn json(arguments: &[&str]) -> Vec<Value> {
    let said = String::from_utf8(run(arguments).done()).unwrap();
    said.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn text(arguments: &[&str]) -> String {
    String::from_utf8(run(arguments).done()).unwrap()
}

#[test]
fn a_live_process_goes_straight_into_postgresql() {
    into_a_server(ServerKind::Postgresql, "postgresql");
}

#[test]
fn a_live_process_goes_straight_into_mariadb() {
    into_a_server(ServerKind::Mariadb, "mysql");
}

#[test]
fn a_password_is_asked_for_and_not_shown() {
    let Some(server) = DatabaseServer::start(ServerKind::Postgresql) else { return };
    let address = server.address(DATABASE).replace("postgres@", &format!("{GUARDED_USER}@"));
    let Some(waiting) = Waiting::start("m1_objects") else { return };
    run(&["heap", "capture", "-p", &waiting.id(), "-o", &server.address(DATABASE)]).done();
    let line = format!("'{}' heap runs '{address}'", env!("CARGO_BIN_EXE_borehole"));
    let mut terminal = Command::new("script");
    terminal.args(["-qec", &line, "/dev/null"]).env("SHELL", "/bin/sh").env_remove("BOREHOLE_DB_PASSWORD");
    let mut asked = terminal.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut shown = BufReader::new(asked.stdout.take().unwrap());
    let mut prompt = Vec::new();
    shown.read_until(b':', &mut prompt).unwrap();
    while !prompt.ends_with(b"heaps: ") {
        assert_ne!(shown.read_until(b' ', &mut prompt).unwrap(), 0, "{}", String::from_utf8_lossy(&prompt));
    }
    writeln!(asked.stdin.take().unwrap(), "{GUARDED_PASSWORD}").unwrap();
    let mut rest = String::new();
    shown.read_to_string(&mut rest).unwrap();
    assert!(asked.wait().unwrap().success(), "{rest}");
    assert!(rest.contains("run") && !rest.contains("sesame"), "{rest}");
    assert_eq!(String::from_utf8(prompt).unwrap().trim(), format!("password for {address}:"));
}

fn into_a_server(kind: ServerKind, format: &str) {
    let Some(server) = DatabaseServer::start(kind) else { return };
    let Some(waiting) = Waiting::start("m1_objects") else { return };
    let address = server.address(DATABASE);
    let scratch = Scratch::new();
    let graph = scratch.path("worker.rmem");
    let graph = graph.to_str().unwrap();
    run(&["heap", "capture", "-p", &waiting.id(), "-o", graph]).done();
    run(&["heap", "capture", "-p", &waiting.id(), "-f", format, "-o", &address]).done();
    run(&["heap", "export", graph, "--to", format, "-o", &address]).done();
    // As reli's users write it, with a password that the process list does not show.
    let port = server.port().to_string();
    let pid = waiting.id();
    let by_parts = ["inspector:memory", "-p", &pid, "-f", format, "--db-port", &port, "--db-name", DATABASE];
    let mut guarded = program(&[&by_parts[..], &["--db-user", GUARDED_USER]].concat());
    let output = guarded.env("BOREHOLE_DB_PASSWORD", GUARDED_PASSWORD).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    refused(
        &[&by_parts[..], &["--db-user", GUARDED_USER]].concat(),
        "hint: set BOREHOLE_DB_PASSWORD to the password",
    );
    refused(&by_parts, "missing user: expected --db-user");

    let runs = json(&["heap", "runs", &address, "--json"]);
    assert_eq!(
        runs.iter().map(|run| run["run_id"].as_i64()).collect::<Vec<_>>(),
        [Some(1), Some(2), Some(3)]
    );
    let counts = |path: &str, more: &[&str]| {
        let arguments = [&["heap", "info", "--json", path][..], more].concat();
        serde_json::from_slice::<Value>(&run(&arguments).done()).unwrap()["counts"].take()
    };
    let (expected, found) = (counts(graph, &[]), counts(&address, &["--run-id", "2"]));
    for what in ["nodes", "edges", "locations", "attributes"] {
        assert_eq!(found[what], expected[what], "{what}");
    }
    assert!(expected["nodes"].as_u64() > Some(1000));
    let classes = text(&["heap", "query", &address, "--named", "classes", "--run-id", "1"]);
    assert!(classes.contains("Shop\\Product") && classes.contains("50"), "{classes}");
    // Copied from the server to a file, it gives the same answers.
    let file = scratch.path("copy.sqlite3");
    let file = file.to_str().unwrap();
    run(&["heap", "export", &address, "--run-id", "2", "-o", file]).done();
    for name in ["types", "depths", "roots", "large-strings", "duplicate-strings"] {
        let answer = |database: &str, run: &str| {
            text(&["heap", "query", database, "--named", name, "--run-id", run, "--csv"])
        };
        assert_eq!(answer(&address, "2"), answer(file, "1"), "{name}");
    }
    run(&["heap", "paths", &address, "--run-id", "2", "--compact"]).done();
    run(&["inspector:optimize-memory-db", &address, "--run-id=2"]).done();
    let count = "SELECT COUNT(*) AS paths FROM node_paths";
    assert_eq!(json(&["heap", "query", &address, "--json", count])[0]["paths"], expected["nodes"]);
    refused(&["heap", "info", &address, "--run-id", "9"], "missing run 9: the database has 1, 2, 3");
    refused(&["heap", "query", &address, "DELETE FROM runs"], &address);
    run(&["heap", "runs", &address, "--keep-last", "1"]).done();
    assert_eq!(json(&["heap", "runs", &address, "--json"]).len(), 1);
    what_is_refused(&server, graph);
}

fn what_is_refused(server: &DatabaseServer, graph: &str) {
    refused(&["heap", "export", graph, "-o", &server.address("nowhere")], "missing database: ");
    refused(&["heap", "export", graph, "--to", "mysql"], "as in -o mysql://USER@HOST/DATABASE");
    let other = if server.address("").starts_with("mysql") { "postgresql" } else { "mysql" };
    refused(
        &["heap", "export", graph, "--to", other, "-o", &server.address(DATABASE)],
        &format!("unsupported output: expected {other}, found the address of a "),
    );
}

#[test]
fn a_full_disk_loses_no_existing_data() {
    let Some(waiting) = Waiting::start("m3_closures") else { return };
    let scratch = Scratch::new();
    let graph = scratch.path("worker.rmem");
    let graph = graph.to_str().unwrap();
    run(&["heap", "capture", "-p", &waiting.id(), "-o", graph]).done();
    let folder = scratch.path("small");
    std::fs::create_dir(&folder).unwrap();
    let _small = SmallDisk::mount(&folder, "16m");
    let database = folder.join("heaps.sqlite3");
    let database = database.to_str().unwrap();
    let mut runs = 0;
    // Runs are added until the disk is full.
    let said = loop {
        let mut export = program(&["heap", "export", graph, "-o", database]);
        let output = export.output().unwrap();
        if !output.status.success() {
            break String::from_utf8(output.stderr).unwrap();
        }
        runs += 1;
        assert!(runs < 100);
    };
    assert!(runs > 0 && said.contains("the disk is full"), "{runs} {said}");
    assert_eq!(json(&["heap", "runs", database, "--json"]).len(), runs);
    let stray = "SELECT COUNT(*) AS stray FROM context_nodes WHERE run_id NOT IN (SELECT run_id FROM runs)";
    assert_eq!(json(&["heap", "query", database, "--json", stray])[0]["stray"], 0);
    // A new file that does not fit is not created in part.
    let fresh = folder.join("fresh.sqlite3");
    refused(&["heap", "export", graph, "-o", fresh.to_str().unwrap()], "the disk is full");
    let left: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["heaps.sqlite3"]);
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let Some(waiting) = Waiting::start("m1_objects") else { return };
    let scratch = Scratch::new();
    let graph = scratch.path("worker.rmem");
    let graph = graph.to_str().unwrap();
    run(&["heap", "capture", "-p", &waiting.id(), "-o", graph]).done();
    let missing = scratch.path("no/such/heaps.sqlite3");
    refused(&["heap", "export", graph, "-o", missing.to_str().unwrap()], "no/such");
    let folder = scratch.path("mounted");
    std::fs::create_dir(&folder).unwrap();
    let _small = SmallDisk::mount(&folder, "16m");
    let database = folder.join("heaps.sqlite3");
    let database = database.to_str().unwrap();
    run(&["heap", "export", graph, "-o", database]).done();
    let mode = std::fs::metadata(database).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // Not even root can write there now.
    let status = Command::new("mount").args(["-o", "remount,ro"]).arg(&folder).status().unwrap();
    assert!(status.success());
    refused(&["heap", "export", graph, "-o", database], "cannot open or write the database: ");
    refused(&["heap", "paths", database], "cannot open or write the database: ");
    assert_eq!(json(&["heap", "runs", database, "--json"]).len(), 1);
}

/// Reli's JSON of a heap, which has no time of capture.
fn of_reli(program: &str) -> String {
    corpus(&format!("php/reli-json/{program}.json.gz"))
}

#[test]
fn a_heap_without_a_time_has_none_in_a_database() {
    let scratch = Scratch::new();
    let file = scratch.path("heaps.sqlite3");
    let file = file.to_str().unwrap();
    run(&["heap", "export", &of_reli("m1_objects"), "-o", file]).done();
    run(&["heap", "export", &of_reli("m1_objects"), "-o", file]).done();
    let runs = json(&["heap", "runs", file, "--json"]);
    assert_eq!(runs.iter().map(|run| &run["created_at"]).collect::<Vec<_>>(), ["", ""]);
    assert_eq!(json(&["heap", "info", file, "--json"])[0]["created"], "");
    // Their age is unknown.
    run(&["heap", "runs", file, "--older-than", "1s"]).done();
    assert_eq!(json(&["heap", "runs", file, "--json"]).len(), 2);
}

#[test]
fn a_path_is_never_taken_for_an_address_of_sqlite() {
    let scratch = Scratch::new();
    let folder = scratch.path("here");
    std::fs::create_dir(&folder).unwrap();
    let heap = of_reli("m1_objects");
    let here = |arguments: &[&str]| {
        let output = program(arguments).current_dir(&folder).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    for name in ["file:x.sqlite3", ":memory:"] {
        for _ in 0..2 {
            here(&["heap", "export", &heap, "--to", "sqlite3", "-o", name]);
        }
        assert_eq!(here(&["heap", "runs", name, "--json"]).lines().count(), 2, "{name}");
        assert!(folder.join(name).is_file(), "{name}");
    }
}

/// Everybody finds no file, and begins one.
#[test]
fn writers_that_create_a_file_together_all_land_in_it() {
    let scratch = Scratch::new();
    let file = scratch.path("heaps.sqlite3");
    let file = file.to_str().unwrap();
    let heap = of_reli("m5_mixed");
    let writers: Vec<_> = (0..8)
        .map(|_| {
            let mut writer = program(&["heap", "export", &heap, "-o", file]);
            writer.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for writer in writers {
        let output = writer.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let runs = json(&["heap", "runs", file, "--json"]);
    assert_eq!(runs.len(), 8);
    assert!(runs.iter().all(|run| run["nodes"] == runs[0]["nodes"]), "{runs:?}");
    let left: Vec<_> =
        std::fs::read_dir(scratch.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["heaps.sqlite3"]);
}

#[test]
fn a_writer_waits_for_another_as_long_as_it_takes() {
    let scratch = Scratch::new();
    let file = scratch.path("heaps.sqlite3");
    let file = file.to_str().unwrap();
    run(&["heap", "export", &of_reli("m1_objects"), "-o", file]).done();
    let other = rusqlite::Connection::open(file).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let mut export = program(&["heap", "export", &of_reli("m1_objects"), "-o", file]);
    let mut writer = export.stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(writer.stderr.take().unwrap()).lines().map(Result::unwrap);
    let waiting = format!("waiting for {file}, which is being written by another process");
    assert_eq!(said.next().unwrap(), waiting);
    other.execute_batch("COMMIT").unwrap();
    assert_eq!(said.next().unwrap(), format!("{file}: added run 2"));
    assert!(writer.wait().unwrap().success());
}

#[test]
fn a_silent_server_is_given_up() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let place = silent.local_addr().unwrap();
    for scheme in ["postgresql", "mysql"] {
        let address = format!("{scheme}://me@{place}/heaps");
        let said = "; --timeout sets how long to wait\n";
        refused(&["heap", "runs", &format!("{address}?connect_timeout=1")], said);
        let heap = of_reli("m1_objects");
        for arguments in [
            &["heap", "runs", &address][..],
            &["heap", "query", &address, "--named", "types"],
            &["heap", "paths", &address],
            &["heap", "info", &address],
            &["heap", "compare", &address],
            &["heap", "export", &heap, "-o", &address],
            &["heap", "capture", "-p", "1", "-o", &address],
        ] {
            refused(&[arguments, &["--timeout", "100ms"]].concat(), "waited 0.1 s for the ");
        }
    }
}

#[test]
fn sizes_without_effect_are_checked_too() {
    let heap = of_reli("m1_objects");
    for (command, option) in [
        ("inspector:memory:report", "--memory-limit"),
        ("inspector:memory:report", "--mmap-size"),
        ("inspector:memory:compare", "--memory-limit"),
        ("inspector:memory:analyze", "--memory-limit"),
        ("inspector:memory:analyze", "--read-buffer"),
        ("inspector:memory", "--memory-limit"),
        ("inspector:trace", "--memory-limit"),
        ("inspector:trace", "--bulk-stack-copy"),
        ("rmem:explore", "--memory-limit"),
        ("converter:folded", "--memory-limit"),
    ] {
        refused(&[command, &format!("{option}=garbage"), &heap], "expected a size such as ");
    }
}

#[test]
fn duplicate_column_names_are_refused_as_json() {
    let scratch = Scratch::new();
    let file = scratch.path("heaps.sqlite3");
    let file = file.to_str().unwrap();
    run(&["heap", "export", &of_reli("m1_objects"), "-o", file]).done();
    let query = "SELECT 1 AS count, 2 AS count";
    refused(
        &["heap", "query", file, query, "--json"],
        "expected distinct column names for --json, found two called count; rename one with AS",
    );
    assert_eq!(text(&["heap", "query", file, query, "--csv"]), "count,count\r\n1,2\r\n");
}

#[test]
fn a_text_of_any_length_costs_no_more_than_the_limit_of_memory() {
    let scratch = Scratch::new();
    let file = scratch.path("heaps.sqlite3");
    let file = file.to_str().unwrap();
    run(&["heap", "export", &of_reli("m1_objects"), "-o", file]).done();
    let connection = rusqlite::Connection::open(file).unwrap();
    let long =
        "UPDATE context_node_locations SET string_value = printf('%.20000000c', 'x') WHERE node_id = 17";
    assert!(connection.execute(long, []).unwrap() > 0);
    for command in
        [&["heap", "info", file][..], &["heap", "report", file], &["heap", "ask", file, "top-classes"]]
    {
        let said = "text too large: texts of at most 8 MiB are read within the limit of memory\nhint: allow more with --max-memory";
        refused(&[command, &["--max-memory", "64M"]].concat(), said);
        run(command).done();
    }
    // Nor does it matter that a statement makes it.
    let statement = "SELECT printf('%.900000000c', 'x')";
    refused(&["heap", "query", file, statement, "--max-memory", "64M"], "text too large: ");
}

#[test]
fn a_query_without_an_end_is_ended_by_an_interrupt() {
    let scratch = Scratch::new();
    let file = scratch.path("heaps.sqlite3");
    let file = file.to_str().unwrap();
    run(&["heap", "export", &of_reli("m1_objects"), "-o", file]).done();
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n";
    let query = program(&["heap", "query", file, endless]);
    // Tests may run in the background of a shell, which ignores the signal there.
    let mut query = Command::new("env")
        .args(["--default-signal=INT".as_ref(), query.get_program()])
        .args(query.get_args())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // It reads the file before it computes. Before that, `env` runs, which may still ignore the signal.
    let stat = format!("/proc/{}/stat", query.id());
    wait_for(|| std::fs::read_to_string(&stat).unwrap().contains("(borehole) R ").then_some(()));
    let id = nix::unistd::Pid::from_raw(query.id().try_into().unwrap());
    nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGINT).unwrap();
    assert!(!wait_for(|| query.try_wait().unwrap()).success());
    refused(&["heap", "query", file, endless, "--timeout", "300ms"], "waited 0.3 s for a row of the answer");
}

/// A program that greets as PostgreSQL does, and answers with a message of two gigabytes.
fn endless_server() -> std::net::SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let place = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut client = client;
                let mut startup = [0; 1024];
                let _ = client.read(&mut startup);
                // Authentication is not needed; it is ready; a row of data.
                let ready = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05ID\x7f\xff\xff\xff";
                let mut sent = client.write_all(ready);
                while sent.is_ok() {
                    sent = client.write_all(&[b'x'; 1 << 16]);
                }
            });
        }
    });
    place
}

#[test]
fn an_answer_of_any_length_costs_no_more_than_the_limit_of_memory() {
    let address = format!("postgresql://me@{}/heaps", endless_server());
    refused(&["heap", "runs", &address, "--max-memory", "64M"], "needs more than 64 MiB of memory");
}
