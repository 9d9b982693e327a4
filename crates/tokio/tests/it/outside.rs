//! A program that records its events, sampled from outside meanwhile.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::hint::black_box;
use std::io::{self, BufRead as _, BufReader, Cursor, Read as _, Write as _};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use borehole_analysis::tokio::{TokioSink, TokioView};
use borehole_capture::{
    LiveSink, ProgramOptions, ProgramProcess, SampleOptions, SampledThreads, SamplingSession,
    SegmentMetadata, SessionControl, Subject,
};
use borehole_formats::otlp;
use borehole_model::{Context, ProfileSink, Sample, Tables};
use borehole_recorder::{Compression, Recorder};
use borehole_tokio::TokioRecorder;
use borehole_trc::{ExportOptions, Exporter, ReadOptions, import};
use tokio::runtime::Builder;
use tokio::task::yield_now;

use super::scratch::Scratch;

/// Where the program records its events, in the process that is sampled.
const FOLDER: &str = "BOREHOLE_TEST_RECORDS_INTO";

#[inline(never)]
fn computes(rounds: u64) -> u64 {
    (0..rounds).fold(1, |sum: u64, number| sum.wrapping_mul(31) ^ black_box(number))
}

/// Records two tasks that compute in turns, one of them three times as long, until `is_over`.
fn runs(folder: &Path, is_over: &'static AtomicBool) -> u64 {
    let recorder = Recorder::builder(folder).compression(Compression::None).start().unwrap();
    let tokio = TokioRecorder::new(recorder.handle());
    let runtime = tokio.build("test", Builder::new_multi_thread().worker_threads(1)).unwrap();
    runtime.block_on(async {
        let heavy = tokio.spawn(async {
            while !is_over.load(Ordering::Relaxed) {
                black_box(computes(3_000_000));
                yield_now().await;
            }
        });
        let light = tokio.spawn(async {
            while !is_over.load(Ordering::Relaxed) {
                black_box(computes(1_000_000));
                yield_now().await;
            }
        });
        let _ = (heavy.await, light.await);
    });
    drop(runtime);
    recorder.finish().unwrap().events
}

/// Runs until its input ends; but for a moment, if it is not sampled.
#[test]
fn a_program_of_two_tasks_records_them() {
    static IS_OVER: AtomicBool = AtomicBool::new(false);
    let scratch = Scratch::new();
    let is_sampled = std::env::var_os(FOLDER);
    let folder = is_sampled.as_deref().map_or(scratch.folder(), Path::new).to_owned();
    let ends = std::thread::spawn(move || {
        if is_sampled.is_some() {
            io::stdout().write_all(b"\nready\n").unwrap();
            io::stdin().read_to_end(&mut Vec::new()).unwrap();
        }
        IS_OVER.store(true, Ordering::Relaxed);
    });
    let events = runs(&folder, &IS_OVER);
    ends.join().unwrap();
    assert!(events > 0);
}

/// A recording in a format that holds threads and the time of the day.
struct Recording<E>(E);

impl<E: ProfileSink> ProfileSink for Recording<E> {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        self.0.sample(at, sample)
    }

    fn next(&mut self) -> Option<&mut dyn ProfileSink> {
        Some(&mut self.0)
    }
}

impl<E: ProfileSink> LiveSink for Recording<E> {}

/// Samples the threads of a process that are on a CPU.
fn sampled(process: i32, samples: u64) -> Vec<u8> {
    let period = Some(Duration::from_millis(1));
    let options =
        ProgramOptions { threads: SampledThreads::OnCpu, events: period, ..ProgramOptions::default() };
    let subject: Box<dyn Subject> = Box::new(ProgramProcess::attach(process, &options).unwrap());
    let (sender, targets) = mpsc::channel();
    sender.send(subject).unwrap();
    drop(sender);
    let mut file = Vec::new();
    let exporter = otlp::Exporter::new(&mut file, || Ok(Box::new(Cursor::new(Vec::new()))));
    let mut recording = Recording(exporter);
    let options = SampleOptions { period, samples: Some(samples), ..SampleOptions::default() };
    let session =
        SamplingSession::new(options, SegmentMetadata::default(), &mut recording, SessionControl::default());
    session.run(&targets).unwrap();
    drop(recording);
    file
}

/// The events of a folder and the samples, as one trace.
fn joined(folder: &Path, samples: &[u8]) -> Vec<u8> {
    let (mut both, mut tables) = (Vec::new(), Tables::default());
    let mut exporter = Exporter::new(&mut both, ExportOptions::default());
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths.iter().filter(|path| path.extension() == Some(OsStr::new("bin"))) {
        let (file, spool) = (File::open(path).unwrap(), Cursor::new(Vec::new()));
        import(file, &ReadOptions::default(), spool, &mut tables, &mut exporter).unwrap();
    }
    otlp::import(samples, &borehole_formats::ReadOptions::default(), &mut tables, &mut exporter).unwrap();
    exporter.finish(&tables).unwrap();
    drop(exporter);
    both
}

fn view(trace: &[u8]) -> TokioView {
    let (mut tables, mut sink) = (Tables::default(), TokioSink::new(None));
    import(trace, &ReadOptions::default(), Cursor::new(Vec::new()), &mut tables, &mut sink).unwrap();
    sink.finish(&tables).unwrap();
    sink.into_views().remove(0)
}

/// Of 400 samples, a share of 75% is within 12 points in all but one of 10^7 runs.
#[test]
fn samples_from_outside_are_put_into_the_polls_during_which_they_were_taken() {
    const SAMPLES: u64 = 400;
    let scratch = Scratch::new();
    let mut own = Command::new(std::env::current_exe().unwrap());
    own.args(["--exact", "outside::a_program_of_two_tasks_records_them", "--nocapture"]);
    let mut program =
        own.env(FOLDER, scratch.folder()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(program.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line == "ready"));
    let samples = sampled(program.id().try_into().unwrap(), SAMPLES);
    drop(program.stdin.take());
    assert!(lines.any(|line| line.contains("1 passed")) && program.wait().unwrap().success());
    let view = view(&joined(scratch.folder(), &samples));
    let (cpu, places) = (&view.cpu, &view.cpu.places.rows);
    assert!(cpu.samples >= SAMPLES * 9 / 10 && cpu.in_polls * 10 >= cpu.samples * 8, "{cpu:#?}");
    assert_eq!(places.len(), 2, "{cpu:#?}");
    assert!((places[0].count * 100).abs_diff(cpu.in_polls * 75) <= cpu.in_polls * 12, "{places:#?}");
    let of_computes =
        cpu.stacks.rows.iter().filter(|row| row.callers.iter().any(|name| name.contains("computes")));
    let of_computes: u64 = of_computes.map(|row| row.count).sum();
    let shown: u64 = cpu.stacks.rows.iter().map(|row| row.count).sum();
    assert!(of_computes * 10 >= shown * 9, "{cpu:#?}");
}
