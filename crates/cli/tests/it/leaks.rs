//! Programs with known leaks: the report names the leak first, with its place and size, and reports nothing for the fixed
//! programs.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use borehole_testkit::{Scratch, corpus, peers};
use serde_json::Value;

use crate::program::{run, text};

/// An example program that waits and ends with the test.
pub(crate) struct Waiting {
    child: Child,
    /// The facts that it printed.
    pub(crate) facts: Value,
}

impl Waiting {
    /// `None` if its PHP is skipped.
    pub(crate) fn start(peer: &str, program: &Path) -> Option<Self> {
        Self::start_with(peer, program, &[])
    }

    /// Like [`Self::start`], with environment variables.
    pub(crate) fn start_with(peer: &str, program: &Path, environment: &[(&str, &str)]) -> Option<Self> {
        let mut command = peers::peer(peer)?.command();
        command.args(["-d", "opcache.enable_cli=0"]).envs(environment.iter().copied());
        Some(Self::start_in(command, program))
    }

    /// Starts a program with a PHP whose settings are part of the command.
    pub(crate) fn start_in(mut php: Command, program: &Path) -> Self {
        let php = php.arg(program).env("WAIT", "60").stdin(Stdio::null()).stderr(Stdio::piped());
        let mut child = php.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let ready = lines.find_map(|line| line.unwrap().strip_prefix("READY ").map(str::to_owned)).unwrap();
        Self { child, facts: serde_json::from_str(&ready).unwrap() }
    }

    /// Its heap, in a file in this folder.
    pub(crate) fn capture(&self, scratch: &Scratch) -> PathBuf {
        self.capture_with(scratch, &[])
    }

