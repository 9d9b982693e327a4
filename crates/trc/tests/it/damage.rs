//! Every cut and every changed byte of small files.

use borehole_testkit::allocations::allocations;
use borehole_trc::ReadOptions;
use borehole_trc::Reader;

use super::input;
use super::stream::read;

/// The memory limit for each, all allocations together: the window, the decompressor, and little else.
const MOST_BYTES: u64 = 1 << 20;

/// Small files, one of each kind.
const SMALL: [&str; 12] = [
    "gz_split_frame.bin.gz",
    "gz_two_members.bin.gz",
    "no_timestamp_mixed.bin",
    "real_057_killed.bin.active",
    "ts_resets.bin",
    "v032_concat_batches.bin",
    "v032_small.bin",
    "v054_annotations.bin",
    "v054_into_encoder.bin",
    "v054_raw_batches.bin",
    "v054_small.bin",
    "v054_stack_pool.bin",
];

fn small_files() -> impl Iterator<Item = (&'static str, Vec<u8>)> {
    SMALL.into_iter().map(|name| {
        let mut bytes = input(name);
        bytes.truncate(800);
        (name, bytes)
    })
}

/// Reads to the end, and decodes every value.
fn survive(what: &str, bytes: &[u8], options: ReadOptions) {
    let ((), found) = allocations(|| {
        let mut reader = Reader::with_options(bytes, options);
        let outcome = reader.for_each_event(|event| {
            event.values().for_each(|value| {
                let _ = std::hint::black_box(value);
            });
        });
        assert!(outcome.is_ok() || !options.is_lenient(), "{what}: {outcome:?}");
        let recovery = reader.recovery();
        assert!(recovery.lost_bytes <= 1 << 16 && reader.has_ended(), "{what}: {recovery:?}");
    });
    assert!(found.bytes < MOST_BYTES, "{what}: {found:?}");
}

#[test]
fn every_prefix_gives_the_beginning_of_the_events() {
    for (name, bytes) in small_files() {
        let (whole, error, _) = read(&bytes, ReadOptions::default());
        assert!(error.is_none() && !whole.is_empty(), "{name}: {error:?}");
        for cut in 0..bytes.len() {
            let (strict, error, recovery) = read(&bytes[..cut], ReadOptions::default());
            // The first byte of a gzip member alone is ambiguous.
            let is_unknown = strict.is_empty() && name.ends_with(".gz");
            assert!(error.is_none() || is_unknown, "{name} {cut}: {error:?}");
            assert!(whole.starts_with(&strict), "{name} {cut}");
            assert_eq!(recovery.events, strict.len() as u64);
            let (lenient, error, _) = read(&bytes[..cut], ReadOptions::lenient());
            assert!(error.is_none() && lenient.len() >= strict.len(), "{name} {cut}");
        }
    }
}

#[test]
fn every_flipped_bit_is_survived() {
    for (name, mut bytes) in small_files() {
        for at in 0..bytes.len() {
            for bit in 0..8 {
                bytes[at] ^= 1 << bit;
                survive(name, &bytes, ReadOptions::default());
                survive(name, &bytes, ReadOptions::lenient());
                bytes[at] ^= 1 << bit;
            }
        }
    }
}

#[test]
fn every_value_of_every_byte_is_survived() {
    for name in ["v032_small.bin", "v054_small.bin"] {
        let mut bytes = input(name);
        for at in 0..bytes.len() {
            let before = bytes[at];
            for value in 0..=255 {
                bytes[at] = value;
                survive(name, &bytes, ReadOptions::default());
                survive(name, &bytes, ReadOptions::lenient());
            }
            bytes[at] = before;
        }
    }
}

#[test]
fn counts_and_lengths_far_beyond_the_data_take_no_memory() {
    let names = super::names();
    let huge: Vec<_> =
        names.iter().filter(|name| name.contains("huge") || name.contains("over_1m")).collect();
    assert_eq!(huge.len(), 6, "{huge:?}");
    for name in huge {
        survive(name, &input(name), ReadOptions::default());
        survive(name, &input(name), ReadOptions::lenient());
    }
}
