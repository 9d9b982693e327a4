//! Conversions of `rbt` files, compared with those of reli's converters.

use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;

use borehole::model::{Context, Filter, ProfileSink, Sample};
use borehole::{Export as _, Format, Input, InputOptions, Samples, Source, Target, convert, import_all};
use borehole_testkit::manifest::{CorpusManifest, CorpusTrace};
use borehole_testkit::{corpus, read_corpus};

/// The files that both programs read completely, with the output of reli's converter `converter` for each.
fn converted(converter: &str) -> Vec<(CorpusTrace, Vec<u8>)> {
    let is_whole = |trace: &CorpusTrace| {
        let beyond_reli = ["gzip_then_raw.rbt.gz", "repeat_huge.rbt"].contains(&&*trace.name);
        trace.strict.error.is_none() && !beyond_reli
    };
    let output = |trace: CorpusTrace| {
        let file = trace.converters.get(converter)?.file.clone()?;
        Some((trace, read_corpus(&format!("rbt/{file}"))))
    };
    let found: Vec<_> = CorpusManifest::rbt().files.into_iter().filter(is_whole).filter_map(output).collect();
    assert!(found.len() >= 50, "only {} files of {converter}", found.len());
    found
}

fn open(source: Source, format: Format) -> Input {
    let options = InputOptions { format: Some(format), ..InputOptions::default() };
    Input::open(source, &options).unwrap()
}

/// The output of the facade for a trace.
fn write(trace: &CorpusTrace, format: Format) -> Vec<u8> {
    let source = Source::path(corpus(&format!("rbt/{}", trace.name))).unwrap();
    let mut output = Vec::new();
    let outcome = convert([open(source, Format::Rbt)], &Target::new(format), &mut output).unwrap();
    assert_eq!(Some(outcome.recovery.samples), trace.strict.samples, "{}", trace.name);
    output
}

/// Samples by stack, root first. Each frame is `function file:line`.
#[derive(Debug, Default, PartialEq)]
struct Stacks(BTreeMap<String, u64>);

impl ProfileSink for Stacks {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        let tables = at.tables;
        let text = |id| String::from_utf8_lossy(tables.string(id)).replace('\u{fffd}', "");
        let frames = tables.frames_leaf_first(sample.stack).map(|id| {
            let frame = tables.frame(id);
            // Reli writes the module of native code as a file; our pprof files have a mapping.
            let file = frame.file.or(frame.native.map(|native| native.module)).map_or(String::new(), text);
            let line = frame.line.filter(|&line| line > 0).unwrap_or(0);
            format!("{} {file}:{line}", text(frame.function))
        });
        let mut frames: Vec<_> = frames.collect();
        frames.reverse();
        *self.0.entry(frames.join(";")).or_default() += sample.count;
        Ok(ControlFlow::Continue(()))
    }
}

fn stacks(bytes: Vec<u8>, format: Format) -> Stacks {
    let mut stacks = Stacks::default();
    let source = Source::reader("output", io::Cursor::new(bytes));
    import_all([open(source, format)], &mut stacks).unwrap();
    stacks
}

#[test]
fn pprof_and_speedscope_have_the_stacks_of_relis_files() {
    for (converter, format) in [("pprof-raw", Format::Pprof), ("speedscope", Format::Speedscope)] {
        for (trace, reli) in converted(converter) {
            let ours = stacks(write(&trace, format), format);
            assert_eq!(ours, stacks(reli, format), "{} as {converter}", trace.name);
        }
    }
}

/// The samples of each leaf function by its name, from a callgrind file.
fn leaves(callgrind: &[u8]) -> BTreeMap<String, u64> {
    let text = String::from_utf8_lossy(callgrind);
    let mut names = BTreeMap::new();
    let (mut leaves, mut function, mut is_call) = (BTreeMap::new(), String::new(), false);
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("fn=").or_else(|| line.strip_prefix("cfn=")) {
            // Our names are `(7) name` at first and `(7)` later.
            let name = match name.split_once(' ').filter(|(number, _)| number.starts_with('(')) {
                Some((number, name)) => names.entry(number.to_owned()).or_insert(name.to_owned()).clone(),
                None => names.get(name).cloned().unwrap_or(name.to_owned()),
            };
            function = if line.starts_with("fn=") { name } else { function };
        } else if line.starts_with("calls=") {
            is_call = true;
        } else if line.starts_with(|first: char| first.is_ascii_digit() || first == '-') {
            let samples: u64 = line.split(' ').nth(1).unwrap().parse().unwrap();
            if !std::mem::take(&mut is_call) {
                *leaves.entry(function.clone()).or_default() += samples;
            }
        }
    }
    leaves.retain(|_, samples| *samples > 0);
    leaves
}

/// Names that do not fit in a line of callgrind are written differently, and an empty stack gets a name.
const OTHER_NAMES: [&str; 3] = ["unicode.rbt", "zero_depth.rbt", "stack_depth_negative.rbt"];

#[test]
fn callgrind_gives_each_function_the_samples_that_relis_gives_it() {
    for (trace, reli) in converted("callgrind") {
        let (ours, reli) = (leaves(&write(&trace, Format::Callgrind)), leaves(&reli));
        if OTHER_NAMES.contains(&&*trace.name) {
            assert!(ours.values().sum::<u64>() >= reli.values().sum(), "{}", trace.name);
        } else {
            assert_eq!(ours, reli, "{}", trace.name);
        }
    }
}

#[test]
fn a_filtered_trace_keeps_the_times_of_its_samples() {
    let trace = open(Source::path(corpus("rbt/realistic_54k_ts.rbt")).unwrap(), Format::Rbt);
    let mut written = Vec::new();
    let exporter = Target::new(Format::Rbt).exporter(&mut written).unwrap();
    let is_late = |_: Context<'_>, sample: &Sample<'_>| sample.time_ns >= Some(810_000_000);
    let mut filter = Filter::new(exporter, is_late);
    import_all([trace], &mut filter).unwrap();
    let exporter = filter.into_inner();
    assert!(exporter.losses().is_empty());
    drop(exporter);
    let filtered = open(Source::reader("filtered", io::Cursor::new(written)), Format::Rbt);
    let mut samples = Samples::of(filtered).unwrap();
    let (_, first) = samples.next_sample().unwrap().unwrap();
    assert_eq!(first.time_ns, Some(817_275_000));
}
