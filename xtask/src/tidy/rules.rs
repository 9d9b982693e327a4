//! The rules as data: what each crate may do, and how large things may grow.

/// A crate of the workspace, and how much it may do.
pub(crate) struct Crate {
    pub(crate) name: &'static str,
    /// The longest chain of dependencies inside the workspace. Arrows point to lower levels only.
    pub(crate) level: u8,
    /// Dependencies from outside the workspace, other than for tests.
    pub(crate) outside: &'static [&'static str],
    pub(crate) freedom: Freedom,
}

/// How near to the machine a crate may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Freedom {
    /// No file, environment, clock, terminal or network.
    Pure,
    /// Files, environment, clock and network, but no output and no exit.
    System,
    /// As `System`, and it may say on stderr that a check is left out.
    Tests,
    /// As `System`, and it prints and exits.
    Program,
}

/// Every crate of the workspace, those to come included.
pub(crate) const CRATES: &[Crate] = &[
    Crate { name: "borehole-memory", level: 0, outside: &["backtrace"], freedom: Freedom::Pure },
    Crate { name: "borehole-wire", level: 0, outside: &["flate2", "memchr", "zstd"], freedom: Freedom::Pure },
    Crate { name: "borehole-text", level: 0, outside: &["serde", "unicode-width"], freedom: Freedom::Pure },
    Crate {
        name: "borehole-derive",
        level: 0,
        outside: &["syn", "quote", "proc-macro2"],
        freedom: Freedom::Pure,
    },
    Crate { name: "borehole-model", level: 1, outside: &["hashbrown", "serde"], freedom: Freedom::Pure },
    Crate {
        name: "borehole-process",
        level: 1,
        outside: &["flate2", "libc", "nix", "object", "perf-event2", "zstd"],
        freedom: Freedom::System,
    },
    Crate {
        name: "borehole-heap",
        level: 1,
        outside: &["hashbrown", "serde", "serde_json", "zstd"],
        freedom: Freedom::Pure,
    },
    Crate { name: "borehole-trc", level: 2, outside: &["hashbrown", "memchr"], freedom: Freedom::Pure },
    Crate {
        name: "borehole-analysis",
        level: 2,
        outside: &["hashbrown", "regex", "serde"],
        freedom: Freedom::Pure,
    },
    Crate { name: "borehole-php", level: 2, outside: &["hashbrown"], freedom: Freedom::Pure },
    Crate { name: "borehole-python", level: 2, outside: &["hashbrown"], freedom: Freedom::Pure },
    Crate {
        name: "borehole-native",
        level: 2,
        outside: &["framehop", "gimli", "hashbrown", "object"],
        freedom: Freedom::Pure,
    },
    Crate {
        name: "borehole-symbols",
        level: 2,
        outside: &["addr2line", "cpp_demangle", "flate2", "memchr", "object", "rustc-demangle", "zstd"],
        freedom: Freedom::System,
    },
    Crate {
        name: "borehole-sql",
        level: 2,
        outside: &[
            "futures",
            "mysql",
            "nix",
            "rusqlite",
            "rustls",
            "tokio",
            "tokio-postgres",
            "tokio-postgres-rustls",
            "webpki-roots",
        ],
        freedom: Freedom::System,
    },
    Crate {
        name: "borehole-formats",
        level: 3,
        outside: &[
            "flate2",
            "hashbrown",
            "inferno",
            "memchr",
            "parquet",
            "regex",
            "serde",
            "serde_json",
            "zstd",
        ],
        freedom: Freedom::Pure,
    },
    Crate {
        name: "borehole-recorder",
        level: 3,
        outside: &["backtrace", "nix", "signal-hook"],
        freedom: Freedom::System,
    },
    Crate { name: "borehole-tui", level: 3, outside: &["ratatui", "serde_json"], freedom: Freedom::Pure },
    Crate { name: "borehole-web", level: 3, outside: &["serde", "serde_json"], freedom: Freedom::Pure },
    Crate { name: "borehole-query", level: 3, outside: QUERY_OUTSIDE, freedom: Freedom::System },
    Crate { name: "borehole-tokio", level: 4, outside: TOKIO_OUTSIDE, freedom: Freedom::System },
    Crate { name: "borehole-capture", level: 4, outside: &["hashbrown", "nix"], freedom: Freedom::System },
    Crate {
        name: "borehole",
        level: 5,
        outside: &["memmap2", "serde", "tar", "tempfile", "zip"],
        freedom: Freedom::System,
    },
    Crate { name: "borehole-serve", level: 6, outside: SERVE_OUTSIDE, freedom: Freedom::System },
    Crate { name: "borehole-cli", level: 7, outside: CLI_OUTSIDE, freedom: Freedom::Program },
    Crate { name: "borehole-testkit", level: 8, outside: TESTKIT_OUTSIDE, freedom: Freedom::Tests },
    Crate { name: "borehole-bench", level: 9, outside: BENCH_OUTSIDE, freedom: Freedom::Program },
    Crate { name: "xtask", level: 0, outside: XTASK_OUTSIDE, freedom: Freedom::Program },
];

