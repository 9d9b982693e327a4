//! `symbolize`: addresses of a compiled program get functions, and nothing else changes.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::Command;

use borehole_testkit::peers::peer;
use borehole_testkit::raw_profiles::{MappedFile, raw_otlp, raw_pprof};
use borehole_testkit::{Scratch, read_corpus};
use serde_json::Value;

use crate::program::{corpus, run, text};

const SOURCE: &str = "
static inline __attribute__((always_inline)) unsigned mix(unsigned value)
{
    return (value << 13) ^ (value >> 17);
}
__attribute__((noinline)) unsigned work(unsigned count)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < count; i++)
        sum += mix(i ^ sum);
    return sum;
}
int main(int argc, char **argv) { return work(argc > 1 ? 60000000 : argc); }
";

struct Built {
    scratch: Scratch,
    build_id: String,
    /// The addresses of `work` in memory.
    addresses: Vec<u64>,
    /// Its code in memory: start, end, and position in the file.
    code: [u64; 3],
}

/// Where the program would be in memory.
const BASE: u64 = 0x5555_5555_4000;

impl Built {
    fn new() -> Self {
        let scratch = Scratch::new();
        let source = scratch.write("program.c", SOURCE.as_bytes());
        let program = scratch.path("program");
        let options = ["-O2", "-g", "-o", text(&program), text(&source)];
        assert!(Command::new("gcc").args(options).status().unwrap().success());
        let listed = stdout("readelf", &["-lnW", text(&program)]);
        let hex = |digits: &str| u64::from_str_radix(digits.trim_start_matches("0x"), 16).unwrap();
        let segment = listed.lines().map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
        let segment =
            segment.into_iter().find(|row| row.first() == Some(&"LOAD") && row.contains(&"E")).unwrap();
        let [offset, start, size] = [1, 2, 4].map(|at| hex(segment[at]));
        let id =
            listed.lines().find_map(|line| Some(line.split_once("Build ID: ")?.1)).unwrap().trim().to_owned();
        let symbols = stdout("nm", &["-S", text(&program)]);
        let work: Vec<_> =
            symbols.lines().find(|line| line.ends_with(" T work")).unwrap().split(' ').collect();
        let addresses = (hex(work[0])..hex(work[0]) + hex(work[1])).map(|address| BASE + address).collect();
        Self { scratch, build_id: id, addresses, code: [BASE + start, BASE + start + size, offset] }
    }

    fn program(&self) -> String {
        text(&self.scratch.path("program")).to_owned()
    }

    fn raw(&self, path: &str, build_id: &str) -> String {
        let document = raw_pprof(&self.mapped(path, build_id), &self.addresses);
        text(&self.scratch.write("raw.pb", &document)).to_owned()
    }

    fn mapped<'a>(&self, path: &'a str, build_id: &'a str) -> MappedFile<'a> {
        let [start, end, file_offset] = self.code;
        MappedFile { path, build_id, start, end, file_offset }
    }
}

fn stdout(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}; the tests need gcc and binutils"));
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The samples by their stack of functions and lines, leaf first.
fn stacks(profile: &Path) -> BTreeMap<Vec<(String, Option<i64>)>, u64> {
    let dumped = String::from_utf8(run(&["dump", text(profile)]).done()).unwrap();
    let (mut frames_of, mut stacks) = (BTreeMap::new(), BTreeMap::new());
    for line in dumped.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        if line["type"] == "stack" {
            let frame =
                |frame: &Value| (frame["function"].as_str().unwrap().to_owned(), frame["line"].as_i64());
            let frames: Vec<_> = line["frames"].as_array().unwrap().iter().map(frame).collect();
            frames_of.insert(line["id"].as_u64().unwrap(), frames);
        } else if line["type"] == "sample" {
            let frames = frames_of[&line["stack"].as_u64().unwrap()].clone();
            *stacks.entry(frames).or_default() += line["count"].as_u64().unwrap_or(1);
        }
    }
    stacks
}

