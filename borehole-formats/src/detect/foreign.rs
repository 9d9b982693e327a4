//! Files of other programs that are not read: what each is, and what to do with it.

use super::content::{contains, lines, trim_start};

/// A sort of file that is not read.
#[derive(Debug)]
pub struct Foreign {
    /// What it is, with its article: `a perf.data file`.
    pub name: &'static str,
    /// What to do with it.
    pub advice: &'static str,
    looks_like: fn(&[u8]) -> bool,
}

/// Advice for files that a Python profiler of functions wrote.
const SUMS_ADVICE: &str =
    "it holds sums of functions without stacks; record stacks, with py-spy or profiling.sampling";

/// Advice for what is packed in another way than gzip or zstd.
const UNPACK_ADVICE: &str = "unpack it first; only gzip and zstd are unpacked here";

/// Advice for a document that is no profile.
const DOCUMENT_ADVICE: &str = "name the file that it was made of";

/// One row a sort of file. The first that fits is the one.
static TABLE: &[Foreign] = &[
    // Source: tools/perf/Documentation/perf.data-file-format.txt of Linux; PERFFILE in the older form.
    Foreign {
        name: "a perf.data file",
        advice: "perf script -i FILE | stackcollapse-perf.pl > FILE.folded makes folded stacks of it",
        looks_like: |bytes| {
            [&b"PERFILE2"[..], b"2ELIFREP", b"PERFFILE"].iter().any(|magic| bytes.starts_with(magic))
        },
    },
    Foreign {
        name: "the output of perf script",
        advice: "stackcollapse-perf.pl FILE > FILE.folded makes folded stacks of it",
        looks_like: is_perf_script,
    },
    // Source: the chunk header of OpenJDK's flight recorder, `jfrChunk`.
    Foreign {
        name: "a JFR recording",
        advice: "jfrconv --pprof FILE FILE.pb (async-profiler) makes a pprof profile of it",
        looks_like: |bytes| bytes.starts_with(b"FLR\0"),
    },
    Foreign {
        name: "an HPROF heap dump",
        advice: "heaps of Java are read by Eclipse MAT or VisualVM",
        looks_like: |bytes| bytes.starts_with(b"JAVA PROFILE 1."),
    },
    // Source: memray 1.19, `records.h`, `MAGIC`.
    Foreign {
        name: "a memray capture",
        advice: "memray flamegraph FILE or memray stats FILE shows it",
        looks_like: |bytes| bytes.starts_with(b"memray\0"),
    },
    // Source: Austin 4, the head of its binary form.
    Foreign {
        name: "a MOJO file of Austin",
        advice: "mojo2austin FILE FILE.folded (of the Python package austin-python) makes folded stacks of it",
        looks_like: |bytes| bytes.starts_with(b"MOJ") && bytes.get(3).is_some_and(|&version| version < b' '),
    },
    Foreign {
        name: "a .NET trace",
        advice: "dotnet-trace convert FILE --format Speedscope makes a speedscope document of it",
        looks_like: |bytes| bytes.starts_with(b"Nettrace"),
    },
    Foreign {
        name: "an ELF core file",
        advice: "it is the memory of a process, not a profile; borehole stack reads those of PHP",
        looks_like: is_core,
    },
    Foreign {
        name: "an ELF file",
        advice: "it is a program or a library, not a profile",
        looks_like: |bytes| bytes.starts_with(b"\x7fELF"),
    },
    Foreign {
        name: "an SQLite database",
        advice: "it holds no heap that borehole heap knows, and no profile",
        looks_like: |bytes| bytes.starts_with(b"SQLite format 3\0"),
    },
    Foreign {
        name: "a zip archive",
        advice: "unpack it, and name the profile within",
        looks_like: |bytes| bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06"),
    },
    Foreign {
        name: "a tar archive",
        advice: "unpack it, and name the profile within",
        looks_like: |bytes| bytes.get(257..262) == Some(b"ustar"),
    },
    Foreign {
        name: "an xz file",
        advice: UNPACK_ADVICE,
        looks_like: |bytes| bytes.starts_with(b"\xfd7zXZ\0"),
    },
    Foreign { name: "a bzip2 file", advice: UNPACK_ADVICE, looks_like: is_bzip2 },
    Foreign {
        name: "an lz4 file",
        advice: UNPACK_ADVICE,
        looks_like: |bytes| bytes.starts_with(b"\x04\x22\x4d\x18"),
    },
    Foreign {
        name: "a 7z archive",
        advice: UNPACK_ADVICE,
        looks_like: |bytes| bytes.starts_with(b"7z\xbc\xaf\x27\x1c"),
    },
    Foreign { name: "a PDF", advice: DOCUMENT_ADVICE, looks_like: |bytes| bytes.starts_with(b"%PDF-") },
    Foreign {
        name: "a PNG picture",
        advice: DOCUMENT_ADVICE,
        looks_like: |bytes| bytes.starts_with(b"\x89PNG\r\n\x1a\n"),
    },
    Foreign { name: "an HTML page", advice: DOCUMENT_ADVICE, looks_like: is_html },
    Foreign {
        name: "a document of Instruments",
        advice: "xcrun xctrace export --input FILE --xpath ... makes XML of it, inferno-collapse-xctrace folded stacks of that",
        looks_like: |bytes| {
            trim_start(bytes).starts_with(b"<?xml") && contains(bytes, b"<trace-query-result")
        },
    },
    Foreign { name: "a pstats file", advice: SUMS_ADVICE, looks_like: is_marshal },
    Foreign {
        name: "a pickle of Python",
        advice: SUMS_ADVICE,
        looks_like: |bytes| matches!(bytes, [0x80, 2..=5, 0x95 | b'}' | b']' | b'c' | b'(', ..]),
    },
    Foreign {
        name: "a .cpuprofile of V8",
        advice: "open it at speedscope.app and export it: what that writes is read",
        looks_like: |bytes| is_json_with(bytes, &[b"\"nodes\"", b"\"callFrame\""]),
    },
    Foreign {
        name: "a .heapprofile of V8",
        advice: "open it at speedscope.app and export it: what that writes is read",
        looks_like: |bytes| is_json_with(bytes, &[b"\"head\"", b"\"callFrame\"", b"\"selfSize\""]),
    },
    Foreign {
        name: "a file of Chrome's trace events",
        advice: "open it at speedscope.app and export it: what that writes is read",
        looks_like: is_chrome_trace,
    },
];

