//! Exports the model to a document.

use std::io::{self, Write};
use std::ops::ControlFlow;

use borehole_model::{
    Context, Frame, Lane, Measure, ProfileSink, Sample, Sampled, Segment, StackId, Tables, Weigher, goes_on,
};

use super::NAME;
use crate::documents::chains::{EntryChain, Pull, SampleSpool};
use crate::documents::json_stream::JsonStream;
use crate::documents::numbered::Numbered;
use crate::lines::runs;
use crate::registry::MakeSpool;
use crate::sums::losses::SampleLosses;
use crate::v8::frames::{ANONYMOUS, ROOT};
use crate::{Export, Losses};

/// The id of the root, which is the empty stack.
const ROOT_NODE: u64 = 1;

/// The id of the node of times without samples.
const IDLE_NODE: u64 = 2;

/// The id of the first stack's node.
const FIRST_NODE: u64 = 3;

/// Writes a CPU profile of V8: the lanes one after the other, because a document is about one thread.
///
/// A sample lasts as long as its value says, if that is a time, or its period. Samples without any time last a microsecond for
/// each unit of their value. If a lane has no sample for half a period or more, `(idle)` fills the time until the next one.
///
/// Entries wait in a temporary file that `make_spool` supplies, so memory grows with the distinct stacks and not with the samples.
/// Nothing is written before `finish`.
///
/// # Examples
///
/// ```
/// use borehole_formats::{ReadOptions, cpuprofile, folded};
/// use borehole_model::{ProfileSink as _, Tables};
///
/// let (mut tables, mut text) = (Tables::default(), Vec::new());
/// let spool = || Ok(Box::new(std::io::Cursor::new(Vec::new())) as _);
/// let mut exporter = cpuprofile::Exporter::new(&mut text, None, spool);
/// folded::import(&b"main;query 2\n"[..], &ReadOptions::default(), &mut tables, &mut exporter)?;
/// exporter.finish(&tables)?;
/// drop(exporter);
/// assert!(String::from_utf8(text)?.ends_with("\"samples\":[4,4],\"timeDeltas\":[0,1]}\n"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Exporter<W> {
    output: JsonStream<W>,
    weigher: Weigher,
    spool: SampleSpool,
    lanes: Numbered<Lane>,
    /// By the number of their lane.
    tracks: Vec<LaneTrack>,
    /// The number of samples by stack.
    hits: Vec<u64>,
    root_hits: u64,
    losses: SampleLosses,
    lost: LostParts,
}

/// Losses of this format, beside those that all exporters count.
#[derive(Debug, Default)]
struct LostParts {
    /// Samples whose time follows from those before them, and not from their own.
    moved: u64,
    negative: u64,
    other_values: u64,
    names: u64,
    modules: u64,
    opcodes: u64,
}

/// The entries of a lane: a node and how long it lasts, in nanoseconds.
#[derive(Debug, Default)]
struct LaneTrack {
    chain: EntryChain,
    start_ns: Option<i64>,
    /// The end of the entries so far, on the clock of the samples.
    end_ns: i64,
    /// The entry that lasts until the next one: its node and time.
    open: Option<(u64, i64)>,
    /// The duration of the entry before.
    latest_ns: u64,
}

impl LaneTrack {
    fn push(&mut self, node: u64, lasts_ns: u64, spool: &mut SampleSpool) -> io::Result<()> {
        self.end_ns = self.end_ns.saturating_add_unsigned(lasts_ns);
        self.latest_ns = lasts_ns;
        spool.push(&mut self.chain, [node, lasts_ns, 0])
    }

    /// Moves on to a sample at `time_ns`; returns whether it is there then.
    fn go_to(&mut self, time_ns: i64, spool: &mut SampleSpool) -> io::Result<bool> {
        if self.start_ns.is_none() {
            self.start_ns = Some(time_ns);
            self.end_ns = time_ns;
        }
        if let Some((node, from_ns)) = self.open.take() {
            let lasts_ns = u64::try_from(time_ns.saturating_sub(from_ns)).unwrap_or(0);
            self.push(node, lasts_ns, spool)?;
        }
        let ahead_ns = u64::try_from(time_ns.saturating_sub(self.end_ns)).unwrap_or(0);
        if !goes_on(self.latest_ns.saturating_add(ahead_ns), self.latest_ns) {
            let latest_ns = self.latest_ns;
            self.push(IDLE_NODE, ahead_ns, spool)?;
            self.latest_ns = latest_ns;
        }
        Ok(self.end_ns == time_ns)
    }

