//! Statistics of functions and sums of frames, compared with the output of CPython's `replay`.

use borehole_formats::pstats::{self, Sort, TextOptions};
use borehole_formats::tachyon::WriterOptions;
use borehole_formats::{Export, ReadOptions, tachyon, tachyon_jsonl};
use borehole_model::{Count, ProfileSink, Tables, Tee};
use borehole_testkit::{corpus_files, read_corpus};
use serde_json::{Value, json};

use crate::tachyon::{define, finish, thread, writer};

/// The names of the real files, without folder and extension.
fn names() -> Vec<String> {
    let files = corpus_files("tachyon/corpus", ".bin");
    assert_eq!(files.len(), 31);
    files.iter().map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
}

fn export(name: &str, exporter: &mut dyn Export) {
    let bytes = read_corpus(&format!("tachyon/corpus/{name}.bin"));
    let mut tables = Tables::default();
    tachyon::import(&bytes, &ReadOptions::default(), &mut tables, exporter).unwrap();
    exporter.finish(&tables).unwrap();
}

fn expected(name: &str, ending: &str) -> Vec<u8> {
    read_corpus(&format!("tachyon/corpus/expected/{name}.{ending}"))
}

fn table(name: &str, options: TextOptions) -> String {
    let mut out = Vec::new();
    export(name, &mut pstats::Exporter::text(&mut out, options));
    String::from_utf8(out).unwrap()
}

#[test]
fn sums_of_frames_are_those_of_cpython() {
    for name in names() {
        let mut out = Vec::new();
        export(&name, &mut tachyon_jsonl::Exporter::new(&mut out));
        let out = String::from_utf8(out).unwrap();
        // The id of a run is random there, and has been removed.
        let run = out.split("\"run_id\":\"").nth(1).unwrap().split('"').next().unwrap();
        assert!(run.len() == 32 && run.bytes().all(|digit| digit.is_ascii_hexdigit()), "{run}");
        assert!(out.replace(run, "RUNID").as_bytes() == expected(&name, "jsonl"), "{name}");
    }
}

/// Samples of three threads, with many stacks and recursion.
fn many_stacks() -> Vec<u8> {
    let mut writer = writer(WriterOptions::default());
    let names: Vec<_> = (0..40).map(|number| format!("f{number}")).collect();
    let frames = define(&mut writer, &names.iter().map(String::as_str).collect::<Vec<_>>());
    let threads = [1, 2, 3].map(|id| thread(&mut writer, id));
    let mut random = 1_u64;
    let mut next = |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(random >> 33).unwrap() % below
    };
    let mut stacks = [const { Vec::new() }; 3];
    for time in 0..20_000 {
        let number = next(3);
        let stack = &mut stacks[number];
        stack.drain(..next(stack.len() + 1));
        for _ in 0..next(8) {
            stack.insert(0, frames[next(frames.len())]);
        }
        writer.write_sample(threads[number], time, 0, stack).unwrap();
    }
    finish(writer)
}

#[test]
fn sums_of_frames_do_not_need_stacks_to_be_kept() {
    let bytes = many_stacks();
    let [kept, forgotten] = [true, false].map(|keeps| {
        let (mut out, mut tables) = (Vec::new(), Tables::default());
        let mut exporter = tachyon_jsonl::Exporter::new(&mut out);
        // An adapter does not release stacks unless it says so.
        let mut between = Tee::new(&mut exporter, Count::default());
        let sink: &mut dyn ProfileSink = if keeps { &mut between } else { &mut exporter };
        tachyon::import(&bytes, &ReadOptions::default(), &mut tables, sink).unwrap();
        exporter.finish(&tables).unwrap();
        let losses = exporter.losses().to_string();
        drop(exporter);
        (out, losses, tables.stack_count())
    });
    assert!(forgotten.0 == kept.0 && forgotten.1 == kept.1);
    assert!(forgotten.2 < 1 << 15 && kept.2 > 1 << 15, "{} {}", forgotten.2, kept.2);
}

