//! Which samples of the inputs to take.

use std::time::Duration;

use anyhow::Context as _;
use borehole::ProfileSink;
use borehole::model::{Context, Filter, FrameId, Sample, Segment, StackId, Status, Tables};
use borehole_analysis::Pattern;
use clap::Args;

/// Samples have to meet all that is asked.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Choosing samples")]
pub(crate) struct FilterArgs {
    /// Only samples from this many seconds after the profile's start
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) after: Option<i64>,

    /// Only samples until this many seconds after the profile's start
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) before: Option<i64>,

    /// Only samples of this thread, or of these
    #[arg(long, value_name = "TID", value_delimiter = ',')]
    pub(crate) thread: Vec<u64>,

    /// Only samples of this interpreter, or of these
    #[arg(long, value_name = "NUMBER", value_delimiter = ',')]
    pub(crate) interpreter: Vec<u64>,

    /// Only samples whose thread was in all of these states
    #[arg(long, value_name = "STATE", value_delimiter = ',', value_parser = Status::NAMES)]
    pub(crate) status: Vec<String>,

    /// Only samples with a frame that matches, as function, file and line
    #[arg(long = "match", value_name = "PATTERN")]
    pub(crate) matching: Option<String>,
}

/// Seconds as nanoseconds.
fn seconds(text: &str) -> Result<i64, String> {
    let wrong = || format!("expected seconds from 0, found {text}");
    let number: f64 = text.parse().map_err(|_| wrong())?;
    let time = Duration::try_from_secs_f64(number).map_err(|_| wrong())?;
    i64::try_from(time.as_nanos()).map_err(|_| wrong())
}

impl FilterArgs {
    /// `sink` behind what is asked for.
    pub(crate) fn in_front_of<'s>(
        &self,
        sink: &'s mut dyn ProfileSink,
    ) -> anyhow::Result<impl ProfileSink + use<'s>> {
        let mut choice = Choice::new(self)?;
        Ok(Filter::new(sink, move |at: Context<'_>, sample: &Sample<'_>| choice.takes(at, sample)))
    }
}

/// What is asked for, and what is known of stacks already.
struct Choice {
    args: FilterArgs,
    states: u8,
    pattern: Option<Pattern>,
    frames: Vec<Option<bool>>,
    stacks: Vec<Option<bool>>,
    pending: Vec<StackId>,
    text: Vec<u8>,
}

impl Choice {
    fn new(args: &FilterArgs) -> anyhow::Result<Self> {
        let pattern = args.matching.as_deref().map(Pattern::new).transpose().context("--match")?;
        let bits = (0..).zip(Status::NAMES).filter(|(_, name)| args.status.iter().any(|asked| asked == name));
        Ok(Self {
            args: args.clone(),
            states: bits.fold(0, |states, (bit, _)| states | 1_u8 << bit),
            pattern,
            frames: Vec::new(),
            stacks: Vec::new(),
            pending: Vec::new(),
            text: Vec::new(),
        })
    }

    /// What a sample does not know it does not meet.
    fn takes(&mut self, at: Context<'_>, sample: &Sample<'_>) -> bool {
        let among = |asked: &[u64], found: Option<u64>| {
            asked.is_empty() || found.is_some_and(|found| asked.contains(&found))
        };
        among(&self.args.thread, sample.thread)
            && among(&self.args.interpreter, sample.interpreter)
            && (self.states == 0
                || sample.status.is_some_and(|Status(bits)| bits & self.states == self.states))
            && self.is_in_time(at, sample)
            && self.matches(sample.stack, at.tables)
    }

    fn is_in_time(&self, at: Context<'_>, sample: &Sample<'_>) -> bool {
        let FilterArgs { after, before, .. } = self.args;
        if after.is_none() && before.is_none() {
            return true;
        }
        let start = start_ns(at.segment, at.tables);
        let since = sample.time_ns.map(|time| time.saturating_sub(start));
        since.is_some_and(|since| {
            after.is_none_or(|after| since >= after) && before.is_none_or(|before| since <= before)
        })
    }

    fn matches(&mut self, stack: Option<StackId>, tables: &Tables) -> bool {
        if self.pattern.is_none() {
            return true;
        }
        self.stacks.resize(self.stacks.len().max(tables.stack_count()), None);
        let (mut found, mut next) = (false, stack);
        while let Some(id) = next {
            if let Some(known) = self.stacks[id.index()] {
                found = known;
                break;
            }
            self.pending.push(id);
            next = tables.parent(id);
        }
        while let Some(id) = self.pending.pop() {
            found = found || self.frame_matches(tables.leaf(id), tables);
            self.stacks[id.index()] = Some(found);
        }
        found
    }

    fn frame_matches(&mut self, id: FrameId, tables: &Tables) -> bool {
        self.frames.resize(self.frames.len().max(tables.frame_count()), None);
        if let Some(known) = self.frames[id.index()] {
            return known;
        }
        let frame = tables.frame(id);
        self.text.clear();
        self.text.extend_from_slice(tables.string(frame.function));
        if let Some(file) = frame.file.or(frame.native.map(|native| native.module)) {
            self.text.push(b' ');
            self.text.extend_from_slice(tables.string(file));
        }
        if let Some(line) = frame.line {
            self.text.extend_from_slice(format!(":{line}").as_bytes());
        }
        let found = self.pattern.as_ref().is_some_and(|pattern| pattern.is_match(&self.text));
        self.frames[id.index()] = Some(found);
        found
    }
}

/// When profiling began on the clock of the samples: where a source says so, or else at its origin.
fn start_ns(segment: &Segment, tables: &Tables) -> i64 {
    let said = segment.metadata.iter().find(|(key, _)| tables.string(*key) == b"start_time_us");
    let text = said.and_then(|&(_, value)| std::str::from_utf8(tables.string(value)).ok());
    text.and_then(|text| text.parse::<i64>().ok()).map_or(0, |us| us.saturating_mul(1000))
}
