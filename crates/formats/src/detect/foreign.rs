//! Known files of other programs that are not read, with advice on what to do.

use super::prefix::{contains, lines, member_starts_with, trim_start};

/// A file type that is not read.
#[derive(Debug)]
pub struct Foreign {
    /// Its name with an article: `a memray capture`.
    pub name: &'static str,
    /// The advice for users.
    pub advice: &'static str,
    /// Whether it holds files.
    pub is_archive: bool,
    sign: Sign,
}

/// The test for a file type.
#[derive(Debug)]
enum Sign {
    /// It begins with one of these.
    Magic(&'static [&'static [u8]]),
    /// This test accepts its beginning.
    Looks(fn(&[u8]) -> bool),
}

impl Sign {
    fn is_of(&self, prefix: &[u8]) -> bool {
        match self {
            Self::Magic(magics) => magics.iter().any(|magic| prefix.starts_with(magic)),
            Self::Looks(looks_like) => looks_like(prefix),
        }
    }
}

const fn row(name: &'static str, advice: &'static str, sign: Sign) -> Foreign {
    Foreign { name, advice, is_archive: false, sign }
}

const fn archive(name: &'static str, sign: Sign) -> Foreign {
    Foreign { is_archive: true, ..row(name, ARCHIVE_ADVICE, sign) }
}

/// The advice for the older formats of pprof.
const LEGACY_ADVICE: &str = "convert it with go tool pprof -proto -output FILE.pb.gz PROGRAM FILE";

/// The advice for archives.
const ARCHIVE_ADVICE: &str = "unpack it and open the profile inside";

/// The advice for files compressed by other programs than gzip or zstd.
const UNPACK_ADVICE: &str = "unpack it first; only gzip and zstd are unpacked automatically";

/// The advice for archives that are not opened.
const REPACK_ADVICE: &str = "unpack it first; only zip and tar archives are opened automatically";

/// The advice for documents of browsers.
const BROWSER_ADVICE: &str = "open it at speedscope.app and export it as a speedscope file";

/// The advice for documents that are not profiles.
const DOCUMENT_ADVICE: &str = "pass the profile that it was made from";

