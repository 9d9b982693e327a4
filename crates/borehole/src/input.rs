//! An input whose format is known.

use std::cell::RefCell;
use std::fmt;
use std::io::{self, Cursor, Read};

use borehole_formats::ReadOptions;
use borehole_formats::detect::{DETECT_BYTES, Foreign, Format, detect, foreign, foreign_by_name};
#[cfg(feature = "tachyon")]
use borehole_formats::{ReadError, tachyon};
use borehole_model::{ProfileSink, Recovery, Tables};
use borehole_wire::encoding::Decoded;
use borehole_wire::envelope::{Envelope, Method};
#[cfg(feature = "zstd")]
use borehole_wire::zstd::{FIRST_BLOCK_BYTES, FRAME_MAGIC};

use crate::mapped::{Mappable, Passed};
use crate::reading::{CompanionFile, Reading};
use crate::watch::{CancelToken, Progress};
use crate::{Error, Source};

/// A profile that is ready to be read.
///
/// # Examples
///
/// Detect the format by content, and read into a sink:
///
/// ```
/// # #[cfg(feature = "rbt")] {
/// use borehole::model::{Count, Tables};
/// use borehole::{Format, Input, InputOptions, ReadOptions, Source};
///
/// let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/data/bitflip_middle.rbt");
/// let open = |read| Input::open(Source::path(trace)?, &InputOptions { read, ..InputOptions::default() });
/// let input = open(ReadOptions::default())?;
/// assert_eq!(input.format(), Format::Rbt);
///
/// // Some byte in the middle is wrong. Reading strictly, that is an error ...
/// let (mut tables, mut count) = (Tables::default(), Count::default());
/// let error = input.read_into(&mut tables, &mut count).expect_err("the file is damaged");
/// assert!(error.to_string().contains("undefined string 5 (rbt, at byte 0x12a)"));
///
/// // ... and otherwise a warning, and the rest of the file.
/// let mut count = Count::default();
/// let recovery = open(ReadOptions::lenient())?.read_into(&mut tables, &mut count)?;
/// assert_eq!((recovery.samples, recovery.lost_bytes, count.samples), (18, 9, 18));
/// # }
/// # Ok::<(), borehole::Error>(())
/// ```
pub struct Input {
    reading: Reading,
    bytes: InputBytes,
    mappable: Option<Mappable>,
}

/// How many of the first bytes of an input of no known format are kept for messages.
const BEGINNING_BYTES: usize = 64;

/// The bytes read for detection, followed by the rest.
type InputBytes = io::Chain<Cursor<Vec<u8>>, Box<dyn Read + Send>>;

/// The options for opening and reading an input.
#[derive(Clone, Copy, Debug, Default)]
pub struct InputOptions {
    /// The format; `None` to detect it by content, or by name if the content does not decide.
    pub format: Option<Format>,
    /// Formats of the program's own, which are detected before those of this crate: see [`OwnFormat`](crate::OwnFormat).
    pub own_formats: &'static [Format],
    /// The options for reading.
    pub read: ReadOptions,
    /// The memory that a whole conversion may hold, in bytes, about: what readers hold, the names, frames and stacks of all inputs,
    /// and what is made of each stack. An input that takes more ends with [`Error::Memory`], or an [`Error::Read`] whose kind is
    /// [`ErrorKind::Memory`](crate::ErrorKind::Memory). `None`: each reader keeps to [`Limits`](crate::Limits) for itself.
    pub memory_bytes: Option<usize>,
}

