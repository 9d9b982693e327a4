//! Limits of memory count what readers hold, not what a file encodes: measured with a counting allocator.

use borehole_formats::{Limits, ReadError, ReadOptions, gecko, otlp, pprof, rbt, speedscope, tachyon_jsonl};
use borehole_model::{Count, ProfileSink, Tables};
use borehole_testkit::allocations::allocations;
use borehole_wire::put_varint;

/// The limit of every reader here.
const LIMIT_BYTES: usize = 4 << 20;

/// The most that readers hold: a column that reaches the limit grows to twice its size before it is counted, and its old and its
/// new place are both there while it is copied; and buffers.
const MOST_BYTES: u64 = 3 * (LIMIT_BYTES as u64) + (1 << 20);

type ImportAll = fn(&[u8], &ReadOptions, &mut Tables, &mut dyn ProfileSink) -> Result<(), ReadError>;

/// Reads `bytes`, which say more than the limit allows, in both modes.
#[track_caller]
fn assert_bounded(bytes: &[u8], import: ImportAll) {
    let limits = Limits { memory_bytes: LIMIT_BYTES, ..Limits::default() };
    for options in [ReadOptions::default(), ReadOptions::lenient()] {
        let options = ReadOptions { limits, ..options };
        let (outcome, held) = allocations(|| {
            let (mut tables, mut count) = (Tables::default(), Count::default());
            import(bytes, &options, &mut tables, &mut count)
        });
        let error = outcome.expect_err("more than the limit");
        assert!(matches!(&error, ReadError::Input(error) if error.is_memory()), "{error}");
        assert!(error.to_string().starts_with("needs more than 4 MiB of memory"), "{error}");
        assert!(held.peak_bytes <= MOST_BYTES, "{held:?} of {MOST_BYTES} for {} bytes of input", bytes.len());
    }
}

/// A field of a protobuf message that holds bytes.
fn field(number: u32, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(&mut out, u64::from(number) << 3 | 2);
    put_varint(&mut out, bytes.len() as u64);
    [out, bytes.to_vec()].concat()
}

#[test]
fn definitions_of_rbt_count_with_their_maps() {
    let mut bytes = Vec::new();
    let header = rbt::Header { has_timestamps: false, period_us: 0 };
    bytes.extend(&rbt::Writer::new(Vec::new(), header).unwrap().finish().unwrap()[..16]);
    // Stacks without frames, under ids far from each other.
    for id in 0..400_000_u64 {
        let mut payload = Vec::new();
        put_varint(&mut payload, id << 20);
        payload.push(0);
        bytes.push(0x02);
        put_varint(&mut bytes, payload.len() as u64);
        bytes.extend(payload);
    }
    assert_bounded(&bytes, |bytes, options, tables, sink| {
        rbt::import(bytes, options, tables, sink).map(drop)
    });
}

#[test]
fn symbols_of_pprof_count_as_rows() {
    // Empty strings: two bytes in the file, eight in a column.
    let strings = field(6, b"").repeat(1_000_000);
    let lines = field(4, &[&[0x08, 1][..], &field(4, b"").repeat(1_000_000)].concat());
    // Locations of one sample: a byte each.
    let sample = field(2, &field(1, &[1; 1_000_000]));
    for bytes in [strings, lines, sample] {
        assert!(bytes.len() < LIMIT_BYTES);
        assert_bounded(&bytes, |bytes, options, tables, sink| {
            pprof::import(bytes, options, tables, sink).map(drop)
        });
    }
}

#[test]
fn dictionaries_of_otlp_count_as_rows() {
    let strings = field(2, &field(5, b"").repeat(1_000_000));
    let json = format!("{{\"dictionary\":{{\"stringTable\":[{}]}}}}", vec!["\"\""; 1_000_000].join(","));
    for bytes in [strings, json.into_bytes()] {
        assert!(bytes.len() < LIMIT_BYTES);
        assert_bounded(&bytes, |bytes, options, tables, sink| {
            otlp::import(bytes, options, tables, sink).map(drop)
        });
    }
}

#[test]
fn columns_of_json_documents_count_as_they_grow() {
    let ones = vec!["1"; 1_000_000].join(",");
    let gecko = format!(
        "{{\"meta\":{{\"preprocessedProfileVersion\":50}},\"threads\":[{{\"samples\":{{\"stack\":[{ones}]}}}}]}}"
    );
    assert_bounded(gecko.as_bytes(), |bytes, options, tables, sink| {
        gecko::import(bytes, options, tables, sink).map(drop)
    });
    let weights = format!("{{\"profiles\":[{{\"weights\":[{ones}]}}]}}");
    let frames = format!("{{\"shared\":{{\"frames\":[{}]}}}}", vec!["{\"name\":\"\"}"; 200_000].join(","));
    let stack = format!("{{\"profiles\":[{{\"samples\":[[{ones}]]}}]}}");
    for document in [weights, frames, stack] {
        assert!(document.len() < LIMIT_BYTES);
        assert_bounded(document.as_bytes(), |bytes, options, tables, sink| {
            speedscope::import(bytes, options, tables, sink).map(drop)
        });
    }
}

#[test]
fn names_of_tachyon_jsonl_count_with_their_maps() {
    let mut lines = String::from("{\"type\":\"meta\",\"v\":0}\n");
    for line in 0..100 {
        let strings = (0..1000).map(|number| {
            let id = line * 1000 + number;
            format!("{{\"str_id\":{id},\"value\":\"{id:x}\"}}")
        });
        let strings: Vec<_> = strings.collect();
        lines += &format!("{{\"type\":\"string_table\",\"v\":0,\"strings\":[{}]}}\n", strings.join(","));
    }
    assert_bounded(lines.as_bytes(), |bytes, options, tables, sink| {
        tachyon_jsonl::import(bytes, options, tables, sink).map(drop)
    });
}
