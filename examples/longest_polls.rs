//! Reads typed events from traces of a Tokio program, written by Borehole or dial9, and lists where the tasks with the longest
//! polls were spawned.
//!
//! ```text
//! cargo run -p borehole-recorder --example longest_polls -- traces/*
//! ```

use std::collections::HashMap;
use std::error::Error;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::{cmp, env};

use borehole_recorder::trc::{ReadEvent, Reader, TypedEvents};

/// The start of a poll. Fields and events that are not named here are skipped.
#[derive(ReadEvent)]
#[traceevent(name = "PollStartEvent")]
struct PollStart<'a> {
    #[traceevent(timestamp)]
    at_ns: u64,
    worker_id: u64,
    spawn_loc: &'a str,
}

#[derive(ReadEvent)]
#[traceevent(name = "PollEndEvent")]
struct PollEnd {
    #[traceevent(timestamp)]
    at_ns: u64,
    worker_id: u64,
}

/// An event that this program reads.
#[derive(ReadEvent)]
enum Poll<'a> {
    Start(PollStart<'a>),
    End(PollEnd),
}

/// The polls of the tasks that were spawned at one place.
#[derive(Default)]
struct Polls {
    count: u64,
    total_ns: u64,
    longest_ns: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut places = HashMap::new();
    for path in env::args().skip(1) {
        read(Path::new(&path), &mut places).map_err(|error| format!("{path}: {error}"))?;
    }
    let mut places: Vec<_> = places.into_iter().collect();
    places.sort_by_key(|(_, polls)| cmp::Reverse(polls.longest_ns));
    let mut output = io::stdout().lock();
    writeln!(output, "{:>12} {:>12} {:>9}  spawned at", "longest us", "mean us", "polls")?;
    for (place, Polls { count, total_ns, longest_ns }) in &places {
        writeln!(output, "{:>12} {:>12} {count:>9}  {place}", longest_ns / 1_000, total_ns / count / 1_000)?;
    }
    Ok(())
}

fn read(path: &Path, places: &mut HashMap<String, Polls>) -> Result<(), Box<dyn Error>> {
    let mut reader = Reader::new(File::open(path)?);
    let mut typed = TypedEvents::default();
    // The poll that each worker is running: its start, and where its task was spawned.
    let mut open: HashMap<u64, (u64, String)> = HashMap::new();
    while let Some(event) = reader.next_event()? {
        match typed.read(&event)? {
            Some(Poll::Start(poll)) => {
                open.insert(poll.worker_id, (poll.at_ns, poll.spawn_loc.to_owned()));
            }
            Some(Poll::End(poll)) => {
                if let Some((start_ns, place)) = open.remove(&poll.worker_id) {
                    let polls = places.entry(place).or_default();
                    let took_ns = poll.at_ns.saturating_sub(start_ns);
                    polls.count += 1;
                    polls.total_ns = polls.total_ns.saturating_add(took_ns);
                    polls.longest_ns = polls.longest_ns.max(took_ns);
                }
            }
            None => {}
        }
    }
    Ok(())
}
