//! Profiles that were added are read back.

use std::io;
use std::ops::ControlFlow;

use borehole::model::{Context, ProfileSink, Sample, Tables};
use borehole::{Format, Input, InputOptions, OnDamage, ReadOptions, SampleKind, Source as Bytes, Target};
use borehole_analysis::tokio::TokioSink;
use borehole_testkit::{corpus, read_corpus};

use crate::world::{add, folded, lake, number, read, rows, sorted_lines, source, whole};

/// The profiles of the corpus, with their folded stacks.
fn readable() -> Vec<(String, Vec<u8>, Vec<String>)> {
    let mut found = Vec::new();
    for folder in ["rbt", "tachyon", "trc", "pprof", "otlp", "phpspy"] {
        let mut folders = vec![corpus(folder)];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let bytes = std::fs::read(&path).unwrap();
                let name = path.strip_prefix(corpus("")).unwrap().to_str().unwrap().to_owned();
                if let Some(lines) = folded_file(&name, &bytes) {
                    found.push((name, bytes, lines));
                }
            }
        }
    }
    found.sort();
    found
}

/// The folded stacks of a file, as far as it can be read: those of executing threads, or else the number of allocations;
/// `None` if it is not a profile.
fn folded_file(name: &str, bytes: &[u8]) -> Option<Vec<String>> {
    let executed = folded_samples(name, bytes, SampleKind::Cpu, None)?;
    let allocated = || folded_samples(name, bytes, SampleKind::Allocation, Some("samples".to_owned()));
    if executed.is_empty() { allocated() } else { Some(executed) }
}

fn folded_samples(
    name: &str,
    bytes: &[u8],
    samples: SampleKind,
    value: Option<String>,
) -> Option<Vec<String>> {
    let read = ReadOptions { on_damage: OnDamage::ReadOn, samples, ..ReadOptions::default() };
    let input = Bytes::reader(name, std::io::Cursor::new(bytes.to_vec()));
    let input = Input::open(input, &InputOptions { read, ..InputOptions::default() }).ok()?;
    let (mut tables, mut text) = (Tables::default(), Vec::new());
    let mut target = Target::new(Format::Folded);
    target.options.value = value;
    let mut exporter = target.exporter(&mut text).unwrap();
    input.read_into(&mut tables, &mut *exporter).ok()?;
    // Sums of another program have other values.
    exporter.finish(&tables).ok()?;
    drop(exporter);
    Some(sorted_lines(&text))
}

#[test]
fn every_file_of_the_corpus_gives_the_same_stacks_from_a_lake() {
    let files = readable();
    assert!(files.len() > 150, "only {} files of the corpus could be read", files.len());
    for (name, bytes, lines) in &files {
        let (_scratch, lake) = lake();
        add(&lake, source(name, name, bytes), bytes).unwrap();
        // Stacks without weight are not kept.
        let expected: Vec<_> = lines.iter().filter(|line| !line.ends_with(" 0")).cloned().collect();
        assert_eq!(whole(&lake, None).0, expected, "{name}");
    }
}

#[test]
fn tokio_traces_have_polls_spans_and_numbers() {
    let (_scratch, lake) = lake();
    let name = "trc/in/real_057_blocked.bin.gz";
    let bytes = read_corpus(name);
    add(&lake, source(name, "demo", &bytes), &bytes).unwrap();
    let (mut tables, mut tokio) = (Tables::default(), TokioSink::new(None));
    read(name, bytes, &mut tables, &mut tokio);
    tokio.finish(&tables).unwrap();
    let view = tokio.into_views().remove(0);
    assert!(view.polls.durations.count > 0);
    let of_polls = rows(&lake, "SELECT count(*), max(duration_ns), sum(duration_ns) FROM polls");
    let expected = [view.polls.durations.count, view.polls.durations.max_ns, view.polls.durations.sum_ns];
    assert_eq!(of_polls, [expected.map(|number| number.to_string())]);
    let of_spans = number(&lake, "SELECT count(*) FROM spans");
    let spans: u64 = view.spans.rows.iter().map(|row| row.durations.count).sum();
    assert_eq!(u64::try_from(of_spans).unwrap(), spans);
    let depth = number(&lake, "SELECT count(*) FROM events WHERE field = 'global_queue_depth'");
    assert!(depth > 0, "the depth of the global queue is missing");
}