/// The level of the crate that Rust programs depend on. Programs are above it.
pub(crate) const FACADE_LEVEL: u8 = 5;

/// The crates up to that level that only this project's programs use, whose words are theirs.
pub(crate) const OF_PROGRAMS: &[&str] = &["borehole-query", "borehole-tui", "borehole-web"];

/// The crates that stand above all others, whatever they depend on: no product may depend on them.
pub(crate) const ABOVE_ALL: &[&str] = &["borehole-testkit", "borehole-bench"];

const TOKIO_OUTSIDE: &[&str] = &[
    "axum",
    "bytes",
    "hashbrown",
    "http",
    "nix",
    "object_store",
    "tokio",
    "tower-layer",
    "tower-service",
    "tracing",
    "tracing-subscriber",
    "url",
];
const QUERY_OUTSIDE: &[&str] = &[
    "async-trait",
    "ballista",
    "ballista-core",
    "ballista-executor",
    "ballista-scheduler",
    "bytes",
    "chrono",
    "datafusion",
    "datafusion-proto",
    "futures",
    "hashbrown",
    "object_store",
    "serde",
    "serde_json",
    "sha2",
    "tokio",
    "url",
    "uuid",
];
const SERVE_OUTSIDE: &[&str] = &[
    "axum",
    "futures",
    "hyper",
    "hyper-util",
    "nix",
    "rmcp",
    "rustls",
    "schemars",
    "serde",
    "serde_json",
    "sha2",
    "tempfile",
    "tokio",
    "tokio-rustls",
    "tower-http",
    "url",
    "uuid",
];
const CLI_OUTSIDE: &[&str] = &[
    "anyhow",
    "clap",
    "clap_complete",
    "clap_mangen",
    "env_logger",
    "glob",
    "indicatif",
    "nix",
    "serde",
    "serde_json",
    "signal-hook",
    "tempfile",
    "terminal_size",
];
const TESTKIT_OUTSIDE: &[&str] = &["allocation-counter", "serde", "serde_json", "sha2", "tempfile"];
const BENCH_OUTSIDE: &[&str] = &[
    "anyhow",
    "clap",
    "dial9-trace-format",
    "inferno",
    "nix",
    "serde",
    "serde_json",
    "tempfile",
    "tokio",
    "tracing",
    "tracing-subscriber",
];
const XTASK_OUTSIDE: &[&str] = &["anyhow", "proc-macro2", "serde_json", "syn"];

/// The crate whose folders are formats. Its other files serve all of them.
pub(crate) const FORMATS_CRATE: &str = "borehole-formats";

/// The crates that are one format each.
pub(crate) const FORMAT_CRATES: &[&str] = &["borehole-trc"];

/// The modules of [`FORMATS_CRATE`] that are no formats, file or folder, and know which formats there are.
pub(crate) const FORMAT_LISTS: &[&str] = &["lib", "detect", "registry"];

/// The folders of [`FORMATS_CRATE`] that are no formats and serve several.
pub(crate) const FORMAT_SERVANTS: &[&str] =
    &["documents", "frames", "lines", "occurrences", "sums", "symbols", "timeline", "times", "v8"];

/// The files of a format that know bytes only.
pub(crate) const WIRE_FILES: &[&str] = &["layout", "read", "write"];

/// The crate that those files must not name.
pub(crate) const MODEL_CRATE: &str = "borehole_model";

