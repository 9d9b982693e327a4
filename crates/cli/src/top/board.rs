//! Running counts of samples.

use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use borehole::capture::LiveSink;
use borehole::model::{Context, ProfileSink, Sample};

/// Samples by function and by process.
#[derive(Clone, Debug, Default)]
pub(super) struct Board {
    pub(super) samples: u64,
    /// Indexed by the id of the function's name.
    pub(super) functions: Vec<FunctionCounts>,
    pub(super) processes: BTreeMap<i64, u64>,
}

/// The counts of a function.
#[derive(Clone, Debug, Default)]
pub(super) struct FunctionCounts {
    /// Empty until the function is seen.
    pub(super) name: String,
    /// Samples in which the function was the leaf.
    pub(super) self_samples: u64,
    /// Samples in which the function was on the stack.
    pub(super) total: u64,
    /// The last sample with the function, so that a recursive function counts once per sample.
    pub(super) last_sample: u64,
}

/// Counts samples on a board.
pub(super) struct BoardSink(pub(super) Arc<Mutex<Board>>);

impl ProfileSink for BoardSink {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).add(at, sample);
        Ok(ControlFlow::Continue(()))
    }
}

impl LiveSink for BoardSink {}

impl Board {
    fn add(&mut self, at: Context<'_>, sample: &Sample<'_>) {
        self.samples += 1;
        if let Some(process) = at.process(sample) {
            *self.processes.entry(process).or_default() += 1;
        }
        for (depth, frame) in at.tables.frames_leaf_first(sample.stack).enumerate() {
            let name = at.tables.function(frame);
            if self.functions.len() <= name.index() {
                self.functions.resize(at.tables.string_count() + 1, FunctionCounts::default());
            }
            let function = &mut self.functions[name.index()];
            if function.name.is_empty() {
                function.name = String::from_utf8_lossy(at.tables.string(name)).into_owned();
            }
            function.self_samples += u64::from(depth == 0);
            function.total += u64::from(function.last_sample != self.samples);
            function.last_sample = self.samples;
        }
    }
}
