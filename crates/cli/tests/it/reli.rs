//! Reli's own command lines, compared with the output of reli.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use borehole_testkit::manifest::{CorpusConversion, CorpusManifest};
use borehole_testkit::{Scratch, project_file, read_corpus};

use crate::program::{Ended, code, corpus, piped, redirected, run, samples_in};

/// The output of reli for a file of the corpus, and ours.
struct Pair {
    name: String,
    theirs: Vec<u8>,
    ours: Ended,
}

/// All files whose output of reli's converter of that name is in the corpus.
fn pairs(converter: &str, command: &str) -> Vec<Pair> {
    let CorpusManifest { files, text } = CorpusManifest::rbt();
    let files = files.into_iter().map(|trace| (trace.name, trace.converters));
    let texts = text.into_iter().map(|text| (text.name, text.converters));
    let mut pairs = Vec::new();
    for (name, mut converters) in files.chain(texts) {
        let input = project_file("corpus/rbt").join(&name);
        let kept = converters.remove(converter).filter(|conversion| conversion.exit == 0);
        let Some(theirs) = kept.and_then(|conversion| kept_output(&conversion)) else { continue };
        // Of some texts, the corpus contains only the conversions.
        if input.exists() {
            pairs.push(Pair { name, theirs, ours: redirected(&[command], &input) });
        }
    }
    assert!(pairs.len() > 50, "{converter}: {}", pairs.len());
    pairs
}

fn kept_output(conversion: &CorpusConversion) -> Option<Vec<u8>> {
    let file = project_file("corpus/rbt").join(conversion.file.as_ref()?);
    file.exists().then(|| std::fs::read(&file).unwrap())
}

/// The names of files whose outputs differ.
fn differing(pairs: &[Pair], is_same: impl Fn(&Pair) -> bool) -> BTreeSet<&str> {
    pairs.iter().filter(|pair| !is_same(pair)).map(|pair| &*pair.name).collect()
}

fn folded(profile: &[u8]) -> Vec<u8> {
    // A pprof file with two periods shows times by default.
    piped(&["convert", "--to", "folded", "--value", "samples"], profile).stdout
}

/// Errors of all of reli's converters: they take zeros for a text without traces, and ignore a raw segment after a gzip
/// member.
const ASTRAY: [&str; 2] = ["all_zeros.rbt", "gzip_then_raw.rbt.gz"];

/// Errors of its phpspy reader: it invents samples for lone comments and blank lines, takes the module of a native frame for
/// its line, and drops a last trace without a blank line.
const ASTRAY_IN_TEXT: [&str; 4] =
    ["text/comments.txt", "text/leading_blank.txt", "text/native.txt", "text/no_trailing_newline.txt"];

/// Names with line breaks, which reli prints unchanged.
const BREAKING: &str = "unicode.rbt";

#[test]
fn folded_stacks_are_those_of_reli_byte_for_byte() {
    let pairs = pairs("folded", "converter:folded");
    let expected = [&ASTRAY[..], &ASTRAY_IN_TEXT, &[BREAKING]].concat();
    assert_eq!(differing(&pairs, |pair| pair.ours.stdout == pair.theirs), expected.into_iter().collect());
}

#[test]
fn phpspy_text_is_that_of_reli_but_for_labels_and_processes() {
    let without_comments = |text: &[u8]| {
        let lines = text.split_inclusive(|&byte| byte == b'\n');
        lines.filter(|line| !line.starts_with(b"# ")).collect::<Vec<_>>().concat()
    };
    let pairs = pairs("phpspy", "converter:phpspy");
    let differing = differing(&pairs, |pair| without_comments(&pair.ours.stdout) == pair.theirs);
    let texts = ["text/comments.txt", "text/leading_blank.txt", "text/no_trailing_newline.txt"];
    // Native frames are printed as in reli's live capture, and opcodes only on request.
    let native = ["native.rbt", "frame_reserved_flags.rbt"];
    let expected = [&ASTRAY[..], &texts, &native, &[BREAKING]].concat();
    assert_eq!(differing, expected.into_iter().collect());
}

#[test]
fn pprof_and_speedscope_hold_the_stacks_that_reli_puts_there() {
    for (converter, command, more) in [
        ("pprof-raw", "converter:pprof", &[BREAKING][..]),
        // Modules of native frames are distinguished from files.
        ("speedscope", "converter:speedscope", &["native.rbt", "frame_reserved_flags.rbt"]),
    ] {
        let pairs = pairs(converter, command);
        let differing = differing(&pairs, |pair| folded(&pair.ours.stdout) == folded(&pair.theirs));
        assert_eq!(differing, [&ASTRAY[..], more].concat().into_iter().collect(), "{converter}");
    }
}

