//! Detection of an input's format by its first bytes, or by its name.
//!
//! All facts about formats are in one table, [`formats_table`]. Detection knows all formats, even those that this build does
//! not read.

mod content;
mod foreign;

pub use foreign::{Foreign, foreign};

/// The number of bytes from the start of an input, after decompression, that [`detect`] can use.
pub const DETECT_BYTES: usize = 64 << 10;

/// A profile format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Reli binary traces.
    Rbt,
    /// Binary profiles of CPython 3.15.
    Tachyon,
    /// Event traces of dial9.
    Trc,
    /// The text of phpspy.
    Phpspy,
    /// Folded stacks.
    Folded,
    /// Folded stacks, as CPython's profiler writes them.
    Collapsed,
    /// Statistics of functions, for Python's `pstats`.
    Pstats,
    /// Statistics of functions, as CPython's profiler prints them.
    PstatsText,
    /// Sums of frames, as CPython's profiler writes them.
    TachyonJsonl,
    /// The processed profiles of Firefox Profiler.
    Gecko,
    /// The profiles of OpenTelemetry.
    Otlp,
    /// The protobuf profiles of pprof.
    Pprof,
    /// The JSON documents of speedscope.
    Speedscope,
    /// The text of Callgrind.
    Callgrind,
    /// JSON Lines, as `borehole dump` prints them.
    Jsonl,
    /// Flame graphs as SVG.
    FlameGraph,
    /// Timelines for Perfetto.
    Perfetto,
    /// Timelines as Chrome's trace events.
    ChromeTrace,
}

/// The facts about a format.
#[derive(Debug)]
pub struct Facts {
    /// The format.
    pub format: Format,
    /// Its short name, for options and messages.
    pub name: &'static str,
    /// Other names that options accept.
    pub aliases: &'static [&'static str],
    /// The extensions of its files without the leading dot, the usual one first.
    pub extensions: &'static [&'static str],
    /// A description in a few words.
    pub description: &'static str,
    /// Whether this build reads it.
    pub readable: bool,
    /// Whether this build writes it.
    pub writable: bool,
    /// Whether its files are binary, and so not for terminals.
    pub is_binary: bool,
    /// Whether an input that begins with these bytes is in this format.
    looks_like: fn(&[u8]) -> bool,
}

