//! `recover`: the readable parts of damaged files.

use std::process::Command;

use borehole_testkit::manifest::CorpusManifest;
use borehole_testkit::{Scratch, read_corpus};

use crate::program::{corpus, run, samples_in, text};

/// Larger files are for the tests of the format.
const SMALL_BYTES: u64 = 100_000;

#[test]
fn recovery_finds_at_least_the_samples_of_reli() {
    let scratch = Scratch::new();
    let mut compared = 0;
    for trace in CorpusManifest::rbt().files {
        let Some(expected) = trace.recover.samples.filter(|_| trace.bytes <= SMALL_BYTES) else { continue };
        let output = scratch.path(&format!("{compared}.rbt"));
        let ended = run(&["recover", &corpus(&format!("rbt/{}", trace.name)), "-o", text(&output)]);
        assert!(ended.code == 0 || ended.code == 3, "{}: {}", trace.name, ended.stderr);
        let recovered = samples_in(&std::fs::read(&output).unwrap());
        assert!(recovered >= expected, "{}: {recovered} of {expected}", trace.name);
        assert!(ended.stderr.contains(&format!("Recovered {recovered} samples")), "{}", ended.stderr);
        compared += 1;
    }
    assert!(compared > 80, "{compared}");
}

#[test]
fn a_sound_file_is_recovered_whole_and_quietly() {
    let ended = run(&["recover", &corpus("rbt/daemon_worker.rbt")]);
    assert_eq!((ended.code, &*ended.stderr), (0, "Recovered 30 samples in 3 segments\n"));
    assert_eq!(ended.stdout, read_corpus("rbt/daemon_worker.rbt"));
}

#[test]
fn every_lost_region_is_named_with_position_and_size() {
    let file = corpus("rbt/garbage_5_after_end.rbt");
    let ended = run(&["recover", &file, "--to", "folded"]);
    assert_eq!((ended.code, samples_in(&ended.stdout)), (3, 9));
    let place = format!("warning: {file}: invalid magic");
    assert!(ended.stderr.starts_with(&place), "{}", ended.stderr);
    let found = "; 5 bytes lost, 3 samples recovered after it (at byte 0x";
    assert!(ended.stderr.contains(found), "{}", ended.stderr);
    let last = "Recovered 9 samples in 2 segments, 6 of them before the first damage\n";
    assert!(ended.stderr.ends_with(last), "{}", ended.stderr);
}

#[test]
fn recovery_results_are_available_as_json() {
    let ended = run(&["info", "--json", &corpus("rbt/zero_block.rbt")]);
    let info: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap();
    let saved = |warning: &serde_json::Value| warning["saved_samples"].as_u64();
    let warnings = info["warnings"].as_array().unwrap();
    let behind: Vec<_> = warnings.iter().filter_map(saved).collect();
    assert_eq!((behind.as_slice(), info["samples"].as_u64()), ([12].as_slice(), Some(18)));
    let ended = run(&["dump", "--lenient", &corpus("rbt/zero_block.rbt")]);
    let last: serde_json::Value =
        serde_json::from_slice(ended.stdout.trim_ascii_end().rsplit(|&b| b == b'\n').next().unwrap())
            .unwrap();
    let printed: Vec<_> = last["warnings"].as_array().unwrap().iter().filter_map(saved).collect();
    assert_eq!(printed, behind);
}

#[test]
fn other_formats_are_recovered_in_their_own_format() {
    let scratch = Scratch::new();
    let text_of = scratch.write("a.phpspy", b"garbage\n0 a /a.php:1\n1 m /m.php:2\n\n");
    let ended = run(&["recover", text(&text_of)]);
    assert_eq!((ended.code, ended.stdout), (3, b"0 a /a.php:1\n1 m /m.php:2\n\n".to_vec()));
}