#[test]
fn addresses_get_the_functions_and_lines_that_pprof_finds_itself() {
    let Some(pprof) = peer("pprof") else { return };
    let built = Built::new();
    let raw = built.raw(&built.program(), &built.build_id);
    let filled = built.scratch.path("filled.pb.gz");
    let ended = run(&["symbolize", &raw, "-o", text(&filled)]);
    let count = built.addresses.len();
    assert_eq!(ended.stderr, format!("Found the functions of {count} of {count} addresses (100.0%)\n"));
    // Its own way of looking into programs may not know of inlined functions, but the lines are the same.
    let lines = |file: &str, symbolize: &str| {
        let table = pprof.stdout(&["-top", "-lines", "-nodecount=1000", "-nodefraction=0", symbolize, file]);
        let rows = table.lines().skip_while(|line| !line.contains("flat%")).skip(1);
        let line = |row: &str| {
            let row = row.trim_end_matches(" (inline)");
            let flat = row.split_ascii_whitespace().next().unwrap().to_owned();
            (row.rsplit(' ').next().unwrap().to_owned(), flat)
        };
        rows.map(line).collect::<BTreeMap<_, _>>()
    };
    let ours = lines(text(&filled), "-symbolize=none");
    assert_eq!(ours.len(), 5, "{ours:?}");
    assert_eq!(ours, lines(&raw, "-symbolize=local"));
    let found = stacks(&filled);
    let inlined: Vec<_> = found.keys().filter(|stack| stack.len() == 2).collect();
    let name = |function: &str, line| (function.to_owned(), Some(line));
    assert_eq!(inlined, [&vec![name("mix", 4), name("work", 10)]], "{found:?}");
}

#[test]
fn everything_else_of_a_document_stays_as_it_is() {
    let built = Built::new();
    let raw = fs::read(built.raw(&built.program(), &built.build_id)).unwrap();
    let filled = run(&["symbolize", text(&built.scratch.path("raw.pb"))]).stdout;
    let mut document = Vec::new();
    flate2(&filled).read_to_end(&mut document).unwrap();
    // Samples are first, and strings last.
    let samples = raw.windows(2).position(|pair| pair[0] == 3 << 3 | 2).unwrap();
    assert_eq!(raw[..samples], document[..samples]);
    // The unknown field of a location is kept.
    assert!(document.windows(3).any(|bytes| bytes == [0x98, 0x06, 1]));
    for file in ["pprof/go-cpu.pb.gz", "pprof/go-heap.pb.gz", "pprof/concatenated.pb.gz"] {
        let ended = run(&["symbolize", &corpus(file)]);
        assert!(ended.stderr.starts_with("No address lacks a function"), "{}", ended.stderr);
        let [mut before, mut after] = [Vec::new(), Vec::new()];
        flate2(&read_corpus(file)).read_to_end(&mut before).unwrap();
        flate2(&ended.done()).read_to_end(&mut after).unwrap();
        assert!(before == after, "{file}");
    }
}

/// The decompressed bytes, by a decoder of the field.
fn flate2(bytes: &[u8]) -> impl std::io::Read + use<> {
    let (folder, name) = (Scratch::new(), "bytes.gz");
    let path = folder.write(name, bytes);
    let output = Command::new("gzip").arg("-dc").arg(path).output().unwrap();
    std::io::Cursor::new(output.stdout)
}

#[test]
fn files_are_believed_by_their_build_id() {
    let built = Built::new();
    let (program, out) = (built.program(), built.scratch.path("out.pb.gz"));
    let symbolized = |raw: &str, more: &[&str]| {
        let ended = run(&[&["symbolize", raw, "--force", "-o", text(&out)], more].concat());
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        let names: Vec<_> = stacks(&out).into_keys().map(|stack| stack.last().unwrap().0.clone()).collect();
        (ended.stderr, names.iter().all(|name| name == "work"))
    };
    let raw = built.raw(&program, &"0".repeat(40));
    let (said, is_found) = symbolized(&raw, &[]);
    assert!(!is_found && said.contains("the file is of another build"), "{said}");
    let raw = built.raw(&program, "");
    let (said, is_found) = symbolized(&raw, &[]);
    assert!(!is_found && said.contains("--trust-paths"), "{said}");
    let (said, is_found) = symbolized(&raw, &["--trust-paths"]);
    assert!(is_found, "{said}");
    let raw = built.raw("/srv/bin/program", &built.build_id);
    let (said, is_found) = symbolized(&raw, &[]);
    assert!(!is_found && said.contains("the file is missing"), "{said}");
    let (said, is_found) = symbolized(&raw, &["--binaries", text(built.scratch.folder())]);
    assert!(is_found, "{said}");
    let root = built.scratch.path("root");
    fs::create_dir_all(root.join("srv/bin")).unwrap();
    fs::copy(&program, root.join("srv/bin/program")).unwrap();
    let (said, is_found) = symbolized(&raw, &["--root", text(&root), "--functions-only"]);
    assert!(is_found, "{said}");
    assert!(stacks(&out).keys().flatten().all(|(_, line)| line.is_none()));
}

