//! Finds processes and gives them to sessions.

use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use borehole_process::Launched;

use crate::control::{Progress, Shared};
use crate::error::Error;
use crate::finder::Finder;
use crate::schedule::now_ns;
use crate::subject::Subject;

/// Finds processes and gives them to sessions, to the one that has the fewest.
pub struct Coordinator {
    finder: Finder,
    command: Option<Launched>,
    seats: Vec<Seat>,
    /// How many samples all sessions have written.
    written: Arc<AtomicU64>,
}

/// The way to a session.
struct Seat {
    /// `None` once nothing more is to arrive.
    arrivals: Option<Sender<Box<dyn Subject>>>,
    shared: Shared,
    processes: usize,
}

impl Seat {
    fn has_ended(&self) -> bool {
        self.shared.has_ended() || self.shared.is_last()
    }
}

/// What is told to who watches.
pub enum News {
    /// A process is being sampled from now on.
    Attached {
        /// Its number.
        process: i32,
        /// What is known of it.
        facts: Vec<(String, String)>,
    },
    /// A process has ended or become another program.
    Departed(i32),
    /// A process cannot be sampled.
    Refused(i32, Error),
    /// How far all sessions are together. Told twice a second.
    Progress(Progress),
}

/// What became of a command that was started to be sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It has ended.
    Ended(ExitStatus),
    /// It was asked to end and goes on.
    StillRuns,
}

/// New processes are looked for this often.
const LOOK_NS: u64 = 500_000_000;

/// So often while a command has just been started.
const EAGER_LOOK_NS: u64 = 5_000_000;

/// How long a command counts as just started.
const EAGER_FOR_NS: u64 = 3_000_000_000;

const PROGRESS_NS: u64 = 500_000_000;

/// Who is asked whether to stop is asked this often. Whatever a session has to tell wakes the coordinator: each time that it
/// wakes it takes from the processor what a sample takes.
const STEP_NS: u64 = 50_000_000;

impl Coordinator {
    /// Gives out what `finder` finds; `command` is what was started for it, if anything was.
    #[must_use]
    pub fn new(finder: Finder, command: Option<Launched>) -> Self {
        Self { finder, command, seats: Vec::new(), written: Arc::default() }
    }

    /// A place for one more session: what it shares with this one, and where its processes arrive.
    pub fn seat(&mut self) -> (Shared, Receiver<Box<dyn Subject>>) {
        let (sender, arrivals) = mpsc::channel();
        let shared = Shared::counting_in(Arc::clone(&self.written));
        self.seats.push(Seat { arrivals: Some(sender), shared: shared.clone(), processes: 0 });
        (shared, arrivals)
    }

    /// Works until all sessions have ended, or can no longer begin; asks them to when `is_interrupted`, or one has failed: what
    /// that one was given nobody samples any more. Answers what became of the command, which is asked to end (SIGTERM) with
    /// them; `None` if there was none.
    ///
    /// # Errors
    /// When processes cannot be listed: sessions are asked to end then too.
    pub fn run(
        mut self,
        is_interrupted: impl Fn() -> bool,
        mut tell: impl FnMut(News),
    ) -> Result<Option<Ending>, Error> {
        let watched = self.watch(&is_interrupted, &mut tell);
        // Nobody else would end the sessions.
        self.stop();
        for (process, error) in self.finder.untold() {
            tell(News::Refused(process, error));
        }
        let end = |mut command: Launched| command.end(COMMAND_PATIENCE);
        let ending = self.command.map(|command| end(command).map_or(Ending::StillRuns, Ending::Ended));
        watched.map(|()| ending)
    }

    /// Gives out what is found until all sessions have ended, or nothing can be found any more.
    fn watch(
        &mut self,
        is_interrupted: &impl Fn() -> bool,
        tell: &mut impl FnMut(News),
    ) -> Result<(), Error> {
        let start_ns = now_ns();
        let (mut look_ns, mut progress_ns) = (0, start_ns + PROGRESS_NS);
        for seat in &self.seats {
            seat.shared.watch();
        }
        while !self.seats.iter().all(Seat::has_ended) {
            if is_interrupted() || self.seats.iter().any(|seat| seat.shared.has_failed()) {
                self.stop();
            }
            self.note_departures(tell);
            if now_ns() >= look_ns {
                self.look(tell)?;
                let is_eager = self.command.is_some() && now_ns() - start_ns < EAGER_FOR_NS;
                look_ns = now_ns() + if is_eager { EAGER_LOOK_NS } else { LOOK_NS };
            }
            if now_ns() >= progress_ns {
                tell(News::Progress(self.progress()));
                progress_ns += PROGRESS_NS;
            }
            let wait_ns = look_ns.min(progress_ns).saturating_sub(now_ns());
            thread::park_timeout(Duration::from_nanos(wait_ns.min(STEP_NS)));
        }
        Ok(())
    }

    fn stop(&self) {
        for seat in &self.seats {
            seat.shared.stop();
        }
    }

    fn look(&mut self, tell: &mut impl FnMut(News)) -> Result<(), Error> {
        if self.is_exhausted() {
            for seat in &mut self.seats {
                seat.arrivals = None;
            }
            return Ok(());
        }
        let found = self.finder.look()?;
        for subject in found.attached {
            tell(News::Attached { process: subject.process(), facts: subject.facts() });
            self.give(subject);
        }
        for (process, error) in found.refused {
            tell(News::Refused(process, error));
        }
        Ok(())
    }

    fn is_exhausted(&mut self) -> bool {
        match &mut self.command {
            Some(command) => command.exit_status().is_some(),
            None => self.finder.is_exhausted(),
        }
    }

    fn give(&mut self, subject: Box<dyn Subject>) {
        let least = self.seats.iter_mut().filter(|seat| !seat.has_ended()).min_by_key(|seat| seat.processes);
        let Some(seat) = least else { return };
        if let Some(arrivals) = &seat.arrivals
            && arrivals.send(subject).is_ok()
        {
            seat.processes += 1;
        }
    }

    fn note_departures(&mut self, tell: &mut impl FnMut(News)) {
        for seat in &mut self.seats {
            for process in seat.shared.take_departed() {
                seat.processes = seat.processes.saturating_sub(1);
                self.finder.forget(process);
                tell(News::Departed(process));
            }
        }
    }

    fn progress(&self) -> Progress {
        let mut all = Progress::default();
        for seat in &self.seats {
            let progress = seat.shared.progress();
            all.statistics += progress.statistics;
            all.processes.extend(progress.processes);
        }
        all
    }
}

/// How long a command that is no longer sampled may take to end.
const COMMAND_PATIENCE: Duration = Duration::from_secs(5);