    /// Like [`Self::capture`], with further options.
    pub(crate) fn capture_with(&self, scratch: &Scratch, options: &[&str]) -> PathBuf {
        let path = scratch.path("heap.rmem");
        let id = self.child.id().to_string();
        run(&[&["heap", "capture", "--force", "-p", &id, "-o", text(&path)], options].concat()).done();
        path
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn example(name: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/php/leaks")).join(format!("{name}.php"))
}

pub(crate) fn report(heap: &Path) -> Value {
    serde_json::from_slice(&run(&["heap", "report", "--json", text(heap)]).done()).unwrap()
}

/// The kinds of findings above low severity.
fn alarms(report: &Value) -> Vec<String> {
    let findings = report["findings"].as_array().unwrap().iter();
    let alarms = findings.filter(|finding| !["low", "info"].contains(&finding["severity"].as_str().unwrap()));
    alarms.map(|finding| finding["kind"].as_str().unwrap().to_owned()).collect()
}

/// The first finding for a program's heap. Also checks that the fixed program has no such finding.
fn first(peer: &str, name: &str) -> Option<(Value, Waiting, PathBuf, Scratch)> {
    let scratch = Scratch::new();
    let fixed = Waiting::start(peer, &example(&format!("{name}_fixed")))?;
    assert_eq!(alarms(&report(&fixed.capture(&scratch))), [""; 0], "{name}_fixed");
    drop(fixed);
    let waiting = Waiting::start(peer, &example(name))?;
    let heap = waiting.capture(&scratch);
    let first = report(&heap)["findings"][0].clone();
    Some((first, waiting, heap, scratch))
}

/// The size of a block for this many bytes. Source: PHP, Zend/zend_alloc_sizes.h.
fn block(bytes: u64) -> u64 {
    const BINS: [u64; 30] = [
        8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768,
        896, 1024, 1280, 1536, 1792, 2048, 2560, 3072,
    ];
    BINS.into_iter().find(|&bin| bytes <= bin).unwrap_or(bytes.next_multiple_of(4096))
}

fn string(length: usize) -> u64 {
    block((24 + length as u64 + 1).next_multiple_of(8))
}

fn object(properties: u64) -> u64 {
    block(40 + 16 * properties)
}

/// An array whose keys are 0, 1, 2, …, with its table.
fn list(slots: u64) -> u64 {
    block(56) + block(slots * 16 + 8)
}

/// An array with string keys.
fn map(slots: u64) -> u64 {
    block(56) + block(slots * 40)
}

#[test]
fn an_unbounded_cache_is_the_bottleneck() {
    let Some((first, ..)) = first("php", "static_cache") else { return };
    assert_eq!((&first["kind"], &first["severity"]), (&"bottleneck_path".into(), &"high".into()));
    assert_eq!(first["path"], r"Shop\PriceCache::$prices");
    assert_eq!(first["facts"]["elements"], 40_000);
    let prices = (0..40_000).map(|number| object(3) + string(format!("price of product {number}").len()));
    assert_eq!(first["impact_bytes"], prices.sum::<u64>() + list(65_536));
}

#[test]
fn objects_that_hold_each_other_are_garbage() {
    let Some((first, ..)) = first("php", "listener_cycle") else { return };
    assert_eq!((&first["kind"], &first["severity"]), (&"garbage_cycles".into(), &"high".into()));
    assert_eq!(first["facts"]["back_reference"], r"Import\Dispatcher::$listeners[][][] -> Import\Job");
    let path = first["path"].as_str().unwrap();
    assert!(path.starts_with("<garbage>.") && path.ends_with("->events->listeners['done'][0][0]"), "{path}");
    assert_eq!((&first["facts"]["cycles"], &first["facts"]["objects"]), (&150.into(), &300.into()));
    // A job, its dispatcher, the table of events, the list of listeners, and the listener.
    let each = object(3) + object(1) + map(8) + list(8) + list(8);
    let payloads = (0..150).map(|job| string(format!("line of job {job};").len() * 2500));
    assert_eq!(first["impact_bytes"], 150 * each + payloads.sum::<u64>());
}

#[test]
fn closures_that_keep_their_objects_alive_are_found() {
    let Some((first, ..)) = first("php", "closure_this") else { return };
    assert_eq!((&first["kind"], &first["severity"]), (&"closure_keeps_this".into(), &"high".into()));
    assert_eq!(first["path"], r"Office\Scheduler::$tasks[0]");
    assert_eq!(first["facts"]["class_name"], r"Office\Report");
    assert_eq!((&first["facts"]["closures"], &first["facts"]["objects"]), (&200.into(), &200.into()));
    assert!(first["facts"]["function"].as_str().unwrap().contains("closure"), "{first}");
    let rows = |report| (0..300).map(move |row| string(format!("row {row} of report {report}").len()));
    let reports = (0..200).map(|report| object(2) + list(512) + rows(report).sum::<u64>());
    assert_eq!(first["impact_bytes"], reports.sum::<u64>());
}

#[test]
fn strings_that_are_read_repeatedly_are_duplicates() {
    let Some((first, ..)) = first("php", "duplicate_config") else { return };
    assert_eq!((&first["kind"], &first["severity"]), (&"duplicate_strings".into(), &"high".into()));
    assert_eq!(first["path"], r"Tenancy\Settings::$values[]");
    // All copies of each key and value but one.
    let settings = (0..40).map(|setting| {
        let value = format!("smtp://mail{setting}.internal.example.com:2525/queue");
        string(format!("mail.transport.option{setting}").len()) + string(value.len())
    });
    let saved = 799 * settings.sum::<u64>();
    let said = first["impact_bytes"].as_u64().unwrap();
    // The environment contains some strings twice too.
    assert!((saved..saved + (16 << 10)).contains(&said), "{said} of {saved}");
}

#[test]
fn sparse_chunks_are_fragmentation() {
    let Some((first, _waiting, heap, _scratch)) = first("php", "fragmented") else { return };
    assert_eq!(
        (&first["kind"], &first["severity"]),
        (&"zendmm_heap_fragmentation_high".into(), &"medium".into())
    );
    let info: Value = serde_json::from_slice(&run(&["heap", "info", "--json", text(&heap)]).done()).unwrap();
    let number = |key: &str| info["summary"][key].as_str().unwrap().parse::<u64>().unwrap();
    let blocks = number("chunks_free_blocks_bytes");
    assert_eq!(first["impact_bytes"], number("chunks_total_free_bytes") + blocks);
    // All pages of chunks are free except the used ones and the first page of each.
    let used = number("memory_get_usage").next_multiple_of(4096);
    let free = number("memory_get_real_usage") - used - number("chunks_count") * 4096;
    assert!(number("chunks_total_free_bytes").abs_diff(free) < 256 << 10, "{free}");
    let kinds = alarms(&report(&heap));
    assert_eq!(kinds, ["zendmm_heap_fragmentation_high", "zendmm_chunks_pinned_by_fragmentation"]);
}

#[test]
fn a_connection_in_a_cycle_is_a_leak() {
    let Some((first, ..)) = first("php-extensions", "pdo_cycle") else { return };
    assert_eq!((&first["kind"], &first["severity"]), (&"resource_leak_risk".into(), &"high".into()));
    assert_eq!((&first["facts"]["class_name"], &first["facts"]["count"]), (&"PDO".into(), &20.into()));
    assert_eq!(first["facts"]["awaiting_collection"], 20);
    assert_eq!(first["facts"]["holder"], r"Store\UnitOfWork::$connection");
}

#[test]
fn connections_of_subclasses_are_found() {
    let scratch = Scratch::new();
    let source = std::fs::read_to_string(example("pdo_cycle")).unwrap();
    let source = source
        .replace("new \\PDO(", "new Connection(")
        .replace("public readonly \\PDO ", "public readonly Connection ")
        .replace(
            "final class Repository",
            "final class Connection extends \\PDO {}\n\nfinal class Repository",
        )
        .replace("__DIR__", &format!("'{}'", example("x").parent().unwrap().display()));
    let program = scratch.path("extended.php");
    std::fs::write(&program, source).unwrap();
    let Some(waiting) = Waiting::start("php-extensions", &program) else { return };
    let first = report(&waiting.capture(&scratch))["findings"][0].clone();
    assert_eq!(first["kind"], "resource_leak_risk", "{first}");
    assert_eq!(first["facts"]["class_name"], r"Store\Connection");
}

#[test]
fn usage_near_the_limit_comes_before_its_causes() {
    let Some((first, waiting, heap, _scratch)) = first("php", "near_limit") else { return };
    assert_eq!((&first["kind"], &first["severity"]), (&"near_memory_limit".into(), &"high".into()));
    assert_eq!(first["facts"]["memory_limit"], 32 << 20);
    assert_eq!(first["impact_bytes"], waiting.facts["peak"]);
    let report = report(&heap);
    let cause = &report["findings"][1];
    assert_eq!((&cause["kind"], &cause["severity"]), (&"bottleneck_path".into(), &"medium".into()));
    assert!(cause["path"].as_str().unwrap().ends_with("::$lines"), "{cause}");
    assert_eq!(cause["impact_bytes"], 30_500 * string(990) + list(32_768));
}

/// Programs that leak in twelve ways (`corpus/php/leaking`): the kind of the first finding, and the end of its path.
pub(crate) const LEAKING: [(&str, &str, &str); 12] = [
    ("static_cache", "bottleneck_path", r"Catalog\PriceCache::$prices"),
    ("listeners", "bottleneck_path", "::$dispatcher->listeners['order.placed']"),
    ("closures", "closure_keeps_this", "::$scheduler->tasks[0]"),
    ("cycles", "garbage_cycles", "->branch->leaves[0]"),
    ("log_buffer", "bottleneck_path", "::$logger->handler->records"),
    ("object_storage", "bottleneck_path", "::$unit->entities"),
    ("generator", "bottleneck_path", r"::$importer->rows.generator.call_frames.Import\rows:13::$rows"),
    ("query_log", "bottleneck_path", "->logger->queries"),
    ("memo", "bottleneck_path", r"Tax\rate()::$memo"),
    ("session", "bottleneck_path", "::$_SESSION['flashes']"),
    ("concatenation", "bottleneck_path", "::$writer->buffer"),
    ("linked_list", "bottleneck_path", "::$h"),
];

/// Programs in which nothing is wrong (`corpus/php/healthy`), with far more memory than they need.
const FREE: [&str; 6] =
    ["framework", "metadata", "templates", "queue_worker", "translations", "bounded_cache"];

/// The heap of a program of the corpus; `None` if PHP is skipped.
pub(crate) fn heap_of(program: &str, scratch: &Scratch) -> Option<PathBuf> {
    Some(Waiting::start("php", &corpus(&format!("php/{program}.php")))?.capture(scratch))
}

/// The findings that may need action.
fn findings(report: &Value) -> Vec<&Value> {
    report["findings"].as_array().unwrap().iter().filter(|finding| finding["severity"] != "info").collect()
}

#[test]
fn the_culprit_of_each_leak_is_the_first_finding() {
    let scratch = Scratch::new();
    for (name, kind, path) in LEAKING {
        let Some(heap) = heap_of(&format!("leaking/{name}"), &scratch) else { return };
        let report = report(&heap);
        let first = findings(&report)[0];
        assert_eq!(first["kind"], kind, "{name}: {first}");
        assert!(first["path"].as_str().unwrap().ends_with(path), "{name}: {first}");
        assert!(["high", "medium"].contains(&first["severity"].as_str().unwrap()), "{name}: {first}");
    }
}

#[test]
fn what_any_program_has_is_no_finding() {
    let scratch = Scratch::new();
    for name in FREE {
        let Some(heap) = heap_of(&format!("healthy/{name}"), &scratch) else { return };
        let report = report(&heap);
        let told = findings(&report);
        assert!(told.iter().all(|finding| finding["severity"] == "low"), "{name}: {told:#?}");
        assert!(told.len() <= 3, "{name}: {told:#?}");
    }
}

#[test]
fn a_list_is_found_by_its_head_and_told_once() {
    let scratch = Scratch::new();
    let Some(heap) = heap_of("leaking/linked_list", &scratch) else { return };
    let report = report(&heap);
    let [only] = &*findings(&report) else { panic!("{:#?}", findings(&report)) };
    assert!(only["path"].as_str().unwrap().ends_with("::$h"), "{only}");
    assert_eq!(only["impact_bytes"], 200_000 * object(2));
    assert_eq!(only["facts"]["chain_length"], 200_000);
}

#[test]
fn memory_along_one_chain_is_told_once() {
    let scratch = Scratch::new();
    let Some(heap) = heap_of("leaking/log_buffer", &scratch) else { return };
    let report = report(&heap);
    let [only] = &*findings(&report) else { panic!("{:#?}", findings(&report)) };
    let chain: Vec<&str> = only["facts"]["chain"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| {
            assert!(step["retained_bytes"].as_u64() >= only["impact_bytes"].as_u64(), "{step}");
            let path = step["path"].as_str().unwrap();
            path.rsplit("::").next().unwrap()
        })
        .collect();
    assert_eq!(chain, ["call_frames", "$logger", "$logger->handler", "$logger->handler->records"]);
    let text = String::from_utf8(run(&["heap", "report", text(&heap)]).done()).unwrap();
    let via = text.lines().skip_while(|line| !line.starts_with("    via   call_frames")).take(4);
    let via: Vec<&str> = via.collect();
    assert!(via[3].ends_with("::$logger->handler->records (14.3 MiB)"), "{text}");
}

#[test]
fn rows_that_are_alike_are_one_line_with_a_count() {
    let scratch = Scratch::new();
    let Some(heap) = heap_of("leaking/log_buffer", &scratch) else { return };
    let report = report(&heap);
    for (table, path) in [("arrays", "->records[]"), ("strings", "->records[]['message']")] {
        let rows = report[table].as_array().unwrap();
        let alike: Vec<&Value> =
            rows.iter().filter(|row| row["path"].as_str().unwrap().ends_with(path)).collect();
        assert_eq!(alike.len(), 1, "{rows:#?}");
        assert_eq!(alike[0]["count"], 13_000, "{rows:#?}");
        assert!(!rows.iter().any(|row| row["path"].as_str().unwrap().contains("->records[1")), "{rows:#?}");
    }
    let text = String::from_utf8(run(&["heap", "report", text(&heap)]).done()).unwrap();
    assert!(text.contains("->records[]['message'] x 13,000\n"), "{text}");
}

/// Captures the heap of a program with this text, at a file of this name.
fn heap_of_text(scratch: &Scratch, name: &str, program: &str) -> Option<PathBuf> {
    let ready = corpus("php/internals/ready.inc");
    let program = scratch
        .write(&format!("{name}.php"), format!("{program}\nrequire '{}';", ready.display()).as_bytes());
    let heap = Waiting::start("php", &program)?.capture(scratch);
    let kept = scratch.path(&format!("{name}.rmem"));
    std::fs::rename(heap, &kept).unwrap();
    Some(kept)
}

#[test]
fn tables_of_declared_properties_are_not_taken_for_undeclared_ones() {
    let scratch = Scratch::new();
    let program = r#"<?php
class Base { public $a = 1; protected $b = 2; private $c = 3; }
final class Row extends Base { private $c = 4; public ?string $none; }
#[AllowDynamicProperties] final class Bag { public $a = 1; }
$rows = $bags = [];
for ($i = 0; $i < 3000; $i++) {
    $row = new Row();
    foreach ($row as $value);
    $rows[] = $row;
    $bag = new Bag();
    $bag->more = $i;
    $bags[] = $bag;
}"#;
    let Some(heap) = heap_of_text(&scratch, "tables", program) else { return };
    let report = report(&heap);
    let of = |kind: &str| -> Vec<(String, u64)> {
        let found = report["findings"].as_array().unwrap().iter().filter(|finding| finding["kind"] == kind);
        let told = found.map(|finding| (&finding["facts"]["class_name"], &finding["facts"]["count"]));
        told.map(|(name, count)| (name.as_str().unwrap().to_owned(), count.as_u64().unwrap())).collect()
    };
    assert_eq!(of("dynamic_properties_overhead"), [("Bag".to_owned(), 3000)]);
    assert_eq!(of("property_tables"), [("Row".to_owned(), 3000)]);
}

#[test]
fn anonymous_classes_of_one_base_are_told_apart() {
    let scratch = Scratch::new();
    let program = r"<?php
interface Shape {}
$all = [];
for ($i = 0; $i < 10; $i++) {
    $all[] = new class implements Shape { public $x = 1; };
    $all[] = new class implements Shape { public $y = 2; };
    $all[] = new class implements Shape { public $y = 2; };
}";
    let Some(heap) = heap_of_text(&scratch, "shapes", program) else { return };
    let report = report(&heap);
    let mut classes: Vec<(String, u64)> = report["classes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|class| (class["name"].as_str().unwrap().to_owned(), class["count"].as_u64().unwrap()))
        .filter(|(name, _)| name.contains("@anonymous"))
        .collect();
    classes.sort();
    let file = scratch.path("shapes.php");
    let expected = [5, 6, 7].map(|line| (format!("Shape@anonymous({}:{line})", file.display()), 10));
    assert_eq!(classes, expected);
}

#[test]
fn findings_are_the_same_after_lines_moved() {
    let scratch = Scratch::new();
    let program = r#"<?php
namespace Office;
final class Report { private $rows; function __construct(int $n) { $this->rows = str_repeat("row $n;", 2000); }
  function task() { return function () { return 1; }; } }
$tasks = []; $log = []; $same = [];
for ($i = 0; $i < 400; $i++) {
    $tasks[] = (new Report($i))->task();
    $log[] = str_repeat("line $i;", 1000);
    $same[] = str_repeat('the same', 500);
}"#;
    let Some(before) = heap_of_text(&scratch, "report", program) else { return };
    let first = scratch.path("first.rmem");
    std::fs::rename(before, &first).unwrap();
    let moved = program.replacen('\n', "\n\n// A line more.\n", 1);
    let Some(after) = heap_of_text(&scratch, "report", &moved) else { return };
    let found = run(&["heap", "compare", "--json", text(&first), text(&after)]).done();
    let found: Value = serde_json::from_slice(&found).unwrap();
    assert!(findings(&report(&first)).len() >= 3, "{:#?}", report(&first)["findings"]);
    let diff = &found["findings_diff"];
    let kinds = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|finding| finding["kind"].to_string()).collect()
    };
    assert_eq!((kinds(&diff["new"]), kinds(&diff["resolved"])), (Vec::new(), Vec::new()), "{diff:#}");
}

/// A program with a list of texts of 2,000 bytes and more.
fn log_of(count: u32) -> String {
    format!("<?php\n$log = [];\nfor ($i = 0; $i < {count}; $i++) {{ $log[] = str_repeat('x', 2000) . $i; }}")
}

#[test]
fn five_thousand_new_values_are_five_thousand() {
    let scratch = Scratch::new();
    let Some(before) = heap_of_text(&scratch, "before", &log_of(10)) else { return };
    let Some(after) = heap_of_text(&scratch, "after", &log_of(5010)) else { return };
    let found = run(&["heap", "compare", "--json", text(&before), text(&after)]).done();
    let found: Value = serde_json::from_slice(&found).unwrap();
    let holders = &found["holder_deltas"];
    assert_eq!(holders["added_count"], 5000, "{:#}", holders["added"]);
    let [row] = &**holders["added"].as_array().unwrap() else { panic!("{:#}", holders["added"]) };
    assert!(row["path"].as_str().unwrap().ends_with("::$log[]"), "{row}");
    assert_eq!(row["alike"], 5000);
    let printed = String::from_utf8(run(&["heap", "compare", text(&before), text(&after)]).done()).unwrap();
    assert!(printed.contains("$log[] x 5,000"), "{printed}");
}

#[test]
fn what_grows_matters_however_far_the_limit_is() {
    let scratch = Scratch::new();
    let [before, after] =
        [3000, 6000].map(|count| format!("{}\nini_set('memory_limit', '1G');", log_of(count)));
    let Some(before) = heap_of_text(&scratch, "before", &before) else { return };
    let Some(after) = heap_of_text(&scratch, "after", &after) else { return };
    assert_eq!(findings(&report(&after))[0]["severity"], "low");
    let found = run(&["heap", "compare", "--json", text(&before), text(&after)]).done();
    let found: Value = serde_json::from_slice(&found).unwrap();
    let changed = &found["findings_diff"]["changed"][0];
    assert_eq!(
        (&changed["baseline"]["severity"], &changed["target"]["severity"]),
        (&"low".into(), &"medium".into())
    );
}

/// The options that a text names.
fn options(text: &str) -> Vec<&str> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-');
    words.filter(|word| word.starts_with("--") && word.len() > 3).collect()
}