/// One row per format, in the order of the variants.
///
/// Detection tests formats in this order too, except that [`Format::Phpspy`] and [`Format::Folded`] come last, because other
/// files have similar lines.
static TABLE: [Facts; Format::ALL.len()] = [
    Facts {
        format: Format::Rbt,
        name: "rbt",
        aliases: &["reli", "rbt-bundled"],
        extensions: &["rbt"],
        description: "reli binary trace: call-stack samples of PHP",
        readable: cfg!(feature = "rbt"),
        writable: cfg!(feature = "rbt"),
        is_binary: true,
        looks_like: content::is_rbt,
    },
    Facts {
        format: Format::Tachyon,
        name: "tachyon",
        aliases: &["tach", "python"],
        extensions: &["bin", "tach"],
        description: "binary profile of CPython 3.15: call-stack samples of Python",
        readable: cfg!(feature = "tachyon"),
        writable: cfg!(feature = "tachyon"),
        is_binary: true,
        looks_like: content::is_tachyon,
    },
    Facts {
        format: Format::Trc,
        name: "trc",
        aliases: &["dial9"],
        extensions: &["trc", "bin", "bin.active"],
        description: "dial9 event trace: what the workers and tasks of a Tokio program did",
        readable: cfg!(feature = "trc"),
        writable: cfg!(feature = "trc"),
        is_binary: true,
        looks_like: content::is_trc,
    },
    Facts {
        format: Format::Phpspy,
        name: "phpspy",
        aliases: &["phpspy-text"],
        extensions: &["phpspy", "phpspy.txt"],
        description: "phpspy text: a line a frame, a blank line between samples",
        readable: cfg!(feature = "phpspy"),
        writable: cfg!(feature = "phpspy"),
        is_binary: false,
        looks_like: content::is_phpspy,
    },
    Facts {
        format: Format::Folded,
        name: "folded",
        aliases: &[],
        extensions: &["folded", "folded.txt"],
        description: "folded stacks: a line a stack, frames joined by semicolons, and a count",
        readable: cfg!(feature = "folded"),
        writable: cfg!(feature = "folded"),
        is_binary: false,
        looks_like: content::is_folded,
    },
    Facts {
        format: Format::Collapsed,
        name: "collapsed",
        aliases: &[],
        extensions: &["collapsed", "collapsed.txt"],
        description: "folded stacks as CPython's replay writes them: tid:N;file.py:function:line, and a count",
        // Importers of folded stacks read them as such.
        readable: false,
        writable: cfg!(feature = "collapsed"),
        is_binary: false,
        looks_like: |_| false,
    },
    Facts {
        format: Format::Pstats,
        name: "pstats",
        aliases: &[],
        extensions: &["pstats"],
        description: "statistics of functions for Python's pstats module, as CPython's replay writes them",
        readable: false,
        writable: cfg!(feature = "pstats"),
        is_binary: true,
        looks_like: |_| false,
    },
    Facts {
        format: Format::PstatsText,
        name: "pstats-text",
        aliases: &[],
        extensions: &["pstats.txt"],
        description: "statistics of functions, as CPython's replay prints them",
        readable: false,
        writable: cfg!(feature = "pstats"),
        is_binary: false,
        looks_like: |_| false,
    },
    Facts {
        format: Format::TachyonJsonl,
        name: "tachyon-jsonl",
        aliases: &[],
        extensions: &["tachyon.jsonl"],
        description: "sums of frames as lines of JSON, as CPython's replay writes them with --jsonl",
        readable: cfg!(feature = "tachyon-jsonl"),
        writable: cfg!(feature = "tachyon-jsonl"),
        is_binary: false,
        looks_like: content::is_tachyon_jsonl,
    },
    Facts {
        format: Format::Gecko,
        name: "gecko",
        aliases: &["firefox"],
        extensions: &["gecko.json"],
        description: "processed profile of Firefox Profiler, which samply and CPython's replay write",
        readable: cfg!(feature = "gecko"),
        writable: cfg!(feature = "gecko"),
        is_binary: false,
        looks_like: content::is_gecko,
    },
    Facts {
        format: Format::Otlp,
        name: "otlp",
        aliases: &["opentelemetry", "otel"],
        extensions: &["otlp", "otlp.pb"],
        description: "profiles of OpenTelemetry, development version: protobuf",
        readable: cfg!(feature = "otlp"),
        writable: cfg!(feature = "otlp"),
        is_binary: true,
        looks_like: content::is_otlp,
    },
    Facts {
        format: Format::Pprof,
        name: "pprof",
        aliases: &["pb"],
        extensions: &["pprof", "pb"],
        description: "pprof profile: protobuf, mostly gzip-compressed",
        readable: cfg!(feature = "pprof"),
        writable: cfg!(feature = "pprof"),
        is_binary: true,
        looks_like: content::is_pprof,
    },
    Facts {
        format: Format::Speedscope,
        name: "speedscope",
        aliases: &[],
        extensions: &["speedscope.json", "speedscope"],
        description: "speedscope document: JSON for the viewer of that name",
        readable: cfg!(feature = "speedscope"),
        writable: cfg!(feature = "speedscope"),
        is_binary: false,
        looks_like: content::is_speedscope,
    },
    Facts {
        format: Format::Callgrind,
        name: "callgrind",
        aliases: &["cachegrind"],
        extensions: &["callgrind", "callgrind.out"],
        description: "Callgrind text: for KCachegrind, QCachegrind and callgrind_annotate",
        readable: false,
        writable: cfg!(feature = "callgrind"),
        is_binary: false,
        looks_like: content::is_callgrind,
    },
    Facts {
        format: Format::Jsonl,
        name: "jsonl",
        aliases: &["ndjson", "json-lines"],
        extensions: &["jsonl", "ndjson"],
        description: "JSON Lines, one object a sample: what dump prints, without loss",
        readable: cfg!(feature = "jsonl"),
        writable: cfg!(feature = "jsonl"),
        is_binary: false,
        looks_like: content::is_jsonl,
    },
    Facts {
        format: Format::FlameGraph,
        name: "flamegraph",
        aliases: &["svg", "flame"],
        extensions: &["svg"],
        description: "flame graph as SVG, for a browser",
        readable: false,
        writable: cfg!(feature = "flamegraph"),
        is_binary: false,
        looks_like: content::is_svg,
    },
    Facts {
        format: Format::Perfetto,
        name: "perfetto",
        aliases: &["pftrace"],
        extensions: &["pftrace", "perfetto-trace"],
        description: "timeline for ui.perfetto.dev: what threads, workers and tasks did when",
        readable: false,
        writable: cfg!(feature = "perfetto"),
        is_binary: true,
        looks_like: |_| false,
    },
    Facts {
        format: Format::ChromeTrace,
        name: "chrome-trace",
        aliases: &["trace-events"],
        extensions: &["trace.json", "chrome.json"],
        description: "timeline as JSON trace events: for chrome://tracing and whatever else reads them",
        readable: false,
        writable: cfg!(feature = "chrome-trace"),
        is_binary: false,
        looks_like: |_| false,
    },
];

/// All formats with their facts, for a listing.
#[must_use]
pub const fn formats_table() -> &'static [Facts] {
    &TABLE
}

