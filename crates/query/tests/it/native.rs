//! Stacks of native code: where a file is loaded makes no difference, its build does, and names come later.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use borehole::model::{
    Context, Frame, NativeFrame, NativeModule, ProfileSink as _, Recovery, Sample, Segment, StatedModules,
};
use borehole_query::{InputDetails, Lake, NamedCode, UnnamedCode};
use borehole_testkit::Scratch;
use borehole_testkit::peers::{Peer, peer};
use borehole_testkit::raw_profiles::{MappedFile, raw_otlp, raw_pprof};

use crate::world::{add, lake, number, rows, source};

const FILE: MappedFile<'_> = MappedFile {
    path: "/opt/shop",
    build_id: "c0ffee12345678",
    start: 0x5000,
    end: 0x6000,
    file_offset: 0x1000,
};

/// The stacks of the samples, and the number of rows of each.
fn stacks(lake: &Lake) -> Vec<String> {
    let sql = "SELECT folded(stack) AS names, count(*) AS n FROM samples JOIN stacks USING (stack_id) \
               GROUP BY stack_id, stack ORDER BY names, n";
    rows(lake, sql).iter().map(|row| row.join(" ")).collect()
}

fn add_bytes(lake: &Lake, name: &str, bytes: &[u8]) {
    add(lake, source(name, "shop", name.as_bytes()), bytes).unwrap();
}

/// Names the code of one build.
fn names(code: &UnnamedCode) -> Vec<NamedCode> {
    let function = |name: &str, line| NamedCode {
        function: name.to_owned(),
        file: Some("/src/shop.c".to_owned()),
        line: Some(line),
    };
    match (&*code.build_id, code.file_offset) {
        ("c0ffee12345678", 0x1010) => vec![function("inlined", 7), function("buy", 9)],
        _ => Vec::new(),
    }
}

#[test]
fn addresses_are_split_by_build_and_not_by_where_a_file_is_loaded() {
    let (_scratch, lake) = lake();
    let elsewhere = MappedFile { start: 0x7000, end: 0x8000, ..FILE };
    let other = MappedFile { build_id: "decade00", ..FILE };
    add_bytes(&lake, "here", &raw_pprof(&FILE, &[0x5010, 0x5010]));
    add_bytes(&lake, "there", &raw_pprof(&elsewhere, &[0x7010]));
    add_bytes(&lake, "sent", &raw_otlp(&elsewhere, &[0x7010]));
    add_bytes(&lake, "other", &raw_pprof(&other, &[0x5010]));
    assert_eq!(stacks(&lake), ["shop@c0ffee12+0x1010 4", "shop@decade00+0x1010 1"]);
    let code = "SELECT DISTINCT frames[1]['module'], frames[1]['build_id'], frames[1]['file_offset'] FROM stacks ORDER BY 2";
    let expected = [["/opt/shop", "c0ffee12345678", "4112"], ["/opt/shop", "decade00", "4112"]];
    assert_eq!(rows(&lake, code), expected);
}

#[test]
fn names_come_later_and_stay() {
    let (_scratch, lake) = lake();
    add_bytes(&lake, "one", &raw_pprof(&FILE, &[0x5010, 0x5020]));
    let done = lake.symbolize(&mut names).unwrap();
    assert_eq!((done.named, done.unknown, done.files), (1, 1, 1));
    let named = ["buy;inlined 1", "shop@c0ffee12+0x1020 1"];
    assert_eq!(stacks(&lake), named);
    let lines = "SELECT frames[2]['file'], frames[2]['line'], frames[1]['line'], frames[1]['file_offset'] FROM stacks \
                 WHERE leaf(stack) = 'inlined'";
    assert_eq!(rows(&lake, lines), [["/src/shop.c", "7", "9", "4112"]]);
    assert_eq!(lake.symbolize(&mut names).unwrap().files, 0, "nothing new is known");
    // The same stack without names does not hide them.
    for name in ["two", "three"] {
        add_bytes(&lake, name, &raw_pprof(&FILE, &[0x5010]));
    }
    for _ in 0..2 {
        assert_eq!(stacks(&lake), ["buy;inlined 3", named[1]]);
        assert_eq!(number(&lake, "SELECT count(*) FROM stacks"), 2);
        lake.compact().unwrap();
    }
    assert_eq!(lake.check().unwrap().findings, []);
}

