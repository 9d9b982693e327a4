//! An input whose format is known.

use std::io::{self, Cursor, Read};

use borehole_formats::detect::{DETECT_BYTES, Foreign, Format, detect, foreign};
use borehole_formats::registry::{Document, Import, ImportPlain};
#[cfg(feature = "tachyon")]
use borehole_formats::tachyon;
use borehole_formats::{Position, ReadError, ReadOptions};
use borehole_model::{ProfileSink, Recovery, Tables, Warning};
use borehole_wire::encoding::Decoded;
use borehole_wire::envelope::Envelope;
use borehole_wire::envelope::Method;
#[cfg(feature = "zstd")]
use borehole_wire::zstd::{FIRST_BLOCK_BYTES, FRAME_MAGIC};

use crate::budgeted::Budgeted;
use crate::mapped::{Mappable, Passed};
use crate::spared::Spared;
use crate::spool::boxed_spool;
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
/// let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus/rbt/bitflip_middle.rbt");
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
    name: String,
    format: Format,
    read: ReadOptions,
    bytes: InputBytes,
    is_empty: bool,
    mappable: Option<Mappable>,
    sibling: Option<Vec<u8>>,
}

/// How many of the first bytes of an input of no known format are kept for messages.
const BEGINNING_BYTES: usize = 64;

/// The bytes read for detection, followed by the rest.
type InputBytes = io::Chain<Cursor<Vec<u8>>, Box<dyn Read>>;