#[test]
fn hints_name_options_of_their_command() {
    let scratch = Scratch::new();
    let Some(first) = heap_of("healthy/framework", &scratch) else { return };
    let kept = scratch.path("first.rmem");
    std::fs::rename(first, &kept).unwrap();
    let Some(second) = heap_of("leaking/log_buffer", &scratch) else { return };
    let (first, second) = (text(&kept), text(&second));
    let commands: [&[&str]; 8] = [
        &["heap", "report", first],
        &["heap", "info", first],
        &["heap", "compare", first, second],
        &["heap", "ask", first, "top-retained"],
        &["heap", "ask", first, "top-classes"],
        &["inspector:memory:report", first],
        &["inspector:memory:compare", first, second],
        &["inspector:memory:compare", first, second, "--diff-limit", "1"],
    ];
    let mut named = 0;
    for command in commands {
        let ran = run(command);
        let printed = format!("{}{}", String::from_utf8_lossy(&ran.stdout), ran.stderr);
        let words = if command[0] == "heap" { &command[..2] } else { &command[..1] };
        let help = String::from_utf8(run(&[words, &["--help"]].concat()).done()).unwrap();
        for option in options(&printed) {
            assert!(options(&help).contains(&option), "{command:?}: {option} in\n{printed}");
            named += 1;
        }
    }
    assert!(named > 5, "{named}");
}