/// Adds a sample of a recording that states the file of its code behind its samples.
fn add_recording(lake: &Lake, name: &str, build_id: &str, modules: &StatedModules) -> Option<StatedModules> {
    let mut adding = lake.adding();
    let details = InputDetails { modules: modules.clone(), ..source(name, "shop", name.as_bytes()) };
    let (tables, mut addition) = adding.input(details);
    let mut text = |text: &str| tables.intern_string(text.as_bytes()).unwrap();
    let [function, unnamed, module, key] = ["main", "[shop]", "shop", NativeModule::KEY].map(&mut text);
    let stated = text(&format!("{build_id} 1000-2000 /opt/shop"));
    let mut frame = |function, offset| {
        let native = Some(NativeFrame { module, offset: Some(offset), file_offset: None });
        tables.intern_frame(&Frame { native, ..Frame::named(function) }).unwrap()
    };
    let frames = [frame(unnamed, 0x1010), frame(function, 8)];
    let stack = tables.intern_stack_leaf_first(&frames).unwrap();
    let at = Context { tables, segment: &Segment::default() };
    addition.segment(at).unwrap();
    let _ = addition.sample(at, &Sample { stack, count: 1, ..Sample::default() }).unwrap();
    addition.metadata(at, key, stated).unwrap();
    let late = addition.late_modules().cloned();
    match late.is_some() {
        true => addition.abandon(),
        false => drop(addition.commit(tables, &Recovery::default()).unwrap()),
    }
    late
}

#[test]
fn recordings_that_state_their_files_at_the_end_are_read_again() {
    let (_scratch, lake) = lake();
    for (name, build_id) in [("one", "c0ffee12345678"), ("two", "c0ffee12345678"), ("three", "decade00")] {
        let late = add_recording(&lake, name, build_id, &StatedModules::default()).unwrap();
        assert_eq!(add_recording(&lake, name, build_id, &late), None);
    }
    assert_eq!(stacks(&lake), ["main;[shop] 1", "main;[shop] 2"]);
    assert_eq!(number(&lake, "SELECT count(*) FROM stacks"), 2);
    lake.symbolize(&mut names).unwrap();
    assert_eq!(stacks(&lake), ["main;[shop] 1", "main;buy;inlined 2"]);
}

/// A program that profiles itself, as programs in Go do.
const GO: &str = r#"
package main

import (
	"os"
	"runtime/pprof"
	"time"
)

var sum int

//go:noinline
func spin(rounds int) {
	for round := 0; round < rounds; round++ {
		sum += round * sum
	}
}

func main() {
	file, err := os.Create(os.Args[1])
	if err != nil {
		panic(err)
	}
	pprof.StartCPUProfile(file)
	for end := time.Now().Add(500 * time.Millisecond); time.Now().Before(end); {
		spin(10000000)
	}
	pprof.StopCPUProfile()
	file.Close()
}
"#;

/// The build IDs of two builds.
const BUILDS: [&str; 2] = ["aaaaaaaa11111111", "bbbbbbbb22222222"];

/// Builds the program, always at one path, and returns its profile.
fn go_profile(go: &Peer, scratch: &Scratch, build_id: &str) -> Vec<u8> {
    let [program, profile] = ["spin", "spin.pb.gz"].map(|name| scratch.path(name));
    let source = scratch.write("spin.go", GO.as_bytes());
    let mut build = go.command();
    build.args(["build", "-ldflags", &format!("-B 0x{build_id}"), "-o"]).arg(&program).arg(source);
    assert!(apart(&mut build).status().unwrap().success());
    assert!(std::process::Command::new(&program).arg(&profile).status().unwrap().success());
    fs::read(profile).unwrap()
}

/// Nothing of the user's Go set-up, and nothing that is to be fetched.
fn apart(go: &mut std::process::Command) -> &mut std::process::Command {
    let cache: PathBuf = Path::new(env!("CARGO_TARGET_TMPDIR")).join("go");
    go.env("GOCACHE", cache).env("GOENV", "off").env("GO111MODULE", "off");
    go.env("GOFLAGS", "").env("GOPROXY", "off").env("CGO_ENABLED", "0")
}