/// One row per file type. The first match wins.
static TABLE: &[Foreign] = &[
    // Source: Linux, `tools/perf/util/header.c`.
    row(
        "a perf.data file of before 2009",
        "convert it with perf script -i FILE > FILE.perf",
        Sign::Magic(&[b"PERFFILE"]),
    ),
    // Source: google/pprof, `profile/legacy_profile.go` and `legacy_java_profile.go`.
    row(
        "a pprof profile of threads or of Java in the older text format",
        LEGACY_ADVICE,
        Sign::Looks(is_legacy_pprof),
    ),
    row("an HPROF heap dump", "open it in Eclipse MAT or VisualVM", Sign::Magic(&[b"JAVA PROFILE 1."])),
    // Source: memray 1.19, `records.h`, `MAGIC`.
    row("a memray capture", "run memray flamegraph FILE or memray stats FILE", Sign::Magic(&[b"memray\0"])),
    row(
        "a .NET trace",
        "convert it with dotnet-trace convert FILE --format Speedscope",
        Sign::Magic(&[b"Nettrace"]),
    ),
    row(
        "an ELF core file",
        "this is the memory of a process, not a profile; that of PHP has stacks and a heap to read",
        Sign::Looks(is_core),
    ),
    row("an ELF file", "pass a profile; this is a program or a library", Sign::Magic(&[b"\x7fELF"])),
    row(
        "an SQLite database",
        "pass a profile; this database has neither a profile nor a heap",
        Sign::Magic(&[b"SQLite format 3\0"]),
    ),
    archive("a zip archive", Sign::Magic(&[b"PK\x03\x04", b"PK\x05\x06"])),
    archive("a tar archive", Sign::Looks(|bytes| bytes.get(257..262) == Some(b"ustar"))),
    row("an xz file", UNPACK_ADVICE, Sign::Magic(&[b"\xfd7zXZ\0"])),
    row("a bzip2 file", UNPACK_ADVICE, Sign::Looks(is_bzip2)),
    // memray compresses with lz4 by default.
    row(
        "an lz4 file",
        "run memray flamegraph FILE if memray wrote it; otherwise unpack it first",
        Sign::Magic(&[b"\x04\x22\x4d\x18"]),
    ),
    row("a 7z archive", REPACK_ADVICE, Sign::Magic(&[b"7z\xbc\xaf\x27\x1c"])),
    row("a rar archive", REPACK_ADVICE, Sign::Magic(&[b"Rar!\x1a\x07"])),
    row("a PDF", DOCUMENT_ADVICE, Sign::Magic(&[b"%PDF-"])),
    row("a PNG picture", DOCUMENT_ADVICE, Sign::Magic(&[b"\x89PNG\r\n\x1a\n"])),
    row("an HTML page", DOCUMENT_ADVICE, Sign::Looks(is_html)),
    row(
        "an Instruments export",
        "convert it with inferno-collapse-xctrace FILE > FILE.folded (export with xcrun xctrace export --xpath)",
        Sign::Looks(|bytes| {
            let has_root = || contains(bytes, b"<trace-query-result") || contains(bytes, b"<trace-toc");
            trim_start(bytes).starts_with(b"<?xml") && has_root()
        }),
    ),
    // Source: stackprof 0.2.21, a hash of Ruby's Marshal 4.8 whose first key is the symbol `version`.
    row(
        "a stackprof dump",
        "convert it with stackprof --json FILE > FILE.stackprof.json",
        Sign::Looks(|bytes| bytes.starts_with(b"\x04\x08{") && bytes.get(4..13) == Some(b":\x0cversion")),
    ),
    // Source: samply 0.13.1, `samply/src/shared/symbol_precog.rs`.
    row(
        "the symbols of a profile of samply",
        "pass the profile that it lies beside, which uses it",
        Sign::Looks(|bytes| {
            trim_start(bytes).starts_with(b"{\"string_table\":[")
                || is_json_with(bytes, &[b"\"known_addresses\"", b"\"symbol_table\""])
        }),
    ),
    row(
        "a Python pickle",
        "load it in Python; a file of line_profiler has only sums per line",
        Sign::Looks(|bytes| matches!(bytes, [0x80, 2..=5, 0x95 | b'}' | b']' | b'c' | b'(', ..])),
    ),
    // Chrome before 58 wrote a tree of `callUID`s.
    row(
        "a V8 .cpuprofile of before 2017",
        BROWSER_ADVICE,
        Sign::Looks(|bytes| is_json_with(bytes, &[b"\"head\"", b"\"functionName\"", b"\"callUID\""])),
    ),
];

/// The type of an input that begins with `prefix`, if it is a known file of another program that is not read.
///
/// # Examples
///
/// ```
/// use borehole_formats::detect::foreign;
///
/// assert_eq!(foreign(b"memray\0\x0c").map(|foreign| foreign.name), Some("a memray capture"));
/// assert!(foreign(b"main;run;query 12\n").is_none());
/// ```
#[must_use]
pub fn foreign(prefix: &[u8]) -> Option<&'static Foreign> {
    TABLE.iter().find(|foreign| foreign.sign.is_of(prefix))
}

/// A file type that its content does not show.
static BROTLI: Foreign = row("a brotli file", UNPACK_ADVICE, Sign::Magic(&[]));

/// The type of an input of unknown content that is not read, by its name.
///
/// # Examples
///
/// ```
/// use borehole_formats::detect::foreign_by_name;
///
/// assert_eq!(foreign_by_name("profile.json.br").map(|foreign| foreign.name), Some("a brotli file"));
/// assert!(foreign_by_name("profile.json").is_none());
/// ```
#[must_use]
pub fn foreign_by_name(name: &str) -> Option<&'static Foreign> {
    name.to_ascii_lowercase().ends_with(".br").then_some(&BROTLI)
}

/// Detects the first line of the text formats that are not read.
fn is_legacy_pprof(bytes: &[u8]) -> bool {
    let first = lines(bytes).next().unwrap_or_default();
    [&b"--- contentionz "[..], b"--- threadz ", b"--- heapz "].iter().any(|head| first.starts_with(head))
}

/// Detects an ELF file of the type `ET_CORE`, in either byte order.
fn is_core(bytes: &[u8]) -> bool {
    let kind = match bytes.get(5) {
        Some(1) => [4, 0],
        _ => [0, 4],
    };
    bytes.starts_with(b"\x7fELF") && bytes.get(16..18) == Some(&kind)
}

