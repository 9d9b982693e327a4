//! Errors of reading inputs and writing outputs.

use std::{error, fmt, io};

use borehole_formats::detect::{Foreign, Format};
use borehole_formats::{ErrorKind, Position, ReadError};
use borehole_memory::OverBudget;
use borehole_text::{cause, counted};

use crate::Advice;

/// The name of the standard input, as an input.
pub(crate) const STDIN: &str = "standard input";

/// The reason why an input could not be read or an output could not be written. It names the file.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// An input could not be opened.
    Open {
        /// The input, as the user named it.
        name: String,
        /// The cause.
        source: io::Error,
    },
    /// The format of an input could not be detected.
    Unrecognised {
        /// The input, as the user named it.
        name: String,
        /// The first bytes, decompressed if the input is compressed.
        begins: Vec<u8>,
    },
    /// An input is empty, or decompresses to nothing, and its format does not allow that.
    Empty {
        /// The input, as the user named it.
        name: String,
        /// The format, according to the name; `None` if the name only says that it is a document.
        format: Option<Format>,
    },
    /// An input is a file of another program, of a kind that is not read.
    Foreign {
        /// The input, as the user named it.
        name: String,
        /// The kind of file.
        foreign: &'static Foreign,
    },
    /// An archive has no profiles.
    NoProfiles {
        /// The input, as the user named it.
        name: String,
        /// The number of members.
        members: usize,
        /// The reason why the first member is none; `None` if there are none but empty ones.
        skipped: Option<String>,
    },
    /// A format cannot be read, or not by this build.
    NotReadable {
        /// The input, as the user named it.
        name: String,
        /// The format.
        format: Format,
    },
    /// A format does not consist of records that could be printed one by one.
    NoRecords {
        /// The input, as the user named it.
        name: String,
        /// The format.
        format: Format,
    },
    /// A format cannot be written, or not by this build.
    NotWritable {
        /// The format.
        format: Format,
    },
    /// An input is damaged.
    Read {
        /// The input, as the user named it.
        name: String,
        /// The position and kind of the damage.
        source: borehole_formats::Error,
    },
    /// Reading an input takes more memory than the program may hold: with what it has read, and what the sink made of it.
    Memory {
        /// The input, as the user named it.
        name: String,
        /// The budget.
        source: OverBudget,
    },
    /// Reading an input was cancelled.
    Cancelled {
        /// The input, as the user named it.
        name: String,
    },
    /// An output could not be written.
    Write {
        /// The output, as the user named it; empty if the caller owns it.
        name: String,
        /// The cause.
        source: io::Error,
    },
}

/// How many of the first bytes of an input are shown.
const SHOWN_BYTES: usize = 16;

impl Error {
    /// Adds the name of the input to an importer's error.
    pub(crate) fn reading(name: &str, error: ReadError) -> Self {
        match error {
            ReadError::Input(source) => Self::Read { name: name.to_owned(), source },
            ReadError::Sink(source) => match OverBudget::of(&source) {
                Some(source) => Self::Memory { name: name.to_owned(), source },
                None => Self::Write { name: String::new(), source },
            },
        }
    }

    /// Sets the name of the output if there is none.
    #[must_use]
    pub fn with_output(self, output: &str) -> Self {
        match self {
            Self::Write { name, source } if name.is_empty() => {
                Self::Write { name: output.to_owned(), source }
            }
            other => other,
        }
    }

    /// Whether the reader of the output has closed it, which is no failure for a command in a pipe.
    #[must_use]
    pub fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Write { source, .. } if source.kind() == io::ErrorKind::BrokenPipe)
    }

    /// Whether the cause is a budget of memory that is used up.
    #[must_use]
    pub fn is_memory(&self) -> bool {
        match self {
            Self::Memory { .. } => true,
            Self::Read { source, .. } => source.is_memory(),
            Self::Open { source, .. } | Self::Write { source, .. } => OverBudget::of(source).is_some(),
            _ => false,
        }
    }

    /// Whether the output exists already, and is to be kept.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        matches!(self, Self::Write { source, .. } if source.kind() == io::ErrorKind::AlreadyExists)
    }

    /// The kind of error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Open { source, .. } | Self::Write { source, .. } if OverBudget::of(source).is_some() => {
                ErrorKind::Memory
            }
            Self::Open { .. } => ErrorKind::Io,
            Self::Write { .. } => ErrorKind::Output,
            Self::Empty { .. } => ErrorKind::Truncated,
            Self::Read { source, .. } => source.kind(),
            Self::Memory { .. } => ErrorKind::Memory,
            Self::Cancelled { .. } => ErrorKind::Cancelled,
            Self::Unrecognised { .. }
            | Self::Foreign { .. }
            | Self::NoProfiles { .. }
            | Self::NotReadable { .. }
            | Self::NoRecords { .. }
            | Self::NotWritable { .. } => ErrorKind::Unsupported,
        }
    }

    /// The position in the input.
    #[must_use]
    pub fn position(&self) -> Position {
        match self {
            Self::Read { source, .. } => source.position(),
            _ => Position::Whole,
        }
    }

    /// The name of the input or output; empty if it is an output that the caller owns.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Open { name, .. }
            | Self::Unrecognised { name, .. }
            | Self::Empty { name, .. }
            | Self::Foreign { name, .. }
            | Self::NoProfiles { name, .. }
            | Self::NotReadable { name, .. }
            | Self::NoRecords { name, .. }
            | Self::Read { name, .. }
            | Self::Memory { name, .. }
            | Self::Cancelled { name }
            | Self::Write { name, .. } => name,
            Self::NotWritable { .. } => "",
        }
    }

    /// The failure of a reader, of a writer or of the system, as it was returned.
    #[must_use]
    pub fn io_error(&self) -> Option<&io::Error> {
        match self {
            Self::Open { source, .. } | Self::Write { source, .. } => Some(source),
            Self::Read { source, .. } => source.io_error(),
            _ => None,
        }
    }

    /// The way out; `None` if it is obvious, or there is none.
    #[must_use]
    pub fn advice(&self) -> Option<Advice> {
        match self {
            Self::Read { source, .. } if source.is_malformed() || source.is_truncated() => {
                Some(Advice::ReadOn)
            }
            Self::Unrecognised { name, begins } => Some(unrecognised(name, begins)),
            Self::Foreign { foreign, .. } => Some(Advice::Foreign(foreign.advice)),
            Self::NotReadable { .. } | Self::NotWritable { .. } => Some(Advice::OtherFormat),
            Self::Write { source, .. } => Taken::of(source),
            _ => None,
        }
    }
}

