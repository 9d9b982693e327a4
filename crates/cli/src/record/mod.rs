//! `borehole record`.

mod args;
mod journal;
mod lake;
mod lock;
mod output;
mod progress;
mod quit;
mod reli_json;
pub(crate) mod targets;
mod worker_files;

pub(crate) use journal::SUFFIX as JOURNAL_SUFFIX;

use std::thread;

use anyhow::{Context as _, anyhow, ensure};
use borehole::capture::{Coordinator, Ending, SampleStatistics, SamplingSession, SegmentMetadata};

pub(crate) use args::{Detected, NativeArgs, PhpArgs, RecordArgs, Sampling, TasksArgs, parse_release};
pub(crate) use output::{
    Earlier, Encoding, Files, JournalKind, RecordingOutput, RecordingPlace, Single, Workers,
};

use crate::exit::Exit;
use crate::interrupt;
use crate::messages::{self, NO_THREAD};
use crate::stdout::stdout_of_command;
use crate::suspend;
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
    let exit = match recording(&args.with_output(waiting.recording())).and_then(record) {
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
    let RecordingPlan { targets, sampling: Sampling { options, subjects }, destination } = recording;
    interrupt::heed();
    suspend::defer();
    destination.check()?;
    // A command reads the keys itself.
    let _keys = (!targets.is_command()).then(quit::heed);
    let mut watcher = Watcher::new(options.period, subjects.php.release);
    let (finder, command) = targets.finder(subjects, stdout_of_command(destination.is_stdout()))?;
    let mut coordinator = Coordinator::new(finder, command);
    let sampled: anyhow::Result<_> = match destination {
        RecordingOutput::Workers(workers) => workers.run(coordinator, options, &mut watcher),
        RecordingOutput::Single(single) => {
            let (shared, arrivals) = coordinator.seat();
            thread::scope(|scope| {
                let watch = || coordinator.run(quit::asked_to_end, |news| watcher.hear(news));
                let watching = thread::Builder::new().spawn_scoped(scope, watch).context(NO_THREAD)?;
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
    Ok(match (conclude(&statistics, &watcher)?, ending) {
        (Exit::Done, Some(Ending::ByItself(status))) => Exit::of_command(status),
        (exit, _) => exit,
    })
}

/// A warning about the end of the command; `None` if it succeeded or ended when it was asked to.
fn bad_ending(ending: Ending) -> Option<String> {
    match ending {
        // Ctrl-C on a terminal also reaches the command.
        Ending::ByItself(status) if !status.success() && !interrupt::requested() => {
            Some(format!("warning: the command ended with {status}"))
        }
        Ending::ByItself(_) | Ending::Asked(_) => None,
        Ending::Killed => Some("warning: the command did not end when asked, and was killed".to_owned()),
        Ending::StillRuns => Some("warning: the command was killed but still runs".to_owned()),
    }
}

/// The metadata of each segment.
pub(crate) fn header() -> SegmentMetadata {
    SegmentMetadata::of_this_machine().with("recorder", concat!("borehole ", env!("CARGO_PKG_VERSION")))
}

fn conclude(statistics: &SampleStatistics, watcher: &Watcher) -> anyhow::Result<Exit> {
    messages::say(&progress::summary(statistics, watcher.period()));
    progress::native(statistics).iter().for_each(|native| messages::say(native));
    progress::truth(statistics).iter().for_each(|truth| messages::say(truth));
    let is_in_vain = progress::is_in_vain(statistics);
    let nothing = || format!("nothing was sampled: {}", watcher.why_nothing(statistics));
    let exit = if interrupt::requested() { Exit::Interrupted } else { Exit::Done };
    if exit == Exit::Done && !quit::was_pressed() {
        ensure!(!is_in_vain, nothing());
    } else if is_in_vain && statistics.attached > 0 {
        // A user who ends the recording while it waits for processes knows that there were none.
        messages::say(&format!("warning: {}", nothing()));
    }
    Ok(exit)
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;

    use super::*;

    #[test]
    fn a_command_that_failed_by_itself_is_said_to_have() {
        let said = |status: i32| bad_ending(Ending::ByItself(ExitStatus::from_raw(status)));
        assert_eq!(said(0), None);
        assert_eq!(said(3 << 8).unwrap(), "warning: the command ended with exit status: 3");
        assert!(said(11).unwrap().contains("signal: 11"));
        assert_eq!(bad_ending(Ending::Asked(ExitStatus::from_raw(15))), None);
        assert!(bad_ending(Ending::StillRuns).unwrap().contains("still runs"));
    }
}
