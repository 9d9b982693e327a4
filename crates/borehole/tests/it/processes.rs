//! Samples keep their processes in every conversion.

use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;

use borehole::formats::rbt::{FrameDef, Header, SampleDef, Writer};
use borehole::model::{Context, Sample};
use borehole::{
    Format, Input, InputOptions, ProfileSink, Redact, RedactKey, SortByTime, Source, Target, import_all,
};

/// The number of samples of each function in each process.
#[derive(Debug, Default, PartialEq)]
struct Processes(BTreeMap<(String, Option<i64>), u64>);

impl ProfileSink for Processes {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        let leaf = at.tables.frame(at.tables.leaf(sample.stack.unwrap()));
        let function = String::from_utf8_lossy(at.tables.string(leaf.function)).into_owned();
        *self.0.entry((function, at.process(sample))).or_default() += sample.count;
        Ok(ControlFlow::Continue(()))
    }
}

fn processes(expected: &[(&str, Option<i64>)]) -> Processes {
    Processes(expected.iter().map(|&(function, process)| ((function.to_owned(), process), 3)).collect())
}

/// An input with three samples of each function, after the facts about the process.
fn input(stretches: &[(&[&str], &str)]) -> Input {
    let mut writer = Writer::new(Vec::new(), Header { has_timestamps: true, period_us: 10_000 }).unwrap();
    for (pids, function) in stretches {
        pids.iter().for_each(|pid| writer.write_metadata(b"pid", pid.as_bytes()).unwrap());
        for _ in 0..3 {
            let stack = writer.define_trace(&[FrameDef::php(function, "a.php", 1)]).unwrap();
            writer.write_sample(&SampleDef { delta_us: Some(10_000), ..SampleDef::of(stack) }).unwrap();
        }
    }
    let bytes = io::Cursor::new(writer.finish().unwrap());
    Input::open(Source::reader("input", bytes), &InputOptions::default()).unwrap()
}

/// Reads back what `write` passes to an exporter.
fn read_back(format: Format, write: impl FnOnce(&mut dyn ProfileSink)) -> Processes {
    let mut bytes = Vec::new();
    write(&mut *Target::new(format).exporter(&mut bytes).unwrap());
    let source = Source::reader("output", io::Cursor::new(bytes));
    let options = InputOptions { format: Some(format), ..InputOptions::default() };
    let mut found = Processes::default();
    import(&mut found, [Input::open(source, &options).unwrap()]);
    found
}

fn import(mut sink: impl ProfileSink, inputs: impl IntoIterator<Item = Input>) {
    import_all(inputs, &mut sink).unwrap();
}

fn redact<S: ProfileSink>(sink: S) -> Redact<S> {
    Redact::new(sink, RedactKey::of_text(b""))
}

fn sort<S: ProfileSink>(sink: S) -> SortByTime<S> {
    SortByTime::new(sink).with_samples()
}

/// The formats that are read and hold processes.
const FORMATS: [Format; 6] =
    [Format::Rbt, Format::Jsonl, Format::Trc, Format::Pprof, Format::Otlp, Format::Phpspy];

#[test]
fn a_late_process_id_applies_to_later_samples() {
    for format in FORMATS {
        let late = input(&[(&[], "before"), (&["5"], "behind")]);
        let found = read_back(format, |exporter| import(exporter, [late]));
        assert_eq!(found, processes(&[("before", None), ("behind", Some(5))]), "{format:?}");
        let several = input(&[(&["5"], "before"), (&["6"], "behind"), (&["5"], "last")]);
        let found = read_back(format, |exporter| import(exporter, [several]));
        let expected = [("before", Some(5)), ("behind", None), ("last", None)];
        assert_eq!(found, processes(&expected), "{format:?}");
    }
}

#[test]
fn redacting_keeps_a_late_process_id() {
    for format in FORMATS {
        for (stretches, expected) in [
            ([(&[][..], "a"), (&["5"][..], "b")], [None, Some(5)]),
            ([(&["5"], "a"), (&["6"], "b")], [Some(5), None]),
            ([(&["5", "6"], "a"), (&["7"], "b")], [None, None]),
        ] {
            let found = read_back(format, |exporter| import(redact(exporter), [input(&stretches)]));
            let mut found: Vec<_> =
                found.0.into_iter().map(|((_, process), count)| (process, count)).collect();
            let mut expected = expected.map(|process| (process, 3));
            found.sort_unstable();
            expected.sort_unstable();
            assert_eq!(found, expected, "{format:?}");
        }
    }
}

#[test]
fn interleaved_processes_keep_their_samples() {
    for format in FORMATS {
        let inputs = || {
            let one = |pid: &[&str], function| input(&[(pid, function)]);
            [
                one(&["5"], "five"),
                one(&["6"], "six"),
                one(&[], "none"),
                input(&[(&[], "new"), (&["7"], "old")]),
            ]
        };
        let named = [("five", Some(5)), ("six", Some(6)), ("none", None), ("new", None), ("old", Some(7))];
        let found = read_back(format, |exporter| import(sort(exporter), inputs()));
        assert_eq!(found, processes(&named), "{format:?}");
        let found = read_back(format, |exporter| import(sort(redact(exporter)), inputs()));
        let mut found: Vec<_> = found.0.into_keys().map(|(_, process)| process).collect();
        found.sort_unstable();
        assert_eq!(found, [None, None, Some(5), Some(6), Some(7)], "{format:?}");
    }
}
