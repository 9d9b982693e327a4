//! Valid inputs, and messages for others.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::process::Command;
use std::thread;

use borehole_testkit::{Scratch, read_corpus};

use crate::program::{corpus, named_pipe, piped, redirected, run, samples_in, text};

fn folded_error(input: &str) -> String {
    run(&["convert", input, "--to", "folded"]).failed()
}

#[test]
fn a_missing_file_is_named() {
    assert_eq!(folded_error("nowhere.rbt"), "error: nowhere.rbt: no such file or directory\n");
}

#[test]
fn a_missing_file_is_found_before_the_others_are_read() {
    // Nothing writes to the pipe, so opening it would block forever.
    let scratch = Scratch::new();
    let pipe = named_pipe(scratch.path("pipe"));
    for command in [&["convert", "--to", "folded"][..], &["report"], &["rbt:analyze"]] {
        let error = run(&[command, &[text(&pipe), "nowhere.rbt"]].concat()).failed();
        assert_eq!(error, "error: nowhere.rbt: no such file or directory\n");
    }
}

#[test]
fn a_folder_is_not_an_input() {
    let scratch = Scratch::new();
    let folder = text(scratch.folder());
    let expected = format!("error: {folder}: expected a file, found a directory\n");
    for command in [&["convert", "--to", "folded"][..], &["recover"], &["info"], &["dump"], &["report"]] {
        assert_eq!(run(&[command, &[folder]].concat()).failed(), expected, "{command:?}");
    }
}

#[test]
fn a_file_that_opens_but_cannot_be_read_is_named() {
    let error = folded_error("/proc/self/mem");
    assert_eq!(error, "error: /proc/self/mem: input/output error\n");
}

#[test]
fn a_file_without_permission_is_named() {
    let scratch = Scratch::new();
    let file = scratch.write("secret.rbt", &read_corpus("rbt/tiny_one.rbt"));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).unwrap();
    if File::open(&file).is_ok() {
        eprintln!("this user may read every file: the test shows nothing");
        return;
    }
    let file = text(&file);
    assert_eq!(folded_error(file), format!("error: {file}: permission denied\n"));
}

#[test]
fn an_empty_file_is_a_trace_without_samples() {
    let scratch = Scratch::new();
    let empty = scratch.write("empty", b"");
    let ended = run(&["convert", text(&empty), "--to", "folded"]);
    let note = format!("note: {}: empty: read as rbt without samples\n", text(&empty));
    assert_eq!((ended.code, &*ended.stdout, ended.stderr), (0, b"".as_slice(), note));
    assert_eq!(samples_in(b""), 0);
}

#[test]
fn every_command_reports_empty_files() {
    let scratch = Scratch::new();
    for (name, expected) in
        [("a.pprof", "pprof"), ("a.speedscope.json", "speedscope"), ("a.json", "a profile")]
    {
        let file = scratch.write(name, b"");
        let file = text(&file);
        let said = format!("error: {file}: expected {expected}, found an empty file\n");
        for command in [
            &["info", file][..],
            &["report", file],
            &["convert", file, "--to", "folded"],
            &["recover", file, "--to", "folded"],
            &["dump", file],
        ] {
            assert_eq!(run(command).failed(), said, "{command:?}");
        }
    }
    let bin = scratch.write("a.bin", b"");
    let said = format!("error: {}: expected tachyon, found an empty file\n", text(&bin));
    assert_eq!(run(&["report", text(&bin)]).failed(), said);
    let folded = scratch.write("a.folded", b"");
    let ended = run(&["convert", text(&folded), "--to", "folded"]);
    let note = format!("note: {}: empty: read as folded without samples\n", text(&folded));
    assert_eq!((ended.code, &*ended.stdout, ended.stderr), (0, b"".as_slice(), note));
}

#[test]
fn a_file_of_no_known_format_shows_how_it_begins() {
    let ended = piped(&["convert", "--to", "folded"], b"\x7fOLF\x02");
    let expected = "error: standard input: unsupported format: expected a known format, found a file \
                    that begins \"\\x7fOLF\\x02\"\n\
                    hint: name the format with --from; borehole formats lists them\n";
    assert_eq!(ended.failed(), expected);
}

#[test]
fn a_file_of_another_program_is_named_with_what_to_do() {
    let ended = piped(&["recover", "-o", "-", "--to", "folded"], b"Nettrace\x14\0\0\0");
    let expected = "error: standard input: unsupported input: expected a profile, found a .NET trace\n\
                    hint: convert it with dotnet-trace convert FILE --format Speedscope\n";
    assert_eq!(ended.failed(), expected);
}

