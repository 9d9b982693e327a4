//! Counts the samples of an rbt trace, with the reader of that format alone.

#![forbid(unsafe_code)]

use borehole_formats::rbt::{Reader, Record};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let trace = std::env::args().nth(1).unwrap_or("../../../corpus/rbt/daemon_worker.rbt".into());
    let mut reader = Reader::new(std::fs::File::open(trace)?);
    let mut samples = 0;
    while let Some(record) = reader.next_record()? {
        samples += if let Record::Sample(sample) = record { sample.count } else { 0 };
    }
    Ok(println!("{samples} samples"))
}