#[test]
fn recovery_without_samples_writes_an_empty_trace() {
    let scratch = Scratch::new();
    let output = scratch.path("a.rbt");
    let ended = run(&["recover", &corpus("rbt/all_zeros.rbt"), "-o", text(&output)]);
    assert_eq!(ended.code, 3);
    assert!(ended.stderr.contains("4,096 bytes lost"), "{}", ended.stderr);
    assert!(ended.stderr.ends_with("Recovered 0 samples in 0 segments\n"), "{}", ended.stderr);
    assert_eq!(samples_in(&std::fs::read(&output).unwrap()), 0);
}

#[test]
fn a_lender_may_be_compressed_and_is_named_in_errors() {
    let scratch = Scratch::new();
    let whole = read_corpus("tachyon/corpus/27_realapp_none.bin");
    let cut = scratch.write("cut.bin", &whole[..whole.len() / 2]);
    let plain = scratch.write("plain.bin", &whole);
    let gzipped = Command::new("gzip").arg("-c").arg(&plain).output().unwrap();
    assert!(gzipped.status.success());
    let gzipped = scratch.write("lender.bin.gz", &gzipped.stdout);
    let lent_by = |lender: &str| run(&["recover", text(&cut), "--tables", lender, "--to", "folded"]);
    let named = lent_by(text(&plain));
    assert!(
        named.code == 3 && !named.stdout.is_empty() && !named.stderr.contains("frame#"),
        "{}",
        named.stderr
    );
    assert!(lent_by(text(&gzipped)).stdout == named.stdout);
    let trace = corpus("rbt/daemon_worker.rbt");
    let ended = lent_by(&trace);
    assert!(
        ended.code == 2 && ended.stderr.contains(&format!("{trace}: expected the magic")),
        "{}",
        ended.stderr
    );
    let ended = run(&["recover", &trace, "--tables", text(&plain)]);
    let said = "error: --tables: expected a tachyon input, found rbt\n";
    assert_eq!((ended.code, &*ended.stderr), (2, said));
}

#[test]
fn a_lender_path_need_not_be_utf8() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    let scratch = Scratch::new();
    let whole = read_corpus("tachyon/corpus/27_realapp_none.bin");
    let cut = scratch.write("cut.bin", &whole[..whole.len() / 2]);
    let lender = scratch.folder().join(OsStr::from_bytes(b"of-\xff.bin"));
    std::fs::write(&lender, &whole).unwrap();
    let arguments = ["recover", text(&cut), "--to", "folded", "--tables"].map(OsStr::new);
    let ended = run(&[&arguments[..], &[lender.as_os_str()]].concat());
    assert!(ended.code == 3 && !ended.stdout.is_empty(), "{}", ended.stderr);
    assert!(!ended.stderr.contains("frame#"), "{}", ended.stderr);
}

#[test]
fn data_before_damage_in_a_compressed_file_is_recovered() {
    let scratch = Scratch::new();
    // Lines that compress badly, so that a fraction of the file is the same fraction of the samples.
    let noise = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let lines = (0..5000).map(|number| format!("main;f{:x};g{:x} 1\n", noise(number), noise(number + 1)));
    let folded = scratch.write("whole.folded", lines.collect::<String>().as_bytes());
    for format in ["folded", "jsonl", "pprof", "otlp", "speedscope", "gecko", "phpspy"] {
        let whole = scratch.path(&format!("whole.{format}.gz"));
        run(&["convert", text(&folded), "--to", format, "-o", text(&whole)]).done();
        let whole = std::fs::read(whole).unwrap();
        assert!(whole.starts_with(&[0x1f, 0x8b]), "{format}");
        let mut wrong_sum = whole.clone();
        let sum = wrong_sum.len() - 6;
        wrong_sum[sum] ^= 1;
        let cut = whole[..whole.len() * 4 / 5].to_vec();
        // In the other formats, a sample needs distant data that the cut removed.
        let fewest_of_cut = if ["folded", "jsonl", "phpspy"].contains(&format) { 3000 } else { 0 };
        for (damaged, fewest) in [(wrong_sum, 5000), (cut, fewest_of_cut)] {
            let damaged = scratch.write(&format!("damaged.{format}.gz"), &damaged);
            let strict = run(&["convert", "--from", format, text(&damaged), "--to", "folded"]);
            assert_eq!(
                (strict.code, strict.stderr.matches("gzip").count()),
                (2, 1),
                "{format}: {}",
                strict.stderr
            );
            let ended = run(&["recover", "--from", format, text(&damaged), "--to", "folded"]);
            assert_eq!(ended.code, 3, "{format}: {}", ended.stderr);
            assert!(ended.stderr.contains("gzip member: starts at byte 0x0"), "{format}: {}", ended.stderr);
            let said = ended.stderr.split_once("Recovered ").map(|(_, said)| said.split_once(' '));
            let saved: u64 = said.flatten().and_then(|(saved, _)| saved.parse().ok()).unwrap();
            assert!((fewest..=5000).contains(&saved), "{format}: {saved}");
        }
    }
}