#[test]
fn the_format_of_an_input_can_be_given() {
    let ended = piped(&["convert", "--from", "folded", "--to", "folded"], b"1 a 2 b 3\n");
    assert_eq!(ended.quietly(), b"1 a 2 b 3\n");
    let error = piped(&["convert", "--from", "svg", "--to", "folded"], b"").failed();
    let expected = "error: standard input: unsupported input: flamegraph can be written but not read\n\
                    hint: borehole formats lists what can be read and written\n";
    assert_eq!(error, expected);
    let error = piped(&["convert", "--from", "perf", "--to", "folded"], b"").failed();
    assert!(error.contains("unknown format: expected one of rbt, "), "{error}");
}

#[test]
fn standard_input_may_be_a_pipe_a_file_or_a_dash() {
    let file = borehole_testkit::corpus("rbt/daemon_worker.rbt");
    let expected = read_corpus("rbt/expected/conv/daemon_worker.rbt.folded");
    let command = ["convert", "--to", "folded"];
    let dash = ["convert", "-", "--to", "folded"];
    assert_eq!(run(&["convert", text(&file), "--to", "folded"]).done(), expected);
    assert_eq!(redirected(&command, &file).done(), expected);
    assert_eq!(redirected(&dash, &file).done(), expected);
    assert_eq!(piped(&command, &fs::read(&file).unwrap()).done(), expected);
    assert_eq!(piped(&dash, &fs::read(&file).unwrap()).done(), expected);
}

#[test]
fn standard_input_cannot_be_read_twice() {
    let error = piped(&["convert", "-", "-", "--to", "folded"], b"a 1\n").failed();
    assert_eq!(error, "error: too many inputs: expected standard input once, found it twice\n");
}

#[test]
fn a_named_pipe_is_opened_once() {
    let scratch = Scratch::new();
    let pipe = named_pipe(scratch.path("pipe"));
    let info = thread::scope(|scope| {
        scope.spawn(|| fs::write(&pipe, read_corpus("rbt/native.rbt")).unwrap());
        run(&["info", text(&pipe)]).quietly()
    });
    assert!(String::from_utf8(info).unwrap().contains("samples        "));
}

#[test]
fn a_named_pipe_is_an_input() {
    let scratch = Scratch::new();
    let pipe = named_pipe(scratch.path("pipe"));
    let trace = read_corpus("rbt/native.rbt");
    let dump = thread::scope(|scope| {
        scope.spawn(|| fs::write(&pipe, &trace).unwrap());
        run(&["dump", text(&pipe)]).quietly()
    });
    assert_eq!(dump, run(&["dump", &corpus("rbt/native.rbt")]).quietly());
}

#[test]
fn inputs_of_several_formats_and_from_several_places_are_merged() {
    let rbt = corpus("rbt/pid_samples.rbt");
    let pprof = corpus("pprof/go-cpu.pb.gz");
    let text = corpus("rbt/text/two_traces.txt");
    let merged = piped(&["convert", &rbt, "-", &pprof, &text, "--to", "rbt"], b"a;b 7\n").done();
    assert_eq!(samples_in(&merged), 20 + 7 + 57 + 2);
}

#[test]
fn raw_and_compressed_traces_in_one_pipe_are_read_in_any_order() {
    let files = ["rbt/daemon_worker.rbt", "rbt/gzip_members.rbt.gz", "rbt/pid_samples.rbt"].map(read_corpus);
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let stream = order.map(|index| files[index].clone()).concat();
        let info = piped(&["info", "--json"], &stream).quietly();
        let info: serde_json::Value = serde_json::from_slice(&info).unwrap();
        assert_eq!(info["samples"], 30 + 60 + 20, "{order:?}");
        assert_eq!(info["processes"].as_array().unwrap().len(), 3 + 4, "{order:?}");
    }
}

#[test]
fn damage_in_the_middle_is_an_error_that_says_where_and_what_to_try() {
    let file = corpus("rbt/bitflip_middle.rbt");
    let damage = "invalid FRAME_DEF: undefined string 5 (rbt, at byte 0x12a)";
    let hint = format!("hint: borehole recover {file} -o recovered.rbt");
    // A stream passes on everything before the damage.
    let ended = run(&["convert", &file, "--to", "folded"]);
    assert_eq!((ended.code, ended.stderr), (2, format!("error: {file}: {damage}\n{hint}\n")));
    assert!(
        ended.stdout.starts_with(b"<main> /index.php:1;"),
        "{:?}",
        ended.stdout.escape_ascii().to_string()
    );
    let error = piped(&["convert", "--to", "pprof"], &read_corpus("rbt/bitflip_middle.rbt")).failed();
    let hint = "hint: borehole recover -o recovered.rbt < FILE";
    assert_eq!(error, format!("error: standard input: {damage}\n{hint}\n"));
}

#[test]
fn a_cut_off_trace_is_read_to_its_end_and_named() {
    let file = corpus("rbt/truncated_varint.rbt");
    let ended = run(&["convert", &file, "--to", "folded"]);
    assert_eq!((ended.code, ended.stdout.split(|&byte| byte == b'\n').count()), (3, 2 + 1));
    let warning = format!("warning: {file}: truncated COMPACT_SAMPLE: ");
    assert!(ended.stderr.starts_with(&warning) && ended.stderr.lines().count() == 1, "{}", ended.stderr);
}

