//! `borehole record`.

mod args;
mod lake;
mod output;
mod progress;
mod reli_json;
pub(crate) mod targets;

use std::os::unix::process::ExitStatusExt as _;
use std::thread;

use anyhow::{anyhow, ensure};
use borehole::capture::{Coordinator, Ending, SampleStatistics, SamplingSession, SegmentMetadata};
use signal_hook::consts::SIGTERM;

pub(crate) use args::{Detected, PhpArgs, RecordArgs, Sampling, parse_release};
pub(crate) use output::{Earlier, Encoding, Files, RecordingOutput, RecordingPlace, Single, Workers};

use crate::exit::Exit;
use crate::interrupt;
use crate::messages;
use crate::stdout::stdout_of_command;
use progress::Watcher;

/// A recording to make, from any command line.
pub(crate) struct RecordingPlan {
    pub(crate) targets: targets::Targets,
    pub(crate) sampling: Sampling,
    pub(crate) destination: RecordingOutput,
}

pub(crate) fn run(args: &RecordArgs) -> anyhow::Result<Exit> {
    let Some(lake) = &args.lake.lake else {
        return record(recording(args)?);
    };
    let waiting = args.lake.waiting_place(lake)?;
    let exit = match recording(&args.into_file(waiting.recording())).and_then(record) {
        Ok(exit) => exit,
        Err(error) => {
            waiting.keep();
            return Err(error);
        }
    };
    args.lake.add(lake, waiting)?;
    Ok(exit)
}

fn recording(args: &RecordArgs) -> anyhow::Result<RecordingPlan> {
    Ok(RecordingPlan {
        targets: args.targets()?,
        sampling: args.sampling(),
        destination: args.destination()?,
    })
}

/// Samples until the processes end, a limit is reached, or the user interrupts.
pub(crate) fn record(recording: RecordingPlan) -> anyhow::Result<Exit> {
    let RecordingPlan { targets, sampling: Sampling { options, php }, destination } = recording;
    interrupt::heed();
    destination.check()?;
    let mut watcher = Watcher::new(options.period, php.release);
    let (finder, command) = targets.finder(php, stdout_of_command(destination.is_stdout()))?;
    let mut coordinator = Coordinator::new(finder, command);
    let sampled: anyhow::Result<_> = match destination {
        RecordingOutput::Workers(workers) => workers.run(coordinator, options, &mut watcher),
        RecordingOutput::Single(single) => {
            let (shared, arrivals) = coordinator.seat();
            thread::scope(|scope| {
                let watching =
                    scope.spawn(|| coordinator.run(interrupt::requested, |news| watcher.hear(news)));
                let statistics = single
                    .run(|output| SamplingSession::new(options, header(), output, shared).run(&arrivals));
                let panicked = |_| anyhow!("the thread that looks for processes panicked");
                let found = watching.join().map_err(panicked);
                Ok((statistics?, found??))
            })
        }
    };
    watcher.finish();
    let (statistics, ending) = sampled?;
    if let Some(said) = ending.and_then(bad_ending) {
        messages::say(&said);
    }
    conclude(&statistics, &watcher)
}

/// A warning about the end of the command; `None` if it succeeded or was asked to end.
fn bad_ending(ending: Ending) -> Option<String> {
    let Ending::Ended(status) = ending else {
        return Some("warning: the command was asked to end but still runs".to_owned());
    };
    let was_asked = interrupt::requested() || status.signal() == Some(SIGTERM);
    (!status.success() && !was_asked).then(|| format!("warning: the command ended with {status}"))
}

/// The metadata of each segment.
pub(crate) fn header() -> SegmentMetadata {
    SegmentMetadata::of_this_machine().with("recorder", concat!("borehole ", env!("CARGO_PKG_VERSION")))
}

fn conclude(statistics: &SampleStatistics, watcher: &Watcher) -> anyhow::Result<Exit> {
    messages::say(&progress::summary(statistics, watcher.period()));
    let is_in_vain = progress::is_in_vain(statistics);
    let nothing = || format!("nothing was sampled: {}", watcher.why_nothing(statistics));
    if !interrupt::requested() {
        ensure!(!is_in_vain, nothing());
        return Ok(Exit::Done);
    }
    // A user who interrupts while waiting for processes knows that there were none.
    if is_in_vain && statistics.attached > 0 {
        messages::say(&format!("warning: {}", nothing()));
    }
    Ok(Exit::Interrupted)
}

#[cfg(test)]
mod tests {
    use std::process::ExitStatus;

    use super::*;

    #[test]
    fn a_command_that_failed_by_itself_is_said_to_have() {
        let said = |status: i32| bad_ending(Ending::Ended(ExitStatus::from_raw(status)));
        assert_eq!(said(0), None);
        assert_eq!(said(3 << 8).unwrap(), "warning: the command ended with exit status: 3");
        assert_eq!(said(SIGTERM), None);
        assert!(said(11).unwrap().contains("signal: 11"));
        assert!(bad_ending(Ending::StillRuns).unwrap().contains("still runs"));
    }
}