/// What an input that begins with `prefix` is, if it is a file of another program that is known and not read.
///
/// # Examples
///
/// ```
/// use borehole_formats::detect::foreign;
///
/// assert_eq!(foreign(b"PERFILE2\x68\0\0\0").map(|foreign| foreign.name), Some("a perf.data file"));
/// assert!(foreign(b"main;run;query 12\n").is_none());
/// ```
#[must_use]
pub fn foreign(prefix: &[u8]) -> Option<&'static Foreign> {
    TABLE.iter().find(|foreign| (foreign.looks_like)(prefix))
}

/// An ELF file of the type `ET_CORE`, in either byte order.
fn is_core(bytes: &[u8]) -> bool {
    let kind = match bytes.get(5) {
        Some(1) => [4, 0],
        _ => [0, 4],
    };
    bytes.starts_with(b"\x7fELF") && bytes.get(16..18) == Some(&kind)
}

/// The magic, the size of the blocks, and the magic of a block or of the end.
fn is_bzip2(bytes: &[u8]) -> bool {
    let is_sized = bytes.starts_with(b"BZh") && bytes.get(3).is_some_and(|size| matches!(size, b'1'..=b'9'));
    is_sized && matches!(bytes.get(4..8), Some(b"1AY&" | b"\x17\x72\x45\x38"))
}

fn is_html(bytes: &[u8]) -> bool {
    let start = trim_start(bytes);
    let begins = |tag: &[u8]| start.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag));
    begins(b"<!doctype html") || begins(b"<html")
}

/// A dictionary whose first key is a tuple of three, as Python's `marshal` writes the sums of a profile.
///
/// Source: CPython 3.11, `Lib/cProfile.py`, `create_stats`; `Python/marshal.c`, `TYPE_DICT`, `TYPE_TUPLE`, `TYPE_SMALL_TUPLE`, `FLAG_REF`.
fn is_marshal(bytes: &[u8]) -> bool {
    match bytes {
        [b'{' | 0xfb, b')' | 0xa9, 3, ..] => true,
        [b'{' | 0xfb, b'(' | 0xa8, rest @ ..] => rest.starts_with(&[3, 0, 0, 0]),
        _ => false,
    }
}

fn is_json_with(bytes: &[u8], members: &[&[u8]]) -> bool {
    trim_start(bytes).starts_with(b"{") && members.iter().all(|member| contains(bytes, member))
}

