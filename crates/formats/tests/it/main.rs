//! The formats, held against files, programs and parsers that are not ours.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails, in what it calls as well")]

mod callgrind;
mod collapsed;
mod detect;
mod flamegraph;
mod flat;
mod folded;
mod gecko;
mod gecko_read;
mod jsonl;
mod otlp;
mod phpspy;
mod play;
mod pprof;
mod rbt;
mod replay;
mod speedscope;
mod tables;
mod tachyon;
mod tachyon_jsonl;
mod timeline;
mod trc;
mod zstd;
