//! The rules as data: what each crate may do, and how large things may grow.

/// What one crate of the workspace may do.
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
    Crate { name: "borehole-wire", level: 0, outside: &[], freedom: Freedom::Pure },
    Crate { name: "borehole-model", level: 0, outside: &["hashbrown"], freedom: Freedom::Pure },
    Crate {
        name: "borehole-derive",
        level: 0,
        outside: &["syn", "quote", "proc-macro2"],
        freedom: Freedom::Pure,
    },
    Crate {
        name: "borehole-process",
        level: 0,
        outside: &["flate2", "libc", "nix", "object", "zstd"],
        freedom: Freedom::System,
    },
    Crate {
        name: "borehole-formats",
        level: 1,
        outside: &["flate2", "hashbrown", "inferno", "memchr", "regex", "serde", "serde_json", "zstd"],
        freedom: Freedom::Pure,
    },
    Crate { name: "borehole-heap", level: 1, outside: &["hashbrown", "serde_json"], freedom: Freedom::Pure },
    Crate {
        name: "borehole-analysis",
        level: 1,
        outside: &["hashbrown", "regex", "serde"],
        freedom: Freedom::Pure,
    },
    Crate { name: "borehole-recorder", level: 2, outside: &["nix", "signal-hook"], freedom: Freedom::System },
    Crate { name: "borehole-php", level: 2, outside: &["hashbrown"], freedom: Freedom::Pure },
    Crate {
        name: "borehole-tui",
        level: 2,
        outside: &["ratatui", "serde_json", "unicode-width"],
        freedom: Freedom::Pure,
    },
    Crate { name: "borehole-web", level: 2, outside: &[], freedom: Freedom::Pure },
    Crate { name: "borehole-tokio", level: 3, outside: &["nix", "tokio"], freedom: Freedom::System },
    Crate { name: "borehole-capture", level: 3, outside: &["nix"], freedom: Freedom::System },
    Crate {
        name: "borehole-sql",
        level: 2,
        outside: &["rusqlite", "postgres", "mysql", "rustls", "tokio-postgres-rustls", "webpki-roots"],
        freedom: Freedom::System,
    },
    Crate { name: "borehole-query", level: 2, outside: QUERY_OUTSIDE, freedom: Freedom::System },
    Crate {
        name: "borehole",
        level: 4,
        outside: &["flate2", "memmap2", "tempfile"],
        freedom: Freedom::System,
    },
    Crate { name: "borehole-cli", level: 5, outside: CLI_OUTSIDE, freedom: Freedom::Program },
    Crate { name: "borehole-testkit", level: 6, outside: TESTKIT_OUTSIDE, freedom: Freedom::Tests },
    Crate { name: "xtask", level: 7, outside: XTASK_OUTSIDE, freedom: Freedom::Program },
];

/// The crates that stand above all others, whatever they depend on: no product may depend on them.
pub(crate) const ABOVE_ALL: &[&str] = &["borehole-testkit", "xtask"];

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
const CLI_OUTSIDE: &[&str] = &[
    "anyhow",
    "clap",
    "clap_complete",
    "clap_mangen",
    "env_logger",
    "indicatif",
    "nix",
    "serde",
    "serde_json",
    "signal-hook",
    "tempfile",
    "terminal_size",
    "unicode-width",
];
const TESTKIT_OUTSIDE: &[&str] = &["allocation-counter", "serde", "serde_json", "sha2", "tempfile"];
const XTASK_OUTSIDE: &[&str] = &[
    "anyhow",
    "clap",
    "dial9-trace-format",
    "inferno",
    "nix",
    "proc-macro2",
    "serde",
    "serde_json",
    "tempfile",
];

/// The crate whose folders are formats. Its other files serve all of them.
pub(crate) const FORMATS_CRATE: &str = "borehole-formats";

/// The modules of that crate that are no formats, file or folder, and know which formats there are.
pub(crate) const FORMAT_LISTS: &[&str] = &["lib", "detect"];

/// The folders of that crate that are no formats and serve several.
pub(crate) const FORMAT_SERVANTS: &[&str] = &["timeline"];

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

/// What a path may end in only in a crate that is not [`Freedom::Pure`].
pub(crate) const CLOCKS: &[&[&str]] = &[&["Instant", "now"], &["SystemTime", "now"]];

/// Macros that print.
pub(crate) const PRINTING: &[&str] = &["print", "println", "eprint", "eprintln", "dbg"];

/// The crate that may use `unsafe`.
pub(crate) const UNSAFE_CRATE: &str = "borehole-process";

/// The crate that may use `unsafe` in one file, which names [`MMAP_CRATE`].
pub(crate) const MMAP_HOME: &str = "borehole";

/// What that file of [`MMAP_HOME`] is for.
pub(crate) const MMAP_CRATE: &str = "memmap2";

/// Names that say nothing about what a module holds.
pub(crate) const EMPTY_NAMES: &[&str] = &["utils", "util", "types", "common", "shared", "helpers", "misc"];

/// Lines of a file before its tests.
pub(crate) const FILE_LINES: usize = 600;

/// Files that are tables, and may be longer than [`FILE_LINES`].
pub(crate) const TABLE_FILES: &[&str] = &[];

/// Lines of a function, from `fn` to its closing brace.
pub(crate) const FUNCTION_LINES: usize = 60;

/// Lines of the median function of the libraries.
pub(crate) const MEDIAN_LINES: usize = 8;

/// Lines of the function at the 90th percentile of the libraries.
pub(crate) const PERCENTILE_90_LINES: usize = 30;

/// Public items of a file.
pub(crate) const PUBLIC_ITEMS: usize = 20;

/// Folders below `src`.
pub(crate) const FOLDERS: usize = 3;

/// Lines of the documents that must stay short enough to be read.
pub(crate) const DOCUMENT_LINES: &[(&str, usize)] = &[("ARCHITECTURE.md", 300), ("README.md", 150)];

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

/// What `name` may do; `None` if nobody has said.
pub(crate) fn of(name: &str) -> Option<&'static Crate> {
    CRATES.iter().find(|rule| rule.name == name)
}