#[test]
fn a_trace_made_of_phpspy_text_is_that_of_reli_byte_for_byte() {
    let pairs = pairs("rbt", "converter:rbt");
    let texts: Vec<_> = pairs.into_iter().filter(|pair| pair.name.starts_with("text/")).collect();
    let differing = differing(&texts, |pair| pair.ours.stdout == pair.theirs);
    // Reli takes some of these for a trace without frames; others have a number and a word, as any text may.
    let untold = ["text/one_field.txt", "text/short.txt", "text/three_bytes.txt"];
    assert!(texts.len() > 12, "{}", texts.len());
    assert_eq!(differing, [&ASTRAY_IN_TEXT[..], &untold].concat().into_iter().collect());
}

#[test]
fn a_trace_made_of_a_trace_holds_the_same_samples() {
    let pairs = pairs("rbt", "converter:rbt");
    let traces: Vec<_> = pairs.into_iter().filter(|pair| !pair.name.starts_with("text/")).collect();
    let same = |pair: &Pair| folded(&pair.ours.stdout) == folded(&pair.theirs);
    assert_eq!(differing(&traces, same), ASTRAY.into_iter().collect());
}

#[test]
fn callgrind_has_the_costs_that_reli_counts() {
    // Reli prints no total. It is the sum of the self costs in the lines after the name of a function.
    let theirs = read_corpus("rbt/expected/conv/daemon_worker.rbt.callgrind");
    let mut total = 0;
    let mut is_call = false;
    for line in String::from_utf8(theirs).unwrap().lines() {
        let cost = line
            .split_once(' ')
            .and_then(|(line, cost)| line.parse::<i64>().ok().and(cost.parse::<u64>().ok()));
        if let Some(cost) = cost.filter(|_| !is_call) {
            total += cost;
        }
        is_call = line.starts_with("calls=");
    }
    let ours =
        redirected(&["converter:callgrind"], &borehole_testkit::corpus("rbt/daemon_worker.rbt")).done();
    let ours = String::from_utf8(ours).unwrap();
    assert!(ours.contains(&format!("\nsummary: {total} ")), "{ours}");
}

#[test]
fn flame_graphs_are_made_of_traces_and_text() {
    for input in ["rbt/daemon_worker.rbt", "rbt/text/simple.txt"] {
        let svg = redirected(&["converter:flamegraph"], &borehole_testkit::corpus(input)).done();
        let svg = String::from_utf8(svg).unwrap();
        assert!(svg.starts_with("<?xml") && svg.trim_end().ends_with("</svg>"), "{svg}");
    }
}

#[test]
fn the_options_of_converter_rbt_do_what_they_say() {
    let text = borehole_testkit::corpus("rbt/text/two_traces.txt");
    let header = |options: &[&str]| {
        let trace = redirected(&[&["converter:rbt"], options].concat(), &text).done();
        (trace[5], u32::from_le_bytes(trace[8..12].try_into().unwrap()))
    };
    assert_eq!(header(&[]), (0, 10_000));
    assert_eq!(header(&["--sampling-period=500", "--rbt-timestamps=delta"]), (1, 500));
    assert_eq!(header(&["--sampling-period", "500", "--rbt-timestamps", "none"]), (0, 500));
    let compressed = redirected(&["converter:rbt", "--compress"], &text).done();
    assert!(compressed.starts_with(b"\x1f\x8b"));
    assert_eq!(samples_in(&compressed), 2);
}

#[test]
fn processes_are_combined_in_speedscope_on_request() {
    let profiles = |options: &[&str]| {
        let document = redirected(
            &[&["converter:speedscope"], options].concat(),
            &project_file("corpus/rbt/pid_samples.rbt"),
        );
        let document: serde_json::Value = serde_json::from_slice(&document.done()).unwrap();
        document["profiles"].as_array().unwrap().len()
    };
    assert_eq!((profiles(&[]), profiles(&["--combine"])), (4, 1));
}

#[test]
fn bytes_that_are_not_utf8_are_left_out_replaced_or_refused() {
    let text = b"0 caf\xe9 /f.php:1\n\n";
    let name = |options: &[&str]| {
        let document = piped(&[&["converter:speedscope"], options].concat(), text).done();
        let document: serde_json::Value = serde_json::from_slice(&document).unwrap();
        document["shared"]["frames"][0]["name"].as_str().unwrap().to_owned()
    };
    assert_eq!(name(&[]), "caf");
    assert_eq!(name(&["--utf8-errors=ignore"]), "caf");
    assert_eq!(name(&["--utf8-errors=substitute"]), "caf\u{fffd}");
    let error = piped(&["converter:speedscope", "--utf8-errors=fail"], text).failed();
    assert!(error.contains("UTF-8"), "{error}");
}

#[test]
fn recovery_writes_a_trace_or_text_and_always_succeeds() {
    let damaged = borehole_testkit::corpus("rbt/bitflip_middle.rbt");
    for options in [&[][..], &["-f", "rbt"], &["--format=phpspy"], &["-f", "phpspy"]] {
        let ended = redirected(&[&["rbt:recover"], options].concat(), &damaged);
        assert!(ended.stderr.contains("Recovered 18 samples"), "{}", ended.stderr);
        assert_eq!((ended.code, samples_in(&ended.stdout)), (0, 18), "{options:?}");
    }
    let text = redirected(&["rbt:recover", "-f", "phpspy"], &damaged).done();
    assert!(text.starts_with(b"0 "));
}

