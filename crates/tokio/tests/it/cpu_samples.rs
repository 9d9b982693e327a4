//! The threads of this program, sampled by the kernel where it allows that.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::io;
use std::process::Command;
use std::time::Duration;

use borehole_analysis::tokio::{PollSampleRow, PollSampleView, TokioView};
use borehole_recorder::{Compression, Handle, Recorder, Settings};
use borehole_tokio::TokioRecorder;
use nix::time::{ClockId, clock_gettime};
use tokio::runtime::Builder;
use tokio::task::yield_now;

use super::faults::view_of;
use super::scratch::Scratch;
use super::trace::Seen;

/// Set for a test that runs in a process that may not open perf events.
const REFUSED: &str = "BOREHOLE_TEST_REFUSES_PERF_EVENTS";

const MS: Duration = Duration::from_millis(1);

/// Takes this much CPU time.
#[inline(never)]
fn computes(milliseconds: i64) -> u64 {
    let cpu_ns = || {
        let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap();
        time.tv_sec() * 1_000_000_000 + time.tv_nsec()
    };
    let (start_ns, mut sum) = (cpu_ns(), 1_u64);
    while cpu_ns() - start_ns < milliseconds * 1_000_000 {
        sum = (0..20_000).fold(sum, |sum, number| sum.wrapping_mul(31) ^ black_box(number));
    }
    sum
}

#[inline(never)]
fn blocks() {
    std::thread::sleep(5 * MS);
    black_box(());
}

/// Records a runtime of which the threads are sampled; `None` if the system does not allow it, and says so.
fn recorded<F: Future<Output = ()>>(
    sample: impl FnOnce(&Handle) -> io::Result<()>,
    program: impl FnOnce(TokioRecorder) -> F,
) -> Option<(TokioView, BTreeMap<String, String>)> {
    let folder = Scratch::new();
    let recorder = Recorder::builder(folder.folder()).compression(Compression::None).start().unwrap();
    if let Err(error) = sample(&recorder.handle()) {
        assert!(error.to_string().starts_with("cannot open perf events for process "), "{error}");
        return None;
    }
    let tokio = TokioRecorder::new(recorder.handle());
    let runtime = tokio.build("test", Builder::new_multi_thread().worker_threads(2)).unwrap();
    runtime.block_on(program(tokio.clone()));
    drop(runtime);
    recorder.finish().unwrap();
    Some((view_of(folder.folder()), Seen::in_folder(folder.folder()).metadata))
}

/// Whether a function is in a stack.
fn has(samples: &PollSampleView, function: &str) -> bool {
    samples.stacks.rows.iter().any(|row| names(row, function))
}

/// Whether a function is among those of a stack that are shown.
fn names(row: &PollSampleRow, function: &str) -> bool {
    row.leaf.contains(function) || row.callers.iter().any(|name| name.contains(function))
}

/// Of 800 samples, a share of 75% is within 10 points in all but one of 10^10 runs.
#[test]
fn the_tasks_of_a_program_have_their_shares_of_cpu_time() {
    let view = recorded(
        |handle| handle.sample_cpu(1000),
        |tokio| async move {
            let heavy = tokio.spawn(async {
                for _ in 0..100 {
                    black_box(computes(6));
                    yield_now().await;
                }
            });
            let light = tokio.spawn(async {
                for _ in 0..100 {
                    black_box(computes(2));
                    yield_now().await;
                }
            });
            heavy.await.unwrap();
            light.await.unwrap();
        },
    );
    let Some((view, metadata)) = view else { return };
    let (cpu, places) = (&view.cpu, &view.cpu.places.rows);
    // Other tests may run in other threads of this process.
    assert!(cpu.in_polls >= 200, "{} of {}: {metadata:#?}", cpu.in_polls, cpu.samples);
    assert_eq!(places.len(), 2, "{cpu:#?}");
    assert!((places[0].count * 100).abs_diff(cpu.in_polls * 75) <= cpu.in_polls * 10, "{places:#?}");
    // Whatever was inlined into it.
    let counts = |wanted: bool| {
        let rows = cpu.stacks.rows.iter().filter(|row| names(row, "computes") == wanted);
        rows.map(|row| row.count).sum::<u64>()
    };
    assert!(counts(true) > 9 * counts(false), "{cpu:#?}");
    assert_eq!(view.blocking.samples, 0);
}

#[test]
fn a_call_that_blocks_a_poll_is_found_where_it_leaves_the_cpu() {
    let view = recorded(Handle::sample_off_cpu, |tokio| async move {
        let blocking = tokio.spawn(async {
            for _ in 0..40 {
                blocks();
                yield_now().await;
            }
        });
        blocking.await.unwrap();
    });
    let Some((view, metadata)) = view else { return };
    let blocking = &view.blocking;
    assert!(blocking.in_polls >= 20, "{} of {}: {metadata:#?}", blocking.in_polls, blocking.samples);
    assert!(has(blocking, "blocks"), "{blocking:#?}");
    assert!(view.findings.iter().any(|finding| finding.check == "blocking-calls"), "{:#?}", view.findings);
}

#[test]
fn a_service_is_sampled_or_runs_and_says_why_not() {
    let folder = Scratch::new();
    let variables = [
        ("BOREHOLE_TRACE_FOLDER", folder.folder().to_str().unwrap()),
        ("BOREHOLE_TRACE_COMPRESSION", "none"),
        ("BOREHOLE_TRACE_CPU_HZ", "1000"),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let settings = Settings::from_variables(variables).unwrap();
    let builder = &mut Builder::new_current_thread();
    let done = borehole_tokio::run_with(settings, "service", builder, |_| async { computes(100) });
    assert!(done.is_ok());
    let metadata = Seen::in_folder(folder.folder()).metadata;
    let samples = view_of(folder.folder()).cpu.samples;
    match metadata.get("cpu_samples.refused") {
        None => {
            assert_eq!(metadata.get("cpu.profile.frequency_hz").map(String::as_str), Some("1000"));
            assert!(samples >= 50 && std::env::var_os(REFUSED).is_none(), "{samples}");
        }
        Some(reason) => {
            assert!(reason.starts_with("cannot open perf events for process "), "{reason}");
            assert_eq!(samples, 0);
        }
    }
}

#[test]
fn a_service_that_may_not_open_perf_events_runs() {
    const PERF_EVENT_OPEN: &str = "298";
    let folder = Scratch::new();
    let deny = folder.path("deny");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus/native/deny.c");
    // The compiler with which Rust links.
    let built = Command::new("cc").arg("-o").arg(&deny).arg(source).status();
    assert!(built.unwrap().success());
    let own = std::env::current_exe().unwrap();
    let mut service = Command::new(deny);
    service.args([PERF_EVENT_OPEN, "--"]).arg(own);
    service.args(["--exact", "cpu_samples::a_service_is_sampled_or_runs_and_says_why_not"]);
    let ran = service.env(REFUSED, "1").output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && said.contains("1 passed"), "{said}");
}
