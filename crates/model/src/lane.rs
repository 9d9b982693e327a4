//! Lanes: the rows of a view over time.
//!
//! A lane is a thread of an interpreter of a process. Processes and threads usually have the numbers of the operating
//! system. Documents of other programs have two further kinds of ids, which share the same 64 bits: see [`LaneId`].

use std::fmt;

use crate::sample::Sample;
use crate::sink::Context;
use crate::threads::Thread;

/// A process, thread and interpreter. Absent: `None` is unknown; all unknown ones share a lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Lane {
    /// The process, encoded as a [`LaneId`]: see [`LaneId::of_process`].
    pub process: Option<i64>,
    /// The thread, encoded as a [`LaneId`]: see [`LaneId::of`].
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

/// The meaning of a thread or process number. [`fmt::Display`] writes it for people.
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
    /// A number of the operating system.
    System(u64),
    /// A number of the operating system that an earlier process or thread had before: `100.1` in files of samply.
    Reused {
        /// The operating system's number, below 2^48.
        number: u64,
        /// The use of the number: 1 is the second use. Below 2^14.
        use_number: u64,
    },
    /// A profile of a document, 0-based, that states no thread number.
    Profile(u64),
}

/// Numbers with this bit set are not the operating system's, which fit in 48 bits on every existing system.
const OWN: u64 = 1 << 63;
/// Set beside [`OWN`]: the thread is a profile of a document.
const PROFILE: u64 = 1 << 62;
const NUMBER_BITS: u32 = 48;

impl LaneId {
    /// Decodes the number of a thread.
    #[must_use]
    pub const fn of(number: u64) -> Self {
        // Negative numbers, which programs write for unknown ids, have all upper bits set.
        if number & OWN == 0 || number >> NUMBER_BITS == 0xffff {
            Self::System(number)
        } else if number & PROFILE != 0 {
            Self::Profile(number & !(OWN | PROFILE))
        } else {
            let (low, high) = (number & ((1 << NUMBER_BITS) - 1), (number & !OWN) >> NUMBER_BITS);
            Self::Reused { number: low, use_number: high }
        }
    }

    /// Decodes the number of a process.
    #[must_use]
    pub const fn of_process(number: i64) -> Self {
        Self::of(number.cast_unsigned())
    }

    /// Encodes this id as the number of a process.
    #[must_use]
    pub const fn to_process(self) -> i64 {
        self.to_u64().cast_signed()
    }

    /// Encodes this id as the number of a thread.
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

    /// Parses the text that [`fmt::Display`] writes; `None` if it is invalid or a number is too large.
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
            // Programs write negative numbers for unknown ids.
            Self::System(number) if *number >> NUMBER_BITS == 0xffff => write!(f, "{}", number.cast_signed()),
            Self::System(number) => write!(f, "{number}"),
            Self::Reused { number, use_number } => write!(f, "{number}.{use_number}"),
            Self::Profile(index) => write!(f, "#{}", index + 1),
        }
    }
}

/// The process and thread that the name of a lane contains, in documents that identify lanes by name only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaneName<'a> {
    /// The process.
    pub process: Option<i64>,
    /// The thread.
    pub thread: Option<LaneId>,
    /// The name without the numbers; `None` if nothing remains.
    pub name: Option<&'a str>,
}

impl<'a> LaneName<'a> {
    /// Parses names such as `Thread 27126 "MainThread"`, `Process 27109 Thread 27126`, `process 1, thread 2, worker`, and
    /// other combinations of these words. All other text is the name.
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
    fn the_three_kinds_of_ids_are_distinguished_and_restored() {
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
