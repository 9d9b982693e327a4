//! The records of a `tachyon` file.

use std::io::Read;

use borehole_formats::ReadOptions;
use borehole_formats::envelope::Envelope;
use borehole_formats::tachyon::layout::RecordKind;
use borehole_formats::tachyon::{Reader, read_document};

use super::RecordCounts;

/// How many there are of each kind, up to the first that is damaged.
pub(super) fn count(input: impl Read) -> RecordCounts {
    let options = ReadOptions::default();
    let bytes = read_document(Envelope::new(input), &options).unwrap_or_default();
    let Ok(mut reader) = Reader::with_options(&bytes, options) else { return RecordCounts::default() };
    let is_whole = loop {
        match reader.next_sample() {
            Ok(Some(_)) => {}
            Ok(None) => break true,
            Err(_) => break false,
        }
    };
    let names = RecordKind::ALL.map(RecordKind::name).into_iter();
    RecordCounts {
        by_type: names.zip(reader.record_counts().records).collect(),
        compressed_bytes: reader.compressed_bytes().filter(|_| is_whole),
    }
}
