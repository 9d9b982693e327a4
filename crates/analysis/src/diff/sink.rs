//! The sink that reads both sides.

use std::io;
use std::ops::ControlFlow;

use borehole_model::{Context, Mode, ProfileSink, Sample, Tables, Warning};

use super::answer::DiffAnswer;
use super::rows::has_files;
use super::side::SideState;
use super::view::DiffView;
use super::{DiffQuery, Identity};
use crate::view::ProfileSummary;

/// Reads two sides over the same tables, and compares them in `finish`.
///
/// # Examples
///
/// ```
/// use borehole_analysis::diff::{DiffQuery, DiffSink};
/// use borehole_model::{Context, Frame, ProfileSink, Sample, Segment, Tables};
///
/// let mut tables = Tables::default();
/// let [slow, fast] = [b"slow", b"fast"].map(|name| {
///     let name = tables.intern_string(name).expect("there is room");
///     let frame = tables.intern_frame(&Frame::named(name)).expect("there is room");
///     tables.intern_stack(None, frame).expect("there is room")
/// });
/// let segment = Segment::default();
/// let at = Context { tables: &tables, segment: &segment };
/// let mut sink = DiffSink::new(DiffQuery::default());
/// for (slow_samples, fast_samples) in [(100, 900), (400, 600)] {
///     sink.segment(at)?;
///     for i in 0..1000 {
///         let stack = if i * 7 % 1000 < slow_samples { slow } else { fast };
///         let _ = sink.sample(at, &Sample { stack: Some(stack), count: 1, ..Sample::default() })?;
///     }
///     sink.begin_after();
/// }
/// sink.finish(&tables)?;
/// let view = sink.into_view();
/// let row = view.functions.iter().find(|row| row.frame.function == b"slow").expect("it was sampled");
/// assert_eq!((row.self_change.before.value, row.self_change.after.value, row.self_change.is_marked), (0.1, 0.4, true));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct DiffSink {
    query: DiffQuery,
    before: SideState,
    after: SideState,
    is_after: bool,
    view: DiffView,
}

impl DiffSink {
    /// Creates a sink for `query` that first takes the inputs of the "before" side.
    #[must_use]
    pub fn new(query: DiffQuery) -> Self {
        let by_input = query.inputs.iter().all(|&inputs| inputs >= DiffQuery::RUNS);
        Self {
            before: SideState::new(by_input, query.value.as_deref()),
            after: SideState::new(by_input, query.value.as_deref()),
            is_after: false,
            view: DiffView::default(),
            query,
        }
    }

    /// Assigns all further inputs to the "after" side.
    pub const fn begin_after(&mut self) {
        self.is_after = true;
    }

    /// The result. Empty before [`ProfileSink::finish`].
    #[must_use]
    pub fn into_view(self) -> DiffView {
        self.view
    }

    const fn side(&mut self) -> &mut SideState {
        if self.is_after { &mut self.after } else { &mut self.before }
    }

    /// Fails if the sides measure different things, or not the value type that was asked for.
    fn check_kinds(&self) -> io::Result<()> {
        [&self.before, &self.after].into_iter().try_for_each(|side| side.weigher.check())?;
        match [&self.before, &self.after].map(|side| side.weigher.tells_of()) {
            [Some(before), Some(after)] if before != after => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!(
                    "different value types: expected {before} on both sides, found {after} on the second"
                ),
            )),
            _ => Ok(()),
        }
    }

    /// The identity to use: resolves `MergedFrame` by whether both sides have files.
    fn identity(&self) -> Identity {
        match self.query.identity {
            Identity::Known if self.before.has_files && self.after.has_files => Identity::File,
            Identity::Known => Identity::Function,
            identity => identity,
        }
    }
}

impl ProfileSink for DiffSink {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        let side = if self.is_after { &mut self.after } else { &mut self.before };
        side.sample(at, sample, &self.query.per);
        Ok(ControlFlow::Continue(()))
    }

    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        self.side().segment(at);
        Ok(())
    }

    fn warning(&mut self, warning: &Warning) -> io::Result<()> {
        self.side().facts.warning(warning);
        Ok(())
    }

    fn finish(&mut self, tables: &Tables) -> io::Result<()> {
        self.check_kinds()?;
        let summaries = [&mut self.before, &mut self.after].map(|side| {
            side.finish();
            side.has_files = has_files(side, tables);
            // For observations and for times of a mode, the weigher tells of that mode.
            let mode = side.weigher.tells_of().and_then(Mode::named).unwrap_or_default();
            ProfileSummary { mode, ..side.facts.summary() }
        });
        let sides = [(&self.before, &summaries[0]), (&self.after, &summaries[1])];
        let mut view = DiffAnswer::new(&self.query, sides, tables, self.identity())?.view();
        for ((side, summary), view) in sides.into_iter().zip([&mut view.before, &mut view.after]) {
            let matched = view.summary.matched;
            let stacks = side.stretches.counts.len();
            view.summary = ProfileSummary { matched, stacks, ..summary.clone() };
            view.inputs = side.inputs;
            view.is_ordered = side.is_ordered;
            view.value_type = side.weigher.value_type().filter(|_| side.values.is_some()).cloned();
            view.value = side.values;
            view.others = side.weigher.others().cloned().collect();
        }
        self.view = view;
        Ok(())
    }
}
