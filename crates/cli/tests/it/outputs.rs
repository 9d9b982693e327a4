//! Outputs are complete or absent, and never overwrite anything else.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use borehole_testkit::{Scratch, read_corpus};

use crate::program::{Ended, corpus, listing, named_pipe, program, run, samples_in, text};

const FULL: &str = "no space left on device";

fn convert_to(output: &str, more: &[&str]) -> Ended {
    run(&[&["convert", &corpus("rbt/daemon_worker.rbt"), "-o", output], more].concat())
}

#[test]
fn the_output_name_selects_format_and_compression() {
    let scratch = Scratch::new();
    let begins = [
        ("a.rbt", &b"RELI"[..]),
        ("a.rbt.gz", b"\x1f\x8b"),
        ("a.folded", b"<main> "),
        ("a.pb.gz", b"\x1f\x8b"),
        ("a.speedscope.json", b"{"),
        ("a.svg", b"<?xml"),
        ("callgrind.out.7", b"# callgrind format"),
        ("a.jsonl", b"{\"type\":\"file\""),
    ];
    for (name, begin) in begins {
        let path = scratch.path(name);
        assert_eq!(convert_to(text(&path), &[]).done(), b"", "{name}");
        assert!(fs::read(&path).unwrap().starts_with(begin), "{name}");
    }
    assert_eq!(listing(scratch.folder()).len(), begins.len());
}

#[test]
fn an_output_name_without_a_format_is_refused() {
    let scratch = Scratch::new();
    let path = scratch.path("a.xyz");
    let expected = format!(
        "error: missing output format: expected --to FORMAT or a known file extension, found {}\n",
        path.display()
    );
    assert_eq!(convert_to(text(&path), &[]).failed(), expected);
    let error = run(&["convert", &corpus("rbt/native.rbt")]).failed();
    assert!(error.ends_with("expected --to FORMAT or a known file extension, found standard output\n"));
    assert!(listing(scratch.folder()).is_empty());
}

#[test]
fn an_output_name_of_another_format_is_refused() {
    let scratch = Scratch::new();
    let path = scratch.path("trace.rbt.zst");
    for options in [&["--to", "rbt"][..], &[]] {
        let refused = convert_to(path.to_str().unwrap(), options).failed();
        assert!(
            refused.contains("unsupported compression: expected gzip (.gz) or none, found "),
            "{refused}"
        );
        assert!(!path.exists());
    }
}

#[test]
fn an_existing_file_is_kept_without_force() {
    let scratch = Scratch::new();
    let path = scratch.write("a.folded", b"old");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let expected = format!("error: {}: file exists; use --force to replace it\n", path.display());
    assert_eq!(convert_to(text(&path), &[]).failed(), expected);
    assert_eq!(fs::read(&path).unwrap(), b"old");
    convert_to(text(&path), &["--force"]).done();
    assert_eq!(fs::read(&path).unwrap(), read_corpus("rbt/expected/conv/daemon_worker.rbt.folded"));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(listing(scratch.folder()), ["a.folded"]);
}

/// Refused outputs are detected before the long work, which would fail here.
#[test]
fn outputs_are_refused_before_the_work() {
    let scratch = Scratch::new();
    let page = scratch.write("old.html", b"old");
    let whole = read_corpus("php/heap/8.2.36.rdump");
    let cut = scratch.write("cut.rdump", &whole[..whole.len() / 2]);
    let (page, cut, damaged) = (text(&page), text(&cut), corpus("rbt/realistic_54k_segmented_corrupt.rbt"));
    let shown = scratch.write("old.txt", b"old");
    for command in [&["heap", "compare", cut, cut][..], &["heap", "report", cut]] {
        let with = |output: &str| run(&[command, &["-o", output]].concat()).failed();
        assert_eq!(
            with(text(&shown)),
            format!("error: {}: file exists; use --force to replace it\n", text(&shown))
        );
        // No extension promises another format.
        assert_eq!(with(page), format!("error: unsupported output {page}: borehole heap viz writes pages\n"));
        assert_eq!(with("new.json"), "error: missing --json: without it, new.json would be plain text\n");
    }
    let commands = [
        &["heap", "viz", cut][..],
        &["heap", "export", cut, "-f", "jsonl"],
        &["report", &damaged],
        &["diff", &damaged, &damaged],
    ];
    for command in commands {
        let error = run(&[command, &["-o", page]].concat()).failed();
        assert_eq!(error, format!("error: {page}: file exists; use --force to replace it\n"), "{command:?}");
    }
    let error = run(&["diff", &damaged, &damaged, "-o", "diff.txt"]).failed();
    assert!(error.contains("expected a name that ends in .svg or .html, found diff.txt"), "{error}");
    assert_eq!(listing(scratch.folder()), ["cut.rdump", "old.html", "old.txt"]);
}