/// Detects the magic, the size of the blocks, and the magic of a block or of the end.
fn is_bzip2(bytes: &[u8]) -> bool {
    let is_sized = bytes.starts_with(b"BZh") && bytes.get(3).is_some_and(|size| matches!(size, b'1'..=b'9'));
    is_sized && matches!(bytes.get(4..8), Some(b"1AY&" | b"\x17\x72\x45\x38"))
}

fn is_html(bytes: &[u8]) -> bool {
    let start = trim_start(bytes);
    let begins = |tag: &[u8]| start.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag));
    begins(b"<!doctype html") || begins(b"<html")
}

/// Detects an object with all these members, at any depth.
fn is_json_with(bytes: &[u8], members: &[&[u8]]) -> bool {
    // Their names alone may be names of functions.
    trim_start(bytes).starts_with(b"{") && members.iter().all(|member| has_member(bytes, member))
}

fn has_member(bytes: &[u8], member: &[u8]) -> bool {
    member_starts_with(bytes, member, b"")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(bytes: &[u8]) -> Option<&'static str> {
        foreign(bytes).map(|foreign| foreign.name)
    }

    #[test]
    fn each_file_type_is_detected_by_its_beginning() {
        let mut tar = vec![0; 512];
        tar[..5].copy_from_slice(b"a.rbt");
        tar[257..263].copy_from_slice(b"ustar\0");
        let elf = |kind: u8| [&b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0"[..], &[kind, 0, 62, 0]].concat();
        let cases: &[(&[u8], &str)] = &[
            (b"PERFFILE\x68\0\0\0\0\0\0\0", "a perf.data file of before 2009"),
            (b"--- contentionz 1 ---\n", "a pprof profile of threads or of Java in the older text format"),
            (b"JAVA PROFILE 1.0.2\0\0\0\0\x08", "an HPROF heap dump"),
            (b"memray\0\x0c\0\0\0", "a memray capture"),
            (b"Nettrace\x14\0\0\0!FastSerialization.1", "a .NET trace"),
            (&elf(4), "an ELF core file"),
            (&elf(3), "an ELF file"),
            (b"SQLite format 3\0\x10\0", "an SQLite database"),
            (b"PK\x03\x04\x14\0", "a zip archive"),
            (&tar, "a tar archive"),
            (b"\xfd7zXZ\0\0\x04", "an xz file"),
            (b"BZh91AY&SY", "a bzip2 file"),
            (b"\x04\x22\x4d\x18\x64", "an lz4 file"),
            (b"7z\xbc\xaf\x27\x1c\0\x04", "a 7z archive"),
            (b"Rar!\x1a\x07\x01\0", "a rar archive"),
            (b"\x04\x08{\x10:\x0cversionf\x081.2:\x09mode", "a stackprof dump"),
            (b"{\"string_table\":[\"main\",\"/a.rs\"],\"data\":[]}", "the symbols of a profile of samply"),
            (b"%PDF-1.7\n", "a PDF"),
            (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "a PNG picture"),
            (b"\n<!DOCTYPE html>\n<html><svg></svg>", "an HTML page"),
            (b"<?xml version=\"1.0\"?>\n<trace-query-result>\n", "an Instruments export"),
            (b"<?xml version=\"1.0\"?>\n<trace-toc>\n", "an Instruments export"),
            (b"{\"head\":{\"functionName\":\"(root)\",\"callUID\":3}}", "a V8 .cpuprofile of before 2017"),
        ];
        for (head, expected) in cases {
            assert_eq!(name(head), Some(*expected), "{}", head.escape_ascii());
            for cut in 0..head.len() {
                let _ = foreign(&head[..cut]);
            }
        }
    }

    #[test]
    fn similar_texts_are_not_detected() {
        for text in [
            &b"MOJO is a word 3\n"[..],
            b"BZh9 12\n",
            b"memray;f 3\n",
            b"{}",
            b"[1,2]",
            b"PERF 3\n",
            b"heap profile 3\n",
            b"a profile: total\n",
            b"{\"stringArray\":[\"nodes\",\"callFrame\",\"traceEvents\"]}",
            b"\0\0\0\0\x03\0\0\0\0\0\0\0\0\0\0\0",
            b"heap profile:  2:  64 [ 5: 160] @ heapprofile\n",
            b"a:\n\tb (c)\n",
        ] {
            assert_eq!(name(text), None, "{}", text.escape_ascii());
        }
    }
}
