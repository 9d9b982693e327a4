//! An input whose format is known.

use std::io::{self, Cursor, Read};

use borehole_formats::detect::{DETECT_BYTES, Foreign, Format, detect, foreign};
use borehole_formats::encoding::Decoded;
use borehole_formats::envelope::Envelope;
#[cfg(feature = "tachyon")]
use borehole_formats::envelope::Method;
#[cfg(feature = "tachyon")]
use borehole_formats::tachyon;
#[cfg(feature = "zstd")]
use borehole_formats::zstd::{FIRST_BLOCK_BYTES, FRAME_MAGIC};
use borehole_formats::{Position, ReadError, ReadOptions};
use borehole_model::{ProfileSink, Recovery, Tables, Warning};

#[cfg(feature = "tachyon")]
use crate::mapped::{Mappable, Passed};
use crate::spared::Spared;
#[cfg(feature = "trc")]
use crate::spool::spool;
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
/// assert!(error.to_string().contains("expected a defined string, found string 5 (rbt, at byte 0x12a)"));
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
    bytes: Bytes,
    is_empty: bool,
    #[cfg(feature = "tachyon")]
    mappable: Option<Mappable>,
    sibling: Option<Vec<u8>>,
}

/// How many of the first bytes of an input of no known format are kept for messages.
const BEGINNING_BYTES: usize = 64;