impl Input {
    /// Opens `source`, which may be compressed.
    ///
    /// An empty input is a trace without samples, and yields a note, because a live capture of nothing leaves such a file. Its
    /// format is `rbt`, or the one of its name. It is an error if the name is that of a format of which no profiler writes empty
    /// files.
    ///
    /// # Errors
    /// If the source cannot be read, or its format cannot be detected or read.
    pub fn open(source: Source, options: &InputOptions) -> Result<Self, Error> {
        let (mappable, mut source) = source.split_mappable();
        let (size_bytes, path) = (source.size_bytes(), source.take_path());
        let (name, mut reader) = source.into_parts();
        let prefix = match beginning(&mut reader) {
            Ok(prefix) => prefix,
            Err(source) => return Err(Error::Open { name, source }),
        };
        let mut reading = Reading { size_bytes, ..Reading::begin(name, &prefix, options)? };
        reading.companion = path.map_or(Ok(None), |path| CompanionFile::beside(&path, reading.format))?;
        // A compressed file cannot be mapped.
        let mappable = mappable.filter(|_| reading.is_document() && Method::of(&prefix).is_none());
        Ok(Self { reading, bytes: Cursor::new(prefix).chain(reader), mappable })
    }

    /// Cancels the reading once `token` is cancelled: [`Input::read_into`], [`convert`](crate::convert) and whatever else reads
    /// the input end with an error of the kind [`Cancelled`](crate::ErrorKind::Cancelled).
    #[must_use]
    pub fn cancelled_by(mut self, token: &CancelToken) -> Self {
        self.reading.watch.token = Some(token.clone());
        self
    }

    /// Tells `on_progress` how much was read, as often as bytes are asked for. The last time, all is read.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(all(feature = "rbt", feature = "folded"))] {
    /// use std::sync::mpsc::channel;
    /// use borehole::{Format, Input, InputOptions, Source, Target, convert};
    ///
    /// let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/data/daemon_worker.rbt");
    /// let (send, progress) = channel();
    /// let input = Input::open(Source::path(trace)?, &InputOptions::default())?;
    /// let input = input.on_progress(move |progress| drop(send.send(progress)));
    /// convert([input], &Target::new(Format::Folded), std::io::sink())?;
    /// assert_eq!(progress.iter().last().and_then(|last| last.fraction()), Some(1.0));
    /// # }
    /// # Ok::<(), borehole::Error>(())
    /// ```
    #[must_use]
    pub fn on_progress(mut self, on_progress: impl FnMut(Progress) + Send + 'static) -> Self {
        self.reading.watch.on_progress = Some(RefCell::new(Box::new(on_progress)));
        self
    }

    /// Lends the tables of `sibling` to a `tachyon` input that has lost its own. Other inputs are not affected.
    ///
    /// The sibling is a complete file of another run of the same program, or the file that a killed program left beside the input
    /// ([`Target::exporter_to_file`](crate::Target::exporter_to_file)). It may be compressed; `name` is its name in errors.
    ///
    /// # Errors
    /// If the sibling has no tables.
    #[cfg(feature = "tachyon")]
    pub fn lend_tables(&mut self, name: &str, sibling: &[u8]) -> Result<(), Error> {
        let open = || {
            let sibling = tachyon::read_document(Envelope::new(sibling), &self.reading.read)?;
            if !sibling.starts_with(&tachyon::JOURNAL_MAGIC) {
                tachyon::Reader::new(&sibling)?;
            }
            Ok(sibling)
        };
        self.reading.sibling = Some(open().map_err(|error| Error::reading(name, ReadError::Input(error)))?);
        Ok(())
    }

    /// The format.
    #[must_use]
    pub const fn format(&self) -> Format {
        self.reading.format
    }

    /// The name for messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.reading.name
    }

    /// Whether the input is empty, or decompresses to nothing.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.reading.is_empty
    }

    #[cfg(any(feature = "pprof", feature = "otlp"))]
    pub(crate) const fn limits(&self) -> borehole_formats::Limits {
        self.reading.read.limits
    }

    /// The bytes of the file, without decompression.
    #[must_use]
    pub fn into_bytes(self) -> impl Read {
        self.bytes
    }

    /// Streams everything into `sink` without finishing it, so that further inputs with the same tables may follow.
    ///
    /// # Errors
    /// If the input is damaged and read strictly, if it takes more memory than allowed, or if the sink fails.
    pub fn read_into(self, tables: &mut Tables, sink: &mut dyn ProfileSink) -> Result<Recovery, Error> {
        let Self { reading, bytes, mappable } = self;
        let Some(mapped) = mappable.filter(|_| !reading.is_empty).and_then(|file| file.map()) else {
            return reading.stream(bytes, tables, sink);
        };
        // The mapping also has the bytes that were read for detection.
        drop(bytes);
        let passed = Passed::of(&mapped);
        reading.document(mapped.bytes(), &|end| passed.up_to(end), tables, sink)
    }
}

