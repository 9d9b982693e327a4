//! A profile in memory, and how it is read.

use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use borehole::model::{Context, Event, Sample, Sampled, Tables, Tee, ValueType, Weigher};
use borehole::{Archive, Error, Input, InputOptions, ProfileSink, ReadOptions, Recovery, Source, Unpacked};
use borehole_analysis::tokio::{TokioPage, TokioPageSink};
use borehole_analysis::{
    Calls, HeatMap, HeatMapSink, LaneRuns, LaneRunsSink, LineRows, Profile, ProfileBuilder, Query,
    SampleSelection, Weight,
};

use super::cancelled;
use crate::refusal::{Refusal, RefusalKind};

/// A profile, and what its Tokio programs did if it is a trace of them.
pub(crate) struct OpenedProfile {
    pub(crate) profile: Profile,
    pub(crate) heat: HeatMap,
    /// The stacks of each lane in the order of time.
    pub(crate) lanes: LaneRuns,
    pub(crate) programs: Vec<TokioPage>,
    /// All value types that can be asked for.
    pub(crate) value_types: Vec<ValueType>,
    pub(crate) recovery: Recovery,
    /// The calls under no query. Their structure costs most, and a selection changes only their weights.
    calls: OnceLock<Calls>,
}

impl OpenedProfile {
    /// Reads the profile at `path` with the value type `value`.
    pub(crate) fn read(path: &Path, value: Option<&str>, is_unwanted: &AtomicBool) -> Result<Self, Refusal> {
        let weigher = Weigher::new(value, Sampled::Count);
        let profile = Tee::new(ProfileBuilder::new(weigher.clone()), HeatMapSink::new(weigher.clone()));
        let times = Tee::new(LaneRunsSink::new(weigher), TokioPageSink::default());
        let mut tables = Tables::default();
        let mut sink = Tee::new(profile, times);
        let recovery = read_into(path, &mut tables, &mut sink, is_unwanted)?;
        sink.finish(&tables).map_err(|error| Refusal::new(RefusalKind::Internal, error.to_string()))?;
        let (profile, times) = sink.into_parts();
        let (lanes, programs) = times.into_parts();
        let (builder, heat) = profile.into_parts();
        let weigher = builder.weigher();
        weigher.check().map_err(|error| Refusal::invalid(error.to_string()))?;
        let value_types = weigher.kinds().to_vec();
        Ok(Self {
            profile: builder.into_profile(tables),
            heat: heat.into_view(),
            lanes: lanes.into_runs(),
            programs: programs.into_pages(),
            value_types,
            recovery,
            calls: OnceLock::new(),
        })
    }

    /// The calls by function, with the weights of a selection.
    pub(crate) fn calls(&self, selection: &SampleSelection, weight: Weight) -> Calls {
        let of_all = self.calls.get_or_init(|| {
            let everything = SampleSelection::default();
            Calls::new(&self.profile, &by_function(), &everything, self.profile.default_weight())
        });
        let mut calls = of_all.clone();
        if *selection != SampleSelection::default() || weight != of_all.weight() {
            calls.weigh(&self.profile, selection, weight);
        }
        calls
    }
}

/// The query whose rows are functions, whatever their lines.
pub(crate) fn by_function() -> Query {
    Query { lines: LineRows::Together, ..Query::default() }
}

/// Reads the profile at `path`, or all profiles of the archive there.
///
/// The file is not mapped: whoever truncates it while it is read would end the server.
pub(super) fn read_into(
    path: &Path,
    tables: &mut Tables,
    sink: &mut dyn ProfileSink,
    is_unwanted: &AtomicBool,
) -> Result<Recovery, Refusal> {
    let options = InputOptions { read: ReadOptions::lenient(), ..InputOptions::default() };
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let open = || -> Result<Source, Refusal> { Ok(Source::path(path)?.unmapped(name.clone())) };
    let mut sink = Wanted { sink, is_unwanted };
    let recovery = match Input::open(open()?, &options) {
        Ok(input) => input.read_into(tables, &mut sink)?,
        Err(Error::Foreign { foreign, .. }) if foreign.is_archive => {
            let Unpacked::Archive(archive) = Archive::unpack(open()?, &options)? else {
                return Err(Refusal::new(RefusalKind::Unreadable, format!("{name}: not an archive")));
            };
            of_members(&archive, &options, tables, &mut sink)?
        }
        Err(error) => return Err(error.into()),
    };
    if is_unwanted.load(Ordering::Relaxed) {
        return Err(cancelled());
    }
    Ok(recovery)
}

fn of_members(
    archive: &Archive,
    options: &InputOptions,
    tables: &mut Tables,
    sink: &mut Wanted<'_>,
) -> Result<Recovery, Refusal> {
    let mut recovery = archive.recovery().clone();
    for member in archive.members() {
        recovery.merge(Input::open(member.source(), options)?.read_into(tables, sink)?);
    }
    Ok(recovery)
}

/// A sink that stops its source once nobody wants the result any more.
struct Wanted<'a> {
    sink: &'a mut dyn ProfileSink,
    is_unwanted: &'a AtomicBool,
}

impl Wanted<'_> {
    fn flow(&self, flow: ControlFlow<()>) -> ControlFlow<()> {
        if self.is_unwanted.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { flow }
    }
}

impl ProfileSink for Wanted<'_> {
    fn next(&mut self) -> Option<&mut dyn ProfileSink> {
        Some(self.sink)
    }

    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        let flow = self.sink.sample(at, sample)?;
        Ok(self.flow(flow))
    }

    fn settle(&mut self, tables: &Tables) -> io::Result<bool> {
        self.sink.settle(tables)
    }

    fn event(&mut self, at: Context<'_>, event: &Event<'_>) -> io::Result<ControlFlow<()>> {
        let flow = self.sink.event(at, event)?;
        Ok(self.flow(flow))
    }
}

#[cfg(test)]
mod tests {
    use borehole_testkit::corpus;

    use super::*;

    /// Counts samples and events, and wants no more after some.
    struct Impatient<'a> {
        seen: u64,
        wanted: u64,
        is_unwanted: &'a AtomicBool,
    }

    impl Impatient<'_> {
        fn see(&mut self) -> ControlFlow<()> {
            self.seen += 1;
            self.is_unwanted.fetch_or(self.seen == self.wanted, Ordering::Relaxed);
            ControlFlow::Continue(())
        }
    }

    impl ProfileSink for Impatient<'_> {
        fn sample(&mut self, _: Context<'_>, _: &Sample<'_>) -> io::Result<ControlFlow<()>> {
            Ok(self.see())
        }

        fn keeps_events(&mut self) -> bool {
            true
        }

        fn event(&mut self, _: Context<'_>, _: &Event<'_>) -> io::Result<ControlFlow<()>> {
            Ok(self.see())
        }
    }

    #[test]
    fn reading_ends_at_the_sample_after_which_nobody_waits() {
        for file in
            ["rbt/daemon_worker.rbt", "tachyon/corpus/26_realapp_zstd.bin", "trc/tokio/stuck_worker.bin"]
        {
            let seen = |wanted| {
                let is_unwanted = AtomicBool::new(false);
                let mut sink = Impatient { seen: 0, wanted, is_unwanted: &is_unwanted };
                let read = read_into(&corpus(file), &mut Tables::default(), &mut sink, &is_unwanted);
                (sink.seen, read.err().map(|refusal| refusal.kind))
            };
            let (all, none) = seen(u64::MAX);
            assert!(all > 3 && none.is_none(), "{file}: {all}");
            assert_eq!(seen(3), (3, Some(RefusalKind::Busy)), "{file}");
        }
    }
}