/// The bytes read for detection, followed by the rest.
type Bytes = io::Chain<Cursor<Vec<u8>>, Box<dyn Read>>;

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
        #[cfg(feature = "tachyon")]
        let (mappable, source) = source.split_mappable();
        let (name, mut reader) = source.into_parts();
        let prefix = match beginning(&mut reader) {
            Ok(prefix) => prefix,
            Err(source) => return Err(Error::Open { name, source }),
        };
        let content = Beginning::of(&prefix);
        let format = match options.format.map_or_else(|| content.tell(&name), Told::Format) {
            Told::Format(format) => format,
            Told::Foreign(foreign) => return Err(Error::Foreign { name, foreign }),
            Told::Empty(format) => return Err(Error::Empty { name, format }),
            Told::Nothing => return Err(Error::Unrecognised { name, begins: content.shown(prefix) }),
        };
        if !format.readable() {
            return Err(Error::NotReadable { name, format });
        }
        #[cfg(feature = "tachyon")]
        // A compressed file cannot be mapped.
        let mappable = mappable.filter(|_| format == Format::Tachyon && Method::of(&prefix).is_none());
        let is_empty = content.is_all_of_nothing;
        let bytes = Cursor::new(prefix).chain(reader);
        Ok(Self {
            name,
            format,
            read: options.read,
            bytes,
            is_empty,
            #[cfg(feature = "tachyon")]
            mappable,
            sibling: None,
        })
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

    /// The bytes of the file, without decompression.
    #[must_use]
    pub fn into_bytes(self) -> impl Read {
        self.bytes
    }

    /// Streams everything into `sink` without finishing it, so that further inputs with the same tables may follow.
    ///
    /// # Errors
    /// If the input is damaged and read strictly, or the sink fails.
    pub fn read_into(self, tables: &mut Tables, sink: &mut dyn ProfileSink) -> Result<Recovery, Error> {
        #[cfg(feature = "tachyon")]
        if let Some(mapped) = self.mappable.as_ref().filter(|_| !self.is_empty).and_then(Mappable::map) {
            // The mapping also has the bytes that were read for detection.
            drop(self.bytes);
            let passed = Passed::of(&mapped);
            let on_passed = |end| passed.up_to(end);
            let (bytes, sibling) = (mapped.bytes(), self.sibling.as_deref());
            let document = tachyon::Document { bytes, sibling, on_passed: Some(&on_passed) };
            return tachyon::import_document(document, &self.read, tables, sink)
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
fn beginning(reader: &mut dyn Read) -> io::Result<Vec<u8>> {
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
enum Told {
    Format(Format),
    Foreign(&'static Foreign),
    /// The input is empty, but has the name of a profile.
    Empty(Option<Format>),
    Nothing,
}

/// The first bytes of an input, decompressed.
struct Beginning {
    bytes: Vec<u8>,
    /// Whether the input ends there and is empty.
    is_all_of_nothing: bool,
}

impl Beginning {
    fn of(prefix: &[u8]) -> Self {
        let mut bytes = Vec::new();
        // A damaged or truncated member still yields its first bytes.
        let unpacked = Envelope::new(prefix).take(DETECT_BYTES as u64).read_to_end(&mut bytes);
        let is_all_of_nothing = prefix.len() < DETECT_BYTES && unpacked.is_ok() && bytes.is_empty();
        if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
            let mut text = Vec::new();
            // A slice can be read to its end. The text is cut to the length for detection, because it may end with half
            // a character.
            let _ = Decoded::new(&bytes[..]).read_to_end(&mut text);
            text.truncate(DETECT_BYTES);
            bytes = text;
        }
        Self { bytes, is_all_of_nothing }
    }

    /// Detects the kind, by content and then by name.
    fn tell(&self, name: &str) -> Told {
        if self.is_all_of_nothing {
            return nothing(name);
        }
        // Heaps contain text that could pass for a profile, and have names like profiles.
        #[cfg(feature = "heap")]
        if crate::heap::tell(&self.bytes).is_some() {
            return Told::Nothing;
        }
        if let Some(foreign) = foreign(&self.bytes) {
            return Told::Foreign(foreign);
        }
        let format = detect(&self.bytes).or_else(|| Format::from_name_alone(name));
        format.map_or(Told::Nothing, Told::Format)
    }

    /// The part of an input of no known format that messages need. If it cannot be decompressed, this is the raw part.
    fn shown(self, prefix: Vec<u8>) -> Vec<u8> {
        let mut shown = if self.bytes.is_empty() { prefix } else { self.bytes };
        shown.truncate(BEGINNING_BYTES);
        shown
    }
}

/// The kind of an empty input, by its name: a recording of nothing, or not a profile.
fn nothing(name: &str) -> Told {
    let name = name.strip_suffix(".zst").unwrap_or(name);
    let format = match Format::from_path(name) {
        // Collapsed stacks are read as folded stacks.
        Some((Format::Collapsed, _)) => Some(Format::Folded),
        by_name => by_name.map(|(format, _)| format),
    };
    match format {
        // CPython leaves an empty file if it is killed; a sibling may have tables for it.
        Some(Format::Rbt | Format::Phpspy | Format::Folded | Format::Tachyon) | None => {}
        Some(_) => return Told::Empty(format),
    }
    match format.filter(|format| format.readable()) {
        None if is_json(name) => Told::Empty(None),
        format => Told::Format(format.unwrap_or(Format::Rbt)),
    }
}

/// Whether a name is that of a JSON document, which is never empty.
fn is_json(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.strip_suffix(".gz").unwrap_or(&name).ends_with(".json")
}

#[cfg_attr(not(feature = "tachyon"), allow(unused_variables, reason = "only tachyon files borrow"))]
fn import(
    format: Format,
    bytes: Bytes,
    sibling: Option<&[u8]>,
    options: &ReadOptions,
    tables: &mut Tables,
    sink: &mut dyn ProfileSink,
) -> Result<Recovery, ReadError> {
    match format {
        #[cfg(feature = "tachyon")]
        Format::Tachyon => {
            let bytes = tachyon::read_document(Envelope::new(bytes), options)?;
            let document = tachyon::Document { bytes: &bytes, sibling, on_passed: None };
            tachyon::import_document(document, options, tables, sink)
        }
        #[cfg(feature = "rbt")]
        Format::Rbt => borehole_formats::rbt::import(bytes, options, tables, sink),
        #[cfg(feature = "trc")]
        Format::Trc => borehole_formats::trc::import(bytes, options, spool(), tables, sink),
        _ => import_plain(format, bytes, options, tables, sink),
    }
}

/// Imports a format that does not read its own envelope. In lenient reading, this yields what precedes damage of the
/// envelope.
fn import_plain(
    format: Format,
    bytes: Bytes,
    options: &ReadOptions,
    tables: &mut Tables,
    sink: &mut dyn ProfileSink,
) -> Result<Recovery, ReadError> {
    let spared = Decoded::new(Spared::new(bytes, options.is_lenient()));
    let mut plain = io::BufReader::with_capacity(64 << 10, spared);
    let read = match format {
        #[cfg(feature = "phpspy")]
        Format::Phpspy => borehole_formats::phpspy::import(&mut plain, options, tables, sink),
        #[cfg(feature = "folded")]
        Format::Folded => borehole_formats::folded::import(&mut plain, options, tables, sink),
        #[cfg(feature = "gecko")]
        Format::Gecko => borehole_formats::gecko::import(&mut plain, options, tables, sink),
        #[cfg(feature = "otlp")]
        Format::Otlp => borehole_formats::otlp::import(&mut plain, options, tables, sink),
        #[cfg(feature = "pprof")]
        Format::Pprof => borehole_formats::pprof::import(&mut plain, options, tables, sink),
        #[cfg(feature = "speedscope")]
        Format::Speedscope => borehole_formats::speedscope::import(&mut plain, options, tables, sink),
        #[cfg(feature = "tachyon-jsonl")]
        Format::TachyonJsonl => borehole_formats::tachyon_jsonl::import(&mut plain, options, tables, sink),
        #[cfg(feature = "jsonl")]
        Format::Jsonl => borehole_formats::jsonl::import(&mut plain, options, tables, sink),
        // `Input::open` rejects formats that this build cannot read.
        _ => {
            let _ = (&mut plain, options, tables);
            Err(ReadError::Sink(io::Error::other(format!("{} cannot be read", format.name()))))
        }
    };
    let Some(damage) = plain.get_ref().input().damage else { return read };
    match read {
        Ok(mut recovery) => {
            let warning = Warning::new(damage.to_string());
            sink.warning(&warning)?;
            recovery.warn(warning);
            Ok(recovery)
        }
        // The remaining input is too short to import. Its early end is only a consequence of the damage.
        Err(ReadError::Input(error)) if !error.is_limit() => {
            Err(borehole_formats::Error::io(format.name(), Position::Whole, damage.into()).into())
        }
        Err(error) => Err(error),
    }
}