#[test]
fn dependent_options_are_refused_alone() {
    let alone = [
        ("convert a --force", "output"),
        ("recover a --force", "output"),
        ("dump a --force", "output"),
        ("report a --force", "output"),
        ("diff a b --force", "output"),
        ("record -p 1 --force", "output"),
        ("heap export a --force", "output"),
        ("heap report a --force", "output"),
        ("heap report a --pretty", "json"),
        ("heap compare a b --pretty", "json"),
        ("heap report a --memory-limit-error-max-depth 3", "memory-limit-error-line"),
    ];
    for (command, needed) in alone {
        let refused = run(&command.split(' ').collect::<Vec<_>>()).failed();
        let expected = format!("error: the following required arguments were not provided:\n  --{needed}");
        assert!(refused.starts_with(&expected), "{command}: {refused}");
    }
    let heap = corpus("php/reli-json/m1_objects.json.gz");
    let refused = run(&["heap", "export", &heap, "--pretty", "-f", "jsonl"]).failed();
    assert_eq!(refused, "error: unsupported format: expected json for --pretty, found jsonl\n");
}

#[test]
fn values_below_zero_are_refused_as_values() {
    let refused = [
        ("record -d -1s", "expected a duration above 0, found -1s"),
        ("top -i -1 -p 1", "expected a duration above 0, found -1"),
        ("record -r -5", "expected 0.001 to 1000000 samples per second, found -5"),
        ("top -r -5", "-5 is not in 1..=10000"),
        ("record -p -5", "-5 is not in 1..=2147483647"),
        ("diff a b --fail-over -5%", "expected a percentage such as 5%, found -5%"),
        ("inspector:trace -p -5", "-5"),
    ];
    for (command, why) in refused {
        let said = run(&command.split(' ').collect::<Vec<_>>()).failed();
        assert!(said.starts_with("error: invalid value '-") && said.contains(why), "{command}: {said}");
    }
}

#[test]
fn heap_reports_may_be_written_to_devices() {
    let scratch = Scratch::new();
    let heap = corpus("php/reli-json/m1_objects.json.gz");
    let page = scratch.path("null.html");
    symlink("/dev/null", &page).unwrap();
    for command in [
        &["heap", "viz", &heap, "-o", text(&page)][..],
        &["heap", "report", &heap, "-o", "/dev/null"],
        &["heap", "compare", &heap, &heap, "-o", "/dev/null"],
    ] {
        assert_eq!(run(command).done(), b"", "{command:?}");
    }
    assert!(fs::symlink_metadata(&page).unwrap().is_symlink());
    for command in [&["heap", "report", &heap][..], &["heap", "compare", &heap, &heap]] {
        let error = run(&[command, &["-o", "/dev/full"]].concat()).failed();
        assert!(error.ends_with(&format!("error: /dev/full: {FULL}\n")), "{error}");
    }
}

#[test]
fn an_error_in_the_middle_leaves_nothing_new_and_nothing_changed() {
    let scratch = Scratch::new();
    let old = scratch.write("old.rbt", b"old");
    let damaged = corpus("rbt/realistic_54k_segmented_corrupt.rbt");
    for command in [vec!["convert", &damaged], vec!["convert", &corpus("rbt/tiny_one.rbt"), &damaged]] {
        for (output, more) in [(&scratch.path("new.rbt"), &[][..]), (&old, &["--force"])] {
            let error = run(&[&command[..], &["-o", text(output)], more].concat()).failed();
            assert!(error.starts_with(&format!("error: {damaged}: ")), "{error}");
        }
    }
    assert_eq!(listing(scratch.folder()), ["old.rbt"]);
    assert_eq!(fs::read(&old).unwrap(), b"old");
}