/// A profile in memory that is read where it is: an [`Input`] that borrows.
///
/// Documents (`pprof`, `tachyon`, `jfr` and others) are decoded in place. Streams pass through a small buffer. Compressed
/// bytes are decompressed.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "folded")] {
/// use borehole::model::{Count, Tables};
/// use borehole::{BorrowedInput, InputOptions};
///
/// let bytes = b"main;query 3\n".to_vec();
/// let input = BorrowedInput::open("stacks", &bytes, &InputOptions::default())?;
/// let mut count = Count::default();
/// input.read_into(&mut Tables::default(), &mut count)?;
/// assert_eq!(count.samples, 3);
/// # }
/// # Ok::<(), borehole::Error>(())
/// ```
pub struct BorrowedInput<'b> {
    reading: Reading,
    bytes: &'b [u8],
}

impl<'b> BorrowedInput<'b> {
    /// Opens `bytes`, as [`Input::open`] opens a source.
    ///
    /// # Errors
    /// If the format cannot be detected or read.
    pub fn open(name: impl Into<String>, bytes: &'b [u8], options: &InputOptions) -> Result<Self, Error> {
        let mut beginning_of = bytes;
        let name = name.into();
        let prefix = match beginning(&mut beginning_of) {
            Ok(prefix) => prefix,
            Err(source) => return Err(Error::Open { name, source }),
        };
        let size_bytes = Some(bytes.len() as u64);
        Ok(Self { reading: Reading { size_bytes, ..Reading::begin(name, &prefix, options)? }, bytes })
    }

    /// The format.
    #[must_use]
    pub const fn format(&self) -> Format {
        self.reading.format
    }

    /// Streams everything into `sink` without finishing it.
    ///
    /// # Errors
    /// Those of [`Input::read_into`].
    pub fn read_into(self, tables: &mut Tables, sink: &mut dyn ProfileSink) -> Result<Recovery, Error> {
        let Self { reading, bytes } = self;
        if reading.is_document() && !reading.is_empty && Method::of(bytes).is_none() {
            return reading.document(bytes, &|_| {}, tables, sink);
        }
        reading.stream(bytes, tables, sink)
    }
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Input")
            .field("name", &self.name())
            .field("format", &self.format())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for BorrowedInput<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BorrowedInput").field("format", &self.format()).finish_non_exhaustive()
    }
}

/// The first bytes of an input: as many as detection needs.
pub(crate) fn beginning(reader: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut prefix = Vec::new();
    reader.take(DETECT_BYTES as u64).read_to_end(&mut prefix)?;
    // A frame yields nothing before its first block is complete.
    #[cfg(feature = "zstd")]
    if prefix.starts_with(&FRAME_MAGIC) {
        let missing = FIRST_BLOCK_BYTES.saturating_sub(prefix.len());
        reader.take(missing as u64).read_to_end(&mut prefix)?;
    }
    Ok(prefix)
}

impl Reading {
    /// Detects the format of an input that begins with `prefix`.
    fn begin(name: String, prefix: &[u8], options: &InputOptions) -> Result<Self, Error> {
        let content = Beginning::of(prefix);
        let kind = || content.kind(&name, options.own_formats);
        let format = match options.format.map_or_else(kind, InputKind::Format) {
            InputKind::Format(format) => format,
            InputKind::Foreign(foreign) => return Err(Error::Foreign { name, foreign }),
            InputKind::Empty(format) => return Err(Error::Empty { name, format }),
            InputKind::Unknown => return Err(Error::Unrecognised { name, begins: content.shown(prefix) }),
        };
        if !format.readable() {
            return Err(Error::NotReadable { name, format });
        }
        let is_empty = content.is_empty;
        Ok(Self {
            is_empty,
            read: options.read,
            memory_bytes: options.memory_bytes,
            ..Self::of(name, format)
        })
    }
}