/// The options for opening and reading an input.
#[derive(Clone, Copy, Debug, Default)]
pub struct InputOptions {
    /// The format; `None` to detect it by content, or by name if the content does not decide.
    pub format: Option<Format>,
    /// The options for reading.
    pub read: ReadOptions,
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
        let (mappable, source) = source.split_mappable();
        let (name, mut reader) = source.into_parts();
        let prefix = match beginning(&mut reader) {
            Ok(prefix) => prefix,
            Err(source) => return Err(Error::Open { name, source }),
        };
        let content = Beginning::of(&prefix);
        let format = match options.format.map_or_else(|| content.kind(&name), InputKind::Format) {
            InputKind::Format(format) => format,
            InputKind::Foreign(foreign) => return Err(Error::Foreign { name, foreign }),
            InputKind::Empty(format) => return Err(Error::Empty { name, format }),
            InputKind::Unknown => return Err(Error::Unrecognised { name, begins: content.shown(prefix) }),
        };
        if !format.readable() {
            return Err(Error::NotReadable { name, format });
        }
        // A compressed file cannot be mapped.
        let is_document = matches!(format.importer(), Some(Import::Document { .. }));
        let mappable = mappable.filter(|_| is_document && Method::of(&prefix).is_none());
        let is_empty = content.is_empty;
        let bytes = Cursor::new(prefix).chain(reader);
        Ok(Self { name, format, read: options.read, bytes, is_empty, mappable, sibling: None })
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
            let sibling = tachyon::read_document(Envelope::new(sibling), &self.read)?;
            if !sibling.starts_with(&tachyon::JOURNAL_MAGIC) {
                tachyon::Reader::new(&sibling)?;
            }
            Ok(sibling)
        };
        self.sibling = Some(open().map_err(|error| Error::reading(name, ReadError::Input(error)))?);
        Ok(())
    }

    /// The format.
    #[must_use]
    pub const fn format(&self) -> Format {
        self.format
    }

    /// The name for messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the input is empty, or decompresses to nothing.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.is_empty
    }

    #[cfg(any(feature = "pprof", feature = "otlp"))]
    pub(crate) const fn limits(&self) -> borehole_formats::Limits {
        self.read.limits
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
        let sink: &mut dyn ProfileSink = &mut Budgeted(sink);
        if let Some(Import::Document { import, .. }) = self.format.importer()
            && let Some(mapped) = self.mappable.as_ref().filter(|_| !self.is_empty).and_then(Mappable::map)
        {
            // The mapping also has the bytes that were read for detection.
            drop(self.bytes);
            let passed = Passed::of(&mapped);
            let on_passed = |end| passed.up_to(end);
            let (bytes, sibling) = (mapped.bytes(), self.sibling.as_deref());
            let document = Document { bytes, sibling, on_passed: Some(&on_passed) };
            return import(document, &self.read, tables, sink)
                .map_err(|error| Error::reading(&self.name, error));
        }
        let Self { name, format, is_empty, .. } = self;
        let read = import(format, self.bytes, self.sibling.as_deref(), &self.read, tables, sink);
        let mut recovery = read.map_err(|error| match error {
            ReadError::Input(_) if is_empty => Error::Empty { name: name.clone(), format: Some(format) },
            error => Error::reading(&name, error),
        })?;
        if is_empty {
            let message = format!("empty: read as {} without samples", format.name());
            recovery.note(Warning::new(message));
        }
        Ok(recovery)
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

    /// Detects the kind, by content and then by name.
    fn kind(&self, name: &str) -> InputKind {
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
        let format = detect(&self.bytes).or_else(|| Format::from_name_alone(name));
        format.map_or(InputKind::Unknown, InputKind::Format)
    }

    /// The part of an input of no known format that messages need. If it cannot be decompressed, this is the raw part.
    fn shown(self, prefix: Vec<u8>) -> Vec<u8> {
        let mut shown = if self.bytes.is_empty() { prefix } else { self.bytes };
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

fn import(
    format: Format,
    mut bytes: InputBytes,
    sibling: Option<&[u8]>,
    options: &ReadOptions,
    tables: &mut Tables,
    sink: &mut dyn ProfileSink,
) -> Result<Recovery, ReadError> {
    match format.importer() {
        Some(Import::Plain(import)) => import_plain(format, import, bytes, options, tables, sink),
        Some(Import::Enveloped(import)) => import(&mut bytes, options, boxed_spool, tables, sink),
        Some(Import::Document { read, import }) => {
            let mut spared = Spared::new(&mut bytes, format, false);
            let bytes = read(&mut spared, options)?;
            let document = Document { bytes: &bytes, sibling, on_passed: None };
            let recovery = import(document, options, tables, sink)?;
            warn_of_envelope(&spared, recovery, sink)
        }
        // `Input::open` rejects formats that this build cannot read.
        None => Err(ReadError::Sink(io::Error::other(format!("{} cannot be read", format.name())))),
    }
}

/// Imports a format that does not read its own envelope. In lenient reading, this yields what precedes damage of the
/// envelope.
fn import_plain(
    format: Format,
    import: ImportPlain,
    bytes: InputBytes,
    options: &ReadOptions,
    tables: &mut Tables,
    sink: &mut dyn ProfileSink,
) -> Result<Recovery, ReadError> {
    let mut spared = Decoded::new(Spared::new(bytes, format, options.is_lenient()));
    let read = import(&mut io::BufReader::with_capacity(64 << 10, &mut spared), options, tables, sink);
    match (read, spared.input().damage) {
        (Ok(recovery), _) => warn_of_envelope(spared.input(), recovery, sink),
        // The remaining input is too short to import. Its early end is only a consequence of the damage.
        (Err(ReadError::Input(error)), Some(damage)) if !error.is_limit() => {
            Err(borehole_formats::Error::io(format.name(), Position::Whole, damage.into()).into())
        }
        (Err(error), _) => Err(error),
    }
}

/// Adds the warnings about the envelope.
fn warn_of_envelope(
    spared: &Spared<impl Read>,
    mut recovery: Recovery,
    sink: &mut dyn ProfileSink,
) -> Result<Recovery, ReadError> {
    for warning in spared.warnings() {
        sink.warning(&warning)?;
        recovery.warn(warning);
    }
    Ok(recovery)
}