    /// Ends the lane.
    fn close(&mut self, spool: &mut SampleSpool) -> io::Result<()> {
        match self.open.take() {
            // Nothing says how long the last one lasts, but it has to be visible.
            Some((node, _)) => self.push(node, self.latest_ns.max(1000), spool),
            None => Ok(()),
        }
    }
}

impl<W: Write> Exporter<W> {
    /// Creates an exporter of the value type `asked` for, or else of the default of the first profile.
    pub fn new(output: W, asked: Option<&str>, make_spool: MakeSpool) -> Self {
        Self {
            output: JsonStream::new(output),
            weigher: Weigher::new(asked, Sampled::Time),
            spool: SampleSpool::new(make_spool),
            lanes: Numbered::default(),
            tracks: Vec::new(),
            hits: Vec::new(),
            root_hits: 0,
            losses: SampleLosses::default(),
            lost: LostParts::default(),
        }
    }

    fn take(&mut self, at: Context<'_>, sample: &Sample<'_>, weight: i64) -> io::Result<()> {
        let measure = self.weigher.measure().unwrap_or(Measure::Count);
        let (lasts_ns, times) = duration(at.segment, measure, sample, weight);
        runs::check(times, NAME)?;
        let lane = self.lanes.number(at.lane(sample));
        if lane == self.tracks.len() {
            self.tracks.push(LaneTrack::default());
        }
        let (track, spool) = (&mut self.tracks[lane], &mut self.spool);
        let is_there = match sample.time_ns {
            Some(time_ns) => track.go_to(time_ns, spool)? && lane == 0,
            None => true,
        };
        self.lost.moved = self.lost.moved.saturating_add(u64::from(!is_there));
        let node = node_of(sample.stack);
        match (lasts_ns, sample.time_ns) {
            (None, Some(time_ns)) => {
                // The last one of a run lasts until the next sample.
                for _ in 1..times {
                    track.push(node, 0, spool)?;
                }
                track.open = Some((node, time_ns));
            }
            _ => {
                for _ in 0..times {
                    track.push(node, lasts_ns.unwrap_or(1000), spool)?;
                }
            }
        }
        let hits = match sample.stack {
            None => &mut self.root_hits,
            Some(stack) => {
                self.hits.resize(self.hits.len().max(stack.index() + 1), 0);
                &mut self.hits[stack.index()]
            }
        };
        *hits = hits.saturating_add(times);
        Ok(())
    }

    /// Writes the node of each stack that was sampled, and of those that called it.
    fn write_nodes(&mut self, tables: &Tables) -> io::Result<()> {
        let callees = Callees::of(tables, &self.hits);
        let Self { output, hits, root_hits, lost, .. } = self;
        output.raw("{\"nodes\":[");
        put_node(output, ROOT_NODE, *root_hits, |output| put_name(output, ROOT));
        output.raw(",\"children\":[").number(IDLE_NODE);
        callees.put(output, None)?;
        output.raw("]},");
        put_node(output, IDLE_NODE, 0, |output| put_name(output, "(idle)"));
        output.raw(",\"children\":[]}");
        for stack in tables.stack_ids().filter(|stack| callees.is_used[stack.index()]) {
            let frame = tables.frame(tables.leaf(stack));
            let hit = hits.get(stack.index()).copied().unwrap_or(0);
            output.raw(",");
            put_node(output, node_of(Some(stack)), hit, |output| put_frame(output, tables, &frame, lost));
            output.raw(",\"children\":[");
            callees.put(output, Some(stack))?;
            output.raw("]}");
            output.spill()?;
        }
        Ok(())
    }