/// The detected kind of an input.
enum InputKind {
    Format(Format),
    Foreign(&'static Foreign),
    /// The input is empty, but has the name of a profile.
    Empty(Option<Format>),
    Unknown,
}

/// The first bytes of an input, decompressed.
pub(crate) struct Beginning {
    bytes: Vec<u8>,
    /// Whether the input ends there and is empty.
    is_empty: bool,
}

impl Beginning {
    pub(crate) fn of(prefix: &[u8]) -> Self {
        let mut bytes = Vec::new();
        // A damaged or truncated member still yields its first bytes.
        let unpacked = Envelope::new(prefix).take(DETECT_BYTES as u64).read_to_end(&mut bytes);
        let is_empty = prefix.len() < DETECT_BYTES && unpacked.is_ok() && bytes.is_empty();
        if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
            let mut text = Vec::new();
            // A slice can be read to its end. The text is cut to the length for detection, because it may end with half
            // a character.
            let _ = Decoded::new(&bytes[..]).read_to_end(&mut text);
            text.truncate(DETECT_BYTES);
            bytes = text;
        }
        Self { bytes, is_empty }
    }

    /// The first bytes, decompressed.
    #[cfg(feature = "archives")]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Detects the kind, by content and then by name. Formats of the program's own come first.
    fn kind(&self, name: &str, own: &[Format]) -> InputKind {
        if let Some(&own) = own.iter().find(|format| format.is_detected(&self.bytes)) {
            return InputKind::Format(own);
        }
        if self.is_empty {
            return empty_kind(name);
        }
        // Heaps contain text that could pass for a profile, and have names like profiles.
        #[cfg(feature = "heap")]
        if crate::heap_format::heap_format(&self.bytes).is_some() {
            return InputKind::Unknown;
        }
        if let Some(foreign) = foreign(&self.bytes) {
            return InputKind::Foreign(foreign);
        }
        if let Some(format) = detect(&self.bytes) {
            return InputKind::Format(format);
        }
        if let Some(&own) = own.iter().find(|format| format.fits(name)) {
            return InputKind::Format(own);
        }
        // Its content can be anything.
        if let Some(foreign) = foreign_by_name(name) {
            return InputKind::Foreign(foreign);
        }
        Format::from_name_alone(name).map_or(InputKind::Unknown, InputKind::Format)
    }

    /// The part of an input of no known format that messages need. If it cannot be decompressed, this is the raw part.
    fn shown(self, prefix: &[u8]) -> Vec<u8> {
        let mut shown = if self.bytes.is_empty() { prefix.to_vec() } else { self.bytes };
        shown.truncate(BEGINNING_BYTES);
        shown
    }
}

/// The kind of an empty input, by its name: a recording of nothing, or not a profile.
fn empty_kind(name: &str) -> InputKind {
    let name = name.strip_suffix(".zst").unwrap_or(name);
    let named = Format::from_path(name).map(|(format, _)| format);
    let read_as = |format: Format| format.facts().read_as.and_then(Format::from_name).unwrap_or(format);
    let format = named.map(read_as);
    if format.is_some_and(|format| !format.facts().may_be_empty) {
        return InputKind::Empty(format);
    }
    match format.filter(|format| format.readable()) {
        None if is_json(name) => InputKind::Empty(None),
        format => InputKind::Format(format.unwrap_or(Format::Rbt)),
    }
}

/// Whether a name is that of a JSON document, which is never empty.
fn is_json(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.strip_suffix(".gz").unwrap_or(&name).ends_with(".json")
}
