//! The options that choose samples and events of the inputs.

mod events;
mod shape;
mod sink;
mod value;

use std::convert::Infallible;
use std::str::FromStr;
use std::time::Duration;

use anyhow::Context as _;
use borehole::ProfileSink;
use borehole::model::{
    Column, Context, Frame, LabelValue, LaneId, Sample, Segment, StackColumn, StackId, Status, Tables,
    ThreadNames, dial9,
};
use borehole_analysis::Pattern;
use borehole_text::counted;
use clap::Args;

pub(crate) use self::shape::{ShapeArgs, StackShapeArgs, libraries, pattern, say_if_all_left_out};
pub(crate) use self::value::{ValueArgs, check_value, other_value_types};

use self::events::EventChoice;
use self::sink::{ChoosingSink, FirstTimes};
use crate::messages::say;
use crate::values::pair;

/// Options that choose samples by anything but their stacks. A sample must meet all of them.
#[derive(Args, Clone, Debug, Default, PartialEq)]
#[command(next_help_heading = "Choosing samples")]
pub(crate) struct SampleArgs {
    /// Only samples and events from this many seconds after the start of the profile (or the first event) on
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) after: Option<i64>,

    /// Only samples and events before this many seconds after the start of the profile (or the first event)
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) before: Option<i64>,

    /// Only samples and events of these threads, given by number (100 or 100.1) or name
    #[arg(long, value_name = "THREAD", value_delimiter = ',')]
    pub(crate) thread: Vec<ThreadChoice>,

    /// Only samples of these interpreters
    #[arg(long, value_name = "NUMBER", value_delimiter = ',')]
    pub(crate) interpreter: Vec<u64>,

    /// Only samples whose thread was in all of these states
    #[arg(long, value_name = "STATE", value_delimiter = ',', value_parser = Status::NAMES)]
    pub(crate) status: Vec<String>,

    /// Only samples of these processes
    #[arg(long, value_name = "PID", value_delimiter = ',', value_parser = process)]
    pub(crate) process: Vec<i64>,

    /// Only samples with this label; repeatable, samples must have all
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    pub(crate) label: Vec<(String, String)>,
}

/// Options that choose samples and events, which must meet all of them.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub(crate) struct FilterArgs {
    #[command(flatten)]
    pub(crate) samples: SampleArgs,

    /// Only samples with a frame (function, file and line) that matches, and events whose name or text matches
    #[arg(long = "match", value_name = "PATTERN")]
    pub(crate) matching: Option<String>,

    /// Only events of this name (with wildcards * and ?); repeatable. Symbols, metadata and clocks of a trace are always kept
    #[arg(long, value_name = "NAME")]
    pub(crate) event: Vec<String>,

    /// Only samples and events of these tasks
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub(crate) task: Vec<u64>,

    /// Only samples and events of these workers
    #[arg(long, value_name = "NUMBER", value_delimiter = ',')]
    pub(crate) worker: Vec<u64>,
}

/// A thread to choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ThreadChoice {
    /// By its number.
    Number(u64),
    /// By its name.
    Name(String),
}

impl FromStr for ThreadChoice {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match LaneId::parse(text) {
            Some(id) => Self::Number(id.to_u64()),
            None => Self::Name(text.to_owned()),
        })
    }
}

/// The number of a process, such as 100 or 100.1.
fn process(text: &str) -> Result<i64, String> {
    let id = LaneId::parse(text).ok_or_else(|| format!("expected a process number, found {text}"))?;
    Ok(id.to_process())
}

/// Seconds as nanoseconds.
fn seconds(text: &str) -> Result<i64, String> {
    let wrong = || format!("expected a number of seconds from 0, found {text}");
    let number: f64 = text.parse().map_err(|_| wrong())?;
    let time = Duration::try_from_secs_f64(number).map_err(|_| wrong())?;
    i64::try_from(time.as_nanos()).map_err(|_| wrong())
}

