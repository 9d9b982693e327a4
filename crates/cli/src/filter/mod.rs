//! Which samples and events of the inputs to take.

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
    ThreadNames,
};
use borehole_analysis::Pattern;
use clap::Args;

pub(crate) use self::shape::{ShapeArgs, StackShapeArgs, libraries, pattern, say_if_all_left_out};
pub(crate) use self::value::{ValueArgs, check_value};

use self::events::EventChoice;
use self::sink::{Chosen, First};
use crate::messages::say;
use crate::values::pair;

/// Samples have to meet all that is asked, beside their stacks.
#[derive(Args, Clone, Debug, Default, PartialEq)]
#[command(next_help_heading = "Choosing samples")]
pub(crate) struct SampleArgs {
    /// Only samples and events from this many seconds after the start of the profile, or the first event
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) after: Option<i64>,

    /// Only samples and events before this many seconds after the start of the profile, or the first event
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) before: Option<i64>,

    /// Only samples of this thread, or of these, and events that name it: a number such as 100 or 100.1, or the name of the thread
    #[arg(long, value_name = "THREAD", value_delimiter = ',')]
    pub(crate) thread: Vec<ThreadChoice>,

    /// Only samples of this interpreter, or of these
    #[arg(long, value_name = "NUMBER", value_delimiter = ',')]
    pub(crate) interpreter: Vec<u64>,

    /// Only samples whose thread was in all of these states
    #[arg(long, value_name = "STATE", value_delimiter = ',', value_parser = Status::NAMES)]
    pub(crate) status: Vec<String>,

    /// Only samples of this process, or of these
    #[arg(long, value_name = "PID", value_delimiter = ',', value_parser = process)]
    pub(crate) process: Vec<i64>,

    /// Only samples with this label; with all of them, if several
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    pub(crate) label: Vec<(String, String)>,
}

/// Samples and events have to meet all that is asked.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub(crate) struct FilterArgs {
    #[command(flatten)]
    pub(crate) samples: SampleArgs,

    /// Only samples with a frame that matches, as function, file and line, and events with a name or text that does
    #[arg(long = "match", value_name = "PATTERN")]
    pub(crate) matching: Option<String>,

    /// Only events of this name, in which * stands for any text and ? for any character; repeatable. Symbols, metadata and
    /// clocks of a trace always stay
    #[arg(long, value_name = "NAME")]
    pub(crate) event: Vec<String>,

    /// Only samples and events of this task, or of these
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub(crate) task: Vec<u64>,

    /// Only samples and events of this worker, or of these
    #[arg(long, value_name = "NUMBER", value_delimiter = ',')]
    pub(crate) worker: Vec<u64>,
}

/// A thread that is asked for.
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
    let id = LaneId::parse(text).ok_or_else(|| format!("expected the number of a process, found {text}"))?;
    Ok(id.to_process())
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
    pub(crate) fn in_front_of<'s>(&self, sink: &'s mut dyn ProfileSink) -> anyhow::Result<Filtered<'s>> {
        if *self == Self::default() {
            return Ok(Filtered::All(sink));
        }
        let (samples, events) = (Choice::new(self)?, EventChoice::new(self)?);
        Ok(Filtered::Chosen(Box::new(Chosen::new(sink, samples, events))))
    }
}

/// A sink, perhaps behind a choice.
pub(crate) enum Filtered<'s> {
    All(&'s mut dyn ProfileSink),
    Chosen(Box<Chosen<'s>>),
}

impl Filtered<'_> {
    pub(crate) fn sink(&mut self) -> &mut dyn ProfileSink {
        match self {
            Self::All(sink) => *sink,
            Self::Chosen(chosen) => &mut **chosen,
        }
    }

    /// Says which samples of the input called `name` could not be chosen by their time, for they have none.
    ///
    /// # Errors
    /// When that is all of them: what is asked for then has no answer, and an empty one would be taken for it.
    pub(crate) fn end_input(&mut self, name: &str) -> anyhow::Result<()> {
        match self {
            Self::All(_) => Ok(()),
            Self::Chosen(chosen) => chosen.end_input(name),
        }
    }

    /// Says when nothing of all inputs was chosen.
    pub(crate) fn end(&self) {
        if let Self::Chosen(chosen) = self {
            chosen.end();
        }
    }
}

