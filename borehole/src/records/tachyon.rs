//! The records of a `tachyon` file.

use std::collections::BTreeMap;
use std::io::Read;

use borehole_formats::ReadOptions;
use borehole_formats::gzip::Envelope;
use borehole_formats::tachyon::layout::RecordKind;
use borehole_formats::tachyon::{Reader, read_document};

/// How many there are of each kind, by name, up to the first that is damaged.
pub(super) fn count(input: impl Read) -> BTreeMap<&'static str, u64> {
    let options = ReadOptions::default();
    let bytes = read_document(Envelope::new(input), &options).unwrap_or_default();
    let Ok(mut reader) = Reader::with_options(&bytes, options) else { return BTreeMap::new() };
    while let Ok(Some(_)) = reader.next_sample() {}
    RecordKind::ALL.map(RecordKind::name).into_iter().zip(reader.record_counts().records).collect()
}
