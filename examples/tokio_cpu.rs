//! A program that records which of its tasks take CPU time, and where its threads leave the CPU. On Linux.
//!
//! ```text
//! cargo run -p borehole-tokio --features cpu-samples --example tokio_cpu -- traces
//! borehole report traces --sections cpu,blocking
//! ```

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the program prints its result")]

use std::hint::black_box;
use std::time::{Duration, Instant};
use std::{env, io};

use borehole_recorder::Recorder;
use borehole_tokio::TokioRecorder;
use tokio::runtime::Builder;

fn main() -> io::Result<()> {
    let folder = env::args().nth(1).unwrap_or_else(|| "traces".to_owned());
    let recorder = Recorder::builder(&folder).start()?;
    // Before the runtime: threads are sampled if the thread that starts them is.
    let handle = recorder.handle();
    for sampled in [handle.sample_cpu(1000), handle.sample_off_cpu()] {
        if let Err(error) = sampled {
            eprintln!("not sampled: {error}");
        }
    }
    let tokio = TokioRecorder::new(recorder.handle());
    let runtime = tokio.build("main", Builder::new_multi_thread().worker_threads(2))?;
    runtime.block_on(async {
        let computing = tokio.spawn(async {
            for _ in 0..50 {
                compute(Duration::from_millis(10));
                tokio::task::yield_now().await;
            }
        });
        let blocking = tokio.spawn(async {
            for _ in 0..25 {
                block();
                tokio::task::yield_now().await;
            }
        });
        let _ = (computing.await, blocking.await);
    });
    drop(runtime);
    let summary = recorder.finish()?;
    println!("recorded {} events in {folder}", summary.events);
    Ok(())
}

/// Takes CPU time, as no task should without a pause.
#[inline(never)]
fn compute(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        black_box((0..1000_u64).fold(0, |sum: u64, number| sum.wrapping_mul(31) ^ black_box(number)));
    }
}

/// Blocks its worker, as no task should.
#[inline(never)]
fn block() {
    std::thread::sleep(Duration::from_millis(20));
}
