//! Errors of reading inputs and writing outputs.

use std::{error, fmt, io};

use borehole_formats::ReadError;
use borehole_formats::detect::{Foreign, Format};
use borehole_memory::OverBudget;
use borehole_text::{cause, counted, shell_word};

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

    /// A suggestion for what the user can try next; `None` if there is none.
    ///
    /// # Examples
    ///
    /// ```
    /// use borehole::{Input, InputOptions, Source};
    ///
    /// let source = Source::reader("notes.txt", &b"Buy milk\n"[..]);
    /// let error = Input::open(source, &InputOptions::default()).err().expect("notes are no profile");
    /// assert_eq!(error.hint().as_deref(), Some("name the format with --from; borehole formats lists them"));
    /// ```
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Read { name, source } if source.is_malformed() || source.is_truncated() => {
                Some(recover(name))
            }
            Self::Unrecognised { name, begins } => Some(unrecognised(name, begins)),
            Self::Foreign { foreign, .. } => Some(foreign.advice.to_owned()),
            Self::NotReadable { .. } | Self::NotWritable { .. } => {
                Some("borehole formats lists what can be read and written".to_owned())
            }
            _ => None,
        }
    }
}

/// The command that recovers the rest of a damaged input.
fn recover(name: &str) -> String {
    if name == STDIN {
        return "borehole recover -o recovered.rbt < FILE".to_owned();
    }
    let extension =
        name.rsplit('/').next().unwrap_or(name).split_once('.').map_or("rbt", |(_, extension)| extension);
    format!("borehole recover {} -o {}", shell_word(name), shell_word(&format!("recovered.{extension}")))
}

/// The suggestion for an input of no known format.
#[cfg_attr(not(feature = "heap"), allow(unused_variables, reason = "only heaps are detected here"))]
fn unrecognised(name: &str, begins: &[u8]) -> String {
    #[cfg(feature = "heap")]
    if let Some(format) = crate::heap_format::heap_format(begins) {
        // Heaps cannot be read from pipes.
        let file = if name == STDIN { "FILE".to_owned() } else { shell_word(name) };
        return if format.readable() {
            format!("the file holds a heap; use borehole heap info {file}")
        } else {
            format!("the file holds a heap as {}, which only other programs can read", format.name())
        };
    }
    // Brotli has no signature.
    if name.ends_with(".br") {
        return "unpack it first if it is compressed with Brotli; only gzip and zstd are unpacked automatically"
            .to_owned();
    }
    "name the format with --from; borehole formats lists them".to_owned()
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
            Self::Write { name, source } if name.is_empty() => write!(f, "output: {}", cause(source)),
            Self::Write { name, source } => write!(f, "{name}: {}", cause(source)),
        }
    }
}

impl error::Error for Error {
    /// The source of the cause; the cause itself is part of this error's text.
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Open { source, .. } | Self::Write { source, .. } => source.source(),
            Self::Read { source, .. } => source.source(),
            _ => None,
        }
    }
}