#[test]
fn profiles_of_opentelemetry_get_the_same_functions() {
    let built = Built::new();
    let pprof = built.scratch.path("out.pb.gz");
    run(&["symbolize", &built.raw(&built.program(), &built.build_id), "-o", text(&pprof)]).done();
    let program = built.program();
    let document = raw_otlp(&built.mapped(&program, &built.build_id), &built.addresses);
    let out = built.scratch.path("out.otlp");
    for (name, document) in [
        ("raw.otlp", document.clone()),
        ("lengths.otlp", [&u32::try_from(document.len()).unwrap().to_be_bytes()[..], &document].concat()),
    ] {
        let raw = built.scratch.write(name, &document);
        let ended = run(&["symbolize", text(&raw), "--force", "-o", text(&out)]);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        // Each address is one sample here, and as many as its place in the other document.
        assert!(stacks(&out).keys().eq(stacks(&pprof).keys()), "{name}: {:?}", stacks(&out));
    }
}

#[test]
fn other_formats_are_refused_and_nothing_is_written() {
    let scratch = Scratch::new();
    let out = scratch.path("out");
    let refused = [
        ("folded/austin-full.txt", "unsupported: expected a profile that says which files"),
        ("trc/in/real_057_blocked.bin.gz", "unsupported: a trace has the names that its program knew"),
        ("otlp/collector-lines.jsonl.gz", "unsupported: expected a binary document"),
    ];
    for (file, message) in refused {
        let error = run(&["symbolize", &corpus(file), "-o", text(&out)]).failed();
        assert!(error.contains(message), "{error}");
        assert!(!out.exists());
    }
}

