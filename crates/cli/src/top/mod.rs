//! `borehole top`.

mod board;
mod keys;
mod table;

use std::io::{self, IsTerminal as _, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use borehole::capture::{
    Coordinator, Idle, News, SampleOptions, SamplingSession, SessionControl, SessionProgress,
};
use borehole_analysis::Pattern;
use borehole_tui::{BEGIN_UPDATE, END_UPDATE};
use clap::Args;

use crate::cell::is_drawn_over;
use crate::exit::Exit;
use crate::interrupt;
use crate::messages::{NO_THREAD, say};
use crate::record::targets::Targets;
use crate::record::{NativeArgs, PhpArgs, header};
use crate::refusal;
use crate::stdout::{put, stdout_error, stdout_of_command};
use crate::suspend;
use crate::values::duration;
use board::{Board, BoardSink};
use keys::{Keys, PressedKey};
use table::{TopOrder, View};

/// The arguments of `borehole top`.
#[derive(Args, Clone, Debug)]
pub(crate) struct TopArgs {
    /// Watch this process
    #[arg(short, long, value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    pub(crate) pid: Option<i32>,

    /// Watch all processes whose command line matches
    #[arg(short = 'P', long, value_name = "REGEX", conflicts_with = "pid")]
    pub(crate) pattern: Option<String>,

    /// Samples per second of each process
    #[arg(short, long, value_name = "HZ", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) rate: u32,

    /// Time between updates of the table
    #[arg(short, long, value_name = "DURATION", default_value = "1s", value_parser = duration)]
    pub(crate) interval: Duration,

    /// How long to watch
    #[arg(short, long, value_name = "DURATION", value_parser = duration)]
    pub(crate) duration: Option<Duration>,

    /// Print one table after the other; the default without a terminal
    #[arg(long)]
    pub(crate) plain: bool,

    /// Print one line of JSON per update
    #[arg(long)]
    pub(crate) json: bool,

    /// Maximum number of frames per stack, counted from the leaf
    #[arg(long, value_name = "FRAMES", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) depth: Option<u32>,

    #[command(flatten)]
    pub(crate) php: PhpArgs,

    #[command(flatten)]
    pub(crate) native: NativeArgs,
}

/// The minimum time that a last table must cover to be printed.
const TOO_SHORT: Duration = Duration::from_millis(200);

/// The maximum time to wait for a key before checking whether the table is due.
const PATIENCE: Duration = Duration::from_millis(50);

pub(crate) fn run(args: &TopArgs) -> anyhow::Result<Exit> {
    let period = Duration::from_secs(1) / args.rate;
    watch(args, period)
}

/// Watches with one sample per `period`.
pub(crate) fn watch(args: &TopArgs, period: Duration) -> anyhow::Result<Exit> {
    let targets = match (args.pid, &args.pattern) {
        (Some(process), None) => Targets::Process(process),
        (None, Some(pattern)) => Targets::Matching(Pattern::new(pattern)?),
        _ => bail!("missing target: expected -p PID or -P REGEX"),
    };
    interrupt::heed();
    suspend::defer();
    let options = SampleOptions {
        period: Some(period),
        duration: args.duration,
        idle: Idle::Skip,
        ..SampleOptions::default()
    };
    let mut subjects = args.php.subjects(args.depth);
    args.native.apply(args.depth, args.pid.is_some(), &mut subjects);
    let (finder, command) = targets.finder(subjects, stdout_of_command(true))?;
    let mut coordinator = Coordinator::new(finder, command);
    let (shared, arrivals) = coordinator.seat();
    let board = Arc::new(Mutex::new(Board::default()));
    let refusals = Mutex::new(Vec::new());
    thread::scope(|scope| {
        let mut sink = BoardSink(Arc::clone(&board));
        let sharing = shared.clone();
        let sampling = move || SamplingSession::new(options, header(), &mut sink, sharing).run(&arrivals);
        let session = thread::Builder::new().spawn_scoped(scope, sampling).context(NO_THREAD)?;
        let hear = |news| {
            if let News::Refused(process, error) = news
                && !error.is_other_program()
            {
                let refused = refusal::text(process, &error);
                refusals.lock().unwrap_or_else(PoisonError::into_inner).push(refused);
            }
        };
        let finding =
            thread::Builder::new().spawn_scoped(scope, move || coordinator.run(interrupt::requested, hear));
        let finding = finding.inspect_err(|_| shared.stop()).context(NO_THREAD)?;
        let shown = Screen { args, shared: &shared, board: &board }.show();
        shared.stop();
        session.join().map_err(|_| anyhow!("the sampling thread panicked"))??;
        finding.join().map_err(|_| anyhow!("the thread that looks for processes panicked"))??;
        shown
    })?;
    for refused in refusals.into_inner().unwrap_or_else(PoisonError::into_inner) {
        say(&format!("warning: not sampled: {refused}"));
    }
    if shared.progress().statistics.attached == 0 && !interrupt::requested() {
        bail!(
            "nothing was sampled: expected a process that runs PHP or Python (with --native, any program), found none"
        );
    }
    Ok(Exit::Done)
}

/// The display and its data.
struct Screen<'a> {
    args: &'a TopArgs,
    shared: &'a SessionControl,
    board: &'a Mutex<Board>,
}

