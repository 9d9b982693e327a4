//! The registry of formats. A format is a folder and a line of [`formats!`](crate): its facts, and what reads and writes it.

use std::any::{Any, TypeId};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::io::{self, BufReader, Read, Seek, Write};
use std::str::FromStr;
use std::sync::Arc;

use borehole_model::{Export, ProfileSink, ReadOptions, Recovery, Tables};
use borehole_text::{Error, ReadError, UnknownName};

use crate::Format;

/// The facts about a format, known even to a build that neither reads nor writes it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Facts {
    /// Its short name, for options and messages.
    pub name: &'static str,
    /// Other names that options accept.
    pub aliases: &'static [&'static str],
    /// The extensions of its files without the leading dot, the usual one first.
    pub extensions: &'static [&'static str],
    /// A description in a few words.
    pub description: &'static str,
    /// The page that describes it, below `docs`; empty if there is none.
    pub page: &'static str,
    /// Whether its files are binary, and so not for terminals.
    pub is_binary: bool,
    /// Whether an output can be read while it is written, sample by sample, so that everything before an error in an input is
    /// useful.
    pub is_stream: bool,
    /// Whether profilers leave empty files of this format. Other empty files are errors.
    pub may_be_empty: bool,
    /// The name of the format that reads files of this one, if it has no importer.
    pub read_as: Option<&'static str>,
    /// How its content is detected.
    pub detect: Detect,
}

impl Facts {
    /// The facts about a text format of which nothing else is known.
    #[must_use]
    pub const fn new(name: &'static str, description: &'static str, detect: Detect) -> Self {
        Self {
            name,
            aliases: &[],
            extensions: &[],
            description,
            page: "",
            is_binary: false,
            is_stream: false,
            may_be_empty: false,
            read_as: None,
            detect,
        }
    }

    /// Sets the extensions of its files without the leading dot, the usual one first.
    #[must_use]
    pub const fn with_extensions(mut self, extensions: &'static [&'static str]) -> Self {
        self.extensions = extensions;
        self
    }

    /// Says that its files are binary.
    #[must_use]
    pub const fn binary(mut self) -> Self {
        self.is_binary = true;
        self
    }
}

/// A format that a program adds to those of this crate, which it is a part of as [`Format::Own`].
///
/// Formats of this crate are made of the same parts: [`Facts`] and a [`Codec`].
///
/// # Examples
///
/// ```
/// use borehole_formats::Format;
/// use borehole_formats::registry::{Codec, Detect, Facts, OwnFormat};
///
/// static NOTES: OwnFormat = OwnFormat {
///     facts: Facts::new("notes", "stacks noted by hand", Detect::Content(|bytes| bytes.starts_with(b"notes 1\n"))),
///     codec: Codec { import: None, export: None },
/// };
/// const FORMAT: Format = Format::Own(&NOTES);
/// assert_eq!((FORMAT.name(), FORMAT.readable()), ("notes", false));
/// ```
#[derive(Debug)]
pub struct OwnFormat {
    /// The facts.
    pub facts: Facts,
    /// The importer and the exporter.
    pub codec: Codec,
}

// The name stands for the format, as those of other formats do.
impl PartialEq for OwnFormat {
    fn eq(&self, other: &Self) -> bool {
        self.facts.name == other.facts.name
    }
}

impl Eq for OwnFormat {}

impl Hash for OwnFormat {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.facts.name.hash(state);
    }
}

/// How the content of an input shows its format. The functions get the first [`DETECT_BYTES`](crate::detect::DETECT_BYTES).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Detect {
    /// The content never does.
    Never,
    /// It has a signature, or members that no other format has.
    Content(fn(&[u8]) -> bool),
    /// Its lines look like those of the format. Tried last, because other files have similar lines.
    Lines(fn(&[u8]) -> bool),
}

/// The importer and the exporter of a format.
#[derive(Debug)]
pub struct Codec {
    /// The importer; `None` if the format is not read.
    pub import: Option<Import>,
    /// The exporter; `None` if the format is not written.
    pub export: Option<Exporting>,
}

/// A format's importer, by the bytes that it takes.
#[derive(Clone, Copy, Debug)]
pub enum Import {
    /// Takes decompressed bytes; text is UTF-8.
    Plain(ImportPlain),
    /// Takes decompressed bytes, and the file that accompanies some inputs.
    Accompanied {
        /// The names that the accompanying file may have, by the name of the input.
        companions: fn(&str) -> Vec<String>,
        /// Imports the input.
        import: ImportAccompanied,
    },
    /// Takes the bytes as they are, because it finds compressed members itself.
    Enveloped(ImportEnveloped),
    /// Takes a decompressed document that is in memory whole.
    Document {
        /// Reads a decompressed input that is not in memory.
        read: fn(&mut dyn Read, &ReadOptions) -> Result<Vec<u8>, Error>,
        /// Imports the document.
        import: ImportDocument,
    },
}

/// The input of [`Import::Plain`].
pub type PlainInput<'a> = BufReader<&'a mut dyn Read>;

/// Streams an input into a sink without finishing it.
pub type ImportPlain =
    fn(&mut PlainInput<'_>, &ReadOptions, &mut Tables, &mut dyn ProfileSink) -> Result<Recovery, ReadError>;

/// Like [`ImportPlain`], with the accompanying file if there is one.
pub type ImportAccompanied = fn(
    &mut PlainInput<'_>,
    Option<Companion<'_>>,
    &ReadOptions,
    &mut Tables,
    &mut dyn ProfileSink,
) -> Result<Recovery, ReadError>;

/// A file that lies beside an input and adds to it.
pub struct Companion<'a> {
    /// Its name, for messages.
    pub name: &'a str,
    /// Its decompressed bytes.
    pub input: &'a mut dyn Read,
}

