//! phpspy text: real traces, hand-made quirks, and reli's results for both.

use borehole_formats::phpspy::{self, ExportOptions, Exporter, LONGEST_RUN, OpcodeOutput};
use borehole_formats::{Error, Export as _, Position, ReadError, ReadOptions};
use borehole_model::{Recovery, Segment};
use borehole_testkit::read_corpus;
use proptest::prelude::*;

use crate::flat::{self, FlatFrame, FlatSample, corpus_names, damaged, play, rbt_samples};

fn read_with(text: &[u8], options: &ReadOptions) -> Result<(Vec<FlatSample>, Recovery), ReadError> {
    flat::read(&|input, options, tables, sink| phpspy::import(input, options, tables, sink), text, options)
}

fn read(text: &[u8]) -> (Vec<FlatSample>, Recovery) {
    read_with(text, &ReadOptions::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn read_error(text: &[u8]) -> Error {
    match read_with(text, &ReadOptions::default()) {
        Err(ReadError::Input(error)) => error,
        other => panic!("expected an error, found {other:?}"),
    }
}

fn write_with(samples: &[FlatSample], options: ExportOptions) -> (Vec<u8>, String) {
    let mut text = Vec::new();
    let mut exporter = Exporter::new(&mut text, options);
    play(samples, &Segment::default(), &mut exporter).unwrap();
    let losses = exporter.losses().to_string();
    drop(exporter);
    (text, losses)
}

fn write(samples: &[FlatSample]) -> (Vec<u8>, String) {
    write_with(samples, ExportOptions::default())
}

const WITH_OPCODES: ExportOptions = ExportOptions { opcodes: OpcodeOutput::Write };

fn show(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

/// Traces as blocks with their comments at the end, as they are after conversion to samples.
fn normalized(text: &[u8]) -> Vec<u8> {
    let text = show(text).replace("\t\n", "\n\n").replace('\t', "\n");
    let mut normalized = String::new();
    for block in text.split_terminator("\n\n") {
        let (comments, frames): (Vec<_>, Vec<_>) = block.lines().partition(|line| line.starts_with('#'));
        for line in frames.iter().chain(&comments) {
            normalized.extend([line, "\n"]);
        }
        normalized.push('\n');
    }
    normalized.into_bytes()
}

#[test]
fn real_traces_survive_a_round_trip() {
    for name in corpus_names("phpspy", ".txt") {
        let text = read_corpus(&format!("phpspy/{name}.txt"));
        let (samples, recovery) = read(&text);
        assert!(recovery.is_clean(), "{name}: {:?}", recovery.warnings);
        // Every phpspy trace has exactly one frame of depth 0.
        let traces = text.split(|&byte| byte == b'\n').filter(|line| line.starts_with(b"0 ")).count();
        assert_eq!(samples.len(), traces, "{name}");
        let (written, losses) = write(&samples);
        assert_eq!(losses, "", "{name}");
        // Only the one-line form and comments between frames are written differently.
        let is_as_written = !matches!(&*name, "includes-single" | "varpeek-includes");
        let expected = if is_as_written { text } else { normalized(&text) };
        assert!(written == expected, "{name} differs");
    }
}

#[test]
fn comments_of_real_traces_are_labels_and_the_process() {
    let first = |name: &str| read(&read_corpus(&format!("phpspy/{name}.txt"))).0.swap_remove(0);
    let labels = |name: &str| {
        let owned = |(key, value): &(Vec<u8>, Vec<u8>)| (show(key), show(value));
        first(name).labels.iter().map(owned).collect::<Vec<_>>()
    };
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    assert_eq!(first("closures-verbose-nolimit").process, Some(23257));
    assert_eq!(labels("closures-verbose-nolimit"), []);
    assert_eq!(labels("glopeek"), [pair("glopeek server.REQUEST_TIME", "1795243378")]);
    assert_eq!(labels("varpeek-includes"), [pair("varpeek i@/srv/app/trace/inc/a.php:3", "1000")]);
    let request = [
        pair("uri", "-"),
        pair("path", "/srv/app/trace/includes.php"),
        pair("qstring", "-"),
        pair("cookie", "-"),
        pair("ts", "1795243360.742755"),
    ];
    assert_eq!(labels("includes-request"), request);
}

#[test]
fn evaluated_code_keeps_the_spaces_of_its_path() {
    let text = read_corpus("phpspy/php84-includes.txt");
    let (samples, _) = read(&text);
    let file = b"/scripts/trace/inc/b.php(3) : eval()'d code";
    let function = b"{closure:/scripts/trace/inc/b.php(3) : eval()'d code:1}";
    let is_evaluated = |frame: &&FlatFrame| frame.file.as_deref() == Some(file);
    let frames: Vec<_> =
        samples.iter().flat_map(|sample| &sample.frames_leaf_first).filter(is_evaluated).collect();
    assert!(!frames.is_empty());
    assert!(frames.iter().all(|frame| frame.function == function && frame.line == Some(1)));
}

/// The result for a hand-made text.
enum Outcome {
    /// The output of reli's `converter:phpspy`.
    AsReli,
    /// Another output, and the reason.
    Differs { written: &'static str, why: &'static str },
    /// An error at a line. The reference reader crashes on these or drops them.
    Error { line: u64, message: &'static str },
}

use Outcome::{AsReli, Differs, Error as Fails};

const TEXTS: [(&str, Outcome); 26] = [
    ("bad_line_number", Fails { line: 1, message: "expected a line number, found \"abc\"" }),
    (
        "comments",
        Differs {
            written: "0 a /a.php:1\n1 m /m.php:2\n# global::$x = (string) \"y\"\n# mem = 1 2\n\n",
            why: "comments are labels, and a block of comments is no sample",
        },
    ),
    ("crlf", AsReli),
    ("depth_ignored", AsReli),
    (
        "double_space",
        Differs { written: "0 f /f.php:3\n\n", why: "reli splits at every single space, and dies" },
    ),
    ("empty", AsReli),
    ("empty_line_number", Fails { line: 1, message: "expected a line number, found \"\"" }),
    ("float_line_number", AsReli),
    ("hash_only", AsReli),
    ("internal", AsReli),
    (
        "leading_blank",
        Differs { written: "0 a /a.php:1\n\n", why: "blank lines before a trace are no samples" },
    ),
    ("leading_spaces", AsReli),
    (
        "missing_colon",
        Fails { line: 1, message: "expected DEPTH FUNCTION FILE:LINE, found \"f nofile\" after the depth" },
    ),
    ("native", AsReli),
    (
        "no_trailing_newline",
        Differs {
            written: "0 a /a.php:1\n\n0 b /b.php:2\n\n0 c /c.php:3\n\n",
            why: "the last trace counts without a blank line after it",
        },
    ),
    ("one_field", Fails { line: 1, message: "expected DEPTH FUNCTION FILE:LINE, found \"0\"" }),
    (
        "opcode_template",
        Differs {
            written: "0 f /f.php:3\n1 <main> /f.php:9\n\n",
            why: "reli cannot read its own template, and dies",
        },
    ),
    (
        "rbt_magic_text",
        Fails {
            line: 1,
            message: "expected DEPTH FUNCTION FILE:LINE, found \"/file.php:1\" after the depth",
        },
    ),
    ("short", Fails { line: 1, message: "expected DEPTH FUNCTION FILE:LINE, found \"0\"" }),
    ("simple", AsReli),
    (
        "space_in_path",
        Differs { written: "0 f /my dir/file.php:3\n\n", why: "reli splits at the space, and dies" },
    ),
    ("tabs", Differs { written: "0 f /f.php:3\n\n", why: "reli splits at spaces only, and dies" }),
    ("three_bytes", AsReli),
    ("two_traces", AsReli),
    ("utf8", AsReli),
    ("windows_path", AsReli),
];

#[test]
fn hand_made_texts_read_as_they_should() {
    let names: Vec<_> = TEXTS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names, corpus_names("rbt/text", ".txt"), "a text without an expected result");
    for (name, outcome) in &TEXTS {
        let text = read_corpus(&format!("rbt/text/{name}.txt"));
        let reli = read_corpus(&format!("rbt/expected/text/{name}.txt.phpspy.txt"));
        match outcome {
            AsReli => assert_eq!(show(&write(&read(&text).0).0), show(&reli), "{name}"),
            Differs { written, why } => {
                assert_eq!(show(&write(&read(&text).0).0), *written, "{name}: {why}");
                assert_ne!(show(&reli), *written, "{name} has no difference, but one is listed");
            }
            Fails { line, message } => {
                let error = read_error(&text);
                assert_eq!((error.position(), error.message()), (Position::Line(*line), *message), "{name}");
                assert!(error.is_malformed());
            }
        }
    }
}

#[test]
fn a_cut_off_last_line_is_a_warning() {
    let (samples, recovery) = read(b"0 a /a.php:1\n1 m");
    assert_eq!(samples.len(), 1);
    let [warning] = &recovery.warnings[..] else { panic!("{:?}", recovery.warnings) };
    assert_eq!(warning.message, "expected DEPTH FUNCTION FILE:LINE, found \"m\" after the depth (line 2)");
    assert_eq!((warning.offset, warning.lost_bytes), (Some(13), 3));
}

#[test]
fn reading_on_skips_bad_lines_and_keeps_their_traces() {
    let text = b"garbage\n0 a /a.php:1\nnoise\n1 m /m.php:2\n\n0 b /b.php:3\t1 m nofile\t\n0 c /c.php:4\n";
    let (samples, recovery) = read_with(text, &ReadOptions::lenient()).unwrap();
    let depths: Vec<_> = samples.iter().map(|sample| sample.frames_leaf_first.len()).collect();
    assert_eq!(depths, [2, 1, 1]);
    assert_eq!((recovery.warnings.len(), recovery.samples), (3, 3));
    assert_eq!(read_error(text).position(), Position::Line(1));
}

#[test]
fn a_line_number_with_a_fraction_is_noted() {
    let (_, recovery) = read(&read_corpus("rbt/text/float_line_number.txt"));
    assert_eq!(recovery.notes[0].message, "the fraction of a line number is dropped (line 1)");
}

#[test]
fn the_opcode_template_is_read_and_written() {
    let text = read_corpus("rbt/text/opcode_template.txt");
    let (samples, _) = read(&text);
    let frame = |function: &str, line, opcode: &str| FlatFrame {
        opcode: Some(opcode.into()),
        ..FlatFrame::php(function, "/f.php", line)
    };
    let expected = [frame("f", 3, "ZEND_DO_FCALL"), frame("<main>", 9, "ZEND_INCLUDE_OR_EVAL")];
    assert_eq!(samples[0].frames_leaf_first, expected);
    assert_eq!(write_with(&samples, WITH_OPCODES), (text, String::new()));
    assert_eq!(write(&samples).1, "opcodes dropped: 2");
}

#[test]
fn an_opcode_before_the_leaf_is_the_leafs() {
    let opcodes = |text: &str| {
        let opcode = |frame: &FlatFrame| frame.opcode.as_deref().map(show);
        read(text.as_bytes()).0[0].frames_leaf_first.iter().map(opcode).collect::<Vec<_>>()
    };
    let add = Some("ZEND_ADD".to_owned());
    assert_eq!(opcodes("0 <VM>::ZEND_ADD <VM>:-1\n1 f /f.php:3\n"), vec![add.clone()]);
    assert_eq!(opcodes("0 <VM>::ZEND_ADD <VM>:-1\n1 f /f.php:3:ZEND_ADD\n"), [add]);
    // These two differ in their opcodes; both are kept.
    let both = [None, Some("ZEND_SUB".to_owned())];
    assert_eq!(opcodes("0 <VM>::ZEND_ADD <VM>:-1\n1 f /f.php:3:ZEND_SUB\n"), both);
    assert_eq!(opcodes("0 <VM>::ZEND_ADD <VM>:-1\n"), [None]);
}

#[test]
fn native_frames_are_read_and_written_as_live_captures_have_them() {
    let text = read_corpus("rbt/text/native.txt");
    let (samples, _) = read(&text);
    let native = &samples[0].frames_leaf_first[0];
    assert_eq!(
        (show(&native.function), &native.native),
        ("zend_execute".to_owned(), &Some((b"libphp.so".to_vec(), Some(0x42))))
    );
    assert_eq!((&native.file, native.line), (&None, None));
    assert_eq!(write(&samples).0, text);
}

#[test]
fn an_empty_stack_is_a_blank_line_and_a_loss() {
    let empty = FlatSample { count: 3, ..FlatSample::default() };
    let frame = FlatFrame::php("f", "/f.php", 3);
    let full = FlatSample { frames_leaf_first: vec![frame], count: 1, ..FlatSample::default() };
    let (text, losses) = write(&[empty, full.clone()]);
    assert_eq!(show(&text), "\n\n\n0 f /f.php:3\n\n");
    assert_eq!(losses, "empty stacks dropped: 3");
    assert_eq!(read(&text).0, [full]);
}

#[test]
fn a_run_is_written_out_up_to_a_limit() {
    let frame = FlatFrame::php("f", "/f.php", 3);
    let run = |count| FlatSample { frames_leaf_first: vec![frame.clone()], count, ..FlatSample::default() };
    assert_eq!(read(&write(&[run(1000)]).0).0.len(), 1000);
    let mut exporter = Exporter::new(std::io::sink(), ExportOptions::default());
    let error = play(&[run(LONGEST_RUN + 1)], &Segment::default(), &mut exporter).unwrap_err().to_string();
    assert!(error.contains("found 10000001; write rbt or folded instead"), "{error}");
}

#[test]
fn the_process_of_a_segment_is_written() {
    let frame = FlatFrame::php("f", "/f.php", 3);
    let sample = FlatSample { frames_leaf_first: vec![frame], count: 1, ..FlatSample::default() };
    let mut text = Vec::new();
    let mut exporter = Exporter::new(&mut text, ExportOptions::default());
    play(&[sample], &Segment { process: Some(7), ..Segment::default() }, &mut exporter).unwrap();
    drop(exporter);
    assert_eq!(show(&text), "0 f /f.php:3\n# pid = 7\n\n");
}

#[test]
fn characters_that_would_break_the_text_are_replaced_and_counted() {
    let frame = |function: &str, file: &str| FlatFrame::php(function, file, 3);
    let sample = FlatSample {
        frames_leaf_first: vec![frame("a\nb\t1 c", "/line\r\nbreak.php"), frame("tab\tname", "/f.php")],
        count: 1,
        process: None,
        labels: vec![(b"a = b =".to_vec(), b"x\ny = z".to_vec())],
    };
    let (text, losses) = write(&[sample]);
    let expected = "0 a b 1 c /line  break.php:3\n1 tab name /f.php:3\n# a : b : = x y = z\n\n";
    assert_eq!(show(&text), expected);
    assert_eq!(losses, "special characters in names dropped: 8");
    let (samples, _) = read(&text);
    assert_eq!(samples[0].labels, [(b"a : b :".to_vec(), b"x y = z".to_vec())]);
}

/// Differences from reli's text in addition to those that `as_reli` removes, and why.
const DIFFERENCES: [(&str, &str); 1] =
    [("unicode.rbt", "a line break in a path is a space, so that the text stays one")];

/// Our text in reli's form: reli drops annotations and processes, and writes native frames as `symbol module:0`, although
/// its own live captures do not.
fn as_reli(text: &[u8]) -> Vec<u8> {
    let lines = text.split_inclusive(|&byte| byte == b'\n').filter(|line| !line.starts_with(b"# "));
    lines.flat_map(without_offset).collect()
}

fn without_offset(line: &[u8]) -> Vec<u8> {
    let place = std::str::from_utf8(line).ok().and_then(|line| line.strip_suffix(" [native]:0\n"));
    let Some(place) = place else { return line.to_vec() };
    let (depth, place) = place.split_once(' ').unwrap();
    let (module, symbol) = place.split_once("::").unwrap();
    let (symbol, _offset) = symbol.rsplit_once("+0x").unwrap();
    format!("{depth} {symbol} {module}:0\n").into_bytes()
}

#[test]
fn samples_of_rbt_files_are_written_as_reli_writes_them() {
    let decoded = corpus_names("rbt/expected", ".strict.jsonl");
    let mut compared = 0;
    for name in corpus_names("rbt/expected/conv", ".phpspy.txt") {
        // An empty list of samples is written as one line feed, which is not a trace, and data after a gzip member is
        // dropped.
        let reli = read_corpus(&format!("rbt/expected/conv/{name}.phpspy.txt"));
        if !decoded.contains(&name) || ["all_zeros.rbt", "gzip_then_raw.rbt.gz"].contains(&&*name) {
            continue;
        }
        let ours = as_reli(&write(&rbt_samples(&name)).0);
        match DIFFERENCES.iter().find(|(differing, _)| *differing == name) {
            None => assert_eq!(show(&ours), show(&reli), "{name}"),
            Some((_, why)) => {
                let same = show(&reli).replace("/line\nbreak", "/line break").replace('\0', "\\x00");
                let same = same.replace("tab\t", "tab ");
                assert_eq!(show(&ours), same, "{name}: {why}");
                assert_ne!(ours, reli, "{name} has no difference, but one is listed");
            }
        }
        compared += 1;
    }
    assert!(compared >= 50, "only {compared} files were compared");
}

#[test]
fn damage_never_panics() {
    let texts = ["rbt/text/opcode_template", "rbt/text/comments", "rbt/text/native", "rbt/text/tabs"];
    for name in texts {
        check_damage(&read_corpus(&format!("{name}.txt")));
    }
    for name in ["includes-single", "varpeek-includes", "php84-includes", "includes-request"] {
        let text = read_corpus(&format!("phpspy/{name}.txt"));
        check_damage(&text[..text.len().min(1500)]);
    }
}

fn check_damage(text: &[u8]) {
    damaged(text, |text| {
        let strict = read_with(text, &ReadOptions::default());
        let (samples, recovery) = read_with(text, &ReadOptions::lenient()).unwrap();
        assert_eq!(samples.len() as u64, recovery.samples);
        if let Ok((strict, _)) = strict {
            assert_eq!(strict, samples);
        }
    });
}

fn frame() -> impl Strategy<Value = FlatFrame> {
    let php =
        (flat::name(), prop::option::of(flat::path()), flat::line(), prop::option::of("ZEND_[A-Z_]{1,8}"));
    let native = (flat::name(), "[a-z.]{0,8}", prop::option::of(any::<i64>()));
    prop_oneof![
        4 => php.prop_map(|(function, file, line, opcode)| {
            FlatFrame { function, file, line, opcode: opcode.map(String::into_bytes), native: None }
        }),
        1 => native.prop_map(|(function, module, offset)| {
            FlatFrame { function, native: Some((module.into_bytes(), offset)), ..FlatFrame::default() }
        }),
    ]
}

fn label() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    let value = prop::collection::vec(any::<u8>(), 0..12).prop_filter("control characters", flat::is_kept);
    ("[a-z@/. ]{0,12}".prop_map(String::into_bytes), value)
}

fn sample() -> impl Strategy<Value = FlatSample> {
    let frames = prop::collection::vec(frame(), 1..6);
    (frames, prop::option::of(any::<i64>()), prop::collection::vec(label(), 0..3)).prop_map(
        |(frames_leaf_first, process, labels)| FlatSample { frames_leaf_first, count: 1, process, labels },
    )
}

proptest! {
    #[test]
    fn samples_survive_a_round_trip(samples in prop::collection::vec(sample(), 0..8)) {
        let (text, losses) = write_with(&samples, WITH_OPCODES);
        prop_assert_eq!(losses, "");
        let (read, recovery) = read(&text);
        prop_assert!(recovery.is_clean());
        prop_assert_eq!(read, samples);
    }

    #[test]
    fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(read_with(&bytes, &ReadOptions::lenient()).is_ok());
        let _ = read_with(&bytes, &ReadOptions::default());
    }

    #[test]
    fn any_words_are_read(text in "([0-3]| |\t|\n|\r|:|#| = |/a.php|f|<VM>::A <VM>:-1|:A|\\[native\\]|m::s\\+0x1){0,40}") {
        let Ok((samples, _)) = read_with(text.as_bytes(), &ReadOptions::default()) else { return Ok(()) };
        let (text, losses) = write_with(&samples, WITH_OPCODES);
        if losses.is_empty() {
            prop_assert_eq!(read(&text).0, samples);
        }
    }
}