    fn write_samples(&mut self) -> io::Result<()> {
        let Self { output, spool, tracks, .. } = self;
        let start_ns = tracks.first().and_then(|track| track.start_ns).unwrap_or(0);
        let length = |track: &LaneTrack| i128::from(track.end_ns) - i128::from(track.start_ns.unwrap_or(0));
        let end_ns = tracks.iter().map(length).fold(i128::from(start_ns), |end, length| end + length);
        output.raw("],\"startTime\":");
        put_microseconds(output, start_ns.into());
        output.raw(",\"endTime\":");
        put_microseconds(output, end_ns);
        output.raw(",\"samples\":[");
        let mut separator = "";
        for track in tracks.iter() {
            let mut pull = Pull::of(&track.chain);
            while let Some([node, ..]) = spool.pull(&mut pull)? {
                output.raw(std::mem::replace(&mut separator, ",")).number(node).spill()?;
            }
        }
        output.raw("],\"timeDeltas\":[");
        let (mut separator, mut before_ns) = ("", 0);
        for track in tracks.iter() {
            let mut pull = Pull::of(&track.chain);
            while let Some([_, lasts_ns, _]) = spool.pull(&mut pull)? {
                output.raw(std::mem::replace(&mut separator, ","));
                put_microseconds(output, std::mem::replace(&mut before_ns, lasts_ns.into()));
                output.spill()?;
            }
        }
        output.raw("]}\n");
        Ok(())
    }
}

/// How long an entry of a sample lasts, `None` for until the next one, and how many entries it is.
fn duration(segment: &Segment, measure: Measure, sample: &Sample<'_>, weight: i64) -> (Option<u64>, u64) {
    let weight = u64::try_from(weight).unwrap_or(0);
    match measure {
        Measure::Time => (segment.period_ns, sample.count),
        Measure::Count if segment.period_ns.is_none() && sample.time_ns.is_none() => {
            (Some(1000), sample.count)
        }
        Measure::Count => (segment.period_ns, sample.count),
        Measure::Value(_) if segment.value_type(measure).nanoseconds_per_unit().is_some() => {
            (Some(weight), 1)
        }
        Measure::Value(_) => (Some(weight.saturating_mul(1000)), 1),
    }
}

/// The id of a stack's node.
fn node_of(stack: Option<StackId>) -> u64 {
    stack.map_or(ROOT_NODE, |stack| FIRST_NODE + stack.index() as u64)
}

/// The sampled stacks and their callers as a tree.
struct Callees {
    is_used: Vec<bool>,
    /// By stack: the next one with the same caller.
    siblings: Vec<Option<StackId>>,
    first: Vec<Option<StackId>>,
    first_root: Option<StackId>,
}

impl Callees {
    fn of(tables: &Tables, hits: &[u64]) -> Self {
        let count = tables.stack_count();
        let mut is_used: Vec<_> = hits.iter().map(|&hits| hits > 0).collect();
        is_used.resize(count, false);
        let (mut siblings, mut first, mut first_root) = (vec![None; count], vec![None; count], None);
        for stack in tables.stack_ids().rev().filter(|stack| stack.index() < count) {
            if !is_used[stack.index()] {
                continue;
            }
            let caller = tables.parent(stack);
            let head = caller.map_or(&mut first_root, |caller| &mut first[caller.index()]);
            siblings[stack.index()] = head.replace(stack);
            if let Some(caller) = caller {
                is_used[caller.index()] = true;
            }
        }
        Self { is_used, siblings, first, first_root }
    }

    /// Puts the nodes that a stack calls; those of no caller come after another node.
    fn put<W: Write>(&self, output: &mut JsonStream<W>, caller: Option<StackId>) -> io::Result<()> {
        let mut next = caller.map_or(self.first_root, |caller| self.first[caller.index()]);
        let mut separator = if caller.is_none() { "," } else { "" };
        while let Some(stack) = next {
            output.raw(std::mem::replace(&mut separator, ",")).number(node_of(Some(stack))).spill()?;
            next = self.siblings[stack.index()];
        }
        Ok(())
    }
}

