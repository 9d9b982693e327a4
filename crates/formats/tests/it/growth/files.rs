//! Files that are large in a dimension that no exporter of ours makes large.

use borehole_wire::put_varint;

/// The name of the file, the name of its format, and how it is made in a size.
pub(super) type MakeFile = (&'static str, &'static str, fn(usize) -> Vec<u8>);

pub(super) const FILES: &[MakeFile] = &[
    ("nested arrays", "speedscope", |n| nested("{\"$schema\":\"", "\",\"x\":", n, "}")),
    ("nested arrays", "gecko", |n| nested("{\"meta\":{\"version\":29", "},\"x\":", n, "}")),
    ("nested arrays", "jsonl", |n| nested("{\"type\":\"sample", "\",\"x\":", n, "}\n")),
    ("nested arrays", "otlp", |n| nested("{\"resourceProfiles\":[", "],\"x\":", n, "}")),
    ("lines that are not JSON", "jsonl", |n| "x\n".repeat(n).into_bytes()),
    ("lines without a type", "jsonl", |n| "{\"a\":1}\n".repeat(n).into_bytes()),
    ("samples of undefined stacks", "jsonl", |n| {
        let line = |number| format!("{{\"type\":\"sample\",\"stack\":{number}}}\n");
        (0..n).map(line).collect::<String>().into_bytes()
    }),
    ("lines that are no stacks", "folded", |n| "nothing\n".repeat(n).into_bytes()),
    ("frames of a line", "folded", |n| format!("{} 1\n", "f;".repeat(n)).into_bytes()),
    ("spaces of a line", "folded", |n| format!("a{} 1\n", " ".repeat(n)).into_bytes()),
    ("lines that are no frames", "phpspy", |n| "nothing\n".repeat(n).into_bytes()),
    ("samples of one frame", "perf-script", |n| {
        "a 7 1.0: 1 cycles: \n\t 1 f (/a)\n\n".repeat(n).into_bytes()
    }),
    ("samples of one event each", "perf-script", |n| {
        (0..n).flat_map(|event| format!("a 7 1.0: 1 event{event}: \n\t 1 f (/a)\n\n").into_bytes()).collect()
    }),
    ("a long chain", "perf-script", |n| {
        [&b"a 7 1.0: 1 cycles: \n"[..], &b"\t 1 f (/a)\n".repeat(n), b"\n"].concat()
    }),
    ("traces of one frame", "phpspy", |n| "0 f /a.php:1\n\n".repeat(n).into_bytes()),
    ("lines of a location", "pprof", |n| pprof_inlined(n, 1)),
    ("samples of a long location", "pprof", |n| pprof_inlined(n, n)),
    ("samples of one deep stack", "pprof", pprof_deep),
    ("locations without a function", "pprof", |n| {
        let mut bytes = pprof_head();
        for number in 1..=n as u64 {
            field(&mut bytes, 4, &numbers(&[(1, number)]));
            field(&mut bytes, 2, &numbers(&[(1, number), (2, 1)]));
        }
        bytes
    }),
    ("mappings", "pprof", |n| {
        let mut bytes = pprof_head();
        for number in 1..=n as u64 {
            field(&mut bytes, 3, &numbers(&[(1, number), (2, number << 12), (3, (number + 1) << 12)]));
            field(&mut bytes, 4, &numbers(&[(1, number), (2, number), (3, number << 12)]));
            field(&mut bytes, 2, &numbers(&[(1, number), (2, 1)]));
        }
        bytes
    }),
    ("comments", "pprof", |n| {
        let mut bytes = pprof_head();
        (0..n).for_each(|_| bytes.extend_from_slice(&numbers(&[(13, 1)])));
        bytes
    }),
    ("events with one stack", "trc", |n| trc_of_one_stack(n, n)),
    ("inlined functions of an address", "trc", |n| trc_symbols(n)),
    ("types of events", "trc", |n| {
        let mut bytes = b"TRC\0\x01".to_vec();
        for number in 0..u16::try_from(n.min(60_000)).unwrap() {
            bytes.extend_from_slice(&schema(number, &format!("T{number}"), &[("f", 1)]));
            bytes.extend_from_slice(&[&[2][..], &number.to_le_bytes(), &[7; 8]].concat());
        }
        bytes
    }),
    ("schemas that contradict", "trc", |n| {
        let mut bytes = b"TRC\0\x01".to_vec();
        (0..n).for_each(|number| bytes.extend_from_slice(&schema(1, &format!("T{number}"), &[("f", 9)])));
        bytes
    }),
    ("frames left open", "speedscope", |n| speedscope(n, |_| String::new())),
    ("frames opened and closed", "speedscope", |n| {
        speedscope(n, |frame| format!(",{{\"type\":\"C\",\"at\":{},\"frame\":{frame}}}", 100_000 - frame))
    }),
];