/// An object with `traceEvents`, or a list of objects with phases.
fn is_chrome_trace(bytes: &[u8]) -> bool {
    let is_list = trim_start(bytes).strip_prefix(b"[").is_some_and(|rest| trim_start(rest).starts_with(b"{"));
    is_json_with(bytes, &[b"\"traceEvents\""])
        || (is_list && contains(bytes, b"\"ph\"") && contains(bytes, b"\"pid\""))
}

/// A header `COMMAND PID TIME: ... EVENT:` and below it, indented, addresses with symbols.
fn is_perf_script(bytes: &[u8]) -> bool {
    let mut is_below_header = false;
    for line in lines(bytes).take(100) {
        if is_below_header && is_address(line) {
            return true;
        }
        is_below_header = is_perf_header(line);
    }
    false
}

/// A name, a number of a process or thread, and a colon at the end.
fn is_perf_header(line: &[u8]) -> bool {
    let is_number =
        |word: &[u8]| !word.is_empty() && word.iter().all(|byte| byte.is_ascii_digit() || *byte == b'/');
    let mut words = line.split(u8::is_ascii_whitespace);
    let is_named = words.next().is_some_and(|name| !name.is_empty());
    is_named && words.any(is_number) && line.trim_ascii_end().ends_with(b":")
}

/// White space, a hexadecimal address, a symbol, and the module in parentheses.
fn is_address(line: &[u8]) -> bool {
    let text = line.trim_ascii();
    let digits = text.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let is_indented = line.first().is_some_and(u8::is_ascii_whitespace);
    is_indented && digits >= 4 && text.get(digits) == Some(&b' ') && text.ends_with(b")")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(bytes: &[u8]) -> Option<&'static str> {
        foreign(bytes).map(|foreign| foreign.name)
    }

    #[test]
    fn every_sort_of_file_is_told_by_its_head() {
        let mut tar = vec![0; 512];
        tar[..5].copy_from_slice(b"a.rbt");
        tar[257..263].copy_from_slice(b"ustar\0");
        let elf = |kind: u8| [&b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0"[..], &[kind, 0, 62, 0]].concat();
        let perf = b"python3 4711 1234.567890:     250000 cpu-clock:pppH: \n\t    55d0c0a0 f+0x12 (/usr/bin/python3)\n\n";
        let cases: &[(&[u8], &str)] = &[
            (b"PERFILE2\x68\0\0\0\0\0\0\0", "a perf.data file"),
            (perf, "the output of perf script"),
            (b"FLR\0\0\x02\0\x01", "a JFR recording"),
            (b"JAVA PROFILE 1.0.2\0\0\0\0\x08", "an HPROF heap dump"),
            (b"memray\0\x0c\0\0\0", "a memray capture"),
            (b"MOJ\x03", "a MOJO file of Austin"),
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
            (b"%PDF-1.7\n", "a PDF"),
            (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "a PNG picture"),
            (b"\n<!DOCTYPE html>\n<html><svg></svg>", "an HTML page"),
            (b"<?xml version=\"1.0\"?>\n<trace-query-result>\n", "a document of Instruments"),
            (b"\xfb\xa9\x03\xfa\x01~", "a pstats file"),
            (b"{(\x03\0\0\0s\x01\0\0\0~", "a pstats file"),
            (b"{\"nodes\":[{\"id\":1,\"callFrame\":{\"functionName\":\"(root)\"}}]", "a .cpuprofile of V8"),
            (b"{\"head\":{\"callFrame\":{},\"selfSize\":0}}", "a .heapprofile of V8"),
            (b"{\"traceEvents\":[", "a file of Chrome's trace events"),
            (b"[\n{\"name\":\"f\",\"ph\":\"B\",\"pid\":1}", "a file of Chrome's trace events"),
        ];
        for (head, expected) in cases {
            assert_eq!(name(head), Some(*expected), "{}", head.escape_ascii());
            for cut in 0..head.len() {
                let _ = foreign(&head[..cut]);
            }
        }
    }

    #[test]
    fn texts_that_only_begin_alike_are_not_told() {
        for text in [
            &b"MOJO is a word 3\n"[..],
            b"BZh9 12\n",
            b"memray;f 3\n",
            b"{}",
            b"[1,2]",
            b"PERF 3\n",
            b"a:\n\tb (c)\n",
        ] {
            assert_eq!(name(text), None, "{}", text.escape_ascii());
        }
    }
}
