//! Finds processes and gives them to sessions.

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
    sessions: Vec<Seat>,
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
        Self { finder, command, sessions: Vec::new() }
    }

    /// A place for one more session: what it shares with this one, and where its processes arrive.
    pub fn seat(&mut self) -> (Shared, Receiver<Box<dyn Subject>>) {
        let (sender, arrivals) = mpsc::channel();
        let shared = Shared::default();
        self.sessions.push(Seat { arrivals: Some(sender), shared: shared.clone(), processes: 0 });
        (shared, arrivals)
    }

    /// Works until all sessions have ended, or can no longer begin; asks them to when `is_interrupted`. Answers how the command
    /// ended, if there was one. It is asked to end with them.
    ///
    /// # Errors
    /// When processes cannot be listed.
    pub fn run(
        mut self,
        is_interrupted: impl Fn() -> bool,
        mut tell: impl FnMut(News),
    ) -> Result<Option<std::process::ExitStatus>, Error> {
        let start_ns = now_ns();
        let (mut look_ns, mut progress_ns) = (0, start_ns + PROGRESS_NS);
        for seat in &self.sessions {
            seat.shared.watch();
        }
        while !self.sessions.iter().all(Seat::has_ended) {
            if is_interrupted() {
                self.stop();
            }
            self.note_departures(&mut tell);
            if now_ns() >= look_ns {
                self.look(&mut tell)?;
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
        Ok(self.command.and_then(|mut command| command.end(COMMAND_PATIENCE)))
    }

    fn stop(&self) {
        for seat in &self.sessions {
            seat.shared.stop();
        }
    }

    fn look(&mut self, tell: &mut impl FnMut(News)) -> Result<(), Error> {
        if self.is_exhausted() {
            for seat in &mut self.sessions {
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
        let least =
            self.sessions.iter_mut().filter(|seat| !seat.has_ended()).min_by_key(|seat| seat.processes);
        let Some(seat) = least else { return };
        if let Some(arrivals) = &seat.arrivals
            && arrivals.send(subject).is_ok()
        {
            seat.processes += 1;
        }
    }

    fn note_departures(&mut self, tell: &mut impl FnMut(News)) {
        for seat in &mut self.sessions {
            for process in seat.shared.take_departed() {
                seat.processes = seat.processes.saturating_sub(1);
                self.finder.forget(process);
                tell(News::Departed(process));
            }
        }
    }

    fn progress(&self) -> Progress {
        let mut all = Progress::default();
        for seat in &self.sessions {
            let progress = seat.shared.progress();
            all.statistics += progress.statistics;
            all.processes.extend(progress.processes);
        }
        all
    }
}

/// How long a command that is no longer sampled may take to end.
const COMMAND_PATIENCE: Duration = Duration::from_secs(5);
