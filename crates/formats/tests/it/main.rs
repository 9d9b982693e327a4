//! The formats, compared with files, programs and parsers of others.

#![allow(clippy::unwrap_used, reason = "tests fail by panics, in helper functions too")]

mod bounded;
mod callgrind;
mod callgrind_read;
mod chrome_trace;
mod collapsed;
mod cpuprofile;
mod damage;
mod detect;
mod dhat;
mod fill;
mod flamegraph;
mod flat;
mod folded;
mod gecko;
mod gecko_read;
mod growth;
mod heapprofile;
mod jfr;
mod jsonl;
mod legacy_pprof;
mod memory;
mod mojo;
mod names;
mod otlp;
mod parquet;
mod perf_data;
mod perf_script;
mod phpspy;
mod play;
mod pprof;
mod pstats;
mod pyinstrument;
mod rbspy;
mod rbt;
mod replay;
mod scalene;
mod speedscope;
mod stackprof;
mod stops;
mod tachyon;
mod tachyon_jsonl;
mod timeline;
mod xdebug_trace;
mod zstd;
