//! Comparison with an installed Python: the output of its `replay`, its reading of our files, and new recordings.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use borehole_testkit::python::Python;
use borehole_testkit::{corpus_files, read_corpus};
use serde_json::{Value, json};

use crate::program::{run, text};

/// The real files by name, copied to the folder that Python sees.
fn recorded(python: &Python) -> Vec<String> {
    let files = corpus_files("tachyon/corpus", ".bin");
    let names = files.iter().map(|path| path.file_name().unwrap().to_str().unwrap().to_owned());
    names.inspect(|name| python.write(name, &read_corpus(&format!("tachyon/corpus/{name}")))).collect()
}

/// Our conversion of the file `name` of the folder.
fn converted(python: &Python, name: &str, options: &[&str]) -> Vec<u8> {
    run(&[&["convert", text(&python.path(name)), "--lenient"], options].concat()).done()
}

/// The output of `replay` with `options` for each of `names`.
fn replayed_files(python: &Python, names: &[String], options: &[&str]) -> Vec<Vec<u8>> {
    let outputs: Vec<_> = names.iter().map(|name| format!("{{}}/{name}.replayed")).collect();
    let options: Vec<_> = outputs.iter().map(|output| [options, &["-o", output]].concat()).collect();
    let jobs: Vec<_> = options.iter().map(Vec::as_slice).zip(names.iter().map(String::as_str)).collect();
    drop(python.replayed(&jobs));
    let read = |name: &String| fs::read(python.path(&format!("{name}.replayed"))).unwrap_or_default();
    names.iter().map(read).collect()
}

#[test]
fn collapsed_stacks_and_sums_of_frames_are_those_of_replay() {
    let Some(python) = Python::set_up() else { return };
    let names = recorded(&python);
    for (name, theirs) in names.iter().zip(replayed_files(&python, &names, &["--collapsed"])) {
        assert!(converted(&python, name, &["--to", "collapsed"]) == theirs, "{name}");
    }
    // The id of a run is random there.
    let without_run = |lines: &[u8]| {
        let text = String::from_utf8(lines.to_vec()).unwrap();
        let run = text.split("\"run_id\":\"").nth(1).unwrap_or_default()[..32].to_owned();
        text.replace(&run, "RUN")
    };
    for (name, theirs) in names.iter().zip(replayed_files(&python, &names, &["--jsonl"])) {
        let ours = converted(&python, name, &["--to", "tachyon-jsonl"]);
        assert!(without_run(&ours) == without_run(&theirs), "{name}");
    }
}

#[test]
fn the_table_of_functions_is_that_of_replay_with_every_key_and_limit() {
    let Some(python) = Python::set_up() else { return };
    let names = recorded(&python);
    let keys = ["nsamples", "tottime", "cumtime", "sample-pct", "cumul-pct", "nsamples-cumul", "name"];
    let options: Vec<Vec<&str>> = keys
        .iter()
        .map(|key| vec!["--sort", key])
        .chain(["1", "4", "1000"].map(|limit| vec!["--sort", "cumtime", "--limit", limit]))
        .chain([vec!["--sort", "name", "--no-summary"], vec!["--limit", "7"], vec![]])
        .collect();
    // Every third file, which includes all kinds of names.
    for name in names.iter().step_by(3) {
        let jobs: Vec<_> = options.iter().map(|options| (options.as_slice(), name.as_str())).collect();
        for (options, theirs) in options.iter().zip(python.replayed(&jobs)) {
            let ours = converted(&python, name, &[&["--to", "pstats-text"], options.as_slice()].concat());
            assert_eq!(String::from_utf8_lossy(&ours), theirs, "{name} {options:?}");
        }
    }
}

#[test]
fn pstats_loads_the_numbers_that_it_loads_from_replay() {
    let Some(python) = Python::set_up() else { return };
    // Without samples, `replay` writes a file that its own module rejects.
    let names: Vec<_> = recorded(&python).into_iter().filter(|name| name != "23_short.bin").collect();
    drop(replayed_files(&python, &names, &["--pstats"]));
    let mut files = Vec::new();
    for name in &names {
        python.write(&format!("{name}.ours"), &converted(&python, name, &["--to", "pstats"]));
        files.extend([format!("{name}.ours"), format!("{name}.replayed")]);
    }
    let loaded = python.statistics(&files.iter().map(String::as_str).collect::<Vec<_>>());
    for (name, pair) in names.iter().zip(loaded.as_chunks::<2>().0) {
        assert!(!pair[0].as_array().unwrap().is_empty(), "{name}");
        assert!(pair[0] == pair[1], "{name}");
    }
}