#[test]
fn analysis_takes_the_options_of_reli() {
    let trace = borehole_testkit::corpus("rbt/realistic_54k.rbt.gz");
    let summary = "trace: 54000 samples, 54000 matched, sampling period 10000 us, ~540.00 s sampled wall\n";
    for options in [
        &[][..],
        &["--callers=Doctrine\\\\ORM", "--hide=^Symfony\\\\"],
        &["--last=5"],
        &["--last", "--last-depth=3", "--top=0"],
        &["--callees=Kernel", "--no-line", "--with-opcode", "--path=short"],
        &["--match=PDO", "--crop=120", "--crop-anchor=right", "--sections=self+total,tail"],
    ] {
        let ended = redirected(&[&["rbt:analyze"], options].concat(), &trace);
        assert!(ended.code == 0 && !ended.stdout.is_empty(), "{options:?}: {}", ended.stderr);
        let matched = options.iter().any(|option| option.starts_with("--match"));
        assert!(matched || ended.stderr == summary, "{options:?}: {}", ended.stderr);
    }
    let shown = redirected(&["rbt:analyze", "--last=5", "--top=0"], &trace).done();
    assert_eq!(String::from_utf8(shown).unwrap().matches("── sample").count(), 5);
}

/// Runs a shell command line in which `reli` is a link to the program, in a folder with the files of a daemon.
fn shell(line: &str) -> Output {
    let scratch = Scratch::new();
    let bin = scratch.path("bin");
    std::fs::create_dir(&bin).unwrap();
    symlink(env!("CARGO_BIN_EXE_borehole"), bin.join("reli")).unwrap();
    let files = [
        ("worker_1.rbt", "rbt/daemon_worker.rbt"),
        ("worker_2.rbt", "rbt/concat_no_end.rbt"),
        ("worker_3.rbt.gz", "rbt/gzip_members.rbt.gz"),
        ("worker_4.rbt.gz", "rbt/gzip_single.rbt.gz"),
        ("trace.txt", "rbt/text/two_traces.txt"),
    ];
    for (name, file) in files {
        drop(scratch.write(name, &read_corpus(file)));
    }
    let path: PathBuf = [bin.as_path(), Path::new(":/usr/bin:/bin")]
        .iter()
        .map(|part| part.as_os_str())
        .collect::<std::ffi::OsString>()
        .into();
    let shell =
        Command::new("sh").args(["-c", line]).current_dir(scratch.folder()).env("PATH", path).output();
    shell.unwrap()
}

#[test]
fn the_lines_that_the_specification_prints_work_as_they_are() {
    for (line, samples) in [
        ("cat worker_*.rbt | reli converter:speedscope", 33),
        ("cat worker_*.rbt | reli converter:pprof", 33),
        ("cat worker_*.rbt | reli converter:folded", 33),
        ("cat worker_*.rbt.gz | reli converter:pprof", 66),
        ("cat worker_*.rbt* | reli converter:folded", 99),
        ("reli converter:speedscope < worker_1.rbt", 30),
        ("reli converter:speedscope < trace.txt", 2),
        ("reli converter:folded < worker_4.rbt.gz", 6),
        ("reli converter:phpspy < worker_1.rbt", 30),
        ("reli converter:rbt < trace.txt", 2),
        ("reli converter:rbt --compress < trace.txt", 2),
        ("reli rbt:recover < worker_1.rbt", 30),
        ("reli rbt:recover -f phpspy < worker_1.rbt", 30),
        ("cat worker_*.rbt > combined.rbt && reli c:fold < combined.rbt", 33),
    ] {
        let Output { status, stdout, stderr } = shell(line);
        let stderr = String::from_utf8_lossy(&stderr);
        assert_eq!((code(status), samples_in(&stdout)), (0, samples), "{line}: {stderr}");
    }
    let graph = shell("reli converter:flamegraph < worker_1.rbt > graph.svg && tail -c 6 graph.svg");
    assert_eq!(graph.stdout, b"</svg>");
    let callgrind = shell("reli converter:callgrind < worker_1.rbt > callgrind.out && head -1 callgrind.out");
    assert_eq!(callgrind.stdout, b"# callgrind format\n");
    let analysis = shell("reli rbt:analyze --last=5 < worker_1.rbt");
    assert_eq!(code(analysis.status), 0);
}

#[test]
fn unique_prefixes_of_commands_are_accepted() {
    let trace = corpus("rbt/daemon_worker.rbt");
    assert_eq!(run(&["c:fo", &trace]).done(), run(&["converter:folded", &trace]).done());
    // Both `converter:phpspy` and `converter:pprof` match this prefix.
    let error = run(&["c:p", &trace]).failed();
    assert!(error.contains("unrecognized subcommand 'c:p'"), "{error}");
}

#[test]
fn a_link_called_reli_knows_no_other_commands() {
    let output = shell("reli convert worker_1.rbt --to folded");
    assert_eq!(code(output.status), 2);
}
