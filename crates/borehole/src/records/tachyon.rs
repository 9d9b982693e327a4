//! The records of a `tachyon` file.

use borehole_formats::ReadOptions;
use borehole_formats::tachyon::layout::RecordKind;
use borehole_formats::tachyon::{Reader, read_document};
use borehole_wire::envelope::{Envelope, Method};

use super::RecordCounts;
use crate::Source;
use crate::mapped::{Mappable, Passed};

/// The number of samples read between checks of the position.
const SAMPLES_BETWEEN_LOOKS: u64 = 1 << 11;

/// Counts the records of each kind, up to the first that is damaged.
pub(super) fn count(source: Source) -> RecordCounts {
    let (mappable, source) = source.split_mappable();
    let mapped = mappable.as_ref().and_then(Mappable::map);
    // A compressed file cannot be read in place.
    if let Some(mapped) = mapped.filter(|mapped| Method::of(mapped.bytes()).is_none()) {
        let passed = Passed::of(&mapped);
        return count_in(mapped.bytes(), |end| passed.up_to(end));
    }
    let input = Envelope::new(source.into_reader());
    let bytes = read_document(input, &ReadOptions::default()).unwrap_or_default();
    count_in(&bytes, |_| ())
}

fn count_in(bytes: &[u8], on_passed: impl Fn(usize)) -> RecordCounts {
    let Ok(mut reader) = Reader::new(bytes) else { return RecordCounts::default() };
    let is_whole = loop {
        match reader.next_sample() {
            Ok(Some(_)) => {}
            Ok(None) => break true,
            Err(_) => break false,
        }
        if reader.recovery().samples.is_multiple_of(SAMPLES_BETWEEN_LOOKS) {
            on_passed(reader.passed_bytes());
        }
    };
    let names = RecordKind::ALL.iter().map(|kind| kind.name());
    RecordCounts {
        by_type: names.zip(reader.record_counts().records).collect(),
        compressed_bytes: reader.compressed_bytes().filter(|_| is_whole),
    }
}