/// Thread, time in microseconds since the first sample of all, and function of each sample in a processed profile.
fn leaves(profile: &[u8]) -> Vec<(u64, i64, String)> {
    let profile: Value = serde_json::from_slice(profile).unwrap();
    let place = |column: &Value, row: &Value| column[usize::try_from(row.as_u64().unwrap()).unwrap()].clone();
    let mut all = Vec::new();
    for thread in profile["threads"].as_array().unwrap() {
        let samples = &thread["samples"];
        for (stack, time) in
            samples["stack"].as_array().unwrap().iter().zip(samples["time"].as_array().unwrap())
        {
            let frame = place(&thread["stackTable"]["frame"], stack);
            let function = place(&thread["frameTable"]["func"], &frame);
            let name =
                place(&profile["shared"]["stringArray"], &place(&thread["funcTable"]["name"], &function));
            #[expect(clippy::cast_possible_truncation, reason = "the times of the corpus are small")]
            let time_us = (time.as_f64().unwrap() * 1000.0).round() as i64;
            all.push((thread["tid"].as_u64().unwrap(), time_us, name.as_str().unwrap().to_owned()));
        }
    }
    let first = all.iter().map(|sample| sample.1).min().unwrap_or(0);
    all.iter_mut().for_each(|sample| sample.1 -= first);
    all.sort();
    all
}

#[test]
fn firefox_profiler_gets_the_samples_of_replay() {
    let Some(python) = Python::set_up() else { return };
    let names = recorded(&python);
    let mut samples = 0;
    for (name, theirs) in names.iter().zip(replayed_files(&python, &names, &["--gecko"])) {
        let ours = leaves(&converted(&python, name, &["--to", "gecko"]));
        samples += ours.len();
        assert!(ours == leaves(&theirs), "{name}");
    }
    assert!(samples > 80_000, "{samples}");
}

/// By thread and interpreter: time, status and stack of each sample, in file order.
type Threads = BTreeMap<(u64, u64), Vec<Value>>;

/// The samples and facts that Python's reader returns for the file `name`.
fn read_by_python(python: &Python, name: &str) -> (Value, Threads) {
    let (mut info, mut threads) = (Value::Null, Threads::new());
    for line in python.samples(&[name]) {
        assert_eq!(line["error"], Value::Null, "{name}");
        match line["tid"].as_u64() {
            Some(thread) => {
                let samples = threads.entry((thread, line["iid"].as_u64().unwrap())).or_default();
                samples.push(json!([line["ts"], line["status"], line["frames"]]));
            }
            None if line["info"].is_object() => info = line["info"].clone(),
            None => {}
        }
    }
    (info, threads)
}

/// Converts `inputs` to the file `name` of the folder.
fn rewrite(python: &Python, inputs: &[&str], options: &[&str], name: &str) {
    let inputs: Vec<_> = inputs.iter().map(|input| text(&python.path(input)).to_owned()).collect();
    let inputs: Vec<_> = inputs.iter().map(String::as_str).collect();
    let output = text(&python.path(name)).to_owned();
    drop(run(&[&["convert", "--force", "-o", &output, "--to", "tachyon"], options, &inputs].concat()).done());
}

#[test]
fn python_reads_swapped_recompressed_and_upgraded_files() {
    let Some(python) = Python::set_up() else { return };
    for (number, name) in recorded(&python).iter().enumerate().step_by(3) {
        let (info, whole) = read_by_python(&python, name);
        let old = format!("{number}.old.bin");
        rewrite(&python, &[name], &["--tachyon-header", "old"], &old);
        let ways: [(&str, &[&str]); 5] = [
            (name, &[]),
            (name, &["--tachyon-compression", "none"]),
            (name, &["--tachyon-compression", "zstd"]),
            (name, &["--tachyon-byte-order", "big"]),
            (&old, &[]),
        ];
        for (way, (input, options)) in ways.into_iter().enumerate() {
            let output = format!("{number}.{way}.bin");
            rewrite(&python, &[input], options, &output);
            let (said, samples) = read_by_python(&python, &output);
            assert!(samples == whole, "{name} {options:?}");
            for key in ["sample_interval_us", "start_time_us", "duration_sec", "missed_samples"] {
                assert_eq!(said[key], info[key], "{name} {options:?}");
            }
            // The old layout cannot hold it.
            assert!(input == old || said["mode"] == info["mode"], "{name} {options:?}");
        }
    }
}

