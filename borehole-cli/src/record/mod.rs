//! `borehole record`.

mod args;
mod lake;
mod output;
mod progress;
mod reli_json;
pub(crate) mod targets;

use std::thread;

use anyhow::bail;
use borehole::capture::{Coordinator, Error, Header, Session, Statistics};

pub(crate) use args::{Detected, PhpArgs, RecordArgs, Sampling, parse_release};
pub(crate) use output::{Destination, Encoding, Place, Single, Workers};

use crate::exit::Exit;
use crate::interrupt;
use crate::messages;
use crate::utc;
use progress::Watcher;

/// What is to be done, whichever command line said so.
pub(crate) struct Recording {
    pub(crate) targets: targets::Targets,
    pub(crate) sampling: Sampling,
    pub(crate) destination: Destination,
}

pub(crate) fn run(args: &RecordArgs) -> anyhow::Result<Exit> {
    if args.lake.lake.is_none() {
        return run_into(args);
    }
    let (place, began_s) = (args.lake.waiting_place()?, utc::now_s());
    let exit = run_into(&args.timed_into(&place))?;
    args.lake.add(&place, began_s)?;
    Ok(exit)
}

fn run_into(args: &RecordArgs) -> anyhow::Result<Exit> {
    record(Recording {
        targets: args.targets()?,
        sampling: args.sampling(),
        destination: args.destination()?,
    })
}

/// Samples until there is nothing more to sample, or it is enough, or the user asks to stop.
pub(crate) fn record(recording: Recording) -> anyhow::Result<Exit> {
    let Recording { targets, sampling, destination } = recording;
    interrupt::heed();
    destination.check()?;
    let (finder, command) = targets.finder(&sampling)?;
    let mut coordinator = Coordinator::new(finder, command);
    let mut watcher = Watcher::new(sampling.options.period);
    let (result, told) = match destination {
        Destination::Workers(workers) => workers.run(coordinator, &sampling, &mut watcher),
        Destination::Single(single) => {
            let (shared, arrivals) = coordinator.seat();
            let header = header();
            thread::scope(|scope| {
                let watching =
                    scope.spawn(|| coordinator.run(interrupt::requested, |news| watcher.hear(news)));
                let result = single
                    .run(|output| Session::new(sampling.options, header, output, shared).run(&arrivals));
                (result, watching.join())
            })
        }
    };
    watcher.finish();
    let statistics = result?;
    let _status = told.map_err(|_| anyhow::anyhow!("the thread that looks for processes has panicked"))??;
    conclude(&statistics, &watcher)
}

/// What each segment says of its origin.
pub(crate) fn header() -> Header {
    Header::of_this_machine().with("recorder", concat!("borehole ", env!("CARGO_PKG_VERSION")))
}

fn conclude(statistics: &Statistics, watcher: &Watcher) -> anyhow::Result<Exit> {
    messages::say(&progress::summary(statistics, watcher.period()));
    if statistics.attached == 0 && !interrupt::requested() {
        match watcher.last_refusal() {
            Some(refusal) => bail!("nothing was sampled: {refusal}"),
            None => bail!("nothing was sampled: expected a process that runs PHP, found none"),
        }
    }
    Ok(if interrupt::requested() { Exit::Interrupted } else { Exit::Done })
}

/// The end of a thread of ours.
pub(crate) type Told = thread::Result<Result<Option<std::process::ExitStatus>, Error>>;