/// Puts a node without the end of its object.
fn put_node<W: Write>(
    output: &mut JsonStream<W>,
    id: u64,
    hits: u64,
    put_frame: impl FnOnce(&mut JsonStream<W>),
) {
    output.raw("{\"id\":").number(id).raw(",\"callFrame\":{\"functionName\":");
    put_frame(output);
    output.raw("},\"hitCount\":").number(hits);
}

fn put_name<W: Write>(output: &mut JsonStream<W>, name: &str) {
    output.string(name).raw(",\"scriptId\":\"0\",\"url\":\"\",\"lineNumber\":-1,\"columnNumber\":-1");
}

fn put_frame<W: Write>(output: &mut JsonStream<W>, tables: &Tables, frame: &Frame, lost: &mut LostParts) {
    let name = tables.string(frame.function);
    let name = String::from_utf8_lossy(if name == ANONYMOUS { b"" } else { name });
    let file = frame.file.or(frame.native.map(|native| native.module));
    let url = String::from_utf8_lossy(file.map_or(b"", |file| tables.string(file)));
    let is_exact = |text: &std::borrow::Cow<'_, str>| matches!(text, std::borrow::Cow::Borrowed(_));
    lost.names += u64::from(!(is_exact(&name) && is_exact(&url)));
    lost.modules += u64::from(frame.native.is_some() && frame.file.is_some());
    lost.opcodes += u64::from(frame.opcode.is_some());
    output.string(&name).raw(",\"scriptId\":\"0\",\"url\":").string(&url);
    output.raw(",\"lineNumber\":").signed(frame.line.map_or(-1, |line| i128::from(line) - 1));
    output.raw(",\"columnNumber\":").signed(frame.column.map_or(-1, i128::from));
}

/// Puts nanoseconds as microseconds, with a fraction where there is one.
fn put_microseconds<W: Write>(output: &mut JsonStream<W>, time_ns: i128) {
    let (whole, rest) = (time_ns.div_euclid(1000), time_ns.rem_euclid(1000));
    output.signed(whole);
    if rest != 0 {
        output.raw(format!(".{rest:03}").trim_end_matches('0'));
    }
}

impl<W: Write> ProfileSink for Exporter<W> {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        let Some(weight) = self.weigher.weigh(at, sample) else { return Ok(ControlFlow::Continue(())) };
        let delta_us = sample.delta_us.filter(|_| sample.time_ns.is_none());
        self.losses.all_but_stack(at, &Sample { time_ns: None, delta_us, values: &[], ..*sample });
        let used = usize::from(matches!(self.weigher.measure(), Some(Measure::Value(_))));
        self.lost.other_values = self.lost.other_values.saturating_add(u64::from(sample.values.len() > used));
        self.lost.negative = self.lost.negative.saturating_add(u64::from(weight < 0));
        self.take(at, sample, weight)?;
        Ok(ControlFlow::Continue(()))
    }

    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        self.weigher.segment(at.segment);
        self.losses.add_metadata(at.segment.metadata.len());
        Ok(())
    }

    fn next(&mut self) -> Option<&mut dyn ProfileSink> {
        Some(&mut self.losses)
    }

    fn finish(&mut self, tables: &Tables) -> io::Result<()> {
        self.weigher.check()?;
        let Self { tracks, spool, .. } = self;
        tracks.iter_mut().try_for_each(|track| track.close(spool))?;
        self.write_nodes(tables)?;
        self.write_samples()?;
        self.output.finish()
    }
}

impl<W: Write> Export for Exporter<W> {
    fn losses(&self) -> Losses {
        let mut losses = self.losses.report();
        let LostParts { moved, negative, other_values, names, modules, opcodes } = self.lost;
        losses.add("exact times of samples", moved);
        losses.add("samples of other value types", self.weigher.hidden_samples());
        losses.add("other values of samples", other_values);
        losses.add("negative values", negative);
        losses.add("bytes outside UTF-8 (in names)", names);
        losses.add("modules", modules);
        losses.add("opcodes", opcodes);
        losses
    }
}
