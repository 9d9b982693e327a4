//! One line as a value.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::lines::json::line_type;

/// A line, by its type. Unknown types are `Other`.
pub(super) enum RunLine {
    Meta(MetaLine),
    Strings(Vec<StringEntry>),
    Frames(Vec<FrameEntry>),
    Sums(SumsLine),
    End(RunEnd),
    Other(String),
}

/// Parses one line.
pub(super) fn parse_line(line: &[u8]) -> Result<RunLine, serde_json::Error> {
    let name = line_type(line)?;
    Ok(match &*name {
        "meta" => RunLine::Meta(serde_json::from_slice(line)?),
        "string_table" => RunLine::Strings(serde_json::from_slice::<StringsLine>(line)?.strings),
        "frame_table" => RunLine::Frames(serde_json::from_slice::<FramesLine>(line)?.frames),
        "agg" => RunLine::Sums(serde_json::from_slice(line)?),
        "end" => RunLine::End(serde_json::from_slice(line)?),
        _ => RunLine::Other(name.into_owned()),
    })
}

/// The first line of a run.
#[derive(Deserialize)]
pub(super) struct MetaLine {
    #[serde(default)]
    pub(super) v: u64,
    pub(super) sample_interval_usec: Option<u64>,
    /// Its other members: the mode, the number of the run.
    #[serde(flatten)]
    pub(super) rest: Map<String, Value>,
}

#[derive(Deserialize)]
struct StringsLine {
    strings: Vec<StringEntry>,
}

#[derive(Deserialize)]
pub(super) struct StringEntry {
    pub(super) str_id: u64,
    pub(super) value: String,
}

#[derive(Deserialize)]
struct FramesLine {
    frames: Vec<FrameEntry>,
}

/// A frame. The line of an unknown location is 0 or absent.
#[derive(Deserialize)]
pub(super) struct FrameEntry {
    pub(super) frame_id: u64,
    pub(super) path_str_id: u64,
    pub(super) func_str_id: u64,
    pub(super) line: Option<i64>,
    pub(super) end_line: Option<i64>,
    pub(super) col: Option<i64>,
    pub(super) end_col: Option<i64>,
    /// A number or a name.
    pub(super) opcode: Option<Value>,
}

/// Sums of frames.
#[derive(Deserialize)]
pub(super) struct SumsLine {
    pub(super) kind: String,
    pub(super) scope: String,
    pub(super) entries: Vec<SumEntry>,
}

/// The self and total samples of a frame.
#[derive(Deserialize)]
pub(super) struct SumEntry {
    pub(super) frame_id: u64,
    #[serde(rename = "self")]
    pub(super) self_samples: u64,
    #[serde(default, rename = "cumulative")]
    pub(super) total_samples: u64,
}

/// The last line of a run.
#[derive(Deserialize)]
pub(super) struct RunEnd {
    pub(super) samples_total: u64,
}
