//! Sampling real PHP processes.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _, lchown, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use borehole_process::{ForeignMemory as _, ForeignProcess as _, Process, Stopper};
use borehole_testkit::{Scratch, corpus, peers};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::explore::Terminal;
use crate::program::{Ended, listing, program, run, samples_in, text, wait_for, wait_until_heeded};

/// A busy PHP program that ends with the test.
pub(crate) struct Busy(Child);

impl Busy {
    /// `None` if PHP is skipped. Its last argument appears in no other command line.
    pub(crate) fn start(name: &str) -> Option<Self> {
        let mut command = peers::peer("php")?.command();
        // It is killed when it is dropped, on a slow machine after minutes.
        command.arg(corpus("php/trace/busy.php")).args(["600", "8", name]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let busy = Self(child);
        // Until it runs its program, it looks like other processes.
        wait_for(|| {
            let stack = run(&["stack", "-p", &busy.id()]);
            String::from_utf8(stack.stdout).unwrap().contains("busy.php").then_some(())
        });
        Some(busy)
    }

    pub(crate) fn id(&self) -> String {
        self.0.id().to_string()
    }

    /// Lets its first module seem to be compiled for an unknown release.
    fn becomes_unknown(&self) {
        let process = Process::open(self.0.id().try_into().unwrap()).unwrap();
        let tables: Vec<_> = process.mappings().iter().filter_map(|at| process.symbols(at).ok()).collect();
        let registry = tables.iter().find_map(|symbols| symbols.find("module_registry")).unwrap().address;
        // The elements of the table, and the module API number of an element.
        let first = process.read_u64(process.read_u64(registry + 16).unwrap()).unwrap();
        let memory = fs::OpenOptions::new().write(true).open(format!("/proc/{}/mem", self.id())).unwrap();
        memory.write_all_at(&20_300_101_u32.to_le_bytes(), first + 4).unwrap();
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(arguments: &[&str]) -> Child {
    program(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn send(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id().try_into().unwrap()), signal).unwrap();
}

fn ended(mut child: Child) -> Ended {
    wait_for(|| child.try_wait().unwrap());
    child.wait_with_output().unwrap().into()
}

fn info(path: &str) -> Value {
    serde_json::from_slice(&run(&["info", "--json", path]).done()).unwrap()
}

#[test]
fn a_process_is_sampled_at_the_requested_rate() {
    let Some(busy) = Busy::start("as-often") else { return };
    let scratch = Scratch::new();
    let path = scratch.path("trace.rbt");
    let trace = text(&path);
    let said = run(&["record", "-p", &busy.id(), "-n", "50", "--rate", "500", "-o", trace]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(said.stderr.contains("Sampled 1 process for "), "{}", said.stderr);
    assert!(said.stderr.contains(" s at 500 Hz: 50 samples"), "{}", said.stderr);
    let info = info(trace);
    assert_eq!(info["samples"], 50);
    let report = String::from_utf8(run(&["report", "--no-line", trace]).done()).unwrap();
    assert!(report.contains("  leaf") && report.contains("  A::step"), "{report}");
    // The counts of the samples are in the file.
    let facts = String::from_utf8(run(&["dump", "--raw", trace]).done()).unwrap();
    for fact in ["samples.taken", "samples.missed", "recorder", "PHP 8."] {
        assert!(facts.contains(fact), "{fact}");
    }
    let refused = run(&["record", "-p", &busy.id(), "-n", "1", "-o", trace]).failed();
    assert!(refused.contains("file exists; use --force to replace it"), "{refused}");
    run(&["record", "-p", &busy.id(), "-n", "1", "--force", "-o", trace]).done();
    assert_eq!(self::info(trace)["samples"], 1);
}

/// Nanoseconds since 1970.
fn unix_ns() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(now.as_nanos()).unwrap()
}

/// The wall times of all samples of files that are merged, in their order.
fn wall_times_ns(paths: &[&str]) -> Vec<i64> {
    let output = run(&[&["convert", "-f", "jsonl"], paths].concat()).done();
    let (mut start_ns, mut times_ns) = (0, Vec::new());
    for line in String::from_utf8(output).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        match line["type"].as_str().unwrap() {
            "segment" => start_ns = line["start_unix_ns"].as_i64().unwrap_or_else(|| panic!("{line}")),
            "sample" => times_ns.push(start_ns + line["time_ns"].as_i64().unwrap_or(0)),
            _ => {}
        }
    }
    times_ns
}

#[test]
fn recordings_have_the_times_of_their_samples_by_default() {
    let Some(busy) = Busy::start("by-the-clock") else { return };
    let scratch = Scratch::new();
    let record = |name: &str, options: &[&str]| {
        let path = scratch.path(name);
        let began_ns = unix_ns();
        run(&[&["record", "-p", &busy.id(), "-n", "100", "--rate", "500", "-o", text(&path)], options]
            .concat())
        .done();
        (path, began_ns..unix_ns())
    };
    for (name, options) in [("timed.rbt", &[][..]), ("timed.rbt.gz", &["--timestamps", "delta"])] {
        let (path, while_recording) = record(name, options);
        let times_ns = wall_times_ns(&[text(&path)]);
        assert!(times_ns.is_sorted() && times_ns.iter().all(|time_ns| while_recording.contains(time_ns)));
        assert!(times_ns[99] - times_ns[0] > 150_000_000, "{times_ns:?}");
    }
    let (path, while_recording) = record("untimed.rbt", &["--timestamps", "none"]);
    assert_eq!(info(text(&path))["time_ns"], Value::Null);
    assert!(while_recording.contains(&wall_times_ns(&[text(&path)])[0]));
}

#[test]
fn rotated_files_follow_each_other_and_concurrent_ones_overlap() {
    let Some(busy) = Busy::start("rotated") else { return };
    let scratch = Scratch::new();
    let path = scratch.path("trace.rbt");
    let began_ns = unix_ns();
    let record = ["record", "-p", &busy.id(), "--rate", "200", "-d", "3s", "-o"];
    let beside = scratch.path("beside.rbt");
    let concurrent = start(&[&record[..], &[text(&beside)]].concat());
    run(&[&record[..], &[text(&path), "--rotate", "1s"]].concat()).done();
    assert_eq!(ended(concurrent).code, 0);
    let [first, second] = [0, 1].map(|number| scratch.path(&format!("trace.{number}.rbt")));
    let [first_ns, second_ns] = [&first, &second].map(|path| wall_times_ns(&[text(path)]));
    assert!(first_ns[0] > began_ns && first_ns.last().unwrap() < &second_ns[0]);
    // Each sample is at its time, whatever the order of the files.
    assert_eq!(wall_times_ns(&[text(&second), text(&first)]), [&second_ns[..], &first_ns].concat());
    // Also if the files are joined.
    let joined = scratch.path("joined.rbt");
    let all = [&second, &beside, &first].map(|path| fs::read(path).unwrap());
    fs::write(&joined, all.concat()).unwrap();
    let beside_ns = wall_times_ns(&[text(&beside)]);
    let expected = [&second_ns[..], &beside_ns, &first_ns].concat();
    let near = |(a, b): (&i64, &i64)| a.abs_diff(*b) < 1000;
    let joined_ns = wall_times_ns(&[text(&joined)]);
    assert!(joined_ns.len() == expected.len() && joined_ns.iter().zip(&expected).all(near));
    assert!(beside_ns[0] < second_ns[0] && beside_ns.last() > first_ns.last());
    // A timeline of all of them is as long as the recordings, not as long as their sum.
    let timeline = run(&["report", "--timeline", text(&first), text(&second), text(&beside)]).done();
    let timeline = String::from_utf8(timeline).unwrap();
    let span = timeline.strip_prefix("# timeline: ").and_then(|rest| rest.split_once(" s,")).unwrap().0;
    let (from_s, to_s) = span.split_once(" to ").unwrap();
    let lasts_s = to_s.parse::<f64>().unwrap() - from_s.parse::<f64>().unwrap();
    assert!((2.0..5.5).contains(&lasts_s), "{timeline}");
}

#[test]
fn closures_of_one_class_are_told_apart_without_lines() {
    let Some(php) = peers::peer("php") else { return };
    let php = php.command().get_program().to_owned();
    let (scratch, pipeline) = (Scratch::new(), corpus("php/trace/pipeline.php"));
    let path = scratch.path("trace.rbt");
    let recording = ["record", "--rate", "500", "-o", text(&path), "--", php.to_str().unwrap()];
    run(&[&recording[..], &[text(&pipeline), "2"]].concat()).done();
    let report: Value =
        serde_json::from_slice(&run(&["report", "--json", "--no-line", text(&path)]).done()).unwrap();
    let rows = report["total"]["rows"].as_array().unwrap();
    let written = |format| String::from_utf8(run(&["convert", "--to", format, text(&path)]).done()).unwrap();
    for (line, is_all) in [(8, true), (12, false), (24, true)] {
        let name = format!("Pipeline::{{closure:{line}}}");
        let row = rows.iter().find(|row| row["frame"] == *name).unwrap_or_else(|| panic!("{name}: {report}"));
        assert_eq!(row["percent"].as_f64().unwrap() > 60.0, is_all, "{row}");
        assert!(written("callgrind").contains(&format!(") {name}\n")), "{name}");
        assert!(written("folded").contains(&format!(";{name} ")), "{name}");
    }
}

#[test]
fn output_and_start_errors_come_before_sampling() {
    let scratch = Scratch::new();
    let marker = scratch.path("started");
    for name in ["nowhere/trace.rbt", "nowhere/trace.svg"] {
        let path = scratch.path(name);
        let said = run(&["record", "-o", text(&path), "--", "touch", text(&marker)]).failed();
        let folder = scratch.path("nowhere");
        assert_eq!(said, format!("error: {}: no such folder: {}\n", path.display(), folder.display()));
        assert!(!marker.exists());
    }
    let trace = scratch.path("trace.rbt");
    let said = run(&["record", "-o", text(&trace), "--", "no-such-program"]).failed();
    assert_eq!(said, "error: cannot start no-such-program: no such program\n");
    let said = run(&["record", "-o", text(&trace), "--", "/"]).failed();
    assert_eq!(said, "error: cannot start /: it is not a program, or permission is denied\n");
}

#[test]
fn an_interrupted_recording_is_complete_and_a_killed_one_can_be_recovered() {
    let Some(busy) = Busy::start("interrupted") else { return };
    for (signal, name) in
        [(Signal::SIGINT, "a.rbt"), (Signal::SIGTERM, "b.rbt.gz"), (Signal::SIGKILL, "c.rbt")]
    {
        let scratch = Scratch::new();
        let path = scratch.path(name);
        let mut child = start(&["record", "-p", &busy.id(), "--rate", "1000", "-o", text(&path)]);
        wait_for(|| fs::metadata(&path).is_ok_and(|file| file.len() > 600).then_some(()));
        send(&child, signal);
        if signal == Signal::SIGKILL {
            child.wait().unwrap();
            let saved = scratch.path("saved.rbt");
            run(&["recover", text(&path), "-o", text(&saved)]).done();
            assert!(samples_in(&fs::read(&saved).unwrap()) > 50);
            continue;
        }
        let ended = ended(child);
        assert_eq!(ended.code, 130, "{}", ended.stderr);
        run(&["check", text(&path)]).done();
        assert!(samples_in(&fs::read(&path).unwrap()) > 50);
    }
}

#[test]
fn killed_recordings_are_recovered_with_names() {
    let Some(busy) = Busy::start("killed-tachyon") else { return };
    let scratch = Scratch::new();
    let path = scratch.path("a.bin");
    let arguments = ["record", "-p", &busy.id(), "--rate", "500", "--format", "tachyon", "-o", text(&path)];
    let mut child = start(&arguments);
    let part = scratch.path("a.bin.part");
    // It is flushed once a second; nothing else makes it grow so soon.
    wait_for(|| fs::metadata(&part).is_ok_and(|part| part.len() > 500).then_some(()));
    send(&child, Signal::SIGKILL);
    child.wait().unwrap();
    let saved = scratch.path("saved.bin");
    run(&["recover", text(&path), "-o", text(&saved)]).done();
    assert!(samples_in(&fs::read(&saved).unwrap()) > 50);
    let report = String::from_utf8(run(&["report", "--no-line", text(&saved)]).done()).unwrap();
    assert!(report.contains("A::step") && !report.contains("frame#"), "{report}");
}

/// The command that a message tells to run after `with`.
fn told(said: &str, with: &str) -> String {
    let rest = said.split_once(with).unwrap_or_else(|| panic!("{said}")).1;
    rest.lines().next().unwrap().split(", or use").next().unwrap().to_owned()
}

/// Runs a command as a user would who pastes it into a shell.
fn pasted(command: &str) -> Ended {
    let command = command.strip_prefix("borehole ").unwrap();
    let mut shell = Command::new("bash");
    let line = format!(r#""$0" {command}"#);
    shell.args(["-c", &line, env!("CARGO_BIN_EXE_borehole")]).stdin(Stdio::null()).output().unwrap().into()
}

#[test]
fn recordings_into_shared_directories_follow_no_links_of_others() {
    let Some(busy) = Busy::start("shared-directory") else { return };
    let scratch = Scratch::new();
    let victim = scratch.write("victim", b"precious");
    let shared = scratch.path("tmp");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
    let folder = ["--compress", "--threads", "1"];
    let cases = [
        ("x.rbt", "x.rbt", &[][..]),
        ("x.0.rbt", "x.rbt", &["--rotate", "10s"]),
        ("x.svg", "x.svg", &[]),
        ("x.svg.part", "x.svg", &[]),
        ("worker_0.rbt.gz", "", &folder),
        (".borehole-worker_0.rbt.gz-0", "", &folder),
        ("worker_1.rbt.gz", "", &folder),
        ("linked", "linked/victim", &["-f", "rbt"]),
    ];
    for (link, output, more) in cases {
        let link = shared.join(link);
        let target = if output.starts_with("linked/") { scratch.folder() } else { &victim };
        symlink(target, &link).unwrap();
        // Only root can make links of others.
        if lchown(&link, Some(65534), Some(65534)).is_err() {
            return;
        }
        // It seems to belong to the file at the link.
        let segment = shared.join(".borehole-worker_1.rbt.gz-2");
        fs::copy(corpus("rbt/daemon_worker.rbt"), &segment).unwrap();
        lchown(&segment, Some(65534), Some(65534)).unwrap();
        let (process, output) = (busy.id(), format!("{}/{output}", text(&shared)));
        let whole = [&["record", "-p", &process, "-n", "3", "--force", "-o", &output], more].concat();
        let said = run(&whole);
        assert_eq!(fs::read(&victim).unwrap(), b"precious", "{whole:?}: {}", said.stderr);
        fs::remove_dir_all(&shared).unwrap();
        fs::create_dir(&shared).unwrap();
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
    }
}

#[test]
fn a_recording_that_cannot_be_written_is_in_its_journal() {
    let Some(busy) = Busy::start("full-disk") else { return };
    for name in [&b"it's \xff.jsonl"[..], b"a.gecko.json", b"a.svg"] {
        let scratch = Scratch::new();
        let path = scratch.folder().join(OsStr::from_bytes(name));
        let mut shell = Command::new("sh");
        // The journal of a second fits; the output does not.
        let limited = r#"trap '' XFSZ; ulimit -f 2; exec "$0" "$@""#;
        shell.args([
            "-c",
            limited,
            env!("CARGO_BIN_EXE_borehole"),
            "record",
            "-p",
            &busy.id(),
            "-n",
            "20",
            "-o",
        ]);
        shell.arg(&path);
        let failed: Ended = shell.stdin(Stdio::null()).output().unwrap().into();
        assert_eq!(failed.code, 2, "{}", failed.stderr);
        assert!(failed.stderr.contains("file too large") && !path.exists(), "{}", failed.stderr);
        assert_eq!(fs::read_dir(scratch.folder()).unwrap().count(), 1);
        // It is not overwritten, and both messages say how to recover it.
        let again = program(&["record", "-p", &busy.id(), "-n", "1", "-o"]).arg(&path).output().unwrap();
        let again = Ended::from(again).failed();
        assert!(again.contains("file exists, because a recording was killed"), "{again}");
        let recovered = pasted(&told(&failed.stderr, "make the output of it with "));
        assert_eq!(recovered.code, 0, "{}", recovered.stderr);
        assert!(path.metadata().is_ok_and(|found| found.len() > 1024));
    }
}

#[test]
fn a_command_is_sampled_from_its_start_to_its_end() {
    let Some(php) = peers::peer("php") else { return };
    let php = php.command().get_program().to_str().unwrap().to_owned();
    let scratch = Scratch::new();
    for name in ["trace.folded", "trace.rbt"] {
        let path = scratch.path(name);
        let busy = corpus("php/trace/busy.php");
        let command = ["record", "--rate", "200", "-o", text(&path), "--", &php, text(&busy), "1"];
        let said = run(&command);
        assert_eq!(said.code, 0, "{}", said.stderr);
        assert!(samples_in(&fs::read(&path).unwrap()) > 20, "{}", said.stderr);
    }
    // No other file is left.
    assert_eq!(listing(scratch.folder()), ["trace.folded", "trace.rbt"]);
}

#[test]
fn the_output_of_a_command_is_not_in_the_recording() {
    let Some(php) = peers::peer("php") else { return };
    let php = php.command().get_program().to_str().unwrap().to_owned();
    let program = "echo 'printed'; $end = microtime(true) + 1; while (microtime(true) < $end);";
    let said = run(&["record", "--rate", "200", "--", &php, "-r", program]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(said.stderr.contains("printed"), "{}", said.stderr);
    let scratch = Scratch::new();
    let path = scratch.path("trace.rbt");
    fs::write(&path, &said.stdout).unwrap();
    run(&["check", text(&path)]).done();
    assert!(samples_in(&said.stdout) > 20, "{}", said.stderr);
    let program = "echo 'printed'; sleep(60);";
    let said = run(&["heap", "capture", "--", &php, "-r", program]);
    assert!(said.stderr.contains("printed"), "{}", said.stderr);
    assert!(serde_json::from_slice::<Value>(&said.stdout).is_ok());
}

#[test]
fn a_daemon_writes_a_file_a_thread_and_closes_every_segment() {
    let (Some(first), Some(second)) = (Busy::start("daemon-target"), Busy::start("daemon-target")) else {
        return;
    };
    for (compress, extension) in [(false, "rbt"), (true, "rbt.gz")] {
        let scratch = Scratch::new();
        let folder = scratch.path("out");
        let mut arguments = vec![
            "inspector:daemon",
            "-P",
            "^[^ ]*php.* daemon-target$",
            "-T",
            "2",
            "-f",
            "rbt",
            "-o",
            text(&folder),
        ];
        arguments.extend(compress.then_some("--rbt-compress"));
        let child = start(&arguments);
        // A compressed file appears when its first segment is whole.
        let sizes = || {
            fs::read_dir(&folder).ok().map(|files| files.map(|file| file.unwrap().metadata().unwrap().len()))
        };
        wait_for(|| (sizes()?.filter(|&size| size > 200).count() == 2).then_some(()));
        // As reli's worker processes, its threads have numbers of the system.
        let threads = listing(Path::new(&format!("/proc/{}/task", child.id())));
        send(&child, Signal::SIGTERM);
        assert_eq!(ended(child).code, 130);
        let mut processes = Vec::new();
        let files = listing(&folder);
        assert_eq!(files.len(), 2);
        for file in &files {
            let thread =
                file.strip_prefix("worker_").and_then(|name| name.strip_suffix(&format!(".{extension}")));
            assert!(threads.contains(&thread.unwrap().to_owned()), "{file}: {threads:?}");
            let file = &folder.join(file);
            run(&["check", text(file)]).done();
            let raw = String::from_utf8(run(&["dump", "--raw", text(file)]).done()).unwrap();
            assert!(raw.contains("SEGMENT_END") && raw.contains("host"), "{raw}");
            processes.extend([&first, &second].map(Busy::id).into_iter().filter(|id| raw.contains(id)));
        }
        processes.sort();
        let mut wanted = [first.id(), second.id()];
        wanted.sort();
        assert_eq!(processes, wanted);
    }
}

#[test]
fn a_bundle_names_the_process_in_each_sample() {
    let Some(busy) = Busy::start("bundled-target") else { return };
    let scratch = Scratch::new();
    let path = scratch.path("all.rbt");
    let regex = "^[^ ]*php.* bundled-target$";
    let child = start(&["inspector:daemon", "-P", regex, "-f", "rbt-bundled", "-o", text(&path)]);
    wait_for(|| fs::metadata(&path).is_ok_and(|file| file.len() > 600).then_some(()));
    send(&child, Signal::SIGINT);
    assert_eq!(ended(child).code, 130);
    let dump = String::from_utf8(run(&["dump", text(&path)]).done()).unwrap();
    let samples = dump.lines().filter(|line| line.contains(r#""type":"sample""#));
    assert!(samples.clone().count() > 10);
    assert!(samples.into_iter().all(|line| line.contains(&format!(r#""pid":{}"#, busy.id()))));
}

#[test]
fn templates_are_text_as_reli_writes_it() {
    let Some(busy) = Busy::start("template") else { return };
    // Interrupts it after the expected output.
    let trace = |template: &str, wanted: &str| {
        let mut child = start(&["inspector:trace", "-p", &busy.id(), "-t", template, "-s", "1000000"]);
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut written = String::new();
        while !written.ends_with(wanted) {
            assert_ne!(output.read_line(&mut written).unwrap(), 0, "{written}");
        }
        send(&child, Signal::SIGINT);
        // It may be waiting for its pipe to be read.
        output.read_to_string(&mut written).unwrap();
        let ended = ended(child);
        assert_eq!(ended.code, 130, "{}", ended.stderr);
        written
    };
    let phpspy = trace("phpspy", "busy.php:7\n");
    assert!(!phpspy.contains("ZEND_"), "{phpspy}");
    trace("phpspy_with_opcode", "busy.php:7:ZEND_DO_FCALL\n");
    let lines = trace("json_lines", "\n");
    let first: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    let root = first["call_frames"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&root["function_name"], &root["opline"]["lineno"]),
        (&Value::from("<main>"), &Value::from(7))
    );
}

#[test]
fn a_stack_is_printed_as_text_or_json() {
    let Some(busy) = Busy::start("one-look") else { return };
    let shown = String::from_utf8(run(&["stack", "-p", &busy.id()]).quietly()).unwrap();
    let mut lines = shown.lines();
    assert!(lines.next().unwrap().starts_with(&format!("process {}: PHP ", busy.id())), "{shown}");
    assert!(shown.contains("  #0 ") && shown.contains("<main> "), "{shown}");
    let json: Value = serde_json::from_slice(&run(&["stack", "--json", "-p", &busy.id()]).quietly()).unwrap();
    assert_eq!(json["schema_version"], 1);
    assert_eq!(json["stacks"][0]["state"], "running");
    let root = json["stacks"][0]["frames"].as_array().unwrap().last().unwrap().clone();
    assert_eq!((&root["function"], &root["line"]), (&Value::from("<main>"), &Value::from(7)));
    // Its stack becomes deep again and again.
    wait_for(|| {
        let short = String::from_utf8(run(&["stack", "--depth", "2", "-p", &busy.id()]).quietly()).unwrap();
        short.lines().last().unwrap().starts_with("  ... ").then_some(())
    });
    let address = String::from_utf8(run(&["inspector:eg", "-p", &busy.id()]).quietly()).unwrap();
    assert!(u64::from_str_radix(address.trim().strip_prefix("0x").unwrap(), 16).unwrap() > 0x1000);
    assert_eq!(run(&["eg", "-p", &busy.id()]).quietly(), address.as_bytes());
}

#[test]
fn a_process_is_sampled_right_after_its_start() {
    let Some(php) = peers::peer("php") else { return };
    let scratch = Scratch::new();
    let dump = scratch.path("php.rdump");
    for command in [&["stack", "-p"][..], &["heap", "dump", "--force", "-o", text(&dump), "-p"]] {
        for _ in 0..5 {
            let mut started = php.command();
            started.args(["-r", "sleep(60);"]).stdin(Stdio::null()).stdout(Stdio::null());
            // It runs PHP by now, but has not reached its first line.
            let mut child = started.spawn().unwrap();
            let ended = run(&[command, &[child.id().to_string().as_str()]].concat());
            child.kill().unwrap();
            child.wait().unwrap();
            assert_eq!(ended.code, 0, "{command:?}: {}", ended.stderr);
        }
    }
}

#[test]
fn a_changing_stack_is_not_reported_as_gone() {
    let Some(busy) = Busy::start("held-by-another") else { return };
    busy.becomes_unknown();
    let mut stopper = Stopper::new(busy.id().parse().unwrap());
    let _stopped = stopper.stop().unwrap();
    // With the wrong release, no stack makes sense.
    let said = run(&["stack", "-p", &busy.id(), "--php-version", "7.0"]).failed();
    let expected =
        format!("error: the stack changed at every attempt to read it: cannot stop process {}: ", busy.id());
    assert!(said.starts_with(&expected), "{said}");
}

#[test]
fn top_counts_functions_and_processes() {
    let Some(busy) = Busy::start("top") else { return };
    let shown = run(&["top", "--json", "-p", &busy.id(), "-d", "2s", "-i", "500ms"]).done();
    let lines: Vec<Value> =
        shown.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
    assert!(lines.len() >= 3, "{}", lines.len());
    let last = lines.last().unwrap();
    let functions = last["functions"].as_array().unwrap();
    let main = functions.iter().find(|row| row["function"] == "<main>").unwrap();
    assert_eq!(main["total"], last["samples"]);
    // A recursive function counts once per sample.
    let step = functions.iter().find(|row| row["function"] == "A::step").unwrap();
    assert!(step["total"].as_u64() <= last["samples"].as_u64());
    assert_eq!(last["processes"][0]["pid"].to_string(), busy.id());
    let plain = String::from_utf8(run(&["top", "-p", &busy.id(), "-d", "1s"]).done()).unwrap();
    assert!(plain.contains("self%") && plain.contains("<main>"), "{plain}");
}

#[test]
fn top_gives_the_terminal_back_when_stopped_and_leaves_its_last_table() {
    let Some(busy) = Busy::start("top-terminal") else { return };
    let mut terminal = Terminal::start(&["top", "-p", &busy.id(), "-i", "200ms"], (100, 24), &[]);
    terminal.shows("A::step");
    terminal.signal(Signal::SIGTSTP);
    terminal.stops();
    assert!(!terminal.shown().contains("A::step"), "{}", terminal.shown());
    terminal.signal(Signal::SIGCONT);
    terminal.shows("A::step");
    let id = busy.id();
    drop(busy);
    assert_eq!(terminal.ended(), 0);
    let shown = terminal.shows(&format!("process {id} has ended"));
    assert!(shown.contains("A::step") && shown.contains("self%"), "{shown}");
}

#[test]
fn failures_to_sample_are_reported() {
    let gone = run(&["record", "-p", "2147483647", "-o", "-", "--format", "folded"]).failed();
    assert!(gone.contains("process 2147483647 does not exist"), "{gone}");
    let nobody = run(&["top", "-P", "^no such command$", "-d", "1s"]);
    let expected = "error: nothing was sampled: expected a process that runs PHP or Python (with --native, any program), found none\n";
    assert_eq!((nobody.code, &*nobody.stderr), (2, expected));
    let mut sleep = Command::new("sleep").arg("60").spawn().unwrap();
    let id = sleep.id().to_string();
    wait_for(|| {
        fs::read_to_string(format!("/proc/{id}/comm")).is_ok_and(|name| name == "sleep\n").then_some(())
    });
    let scratch = Scratch::new();
    let output = scratch.path("sleep.rmem");
    let output = output.to_str().unwrap();
    let commands: [&[&str]; 3] = [&["eg"], &["inspector:eg"], &["heap", "capture", "-o", output]];
    for command in commands {
        let refused = run(&[command, &["-p", &id]].concat()).failed();
        assert!(refused.starts_with(&format!("error: process {id}: no PHP found: ")), "{refused}");
        assert!(refused.contains("\nhint: PHP 7.0 to 8.6 is supported; --php-path"), "{refused}");
        assert_eq!(refused.matches("no PHP found").count(), 1, "{refused}");
    }
    let gil = run(&["record", "-p", &id, "--mode", "gil", "--format", "folded"]).failed();
    assert!(gil.contains("unsupported mode gil: expected an interpreter"), "{gil}");
    let pattern = run(&["record", "-P", "^sleep 60$", "-d", "1s", "--format", "folded"]).failed();
    assert!(pattern.contains("nothing was sampled"), "{pattern}");
    // A process that is named is sampled whatever it runs.
    let stack = String::from_utf8(run(&["stack", "-p", &id]).done()).unwrap();
    assert!(stack.contains("nanosleep"), "{stack}");
    let doctor = String::from_utf8(run(&["doctor", "-p", &id]).done()).unwrap();
    assert!(doctor.contains(" runs neither PHP nor Python: record -p "), "{doctor}");
    sleep.kill().unwrap();
    sleep.wait().unwrap();
    let none = run(&["record", "-o", "-", "--format", "folded"]).failed();
    assert!(none.contains("expected -p PID, -P REGEX or -- COMMAND"), "{none}");
    let command = run(&["record", "--format", "folded", "--", "no-such-program"]).failed();
    assert!(command.contains("no-such-program: "), "{command}");
    let other = run(&["record", "--format", "folded", "--", "true"]).failed();
    assert!(other.contains("nothing was sampled"), "{other}");
}

#[test]
fn without_samples_no_file_is_created_or_replaced() {
    let scratch = Scratch::new();
    for name in ["trace.rbt", "trace.0.rbt", "flame.svg"] {
        let path = scratch.path(name);
        let path = path.to_str().unwrap();
        run(&["record", "-o", path, "--", "true"]).failed();
        assert!(!fs::exists(path).unwrap(), "{path}");
        fs::write(path, "kept").unwrap();
        run(&["record", "--force", "-o", path, "--", "true"]).failed();
        assert_eq!(fs::read(path).unwrap(), b"kept", "{path}");
    }
}

#[test]
fn a_wrong_release_is_reported() {
    let Some(busy) = Busy::start("another-release") else { return };
    let scratch = Scratch::new();
    let (flames, heap) = (scratch.path("flame.svg"), scratch.path("heap.rmem"));
    let id = busy.id();
    // Other releases with the same structures would give stacks with wrong instructions.
    let commands: [&[&str]; 4] = [
        &["record", "-o", text(&flames)],
        &["top", "-d", "1s"],
        &["heap", "capture", "-o", text(&heap)],
        &["inspector:trace"],
    ];
    for (command, release) in commands.into_iter().zip(["7.0", "8.1", "8.3", "v81"]) {
        let refused = run(&[command, &["-p", &id, "--php-version", release]].concat()).failed();
        assert!(refused.starts_with(&format!("error: process {id}: unexpected PHP version: ")), "{refused}");
        assert!(refused.contains(", found PHP 8.2."), "{refused}");
    }
    let regex = "^[^ ]*php.* another-release$";
    let said =
        run(&["record", "-P", regex, "--php-version", "8.1", "-d", "1s", "-o", text(&flames)]).failed();
    assert!(
        said.contains(&format!("error: nothing was sampled: process {id}: unexpected PHP version")),
        "{said}"
    );
    for release in ["9.9", "abc", "8.20"] {
        let said = run(&["record", "-p", &id, "--php-version", release]).failed();
        assert!(said.contains("expected auto or one of 7.0, 7.1, "), "{said}");
    }
    assert!(listing(scratch.folder()).is_empty());
}

#[test]
fn a_wrong_release_for_an_unknown_one_is_reported() {
    let Some(busy) = Busy::start("unknown-release") else { return };
    busy.becomes_unknown();
    let scratch = Scratch::new();
    let path = scratch.path("flame.svg");
    let id = busy.id();
    let undetected = run(&["record", "-p", &id]).failed();
    assert!(undetected.contains("found module API 20300101"), "{undetected}");
    run(&["stack", "-p", &id, "--php-version", "8.2"]).done();
    let arguments = ["record", "-p", &id, "--php-version", "7.0", "-o", text(&path)];
    let refused = run(&[&arguments[..], &["-d", "1s"]].concat()).failed();
    let why = "nothing was sampled: no valid stack of PHP 7.0 found; try another --php-version\n";
    assert!(refused.ends_with(&format!("\nerror: {why}")), "{refused}");
    assert!(!path.exists());
    // Most recordings of a process end this way.
    let child = start(&arguments);
    wait_until_heeded(&child, Signal::SIGINT);
    std::thread::sleep(std::time::Duration::from_secs(1));
    send(&child, Signal::SIGINT);
    let ended = ended(child);
    assert_eq!(ended.code, 130, "{}", ended.stderr);
    assert!(ended.stderr.ends_with(&format!("\nwarning: {why}")), "{}", ended.stderr);
}

#[test]
fn a_pattern_does_not_match_the_programs_that_started_the_recording() {
    let Some(_busy) = Busy::start("one-of-many-wrapped") else { return };
    let php = peers::peer("php").unwrap().command().get_program().to_str().unwrap().to_owned();
    let scratch = Scratch::new();
    let borehole = env!("CARGO_BIN_EXE_borehole");
    let record = |regex: &str| {
        let output = text(&scratch.path("trace.rbt")).to_owned();
        format!("'{borehole}' record --force -d 1s -o '{output}' -P '{regex}'")
    };
    let ended = |script: &str| {
        let output = Command::new("sh").args(["-c", script]).stdin(Stdio::null()).output().unwrap();
        Ended::from(output)
    };
    let wrapped = record("php.*one-of-many-wrapped");
    let nested =
        format!("passthru(file_get_contents('{}'));", text(&scratch.write("line", wrapped.as_bytes())));
    for script in
        [format!("timeout 30 {wrapped}"), format!("{wrapped}; :"), format!("'{php}' -r \"{nested}\" php")]
    {
        let said = ended(&script).stderr;
        assert!(said.starts_with("Sampled 1 process for "), "{script}: {said}");
    }
    let none = ended(&format!("timeout 30 {}; :", record("php.*none-of-many-wrapped"))).stderr;
    assert!(
        none.ends_with(
            "error: nothing was sampled: expected a process that runs PHP or Python (with --native, any program), found none\n"
        ),
        "{none}"
    );
}

#[test]
fn two_daemons_write_files_of_their_own_into_one_folder() {
    let Some(_busy) = Busy::start("of-two-daemons") else { return };
    for compress in [&[][..], &["--rbt-compress"]] {
        let scratch = Scratch::new();
        let folder = scratch.path("out");
        let daemon = ["inspector:daemon", "-T", "1", "-F", "rbt", "-P", "^[^ ]*php.* of-two-daemons$", "-o"];
        let daemon = [&daemon[..], &[text(&folder)], compress].concat();
        let daemons = [start(&daemon), start(&daemon)];
        // With unfinished segments.
        wait_for(|| (folder.is_dir() && listing(&folder).len() == 2).then_some(()));
        daemons.iter().for_each(|daemon| send(daemon, Signal::SIGINT));
        let said = daemons.map(|daemon| ended(daemon).stderr);
        let files = listing(&folder);
        assert_eq!(files.len(), 2, "{files:?} {said:?}");
        for file in files {
            assert!(file.starts_with("worker_"), "{file}");
            let samples = info(text(&folder.join(&file)))["samples"].to_string();
            assert!(
                said.iter().any(|said| said.contains(&format!(": {samples} sample"))),
                "{samples} {said:?}"
            );
        }
    }
}

#[test]
fn a_file_that_another_recording_writes_is_refused() {
    let Some(busy) = Busy::start("of-two-recordings") else { return };
    let outputs: [(&str, &str, &[&str]); 4] = [
        ("trace.rbt", "trace.rbt", &[]),
        ("trace.rbt", "trace.0.rbt", &["--rotate", "1h"]),
        ("out/", "out/worker_0.rbt", &["--threads", "1"]),
        ("out/", "out/worker_0.rbt.gz", &["--threads", "1", "--compress"]),
    ];
    for (output, file, options) in outputs {
        let scratch = Scratch::new();
        let output = format!("{}/{output}", text(scratch.folder()));
        let file = scratch.path(file);
        let id = busy.id();
        let record = [&["record", "-p", &id, "--force", "-o", &output], options].concat();
        let first = start(&record);
        let is_begun = || match file.parent().unwrap() {
            folder if folder.is_dir() => listing(folder).first().cloned(),
            _ => None,
        };
        wait_for(is_begun);
        let said = run(&[&record[..], &["-d", "10s"]].concat()).failed();
        let expected = format!("error: {}: file is being written by process {}\n", text(&file), first.id());
        assert_eq!(said, expected);
        send(&first, Signal::SIGINT);
        let said = ended(first).stderr;
        let samples = info(text(&file))["samples"].to_string();
        assert!(said.contains(&format!(": {samples} sample")), "{samples}: {said}");
    }
}

#[test]
fn formats_that_a_folder_cannot_hold_are_refused_before_the_start() {
    let scratch = Scratch::new();
    let (folder, marker) = (scratch.path("out"), scratch.path("started"));
    let place = format!("{}/", text(&folder));
    let touch = ["--", "touch", text(&marker)];
    let said = run(&[&["record", "-f", "pprof", "-o", &place][..], &touch].concat()).failed();
    assert_eq!(said, format!("error: {place}: expected the format rbt for a folder, found pprof\n"));
    fs::create_dir(&folder).unwrap();
    let earlier = folder.join("worker_1.rbt");
    fs::write(&earlier, "earlier").unwrap();
    let said = run(&[&["record", "-o", &place][..], &touch].concat()).failed();
    assert_eq!(said, format!("error: {}: file exists; use --force to replace it\n", earlier.display()));
    assert!(!marker.exists());
    assert_eq!(fs::read(&earlier).unwrap(), b"earlier");
}

#[test]
fn a_folder_is_refused_where_a_file_is_to_be_before_anything_is_started() {
    let scratch = Scratch::new();
    let (marker, numbered) = (scratch.path("started"), scratch.path("trace.3.rbt"));
    fs::create_dir(&numbered).unwrap();
    let trace = scratch.path("trace.rbt");
    for output in [&["-o", text(&numbered)][..], &["--rotate", "1s", "-o", text(&trace)]] {
        let record = [&["record", "--force"], output, &["--", "touch", text(&marker)]].concat();
        let said = run(&record).failed();
        assert_eq!(said, format!("error: {}: expected a file, found a directory\n", numbered.display()));
        assert!(!marker.exists());
    }
}

#[test]
fn earlier_segments_are_kept_and_refused_before_anything_is_started() {
    let scratch = Scratch::new();
    let (trace, marker) = (scratch.path("trace.rbt"), scratch.path("started"));
    for earlier in ["trace.0.rbt", "trace.12.rbt"] {
        let earlier = scratch.write(earlier, b"earlier");
        let record = ["record", "--rotate", "1s", "-o", text(&trace), "--", "touch", text(&marker)];
        let said = run(&record).failed();
        assert_eq!(said, format!("error: {}: file exists; use --force to replace it\n", earlier.display()));
        assert!(!marker.exists());
        assert_eq!(fs::read(&earlier).unwrap(), b"earlier");
        fs::remove_file(earlier).unwrap();
    }
}

#[test]
fn a_recording_that_replaces_segments_leaves_none_of_the_earlier_ones() {
    let Some(busy) = Busy::start("replaced-segments") else { return };
    let scratch = Scratch::new();
    for name in ["trace.0.rbt", "trace.1.rbt", "trace.7.rbt", "trace.x.rbt", "trace.rbt"] {
        fs::write(scratch.path(name), "earlier").unwrap();
    }
    let trace = scratch.path("trace.rbt");
    run(&["record", "-p", &busy.id(), "-n", "3", "--rotate", "1m", "--force", "-o", text(&trace)]).done();
    assert_eq!(listing(scratch.folder()), ["trace.0.rbt", "trace.rbt", "trace.x.rbt"]);
    assert_eq!(info(text(&scratch.path("trace.0.rbt")))["samples"], 3);
}

#[test]
fn only_rbt_is_rotated() {
    let scratch = Scratch::new();
    let (flames, marker) = (scratch.path("flames.svg"), scratch.path("started"));
    let said = run(&["record", "--rotate", "1s", "-o", text(&flames), "--", "touch", text(&marker)]).failed();
    assert_eq!(said, "error: unsupported format: expected rbt for --rotate, found flamegraph\n");
    assert!(!marker.exists());
}

/// The program, next to a `borehole-lake` that is only a script.
fn with_lake(scratch: &Scratch, script: &str) -> Command {
    use std::os::unix::fs::PermissionsExt as _;
    let [bin, tmp] = ["bin", "tmp"].map(|name| scratch.path(name));
    [&bin, &tmp].into_iter().for_each(|folder| fs::create_dir_all(folder).unwrap());
    let own = bin.join("borehole");
    let built = env!("CARGO_BIN_EXE_borehole");
    fs::hard_link(built, &own).unwrap_or_else(|_| drop(scratch.program(&own, built)));
    let lake = scratch.write("lake", format!("#!/bin/sh\n{script}\n").as_bytes());
    fs::set_permissions(&lake, fs::Permissions::from_mode(0o755)).unwrap();
    drop(scratch.program(bin.join("borehole-lake"), lake));
    let mut command = Command::new(own);
    command.env("TMPDIR", tmp).stdin(Stdio::null());
    command
}

#[test]
fn lake_errors_come_before_sampling() {
    let scratch = Scratch::new();
    let marker = scratch.path("started");
    let mut command = with_lake(&scratch, r#"echo "error: $4/_lake/states: denied" >&2; exit 2"#);
    let ended =
        command.args(["record", "--lake", "s3://fleet", "--", "touch", text(&marker)]).output().unwrap();
    let said = "error: s3://fleet/_lake/states: denied\nerror: s3://fleet: cannot record into this lake\n";
    assert_eq!(Ended::from(ended).failed(), said);
    assert!(!marker.exists());
    assert!(listing(&scratch.path("tmp")).is_empty());
}

#[test]
fn recordings_wait_for_the_lake_in_a_private_folder() {
    use std::os::unix::fs::PermissionsExt as _;
    let Some(busy) = Busy::start("waits-for-its-lake") else { return };
    for (added, left) in [(0, 0), (2, 1)] {
        let scratch = Scratch::new();
        let script =
            format!(r#"case "$1 $2" in "info --only-look") exit 0;; add*) exit {added};; esac; exit 9"#);
        let mut command = with_lake(&scratch, &script);
        let ended = command.args(["record", "--lake", "lake", "-n", "3", "-p", &busy.id()]).output().unwrap();
        let ended = Ended::from(ended);
        assert_eq!(ended.code, added, "{}", ended.stderr);
        let waiting = listing(&scratch.path("tmp"));
        assert_eq!(waiting.len(), left);
        for folder in waiting {
            let folder = scratch.path("tmp").join(folder);
            assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
            let recording = folder.join(&listing(&folder)[0]);
            assert!(
                ended.stderr.contains(&format!("{}: not added to lake\n", text(&recording))),
                "{}",
                ended.stderr
            );
            assert_eq!(info(text(&recording))["samples"], 3);
        }
    }
}

#[test]
fn a_recording_into_a_folder_replaces_what_is_there_and_ends_when_all_threads_have_enough() {
    let (Some(_first), Some(_second)) = (Busy::start("folder-target"), Busy::start("folder-target")) else {
        return;
    };
    let scratch = Scratch::new();
    let folder = scratch.path("out");
    let place = format!("{}/", text(&folder));
    let regex = "^[^ ]*php.* folder-target$";
    let files = [0, 1].map(|worker| folder.join(format!("worker_{worker}.rbt")));
    for force in [&[][..], &["--force"]] {
        let record = ["record", "-P", regex, "--threads", "2", "-n", "60", "--rate", "50", "-o", &place];
        run(&[&record[..], force].concat()).done();
        let samples: u64 = files.iter().map(|file| info(text(file))["samples"].as_u64().unwrap()).sum();
        assert!((60..=61).contains(&samples), "{samples}");
    }
}

#[test]
fn write_errors_during_a_recording_name_the_output() {
    let Some(busy) = Busy::start("unwritable") else { return };
    for format in ["rbt", "folded"] {
        let record = ["record", "-p", &busy.id(), "-d", "1s", "-f", format, "-o"];
        let full = run(&[&record[..], &["/dev/full", "--force"]].concat()).failed();
        assert!(full.contains("error: /dev/full: no space left on device"), "{full}");
        let mut child = start(&[&record[..], &["-"]].concat());
        drop(child.stdout.take());
        let ended = ended(child);
        assert_eq!((ended.code, &*ended.stderr), (0, ""), "{format}");
    }
    let scratch = Scratch::new();
    let numbered = scratch.path("trace.rbt");
    fs::write(scratch.path("trace.0.rbt"), "earlier").unwrap();
    let record = ["record", "-p", &busy.id(), "-d", "1s", "--rotate", "10s", "-o", text(&numbered)];
    let said = run(&record).failed();
    assert!(said.contains(text(&scratch.path("trace.0.rbt"))), "{said}");
}

#[test]
fn write_errors_are_reported_at_the_end_and_after_interrupts() {
    let Some(busy) = Busy::start("interrupted-full") else { return };
    let id = busy.id();
    // All samples wait in memory until the end. Even an empty recording gives a picture.
    let record = |format, count: &'static [_]| {
        let record = ["record", "-p", &id, "-f", format, "-o", "/dev/full", "--force"];
        start(&[&record[..], count].concat())
    };
    let interrupted = record("flamegraph", &[]);
    wait_until_heeded(&interrupted, Signal::SIGINT);
    send(&interrupted, Signal::SIGINT);
    for child in [interrupted, record("folded", &["-n", "50"])] {
        let ended = ended(child);
        assert_eq!(ended.code, 2, "{}", ended.stderr);
        assert!(ended.stderr.contains("error: /dev/full: "), "{}", ended.stderr);
    }
}

/// Runs a command of a shell, in which `php` is PHP, while it is recorded with `options`.
fn record_shell(options: &[&str], script: &str) -> Option<(i32, String)> {
    let php = peers::peer("php")?.command();
    let php = php.get_program().to_str().unwrap();
    let scratch = Scratch::new();
    let path = scratch.path("trace.rbt");
    let script = format!("php() {{ '{php}' \"$@\"; }}; {script}");
    let arguments = [&["record", "-o", text(&path)][..], options, &["--", "sh", "-c", &script]].concat();
    let said = run(&arguments);
    Some((said.code, said.stderr))
}

/// A program of PHP that is busy for this many seconds and ends with exit code 3.
fn busy_for(seconds: &str) -> String {
    format!("php -r '$end = microtime(true) + {seconds}; while (microtime(true) < $end); exit(3);'")
}

#[test]
fn failed_commands_are_reported_and_their_exit_codes_passed_on() {
    let cases = [
        ("exit $?", 3, "exit status: 3\n"),
        ("kill -SEGV $$", 139, "signal: 11 (SIGSEGV)"),
        ("exit 0", 0, ""),
    ];
    for (end, expected, reported) in cases {
        let Some((code, said)) = record_shell(&[], &format!("{}; {end}", busy_for("0.5"))) else { return };
        assert_eq!(code, expected, "{said}");
        let warning = format!("warning: the command ended with {reported}");
        assert_eq!(said.contains(&warning), expected != 0, "{said}");
    }
}

#[test]
fn a_stopped_command_keeps_its_exit_code() {
    for _ in 0..20 {
        let options = ["--stop-process", "-r", "1000"];
        let Some((code, said)) = record_shell(&options, &busy_for("0.3")) else {
            return;
        };
        assert_eq!(code, 3, "{said}");
    }
}

#[test]
fn nothing_of_a_command_runs_on_after_the_recording() {
    let runs = |mark: &str| {
        let all = borehole_process::processes().unwrap();
        all.iter().any(|process| String::from_utf8_lossy(&process.command).ends_with(mark))
    };
    for (script, warning) in
        [("", None), ("trap '' TERM;", Some("warning: the command did not end when asked"))]
    {
        let mark = format!("left-behind-{}", script.len());
        let script = format!("{script} {} {mark}; :", busy_for("60"));
        let Some((code, said)) = record_shell(&["-d", "1s"], &script) else { return };
        assert_eq!(code, 0, "{said}");
        assert_eq!(warning.is_some(), said.contains("warning: "), "{said}");
        assert!(said.contains(warning.unwrap_or_default()), "{said}");
        assert!(!runs(&mark), "{said}");
    }
}

#[test]
fn a_doctor_finds_a_healthy_process_healthy() {
    let Some(busy) = Busy::start("healthy") else { return };
    let json: Value =
        serde_json::from_slice(&run(&["doctor", "--json", "-p", &busy.id()]).quietly()).unwrap();
    assert_eq!(json["schema_version"], 1);
    let said = String::from_utf8(run(&["doctor", "-p", &busy.id()]).quietly()).unwrap();
    assert!(said.contains("can be read\n") && said.contains(" runs PHP "), "{said}");
    assert!(said.contains(" of memory: heap dump needs about "), "{said}");
    assert!(!said.contains("bad "), "{said}");
}

#[test]
fn unknown_extensions_and_useless_options_are_refused_before_the_start() {
    let scratch = Scratch::new();
    let marker = scratch.path("started");
    let [page, trace, folded] =
        ["v.html", "y.rbt", "x.folded"].map(|name| text(&scratch.path(name)).to_owned());
    let cases: [(&[&str], &str); 10] = [
        (&["-o", &page], "missing output format: expected --format FORMAT"),
        (&["-o", &trace, "--service", "shop"], "--service"),
        (&["-o", &trace, "--threads", "2"], "unsupported --threads: expected an output folder"),
        (&["-o", &folded, "--checkpoint", "10"], "expected rbt for --checkpoint, found folded"),
        (&["-o", &folded, "--timestamps", "delta"], "expected rbt for --timestamps, found folded"),
        (&["-o", "-", "-f", "folded", "--rotate", "1s"], "expected rbt for --rotate, found folded"),
        (&["-o", &trace, "-n", "0"], "0 is not in 1.."),
        (&["--service", "shop"], "--lake"),
        (&["--lake", "lake", "--threads", "2"], "--threads"),
        (&["--lake", "lake", "--timestamps", "none"], "--timestamps"),
    ];
    for (options, why) in cases {
        let said = run(&[&["record"], options, &["--", "touch", text(&marker)]].concat()).failed();
        assert!(said.contains(why), "{options:?}: {said}");
        assert!(!marker.exists(), "{options:?}");
    }
}
