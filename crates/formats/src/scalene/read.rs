//! The document.
//!
//! Source: scalene 2.4.0, `scalene_json.py`, `ScaleneJSONSchema` and `output_profiles`.

use serde::Deserialize;

/// The bytes of most values: members of frames.
pub(super) const VALUE_BYTES: usize = 24;

/// A document. Its sums by line are not read.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ScaleneDocument {
    pub(super) program: Option<String>,
    /// Stacks of Python and native code, with the number of their samples.
    pub(super) combined_stacks: Vec<(Vec<ScaleneFrame>, u64)>,
    /// The samples of `combined_stacks` in the order of time.
    pub(super) combined_stacks_timeline: Vec<StackRun>,
    /// Stacks of Python code alone, with sums.
    pub(super) stacks: Vec<(Vec<String>, StackSums)>,
    /// Stacks with the memory that was allocated at them, in units of 1 MiB.
    pub(super) memory_stacks: Vec<(Vec<ScaleneFrame>, f64)>,
}

/// A frame; stacks have the root first.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ScaleneFrame {
    pub(super) kind: FrameKind,
    /// Empty if the function is not known.
    pub(super) display_name: String,
    pub(super) filename_or_module: String,
    pub(super) line: Option<i64>,
    /// The address of a native frame.
    pub(super) ip: Option<u64>,
    /// The distance from the start of the native function.
    pub(super) offset: Option<i64>,
}

/// The language of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum FrameKind {
    #[default]
    Py,
    Native,
    #[serde(other)]
    Other,
}

/// Equal samples, one after the other.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct StackRun {
    /// Seconds since the first sample.
    pub(super) t_sec: f64,
    /// The place in `combined_stacks`.
    pub(super) stack_index: usize,
    pub(super) count: u64,
    pub(super) thread_id: Option<u64>,
}

/// The sums of a stack: an object, and a list in releases before 1.5.50.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum StackSums {
    Named { count: f64 },
    Listed(Vec<f64>),
}

impl StackSums {
    /// The number of samples.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "what is too large becomes the largest"
    )]
    pub(super) fn samples(&self) -> u64 {
        match self {
            Self::Named { count } => *count as u64,
            Self::Listed(sums) => sums.first().copied().unwrap_or(0.0) as u64,
        }
    }
}

/// A frame of `stacks`, taken apart: `FILE FUNCTION:LINE;`.
pub(super) fn parse_frame(text: &str) -> (&str, &str, Option<i64>) {
    let text = text.strip_suffix(';').unwrap_or(text);
    let (place, line) = match text.rsplit_once(':') {
        Some((place, line)) if line.bytes().all(|byte| byte.is_ascii_digit()) => (place, line.parse().ok()),
        _ => (text, None),
    };
    let (file, function) = place.rsplit_once(' ').unwrap_or(("", place));
    (file, function, line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_file_function_and_line() {
        assert_eq!(parse_frame("/a b.py <module>:24;"), ("/a b.py", "<module>", Some(24)));
        assert_eq!(parse_frame("/a.py f.<locals>.g:8"), ("/a.py", "f.<locals>.g", Some(8)));
        assert_eq!(parse_frame("f"), ("", "f", None));
        assert_eq!(parse_frame("a:b"), ("", "a:b", None));
    }
}