impl fmt::Debug for Companion<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Companion").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Like [`ImportPlain`], with a file for data that has to wait.
pub type ImportEnveloped = fn(
    &mut dyn Read,
    &ReadOptions,
    MakeSpool,
    &mut Tables,
    &mut dyn ProfileSink,
) -> Result<Recovery, ReadError>;

/// Like [`ImportPlain`], for a document in memory.
pub type ImportDocument =
    fn(Document<'_>, &ReadOptions, &mut Tables, &mut dyn ProfileSink) -> Result<Recovery, ReadError>;

/// A whole decompressed document in memory.
#[derive(Clone, Copy)]
pub struct Document<'a> {
    /// The bytes.
    pub bytes: &'a [u8],
    /// A file that lends its tables, for a document that has lost its own.
    pub sibling: Option<&'a [u8]>,
    /// Called with the number of bytes, from the beginning, that will not be read again. The number only grows.
    pub on_passed: Option<&'a dyn Fn(usize)>,
}

/// A format's exporter, and what it does with events.
#[derive(Clone, Copy, Debug)]
pub struct Exporting {
    /// Creates the sink. Its output is incomplete before [`ProfileSink::finish`].
    pub start: for<'w> fn(Destination<'w>, &WriteOptions) -> Box<dyn Export + Send + 'w>,
    /// Its treatment of events.
    pub events: EventSupport,
}

/// How an exporter treats events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventSupport {
    /// It holds samples only: events are counted as lost.
    Lost,
    /// It writes them in the order in which they arrive.
    Kept,
    /// It relates events to each other, so it needs them in order of time.
    ByTime,
}

/// Where an exporter writes.
pub struct Destination<'w> {
    /// The output.
    pub output: Box<dyn Write + Send + 'w>,
    /// Makes files for data that has to wait until the end.
    pub spool: MakeSpool,
}

impl fmt::Debug for Destination<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Destination").finish_non_exhaustive()
    }
}

/// A temporary file.
pub trait Spool: Read + Write + Seek + Send {}

impl<T: Read + Write + Seek + Send> Spool for T {}

/// Makes an empty [`Spool`].
pub type MakeSpool = fn() -> io::Result<Box<dyn Spool>>;

/// The options of exporters: those of several formats, and any format's own.
///
/// # Examples
///
/// ```
/// use borehole_formats::{WriteOptions, flamegraph};
///
/// let mut options = WriteOptions::default();
/// options.set(flamegraph::ExportOptions { title: "Checkout".to_owned(), ..Default::default() });
/// assert_eq!(options.get::<flamegraph::ExportOptions>().title, "Checkout");
/// ```
#[derive(Clone, Debug, Default)]
pub struct WriteOptions {
    /// The sampling period in microseconds for inputs without one (`rbt`, `tachyon`).
    pub period_us: Option<u32>,
    /// The value type of single-value formats, by its kind, or kind and unit; `None`: the default of the first profile.
    pub value: Option<String>,
    own: Vec<(TypeId, Arc<dyn Any + Send + Sync>)>,
}

impl WriteOptions {
    /// Sets a format's own options. Other formats ignore them.
    pub fn set<T: Any + Send + Sync>(&mut self, options: T) {
        self.own.retain(|(id, _)| *id != TypeId::of::<T>());
        self.own.push((TypeId::of::<T>(), Arc::new(options)));
    }

    /// A format's own options; the default ones if they were not set.
    #[must_use]
    pub fn get<T: Any + Clone + Default>(&self) -> T {
        let found = self.own.iter().find_map(|(_, options)| options.downcast_ref::<T>());
        found.cloned().unwrap_or_default()
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Parses the name or an alias of a format, in any case.
impl FromStr for Format {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        let known = Self::ALL.iter().map(|format| format.name());
        Self::from_name(name).ok_or_else(|| UnknownName::new(name, "format", known))
    }
}

/// Declares the formats, in the order in which they are listed and detected: the feature and module of each folder, the file
/// of its facts, and each of its formats with the constants that hold its facts and its codec.
macro_rules! formats {
    ($($feature:literal $module:ident $file:literal { $($format:ident: $facts:ident, $codec:ident;)+ })+) => {
        $(
            #[cfg(feature = $feature)]
            pub mod $module;
            // A build without the format still detects it.
            #[cfg(not(feature = $feature))]
            #[path = $file]
            mod $module;
        )+

        /// A profile format.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Format {
            $($(
                #[doc = concat!("A format of the feature `", $feature, "`. Its [`facts`](Self::facts) describe it.")]
                $format,
            )+)+
            /// A format of the program that uses this crate.
            Own(&'static $crate::registry::OwnFormat),
        }

        impl Format {
            /// All formats of this crate, in the order of the registry.
            pub const ALL: &[Self] = &[$($(Self::$format,)+)+];

            /// Its facts.
            #[must_use]
            pub const fn facts(self) -> &'static Facts {
                match self {
                    $($(Self::$format => &$module::$facts,)+)+
                    Self::Own(own) => &own.facts,
                }
            }

            const fn codec(self) -> Option<&'static $crate::registry::Codec> {
                match self {
                    $($(
                        #[cfg(feature = $feature)]
                        Self::$format => Some(&$module::$codec),
                        #[cfg(not(feature = $feature))]
                        Self::$format => None,
                    )+)+
                    Self::Own(own) => Some(&own.codec),
                }
            }
        }
    };
}

pub(crate) use formats;
