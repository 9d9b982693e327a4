//! The raw records of a file, undecoded as far as the format allows: for debugging odd files.

#[cfg(feature = "rbt")]
mod rbt;
#[cfg(feature = "tachyon")]
mod tachyon;
#[cfg(feature = "trc")]
mod trc;

use std::collections::BTreeMap;
use std::io::Write;

use borehole_formats::Recovery;
use borehole_formats::jsonl::LineWriter;

use crate::{Error, Format, Input, Source};

/// Writes every record of `input` as a line of JSON with its offset, in the order of the file.
///
/// Returns warnings and losses; samples are not counted. Only `rbt` and `trc` have such records.
///
/// # Examples
///
/// ```
/// use borehole::{Input, InputOptions, Source, dump_records};
///
/// let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/data/native.rbt");
/// let mut lines = Vec::new();
/// dump_records(Input::open(Source::path(trace)?, &InputOptions::default())?, &mut lines)?;
/// let header = br#"{"type":"HEADER","offset":0,"has_timestamps":false,"period_us":10000}"#;
/// assert!(lines.starts_with(header));
/// # Ok::<(), borehole::Error>(())
/// ```
///
/// # Errors
/// If the format has no records, the input is damaged, or the output cannot be written.
pub fn dump_records(input: Input, output: impl Write) -> Result<Recovery, Error> {
    let (name, format) = (input.name().to_owned(), input.format());
    let dumped = match format {
        #[cfg(feature = "rbt")]
        Format::Rbt => rbt::dump(input.into_bytes(), output),
        #[cfg(feature = "trc")]
        Format::Trc => trc::dump(input.into_bytes(), output),
        _ => return Err(Error::NoRecords { name, format }),
    };
    dumped.map_err(|error| Error::reading(&name, error))
}

/// The numbers of records in an input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordCounts {
    /// The number of records of each type, by name; empty for formats without records.
    pub by_type: BTreeMap<&'static str, u64>,
    /// The bytes of the records in the file and decompressed; `None` unless the format compresses only its records.
    pub compressed_bytes: Option<(u64, u64)>,
}

/// The keys `records`, and `compressed_bytes` and `decompressed_bytes`, which are null if unknown.
#[cfg(feature = "serde")]
impl serde::Serialize for RecordCounts {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap as _;
        let mut object = serializer.serialize_map(Some(3))?;
        object.serialize_entry("records", &self.by_type)?;
        object.serialize_entry("compressed_bytes", &self.compressed_bytes.map(|(stored, _)| stored))?;
        object.serialize_entry("decompressed_bytes", &self.compressed_bytes.map(|(_, whole)| whole))?;
        object.end()
    }
}

/// Counts the records of a source, up to the first that is damaged. A `tachyon` file is memory-mapped, as for reading, and
/// only the part in use is held.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "rbt")] {
/// use borehole::{Format, Source, count_records};
///
/// let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/data/native.rbt");
/// let counts = count_records(Format::Rbt, Source::path(trace)?);
/// assert_eq!((counts.by_type["STACK_DEF"], counts.by_type["COMPACT_SAMPLE"]), (4, 4));
/// # }
/// # Ok::<(), borehole::Error>(())
/// ```
#[must_use]
pub fn count_records(format: Format, source: Source) -> RecordCounts {
    let by_type = |by_type| RecordCounts { by_type, compressed_bytes: None };
    match format {
        #[cfg(feature = "rbt")]
        Format::Rbt => by_type(rbt::count(source.into_reader())),
        #[cfg(feature = "trc")]
        Format::Trc => by_type(trc::count(source.into_reader())),
        #[cfg(feature = "tachyon")]
        Format::Tachyon => tachyon::count(source),
        _ => by_type(BTreeMap::new()),
    }
}

/// Begins the line of a record.
fn begin(line: &mut LineWriter, record_type: &str, offset: u64) {
    line.begin_object();
    line.key("type");
    line.text(record_type);
    line.key("offset");
    line.unsigned(offset);
}
