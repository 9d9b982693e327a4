//! Lanes: what draws a row of its own over time.
//!
//! A lane is a thread of an interpreter of a process. Processes and threads have the numbers of the operating system, and
//! documents of other programs have two further sorts, which share the 64 bits with them: see [`LaneId`].

use std::fmt;

use crate::sample::Sample;
use crate::sink::Context;
use crate::threads::Thread;

/// What a lane is of. Absent: `None` is unknown, and one lane for all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lane {
    /// The process: see [`LaneId::of_process`].
    pub process: Option<i64>,
    /// The thread: see [`LaneId::of`].
    pub thread: Option<u64>,
    /// The interpreter within the process.
    pub interpreter: Option<u64>,
}

impl Lane {
    /// The thread, with its process.
    #[must_use]
    pub fn thread(&self) -> Option<Thread> {
        self.thread.map(|number| Thread { process: self.process, number })
    }
}

impl Context<'_> {
    /// The lane of a sample.
    #[inline]
    #[must_use]
    pub fn lane(&self, sample: &Sample<'_>) -> Lane {
        Lane { process: self.process(sample), thread: sample.thread, interpreter: sample.interpreter }
    }
}

/// What the number of a thread or a process says. [`fmt::Display`] is how people read it.
///
/// # Examples
///
/// ```
/// use borehole_model::LaneId;
///
/// let reused = LaneId::parse("100.1").unwrap();
/// assert_eq!(reused, LaneId::Reused { number: 100, use_number: 1 });
/// assert_eq!(LaneId::of(reused.to_u64()).to_string(), "100.1");
/// assert_eq!(LaneId::of(100), LaneId::System(100));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LaneId {
    /// The operating system's.
    System(u64),
    /// The operating system's, of one whose number an earlier one had: `100.1` in files of samply.
    Reused {
        /// The operating system's number, below 2^48.
        number: u64,
        /// Which use of it this is: the second one is 1. Below 2^14.
        use_number: u64,
    },
    /// Nobody's: the thread is a profile of a document, 0-based, that tells no number.
    Profile(u64),
}

/// Numbers with this bit set are none of the operating system's: those fit in 48 bits on every system there is.
const OWN: u64 = 1 << 63;
/// Beside [`OWN`]: the thread is a profile of a document.
const PROFILE: u64 = 1 << 62;
const NUMBER_BITS: u32 = 48;

impl LaneId {
    /// What a number says.
    #[must_use]
    pub const fn of(number: u64) -> Self {
        // Numbers below zero, which programs write for what they do not know, have all upper bits.
        if number & OWN == 0 || number >> NUMBER_BITS == 0xffff {
            Self::System(number)
        } else if number & PROFILE != 0 {
            Self::Profile(number & !(OWN | PROFILE))
        } else {
            let (low, high) = (number & ((1 << NUMBER_BITS) - 1), (number & !OWN) >> NUMBER_BITS);
            Self::Reused { number: low, use_number: high }
        }
    }

    /// What the number of a process says.
    #[must_use]
    pub const fn of_process(number: i64) -> Self {
        Self::of(number.cast_unsigned())
    }

    /// The number of a process that says it.
    #[must_use]
    pub const fn to_process(self) -> i64 {
        self.to_u64().cast_signed()
    }

    /// The number of a thread that says it.
    #[must_use]
    pub const fn to_u64(self) -> u64 {
        match self {
            Self::System(number) => number,
            Self::Reused { number, use_number } => OWN | use_number << NUMBER_BITS | number,
            Self::Profile(index) => OWN | PROFILE | index,
        }
    }

    /// The operating system's number, if there is one.
    #[must_use]
    pub const fn system(self) -> Option<u64> {
        match self {
            Self::System(number) | Self::Reused { number, .. } => Some(number),
            Self::Profile(_) => None,
        }
    }

    /// The number that [`fmt::Display`] writes as `text`; `None` where it is no such text, or too large.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(index) = text.strip_prefix('#') {
            let index = index.parse::<u64>().ok()?.checked_sub(1)?;
            return (index < PROFILE).then_some(Self::Profile(index));
        }
        match text.split_once('.') {
            None if text.starts_with('-') => {
                let number: i64 = text.parse().ok()?;
                (number >> NUMBER_BITS == -1).then_some(Self::System(number.cast_unsigned()))
            }
            None => text.parse().ok().map(Self::of),
            Some((number, use_number)) => {
                let (number, use_number): (u64, u64) = (number.parse().ok()?, use_number.parse().ok()?);
                let fits = number < 1 << NUMBER_BITS && use_number < 1 << 14;
                fits.then_some(Self::Reused { number, use_number })
            }
        }
    }
}