impl SampleArgs {
    /// That and nothing else.
    pub(crate) fn alone(&self) -> FilterArgs {
        FilterArgs { samples: self.clone(), ..FilterArgs::default() }
    }

    /// An option that chooses by time, if there is one.
    fn of_time(&self) -> Option<&'static str> {
        let after = self.after.map(|_| "--after");
        after.or_else(|| self.before.map(|_| "--before"))
    }

    /// Whether a time since the start is asked for. Where one stretch ends the next begins: nothing is in both.
    fn is_in_time(&self, since_ns: i64) -> bool {
        self.after.is_none_or(|after| since_ns >= after) && self.before.is_none_or(|before| since_ns < before)
    }
}

/// Says that none of `found` was chosen: an empty answer may be one, or come of a slip.
pub(crate) fn say_none_chosen(found: &str) {
    say(&format!("note: none of {found} is what was asked for"));
}

/// Whether something is asked for; if nothing is, anything is.
fn among<T: PartialEq>(asked: &[T], found: Option<T>) -> bool {
    asked.is_empty() || found.is_some_and(|found| asked.contains(&found))
}

/// Whether a sample has a label, whose numbers are compared by their digits.
fn has_label(tables: &Tables, sample: &Sample<'_>, (key, value): &(String, String)) -> bool {
    let labels = sample.labels.map(|labels| tables.labels(labels)).unwrap_or_default();
    labels.iter().filter(|label| tables.string(label.key) == key.as_bytes()).any(|label| match label.value {
        LabelValue::Text(text) => tables.string(text) == value.as_bytes(),
        LabelValue::Number { value: number, .. } => number.to_string() == *value,
    })
}

/// The number that a sample's label of that key gives.
fn number_label(tables: &Tables, sample: &Sample<'_>, key: &[u8]) -> Option<u64> {
    let labels = tables.labels(sample.labels?);
    let found = labels.iter().find(|label| tables.string(label.key) == key)?;
    match found.value {
        LabelValue::Number { value, .. } => u64::try_from(value).ok(),
        LabelValue::Text(_) => None,
    }
}

/// What is asked for.
struct Choice {
    args: FilterArgs,
    states: u8,
    matching: Option<Matching>,
    thread_names: ThreadNames,
}

impl Choice {
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

    /// Whether a sample meets all but the time; what it does not know it does not meet.
    fn takes(&mut self, at: Context<'_>, sample: &Sample<'_>) -> bool {
        self.is_of_thread(at, sample)
            && among(&self.args.samples.interpreter, sample.interpreter)
            && (self.states == 0
                || sample.status.is_some_and(|Status(bits)| bits & self.states == self.states))
            && among(&self.args.task, number_label(at.tables, sample, b"task"))
            && among(&self.args.worker, number_label(at.tables, sample, b"worker"))
            && among(&self.args.samples.process, at.process(sample))
            && self.args.samples.label.iter().all(|label| has_label(at.tables, sample, label))
            && self.matching.as_mut().is_none_or(|matching| matching.has(sample.stack, at.tables))
    }

    /// Names of threads are known from where an input gives them on.
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

    fn is_in_time(&self, at: Context<'_>, sample: &Sample<'_>, first: First) -> bool {
        let SampleArgs { after, before, .. } = self.args.samples;
        if after.is_none() && before.is_none() {
            return true;
        }
        let start = first.event_ns.or(start_ns(at.segment)).or(first.sample_ns).unwrap_or(0);
        sample.time_ns.is_some_and(|time| self.args.samples.is_in_time(time.saturating_sub(start)))
    }
}

/// Which stacks have a frame that a pattern matches.
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

/// A frame as patterns see it: function, file and line.
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

/// When profiling began on the clock of the samples, where a source says so.
fn start_ns(segment: &Segment) -> Option<i64> {
    segment.start_unix_ns.map(|_| 0).or(segment.began_ns)
}
