//! Heaps of real PHP processes, on the command line.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use borehole_testkit::{Scratch, corpus, peers};
use serde_json::Value;

use crate::program::run;

/// A PHP program that has built its heap and waits; ends with the test.
pub(crate) struct Waiting {
    child: Child,
    /// `memory_get_usage()`, as the program printed it.
    usage: u64,
}

impl Waiting {
    /// `None` if PHP is skipped.
    pub(crate) fn start(program: &str) -> Option<Self> {
        let mut command = peers::peer("php")?.command();
        command.args(["-d", "opcache.enable_cli=0"]).arg(corpus(&format!("php/mem/{program}.php")));
        let mut child =
            command.env("WAIT", "300").stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let ready = lines.find_map(|line| line.unwrap().strip_prefix("READY ").map(str::to_owned)).unwrap();
        let facts: Value = serde_json::from_str(&ready).unwrap();
        Some(Self { child, usage: facts["usage"].as_u64().unwrap() })
    }

    pub(crate) fn id(&self) -> String {
        self.child.id().to_string()
    }

    /// Whether it still runs as before and is not stopped.
    pub(crate) fn is_sleeping(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        stat.rsplit_once(") ").unwrap().1.starts_with('S')
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[track_caller]
pub(crate) fn refused(arguments: &[&str], why: &str) {
    let said = run(arguments).failed();
    assert!(said.contains(why), "{said}");
}

fn info(path: &Path) -> Value {
    serde_json::from_slice(&run(&["heap", "info", "--json", path.to_str().unwrap()]).done()).unwrap()
}

fn number(info: &Value, key: &str) -> u64 {
    info["summary"][key].as_str().unwrap().parse().unwrap()
}

#[test]
fn a_dump_analysed_later_agrees_with_the_process() {
    let Some(waiting) = Waiting::start("m1_objects") else { return };
    let scratch = Scratch::new();
    let [dump, graph] = ["worker.rdump", "worker.rmem"].map(|name| scratch.path(name));
    let (dump_path, graph_path) = (dump.to_str().unwrap(), graph.to_str().unwrap());
    run(&["heap", "dump", "-p", &waiting.id(), "-o", dump_path]).done();
    let mode = std::fs::metadata(&dump).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    run(&["heap", "analyze", dump_path, "-o", graph_path]).done();
    let info = info(&graph);
    assert_eq!(info["format"], "rmem");
    assert_eq!(info["summary"]["heap_memory_accounting"], "exact");
    // It measured while it held the array that it printed.
    let used = number(&info, "memory_get_usage");
    assert!(waiting.usage - used < 1024, "{used} {}", waiting.usage);
    let classes = info["classes"].as_array().unwrap();
    let products = classes.iter().find(|class| class["name"] == "Shop\\Product").unwrap();
    assert_eq!(products["count"], 50);
    // A capture into a pipe.
    let piped = run(&["heap", "dump", "-p", &waiting.id(), "-o", "-"]).done();
    assert_eq!(piped[..4], std::fs::read(&dump).unwrap()[..4]);
    assert!(!Path::new("-").exists());
    // If nothing can be written, nothing is stopped.
    for name in ["nowhere/a.rmem", "nowhere/a.sqlite3"] {
        let path = scratch.path(name);
        let said = run(&["heap", "capture", "-p", &waiting.id(), "-o", path.to_str().unwrap()]).failed();
        assert!(said.contains("no such file or directory") && !said.contains("copied"), "{said}");
    }
    // Nothing is replaced without --force, and a dump is not a graph.
    refused(
        &["heap", "dump", "-p", &waiting.id(), "-o", dump_path],
        "file exists; use --force to replace it",
    );
    refused(
        &["heap", "analyze", graph_path, "-o", dump_path, "--force"],
        "expected a dump or a core file, found rmem",
    );
}

#[test]
fn a_heap_is_captured_into_every_format_and_read_back() {
    let Some(waiting) = Waiting::start("m3_closures") else { return };
    let scratch = Scratch::new();
    let mut nodes = Vec::new();
    for name in ["a.rmem", "a.json", "a.sqlite3", "a.hprof", "a.heapsnapshot", "a.jsonl"] {
        let path = scratch.path(name);
        run(&["heap", "capture", "-p", &waiting.id(), "-o", path.to_str().unwrap()]).done();
        assert!(std::fs::metadata(&path).unwrap().len() > 100_000, "{name}");
        if ["a.rmem", "a.json", "a.sqlite3"].contains(&name) {
            nodes.push(info(&path)["counts"]["nodes"].as_u64().unwrap());
        }
    }
    // Unreadable inputs are named, and a command for profiles names the one for heaps.
    for name in ["hprof", "heapsnapshot", "jsonl"] {
        let path = scratch.path(&format!("a.{name}"));
        let why = format!("unsupported input: {name} can be written but not read");
        refused(&["heap", "info", path.to_str().unwrap()], &why);
    }
    let path = scratch.path("a.rmem");
    refused(&["info", path.to_str().unwrap()], "hint: the file holds a heap; use borehole heap info ");
    let database = scratch.path("a.sqlite3");
    let database = database.to_str().unwrap();
    let counted =
        run(&["heap", "query", database, "--json", "SELECT COUNT(*) AS nodes FROM context_nodes"]).done();
    nodes.push(serde_json::from_slice::<Value>(&counted).unwrap()["nodes"].as_u64().unwrap());
    assert_eq!(nodes.len(), 4);
    assert!(nodes.iter().all(|&count| count == nodes[0] && count > 10_000), "{nodes:?}");
    // A further run, and the queries.
    run(&["heap", "export", scratch.path("a.rmem").to_str().unwrap(), "-o", database]).done();
    let runs = String::from_utf8(run(&["heap", "runs", database]).done()).unwrap();
    assert_eq!(runs.lines().count(), 3, "{runs}");
    let growth = run(&[
        "heap",
        "query",
        database,
        "--named",
        "class-growth",
        "--run-id",
        "1",
        "--other-run",
        "2",
        "--csv",
    ])
    .done();
    let growth = String::from_utf8(growth).unwrap();
    assert!(
        growth.lines().skip(1).all(|line| line.trim_end().ends_with(",0")) && growth.lines().count() > 2,
        "{growth}"
    );
    refused(&["heap", "query", database, "--named", "references"], "missing --node: references needs it");
    refused(&["heap", "paths", database, "--run-id", "3"], "missing run 3: the database has 1, 2");
    run(&["inspector:optimize-memory-db", database]).done();
    let paths = run(&["heap", "query", database, "--csv", "SELECT COUNT(*) FROM node_paths"]).done();
    assert_eq!(String::from_utf8(paths).unwrap(), format!("COUNT(*)\r\n{}\r\n", nodes[0] * 2));
}

#[test]
fn reli_s_command_lines_for_heaps_work() {
    let Some(waiting) = Waiting::start("m4_generators") else { return };
    let scratch = Scratch::new();
    let path = |name: &str| scratch.path(name).to_str().unwrap().to_owned();
    let printed = run(&["inspector:memory", "-p", &waiting.id()]).done();
    let printed: Value = serde_json::from_slice(&printed).unwrap();
    assert_eq!(printed["summary"][0]["php_version"], "v82");
    assert_eq!(printed["context"]["call_frames"]["#type"], "CallFramesContext");
    run(&["i:m:dump", "-p", &waiting.id(), "-o", &path("a.rdump")]).done();
    run(&["inspector:memory:analyze", &path("a.rdump"), "-o", &path("A.RMEM")]).done();
    run(&["inspector:memory:export-sqlite", &path("A.RMEM"), &path("a.db")]).done();
    refused(&["inspector:memory:export-sqlite", &path("A.RMEM"), &path("a.db")], "file exists");
    run(&["inspector:memory", "-p", &waiting.id(), "-f", "sqlite3", "-o", &path("a.db")]).done();
    let runs = String::from_utf8(run(&["heap", "runs", "--json", &path("a.db")]).done()).unwrap();
    assert_eq!(runs.lines().count(), 2);
    refused(
        &["inspector:memory", "-p", &waiting.id(), "-f", "rmem"],
        "this format needs a file; name one with -o",
    );
}

#[test]
fn strings_are_redacted_on_request() {
    let Some(waiting) = Waiting::start("m1_objects") else { return };
    let scratch = Scratch::new();
    let contents = |arguments: &[&str], name: &str| {
        let path = scratch.path(name);
        let all = ["heap", "capture", "-p", &waiting.id(), "-o", path.to_str().unwrap()];
        run(&[&all, arguments].concat()).done();
        String::from_utf8(std::fs::read(path).unwrap()).unwrap()
    };
    let (whole, redacted) = (contents(&[], "whole.json"), contents(&["--redact"], "redacted.json"));
    let secret = "AAAAAAAAAAAAAAAAAAAA";
    assert!(whole.contains(secret) && whole.contains("dyn7"));
    assert!(!redacted.contains(secret) && !redacted.contains("\"dyn7\""));
    assert!(redacted.contains("[100 bytes, ") && redacted.contains("Shop\\\\Product"));
}

#[test]
fn redacting_keeps_names_of_the_program() {
    let scratch = Scratch::new();
    let dump = corpus("php/heap/8.2.36.rdump");
    let heaps = ["one.json", "other.json"].map(|name| {
        let path = scratch.path(name).into_os_string().into_string().unwrap();
        assert_eq!(run(&["heap", "analyze", dump.to_str().unwrap(), "--redact", "-o", &path]).code, 0);
        path
    });
    assert!(std::fs::read_to_string(&heaps[0]).unwrap().contains(r"facts\\tell"));
    // Functions have the same names in both; the other strings have hashes of their own.
    let compared = String::from_utf8(run(&["heap", "compare", &heaps[0], &heaps[1]]).done()).unwrap();
    assert!(compared.contains("grew by 0 B") && !compared.contains(" bytes, "), "{compared}");
}

#[test]
fn a_damaged_dump_is_analysed_only_on_request() {
    let Some(waiting) = Waiting::start("m1_objects") else { return };
    let scratch = Scratch::new();
    let (dump, graph) = (scratch.path("cut.rdump"), scratch.path("cut.rmem"));
    let (dump_path, graph_path) = (dump.to_str().unwrap(), graph.to_str().unwrap());
    run(&["heap", "dump", "-p", &waiting.id(), "-o", dump_path]).done();
    let bytes = std::fs::read(&dump).unwrap();
    std::fs::write(&dump, &bytes[..bytes.len() - 100]).unwrap();
    refused(&["heap", "analyze", dump_path, "-o", graph_path], "(rdump, at byte 0x");
    assert!(!graph.exists());
    let ended = run(&["heap", "analyze", "--lenient", dump_path, "-o", graph_path]);
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    assert!(graph.exists());
}

#[test]
fn a_command_is_started_looked_at_and_ended() {
    if peers::peer("php").is_none() {
        return;
    }
    let scratch = Scratch::new();
    let (path, program) = (scratch.path("own.rmem"), corpus("php/mem/m1_objects.php"));
    let [path_text, program] = [&path, &program].map(|path| path.to_str().unwrap());
    run(&["heap", "capture", "--delay", "2s", "-o", path_text, "--", "php", program]).done();
    assert_eq!(info(&path)["summary"]["heap_memory_accounting"], "exact");
    refused(
        &["heap", "capture", "--force", "--delay", "1s", "-o", path_text, "--", "true"],
        "the command ended before its heap was copied",
    );
    refused(&["heap", "capture", "-p", "999999999", "-o", path_text, "--force"], "does not exist");
}

#[test]
fn other_files_hold_no_heap() {
    let text = corpus("php/mem/m1_objects.php");
    refused(&["heap", "info", text.to_str().unwrap()], "unsupported format: expected rdump, rmem, json");
}

#[test]
fn compressed_graphs_are_read() {
    let packed = corpus("php/reli-json/m1_objects.json.gz");
    let found = info(&packed);
    assert_eq!(found["format"], "json");
    let scratch = Scratch::new();
    let plain = scratch.path("m1.json");
    let unpacked = Command::new("gzip").arg("-dc").arg(&packed).output().unwrap();
    std::fs::write(&plain, unpacked.stdout).unwrap();
    assert_eq!(info(&plain), found);
    assert!(found["counts"]["nodes"].as_u64() > Some(100));
    // A compressed dump is reported as such, and a member that ends in the middle is an error.
    let dump = scratch.path("dump.rdump");
    std::fs::copy(corpus("php/heap/8.2.36.rdump"), &dump).unwrap();
    assert!(Command::new("gzip").arg(&dump).status().unwrap().success());
    let dump = dump.with_extension("rdump.gz");
    refused(
        &["heap", "info", dump.to_str().unwrap()],
        "unsupported input: a compressed rdump; decompress it first",
    );
    let cut = scratch.path("cut.json.gz");
    let bytes = std::fs::read(&packed).unwrap();
    std::fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    refused(&["heap", "info", cut.to_str().unwrap()], "cut.json.gz: ");
}

#[test]
fn shares_may_have_a_percent_sign() {
    let heap = corpus("php/reli-json/m1_objects.json.gz");
    let heap = heap.to_str().unwrap();
    for threshold in ["5", "5%"] {
        run(&["heap", "compare", heap, heap, "--threshold", threshold]).done();
        run(&["inspector:memory:compare", heap, heap, "--threshold", threshold]).done();
    }
    for wrong in ["nan", "much"] {
        let why = format!("expected a percentage such as 5%, found {wrong}");
        refused(&["heap", "compare", heap, heap, "--threshold", wrong], &why);
    }
}

#[test]
fn info_shows_the_contents_of_a_dump() {
    let whole = corpus("php/heap/8.2.36.rdump");
    let ended = run(&["inspector:memory:dump:inspect", whole.to_str().unwrap()]);
    let text = String::from_utf8(ended.quietly()).unwrap();
    assert!(
        text.contains("\nmappings\n") && text.contains("/php8.2") && text.contains("\nregions\n"),
        "{text}"
    );
    let scratch = Scratch::new();
    let cut = scratch.path("cut.rdump");
    let bytes = std::fs::read(&whole).unwrap();
    std::fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    let ended = run(&["inspector:memory:dump:inspect", cut.to_str().unwrap()]);
    assert_eq!(ended.code, 3);
    assert!(ended.stderr.contains("(rdump, at byte 0x"), "{}", ended.stderr);
    refused(&["inspector:memory:dump:inspect", "/dev/null"], "expected a dump, found a file that begins");
}

#[test]
fn analysis_options_are_refused_for_graphs() {
    let [graph, dump] = ["php/reli-json/m1_objects.json.gz", "php/heap/8.2.36.rdump"].map(corpus);
    let [graph, dump] = [&graph, &dump].map(|path| path.to_str().unwrap());
    let options: [&[&str]; 5] = [
        &["--redact"],
        &["--thread", "1"],
        &["--php-version", "8.2"],
        &["--php-path", "/usr/bin/php"],
        &["--memory-limit-error-file", "a.php", "--memory-limit-error-line", "1"],
    ];
    for option in options {
        let why = format!("unsupported {}: expected a dump or a core file", option[0]);
        refused(&[&["heap", "report", graph], option].concat(), &why);
    }
    let scratch = Scratch::new();
    let public = scratch.path("public.jsonl");
    refused(&["heap", "export", graph, "--redact", "-o", public.to_str().unwrap()], "--redact");
    assert!(!public.exists());
    run(&["heap", "export", dump, "--redact", "-o", public.to_str().unwrap()]).done();
    assert!(public.exists());
}

#[test]
fn a_comparison_needs_two_heaps_and_known_nodes() {
    let [first, second] =
        ["m1_objects", "m5_mixed"].map(|name| corpus(&format!("php/reli-json/{name}.json.gz")));
    let [first, second] = [&first, &second].map(|path| path.to_str().unwrap());
    let scratch = Scratch::new();
    let database = scratch.path("heaps.sqlite3");
    let database = database.to_str().unwrap();
    let compare = ["heap", "compare", database, "--fail-over", "1G"];
    refused(
        &["heap", "compare", first, "--fail-over", "1B"],
        "expected two heaps, or a database with two runs, found one: json",
    );
    run(&["heap", "export", first, "-o", database]).done();
    refused(&compare, "expected two runs, found none before run 1");
    run(&["heap", "export", second, "-o", database]).done();
    refused(
        &[&compare[..], &["--run-id-baseline", "2"]].concat(),
        "expected two different runs, found run 2 twice",
    );
    let same = scratch.folder().join("./heaps.sqlite3");
    let named_twice = ["heap", "compare", database, same.to_str().unwrap()];
    refused(&named_twice, "expected two different runs, found run 2 twice");
    let chosen = ["--run-id-baseline", "1", "--run-id-target", "2"];
    let compared = run(&compare).done();
    assert_eq!(compared, run(&[&compare[..], &chosen].concat()).done());
    assert_eq!(compared, run(&[&named_twice[..], &chosen].concat()).done());
    let query = ["heap", "query", database, "--named"];
    refused(
        &[&query[..], &["class-growth", "--other-run", "99"]].concat(),
        "missing run 99: the database has 1, 2",
    );
    refused(
        &[&query[..], &["path", "--node", "99999999"]].concat(),
        "unknown node: expected one of run 2, found 99999999",
    );
    run(&[&query[..], &["path", "--node", "7"]].concat()).done();
}

#[test]
fn long_paths_show_the_first_and_last_steps() {
    let depth = 20_000;
    let mut json = "{\"summary\":[[]],\"context\":".to_owned();
    for node in 0..depth {
        let link = if node == 0 { "{\"objects_store\":" } else { ",\"next\":" };
        let node_type = if node == 0 { "ObjectsStoreContext" } else { "ObjectContext" };
        json += &format!("{link}{{\"#node_id\":{node},\"#type\":\"{node_type}\"");
    }
    json += &"}".repeat(depth + 2);
    let scratch = Scratch::new();
    let list = scratch.write("list.json", json.as_bytes());
    let list = list.to_str().unwrap();
    let last = format!("#{}", depth - 1);
    let ask = ["heap", "ask", list, "--json", "path-to-root", &last];
    let answer = |arguments: &[&str]| -> Value { serde_json::from_slice(&run(arguments).done()).unwrap() };
    let found = answer(&ask);
    let rows = found["rows"].as_array().unwrap();
    assert_eq!((rows.len(), &found["of"]), (20, &depth.into()));
    assert_eq!((&rows[0]["node_id"], &rows[9]["node_id"]), (&0.into(), &9.into()));
    assert_eq!(rows[19]["node_id"], depth - 1);
    assert!(rows[19]["path"].as_str().unwrap().contains(" more)"), "{}", rows[19]);
    // The table of objects does not keep any of them alive.
    assert_eq!((&rows[1]["strength"], &rows[2]["strength"]), (&"weak".into(), &"strong".into()));
    assert_eq!(answer(&[&ask[..], &["--limit", "0"]].concat())["rows"].as_array().unwrap().len(), depth);
}

#[test]
fn heaps_and_profiles_are_not_confused() {
    let scratch = Scratch::new();
    let path = |name: &str| scratch.path(name).to_str().unwrap().to_owned();
    let reli = corpus("php/reli-json/m1_objects.json.gz").to_str().unwrap().to_owned();
    // It is read as a heap under any name, and never as a profile.
    for name in ["h.rmem", "h.json", "h.folded", "h.sqlite3"] {
        let format = if name == "h.folded" { &["-f", "rmem"][..] } else { &[] };
        run(&[&["heap", "export", &*reli, "-o", &path(name)], format].concat()).done();
        run(&["heap", "info", &path(name)]).done();
        for command in ["info", "report", "check", "recover"] {
            let said = run(&[command, &path(name)]).failed();
            assert!(
                said.contains("hint: the file holds a heap; use borehole heap info "),
                "{command} {name}: {said}"
            );
        }
    }
    for name in ["h.jsonl", "h.hprof", "h.heapsnapshot"] {
        run(&["heap", "export", &reli, "-o", &path(name)]).done();
        let said = run(&["check", &path(name)]).failed();
        let format = name.trim_start_matches("h.");
        assert!(
            said.contains(&format!("hint: the file holds a heap as {format}, which only other programs")),
            "{said}"
        );
    }
    let trace = corpus("tachyon/corpus/09_subinterp.bin").to_str().unwrap().to_owned();
    for format in ["speedscope", "gecko", "chrome-trace", "jsonl"] {
        let profile = path(&format!("p.{format}"));
        run(&["convert", &trace, "--to", format, "-o", &profile]).done();
        for command in [&["info"][..], &["report"], &["export"], &["compare", &path("h.rmem")]] {
            let said = run(&[&["heap"], command, &[&*profile]].concat()).failed();
            assert!(said.contains("unsupported format: expected rdump, rmem, json"), "{format}: {said}");
        }
    }
    let object = scratch.write("a.json", b"{\"a\":1}");
    refused(&["heap", "info", object.to_str().unwrap()], "unsupported format");
    let said = run(&["info", object.to_str().unwrap()]).failed();
    assert!(said.contains("hint: name the format with --from"), "{said}");
    let summary = scratch.write("b.json", b"{\"summary\":[{}]}");
    refused(&["heap", "info", summary.to_str().unwrap()], "missing context: expected");
    refused(
        &["heap", "report", &path("h.rmem"), "--run-id", "4"],
        "unsupported --run-id 4: expected a database",
    );
}

#[test]
fn a_truncated_dump_is_analysed_or_reported_as_truncated() {
    let scratch = Scratch::new();
    let whole = std::fs::read(corpus("php/heap/8.4.24.rdump")).unwrap();
    let cut = scratch.path("cut.rdump");
    let info = |bytes: usize| {
        std::fs::write(&cut, &whole[..bytes]).unwrap();
        run(&["heap", "info", "--lenient", cut.to_str().unwrap()])
    };
    let modules = "cannot read PHP's modules: ";
    let [classes, stack] = ["classes", "stack"].map(|what| format!("missing {what} of PHP's executor: "));
    for (eighths, missing) in
        [(2, modules), (3, modules), (4, modules), (5, &*classes), (6, &*classes), (7, &*stack)]
    {
        let said = info(whole.len() / 8 * eighths).failed();
        assert!(said.starts_with(&format!("error: {}: {missing}", cut.display())), "{eighths}: {said}");
        let why = "\nhint: the file is damaged, which may be the cause: truncated block: expected ";
        assert!(said.contains(why), "{eighths}: {said}");
    }
    // The end of the memory is missing, but the structures that lead to the rest exist.
    let ended = info(whole.len() - 1000);
    let warning = format!("warning: {}: truncated block: expected ", cut.display());
    assert!(ended.code == 3 && ended.stderr.starts_with(&warning), "{}: {}", ended.code, ended.stderr);
    assert!(ended.stderr.contains(" held by something known; "), "{}", ended.stderr);
    assert!(String::from_utf8(ended.stdout).unwrap().contains("\nnodes "));
}

#[test]
fn facts_of_a_heap_are_escaped_for_terminals() {
    let scratch = Scratch::new();
    let path = scratch.path("evil.json");
    let evil = r#"{"summary":[{"k\u001b[5mey\nfake  1":"v\u001b[2J\u202e"}],"location_types_summary":{},"class_objects_summary":{},"context":{}}"#;
    std::fs::write(&path, evil).unwrap();
    let shown = String::from_utf8(run(&["heap", "info", path.to_str().unwrap()]).done()).unwrap();
    assert!(shown.contains("k\\x1b[5mey\\x0afake  1  v\\x1b[2J\\u{202e}\n"), "{shown:?}");
}