impl Screen<'_> {
    fn show(&self) -> anyhow::Result<()> {
        let is_terminal = is_drawn_over(&io::stdout()) && io::stdin().is_terminal();
        if self.args.json || self.args.plain || !is_terminal { self.print() } else { self.interact() }
    }

    fn progress(&self) -> SessionProgress {
        self.shared.progress()
    }

    /// Prints one table after the other until sampling ends.
    fn print(&self) -> anyhow::Result<()> {
        let mut view = View::begin();
        loop {
            let start = Instant::now();
            let ended = self.wait();
            if ended && start.elapsed() < TOO_SHORT && view.has_any() {
                return Ok(());
            }
            view.take(&self.board.lock().unwrap_or_else(PoisonError::into_inner));
            let text = if self.args.json {
                view.as_json(&self.progress())
            } else {
                view.as_text(&self.progress(), usize::MAX, 0) + "\n"
            };
            put(&text, self.args.json)?;
            if ended {
                return Ok(());
            }
        }
    }

    /// Waits until the next table is due. Returns whether sampling has ended.
    fn wait(&self) -> bool {
        let start = Instant::now();
        while let Some(rest) = self.args.interval.checked_sub(start.elapsed()).filter(|rest| !rest.is_zero())
        {
            if self.shared.has_ended() {
                return true;
            }
            thread::sleep(PATIENCE.min(rest));
        }
        false
    }

    /// Shows a table that is kept up to date, and leaves the last one when sampling ends.
    fn interact(&self) -> anyhow::Result<()> {
        let mut view = View::begin();
        if self.attend(&mut view)? == Left::ByUser {
            return Ok(());
        }
        view.take(&self.board.lock().unwrap_or_else(PoisonError::into_inner));
        let text = view.as_text(&self.progress(), usize::MAX, 0);
        put(&text, false)?;
        let has_gone = |process: &i32| self.args.duration.is_none() || !is_there(*process);
        if let Some(process) = self.args.pid.filter(has_gone) {
            say(&format!("process {process} has ended"));
        }
        Ok(())
    }

    /// Updates the table and handles keys until the user quits or sampling ends.
    fn attend(&self, view: &mut View) -> anyhow::Result<Left> {
        let mut keys = Keys::start()?;
        let mut ticks = Ticks { last: None, interval: self.args.interval };
        while !interrupt::requested() {
            if self.shared.has_ended() {
                return Ok(Left::AtEnd);
            }
            let Some(pressed) = keys.next(PATIENCE)? else { break };
            for &key in &pressed {
                if key == PressedKey::Char('q') && !view.is_typing() {
                    return Ok(Left::ByUser);
                }
                view.press(key);
            }
            let is_due = ticks.take(Instant::now());
            if is_due && !view.is_paused() {
                view.take(&self.board.lock().unwrap_or_else(PoisonError::into_inner));
            }
            if is_due || !pressed.is_empty() || keys.was_away() {
                self.draw(view)?;
            }
        }
        Ok(Left::ByUser)
    }

    fn draw(&self, view: &View) -> anyhow::Result<()> {
        let (columns, rows) =
            terminal_size::terminal_size().map_or((80, 24), |(columns, rows)| (columns.0, rows.0));
        let text = view.as_text(&self.progress(), usize::from(rows.saturating_sub(1)), usize::from(columns));
        // Move home, clear each line after its text, and clear the rest of the screen.
        let text = text.replace('\n', "\x1b[K\r\n");
        let update = [BEGIN_UPDATE, b"\x1b[H", text.as_bytes(), b"\x1b[J", END_UPDATE].concat();
        io::stdout().write_all(&update).and_then(|()| io::stdout().flush()).map_err(stdout_error)?;
        Ok(())
    }
}

/// Why the display ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    /// The user quit.
    ByUser,
    /// Sampling ended.
    AtEnd,
}

/// Whether the process exists.
fn is_there(process: i32) -> bool {
    Path::new("/proc").join(process.to_string()).exists()
}

/// When the numbers are next updated, regardless of keys.
struct Ticks {
    last: Option<Instant>,
    interval: Duration,
}

impl Ticks {
    /// Whether an update is due; the first one always is. If so, the next one is due an interval from now.
    fn take(&mut self, now: Instant) -> bool {
        let is_due = self.last.is_none_or(|last| now.duration_since(last) >= self.interval);
        if is_due {
            self.last = Some(now);
        }
        is_due
    }
}

/// The sort order of a key.
pub(crate) const fn sort_of(key: char) -> Option<TopOrder> {
    match key {
        's' => Some(TopOrder::SelfSamples),
        't' => Some(TopOrder::Total),
        'r' => Some(TopOrder::Rate),
        'n' => Some(TopOrder::Name),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_more_often_does_not_put_off_the_numbers() {
        let start = Instant::now();
        let mut ticks = Ticks { last: None, interval: Duration::from_millis(100) };
        let at = |ms| start + Duration::from_millis(ms);
        let due: Vec<_> = (0..=300).step_by(30).filter(|&ms| ticks.take(at(ms))).collect();
        assert_eq!(due, [0, 120, 240]);
    }
}