#[test]
fn names_that_are_not_utf8_survive() {
    let (_scratch, lake) = lake();
    let text = b"main;caf\xe9;\xef\xbf\xbd 3\n";
    add(&lake, source("bytes", "web", text), text).unwrap();
    let lines = folded(&lake, "SELECT stack_id, value FROM samples");
    assert_eq!(lines, sorted_lines(text));
}

#[test]
fn any_query_with_a_stack_and_a_number_is_a_profile() {
    let (_scratch, lake) = lake();
    crate::world::add_folded(&lake, "web", "main;a;b 3\nmain;c 4\n");
    let expected = ["main;a;b 3", "main;c 4"];
    for sql in [
        "SELECT stack_id, value FROM samples",
        "SELECT stack, value FROM profiles",
        "SELECT stack, frames, value FROM profiles",
        "SELECT folded(stack) AS text, value FROM profiles",
        "SELECT value, collapse_package(stack) FROM profiles",
    ] {
        assert_eq!(folded(&lake, sql), expected, "{sql}");
    }
    let session = lake.session().unwrap();
    for (sql, missing) in [
        ("SELECT value FROM samples", "stacks"),
        ("SELECT service FROM samples", "whole numbers"),
        ("SELECT stack_id, value / 2.0 FROM samples", "whole numbers"),
    ] {
        let answer = session.ask(sql).unwrap();
        let mut text = Vec::new();
        let mut exporter = Target::new(Format::Folded).exporter(&mut text).unwrap();
        let error = session.export(answer, &mut *exporter).unwrap_err();
        assert_eq!(error.to_string(), format!("a profile needs a column of {missing}"), "{sql}");
    }
}

#[test]
fn errors_of_a_sink_are_kept_apart() {
    struct Full;
    impl ProfileSink for Full {
        fn sample(&mut self, _: Context<'_>, _: &Sample<'_>) -> io::Result<ControlFlow<()>> {
            Err(io::ErrorKind::StorageFull.into())
        }
    }
    let (_scratch, lake) = lake();
    crate::world::add_folded(&lake, "web", "main 1\n");
    let session = lake.session().unwrap();
    let answer = session.ask("SELECT stack_id, value FROM samples").unwrap();
    let error = session.export(answer, &mut Full).unwrap_err();
    assert_eq!(error.into_sink_error().unwrap().kind(), io::ErrorKind::StorageFull);
    let answer = session.ask("SELECT 1").unwrap();
    let error = session.export(answer, &mut Full).unwrap_err();
    assert!(error.into_sink_error().is_err());
}

#[test]
fn a_full_sink_gets_no_more_and_is_finished() {
    #[derive(Default)]
    struct Enough {
        samples: u64,
        is_finished: bool,
    }
    impl ProfileSink for Enough {
        fn sample(&mut self, _: Context<'_>, _: &Sample<'_>) -> io::Result<ControlFlow<()>> {
            self.samples += 1;
            Ok(ControlFlow::Break(()))
        }

        fn finish(&mut self, _: &Tables) -> io::Result<()> {
            self.is_finished = true;
            Ok(())
        }
    }
    let (_scratch, lake) = lake();
    crate::world::add_folded(&lake, "web", "main;a 1\nmain;b 2\nmain;c 3\n");
    let session = lake.session().unwrap();
    for columns in
        ["stack_id, value FROM samples", "stack, value FROM profiles", "folded(stack), value FROM profiles"]
    {
        let answer = session.ask(&format!("SELECT {columns}")).unwrap();
        let mut sink = Enough::default();
        assert_eq!(session.export(answer, &mut sink).unwrap(), 1, "{columns}");
        assert_eq!((sink.samples, sink.is_finished), (1, true), "{columns}");
    }
}