/// Programs of the corpus with small heaps, and the peers that run them. They have cycles, garbage and all sorts of values,
/// but no serious problem.
const HEALTHY: [(&str, &str); 10] = [
    ("php", "mem/m1_objects"),
    ("php", "mem/m3_closures"),
    ("php", "mem/m4_generators"),
    ("php-extensions", "mem/m5_mixed"),
    ("php", "mem/deep"),
    ("php", "mem/facts"),
    ("php", "internals/containers"),
    ("php", "internals/extensions"),
    ("php", "internals/garbage"),
    ("php", "internals/modern"),
];

#[test]
fn healthy_programs_raise_no_alarms() {
    let mut alarming = BTreeMap::new();
    for (peer, program) in HEALTHY {
        let scratch = Scratch::new();
        let path = corpus(&format!("php/{program}.php"));
        let Some(waiting) = Waiting::start(peer, &path) else { return };
        alarming.insert(program, alarms(&report(&waiting.capture(&scratch))));
    }
    alarming.retain(|_, found| !found.is_empty());
    assert_eq!(alarming, BTreeMap::new());
}

/// Checks this with each release of PHP from 7.0 on.
#[test]
fn healthy_programs_of_other_releases_raise_no_alarms() {
    let mut heaps = 0;
    for entry in std::fs::read_dir(corpus("php/heap")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "rdump") {
            assert_eq!(alarms(&report(&path)), [""; 0], "{}", path.display());
            heaps += 1;
        }
    }
    assert_eq!(heaps, 10);
}