/// Damage that a search looks at as often as it may, by the format, and one piece of it.
pub(super) const DAMAGE: &[(&str, &str, &[u8])] = &[
    ("headers", "trc", b"TRC\0\x01"),
    ("headers and a wrong tag", "trc", b"TRC\0\x01\xff"),
    ("headers with a wrong byte", "trc", b"TRC\0\x02\x05\0\0\0\0\0\0\0\0"),
    ("frames of zstd that are no frames", "trc", ZSTD_MAGIC),
    ("members of gzip that are no members", "trc", GZIP_MAGIC),
    ("members of gzip that end early", "trc", GZIP_LONG),
    ("frames of zstd with a stored block", "trc", ZSTD_STORED),
    ("frames of zstd with a long block", "trc", ZSTD_LONG),
    ("headers", "rbt", RBT_HEADER),
    ("headers and a wrong type", "rbt", b"RELI\x01\0\0\0\0\0\0\0\0\0\0\0\xff"),
    ("frames of zstd that are no frames", "rbt", ZSTD_MAGIC),
    ("frames of zstd with a long block", "rbt", ZSTD_LONG),
    ("frames of zstd with a stored block", "rbt", ZSTD_STORED),
    ("members of gzip that are no members", "rbt", GZIP_MAGIC),
    ("members of gzip that end early", "rbt", GZIP_LONG),
    ("whole members of gzip", "rbt", &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
    ("ends of segments", "rbt", &[5, 0]),
    ("stacks of 2,000 frames", "rbt", &[2, 0xd0, 0x0f]),
    ("strings of 2,000 bytes", "rbt", &[10, 0xd0, 0x0f]),
    ("strings to the end", "rbt", &[10, 0xff, 0xff, 0x7f, 0]),
    ("samples of unknown stacks", "rbt", &[8, 1, 3]),
    ("strings of the next id", "rbt", &[10, 2, 0, b'a', 10, 2, 1, b'b', 0xff]),
    ("types that are unknown", "rbt", &[0x70, 1, 0]),
    ("heads of records", "tachyon", &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0x80, 0x08]),
    ("zeros", "tachyon", &[0]),
    ("records of unknown kinds", "tachyon", &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9]),
    ("lines that are not JSON", "jsonl", b"x\n"),
    ("lines that are cut", "jsonl", b"{\"type\":\"sample\"\n"),
    ("lines that are not JSON", "tachyon-jsonl", b"x\n"),
    ("lines that are no stacks", "folded", b"x\n"),
];

const RBT_HEADER: &[u8] = b"RELI\x01\0\0\0\0\0\0\0\0\0\0\0";
const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b, 8];
const ZSTD_MAGIC: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// With an extra field of 65,535 bytes.
const GZIP_LONG: &[u8] = &[0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 3, 0xff, 0xff];
/// A window of 8 MiB, and a compressed block of 2,000 bytes.
const ZSTD_LONG: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd, 0, 0x68, 0x84, 0x3e, 0, 0x55];
/// A window of 8 MiB, and an uncompressed block of 2,000 bytes.
const ZSTD_STORED: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd, 0, 0x68, 0x80, 0x3e, 0, 0x55];

fn nested(before: &str, after: &str, depth: usize, end: &str) -> Vec<u8> {
    [before, after, &"[".repeat(depth), &"]".repeat(depth), end].concat().into_bytes()
}

/// A document in which `depth` frames are opened one after the other, and then what `close` writes of each.
fn speedscope(depth: usize, close: impl Fn(usize) -> String) -> Vec<u8> {
    let frames: Vec<_> = (0..depth).map(|frame| format!("{{\"name\":\"f{frame}\"}}")).collect();
    let opened: Vec<_> =
        (0..depth).map(|frame| format!("{{\"type\":\"O\",\"at\":{frame},\"frame\":{frame}}}")).collect();
    let closed: String = (0..depth).rev().map(close).collect();
    format!(
        "{{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"shared\":{{\"frames\":[{}]}},\
         \"profiles\":[{{\"type\":\"evented\",\"name\":\"p\",\"unit\":\"milliseconds\",\"startValue\":0,\
         \"endValue\":200000,\"events\":[{}{closed}]}}]}}",
        frames.join(","),
        opened.join(","),
    )
    .into_bytes()
}

