//! Claims on damaged files of the native formats: a search for what can be read takes time by their length, whatever they
//! hold.

use std::io::Write as _;
use std::path::Path;

use anyhow::Result;
use borehole_formats::{ReadOptions, rbt, tachyon, tachyon_jsonl};
use borehole_model::{Count, Tables};
use borehole_trc::Reader;

use super::measure::rate_on;
use super::{Bench, Claim, ClaimUnit, Goal, Side};

const BYTES: u32 = 4 << 20;

/// The most elements that a list may say it has. Source: `docs/formats/trc.md`.
const MOST_ELEMENTS: u32 = 1_000_000;

/// How many bytes a second are to be searched.
const GOAL: f64 = 20e6;

/// Streams that are looked at as often as a search may look, each made of pieces that reach to its end, which is so many bytes
/// ahead.
const CRAFTED: [(&str, DamagedPiece); 3] = [
    ("lists to the end", |left| [event(2, left.min(MOST_ELEMENTS)), [11, 0].repeat(3)].concat()),
    ("lists behind small events", |left| {
        let small = [event(1, 0), event(1, 0), event(1, 0)].concat();
        [&small[..], &event(2, left.min(MOST_ELEMENTS)), &[5], &12_u32.to_le_bytes()].concat()
    }),
    ("schemas that do not end", |_| {
        [&[1, 9, 0, 1, 0, b'S', 0, 0xff, 0xff][..], &[0, 0, 9].repeat(400)].concat()
    }),
];

type DamagedPiece = fn(u32) -> Vec<u8>;

/// Pieces that are repeated behind the beginning of a file of another format, whose name comes first.
const REPEATED: [(&str, &str, &[u8]); 8] = [
    ("rbt", "false frames of zstd", &[0x28, 0xb5, 0x2f, 0xfd]),
    ("rbt", "frames of zstd that fail late", &[0x28, 0xb5, 0x2f, 0xfd, 0, 0x68, 0x84, 0x3e, 0, 0x55]),
    ("rbt", "false members of gzip", &[0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 3, 0xff, 0xff]),
    ("rbt", "stacks in stacks", &[2, 0xd0, 0x0f]),
    ("rbt", "ends of segments", &[5, 0]),
    ("tachyon", "records in records", &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0x80, 0x08]),
    ("tachyon", "false heads of records", &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9]),
    ("tachyon-jsonl", "lines of one byte", b"x\n"),
];

pub(crate) fn claims(bench: &Bench) -> Result<Vec<Claim>> {
    let crafted = CRAFTED.iter().map(|&(what, piece)| claim(bench, what, piece));
    let repeated = REPEATED.iter().map(|&(format, what, piece)| repeated_claim(bench, format, what, piece));
    crafted.chain(repeated).collect()
}

fn repeated_claim(bench: &Bench, format: &'static str, what: &str, piece: &[u8]) -> Result<Claim> {
    let file = format!("damaged-4m-{}.{format}", what.replace(' ', "-"));
    let path = bench.input(&file, |output| Ok(output.write_all(&repeated(format, piece))?))?;
    let name = format!("{format}, 4 MB of crafted damage searched: {what}");
    let rate = rate_on(&path, f64::from(BYTES), |bytes| {
        std::hint::black_box(saved(format, bytes)?);
        Ok(())
    });
    Ok(Claim::new(name, ClaimUnit::BytesPerSecond, Goal::Value(GOAL), rate))
}

/// The beginning of a file, and `piece` until it has [`BYTES`].
fn repeated(format: &str, piece: &[u8]) -> Vec<u8> {
    let mut bytes = match format {
        "rbt" => rbt::Header::default().encode().to_vec(),
        // One record of thread 0, so that it is known.
        "tachyon" => [&[0; 64][..], &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0]].concat(),
        _ => Vec::new(),
    };
    while bytes.len() < BYTES as usize {
        bytes.extend_from_slice(piece);
    }
    bytes
}

/// How many samples are read in spite of damage.
fn saved(format: &str, bytes: &[u8]) -> Result<u64> {
    let (options, mut tables, mut count) = (ReadOptions::lenient(), Tables::default(), Count::default());
    match format {
        "rbt" => rbt::import(bytes, &options, &mut tables, &mut count)?,
        "tachyon" => tachyon::import(bytes, &options, &mut tables, &mut count)?,
        _ => tachyon_jsonl::import(bytes, &options, &mut tables, &mut count)?,
    };
    Ok(count.samples)
}

fn claim(bench: &Bench, what: &str, piece: DamagedPiece) -> Result<Claim> {
    let file = format!("damaged-4m-{}.trc", what.replace(' ', "-"));
    let stream = bench.input(&file, |output| Ok(output.write_all(&stream(piece, BYTES)?)?))?;
    let name = format!("trc, 4 MB of crafted damage searched: {what}");
    Ok(Claim::new(name, ClaimUnit::BytesPerSecond, Goal::Value(GOAL), searched(&stream)))
}

fn searched(stream: &Path) -> Side {
    rate_on(stream, f64::from(BYTES), |bytes| {
        std::hint::black_box(search(bytes)?);
        Ok(())
    })
}

/// How many events are found.
fn search(bytes: &[u8]) -> Result<u64> {
    let mut reader = Reader::with_options(bytes, ReadOptions::lenient());
    let mut events = 0_u64;
    reader.for_each_event(|_| events += 1)?;
    Ok(events)
}

/// A header, a type with a value of bytes (1), one with a list (2), and pieces until the stream has `length` bytes.
fn stream(piece: DamagedPiece, length: u32) -> Result<Vec<u8>> {
    let mut bytes = b"TRC\0\x01".to_vec();
    for (type_id, kind) in [(1, 5), (2, 14)] {
        bytes.extend_from_slice(&[1, type_id, 0, 1, 0, b'E', 0, 1, 0, 1, 0, b'f', kind]);
    }
    loop {
        let left = length.saturating_sub(u32::try_from(bytes.len())?);
        if left == 0 {
            return Ok(bytes);
        }
        bytes.extend_from_slice(&piece(left));
    }
}

/// An event of `type_id` whose value says that it has `count` bytes, or elements.
fn event(type_id: u8, count: u32) -> Vec<u8> {
    [&[2, type_id, 0][..], &count.to_le_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_damaged_and_searched_to_their_ends() {
        for (what, piece) in CRAFTED {
            let bytes = stream(piece, 64 << 10).unwrap();
            let mut reader = Reader::with_options(bytes.as_slice(), ReadOptions::lenient());
            reader.for_each_event(|_| {}).unwrap();
            assert!(reader.recovery().lost_bytes > 0, "{what}");
            search(&bytes).unwrap();
        }
        for (format, _, piece) in REPEATED {
            let mut bytes = repeated(format, piece);
            bytes.truncate(64 << 10);
            saved(format, &bytes).unwrap();
        }
    }
}