/// Where a path may begin only in a crate that is not [`Freedom::Pure`].
pub(crate) const SYSTEM_PATHS: &[&[&str]] = &[
    &["std", "fs"],
    &["std", "env"],
    &["std", "net"],
    &["std", "process"],
    &["std", "os"],
    &["std", "io", "stdin"],
    &["std", "io", "stdout"],
    &["std", "io", "stderr"],
    &["std", "io", "IsTerminal"],
    &["std", "thread", "sleep"],
];

/// The endings of paths that may stand only in a crate that is not [`Freedom::Pure`].
pub(crate) const CLOCKS: &[&[&str]] = &[&["Instant", "now"], &["SystemTime", "now"]];

/// Macros that print.
pub(crate) const PRINTING: &[&str] = &["print", "println", "eprint", "eprintln", "dbg"];

/// The crates that may use `unsafe`.
pub(crate) const UNSAFE_CRATES: &[&str] = &["borehole-memory", "borehole-process"];

/// The crate that may use `unsafe` in one file, which names [`MMAP_CRATE`].
pub(crate) const MMAP_HOME: &str = "borehole";

/// The crate that maps files, which that file of [`MMAP_HOME`] uses.
pub(crate) const MMAP_CRATE: &str = "memmap2";

/// Names that say nothing about what a module holds.
pub(crate) const EMPTY_NAMES: &[&str] = &["utils", "util", "types", "common", "shared", "helpers", "misc"];

/// Lines of a file before its tests. A thought that needs more than the usual 300 is not split to meet a number.
pub(crate) const FILE_LINES: usize = 900;

/// Files that are tables, and have any length.
pub(crate) const TABLE_FILES: &[&str] = &[];

/// Lines of a function, from `fn` to its closing brace.
pub(crate) const FUNCTION_LINES: usize = 60;

/// Lines of the median function of the libraries.
pub(crate) const MEDIAN_LINES: usize = 8;

/// Lines of the function at the 90th percentile of the libraries.
pub(crate) const PERCENTILE_90_LINES: usize = 30;

/// Of a hundred types outside tests, so many may share their name with another type of the workspace.
pub(crate) const REUSED_NAMES_PERCENT: usize = 25;

/// So many types may have one name, unless it is one of [`IDIOMATIC_NAMES`].
pub(crate) const NAME_USES: usize = 4;

/// The names that types have in many modules, which are said with them: `trc::Reader`, `rbt::Error`.
pub(crate) const IDIOMATIC_NAMES: &[&str] =
    &["Error", "ErrorKind", "ExportOptions", "Exporter", "Importer", "Reader", "Writer"];

/// The beginnings of doc comments that put off saying what a thing is.
pub(crate) const IDLE_BEGINNINGS: &[&str] = &["What ", "The same"];

/// So many doc comments may begin that way.
pub(crate) const IDLE_DOCS: usize = 0;

/// Public items of a file.
pub(crate) const PUBLIC_ITEMS: usize = 20;

/// Folders below `src`.
pub(crate) const FOLDERS: usize = 3;

/// Lines of the documents that must stay short enough to be read.
pub(crate) const DOCUMENT_LINES: &[(&str, usize)] = &[("ARCHITECTURE.md", 300), ("README.md", 150)];

/// The programs whose options the texts of libraries name: how to call them, or how they were called. Their own callers have
/// other ways than the command's options to do what an error advises. The page on a database is for readers who have the command.
pub(crate) const OPTION_OWNERS: &[&str] = &[
    "borehole heap query",
    "createdb",
    "docker",
    "dotnet-trace",
    "PHP build",
    "CPython's replay",
    "rbspy",
    "scalene",
    "stackprof",
    "xcrun",
];

/// Hosts of package registries: what is needed comes through a package manager and its settings, not from
/// an address in a file. Written in two parts so that this file does not break its own rule.
pub(crate) const REGISTRY_HOSTS: &[&str] = &[
    concat!("crates", ".io"),
    concat!("pypi", ".org"),
    concat!("pythonhosted", ".org"),
    concat!("npmjs", ".org"),
    concat!("npmjs", ".com"),
    concat!("debian", ".org"),
    concat!("proxy.golang", ".org"),
];

/// Folders of somebody's machine, which mean nothing elsewhere.
pub(crate) const MACHINE_PATHS: &[&str] = &[concat!("/wo", "rk"), concat!("/ro", "ot")];

/// The rule of the crate `name`; `None` if there is none.
pub(crate) fn of(name: &str) -> Option<&'static Crate> {
    CRATES.iter().find(|rule| rule.name == name)
}