/// Only the files with build IDs are believed, and lines come from debug information, which `perf script` prints as well.
#[test]
fn recordings_of_perf_get_the_functions_and_lines_that_perf_finds_itself() {
    let Some(perf) = peer("perf") else { return };
    let built = Built::new();
    let (program, recorded, filled) =
        (built.program(), built.scratch.path("perf.data"), built.scratch.path("filled.pb.gz"));
    let record =
        ["record", "-q", "-e", "cpu-clock:u", "-c", "500000", "-o", text(&recorded), "--", &program, "long"];
    // The program ends with a number of its own.
    drop(perf.run(&record));
    let script = ["script", "--no-inline", "-F", "ip,sym,srcline", "-i", text(&recorded)];
    let theirs = perf.stdout(&script);
    let line = |line: &str| line.trim().strip_prefix("program.c:")?.parse::<i64>().ok();
    let mut expected = BTreeMap::<i64, u64>::new();
    theirs.lines().filter_map(line).for_each(|line| *expected.entry(line).or_default() += 1);
    let ended = run(&["symbolize", text(&recorded), "-o", text(&filled)]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let mut found = BTreeMap::<i64, u64>::new();
    for (stack, count) in stacks(&filled) {
        if let (function, Some(line)) = &stack[0]
            && ["work", "mix", "main"].contains(&&**function)
        {
            *found.entry(*line).or_default() += count;
        }
    }
    assert!(found.values().sum::<u64>() > 20, "{found:?}: {theirs}");
    assert_eq!(found, expected, "{}", ended.stderr);
}

#[cfg(feature = "lake")]
mod lakes {
    use std::process::{Child, Stdio};

    use super::*;
    use crate::kills::Killer;
    use crate::program::program;

    /// The number of times that naming is killed.
    const KILLS: u32 = 24;

    fn added(built: &Built, name: &str, file: &str) -> String {
        let lake = text(&built.scratch.path(name)).to_owned();
        run(&["lake", "add", &lake, file, "--service", "shop"]).done();
        lake
    }

    /// The functions of a lake, with their numbers.
    fn top(lake: &str) -> String {
        String::from_utf8(run(&["lake", "top", lake, "--csv", "--limit", "0"]).done()).unwrap()
    }

    /// The lines of the outermost functions, with the number of their samples.
    fn lines(lake: &str) -> String {
        let sql = "SELECT frames[1]['line'] AS line, frames[1]['file'] AS file, sum(value) AS n \
                   FROM samples JOIN stacks USING (stack_id) GROUP BY 1, 2 ORDER BY 1, 2";
        String::from_utf8(run(&["lake", "query", lake, sql, "--csv"]).done()).unwrap()
    }

    #[test]
    fn native_code_in_a_lake_is_named_later_whatever_is_killed() {
        let built = Built::new();
        let raw = built.raw(&built.program(), &built.build_id);
        let filled = text(&built.scratch.path("filled.pb.gz")).to_owned();
        run(&["symbolize", &raw, "-o", &filled]).done();
        let (unnamed, expected) = (added(&built, "raw", &raw), top(&added(&built, "filled", &filled)));
        let without_names = top(&unnamed);
        assert!(without_names.contains("program@") && expected.contains("work") && expected.contains("mix"));
        let lake = text(&built.scratch.path("copy")).to_owned();
        let name = || -> Child {
            let _ = fs::remove_dir_all(&lake);
            assert!(Command::new("cp").args(["-rT", &unnamed, &lake]).status().unwrap().success());
            let mut command = program(&["lake", "symbolize", &lake]);
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
        };
        let mut killer = Killer::new(KILLS, || assert!(name().wait().unwrap().success()));
        assert_eq!(top(&lake), expected);
        for _ in 0..KILLS {
            let is_killed = killer.kill(name());
            let found = top(&lake);
            assert!(found == expected || (is_killed && found == without_names), "{found}");
            run(&["lake", "symbolize", &lake]).done();
            assert_eq!(top(&lake), expected);
            assert_eq!(run(&["lake", "check", &lake]).code, 0);
        }
        killer.check();
        let again = String::from_utf8(run(&["lake", "symbolize", &lake]).done()).unwrap();
        assert_eq!(again, "no native code lacks a name or a line\n");
    }

    #[test]
    fn functions_in_a_lake_get_their_lines_later() {
        let built = Built::new();
        let raw = built.raw(&built.program(), &built.build_id);
        let profile = |name: &str, more: &[&str]| {
            let path = text(&built.scratch.path(name)).to_owned();
            run(&[&["symbolize", &raw, "-o", &path][..], more].concat()).done();
            path
        };
        let [names, filled] = [profile("names.pb.gz", &["--functions-only"]), profile("filled.pb.gz", &[])];
        let (lake, expected) = (added(&built, "names", &names), lines(&added(&built, "filled", &filled)));
        let (before, functions) = (lines(&lake), top(&lake));
        assert!(expected.contains("program.c") && !before.contains("program.c"), "{before}");
        let said = String::from_utf8(run(&["lake", "symbolize", &lake]).done()).unwrap();
        let count = built.addresses.len();
        assert!(
            said.starts_with(&format!("found {count} of {count} places in native code; 1 file")),
            "{said}"
        );
        assert_eq!((lines(&lake), top(&lake)), (expected, functions));
    }

    #[test]
    fn files_of_other_builds_name_nothing_in_a_lake() {
        let built = Built::new();
        let lake = added(&built, "lake", &built.raw(&built.program(), "c0ffee"));
        let ended = run(&["lake", "symbolize", &lake]);
        let count = built.addresses.len();
        assert_eq!(ended.code, 0);
        assert!(ended.stderr.contains("build ID"), "{}", ended.stderr);
        let expected = format!("found 0 of {count} places in native code; 0 files of stacks replaced\n");
        assert_eq!(String::from_utf8(ended.stdout).unwrap(), expected);
    }
}