/// The program of the demonstration, while it works.
#[test]
fn a_shop_that_serves_requests_raises_no_alarms() {
    let Some(php) = peers::peer("php") else { return };
    let scratch = Scratch::new();
    let heap = scratch.path("shop.rmem");
    let shop = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/php/shop.php");
    let php = php.command().get_program().to_str().unwrap().to_owned();
    run(&["heap", "capture", "--delay", "1s", "-o", text(&heap), "--", &php, shop, "20"]).done();
    assert_eq!(alarms(&report(&heap)), [""; 0]);
}

#[test]
fn a_report_is_text_of_eighty_columns_or_reli_s_json() {
    let Some(waiting) = Waiting::start("php", &example("static_cache")) else { return };
    let scratch = Scratch::new();
    let heap = waiting.capture(&scratch);
    let printed = String::from_utf8(run(&["heap", "report", text(&heap)]).done()).unwrap();
    let widest = printed.lines().map(|line| line.chars().count()).max().unwrap();
    assert!((60..=80).contains(&widest), "{widest}");
    let sections: Vec<&str> = printed.lines().filter(|line| line.starts_with(char::is_uppercase)).collect();
    let titles = ["Type breakdown", "Top classes", "Top arrays", "Top strings", "Root blame allocation"];
    assert!(sections[0].starts_with("Overview of ") && sections[1].starts_with("Findings: "), "{sections:?}");
    assert_eq!(sections[2..7], titles);
    assert_eq!(sections[7], "Additional information");

    // The same result comes from reli's command, from a process, and from a database.
    let id = waiting.child.id().to_string();
    let path = |name: &str| scratch.path(name).to_str().unwrap().to_owned();
    let [of_file, of_process, database] = ["file.json", "process.json", "heaps.sqlite3"].map(path);
    run(&["inspector:memory:report", text(&heap), "-f", "report-json", "-o", &of_file]).done();
    run(&["inspector:memory", "-p", &id, "-f", "report-json", "-o", &of_process]).done();
    run(&["heap", "export", text(&heap), "-o", &database]).done();
    let of_database = run(&["inspector:memory:report", &database, "-f", "report-json", "--no-full-analysis"]);
    let of_database: Value = serde_json::from_slice(&of_database.done()).unwrap();
    let read = |path: &str| serde_json::from_slice::<Value>(&std::fs::read(path).unwrap()).unwrap();
    let (of_file, of_process) = (read(&of_file), read(&of_process));
    for report in [&of_file, &of_process, &of_database] {
        let first = &report["findings"][0];
        for key in [
            "kind",
            "severity",
            "confidence",
            "summary",
            "facts",
            "hypothesis",
            "next_checks",
            "impact_bytes",
        ] {
            assert!(!first[key].is_null(), "{key}");
        }
        assert_eq!(first["path"], r"Shop\PriceCache::$prices");
        assert_eq!(report["meta"]["php_version"], "v82");
        assert!(report["meta"]["node_count"].as_u64().unwrap() > 200_000);
    }
    assert_eq!(of_file["findings"], of_database["findings"]);
    let shown = String::from_utf8(run(&["inspector:memory:report", text(&heap)]).done()).unwrap();
    // It has no option for the number of rows.
    assert_eq!(shown, printed.replace("; --limit 0 for all", ""));
}
