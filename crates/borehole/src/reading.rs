//! The reading of an input of a known format: by its importer, watched, within its budget.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use borehole_formats::detect::Format;
use borehole_formats::registry::{Companion, Document, Import, PlainInput};
use borehole_formats::{Position, ReadError, ReadOptions};
use borehole_model::{ProfileSink, Recovery, Tables, Warning};
use borehole_wire::encoding::Decoded;
use borehole_wire::envelope::Envelope;

use crate::Error;
use crate::budgeted::Budgeted;
use crate::source::open_input;
use crate::spared::Spared;
use crate::spool::boxed_spool;
use crate::watch::{CancellableSink, Watch, WatchedRead};

/// An input without its bytes.
pub(crate) struct Reading {
    pub(crate) name: String,
    pub(crate) format: Format,
    pub(crate) read: ReadOptions,
    /// The bytes that the whole conversion may hold.
    pub(crate) memory_bytes: Option<usize>,
    pub(crate) is_empty: bool,
    /// The size of the file; `None` if it is unknown before reading.
    pub(crate) size_bytes: Option<u64>,
    /// A file that lends its tables.
    pub(crate) sibling: Option<Vec<u8>>,
    pub(crate) companion: Option<CompanionFile>,
    pub(crate) watch: Watch,
}

/// A file that lies beside an input and adds to it.
pub(crate) struct CompanionFile {
    name: String,
    file: File,
}

impl Reading {
    pub(crate) fn of(name: String, format: Format) -> Self {
        let (read, watch) = (ReadOptions::default(), Watch::default());
        Self {
            name,
            format,
            read,
            memory_bytes: None,
            is_empty: false,
            size_bytes: None,
            sibling: None,
            companion: None,
            watch,
        }
    }

    /// Whether the importer takes a document that is in memory whole.
    pub(crate) fn is_document(&self) -> bool {
        matches!(self.format.importer(), Some(Import::Document { .. }))
    }

    /// Imports a decompressed document. `on_passed` gets the end of what will not be read again.
    pub(crate) fn document(
        self,
        bytes: &[u8],
        on_passed: &dyn Fn(usize),
        tables: &mut Tables,
        sink: &mut dyn ProfileSink,
    ) -> Result<Recovery, Error> {
        self.watched(tables, sink, |reading, tables, sink| {
            let Some(Import::Document { import, .. }) = reading.format.importer() else {
                return Err(not_read(reading.format));
            };
            let passed = |end: usize| {
                on_passed(end);
                reading.watch.tell(end as u64, reading.size_bytes);
            };
            let document = Document { bytes, sibling: reading.sibling.as_deref(), on_passed: Some(&passed) };
            import(document, &reading.read, tables, sink)
        })
    }

    /// Imports a stream of bytes.
    pub(crate) fn stream(
        mut self,
        bytes: impl Read,
        tables: &mut Tables,
        sink: &mut dyn ProfileSink,
    ) -> Result<Recovery, Error> {
        let companion = self.companion.take();
        self.watched(tables, sink, |reading, tables, sink| {
            let Self { format, read, ref watch, size_bytes, is_empty, .. } = *reading;
            let bytes = WatchedRead { bytes, watch, read_bytes: 0, size_bytes };
            let lent = Lent { sibling: reading.sibling.as_deref(), companion };
            let mut recovery = import(format, bytes, lent, &read, tables, sink)?;
            if is_empty {
                recovery.note(Warning::new(format!("empty: read as {} without samples", format.name())));
            }
            Ok(recovery)
        })
    }