#[test]
fn lenient_reading_writes_intact_data_and_reports_the_rest() {
    let file = corpus("rbt/bitflip_middle.rbt");
    let ended = run(&["convert", &file, "--lenient", "--to", "folded"]);
    assert_eq!((ended.code, samples_in(&ended.stdout)), (3, 18));
    assert!(ended.stderr.starts_with(&format!("warning: {file}: invalid FRAME_DEF")), "{}", ended.stderr);
}

#[test]
fn harmless_oddities_are_notes_and_not_damage() {
    let zeros = corpus("rbt/gzip_trailing_zeros.rbt.gz");
    let ended = run(&["convert", &zeros, "--to", "folded"]);
    let note = format!("note: {zeros}: 512 zero bytes after a gzip member (at byte 0x1b5)\n");
    assert_eq!((ended.code, ended.stderr), (0, note));
    let ended = piped(&["convert", "--to", "folded"], b"a;b 1.5\n");
    let note = "note: standard input: fractional counts are rounded (first at line 1) (at byte 0x0)\n";
    assert_eq!((ended.code, &*ended.stderr), (0, note));
}

#[test]
fn a_fully_damaged_file_gives_few_warnings() {
    let text = "no frame\n".repeat(5000);
    let ended = piped(&["convert", "--from", "phpspy", "--lenient", "--to", "folded"], text.as_bytes());
    assert_eq!((ended.code, ended.stderr.lines().count()), (3, 22));
    assert!(ended.stderr.contains("warning: standard input: 4980 more"), "{}", ended.stderr);
    assert!(ended.stderr.ends_with("bytes lost in total\n"), "{}", ended.stderr);
}

#[test]
fn file_names_need_not_be_utf8() {
    let scratch = Scratch::new();
    let path = scratch.path("").join(OsStr::from_bytes(b"bad\xff.rbt"));
    fs::copy(borehole_testkit::corpus("rbt/daemon_worker.rbt"), &path).unwrap();
    let path = path.as_os_str();
    let word = OsStr::new;
    let cases: [&[&OsStr]; 6] = [
        &[word("check"), path],
        &[word("info"), path],
        &[word("report"), path],
        &[word("dump"), path],
        &[word("diff"), path, path],
        &[word("convert"), word("--to"), word("folded"), path],
    ];
    for arguments in cases {
        let ended = run(arguments);
        assert!(ended.code == 0 && !ended.stdout.is_empty(), "{arguments:?}: {}", ended.stderr);
    }
    let saved = scratch.path("saved.rbt");
    assert_eq!(run(&[word("recover"), path, word("-o"), saved.as_os_str()]).code, 0);
}

/// A block device: one of this machine, or one that is made for the test.
fn block_device(scratch: &Scratch) -> Option<PathBuf> {
    let is_block = |path: &PathBuf| fs::metadata(path).is_ok_and(|found| found.file_type().is_block_device());
    let devices = fs::read_dir("/dev").unwrap().map(|entry| entry.unwrap().path());
    devices.into_iter().find(is_block).or_else(|| {
        // The first loop device, which nothing opens here.
        let path = scratch.path("loop");
        let made = Command::new("mknod").arg(&path).args(["b", "7", "0"]).output().unwrap();
        made.status.success().then_some(path)
    })
}

#[test]
fn block_devices_are_neither_read_nor_written() {
    let scratch = Scratch::new();
    let Some(device) = block_device(&scratch) else {
        eprintln!("left out: this machine has no block device, and this user may not make one");
        return;
    };
    let device = text(&device);
    let expected = format!("error: {device}: expected a file, found a block device\n");
    let (trace, graph) = (corpus("rbt/tiny_one.rbt"), corpus("php/reli-json/m1_objects.json.gz"));
    for command in [
        &["info", device][..],
        &["convert", "--to", "folded", device],
        &["heap", "info", device],
        &["convert", &trace, "--to", "folded", "--force", "-o", device],
        &["convert", &trace, "--to", "rbt", "-o", device],
        &["heap", "export", &graph, "--to", "json", "--force", "-o", device],
        &["heap", "report", &graph, "-o", device],
    ] {
        assert_eq!(run(command).failed(), expected, "{command:?}");
    }
    let database = scratch.path("heap.sqlite3");
    symlink(device, &database).unwrap();
    let said = run(&["heap", "export", &graph, "-o", text(&database)]).failed();
    assert!(said.contains("found a block device") || said.contains("found a device"), "{said}");
    let recorded = ["record", "--force", "-o", device, "--format", "rbt", "--", "true"];
    assert!(run(&recorded).failed().contains("found a block device"));
}