impl fmt::Display for LaneId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Programs write numbers below zero for what they do not know.
            Self::System(number) if *number >> NUMBER_BITS == 0xffff => write!(f, "{}", number.cast_signed()),
            Self::System(number) => write!(f, "{number}"),
            Self::Reused { number, use_number } => write!(f, "{number}.{use_number}"),
            Self::Profile(index) => write!(f, "#{}", index + 1),
        }
    }
}

/// What the name of a lane says in documents that have nothing else to tell it by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaneName<'a> {
    /// The process.
    pub process: Option<i64>,
    /// The thread.
    pub thread: Option<LaneId>,
    /// The name without the numbers; `None` where nothing is left.
    pub name: Option<&'a str>,
}

impl<'a> LaneName<'a> {
    /// Reads `Thread 27126 "MainThread"`, `Process 27109 Thread 27126`, `process 1, thread 2, worker`, and whatever is made of
    /// these words. All other text is the name.
    #[must_use]
    pub fn parse(text: &'a str) -> Self {
        let mut lane = Self::default();
        let mut rest = text.trim();
        loop {
            let word_end = rest.find(char::is_whitespace).unwrap_or(rest.len());
            let (word, after) = rest.split_at(word_end);
            let after = after.trim_start();
            let number_end = after.find(|at: char| !at.is_ascii_digit() && at != '.').unwrap_or(after.len());
            let (number, beyond) = after.split_at(number_end);
            let ends = beyond.is_empty() || beyond.starts_with([' ', ',', ':', ';', '"']);
            let taken = ends
                && match word.to_ascii_lowercase().as_str() {
                    "process" | "pid" => {
                        let process = number.parse().ok().filter(|_| lane.process.is_none());
                        lane.process = lane.process.or(process);
                        process.is_some()
                    }
                    "thread" | "tid" => {
                        let thread = LaneId::parse(number).filter(|_| lane.thread.is_none());
                        lane.thread = lane.thread.or(thread);
                        thread.is_some()
                    }
                    _ => false,
                };
            if !taken {
                break;
            }
            rest = beyond.trim_start_matches([' ', ',', ':', ';']);
        }
        let unquoted = rest.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(rest);
        lane.name = Some(unquoted).filter(|name| !name.is_empty());
        lane
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_sorts_of_numbers_are_told_apart_and_come_back() {
        let pthread = 0x7fff_1234_5678_u64;
        let all = [
            LaneId::System(0),
            LaneId::System(pthread),
            LaneId::System(u64::MAX),
            LaneId::Reused { number: 100, use_number: 1 },
            LaneId::Reused { number: (1 << 48) - 1, use_number: (1 << 14) - 1 },
            LaneId::Profile(0),
            LaneId::Profile(9_999_999),
            LaneId::of(1 << 63),
            LaneId::of((1 << 63) + (1 << 62)),
            LaneId::of(u64::MAX - (1 << 48)),
        ];
        for number in all {
            assert_eq!(LaneId::of(number.to_u64()), number);
            assert_eq!(LaneId::of_process(number.to_process()), number);
            assert_eq!(LaneId::parse(&number.to_string()), Some(number));
        }
        for text in ["", "x", "100.", "100.x", "1.2.3", "#0", "#", "-x", "999999999999999999.1"] {
            assert_eq!(LaneId::parse(text), None, "{text}");
        }
    }

    #[test]
    fn names_of_lanes_become_numbers_and_names() {
        let parse = |text: &'static str| {
            let LaneName { process, thread, name } = LaneName::parse(text);
            (process, thread.map(|thread| thread.to_string()), name)
        };
        let thread = |number: &str| Some(number.to_owned());
        assert_eq!(parse("Thread 27126 \"MainThread\""), (None, thread("27126"), Some("MainThread")));
        assert_eq!(parse("Process 27109 Thread 27126"), (Some(27109), thread("27126"), None));
        assert_eq!(parse("process 7, thread 100.1, a \"b\""), (Some(7), thread("100.1"), Some("a \"b\"")));
        assert_eq!(parse("Process 27109 Thread 27126 \"x y\""), (Some(27109), thread("27126"), Some("x y")));
        assert_eq!(parse("main"), (None, None, Some("main")));
        assert_eq!(parse("Thread pool 7"), (None, None, Some("Thread pool 7")));
        assert_eq!(parse("thread 7up"), (None, None, Some("thread 7up")));
        assert_eq!(parse("thread 1 thread 2"), (None, thread("1"), Some("thread 2")));
        assert_eq!(parse(""), (None, None, None));
    }
}