impl FilterArgs {
    /// Puts the choice in front of `sink`.
    pub(crate) fn in_front_of<'s>(&self, sink: &'s mut dyn ProfileSink) -> anyhow::Result<Filtered<'s>> {
        if *self == Self::default() {
            return Ok(Filtered::All(sink));
        }
        let (samples, events) = (SampleFilter::new(self)?, EventChoice::new(self)?);
        Ok(Filtered::Chosen(Box::new(ChoosingSink::new(sink, samples, events))))
    }
}

/// A sink, behind a choice if there is one.
pub(crate) enum Filtered<'s> {
    All(&'s mut dyn ProfileSink),
    Chosen(Box<ChoosingSink<'s>>),
}

impl Filtered<'_> {
    pub(crate) fn sink(&mut self) -> &mut dyn ProfileSink {
        match self {
            Self::All(sink) => *sink,
            Self::Chosen(chosen) => &mut **chosen,
        }
    }

    /// Prints how many samples of the input called `name` have no timestamps, if samples are chosen by time.
    ///
    /// # Errors
    /// If no sample has a timestamp, because an empty result would be misleading.
    pub(crate) fn end_input(&mut self, name: &str) -> anyhow::Result<()> {
        match self {
            Self::All(_) => Ok(()),
            Self::Chosen(chosen) => chosen.end_input(name),
        }
    }

    /// Prints a note if nothing was chosen from any input.
    pub(crate) fn end(&self) {
        if let Self::Chosen(chosen) = self {
            chosen.end();
        }
    }
}

impl SampleArgs {
    /// A filter with only these options.
    pub(crate) fn alone(&self) -> FilterArgs {
        FilterArgs { samples: self.clone(), ..FilterArgs::default() }
    }

    /// The option that chooses by time, if one is given.
    fn of_time(&self) -> Option<&'static str> {
        let after = self.after.map(|_| "--after");
        after.or_else(|| self.before.map(|_| "--before"))
    }

    /// Whether a time since the start is chosen. The end of a range is exclusive, so that adjacent ranges do not overlap.
    fn is_in_time(&self, since_ns: i64) -> bool {
        self.after.is_none_or(|after| since_ns >= after) && self.before.is_none_or(|before| since_ns < before)
    }
}

/// Prints that none of the samples, or events, match the filters, because an empty result may come from a typo.
pub(crate) fn say_none_chosen(read: &[(u64, &str)]) {
    let names: Vec<_> = read.iter().map(|(_, name)| format!("{name}s")).collect();
    let counts: Vec<_> = read.iter().map(|&(count, name)| counted(count, name)).collect();
    say(&format!("note: no {} match the filters ({} read)", names.join(" or "), counts.join(", ")));
}

/// Whether `found` is one of the values asked for; an empty list asks for all.
fn among<T: PartialEq>(asked: &[T], found: Option<T>) -> bool {
    asked.is_empty() || found.is_some_and(|found| asked.contains(&found))
}

/// Whether a sample has a label. Numbers are compared by their digits.
fn has_label(tables: &Tables, sample: &Sample<'_>, (key, value): &(String, String)) -> bool {
    let labels = sample.labels.map(|labels| tables.labels(labels)).unwrap_or_default();
    labels.iter().filter(|label| tables.string(label.key) == key.as_bytes()).any(|label| match label.value {
        LabelValue::Text(text) => tables.string(text) == value.as_bytes(),
        LabelValue::Number { value: number, .. } => number.to_string() == *value,
    })
}

/// The numeric value of a sample's label with this key.
fn number_label(tables: &Tables, sample: &Sample<'_>, key: &str) -> Option<u64> {
    let labels = tables.labels(sample.labels?);
    let found = labels.iter().find(|label| tables.string(label.key) == key.as_bytes())?;
    match found.value {
        LabelValue::Number { value, .. } => u64::try_from(value).ok(),
        LabelValue::Text(_) => None,
    }
}

/// Decides which samples are chosen.
struct SampleFilter {
    args: FilterArgs,
    states: u8,
    matching: Option<Matching>,
    thread_names: ThreadNames,
}