/// Detects the format of an input by its content. `prefix` is the whole input, or its first [`DETECT_BYTES`], after
/// decompression.
///
/// # Examples
///
/// ```
/// use borehole_formats::detect::{Format, detect};
///
/// assert_eq!(detect(b"main;run;query 12\n"), Some(Format::Folded));
/// assert_eq!(detect(b"0 query /app/db.php:12\n1 <main> /app/index.php:3\n\n"), Some(Format::Phpspy));
/// assert_eq!(detect(b"no profile at all"), None);
/// ```
///
/// Words and a number, as in logs, are not folded stacks: there must be semicolons, or locations of frames.
///
/// ```
/// # use borehole_formats::detect::detect;
/// assert_eq!(detect(b"total 12\nerror 404\n"), None);
/// ```
#[must_use]
pub fn detect(prefix: &[u8]) -> Option<Format> {
    let prefix = &prefix[..prefix.len().min(DETECT_BYTES)];
    let (lines, signed): (Vec<&Facts>, Vec<&Facts>) =
        TABLE.iter().partition(|facts| matches!(facts.format, Format::Phpspy | Format::Folded));
    let mut candidates = signed.into_iter().chain(lines);
    candidates.find(|facts| (facts.looks_like)(prefix)).map(|facts| facts.format)
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 18] = [
        Self::Rbt,
        Self::Tachyon,
        Self::Trc,
        Self::Phpspy,
        Self::Folded,
        Self::Collapsed,
        Self::Pstats,
        Self::PstatsText,
        Self::TachyonJsonl,
        Self::Gecko,
        Self::Otlp,
        Self::Pprof,
        Self::Speedscope,
        Self::Callgrind,
        Self::Jsonl,
        Self::FlameGraph,
        Self::Perfetto,
        Self::ChromeTrace,
    ];

    /// Its facts.
    #[must_use]
    pub const fn facts(self) -> &'static Facts {
        &TABLE[self as usize]
    }

    /// Its short name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.facts().name
    }

    /// The extensions of its files without the leading dot, the usual one first.
    #[must_use]
    pub const fn extensions(self) -> &'static [&'static str] {
        self.facts().extensions
    }

    /// A description in a few words.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        self.facts().description
    }

    /// Whether this build reads it.
    #[must_use]
    pub const fn readable(self) -> bool {
        self.facts().readable
    }

    /// Whether this build writes it.
    #[must_use]
    pub const fn writable(self) -> bool {
        self.facts().writable
    }

    /// The format with this name or alias, in any case.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let named = |facts: &&Facts| {
            let mut names = facts.aliases.iter().chain([&facts.name]);
            names.any(|known| known.eq_ignore_ascii_case(name))
        };
        TABLE.iter().find(named).map(|facts| facts.format)
    }

    /// The format of a path's extension, in any case, and whether `.gz` follows it.
    ///
    /// # Examples
    ///
    /// ```
    /// use borehole_formats::detect::Format;
    ///
    /// assert_eq!(Format::from_path("run/worker.RBT.gz"), Some((Format::Rbt, true)));
    /// assert_eq!(Format::from_path("callgrind.out.4711"), Some((Format::Callgrind, false)));
    /// assert_eq!(Format::from_path("notes.txt"), None);
    /// ```
    #[must_use]
    pub fn from_path(path: &str) -> Option<(Self, bool)> {
        let (name, compressed) = file_name(path);
        let found = TABLE.iter().find(|facts| facts.is_name(&name));
        found.map(|facts| (facts.format, compressed))
    }

    /// The formats that share the extension by which [`from_path`](Self::from_path) picks the format of `path`; only that one if
    /// none does.
    ///
    /// # Examples
    ///
    /// ```
    /// use borehole_formats::detect::Format;
    ///
    /// let formats = Format::sharing("run.bin");
    /// assert_eq!(formats, [Format::Tachyon, Format::Trc]);
    /// assert_eq!(Format::sharing("run.tachyon.jsonl"), [Format::TachyonJsonl]);
    /// ```
    #[must_use]
    pub fn sharing(path: &str) -> Vec<Self> {
        let (name, _) = file_name(path);
        let found = TABLE.iter().find_map(|facts| facts.ending(&name));
        let shares = |facts: &&Facts| found.is_some() && facts.ending(&name) == found;
        TABLE.iter().filter(shares).map(|facts| facts.format).collect()
    }

    /// The format of a file called `path` if the name alone decides it: some extensions belong to several formats, and to other
    /// programs.
    ///
    /// # Examples
    ///
    /// ```
    /// use borehole_formats::detect::Format;
    ///
    /// assert_eq!(Format::from_name_alone("run.tach.zst"), Some(Format::Tachyon));
    /// assert_eq!(Format::from_name_alone("run.bin"), None);
    /// ```
    #[must_use]
    pub fn from_name_alone(path: &str) -> Option<Self> {
        match Self::sharing(path.strip_suffix(".zst").unwrap_or(path))[..] {
            [format] => Some(format),
            _ => None,
        }
    }

    /// Whether a file of this format may be called `path`: some extensions belong to several formats.
    #[must_use]
    pub fn fits(self, path: &str) -> bool {
        self.facts().is_name(&file_name(path).0)
    }
}

