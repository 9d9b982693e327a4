//! The format of every file in the corpus is detected.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use borehole_formats::detect::{DETECT_BYTES, Format, detect};

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus");

fn files(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(Path::new(CORPUS).join(folder)).unwrap();
    let mut files: Vec<_> =
        entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()).collect();
    files.sort();
    assert!(files.len() > 20, "found {} files in {folder}", files.len());
    files
}

fn name(path: &Path) -> &str {
    path.file_name().unwrap().to_str().unwrap()
}

/// The start of a file, decompressed as far as possible.
fn start(path: &Path) -> Vec<u8> {
    let bytes = fs::read(path).unwrap();
    let mut start = Vec::new();
    if bytes.starts_with(b"\x1f\x8b") {
        let mut decoder = flate2::read::MultiGzDecoder::new(&*bytes).take(DETECT_BYTES as u64);
        // A damaged member gives the data before the damage.
        let _ = decoder.read_to_end(&mut start);
    } else {
        start.extend_from_slice(&bytes[..bytes.len().min(DETECT_BYTES)]);
    }
    start
}

fn mistakes(files: &[PathBuf], expected: impl Fn(&str) -> Option<Format>) -> Vec<(&str, Option<Format>)> {
    let told = files.iter().map(|path| (name(path), detect(&start(path))));
    told.filter(|(name, format)| *format != expected(name)).collect()
}

#[test]
fn rbt_files_are_detected_unless_nothing_is_left() {
    // The last one is compressed twice; this removes one layer.
    let nothing_left = ["all_zeros.rbt", "empty.rbt", "gzip_of_empty.rbt.gz", "gzip_double.rbt.gz"];
    let files: Vec<_> = files("rbt").into_iter().filter(|path| name(path).contains(".rbt")).collect();
    let found = mistakes(&files, |name| (!nothing_left.contains(&name)).then_some(Format::Rbt));
    assert_eq!(found, []);
    for path in &files {
        assert_eq!(Format::from_path(path.to_str().unwrap()).map(|(format, _)| format), Some(Format::Rbt));
    }
}

#[test]
fn phpspy_texts_are_detected() {
    let texts = files("rbt/text");
    // These contain only a depth and a word, as any text may.
    let nothing_told = ["empty.txt", "missing_colon.txt", "one_field.txt", "short.txt", "three_bytes.txt"];
    assert_eq!(mistakes(&texts, |name| (!nothing_told.contains(&name)).then_some(Format::Phpspy)), []);
    let empty = "php74-closures.txt";
    assert_eq!(mistakes(&files("phpspy"), |name| (name != empty).then_some(Format::Phpspy)), []);
}

#[test]
fn tachyon_files_are_detected_in_both_byte_orders_and_without_a_header() {
    for folder in ["tachyon/corpus", "tachyon/bigendian"] {
        let files = files(folder);
        assert_eq!(mistakes(&files, |_| Some(Format::Tachyon)), []);
        for path in files {
            let mut start = start(&path);
            start[..64].fill(0);
            let nothing_left = name(&path) == "23_short.bin" && start[64..68] != [0x28, 0xb5, 0x2f, 0xfd];
            assert_eq!(detect(&start), (!nothing_left).then_some(Format::Tachyon), "{}", path.display());
        }
    }
    assert_eq!(Format::from_path("run/profile_4711.bin"), Some((Format::Tachyon, false)));
    assert_eq!(detect(b"TACHYON of the sea\n"), None);
}

#[test]
fn converted_files_are_detected() {
    let files = files("rbt/expected/conv");
    let nonempty: Vec<_> = files.into_iter().filter(|path| !start(path).trim_ascii().is_empty()).collect();
    let found = mistakes(&nonempty, |name| match name {
        _ if name.ends_with(".callgrind") => Some(Format::Callgrind),
        // One frame `a a:4`, which could be any text.
        "overlong_varint.rbt.folded" => None,
        _ if name.ends_with(".folded") => Some(Format::Folded),
        _ if name.ends_with(".phpspy.txt") => Some(Format::Phpspy),
        _ if name.ends_with(".pprof") => Some(Format::Pprof),
        _ if name.ends_with(".speedscope.json") => Some(Format::Speedscope),
        _ => Some(Format::Rbt),
    });
    assert_eq!(found, []);
}

