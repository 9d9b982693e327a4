//! The targets: one a reader.

use borehole_formats::ReadOptions;
use borehole_formats::tachyon;
use borehole_model::{Count, Tables};
use borehole_wire::{Cursor, put_varint};

use super::Target;

/// Every target.
pub const TARGETS: &[Target] = &[
    Target { name: "wire", run: wire, corpus: &[("rbt/sweeps", ".rbt")] },
    Target {
        name: "tachyon",
        run: tachyon,
        corpus: &[("tachyon/corrupt", ".bin"), ("tachyon/bigendian", ".bin")],
    },
];

/// Reads the bytes as one varint after the other: what fits 64 bits comes back shorter or as it was.
fn wire(bytes: &[u8]) {
    let mut cursor = Cursor::new(bytes, 0);
    while !cursor.is_empty() {
        let mut wrapping = cursor;
        let before = cursor.offset();
        match cursor.varint() {
            Ok(value) => {
                assert_eq!(wrapping.varint_wrapping(), Ok(value));
                let mut written = Vec::new();
                put_varint(&mut written, value);
                let read = cursor.offset() - before;
                assert!(
                    written.len() as u64 <= read,
                    "{value} takes {} bytes, read from {read}",
                    written.len()
                );
                assert_eq!(Cursor::new(&written, 0).varint(), Ok(value));
            }
            Err(error) => {
                assert!(error.offset() >= before && error.offset() <= bytes.len() as u64);
                return;
            }
        }
    }
}

/// Reads the bytes as a `tachyon` file, strictly and past damage: a file that is read without an error is
/// read to the same samples past damage, and nothing but a limit ends the latter.
fn tachyon(bytes: &[u8]) {
    let read = |options: ReadOptions| {
        let mut count = Count::default();
        let outcome = tachyon::import(bytes, &options, &mut Tables::default(), &mut count);
        (outcome.map(|recovery| recovery.samples), count.samples)
    };
    let strict = read(ReadOptions::default());
    let (lenient, saved) = read(ReadOptions::lenient());
    let lenient = lenient.expect("damage is read over");
    assert_eq!(lenient, saved);
    if let (Ok(samples), delivered) = strict {
        assert_eq!(samples, delivered);
        assert!(samples <= lenient, "{samples} strictly, {lenient} past damage");
    }
}