#[test]
fn a_full_disk_is_an_error_that_names_the_output() {
    for format in ["rbt", "phpspy", "folded", "pprof", "speedscope", "callgrind", "jsonl", "flamegraph"] {
        let error = convert_to("/dev/full", &["--to", format]).failed();
        assert_eq!(error, format!("error: /dev/full: {FULL}\n"), "{format}");
    }
    let error = run(&["recover", &corpus("rbt/native.rbt"), "-o", "/dev/full"]).failed();
    assert_eq!(error, format!("error: /dev/full: {FULL}\n"));
}

/// Runs the program with a file size limit of this many blocks of 512 bytes, with `folder` for temporary files.
fn run_short_of_room(blocks: u32, folder: &Path, arguments: &[&str]) -> Ended {
    let mut shell = Command::new("sh");
    let limited = format!(r#"trap '' XFSZ; ulimit -f {blocks}; exec "$0" "$@""#);
    shell.args(["-c", &limited, env!("CARGO_BIN_EXE_borehole")]).args(arguments);
    shell.stdin(Stdio::null()).env("TMPDIR", folder).output().unwrap().into()
}

#[test]
fn an_output_that_does_not_fit_is_named_and_removed() {
    let scratch = Scratch::new();
    let old = scratch.write("old.rbt", b"old");
    let heap = corpus("php/reli-json/m1_objects.json.gz");
    let trace = corpus("rbt/realistic_54k_ts.rbt");
    for command in [&["convert", &trace][..], &["recover", &trace], &["heap", "export", &heap, "-f", "json"]]
    {
        for (output, more) in [(&scratch.path("new.rbt"), &[][..]), (&old, &["--force"])] {
            let command = [command, &["-o", text(output)], more].concat();
            let error = run_short_of_room(8, scratch.folder(), &command).failed();
            assert_eq!(error, format!("error: {}: file too large\n", output.display()), "{command:?}");
        }
    }
    assert_eq!(listing(scratch.folder()), ["old.rbt"]);
    assert_eq!(fs::read(&old).unwrap(), b"old");
}

#[test]
fn full_temporary_folders_are_reported() {
    let scratch = Scratch::new();
    let convert = ["convert", &corpus("rbt/realistic_54k_ts.rbt"), "--to", "gecko"];
    let error = run_short_of_room(64, scratch.folder(), &convert).failed();
    let why = format!("temporary file in {}: file too large", text(scratch.folder()));
    assert_eq!(error, format!("error: standard output: {why}; set TMPDIR to use another directory\n"));
    assert_eq!(listing(scratch.folder()), [""; 0]);
}

#[test]
fn every_command_reports_a_full_standard_output() {
    let trace = corpus("rbt/native.rbt");
    let commands = [
        &["convert", "--to", "folded", &trace][..],
        &["recover", &trace],
        &["dump", &trace],
        &["dump", "--flat", &trace],
        &["dump", "--raw", &trace],
        &["info", &trace],
        &["info", "--json", &trace],
        &["report", &trace],
        &["report", "--json", &trace],
        &["formats"],
        &["formats", "--json"],
        &["completions", "bash"],
        &["man"],
        &["converter:pprof", &trace],
        &["rbt:analyze", &trace],
        &["--help"],
        &["convert", "-h"],
        &["--version"],
        &["rbt:analyze", "--help"],
    ];
    for command in commands {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let ended = Ended::from(program(command).stdout(full).output().unwrap());
        let last = ended.stderr.lines().last().unwrap_or_default();
        assert_eq!((ended.code, last), (2, &*format!("error: standard output: {FULL}")), "{command:?}");
    }
}

#[test]
fn a_closed_pipe_is_silent() {
    let trace = corpus("rbt/realistic_54k.rbt.gz");
    let commands = [
        &["convert", "--to", "folded", &trace][..],
        &["convert", "--to", "rbt", &trace],
        &["dump", &trace],
        &["dump", "--raw", &trace],
        &["report", "--json", &trace],
        &["info", &trace],
        &["formats"],
        &["completions", "zsh"],
        &["man"],
        &["converter:folded", &trace],
        &["report", "--help"],
    ];
    for command in commands {
        let mut child = program(command).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let ended = Ended::from(child.wait_with_output().unwrap());
        assert_eq!((ended.code, &*ended.stderr), (0, ""), "{command:?}");
    }
}

#[test]
fn the_target_of_a_link_is_written() {
    let scratch = Scratch::new();
    let [link, target] = ["link.folded", "target"].map(|name| scratch.path(name));
    symlink("target", &link).unwrap();
    convert_to(text(&link), &[]).done();
    let first = fs::read(&target).unwrap();
    assert_eq!(first, read_corpus("rbt/expected/conv/daemon_worker.rbt.folded"));
    assert!(convert_to(text(&link), &[]).failed().ends_with("use --force to replace it\n"));
    fs::write(&target, b"old").unwrap();
    convert_to(text(&link), &["--force"]).done();
    assert_eq!(fs::read(&target).unwrap(), first);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(listing(scratch.folder()), ["link.folded", "target"]);
}

#[test]
fn temporary_files_do_not_follow_links() {
    let scratch = Scratch::new();
    let precious = scratch.write("precious", b"precious");
    for name in ["a.bin.part", "a.bin.part.tables"] {
        symlink(&precious, scratch.path(name)).unwrap();
    }
    let output = scratch.path("a.bin");
    let error = convert_to(text(&output), &["--to", "tachyon"]).failed();
    assert!(error.contains("a.bin.part: file exists"), "{error}");
    convert_to(text(&output), &["--to", "tachyon", "--force"]).done();
    assert_eq!(fs::read(&precious).unwrap(), b"precious");
    assert_eq!(listing(scratch.folder()), ["a.bin", "precious"]);
}

/// Bytes that are not UTF-8 are no reason to refuse a name, or to write another file.
#[test]
fn names_may_have_any_bytes() {
    let scratch = Scratch::new();
    let name = |ending: &str| [b"a \xff'", ending.as_bytes()].concat();
    let path = |ending: &str| scratch.folder().join(OsStr::from_bytes(&name(ending)));
    let (trace, heap) = (corpus("rbt/daemon_worker.rbt"), corpus("php/heap/8.1.2.rdump"));
    let commands = [
        (&["convert", &trace][..], ".svg"),
        (&["convert", &trace], ".rbt.gz"),
        (&["recover", &trace], ".rbt"),
        (&["dump", &trace], ".jsonl"),
        (&["report", &trace], ".html"),
        (&["diff", &trace, &trace], ".diff.svg"),
        (&["heap", "export", &heap], ".rmem"),
        (&["heap", "export", &heap], ".sqlite3"),
        (&["heap", "report", &heap], ".txt"),
        (&["heap", "viz", &heap], ".heap.html"),
        (&["record", "--", "php", "-r", "usleep(300000);"], ".recorded.rbt"),
        (&["record", "--", "php", "-r", "usleep(300000);"], ".folded"),
        (&["inspector:trace", "--", "php", "-r", "usleep(300000);"], ".phpspy"),
    ];
    for (command, ending) in commands {
        let command = program(command);
        // Commands come last.
        let arguments: Vec<_> = command.get_args().map(OsStr::to_owned).collect();
        let at = arguments.iter().position(|argument| argument == "--").unwrap_or(arguments.len());
        let mut whole = Command::new(command.get_program());
        whole.args(&arguments[..at]).arg("-o").arg(path(ending)).args(&arguments[at..]);
        let ended = Ended::from(whole.stdin(Stdio::null()).output().unwrap());
        assert!([0, 3].contains(&ended.code), "{whole:?}: {}", ended.stderr);
        assert!(path(ending).metadata().is_ok_and(|found| found.len() > 0), "{whole:?}");
    }
    assert_eq!(fs::read_dir(scratch.folder()).unwrap().count(), commands.len());
}

#[test]
fn opened_pages_are_private_and_have_unpredictable_names() {
    let scratch = Scratch::new();
    let victim = scratch.write("victim", b"precious");
    let folder = scratch.path("tmp");
    fs::create_dir(&folder).unwrap();
    let mut command = program(&["open", "--no-browser", &corpus("rbt/daemon_worker.rbt")]);
    let child = command.env("TMPDIR", &folder).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Links are resolved before writing, or only the name would change.
    let foreseen = folder.join(format!("borehole-{}.html", child.id()));
    symlink(&victim, &foreseen).unwrap();
    let address = String::from_utf8(Ended::from(child.wait_with_output().unwrap()).quietly()).unwrap();
    let page = std::path::Path::new(address.trim_end().strip_prefix("file://").unwrap());
    assert_ne!(page, foreseen);
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
    assert!(fs::read(page).unwrap().starts_with(b"<!doctype html>"));
    assert_eq!(fs::metadata(page).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(listing(&folder).len(), 2);
}

#[test]
fn a_named_pipe_is_an_output() {
    let scratch = Scratch::new();
    let pipe = named_pipe(scratch.path("pipe"));
    let read = thread::scope(|scope| {
        let reader = scope.spawn(|| fs::read(&pipe).unwrap());
        convert_to(text(&pipe), &["--to", "rbt"]).done();
        reader.join().unwrap()
    });
    assert_eq!(samples_in(&read), 30);
    assert_eq!(listing(scratch.folder()), ["pipe"]);
}

#[test]
fn folders_and_paths_in_missing_folders_are_refused() {
    let scratch = Scratch::new();
    let folder = text(scratch.folder());
    let error = convert_to(folder, &["--to", "folded"]).failed();
    assert_eq!(error, format!("error: {folder}: expected a file, found a directory\n"));
    let path = scratch.path("no/such/a.svg");
    let error = convert_to(text(&path), &[]).failed();
    assert_eq!(error, format!("error: {}: no such file or directory\n", path.display()));
}

#[test]
fn an_input_may_be_replaced_by_its_conversion() {
    let scratch = Scratch::new();
    let path = scratch.write("a.rbt", &read_corpus("rbt/daemon_worker.rbt"));
    run(&["convert", text(&path), "-o", text(&path), "--force", "--compress"]).done();
    assert!(fs::read(&path).unwrap().starts_with(b"\x1f\x8b"));
    assert_eq!(samples_in(&fs::read(&path).unwrap()), 30);
}

#[test]
fn times_have_the_option_name_of_record() {
    let trace = corpus("rbt/annotations_ts.rbt");
    let convert = |options: &[&str]| run(&[&["convert", &trace, "--to", "rbt"], options].concat()).done();
    let [with, without] = ["delta", "none"].map(|mode| convert(&["--timestamps", mode]));
    // The header byte with this fact.
    assert_eq!((with[5], without[5]), (1, 0));
    assert_eq!(convert(&["--rbt-timestamps", "none"]), without);
}

#[test]
fn losses_of_a_format_are_reported_once_with_counts() {
    let ended = run(&["convert", &corpus("rbt/annotations_ts.rbt"), "--to", "folded"]);
    let note = "note: folded cannot hold everything: timestamps dropped: 6, annotations dropped: 4\n";
    assert_eq!((ended.code, &*ended.stderr), (0, note));
}

#[test]
fn more_samples_than_a_format_can_repeat_are_refused_by_name() {
    let scratch = Scratch::new();
    let path = scratch.path("huge.phpspy");
    let error = run(&["convert", &corpus("rbt/repeat_huge.rbt"), "-o", text(&path)]).failed();
    assert!(error.contains("expected at most 10000000, found 1099511627777; write rbt or folded instead"));
    assert!(listing(scratch.folder()).is_empty());
    let folded = run(&["convert", &corpus("rbt/repeat_huge.rbt"), "--to", "folded"]).quietly();
    assert!(folded.starts_with(b"main /index.php:1;foo /foo.php:10 1099511627777\n"));
}

#[test]
fn ambiguous_extensions_mean_the_format_of_the_input() {
    let scratch = Scratch::new();
    let output = scratch.path("out.bin");
    for (input, format) in [
        ("tachyon/corpus/24_idle.bin", "tachyon"),
        ("tachyon/bigendian/24_idle.bin", "tachyon"),
        ("trc/in/v054_all_types.bin", "trc"),
    ] {
        run(&["convert", &corpus(input), "-o", text(&output), "--force"]).done();
        let info = run(&["info", "--json", text(&output)]).done();
        let info: serde_json::Value = serde_json::from_slice(&info).unwrap();
        assert_eq!(info["format"], format, "{input}");
    }
    let other = scratch.path("other.bin");
    let inputs =
        ["rbt/daemon_worker.rbt", "tachyon/corpus/24_idle.bin", "trc/in/v054_all_types.bin"].map(corpus);
    for inputs in [&inputs[..1], &inputs[1..]] {
        let inputs: Vec<_> = inputs.iter().map(String::as_str).collect();
        let error = run(&[&["convert", "-o", text(&other)], &inputs[..]].concat()).failed();
        assert!(error.contains("expected --to tachyon or --to trc, found "), "{error}");
    }
    assert!(!other.exists());
    run(&["convert", &inputs[0], "-o", text(&other), "--to", "trc"]).done();
    assert!(other.exists());
}