#[test]
fn a_trace_without_its_first_header_is_saved_into_its_own_format() {
    let scratch = Scratch::new();
    for (name, samples) in [("recover-no-header", 2), ("recover-no-first-header", 6)] {
        let output = scratch.path(&format!("{name}.rbt"));
        let ended = run(&["recover", &corpus(&format!("damage/{name}.rbt")), "-o", text(&output)]);
        assert_eq!(
            (ended.code, samples_in(&std::fs::read(&output).unwrap())),
            (3, samples),
            "{}",
            ended.stderr
        );
        assert!(run(&["check", text(&output)]).code == 0);
    }
}

#[test]
fn times_after_a_gap_are_reported_by_every_command() {
    let (file, scratch) = (corpus("damage/recover-times-hole.trc.gz"), Scratch::new());
    let output = scratch.path("a.trc");
    let recovered = run(&["recover", &file, "-o", text(&output)]);
    let at = recovered.stderr.find("times of ").unwrap_or_else(|| panic!("{}", recovered.stderr));
    let said = "after the damage at byte 0x118f4 are early by an unknown time";
    let sentence = &recovered.stderr[at..at + recovered.stderr[at..].find(said).unwrap() + said.len()];
    for ended in [run(&["check", &file]), run(&["dump", "--lenient", &file]), run(&["dump", text(&output)])] {
        assert!(String::from_utf8_lossy(&ended.stdout).contains(sentence), "{sentence}: {}", ended.stderr);
    }
    let again = run(&["check", text(&output)]);
    assert_eq!(again.code, 0, "{}", again.stderr);
    assert!(run(&["info", text(&output)]).stderr.contains(sentence));
}

#[test]
fn a_sound_trace_is_sound_to_every_command() {
    let file = corpus("damage/trc-stream-in-bytes.trc");
    let check = String::from_utf8(run(&["check", &file]).quietly()).unwrap();
    assert!(check.ends_with(": sound (trc, 3 events)\n"), "{check}");
    assert!(String::from_utf8(run(&["info", &file]).quietly()).unwrap().contains("Blob 3"));
    let recovered = run(&["recover", &file]);
    assert_eq!((recovered.code, &*recovered.stderr), (0, "Recovered 3 events in 1 segment\n"));
    let strictly = run(&["dump", &file]).quietly();
    assert_eq!(run(&["dump", "--lenient", &file]).quietly(), strictly);
    assert_eq!(run(&["convert", &file, "--to", "jsonl"]).quietly(), strictly);
}

#[test]
fn texts_that_are_not_utf8_are_found() {
    let ended = run(&["check", &corpus("damage/trc-map-not-utf8.trc")]);
    let said =
        "  invalid text in B: expected UTF-8, found other bytes in 3 texts, kept as bytes (at byte 0x12)\n";
    assert_eq!(ended.code, 3);
    assert!(String::from_utf8(ended.stdout).unwrap().ends_with(said));
}