impl Advice {
    /// The advice on any error, if it is one of Borehole's that has some.
    #[must_use]
    pub fn of(error: &(dyn error::Error + 'static)) -> Option<Self> {
        #[cfg(feature = "heap")]
        if let Some(error) = error.downcast_ref::<crate::heap::Error>() {
            return error.advice();
        }
        #[cfg(feature = "sql")]
        if let Some(error) = error.downcast_ref::<borehole_sql::Error>() {
            return Self::of_limit(error.spent()?);
        }
        if let Some(error) = error.downcast_ref::<Error>() {
            return error.advice();
        }
        error.downcast_ref::<io::Error>().and_then(Taken::of)
    }

    #[cfg(feature = "sql")]
    const fn of_limit(spent: borehole_sql::SpentLimit) -> Option<Self> {
        match spent {
            borehole_sql::SpentLimit::Time => Some(Self::MoreTime),
            borehole_sql::SpentLimit::Memory => Some(Self::MoreMemory),
            _ => None,
        }
    }
}

/// The error that there is a file already, which is to be kept.
#[derive(Debug)]
pub(crate) struct Taken {
    /// Whether the file is the rest of an output that was never completed.
    pub(crate) is_unfinished: bool,
}

impl Taken {
    fn of(error: &io::Error) -> Option<Advice> {
        let Self { is_unfinished } = *error.get_ref()?.downcast_ref()?;
        Some(Advice::Replace { is_unfinished })
    }
}

impl From<Taken> for io::Error {
    fn from(taken: Taken) -> Self {
        Self::new(io::ErrorKind::AlreadyExists, taken)
    }
}

impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.is_unfinished {
            false => "file exists",
            true => "file exists, because a program is writing it or was killed",
        })
    }
}

impl error::Error for Taken {}

/// The advice on an input of no known format.
#[cfg_attr(not(feature = "heap"), allow(unused_variables, reason = "only heaps are detected here"))]
fn unrecognised(name: &str, begins: &[u8]) -> Advice {
    #[cfg(feature = "heap")]
    if let Some(format) = crate::heap_format::heap_format(begins) {
        return Advice::Heap { format: format.name(), is_readable: format.readable() };
    }
    // Brotli has no signature.
    if name.ends_with(".br") { Advice::Decompress("Brotli") } else { Advice::NameFormat }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open { name, source } => write!(f, "{name}: {}", cause(source)),
            Self::Unrecognised { name, begins } => {
                write!(f, "{name}: unsupported format: expected a known format, ")?;
                let shown = &begins[..begins.len().min(SHOWN_BYTES)];
                write!(f, "found a file that begins \"{}\"", shown.escape_ascii())
            }
            Self::Empty { name, format } => {
                let expected = format.map_or("a profile", Format::name);
                write!(f, "{name}: expected {expected}, found an empty file")
            }
            Self::Foreign { name, foreign } => {
                write!(f, "{name}: unsupported input: expected a profile, found {}", foreign.name)
            }
            Self::NoProfiles { name, members, skipped } => {
                let found = counted(*members as u64, "other member");
                write!(f, "{name}: unsupported input: expected an archive with a profile, found {found}")?;
                skipped.as_ref().map_or(Ok(()), |skipped| write!(f, " ({skipped})"))
            }
            Self::NotReadable { name, format } => {
                write!(f, "{name}: unsupported input: {} can be written but not read", format.name())
            }
            Self::NoRecords { name, format } => {
                write!(
                    f,
                    "{name}: unsupported input: expected rbt or trc for raw records, found {}",
                    format.name()
                )
            }
            Self::NotWritable { format } => {
                write!(f, "unsupported output: {} cannot be written", format.name())
            }
            Self::Read { name, source } => write!(f, "{name}: {source}"),
            Self::Memory { name, source } => write!(f, "{name}: {source}"),
            Self::Cancelled { name } => write!(f, "{name}: cancelled"),
            Self::Write { name, source } if name.is_empty() => write!(f, "output: {}", cause(source)),
            Self::Write { name, source } => write!(f, "{name}: {}", cause(source)),
        }
    }
}

impl error::Error for Error {
    /// The cause. Its text is a part of this error's text.
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Open { source, .. } | Self::Write { source, .. } => Some(source),
            Self::Read { source, .. } => Some(source),
            Self::Memory { source, .. } => Some(source),
            _ => None,
        }
    }
}