    /// Imports within the budget, until it is cancelled, and names the input in errors and warnings.
    fn watched(
        mut self,
        tables: &mut Tables,
        sink: &mut dyn ProfileSink,
        import: impl FnOnce(&Self, &mut Tables, &mut dyn ProfileSink) -> Result<Recovery, ReadError>,
    ) -> Result<Recovery, Error> {
        if let Some(bytes) = self.memory_bytes {
            tables.set_budget(bytes);
            let limits = &mut self.read.limits;
            limits.memory_bytes = limits.memory_bytes.min(bytes.saturating_sub(tables.held_bytes()));
        }
        let input: Arc<str> = Arc::from(self.name.as_str());
        let mut sink = Budgeted { sink, input: Arc::clone(&input) };
        let read = match self.watch.token {
            None => import(&self, tables, &mut sink),
            Some(_) => import(&self, tables, &mut CancellableSink { sink: &mut sink, watch: &self.watch }),
        };
        if self.watch.is_cancelled() {
            return Err(Error::Cancelled { name: self.name });
        }
        let mut recovery = read.map_err(|error| match error {
            ReadError::Input(_) if self.is_empty => {
                Error::Empty { name: self.name.clone(), format: Some(self.format) }
            }
            error => Error::reading(&self.name, error),
        })?;
        for warning in recovery.warnings.iter_mut().chain(&mut recovery.notes) {
            warning.input.get_or_insert_with(|| Arc::clone(&input));
        }
        if let Some(size_bytes) = self.size_bytes.filter(|_| !recovery.stopped) {
            self.watch.tell(size_bytes, Some(size_bytes));
        }
        Ok(recovery)
    }
}

impl CompanionFile {
    /// The file that accompanies the input at `path`; `None` if there is none.
    pub(crate) fn beside(path: &Path, format: Format) -> Result<Option<Self>, Error> {
        let Some(Import::Accompanied { companions, .. }) = format.importer() else { return Ok(None) };
        let names = path.file_name().and_then(OsStr::to_str).map(companions).unwrap_or_default();
        let places = names.iter().map(|name| path.with_file_name(name));
        let Some(place) = { places }.find(|place| place.is_file()) else { return Ok(None) };
        let name = place.display().to_string();
        match open_input(&place) {
            Ok(file) => Ok(Some(Self { name, file })),
            Err(source) => Err(Error::Open { name, source }),
        }
    }
}

/// The other files of an input.
struct Lent<'a> {
    sibling: Option<&'a [u8]>,
    companion: Option<CompanionFile>,
}

#[cold]
fn not_read(format: Format) -> ReadError {
    ReadError::Sink(io::Error::other(format!("{} cannot be read", format.name())))
}

fn import(
    format: Format,
    mut bytes: impl Read,
    lent: Lent<'_>,
    options: &ReadOptions,
    tables: &mut Tables,
    sink: &mut dyn ProfileSink,
) -> Result<Recovery, ReadError> {
    match format.importer() {
        Some(Import::Plain(import)) => {
            import_plain(format, bytes, options, sink, |input, sink| import(input, options, tables, sink))
        }
        Some(Import::Accompanied { import, .. }) => {
            let mut companion = lent.companion.map(|found| (found.name, Envelope::new(found.file)));
            import_plain(format, bytes, options, sink, |input, sink| {
                let companion = companion.as_mut().map(|(name, input)| Companion { name, input });
                import(input, companion, options, tables, sink)
            })
        }
        Some(Import::Enveloped(import)) => import(&mut bytes, options, boxed_spool, tables, sink),
        Some(Import::Document { read, import }) => {
            let mut spared = Spared::new(&mut bytes, format, false);
            let bytes = read(&mut spared, options)?;
            let document = Document { bytes: &bytes, sibling: lent.sibling, on_passed: None };
            let recovery = import(document, options, tables, sink)?;
            warn_of_envelope(&spared, recovery, sink)
        }
        // Inputs of formats that this build cannot read are not opened.
        None => Err(not_read(format)),
    }
}

/// Imports a format that does not read its own envelope. In lenient reading, this yields what precedes damage of the
/// envelope.
fn import_plain(
    format: Format,
    bytes: impl Read,
    options: &ReadOptions,
    sink: &mut dyn ProfileSink,
    import: impl FnOnce(&mut PlainInput<'_>, &mut dyn ProfileSink) -> Result<Recovery, ReadError>,
) -> Result<Recovery, ReadError> {
    let mut spared = Decoded::new(Spared::new(bytes, format, options.is_lenient()));
    let input: &mut dyn Read = &mut spared;
    let read = import(&mut io::BufReader::with_capacity(64 << 10, input), sink);
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
