//! A whole program that records itself, set up by its environment.

use std::future::Future;
use std::io;

use borehole_recorder::{Recorder, Settings};
use tokio::runtime::Builder;

use crate::hooks::TokioRecorder;

/// Runs the future of a program's `main` in a runtime of `builder`, and records the runtime as the environment says.
///
/// This is what [`#[borehole_tokio::main]`](crate::main) calls. The settings are
/// [`borehole_recorder::SETTINGS`]. With `BOREHOLE_TRACE=off`, nothing is recorded, and the functions of this crate do
/// what Tokio's do.
///
/// The recording is complete when this returns, when the process is asked to end, and, up to the last flush, when it is
/// killed.
///
/// # Errors
/// If a setting is wrong, or the folder cannot be written, or Tokio cannot build the runtime. The future has not run then.
#[track_caller]
pub fn run<F: Future>(name: &str, builder: &mut Builder, future: F) -> io::Result<F::Output> {
    run_with(Settings::from_env()?, name, builder, |_| future)
}

/// Runs a program like [`run`], with given settings. `program` gets the recorder, `None` if the settings turn recording off.
///
/// # Errors
/// Like [`run`].
#[track_caller]
pub fn run_with<F: Future>(
    settings: Settings,
    name: &str,
    builder: &mut Builder,
    program: impl FnOnce(Option<&TokioRecorder>) -> F,
) -> io::Result<F::Output> {
    if !settings.is_enabled {
        return Ok(builder.build()?.block_on(program(None)));
    }
    let (recorder, tokio) = start(settings)?;
    let runtime = tokio.build(name, builder)?;
    let result = runtime.block_on(program(Some(&tokio)));
    drop(runtime);
    // A recording that could not be completed does not make the program fail, and its files say what they miss.
    let _ = recorder.finish();
    Ok(result)
}

/// The body of a program with [`#[borehole_tokio::main]`](crate::main).
///
/// # Panics
/// If the program cannot record, or Tokio cannot build the runtime.
#[track_caller]
pub fn main<F: Future>(name: &str, builder: &mut Builder, future: F) -> F::Output {
    let result = run(name, builder, future);
    result.unwrap_or_else(|error| {
        panic!("cannot record this program: {error}; BOREHOLE_TRACE=off turns recording off")
    })
}

/// Begins to record as the settings say. The recorder ends the recording when it is dropped.
///
/// # Errors
/// If the folder cannot be written, or the settings need a feature that this program is built without.
pub fn start(settings: Settings) -> io::Result<(Recorder, TokioRecorder)> {
    let (dump_signal, long_poll, resources) = (settings.dump_signal, settings.long_poll, settings.resources);
    let allocation_bytes = settings.allocation_bytes;
    let (cpu_hz, off_cpu) = (settings.cpu_hz, settings.off_cpu);
    let recorder = started(settings)?;
    #[cfg(all(unix, feature = "signal"))]
    {
        recorder.finish_on_signals()?;
        if let Some(signal) = dump_signal {
            recorder.dump_on_signal(signal)?;
        }
    }
    #[cfg(not(all(unix, feature = "signal")))]
    refuse_without("signal", dump_signal.is_some())?;
    if resources {
        recorder.handle().add_resources()?;
    }
    #[cfg(feature = "allocations")]
    if let Some(bytes) = allocation_bytes {
        recorder.handle().sample_allocations(bytes)?;
    }
    #[cfg(not(feature = "allocations"))]
    refuse_without("allocations", allocation_bytes.is_some())?;
    // Before there are workers: threads are sampled if the thread that starts them is.
    #[cfg(all(target_os = "linux", feature = "cpu-samples"))]
    sample_threads(recorder.handle(), cpu_hz, off_cpu);
    #[cfg(not(all(target_os = "linux", feature = "cpu-samples")))]
    refuse_without("cpu-samples", cpu_hz.is_some() || off_cpu)?;
    let mut tokio = TokioRecorder::new(recorder.handle());
    if let Some(limit) = long_poll {
        tokio = tokio.trigger_on_long_poll(limit);
    }
    Ok((recorder, tokio))
}

/// Samples the threads. A service must not fail because of the machine that it runs on, so the metadata say if that is not allowed.
#[cfg(all(target_os = "linux", feature = "cpu-samples"))]
fn sample_threads(handle: borehole_recorder::Handle, cpu_hz: Option<u32>, off_cpu: bool) {
    let refused = |kind: &str, sampled: io::Result<()>| {
        if let Err(error) = sampled {
            handle.set_metadata(&format!("{kind}.refused"), &error.to_string());
        }
    };
    if let Some(hz) = cpu_hz {
        refused("cpu_samples", handle.sample_cpu(hz));
    }
    if off_cpu {
        refused("off_cpu_samples", handle.sample_off_cpu());
    }
}

#[cfg(feature = "upload")]
fn started(settings: Settings) -> io::Result<Recorder> {
    crate::upload::start(settings)
}

#[cfg(not(feature = "upload"))]
fn started(settings: Settings) -> io::Result<Recorder> {
    refuse_without("upload", settings.upload.is_some() || settings.lake.is_some())?;
    settings.builder.start()
}

/// An error if a setting needs a feature that is not there.
#[allow(dead_code, reason = "a program with all features refuses nothing")]
fn refuse_without(feature: &str, is_needed: bool) -> io::Result<()> {
    if !is_needed {
        return Ok(());
    }
    let message = format!(
        "unsupported setting: this program is built without the feature `{feature}` of borehole-tokio"
    );
    Err(io::Error::new(io::ErrorKind::Unsupported, message))
}