/// The file and line of each address of the program, as Go itself finds them.
fn go_lines(go: &Peer, scratch: &Scratch, addresses: &[u64]) -> BTreeMap<u64, String> {
    let mut command = go.command();
    command
        .args(["tool", "addr2line"])
        .arg(scratch.path("spin"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = apart(&mut command).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    addresses.iter().for_each(|address| writeln!(input, "{address:#x}").unwrap());
    drop(input);
    let said = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    let lines: Vec<_> = said.lines().collect();
    let answers = lines.chunks(2).map(|answer| format!("{} {}", answer[0], answer[1]));
    addresses.iter().copied().zip(answers).collect()
}

#[test]
fn two_builds_of_a_program_in_go_stay_apart() {
    let Some(go) = peer("go") else { return };
    let (scratch, lake) = lake();
    for build_id in BUILDS {
        add_bytes(&lake, build_id, &go_profile(&go, &scratch, build_id));
    }
    let frames = "SELECT s.source, f['build_id'] AS build_id, CAST(f['file_offset'] AS BIGINT) AS place, f['line'] AS line, \
                  f['file'] AS file, f['module'] AS module, s.stack_id FROM samples s JOIN \
                  (SELECT stack_id, unnest(stack) AS name, unnest(frames) AS f FROM stacks) USING (stack_id) \
                  WHERE name = 'main.spin'";
    let builds = format!("SELECT build_id, count(*) > 0 FROM ({frames}) GROUP BY 1 ORDER BY 1");
    assert_eq!(rows(&lake, &builds), BUILDS.map(|build_id| [build_id, "true"]));
    let shared = format!("SELECT stack_id FROM ({frames}) GROUP BY 1 HAVING count(DISTINCT build_id) > 1");
    assert_eq!(rows(&lake, &shared), [] as [Vec<String>; 0]);
    let module = format!("SELECT DISTINCT module FROM ({frames})");
    assert_eq!(rows(&lake, &module), [[scratch.path("spin").to_str().unwrap()]]);
    // The segment of code begins at the beginning of the file.
    const CODE: u64 = 0x40_0000;
    let places = rows(&lake, &format!("SELECT DISTINCT place, file, line FROM ({frames})"));
    let address = |row: &Vec<String>| CODE + row[0].parse::<u64>().unwrap();
    let found: BTreeMap<_, _> =
        places.iter().map(|row| (address(row), format!("main.spin {}:{}", row[1], row[2]))).collect();
    let addresses: Vec<_> = found.keys().copied().collect();
    assert_eq!(found, go_lines(&go, &scratch, &addresses));
    assert_eq!(lake.symbolize(&mut names).unwrap().files, 0, "all lines are known");
}

#[test]
fn functions_without_lines_get_those_of_their_place() {
    let (_scratch, lake) = lake();
    let mut adding = lake.adding();
    let (tables, mut addition) = adding.input(source("named", "shop", b"named"));
    let mut text = |text: &str| tables.intern_string(text.as_bytes()).unwrap();
    let [buy, inlined, other, module, key] =
        ["buy", "inlined", "other", "/opt/shop", NativeModule::KEY].map(&mut text);
    let stated = text("c0ffee12345678 1000-2000 /opt/shop");
    let mut frame = |function, offset| {
        let native = Some(NativeFrame { module, offset: None, file_offset: Some(offset) });
        tables.intern_frame(&Frame { native, ..Frame::named(function) }).unwrap()
    };
    // Two functions of a place, of which one is inlined; and one that another name is known for.
    let frames = [frame(inlined, 0x1010), frame(buy, 0x1010), frame(other, 0x1010), frame(other, 0x1020)];
    let stack = tables.intern_stack_leaf_first(&frames).unwrap();
    let segment = Segment { metadata: vec![(key, stated)], ..Segment::default() };
    let at = Context { tables, segment: &segment };
    addition.segment(at).unwrap();
    let _ = addition.sample(at, &Sample { stack, count: 1, ..Sample::default() }).unwrap();
    addition.commit(tables, &Recovery::default()).unwrap();
    let done = lake.symbolize(&mut names).unwrap();
    assert_eq!((done.named, done.unknown, done.files), (1, 1, 1));
    assert_eq!(stacks(&lake), ["other;other;buy;inlined 1"]);
    let lines =
        "SELECT array_to_string(array_agg(f['line']), ' ') FROM (SELECT unnest(frames) AS f FROM stacks)";
    assert_eq!(rows(&lake, lines), [["9 7"]]);
    assert_eq!(lake.symbolize(&mut names).unwrap().files, 0, "nothing new is known");
}
