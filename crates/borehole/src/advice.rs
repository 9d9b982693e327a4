//! The way out of an error, as data.

use std::fmt;

/// A way out of an error.
///
/// The text of an error says what is wrong and where. What to do next depends on the program: the command names its
/// options, a server its requests. Its [`Display`](fmt::Display) is for programs that have no words of their own.
///
/// # Examples
///
/// ```
/// use borehole::{Advice, Input, InputOptions, Source};
///
/// let notes = Source::reader("notes.txt", &b"Buy milk\n"[..]);
/// let error = Input::open(notes, &InputOptions::default()).err().expect("notes are no profile");
/// assert_eq!(error.advice(), Some(Advice::NameFormat));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Advice {
    /// Read the intact parts of a damaged file: [`ReadOptions::lenient`](crate::ReadOptions::lenient), or `lenient` of
    /// heaps.
    ReadOn,
    /// Name the format, which the content does not show: [`InputOptions::format`](crate::InputOptions::format).
    NameFormat,
    /// Choose a format that can be read or written: [`Format::ALL`](crate::Format::ALL).
    OtherFormat,
    /// Decompress the file first, with the program that is named.
    Decompress(&'static str),
    /// The file holds a heap, not a profile.
    Heap {
        /// The short name of the heap's format.
        format: &'static str,
        /// Whether heaps of that format can be read.
        is_readable: bool,
    },
    /// The file holds a profile, not a heap.
    Profile,
    /// The file is of another program; how to make a profile of it.
    Foreign(&'static str),
    /// Replace the file that exists: [`Existing::Replace`](crate::Existing::Replace).
    Replace {
        /// Whether the file is the rest of an output that was never completed, and could be recovered.
        is_unfinished: bool,
    },
    /// The file is damaged, which may be the cause; the damage.
    Damaged(String),
    /// The database has other runs.
    OtherRun,
    /// Set this variable of the environment to the password.
    Password(&'static str),
    /// The file is a graph, not a database: make a database of it.
    Import,
    /// The database is damaged: other programs may read a part of it.
    Salvage,
    /// Try again when the server is back. Nothing incomplete is stored.
    TryAgain {
        /// Whether it was waited for as long as was allowed, so that waiting longer may help.
        was_waited_for: bool,
    },
    /// Wait longer for the answer of a database.
    MoreTime,
    /// Allow the program to hold more memory.
    MoreMemory,
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReadOn => f.write_str("read the intact parts"),
            Self::NameFormat => f.write_str("name the format"),
            Self::OtherFormat => f.write_str("choose another format"),
            Self::Decompress(program) => write!(f, "decompress it first, with {program}"),
            Self::Heap { is_readable: true, .. } => f.write_str("open it as a heap"),
            Self::Heap { format, .. } => {
                write!(f, "the file holds a heap as {format}, which only other programs can read")
            }
            Self::Profile => f.write_str("open it as a profile"),
            Self::Foreign(how) => f.write_str(how),
            Self::Replace { is_unfinished: false } => f.write_str("replace the file"),
            Self::Replace { is_unfinished: true } => f.write_str("recover or replace the file"),
            Self::Damaged(damage) => write!(f, "the file is damaged, which may be the cause: {damage}"),
            Self::OtherRun => f.write_str("choose another run"),
            Self::Password(variable) => write!(f, "set {variable} to the password"),
            Self::Import => f.write_str("the file holds a heap; make a database of it"),
            Self::Salvage => f.write_str("read what is left with another program"),
            Self::TryAgain { was_waited_for } => {
                let wait = if *was_waited_for { ", or wait longer" } else { "" };
                write!(f, "incomplete runs are not stored; try again when the server is back{wait}")
            }
            Self::MoreTime => f.write_str("wait longer"),
            Self::MoreMemory => f.write_str("allow more memory"),
        }
    }
}
