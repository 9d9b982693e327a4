//! Comparison with an installed Python: its reader on our files, and its writer on the same samples.

use borehole_formats::Compression;
use borehole_formats::ReadOptions;
use borehole_formats::tachyon::{ByteOrder, HeaderLayout, Reader, WriterOptions};
use borehole_testkit::corpus_files;
use borehole_testkit::python::Python;
use proptest::collection::vec;
use proptest::strategy::{Strategy, ValueTree as _};
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use super::properties::{self, Observation, Step, step};
use super::{PlainSample, comparable, corrupt_file, read, reference_sample, statistics};

/// The number of random profiles.
const PROFILES: usize = 60;

/// A profile and the options for writing it.
type Random = (Vec<Step>, WriterOptions);

/// Random profiles, equal for equal seeds.
fn profiles(options: impl Strategy<Value = WriterOptions>) -> Vec<Random> {
    let mut runner = TestRunner::new(Config::default());
    let strategy = (vec(step(), 0..40), options);
    (0..PROFILES).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect()
}

/// The results of Python's reader for several files: facts, samples and error of each.
fn read_by_python(python: &Python, names: &[String]) -> Vec<(Value, Vec<PlainSample>, Option<String>)> {
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let mut files: Vec<(Value, Vec<PlainSample>, Option<String>)> = Vec::new();
    let mut is_open = false;
    for line in python.samples(&names) {
        if !std::mem::replace(&mut is_open, true) {
            files.push((Value::Null, Vec::new(), None));
        }
        let file = files.last_mut().unwrap();
        if line.get("tid").is_some() {
            file.1.push(reference_sample(&line));
        } else if line.get("info").is_some() {
            file.0 = line["info"].clone();
        } else {
            file.2 = line["error"].as_str().map(str::to_owned);
            is_open = false;
        }
    }
    assert_eq!(files.len(), names.len());
    files
}

#[test]
fn python_reads_random_profiles_that_we_wrote() {
    let Some(python) = Python::set_up() else { return };
    let options =
        properties::options().prop_map(|options| WriterOptions { layout: HeaderLayout::New, ..options });
    let profiles = profiles(options);
    let names: Vec<_> = (0..profiles.len()).map(|number| format!("{number}.bin")).collect();
    let mut written = Vec::new();
    for ((steps, options), name) in profiles.iter().zip(&names) {
        let (_, bytes) = properties::write(steps, *options);
        python.write(name, &bytes);
        written.push(bytes);
    }
    let mut samples = 0;
    for (number, (info, theirs, error)) in read_by_python(&python, &names).into_iter().enumerate() {
        assert_eq!(error, None, "{number}");
        let ours = read(&written[number], ReadOptions::default());
        assert!(ours.samples == theirs, "{number}: {:?}", profiles[number]);
        let (header, said) = (*Reader::new(&written[number]).unwrap().header(), statistics());
        assert_eq!(info["sample_count"], header.samples);
        assert_eq!(info["thread_count"], header.threads);
        assert_eq!(info["start_time_us"], header.start_us);
        assert_eq!(
            (&info["duration_sec"], &info["missed_samples"]),
            (&json!(said.duration_s), &json!(said.missed_samples))
        );
        samples += theirs.len();
    }
    assert!(samples > 10_000, "{samples}");
}

/// A profile in the form in which our script passes it to Python's writer.
fn specification(samples: &[Observation], options: &WriterOptions) -> Value {
    let mut frames: Vec<(String, i32)> = Vec::new();
    let mut rows = Vec::new();
    for (thread, interpreter, time_us, status, stack) in samples {
        let mut indices = Vec::new();
        for frame in stack {
            let known = frames.iter().position(|known| known == frame);
            indices.push(known.unwrap_or(frames.len()));
            if known.is_none() {
                frames.push(frame.clone());
            }
        }
        rows.push(json!([time_us, interpreter, thread, status, indices]));
    }
    let frame = |(name, line): &(String, i32)| match line {
        -1 => json!(["/x.py", null, name, 7]),
        line => json!(["/x.py", [line, line + 2, -1, -1], name, 7]),
    };
    let said = statistics();
    json!({
        "start_us": options.start_us,
        "interval_us": options.interval_us,
        "compression": u32::from(options.compression == Compression::Zstd),
        "mode": -1,
        "features": -1,
        "statistics": [said.duration_s, said.sample_rate, said.error_rate, said.missed_samples],
        "frames": frames.iter().map(frame).collect::<Vec<_>>(),
        "samples": rows,
    })
}

#[test]
fn python_writes_the_same_bytes_for_the_same_samples() {
    let Some(python) = Python::set_up() else { return };
    let native = properties::options().prop_map(|options| WriterOptions {
        byte_order: ByteOrder::Little,
        layout: HeaderLayout::New,
        ..options
    });
    let mut version = python.version().split('.').map(|number| number.parse::<u8>().unwrap());
    let version = [(); 3].map(|()| version.next().unwrap());
    let mut specifications = Vec::new();
    let mut written = Vec::new();
    for (steps, options) in profiles(native) {
        let options = WriterOptions { python: version, ..options };
        let (samples, bytes) = properties::write(&steps, options);
        specifications.push(specification(&samples, &options));
        written.push(bytes);
    }
    let names: Vec<_> = (0..written.len()).map(|number| format!("{number}.bin")).collect();
    python.write_samples(&Value::from(specifications), &names.iter().map(String::as_str).collect::<Vec<_>>());
    for (ours, name) in written.iter().zip(&names) {
        assert!(comparable(ours) == comparable(&python.read(name)), "{name}");
    }
}

#[test]
fn random_changes_are_accepted_as_python_does() {
    let Some(python) = Python::set_up() else { return };
    // Only Borehole reads the old layout.
    let files = corpus_files("tachyon/corrupt", ".bin");
    let names = files.iter().map(|path| path.file_name().unwrap().to_str().unwrap().to_owned());
    let names: Vec<_> = names.filter(|name| name != "old_layout_u32_samples.bin").collect();
    for name in &names {
        python.write(name, &corrupt_file(name));
    }
    let mut refused = 0;
    for (name, (_, theirs, error)) in names.iter().zip(read_by_python(&python, &names)) {
        let ours = read(&corrupt_file(name), ReadOptions::default());
        assert!(error.is_none() || ours.error.is_some(), "{name}: {error:?}");
        if error.is_none() && ours.error.is_none() {
            assert!(ours.samples == theirs, "{name}");
        }
        refused += usize::from(error.is_some());
    }
    assert!(refused > 60, "{refused}");
}