#[test]
fn python_replays_merged_and_sliced_files_as_we_do() {
    let Some(python) = Python::set_up() else { return };
    drop(recorded(&python));
    let inputs = ["05_threads20_none.bin", "09_subinterp.bin", "26_realapp_zstd.bin"];
    rewrite(&python, &inputs, &[], "merged.bin");
    let (_, merged) = read_by_python(&python, "merged.bin");
    let mut parts = Threads::new();
    for input in inputs {
        for (thread, samples) in read_by_python(&python, input).1 {
            parts.entry(thread).or_default().extend(samples);
        }
    }
    assert!(merged == parts);

    // The part that a slice keeps, counted with Python's reader on the whole file.
    let (info, whole) = read_by_python(&python, inputs[0]);
    let start = info["start_time_us"].as_u64().unwrap();
    rewrite(
        &python,
        &inputs[..1],
        &["--after", "0.2", "--before", "0.5", "--status", "has_gil"],
        "slice.bin",
    );
    let (_, slice) = read_by_python(&python, "slice.bin");
    let is_kept = |sample: &Value| {
        let (time, status) = (sample[0].as_u64().unwrap(), sample[1].as_u64().unwrap());
        (start + 200_000..=start + 500_000).contains(&time) && status & 1 == 1
    };
    let mut kept = Threads::new();
    for (thread, samples) in whole {
        let samples: Vec<_> = samples.into_iter().filter(is_kept).collect();
        if !samples.is_empty() {
            kept.insert(thread, samples);
        }
    }
    assert!(!kept.is_empty() && slice == kept);

    let names = ["merged.bin", "slice.bin"].map(str::to_owned);
    for (name, theirs) in names.iter().zip(replayed_files(&python, &names, &["--collapsed"])) {
        assert!(!theirs.is_empty() && converted(&python, name, &["--to", "collapsed"]) == theirs, "{name}");
    }
}

/// A program with work, exceptions and a thread.
const PROGRAM: &str = "
import threading, time
def spin(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(index * index for index in range(500))
other = threading.Thread(target=spin, args=(1.0,))
other.start()
spin(1.0)
other.join()
";

/// Records the program in Python's root file system, with a view of this system's processes that ends with it.
fn record(python: &Python, name: &str, options: &[&str]) {
    python.write("program.py", PROGRAM.as_bytes());
    let python_itself = python.command();
    let mut words = python_itself.get_args();
    let root = words.next().unwrap();
    let script = "mount -t proc proc \"$0/proc\" && exec chroot \"$0\" \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script]).arg(root).args(words);
    command.args(["-m", "profiling.sampling", "run", "--binary", "-o", &python.inside(name)]);
    let output = command.args(options).arg(python.inside("program.py")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_program_profiled_here_and_now_reads_as_python_reads_it() {
    let Some(python) = Python::set_up() else { return };
    for (name, options) in [
        ("plain.bin", ["-a", "--compression", "none"].as_slice()),
        ("all.bin", &["-a", "--mode", "cpu", "--opcodes", "--native"]),
    ] {
        record(&python, name, options);
        let path = python.path(name);
        let sound = String::from_utf8(run(&["check", text(&path)]).quietly()).unwrap();
        assert!(sound.contains(": sound (tachyon, "), "{sound}");
        rewrite(&python, &[name], &[], "again.bin");
        let whole = read_by_python(&python, name).1;
        assert!(whole.values().map(Vec::len).sum::<usize>() > 50, "{name}: {}", whole.len());
        assert!(read_by_python(&python, "again.bin").1 == whole, "{name}");
        let theirs = &replayed_files(&python, &[name.to_owned()], &["--collapsed"])[0];
        assert!(!theirs.is_empty() && converted(&python, name, &["--to", "collapsed"]) == *theirs, "{name}");
    }
}
