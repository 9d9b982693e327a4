//! Frames of the profiler itself in a Python profile.

use borehole_model::{Frame, Tables};

/// The end of the path of the profiler's own file. CPython's collectors omit its frames.
///
/// Source: CPython 3.15.2, `profiling/sampling`; `tachyon/corpus/expected/*.collapsed.txt`.
const OWN_FILE: &[u8] = b"_sync_coordinator.py";

/// The file of a frame: its source, or else its native module; empty if neither is known.
pub(crate) fn file<'a>(frame: &Frame, tables: &'a Tables) -> &'a [u8] {
    frame.file.or(frame.native.map(|native| native.module)).map_or(b"", |file| tables.string(file))
}

/// Whether a frame is the profiler's own.
pub(crate) fn is_profiler(frame: &Frame, tables: &Tables) -> bool {
    file(frame, tables).ends_with(OWN_FILE)
}