impl Facts {
    fn is_name(&self, name: &str) -> bool {
        self.ending(name).is_some()
    }

    /// The extension of this format that a name has.
    fn ending(&self, name: &str) -> Option<&'static str> {
        self.extensions.iter().copied().find(|extension| has_extension(name, extension))
    }
}

/// The part of a file's name that decides its format, and whether the name says that the file is compressed.
fn file_name(path: &str) -> (String, bool) {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path).to_ascii_lowercase();
    let (name, compressed) = match name.strip_suffix(".gz") {
        Some(stem) => (stem, true),
        None => (name.as_str(), false),
    };
    (without_process_number(name).to_owned(), compressed)
}

/// Whether a name ends in `.extension`, or is `extension`, like `callgrind.out`.
fn has_extension(name: &str, extension: &str) -> bool {
    name.strip_suffix(extension).is_some_and(|stem| stem.is_empty() || stem.ends_with('.'))
}

/// `callgrind.out.4711` without the process id that Valgrind appends.
fn without_process_number(name: &str) -> &str {
    match name.rsplit_once('.') {
        Some((stem, end)) if stem.ends_with(".out") && end.bytes().all(|byte| byte.is_ascii_digit()) => stem,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_one_row_a_format_in_order_and_no_name_twice() {
        assert_eq!(TABLE.each_ref().map(|facts| facts.format), Format::ALL);
        let mut names: Vec<_> =
            TABLE.iter().flat_map(|facts| facts.aliases.iter().chain([&facts.name])).collect();
        // Only profiles of CPython and traces of dial9 share an extension; their content tells them apart.
        let shared = |extension: &&&str| **extension != "bin";
        let mut extensions: Vec<_> = TABLE.iter().flat_map(|facts| facts.extensions).filter(shared).collect();
        for list in [&mut names, &mut extensions] {
            let count = list.len();
            list.sort();
            list.dedup();
            assert_eq!(list.len(), count);
        }
    }

    #[test]
    fn every_name_and_alias_is_understood_in_any_case() {
        for facts in formats_table() {
            for name in facts.aliases.iter().chain([&facts.name]) {
                assert_eq!(Format::from_name(&name.to_uppercase()), Some(facts.format));
            }
            assert_eq!(facts.format.name(), facts.name);
            assert!(facts.readable || facts.writable || cfg!(not(feature = "rbt")));
        }
        assert_eq!(Format::from_name("xml"), None);
        assert_eq!(Format::from_name(""), None);
    }

    #[test]
    fn every_extension_is_understood_in_any_case_and_compressed() {
        for facts in formats_table() {
            for extension in facts.extensions {
                let path = format!("/a.b/C.{extension}");
                let told = |path| Format::from_path(path).filter(|(format, _)| format.fits(path));
                let first = if *extension == "bin" { Format::Tachyon } else { facts.format };
                assert_eq!(told(&path), Some((first, false)), "{path}");
                assert!(facts.format.fits(&path), "{path}");
                let path = format!("x.{}.GZ", extension.to_uppercase());
                assert_eq!(told(&path), Some((first, true)), "{path}");
            }
        }
        for path in ["", "rbtx", "x.txt", "x.json", "x.gz", "a.rbt/x", "profile.out.1", "xrbt", "."] {
            assert_eq!(Format::from_path(path), None, "{path}");
        }
    }

    #[test]
    fn bytes_between_which_there_are_lines_are_no_text() {
        let lines = (0..100).map(|number| format!("main;order {number}\n")).collect::<String>();
        assert_eq!(detect(lines.as_bytes()), Some(Format::Folded));
        assert_eq!(detect(format!("class@anonymous\0/a.php;f 3\n{lines}").as_bytes()), Some(Format::Folded));
        assert_eq!(detect(format!("RMEM\x01\0\0\0\n{lines}").as_bytes()), None);
    }

    #[test]
    fn nothing_and_noise_are_no_format() {
        for bytes in
            [b"".as_slice(), b"\0\0\0\0", b"\xff\xfe", b"\n\n\n", b"{}", b"{\"type\":\"other\"}", b"hello"]
        {
            assert_eq!(detect(bytes), None, "{bytes:?}");
        }
    }
}
