//! Internal to [Borehole](https://docs.rs/borehole), whose own crates alone depend on it. Its interface may change at any time.
//!
//! Profile file formats, each in its own module with its own Cargo feature.
//!
//! The files of a format are `layout` (the numbers of the wire), `read`, `write`, `import`, `export` and `recover`, as
//! far as the format has them. `layout`, `read` and `write` handle only bytes; `import` and `export` connect them with
//! [`borehole_model`]. No format knows another: conversions go through [`ProfileSink`](borehole_model::ProfileSink).
//!
//! An importer is a function `import(input, options, tables, sink)` that returns a [`Recovery`]; an exporter is a type
//! that implements [`Export`].
//!
//! With one format such as `rbt` and no default feature, ten crates are built. Of Borehole's own, `borehole-text` holds the errors and
//! warnings of readers and how numbers and names are written, and `borehole-memory` the budget that ends a reader of a hostile file:
//! a reader of one format needs both.
//!
//! Any byte string is a permissible input: no reader panics, and memory is bounded by [`Limits`] and by the distinct
//! contents of the input.

#![forbid(unsafe_code)]
// Each format uses a part of what they share.
#![cfg_attr(not(feature = "all"), allow(dead_code, unused_imports, unreachable_pub))]

registry::formats! {
    "rbt" rbt "rbt/facts.rs" { Rbt: FACTS, CODEC; }
    "tachyon" tachyon "tachyon/facts.rs" { Tachyon: FACTS, CODEC; }
    "trc" trc "trc/facts.rs" { Trc: FACTS, CODEC; }
    "phpspy" phpspy "phpspy/facts.rs" { Phpspy: FACTS, CODEC; }
    "perf-data" perf_data "perf_data/facts.rs" { PerfData: FACTS, CODEC; }
    "perf-script" perf_script "perf_script/facts.rs" { PerfScript: FACTS, CODEC; }
    "jfr" jfr "jfr/facts.rs" { Jfr: FACTS, CODEC; }
    "mojo" mojo "mojo/facts.rs" { Mojo: FACTS, CODEC; }
    "folded" folded "folded/facts.rs" { Folded: FACTS, CODEC; }
    "collapsed" collapsed "collapsed/facts.rs" { Collapsed: FACTS, CODEC; }
    "pstats" pstats "pstats/facts.rs" { Pstats: FACTS, CODEC; PstatsText: TEXT_FACTS, TEXT_CODEC; }
    "tachyon-jsonl" tachyon_jsonl "tachyon_jsonl/facts.rs" { TachyonJsonl: FACTS, CODEC; }
    "gecko" gecko "gecko/facts.rs" { Gecko: FACTS, CODEC; }
    "otlp" otlp "otlp/facts.rs" { Otlp: FACTS, CODEC; }
    "pprof" pprof "pprof/facts.rs" { Pprof: FACTS, CODEC; }
    "legacy-pprof" legacy_pprof "legacy_pprof/facts.rs" { PprofText: FACTS, CODEC; Gperftools: CPU_FACTS, CPU_CODEC; }
    "speedscope" speedscope "speedscope/facts.rs" { Speedscope: FACTS, CODEC; }
    "cpuprofile" cpuprofile "cpuprofile/facts.rs" { Cpuprofile: FACTS, CODEC; }
    "heapprofile" heapprofile "heapprofile/facts.rs" { Heapprofile: FACTS, CODEC; }
    "dhat" dhat "dhat/facts.rs" { Dhat: FACTS, CODEC; }
    "stackprof" stackprof "stackprof/facts.rs" { Stackprof: FACTS, CODEC; }
    "rbspy" rbspy "rbspy/facts.rs" { Rbspy: FACTS, CODEC; }
    "pyinstrument" pyinstrument "pyinstrument/facts.rs" { Pyinstrument: FACTS, CODEC; }
    "scalene" scalene "scalene/facts.rs" { Scalene: FACTS, CODEC; }
    "xdebug-trace" xdebug_trace "xdebug_trace/facts.rs" { XdebugTrace: FACTS, CODEC; }
    "callgrind" callgrind "callgrind/facts.rs" { Callgrind: FACTS, CODEC; }
    "jsonl" jsonl "jsonl/facts.rs" { Jsonl: FACTS, CODEC; }
    "flamegraph" flamegraph "flamegraph/facts.rs" { FlameGraph: FACTS, CODEC; }
    "perfetto" perfetto "perfetto/facts.rs" { Perfetto: FACTS, CODEC; }
    "chrome-trace" chrome_trace "chrome_trace/facts.rs" { ChromeTrace: FACTS, CODEC; }
    "parquet" parquet "parquet/facts.rs" { Parquet: FACTS, CODEC; }
}

pub mod detect;
mod documents;
mod frames;
mod lines;
#[cfg(feature = "json")]
mod occurrences;
pub mod registry;
mod sums;
mod symbols;
mod timeline;
mod times;
#[cfg(feature = "json")]
mod v8;
mod weighed;

// The types in this crate's signatures that other crates own.
pub use borehole_model::{
    CodePlaces, Export, Limits, Losses, OnDamage, ReadOptions, Recovery, SampleKind, Warning, WarningKind,
};
pub use borehole_text::{Error, ErrorKind, Position, ReadError, UnknownName};
pub use borehole_wire::Compression;
#[cfg(feature = "gzip")]
pub use borehole_wire::envelope::CompressedWriter;
pub use frames::function_name::FunctionName;
pub use registry::{Facts, OwnFormat, WriteOptions};
pub use symbols::fill::{AddressSymbols, FilledAddresses, FilledLine, StatedMapping};
pub use weighed::Weighed;
