//! Profiles in memory: made by a program, read whole, borrowed, or asked for sample by sample.

use std::io::{self, Cursor, Read};
use std::sync::mpsc;
use std::time::Duration;

use borehole::model::{Context, Count, Filter, Sample, Tables, Thread};
use borehole::{
    BorrowedInput, CancelToken, Error, ErrorKind, Format, Input, InputOptions, Profile, Samples, Source,
    Target, convert, import_all,
};
use borehole_testkit::{corpus, corpus_files, read_corpus};

fn open(file: &str) -> Input {
    Input::open(Source::path(corpus(file)).unwrap(), &InputOptions::default()).unwrap()
}

/// A sample in words.
fn described(at: Context<'_>, sample: &Sample<'_>) -> String {
    let frames = at.tables.frames_leaf_first(sample.stack);
    let names: Vec<_> =
        frames.map(|id| String::from_utf8_lossy(at.tables.string(at.tables.function(id)))).collect();
    let labels = sample.labels.map(|labels| at.tables.labels(labels).len());
    let Sample { count, time_ns, thread, values, .. } = sample;
    format!("{} {count} {time_ns:?} {thread:?} {values:?} {labels:?} {:?}", names.join(";"), at.segment.index)
}

#[test]
fn a_sampler_of_the_program_s_own_writes_any_format() {
    let mut profile = Profile::every(Duration::from_millis(10));
    let [main, query] = ["main", "query"].map(|name| profile.frame(name).unwrap());
    let thread = Thread { process: Some(4711), number: 7 };
    profile.name_thread(thread, "worker").unwrap();
    let labels = Some(profile.labels(&[("url", "/carts")]).unwrap());
    for (at_ms, frames) in [(10, &[main][..]), (20, &[main, query]), (30, &[main, query])] {
        let stack = profile.stack(frames).unwrap();
        let (process, time_ns) = (Some(4711), Some(at_ms * 1_000_000));
        let sample = Sample { process, time_ns, labels, thread: Some(7), ..Sample::of(stack) };
        profile.add(&sample);
    }
    for &format in Format::ALL.iter().filter(|format| format.writable() && format.readable()) {
        let mut file = Vec::new();
        profile.write(format, &mut file).unwrap_or_else(|error| panic!("{}: {error}", format.name()));
        let name = format!("a.{}", format.extensions()[0]);
        let options = InputOptions { format: Some(format), ..InputOptions::default() };
        let input = Input::open(Source::reader(name, Cursor::new(file)), &options).unwrap();
        let (read, _) = Profile::read(input).unwrap();
        assert!(read.samples().count() > 0, "{}", format.name());
        assert!(read.tables().find_string(b"query").is_some(), "{}", format.name());
    }
}

#[test]
fn samples_on_demand_are_those_that_a_sink_is_told_and_a_profile_keeps() {
    for file in ["rbt/annotations_ts.rbt", "rbt/realistic_54k_ts.rbt"] {
        let (profile, recovery) = Profile::read(open(file)).unwrap();
        let kept: Vec<_> = profile.samples().map(|(at, sample)| described(at, &sample)).collect();
        let mut samples = Samples::of(open(file)).unwrap();
        let mut asked = Vec::new();
        while let Some((at, sample)) = samples.next_sample().unwrap() {
            asked.push(described(at, &sample));
        }
        assert!(kept == asked && !kept.is_empty(), "{file}");
        assert_eq!(samples.recovery(), Some(&recovery));
        assert!(samples.next_sample().unwrap().is_none());
    }
}

#[test]
fn an_error_comes_after_the_samples_before_it() {
    let mut samples = Samples::of(open("rbt/bitflip_middle.rbt")).unwrap();
    let mut read = 0;
    let error = loop {
        match samples.next_sample() {
            Ok(sample) => read += u64::from(sample.is_some()),
            Err(error) => break error,
        }
    };
    let mut count = Count::default();
    let told = open("rbt/bitflip_middle.rbt").read_into(&mut Tables::default(), &mut count).unwrap_err();
    assert_eq!((read, error.to_string()), (count.runs, told.to_string()));
}

