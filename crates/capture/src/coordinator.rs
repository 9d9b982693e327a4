//! Finds processes and assigns them to sessions.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use borehole_process::{Ending, Launched};

use crate::control::{SessionControl, SessionProgress};
use crate::error::Error;
use crate::finder::Finder;
use crate::schedule::now_ns;
use crate::subject::Subject;

/// Finds processes and assigns each to the session that has the fewest.
pub struct Coordinator {
    finder: Finder,
    command: Option<Launched>,
    seats: Vec<Seat>,
    /// The number of samples that all sessions have written.
    written: Arc<AtomicU64>,
}

struct Seat {
    /// `None` once no more processes will arrive.
    arrivals: Option<Sender<Box<dyn Subject>>>,
    shared: SessionControl,
    processes: usize,
}

impl Seat {
    fn has_ended(&self) -> bool {
        self.shared.has_ended() || self.shared.is_last()
    }
}

/// A notification to the caller of [`Coordinator::run`].
pub enum News {
    /// A process is sampled from now on.
    Attached {
        /// The process number.
        process: i32,
        /// The known facts of the process: keys and values.
        facts: Vec<(String, String)>,
    },
    /// A process has ended or replaced its program.
    Departed(i32),
    /// A process cannot be sampled.
    Refused(i32, Error),
    /// The progress of all sessions together, twice a second.
    Progress(SessionProgress),
}

/// The interval of the search for new processes.
const LOOK_NS: u64 = 500_000_000;

/// The interval while a command has just been started.
const EAGER_LOOK_NS: u64 = 5_000_000;

/// The time for which a command counts as just started.
const EAGER_FOR_NS: u64 = 3_000_000_000;

const PROGRESS_NS: u64 = 500_000_000;

/// The interval at which the caller is asked whether to stop. Notifications from a session wake the coordinator, so it
/// need not wake more often: each time costs as much CPU as a sample.
const STEP_NS: u64 = 50_000_000;

impl Coordinator {
    /// Creates a coordinator that assigns the processes that `finder` finds. `command` is the command started for it, if any.
    #[must_use]
    pub fn new(finder: Finder, command: Option<Launched>) -> Self {
        Self { finder, command, seats: Vec::new(), written: Arc::default() }
    }

    /// Adds a session: returns the state that it shares with this coordinator, and the channel on which its processes arrive.
    pub fn seat(&mut self) -> (SessionControl, Receiver<Box<dyn Subject>>) {
        let (sender, arrivals) = mpsc::channel();
        let shared = SessionControl::counting_in(Arc::clone(&self.written));
        self.seats.push(Seat { arrivals: Some(sender), shared: shared.clone(), processes: 0 });
        (shared, arrivals)
    }

    /// Runs until all sessions have ended or have been dropped before they began. Asks them to end when
    /// `is_interrupted`, or when one has failed, because nothing samples the processes of a failed session. Then ends
    /// the command and its descendants too, and returns its outcome; `None` if there was none.
    ///
    /// # Errors
    /// If processes cannot be listed. Sessions are asked to end in this case too.
    pub fn run(
        mut self,
        is_interrupted: impl Fn() -> bool,
        mut tell: impl FnMut(News),
    ) -> Result<Option<Ending>, Error> {
        let watched = self.watch(&is_interrupted, &mut tell);
        // Nothing else would end the sessions.
        self.stop();
        for (process, error) in self.finder.unreported() {
            tell(News::Refused(process, error));
        }
        let ending = self.command.map(|mut command| command.end(COMMAND_PATIENCE));
        watched.map(|()| ending)
    }

    /// Assigns processes until all sessions have ended, or no more processes can be found.
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

    fn progress(&self) -> SessionProgress {
        let mut all = SessionProgress::default();
        for seat in &self.seats {
            let progress = seat.shared.progress();
            all.statistics += progress.statistics;
            all.processes.extend(progress.processes);
        }
        all
    }
}

/// The time that a command has to end when it is no longer sampled.
const COMMAND_PATIENCE: Duration = Duration::from_secs(5);
