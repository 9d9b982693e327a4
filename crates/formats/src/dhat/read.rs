//! The document, and the texts of its frames.
//!
//! Source: Valgrind 3.19, `dhat/dh_main.c`, which describes version 2 of the format above `dh_fini`.

use serde::Deserialize;

/// The bytes of most values: the numbers of program points.
pub(super) const VALUE_BYTES: usize = 16;

/// The only version.
pub(super) const VERSION: u64 = 2;

/// A document.
#[derive(Debug, Deserialize)]
pub(super) struct DhatDocument {
    #[serde(rename = "dhatFileVersion")]
    pub(super) version: u64,
    /// `heap`, `copy`, `ad-hoc`, or `rust-heap`.
    pub(super) mode: String,
    /// Whether blocks have lifetimes, so that there is a peak and an end.
    #[serde(rename = "bklt", default)]
    pub(super) has_lifetimes: bool,
    /// Whether accesses were counted.
    #[serde(rename = "bkacc", default)]
    pub(super) has_accesses: bool,
    #[serde(rename = "cmd", default)]
    pub(super) command: Option<String>,
    #[serde(rename = "pid", default)]
    pub(super) process: Option<i64>,
    #[serde(rename = "pps")]
    pub(super) points: Vec<ProgramPoint>,
    #[serde(rename = "ftbl")]
    pub(super) frames: Vec<String>,
}

/// The allocations of one stack.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ProgramPoint {
    #[serde(rename = "tb")]
    pub(super) total_bytes: u64,
    #[serde(rename = "tbk")]
    pub(super) total_blocks: u64,
    /// When the heap was largest.
    #[serde(rename = "gb")]
    pub(super) peak_bytes: u64,
    #[serde(rename = "gbk")]
    pub(super) peak_blocks: u64,
    /// At the end.
    #[serde(rename = "eb")]
    pub(super) end_bytes: u64,
    #[serde(rename = "ebk")]
    pub(super) end_blocks: u64,
    #[serde(rename = "rb")]
    pub(super) read_bytes: u64,
    #[serde(rename = "wb")]
    pub(super) written_bytes: u64,
    /// Rows of the table, the leaf first.
    #[serde(rename = "fs")]
    pub(super) frames_leaf_first: Vec<u64>,
}

/// A frame in parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameText<'a> {
    /// The function, or its address if that is all there is.
    pub(super) function: &'a str,
    pub(super) place: FramePlace<'a>,
}

/// Where a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FramePlace<'a> {
    Line(&'a str, i64),
    Module(&'a str),
    Unknown,
}

/// The text of the table's first row, which is no frame.
pub(super) const ROOT: &str = "[root]";

/// The function of an address without a symbol.
const UNKNOWN: &str = "???";

/// Splits `0xADDRESS: FUNCTION (FILE:LINE)` or `0xADDRESS: FUNCTION (in MODULE)`. Functions of C++ have spaces and parentheses.
///
/// Source: Valgrind 3.19, `VG_(describe_IP)`; the crate dhat 0.3, which adds a column.
pub(super) fn frame(text: &str) -> FrameText<'_> {
    let (address, rest) = match text.split_once(": ") {
        Some((address, rest)) if address.starts_with("0x") => (address, rest),
        _ => (text, text),
    };
    let (function, place) = match rest.strip_suffix(')').and_then(|rest| rest.rsplit_once(" (")) {
        Some((function, place)) => (function, frame_place(place)),
        None => (rest, FramePlace::Unknown),
    };
    let function = if function.is_empty() || function == UNKNOWN { address } else { function };
    FrameText { function, place }
}

fn frame_place(text: &str) -> FramePlace<'_> {
    if let Some(module) = text.strip_prefix("in ") {
        return FramePlace::Module(module);
    }
    let Some((file, number)) = text.rsplit_once(':') else { return FramePlace::Unknown };
    // A column may follow the line.
    let line_and_column =
        file.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse::<i64>().ok()?)));
    match (line_and_column, number.parse()) {
        (Some((file, line)), Ok(_)) => FramePlace::Line(file, line),
        (None, Ok(line)) => FramePlace::Line(file, line),
        _ => FramePlace::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_split_where_the_place_begins() {
        let place = FramePlace::Line;
        for (text, function, expected) in [
            ("0x109196: hold (alloc.c:8)", "hold", place("alloc.c", 8)),
            ("0x48417B4: malloc (in /usr/lib/a b.so)", "malloc", FramePlace::Module("/usr/lib/a b.so")),
            ("0x1: std::f(int (*)(char)) (map.h:3)", "std::f(int (*)(char))", place("map.h", 3)),
            ("0x1: a::b::{{closure}} (src/main.rs:7:13)", "a::b::{{closure}}", place("src/main.rs", 7)),
            ("0x1: ??? (in /bin/a)", "0x1", FramePlace::Module("/bin/a")),
            ("0x1: ???", "0x1", FramePlace::Unknown),
            ("f", "f", FramePlace::Unknown),
            ("", "", FramePlace::Unknown),
        ] {
            assert_eq!(frame(text), FrameText { function, place: expected }, "{text}");
        }
    }
}