/// A field of bytes.
fn field(bytes: &mut Vec<u8>, number: u64, content: &[u8]) {
    put_varint(bytes, number << 3 | 2);
    put_varint(bytes, content.len() as u64);
    bytes.extend_from_slice(content);
}

/// Fields of numbers.
fn numbers(fields: &[(u64, u64)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (number, value) in fields {
        put_varint(&mut bytes, number << 3);
        put_varint(&mut bytes, *value);
    }
    bytes
}

/// The strings, the value type and the only function of a pprof profile.
fn pprof_head() -> Vec<u8> {
    let mut bytes = Vec::new();
    ["", "samples", "count", "main"].iter().for_each(|text| field(&mut bytes, 6, text.as_bytes()));
    field(&mut bytes, 1, &numbers(&[(1, 1), (2, 2)]));
    field(&mut bytes, 5, &numbers(&[(1, 1), (2, 3)]));
    bytes
}

/// `samples` samples of one location with `lines` inlined functions.
fn pprof_inlined(lines: usize, samples: usize) -> Vec<u8> {
    let mut bytes = pprof_head();
    let mut location = numbers(&[(1, 1)]);
    for line in 0..lines as u64 {
        field(&mut location, 4, &numbers(&[(1, 1), (2, line)]));
    }
    field(&mut bytes, 4, &location);
    (0..samples).for_each(|_| field(&mut bytes, 2, &numbers(&[(1, 1), (2, 1)])));
    bytes
}

/// A sample of `depth` locations.
fn pprof_deep(depth: usize) -> Vec<u8> {
    let mut bytes = pprof_head();
    let mut line = Vec::new();
    field(&mut line, 4, &numbers(&[(1, 1)]));
    let mut sample = Vec::new();
    for number in 1..=depth as u64 {
        field(&mut bytes, 4, &[&numbers(&[(1, number)])[..], &line].concat());
        sample.extend_from_slice(&numbers(&[(1, number)]));
    }
    sample.extend_from_slice(&numbers(&[(2, 1)]));
    field(&mut bytes, 2, &sample);
    bytes
}

/// A schema of events without times. The kinds of fields are those of `docs/formats/trc.md`.
fn schema(type_id: u16, name: &str, fields: &[(&str, u8)]) -> Vec<u8> {
    let text = |text: &str| [&u16::try_from(text.len()).unwrap().to_le_bytes()[..], text.as_bytes()].concat();
    let count = u16::try_from(fields.len()).unwrap().to_le_bytes();
    let mut bytes = [&[1][..], &type_id.to_le_bytes(), &text(name), &[0], &count].concat();
    for (name, kind) in fields {
        bytes.extend_from_slice(&text(name));
        bytes.push(*kind);
    }
    bytes
}

/// `events` samples that refer to one stack of `depth` addresses in the pool.
fn trc_of_one_stack(depth: usize, events: usize) -> Vec<u8> {
    let mut bytes = b"TRC\0\x01".to_vec();
    bytes.extend_from_slice(&schema(2, "CpuSampleEvent", &[("tid", 13), ("callchain", 6)]));
    bytes.extend_from_slice(&[4, 1, 0, 0, 0, 1, 0, 0, 0]);
    bytes.extend_from_slice(&u32::try_from(depth).unwrap().to_le_bytes());
    (0..depth as u64).for_each(|frame| bytes.extend_from_slice(&(0x1000 + 16 * frame).to_le_bytes()));
    (0..events).for_each(|_| bytes.extend_from_slice(&[2, 2, 0, 7, 0, 0, 0, 1, 0, 0, 0]));
    bytes
}

/// `depth` functions inlined at the only address of a sample.
fn trc_symbols(depth: usize) -> Vec<u8> {
    let mut bytes = b"TRC\0\x01".to_vec();
    let fields = [("addr", 9), ("size", 9), ("symbol_name", 4), ("inline_depth", 9)];
    bytes.extend_from_slice(&schema(1, "SymbolTableEntry", &fields));
    bytes.extend_from_slice(&schema(2, "CpuSampleEvent", &[("tid", 13), ("callchain", 8)]));
    bytes.extend_from_slice(&[2, 2, 0, 7, 0, 0, 0, 1, 0, 0, 0]);
    bytes.extend_from_slice(&0x1004_u64.to_le_bytes());
    for level in 0..depth as u64 {
        bytes.extend_from_slice(&[2, 1, 0]);
        put_varint(&mut bytes, 0x1000);
        put_varint(&mut bytes, 16);
        bytes.extend_from_slice(&[1, 0, 0, 0, b'f']);
        put_varint(&mut bytes, level);
    }
    bytes
}
