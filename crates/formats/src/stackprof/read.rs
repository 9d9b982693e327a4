//! The document, and the runs of its samples.
//!
//! Source: stackprof 0.2.21, `ext/stackprof/stackprof.c`, `stackprof_results`.

use std::collections::HashMap;

use serde::Deserialize;

/// The bytes of most values: the numbers of samples, and members of frames.
pub(super) const VALUE_BYTES: usize = 16;

/// A document.
#[derive(Debug, Deserialize)]
pub(super) struct StackprofDocument {
    /// `wall`, `cpu`, `object` or `custom`.
    pub(super) mode: String,
    /// Microseconds between samples; of objects, the number of which one is sampled.
    #[serde(default)]
    pub(super) interval: u64,
    /// Samples that were taken.
    pub(super) samples: u64,
    #[serde(default)]
    pub(super) gc_samples: u64,
    #[serde(default)]
    pub(super) missed_samples: u64,
    pub(super) frames: HashMap<String, RubyFrame>,
    /// Runs of equal samples: the number of frames, their addresses from the root to the leaf, the number of samples.
    #[serde(default)]
    pub(super) raw: Vec<u64>,
    /// The line of each frame in `raw`, in newer releases.
    #[serde(default)]
    pub(super) raw_lines: Vec<u64>,
    /// Microseconds on a clock of the system's, one for each sample.
    #[serde(default)]
    pub(super) raw_sample_timestamps: Vec<u64>,
}

/// A frame of the table.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RubyFrame {
    pub(super) name: String,
    pub(super) file: Option<String>,
    /// The line at which the method begins.
    pub(super) line: Option<i64>,
    /// Samples with the frame as leaf.
    pub(super) samples: u64,
}

/// The file of methods written in C.
pub(super) const C_FILE: &str = "<cfunc>";

/// A run of equal samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RawRun<'a> {
    pub(super) frames_root_first: &'a [u64],
    /// The lines of the frames; empty if they are not known.
    pub(super) lines: &'a [u64],
    pub(super) count: u64,
}

/// The next run of `raw`, which it is removed from; `None` at the end, or at what is no run.
pub(super) fn next_run<'a>(raw: &mut &'a [u64], lines: &mut &'a [u64]) -> Option<RawRun<'a>> {
    let (&length, rest) = raw.split_first()?;
    let length = usize::try_from(length).ok().filter(|&length| length < rest.len())?;
    let (frames_root_first, rest) = rest.split_at(length);
    let (&count, rest) = rest.split_first()?;
    *raw = rest;
    // The lines stand at the same places.
    let of_run = lines.get(1..=length).unwrap_or_default();
    *lines = lines.get(length + 2..).unwrap_or_default();
    Some(RawRun { frames_root_first, lines: of_run, count })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_end_at_the_end_of_the_list_and_at_what_is_none() {
        let runs = |raw: &[u64]| {
            let (mut raw, mut lines, mut found) = (raw, &[][..], Vec::new());
            while let Some(run) = next_run(&mut raw, &mut lines) {
                found.push((run.frames_root_first.to_vec(), run.count));
            }
            (found, raw.len())
        };
        assert_eq!(runs(&[2, 10, 11, 3, 0, 1]), (vec![(vec![10, 11], 3), (vec![], 1)], 0));
        assert_eq!(runs(&[2, 10, 11]), (vec![], 3));
        assert_eq!(runs(&[u64::MAX, 1, 1]), (vec![], 3));
        let (mut raw, mut lines) = (&[1, 10, 3, 1, 10, 2][..], &[1, 7, 3, 1, 9, 2][..]);
        let mut next = || next_run(&mut raw, &mut lines).unwrap().lines.to_vec();
        assert_eq!([next(), next()], [[7], [9]]);
    }
}