#[test]
fn bytes_are_read_as_a_file_with_them_is() {
    let files = [("rbt", "rbt"), ("pprof", "pb.gz"), ("tachyon/corpus", "bin")]
        .map(|(folder, ending)| corpus_files(folder, ending));
    let files = files.into_iter().flatten();
    let mut read = 0;
    for file in files {
        let (bytes, name) = (std::fs::read(&file).unwrap(), file.display().to_string());
        let options = InputOptions::default();
        let (mut borrowed, mut owned) = (Count::default(), Count::default());
        let of_bytes = BorrowedInput::open(&name, &bytes, &options)
            .and_then(|input| input.read_into(&mut Tables::default(), &mut borrowed));
        let of_file = Input::open(Source::path(&file).unwrap(), &options)
            .and_then(|input| input.read_into(&mut Tables::default(), &mut owned));
        let said = |outcome: Result<_, Error>| outcome.map_err(|error| error.to_string());
        assert_eq!((said(of_bytes), borrowed), (said(of_file), owned), "{name}");
        read += owned.samples;
    }
    assert!(read > 1000);
}

#[test]
fn a_filtered_trace_keeps_the_times_of_its_samples() {
    let times = |input: Input| {
        let (profile, _) = Profile::read(input).unwrap();
        profile.samples().map(|(_, sample)| sample.time_ns).collect::<Vec<_>>()
    };
    let all = times(open("rbt/realistic_54k_ts.rbt"));
    let mut filtered = Vec::new();
    let mut place = 0;
    let keep = |_: Context<'_>, _: &Sample<'_>| {
        place += 1;
        place > 100 && place % 7 == 0
    };
    let exporter = Target::new(Format::Rbt).exporter(&mut filtered).unwrap();
    import_all([open("rbt/realistic_54k_ts.rbt")], &mut Filter::new(exporter, keep)).unwrap();
    let source = Source::reader("filtered", io::Cursor::new(filtered));
    let kept = times(Input::open(source, &InputOptions::default()).unwrap());
    let expected: Vec<_> =
        (1..).zip(&all).filter(|(place, _)| place % 7 == 0 && *place > 100).map(|(_, &time)| time).collect();
    assert!(expected.len() > 50 && kept == expected);
}

/// A stream that cancels once a part of it was read.
struct Cancelling<R>(R, CancelToken);

impl<R: Read> Read for Cancelling<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.0.read(out)?;
        if count == 0 {
            self.1.cancel();
        }
        Ok(count)
    }
}

#[test]
fn a_cancelled_conversion_is_an_error_and_its_output_is_not_finished() {
    let token = CancelToken::default();
    let beginning = io::Cursor::new(read_corpus("rbt/realistic_54k_ts.rbt")).take(1 << 16);
    let source = Source::reader("a.rbt", Cancelling(beginning, token.clone()).chain(io::repeat(0)));
    let input = Input::open(source, &InputOptions::default()).unwrap().cancelled_by(&token);
    let mut output = Vec::new();
    let error = convert([input], &Target::new(Format::Pprof), &mut output).unwrap_err();
    assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Cancelled, "a.rbt: cancelled"));
    assert_eq!(output, b"");
}

#[test]
fn progress_grows_and_ends_with_everything() {
    for file in ["rbt/realistic_54k_ts.rbt", "rbt/daemon_worker.rbt"] {
        let (send, told) = mpsc::channel();
        let input = open(file).on_progress(move |progress| send.send(progress).unwrap());
        convert([input], &Target::new(Format::Folded), io::sink()).unwrap();
        let told: Vec<_> = told.iter().collect();
        assert!(told.windows(2).all(|pair| pair[0].read_bytes <= pair[1].read_bytes), "{file}: {told:?}");
        let size_bytes = std::fs::metadata(corpus(file)).unwrap().len();
        let last = told.last().unwrap();
        assert_eq!((last.read_bytes, last.fraction()), (size_bytes, Some(1.0)), "{file}");
        assert!(told.len() > 1, "{file}: {told:?}");
    }
}
