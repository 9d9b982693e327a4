//! Redacting keeps everything but names.

use std::collections::BTreeSet;
use std::io;
use std::ops::ControlFlow;

use borehole::formats::rbt::{FrameDef, Header, Writer};
use borehole::model::{Context, Sample};
use borehole::{
    Input, InputOptions, ProfileSink, ReadOptions, Redact, RedactKey, SampleKind, Source, import_all,
};
use borehole_testkit::read_corpus;

/// The kinds and units of values.
#[derive(Default)]
struct Types(BTreeSet<String>);

impl ProfileSink for Types {
    fn sample(&mut self, _: Context<'_>, _: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        Ok(ControlFlow::Continue(()))
    }

    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        let types = at.segment.value_types.iter();
        self.0.extend(types.flat_map(|own| [own.kind.clone(), own.unit.clone()]));
        Ok(())
    }
}

#[test]
fn keys_are_not_shown() {
    for key in [RedactKey::of_text(b"correct horse"), RedactKey::of_text(b"battery staple")] {
        assert_eq!(format!("{key:?}"), "RedactKey { .. }");
    }
}

fn open(bytes: &[u8], samples: SampleKind) -> Input {
    let read = ReadOptions { samples, ..ReadOptions::default() };
    let source = Source::reader("input", io::Cursor::new(bytes.to_vec()));
    Input::open(source, &InputOptions { read, ..InputOptions::default() }).unwrap()
}

fn speedscope(unit: &str) -> Vec<u8> {
    format!(
        r#"{{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{{"frames":[{{"name":"a"}}]}},
        "profiles":[{{"type":"sampled","name":"x","unit":"{unit}","startValue":0,"endValue":1,
        "samples":[[0],[0]],"weights":[0.5000001,0.25]}}]}}"#
    )
    .into_bytes()
}

#[test]
fn well_known_value_types_are_not_redacted() {
    let mut inputs: Vec<_> = ["pprof/go-cpu.pb.gz", "pprof/go-heap.pb.gz", "otlp/processes.otlp"]
        .map(|file| (read_corpus(file), SampleKind::Cpu))
        .to_vec();
    inputs.push((read_corpus("trc/in/real_057_blocked.bin.gz"), SampleKind::Allocation));
    inputs.extend(["none", "bytes", "seconds"].map(|unit| (speedscope(unit), SampleKind::Cpu)));
    let mut seen = BTreeSet::new();
    for (bytes, samples) in inputs {
        let (mut types, mut redacted) = (Types::default(), Types::default());
        import_all([open(&bytes, samples)], &mut types).unwrap();
        import_all([open(&bytes, samples)], &mut Redact::new(&mut redacted, RedactKey::random())).unwrap();
        assert_eq!(redacted.0, types.0);
        seen.extend(types.0);
    }
    for expected in ["alloc_space", "cpu", "wall", "weight", "none", "bytes", "nanoseconds"] {
        assert!(seen.contains(expected), "no {expected} among {seen:?}");
    }
}

/// The process of each sample.
#[derive(Default)]
struct Processes(Vec<Option<i64>>);

impl ProfileSink for Processes {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        self.0.push(at.process(sample));
        Ok(ControlFlow::Continue(()))
    }
}

#[test]
fn redacted_segments_of_several_processes_have_no_process() {
    let mut writer = Writer::new(Vec::new(), Header { has_timestamps: false, period_us: 10_000 }).unwrap();
    for process in ["5", "6"] {
        writer.write_metadata(b"pid", process.as_bytes()).unwrap();
        writer.write_trace(&[FrameDef::php(process, "a.php", 1)]).unwrap();
    }
    let bytes = writer.finish().unwrap();
    let mut redacted = Processes::default();
    import_all([open(&bytes, SampleKind::Cpu)], &mut Redact::new(&mut redacted, RedactKey::random()))
        .unwrap();
    assert_eq!(redacted.0, [Some(5), None]);
}
