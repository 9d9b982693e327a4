//! Threads that sleep where they were when they were looked at last. Their stack is known without looking again, and without
//! stopping them again, which would wake them.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use borehole_native::StackPrint;
use borehole_process::{Process, Registers};

use crate::subject::Look;
use crate::thread_files::ThreadTurns;

/// A thread that has not run since it was looked at.
#[derive(Debug, Default)]
pub(crate) struct SleepWatch {
    /// `None` if the system does not count the thread's turns: nothing is known then.
    turns: Option<ThreadTurns>,
    /// Whether it was off its CPU at the last look: its turns are worth reading then.
    has_slept: bool,
    /// Its turns at the last look, and what that found.
    asleep: Option<(u64, Look)>,
}

impl SleepWatch {
    pub(crate) fn of(process: i32, thread: i32) -> Self {
        Self { turns: ThreadTurns::of(process, thread), ..Self::default() }
    }

    /// The result of the last look, if the thread has slept ever since.
    pub(crate) fn look(&self) -> Option<Look> {
        let (turns, look) = self.asleep?;
        (self.turns.as_ref()?.count() == Some(turns)).then_some(look)
    }

    /// The thread's turns, for [`note`](Self::note). To be read before its state: it may be given its CPU in between.
    pub(crate) fn turns(&self) -> Option<u64> {
        self.turns.as_ref().filter(|_| self.has_slept)?.count()
    }

    /// Notes whether the thread was off its CPU, and then what the look found.
    pub(crate) fn note(&mut self, turns: Option<u64>, is_off_cpu: bool, look: Look) {
        let is_known = is_off_cpu && matches!(look, Look::Stack { .. } | Look::Idle);
        self.has_slept = is_off_cpu;
        self.asleep = turns.filter(|_| is_known).map(|turns| (turns, look));
    }

    /// Drops all ids of tables.
    pub(crate) fn forget(&mut self) {
        self.asleep = None;
    }
}

/// A thread as its last stop has shown it.
#[derive(Debug)]
pub(crate) struct RestWatch {
    /// `None` if the system has no such files: nothing is known then.
    files: Option<RestFiles>,
    /// The registers and the print of the stack at the last stop, until its look is complete.
    stopped: Option<(Registers, StackPrint)>,
    resting: Option<RestingThread>,
}

/// The files that say where a thread sleeps, and how long it has run.
#[derive(Debug)]
struct RestFiles {
    place: File,
    times: File,
}

/// A thread as it was when it was stopped.
#[derive(Debug)]
struct RestingThread {
    registers: Registers,
    print: StackPrint,
    look: Look,
}

impl RestWatch {
    pub(crate) fn of(process: i32, thread: i32) -> Self {
        let open = |name: &str| File::open(format!("/proc/{process}/task/{thread}/{name}")).ok();
        let files = open("syscall").zip(open("schedstat"));
        Self { files: files.map(|(place, times)| RestFiles { place, times }), stopped: None, resting: None }
    }

    /// Whether the thread sleeps where it was when it was stopped, so that [`Self::look`] is still true. `buffer` is used for the
    /// comparison.
    pub(crate) fn rests(&mut self, process: &Process, buffer: &mut Vec<u8>) -> bool {
        let known = self.files.as_ref().zip(self.resting.as_ref());
        let rests = known.is_some_and(|(files, resting)| files.still_has(resting, process, buffer));
        if !rests {
            self.resting = None;
        }
        rests
    }

    /// The result of the look when the thread was stopped last; `None` if it has moved on since.
    pub(crate) fn look(&self) -> Option<Look> {
        self.resting.as_ref().map(|resting| resting.look)
    }

    /// Notes where the thread is stopped.
    pub(crate) fn note_stop(&mut self, registers: Option<Registers>, print: Option<StackPrint>) {
        self.stopped = registers.zip(print).filter(|_| self.files.is_some());
    }

    /// Notes what the look at the stopped thread found.
    pub(crate) fn note_look(&mut self, look: Look) {
        let stopped = self.stopped.take().filter(|_| look != Look::Torn);
        self.resting = stopped.map(|(registers, print)| RestingThread { registers, print, look });
    }

    /// Drops all ids of tables.
    pub(crate) fn forget(&mut self) {
        self.resting = None;
    }
}

impl RestFiles {
    /// Whether the thread sleeps where it was when it was stopped, with the same stack.
    fn still_has(&self, known: &RestingThread, process: &Process, buffer: &mut Vec<u8>) -> bool {
        let mut before = [0; 64];
        let length = self.times.read_at(&mut before, 0).unwrap_or_default();
        let is_there = length > 0 && self.place() == Some((known.registers.sp, known.registers.ip));
        if !is_there || !known.print.is_same(process, buffer).unwrap_or(false) {
            return false;
        }
        // It has not run meanwhile, or its time would be another.
        let mut behind = [0; 64];
        self.times.read_at(&mut behind, 0).is_ok_and(|read| behind[..read] == before[..length])
    }

    /// The stack pointer and the address of a thread that sleeps in a system call; `None` if it runs.
    fn place(&self) -> Option<(u64, u64)> {
        let mut text = [0; 192];
        let length = self.place.read_at(&mut text, 0).ok()?;
        parse_place(std::str::from_utf8(&text[..length]).ok()?)
    }
}

/// Source: Linux, `proc(5)`, `/proc/PID/syscall`: the number of the call, its arguments,
/// the stack pointer and the program counter; or `running`.
fn parse_place(text: &str) -> Option<(u64, u64)> {
    let mut words = text.split_ascii_whitespace().rev();
    let mut number = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
    let ip = number()?;
    Some((number()?, ip))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::thread_files::ThreadState;

    #[test]
    fn a_look_is_true_until_the_thread_runs() {
        let (to_thread, orders) = mpsc::channel::<()>();
        let (to_us, answers) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            to_us.send(nix::unistd::gettid().as_raw()).unwrap();
            while orders.recv().is_ok() {
                to_us.send(0).unwrap();
            }
        });
        let (process, number) = (i32::try_from(std::process::id()).unwrap(), answers.recv().unwrap());
        let state = ThreadState::of(process, number).unwrap();
        let mut watch = SleepWatch::of(process, number);
        for _ in 0..3 {
            while watch.look().is_none() {
                let turns = watch.turns();
                watch.note(turns, state.is_on_cpu() == Some(false), Look::Idle);
            }
            assert_eq!(watch.look(), Some(Look::Idle));
            to_thread.send(()).unwrap();
            answers.recv().unwrap();
            assert_eq!(watch.look(), None);
        }
        drop(to_thread);
        thread.join().unwrap();
        assert_eq!(watch.look(), None);
    }

    #[test]
    fn the_place_of_a_thread_is_known_while_it_sleeps() {
        let text = "0 0x0 0x7ffc1 0x1 0x0 0x0 0x0 0x7ffc3c5a1b78 0x7f3a8b0f5d2d\n";
        assert_eq!(parse_place(text), Some((0x7ffc_3c5a_1b78, 0x7f3a_8b0f_5d2d)));
        assert_eq!(
            parse_place("-1 0x7ffc3c5a1b78 0x7f3a8b0f5d2d\n"),
            Some((0x7ffc_3c5a_1b78, 0x7f3a_8b0f_5d2d))
        );
        assert_eq!(parse_place("running\n"), None);
        assert_eq!(parse_place(""), None);
    }
}