#[test]
fn the_table_is_that_of_cpython() {
    for name in names() {
        let table = table(&name, TextOptions::default());
        let expected = String::from_utf8(expected(&name, "pstats.txt")).unwrap();
        // CPython prints the line break of a path, which makes two lines of one.
        let expected = expected.replace("semi\tand\nnewline", "semi\\x09and\\x0anewline");
        assert!(table == expected, "{name}: {table}");
    }
}

#[test]
fn the_file_holds_the_numbers_of_cpython() {
    for name in names() {
        let mut out = Vec::new();
        export(&name, &mut pstats::Exporter::new(&mut out));
        let mut rest = &out[..];
        let Value::Array(mut rows) = object(&mut rest) else { panic!("{name}: expected a dictionary") };
        assert!(rest.is_empty(), "{name}");
        assert_eq!(rows.pop(), Some(json!([["__sampled__"], true])), "{name}");
        // Converted to text and back: the parser is not exact in the last digit, so both sides have the same error.
        let found = Value::Array(rows.iter().map(row).collect()).to_string();
        let [found, expected] = [found.into_bytes(), expected(&name, "pstats.json")]
            .map(|json| serde_json::from_slice::<Vec<Value>>(&json).unwrap());
        assert_eq!(found.len(), expected.len(), "{name}");
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found, expected, "{name}");
        }
    }
}

/// A row in the form of the recorded ones: the function, the numbers, the callers.
fn row(row: &Value) -> Value {
    let numbers = row[1].as_array().unwrap();
    json!([row[0], numbers[..4], numbers[4]])
}

/// One object of Python's marshal format; a dictionary is a list of pairs.
fn object(rest: &mut &[u8]) -> Value {
    let kind = take(rest, 1)[0];
    match kind {
        b'T' => true.into(),
        b'i' => i32::from_le_bytes(take(rest, 4).try_into().unwrap()).into(),
        b'g' => f64::from_le_bytes(take(rest, 8).try_into().unwrap()).into(),
        b'u' => {
            let len = u32::from_le_bytes(take(rest, 4).try_into().unwrap());
            std::str::from_utf8(take(rest, len as usize)).unwrap().into()
        }
        b')' => {
            let len = take(rest, 1)[0];
            (0..len).map(|_| object(rest)).collect()
        }
        b'{' => {
            let mut pairs = Vec::new();
            while rest[0] != b'0' {
                pairs.push(json!([object(rest), object(rest)]));
            }
            take(rest, 1);
            pairs.into()
        }
        _ => panic!("unexpected {kind:?}"),
    }
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (taken, left) = rest.split_at(count);
    *rest = left;
    taken
}

/// The counts and the position of each line of a table.
fn lines(table: &str) -> Vec<(u64, u64, String)> {
    let rows = table.lines().skip(2).take_while(|line| !line.is_empty());
    let parse = |line: &str| {
        let (counts, _) = line.trim_start().split_once(' ').unwrap();
        let (direct, cumulative) = counts.split_once('/').unwrap();
        (direct.parse().unwrap(), cumulative.parse().unwrap(), line[line.len().min(65)..].trim().to_owned())
    };
    rows.map(parse).collect()
}

#[test]
fn the_table_is_sorted_and_cut_as_asked() {
    let print = |sort, limit| table("26_realapp_zstd", TextOptions { sort, limit, summary: false });
    let all = lines(&print(Sort::SelfSamples, None));
    assert!(all.len() > 300 && !print(Sort::SelfSamples, None).contains("Summary"), "{}", all.len());
    for sort in [Sort::SelfSamples, Sort::SelfTime, Sort::SelfShare] {
        let found = lines(&print(sort, None));
        assert!(found.is_sorted_by(|a, b| a.0 >= b.0) && found.len() == all.len(), "{sort:?}");
        assert_eq!(lines(&print(sort, Some(7))), found[..7], "{sort:?}");
    }
    for sort in [Sort::TotalSamples, Sort::TotalTime, Sort::TotalShare] {
        assert!(lines(&print(sort, None)).is_sorted_by(|a, b| a.1 >= b.1), "{sort:?}");
    }
    let names = lines(&print(Sort::Name, None));
    assert!(names.first().unwrap().2.starts_with('<') && names.last().unwrap().2.starts_with('~'));
}