impl SampleFilter {
    fn new(args: &FilterArgs) -> anyhow::Result<Self> {
        let matching = args.matching.as_deref().map(Matching::new).transpose().context("--match")?;
        let bits = (0..)
            .zip(Status::NAMES)
            .filter(|(_, name)| args.samples.status.iter().any(|asked| asked == name));
        Ok(Self {
            args: args.clone(),
            states: bits.fold(0, |states, (bit, _)| states | 1_u8 << bit),
            matching,
            thread_names: ThreadNames::default(),
        })
    }

    /// Whether a sample meets all options except those of time. A sample without an attribute does not meet options about it.
    fn takes(&mut self, at: Context<'_>, sample: &Sample<'_>) -> bool {
        self.is_of_thread(at, sample)
            && among(&self.args.samples.interpreter, sample.interpreter)
            && (self.states == 0
                || sample.status.is_some_and(|Status(bits)| bits & self.states == self.states))
            && among(&self.args.task, number_label(at.tables, sample, dial9::label::TASK))
            && among(&self.args.worker, number_label(at.tables, sample, dial9::label::WORKER))
            && among(&self.args.samples.process, at.process(sample))
            && self.args.samples.label.iter().all(|label| has_label(at.tables, sample, label))
            && self.matching.as_mut().is_none_or(|matching| matching.has(sample.stack, at.tables))
    }

    /// Whether a sample is of a chosen thread. Thread names are known from their first mention in the input on.
    fn is_of_thread(&self, at: Context<'_>, sample: &Sample<'_>) -> bool {
        let asked = &self.args.samples.thread;
        if asked.is_empty() {
            return true;
        }
        let Some(thread) = at.lane(sample).thread() else { return false };
        let name = || self.thread_names.of(thread).map(|&name| at.tables.string(name));
        asked.iter().any(|asked| match asked {
            ThreadChoice::Number(number) => *number == thread.number,
            ThreadChoice::Name(asked) => name() == Some(asked.as_bytes()),
        })
    }

    fn is_in_time(&self, at: Context<'_>, sample: &Sample<'_>, first: FirstTimes) -> bool {
        let SampleArgs { after, before, .. } = self.args.samples;
        if after.is_none() && before.is_none() {
            return true;
        }
        let start = first.event_ns.or(start_ns(at.segment)).or(first.sample_ns).unwrap_or(0);
        sample.time_ns.is_some_and(|time| self.args.samples.is_in_time(time.saturating_sub(start)))
    }
}

/// Finds the stacks with a frame that matches a pattern.
struct Matching {
    pattern: Pattern,
    frames: Column<bool>,
    stacks: StackColumn<bool>,
    text: Vec<u8>,
}

impl Matching {
    fn new(pattern: &str) -> anyhow::Result<Self> {
        Ok(Self {
            pattern: Pattern::new(pattern)?,
            frames: Column::default(),
            stacks: StackColumn::default(),
            text: Vec::new(),
        })
    }

    fn has(&mut self, stack: Option<StackId>, tables: &Tables) -> bool {
        let Some(stack) = stack else { return false };
        let Self { pattern, frames, stacks, text } = self;
        let Ok(found) = stacks.derive(stack, tables, |caller, stack| {
            let frame = tables.leaf(stack);
            let mut matches = || {
                write_frame(&tables.frame(frame), tables, text);
                pattern.is_match(text)
            };
            let found = caller == Some(true)
                || frames.get(frame.index()).unwrap_or_else(|| frames.set(frame.index(), matches()));
            Ok::<_, Infallible>(found)
        });
        found
    }
}

/// Writes a frame as patterns see it: function, file and line.
fn write_frame(frame: &Frame, tables: &Tables, text: &mut Vec<u8>) {
    text.clear();
    text.extend_from_slice(tables.string(frame.function));
    if let Some(file) = frame.file.or(frame.native.map(|native| native.module)) {
        text.push(b' ');
        text.extend_from_slice(tables.string(file));
    }
    if let Some(line) = frame.line {
        text.extend_from_slice(format!(":{line}").as_bytes());
    }
}

/// When profiling began on the clock of the samples; `None` if the source does not say.
fn start_ns(segment: &Segment) -> Option<i64> {
    segment.start_unix_ns.map(|_| 0).or(segment.began_ns)
}
