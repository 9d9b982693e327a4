//! The targets: one a reader.

use borehole_wire::{Cursor, put_varint};

use super::Target;

/// Every target.
pub const TARGETS: &[Target] = &[Target { name: "wire", run: wire, corpus: &[("rbt/sweeps", ".rbt")] }];

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
