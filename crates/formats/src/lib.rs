//! Profile file formats, each in its own module with its own Cargo feature.
//!
//! The files of a format are `layout` (the numbers of the wire), `read`, `write`, `import`, `export` and `recover`, as
//! far as the format has them. `layout`, `read` and `write` handle only bytes; `import` and `export` connect them with
//! [`borehole_model`]. No format knows another: conversions go through [`ProfileSink`](borehole_model::ProfileSink).
//!
//! An importer is a function `import(input, options, tables, sink)` that returns a [`Recovery`]; an exporter is a type
//! that implements [`Export`].
//!
//! Any byte string is a permissible input: no reader panics, and memory is bounded by [`Limits`] and by the distinct
//! contents of the input.

#[cfg(feature = "callgrind")]
pub mod callgrind;
#[cfg(any(feature = "speedscope", feature = "gecko", feature = "otlp"))]
mod chains;
#[cfg(feature = "chrome-trace")]
pub mod chrome_trace;
#[cfg(feature = "collapsed")]
pub mod collapsed;
#[cfg(any(feature = "pprof", feature = "otlp"))]
mod cut_sums;
#[cfg(any(feature = "collapsed", feature = "speedscope", feature = "gecko", feature = "jsonl"))]
mod decimal;
pub mod detect;
#[cfg(any(
    feature = "pprof",
    feature = "otlp",
    feature = "speedscope",
    feature = "gecko",
    feature = "tachyon-jsonl"
))]
mod document;
pub mod encoding;
#[cfg(feature = "gzip")]
pub mod envelope;
mod error;
mod export;
#[cfg(feature = "flamegraph")]
pub mod flamegraph;
#[cfg(feature = "folded")]
pub mod folded;
#[cfg(any(feature = "folded", feature = "flamegraph"))]
mod folded_lines;
#[cfg(any(feature = "phpspy", feature = "folded"))]
mod frame_memo;
#[cfg(any(feature = "rbt", feature = "jsonl"))]
mod function_name;
#[cfg(feature = "gecko")]
pub mod gecko;
#[cfg(feature = "gzip")]
mod gzip_writer;
#[cfg(any(feature = "speedscope", feature = "gecko", feature = "otlp"))]
mod json_document;
#[cfg(any(feature = "speedscope", feature = "gecko"))]
mod json_stream;
#[cfg(feature = "jsonl")]
pub mod jsonl;
#[cfg(any(feature = "phpspy", feature = "folded"))]
mod location;
#[cfg(feature = "gzip")]
mod member;
#[cfg(any(feature = "trc", feature = "gecko", feature = "perfetto", feature = "chrome-trace"))]
mod one_clock;
#[cfg(any(feature = "gecko", feature = "tachyon", feature = "tachyon-jsonl"))]
mod one_period;
mod options;
#[cfg(feature = "otlp")]
pub mod otlp;
#[cfg(any(feature = "collapsed", feature = "pstats", feature = "tachyon-jsonl", feature = "gecko"))]
mod own_frames;
#[cfg(feature = "perfetto")]
pub mod perfetto;
#[cfg(feature = "phpspy")]
pub mod phpspy;
#[cfg(feature = "pprof")]
pub mod pprof;
#[cfg(any(feature = "pprof", feature = "perfetto", feature = "otlp"))]
mod protobuf;
#[cfg(any(feature = "pprof", feature = "otlp"))]
mod protobuf_fields;
#[cfg(feature = "pstats")]
pub mod pstats;
#[cfg(feature = "rbt")]
pub mod rbt;
#[cfg(any(feature = "pstats", feature = "tachyon-jsonl"))]
mod row_sums;
#[cfg(any(
    feature = "phpspy",
    feature = "folded",
    feature = "collapsed",
    feature = "pstats",
    feature = "tachyon-jsonl",
    feature = "callgrind",
    feature = "flamegraph",
    feature = "perfetto",
    feature = "chrome-trace"
))]
mod sample_losses;
#[cfg(feature = "speedscope")]
pub mod speedscope;
#[cfg(any(
    feature = "folded",
    feature = "collapsed",
    feature = "pstats",
    feature = "tachyon-jsonl",
    feature = "callgrind",
    feature = "flamegraph"
))]
mod stack_counts;
#[cfg(any(feature = "pprof", feature = "otlp"))]
mod stated_duration;
#[cfg(any(feature = "pprof", feature = "otlp"))]
mod stated_period;
#[cfg(feature = "tachyon")]
pub mod tachyon;
#[cfg(feature = "tachyon-jsonl")]
pub mod tachyon_jsonl;
#[cfg(any(feature = "phpspy", feature = "folded", feature = "jsonl", feature = "tachyon-jsonl"))]
mod text;
#[cfg(any(feature = "perfetto", feature = "chrome-trace"))]
mod timeline;
#[cfg(feature = "trc")]
pub mod trc;
mod weighed;
#[cfg(any(feature = "rbt", feature = "trc"))]
mod window;
#[cfg(any(feature = "rbt", feature = "tachyon"))]
mod write_out;
#[cfg(feature = "zstd")]
pub mod zstd;

// This crate creates these, but sinks receive them too, so the model owns the types.
pub use borehole_model::{Recovery, Warning};
pub use error::{Error, ErrorKind, Position, ReadError};
pub use export::{Export, Losses};
#[cfg(any(feature = "rbt", feature = "jsonl"))]
pub use function_name::FunctionName;
pub use options::{Limits, OnDamage, ReadOptions, SampleKind};
pub use weighed::Weighed;