#[test]
fn damaged_headers_do_not_hide_the_next_one() {
    let whole = fs::read(Path::new(CORPUS).join("rbt/multi_segment.rbt")).unwrap();
    let mut broken = whole.clone();
    broken[0] = b'X';
    assert_eq!(detect(&broken), Some(Format::Rbt));
    broken.truncate(100);
    assert_eq!(detect(&broken), None);
}

#[test]
fn any_prefix_and_any_change_is_taken_without_a_panic() {
    for folder in ["rbt", "rbt/text", "phpspy"] {
        for path in files(folder) {
            let start = start(&path);
            for cut in (0..start.len()).take(600) {
                let _ = detect(&start[..cut]);
                let mut changed = start[..start.len().min(600)].to_vec();
                if let Some(byte) = changed.get_mut(cut) {
                    *byte ^= 0x81;
                    let _ = detect(&changed);
                }
            }
        }
    }
}

#[test]
fn documents_in_other_spellings_are_detected() {
    let cases: [(&[u8], Format); 11] = [
        (b"{ \"schema_version\": 1, \"type\" : \"file\" }\n", Format::Jsonl),
        (b"\xef\xbb\xbf{\"type\":\"file\"}", Format::Jsonl),
        (b"\n{\"profiles\": [], \"shared\": {\"frames\": []}}", Format::Speedscope),
        (b"{\"$schema\" : \"https://www.speedscope.app/file-format-schema.json\"", Format::Speedscope),
        (b"version: 1\ncreator: callgrind-3.22\npid: 7\ncmd: ls\n\nevents: Ir\n", Format::Callgrind),
        (b"<?xml version=\"1.0\"?>\n<!DOCTYPE svg>\n<svg version=\"1.1\">", Format::FlameGraph),
        (b"a;b 12.5\n", Format::Folded),
        (b"main 1\r\nmain;run 2\r\n", Format::Folded),
        (b"main /index.php:5 3\n", Format::Folded),
        (b"# only\n0 f <internal>:-1\r\n\r\n", Format::Phpspy),
        (b"RELIABLE /file.php:1\n", Format::Phpspy),
    ];
    for (bytes, format) in cases {
        assert_eq!(detect(bytes), Some(format), "{}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn a_stack_longer_than_the_detected_prefix_is_folded() {
    let line = b"a;".repeat(DETECT_BYTES);
    assert_eq!(detect(&line), Some(Format::Folded));
}

#[test]
fn each_format_goes_by_one_name() {
    use borehole_formats::{
        callgrind, chrome_trace, collapsed, cpuprofile, dhat, flamegraph, folded, gecko, heapprofile, jfr,
        jsonl, legacy_pprof, mojo, otlp, parquet, perf_data, perf_script, perfetto, phpspy, pprof, pstats,
        pyinstrument, rbspy, rbt, scalene, speedscope, stackprof, tachyon, tachyon_jsonl, trc, xdebug_trace,
    };
    let names = [
        (Format::Rbt, rbt::NAME),
        (Format::Tachyon, tachyon::NAME),
        (Format::Trc, trc::NAME),
        (Format::Phpspy, phpspy::NAME),
        (Format::PerfData, perf_data::NAME),
        (Format::PerfScript, perf_script::NAME),
        (Format::Jfr, jfr::NAME),
        (Format::Mojo, mojo::NAME),
        (Format::Folded, folded::NAME),
        (Format::Collapsed, collapsed::NAME),
        (Format::Pstats, pstats::NAME),
        (Format::PstatsText, pstats::TEXT_NAME),
        (Format::TachyonJsonl, tachyon_jsonl::NAME),
        (Format::Gecko, gecko::NAME),
        (Format::Otlp, otlp::NAME),
        (Format::Pprof, pprof::NAME),
        (Format::PprofText, legacy_pprof::NAME),
        (Format::Gperftools, legacy_pprof::CPU_NAME),
        (Format::Speedscope, speedscope::NAME),
        (Format::Cpuprofile, cpuprofile::NAME),
        (Format::Heapprofile, heapprofile::NAME),
        (Format::Dhat, dhat::NAME),
        (Format::Stackprof, stackprof::NAME),
        (Format::Rbspy, rbspy::NAME),
        (Format::Pyinstrument, pyinstrument::NAME),
        (Format::Scalene, scalene::NAME),
        (Format::XdebugTrace, xdebug_trace::NAME),
        (Format::Callgrind, callgrind::NAME),
        (Format::Jsonl, jsonl::NAME),
        (Format::FlameGraph, flamegraph::NAME),
        (Format::Perfetto, perfetto::NAME),
        (Format::ChromeTrace, chrome_trace::NAME),
        (Format::Parquet, parquet::NAME),
    ];
    assert_eq!(names.map(|(format, _)| format), Format::ALL);
    for (format, name) in names {
        assert_eq!(format.name(), name);
    }
}

#[test]
fn truncated_otlp_and_pprof_files_are_distinguished() {
    let bytes = fs::read(Path::new(CORPUS).join("otlp/processes.otlp")).unwrap();
    for end in [150, 300, bytes.len()] {
        assert_eq!(detect(&bytes[..end]), Some(Format::Otlp), "{end}");
    }
    assert_eq!(Format::from_path("run.otlp.pb"), Some((Format::Otlp, false)));
}

#[test]
fn words_and_numbers_are_not_a_profile() {
    for text in [
        "error 404\n",
        "Order number 1\nOrder number 2\n",
        "total 12\n-rw-r--r-- 1 root root 530 Nov 25 13:48\ndrwxr-xr-x 2 root root 4096 Nov 25 13:48\n",
        "id;name;count\n1;query;12\n2;main;3\n",
        "time: 12\nMozilla/5.0 (X11; Linux) 200\n",
        "1 apple\n2 pears\n3 plums\n",
        "2026-11-25 13:48:02 listening on 127.0.0.1:8080\n",
        "Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n    f()\nValueError: 12\n",
    ] {
        assert_eq!(detect(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn stacks_of_other_programs_are_detected() {
    for name in
        ["py-spy-one-process", "py-spy-threads-subprocesses", "austin-wall", "austin-memory", "austin-full"]
    {
        let path = Path::new(CORPUS).join(format!("folded/{name}.txt"));
        assert_eq!(detect(&start(&path)), Some(Format::Folded), "{name}");
    }
}

/// A text of so many lines of each kind.
fn text_of(lines: &[(&str, usize)]) -> Vec<u8> {
    lines.iter().map(|(line, count)| format!("{line}\n").repeat(*count)).collect::<String>().into_bytes()
}

#[test]
fn texts_are_detected_by_the_share_of_their_lines() {
    let (frame, stack, sentence, words) = ("0 f /a.php:3", "a;b 1", "total of 1", "words");
    for (lines, expected) in [
        (&[(frame, 1), (words, 1)][..], Some(Format::Phpspy)),
        (&[(frame, 1), (words, 2)], None),
        (&[(stack, 1), (words, 1)], Some(Format::Folded)),
        (&[(stack, 1), (words, 2)], None),
        (&[(stack, 1), (sentence, 3)], Some(Format::Folded)),
        (&[(stack, 1), (sentence, 4)], None),
        (&[(sentence, 5)], None),
        (&[("# austin: 3.6.0", 1), (words, 9)], Some(Format::Folded)),
        (&[("# mode: wall", 1), ("# austin: 3.6.0", 1), (words, 9)], Some(Format::Folded)),
        (&[(words, 1), ("# austin: 3.6.0", 1)], None),
        (&[(words, 63), ("events: Ir", 1)], Some(Format::Callgrind)),
        (&[(words, 64), ("events: Ir", 1)], None),
        (&[("# callgrind format", 1)], Some(Format::Callgrind)),
    ] {
        assert_eq!(detect(&text_of(lines)), expected, "{lines:?}");
    }
    let mut binary = text_of(&[(stack, 9)]);
    binary[7] = 0;
    assert_eq!(detect(&binary), None);
}

#[test]
fn json_documents_are_detected_by_each_of_their_members() {
    let members = |names: &[&str]| {
        let members: Vec<String> = names.iter().map(|name| format!("\"{name}\":[]")).collect();
        format!("{{{}}}", members.join(","))
    };
    let of = |names: &[&str]| detect(members(names).as_bytes());
    for all in [
        (&["preprocessedProfileVersion"][..], Format::Gecko),
        (&["libs", "breakpadId", "debugPath"], Format::Gecko),
        (&["stackTable", "schema", "data"], Format::Gecko),
        (&["shared", "profiles"], Format::Speedscope),
    ] {
        assert_eq!(of(all.0), Some(all.1), "{all:?}");
        for left_out in 0..all.0.len() {
            let rest = [&all.0[..left_out], &all.0[left_out + 1..]].concat();
            assert_eq!(of(&rest), None, "{rest:?}");
        }
        assert_eq!(detect(format!("[{}]", members(all.0)).as_bytes()), None, "{all:?} in a list");
    }
    let schema = "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\"}";
    assert_eq!(detect(schema.as_bytes()), Some(Format::Speedscope));
    assert_eq!(detect(b"{\"$schema\":\"other\",\"name\":\"speedscope\"}"), None);
    assert_eq!(detect(b"{\"type\":\"file\"}\n"), Some(Format::Jsonl));
    assert_eq!(detect(b"{\"type\":\"other\"}\n{\"type\":\"file\"}\n"), None);
}

#[test]
fn tachyon_files_are_detected_by_each_byte_that_tells() {
    let told = |bytes: &[u8]| detect(bytes) == Some(Format::Tachyon);
    assert!(told(b"HCAT\x09\0\0\0") && told(b"TACH\0\0\0\x09"));
    for wrong in [
        &b"HCAT\x01\0\0\x01"[..],
        b"HCAT\x01\x01\0\0",
        b"TACH\x01\0\0\x01",
        b"TACH\0\0\x01\x01",
        b"HCAT\x01\0\0",
    ] {
        assert!(!told(wrong), "{}", wrong.escape_ascii());
    }
    // A header that its writer has not come to, and a record of a thread, an interpreter and a kind.
    let record = [7, 0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 3];
    let unfinished = |change: fn(&mut Vec<u8>)| {
        let mut bytes = [&[0; 64][..], &record].concat();
        change(&mut bytes);
        told(&bytes)
    };
    assert!(unfinished(|_| {}));
    assert!(unfinished(|bytes| bytes[64..72].reverse()));
    assert!(unfinished(|bytes| bytes[72..76].reverse()));
    assert!(unfinished(|bytes| bytes[64..68].copy_from_slice(b"\x28\xb5\x2f\xfd")));
    assert!(!unfinished(|bytes| bytes[64] = 0), "no thread");
    assert!(!unfinished(|bytes| bytes[72..76].fill(1)), "a large interpreter");
    assert!(!unfinished(|bytes| bytes[76] = 4), "no kind of record");
    assert!(!unfinished(|bytes| bytes[63] = 1), "not only zeros");
    assert!(!unfinished(|bytes| bytes.truncate(76)));
}

#[test]
fn traces_are_detected_by_a_batch_of_theirs() {
    let told = |bytes: &[u8]| detect(bytes) == Some(Format::Trc);
    assert!(told(b"TRC\0"));
    for frame in 1..=6 {
        assert!(told(&[&b"damage"[..], b"TRC\0\x01", &[frame]].concat()), "{frame}");
    }
    for wrong in [
        &b"damage TRC\0"[..],
        b"damage TRC\0\x01",
        b"damage TRC\0\x02\x01",
        b"damage TRC\0\x01\0",
        b"damage TRC\0\x01\x07",
    ] {
        assert!(!told(wrong), "{}", wrong.escape_ascii());
    }
}
