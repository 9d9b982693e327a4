//! Samples out of events: what a trace tells of stacks, as a profile.
//!
//! Sources: dial9 0.5.7 and 0.3.2, whose events these are, and its analysis, which finds a sample's worker by the
//! time that the worker spent on the thread.

mod held;
mod plan;
mod spans;
mod stacks;
mod symbols;

use std::ops::ControlFlow;

use borehole_model::{
    Context, Label, LabelValue, LabelsId, ProfileSink, Recovery, Sample, Segment, StackId, StringId,
    TableFull, Tables, ValueType, Warning,
};
use hashbrown::HashMap;

use self::held::{Held, HeldSamples};
use self::plan::{Plan, Sort};
use self::spans::Spans;
use self::stacks::AddressStacks;
use self::symbols::{Symbol, Symbols};
use super::event::Event;
use super::value::Value;
use super::{NAME, keys};
use crate::{ReadError, SampleKind};

/// Workers from here on are none: the blocking pool, or one that is not known.
const NO_WORKER: u64 = 254;

/// Holds samples until the end of the trace, where their symbols are.
///
/// Memory: distinct stacks and symbols, and 24 bytes for each poll and each stretch of a worker's activity. The
/// samples themselves wait on disk when there are many.
#[derive(Debug)]
pub(super) struct Sampler {
    wanted: SampleKind,
    plans: Vec<Option<(u64, Plan)>>,
    symbols: Symbols,
    stacks: AddressStacks,
    held: HeldSamples,
    /// The worker, by thread.
    workers: Spans,
    /// The task, by worker.
    polls: Spans,
    origins: Vec<Origin>,
    start_unix_ns: Option<i64>,
    thread_names: HashMap<u64, StringId>,
    left_out: HashMap<SampleKind, u64>,
}

/// What a stretch of samples has in common.
#[derive(Clone, Debug, Default, PartialEq)]
struct Origin {
    period_ns: Option<u64>,
    process: Option<i64>,
    metadata: Vec<(StringId, StringId)>,
}

impl Sampler {
    pub(super) fn new(wanted: SampleKind) -> Self {
        Self {
            wanted,
            plans: Vec::new(),
            symbols: Symbols::default(),
            stacks: AddressStacks::default(),
            held: HeldSamples::default(),
            workers: Spans::default(),
            polls: Spans::default(),
            origins: vec![Origin::default()],
            start_unix_ns: None,
            thread_names: HashMap::new(),
            left_out: HashMap::new(),
        }
    }

    /// A batch begins: types have other numbers.
    pub(super) fn begin_batch(&mut self) {
        self.plans.clear();
    }

    /// Takes in what an event says. Answers whether that is all that there is to it.
    pub(super) fn take(&mut self, event: &Event<'_>, tables: &mut Tables) -> Result<bool, ReadError> {
        let plan = self.plan(event);
        match plan.sort {
            Sort::Other => return Ok(false),
            Sort::Poll => {
                if let (Some(time_ns), Some(worker)) = (event.timestamp_ns(), plan.number(event, 0)) {
                    self.polls.begin(worker, time_ns, plan.number(event, 1).unwrap_or_default());
                }
                return Ok(false);
            }
            Sort::PollEnd => {
                if let (Some(time_ns), Some(worker)) = (event.timestamp_ns(), plan.number(event, 0)) {
                    self.polls.end(worker, time_ns);
                }
                return Ok(false);
            }
            Sort::Unpark | Sort::Park => {
                self.worker_moves(plan, event);
                return Ok(false);
            }
            Sort::Symbol => self.symbol(plan, event, tables)?,
            Sort::Metadata => self.metadata(plan, event, tables)?,
            Sort::Clock => self.clock(plan, event),
            Sort::Cpu => self.cpu(plan, event, tables)?,
            Sort::Allocation => {
                let size = plan.number(event, 2).unwrap_or_default();
                let held = Held { thread: plan.number(event, 1), bytes: size, ..Held::default() };
                self.hold(SampleKind::Allocation, plan, event, held, tables)?;
            }
            Sort::TaskDump => {
                let held = Held { task: plan.number(event, 1), ..Held::default() };
                self.hold(SampleKind::TaskDump, plan, event, held, tables)?;
            }
        }
        Ok(true)
    }

    #[inline]
    fn plan(&mut self, event: &Event<'_>) -> Plan {
        let row = event.row_index as usize;
        match self.plans.get(row) {
            Some(&Some((handle, plan))) if handle == event.schema().handle() => plan,
            _ => self.new_plan(row, event),
        }
    }

    #[cold]
    fn new_plan(&mut self, row: usize, event: &Event<'_>) -> Plan {
        let plan = Plan::new(event.schema());
        if self.plans.len() <= row {
            self.plans.resize(row + 1, None);
        }
        self.plans[row] = Some((event.schema().handle(), plan));
        plan
    }

    fn worker_moves(&mut self, plan: Plan, event: &Event<'_>) {
        let (Some(time_ns), Some(thread)) = (event.timestamp_ns(), plan.number(event, 1)) else { return };
        match (plan.sort, plan.number(event, 0)) {
            (Sort::Unpark, Some(worker)) => self.workers.begin(thread, time_ns, worker),
            _ => self.workers.end(thread, time_ns),
        }
    }

    fn symbol(&mut self, plan: Plan, event: &Event<'_>, tables: &mut Tables) -> Result<(), ReadError> {
        let text = |field| plan.value(event, field).and_then(Value::as_str);
        let (Some(address), Some(name)) = (plan.number(event, 0), text(1)) else { return Ok(()) };
        let symbol = Symbol {
            name: tables.intern_string(name.as_bytes())?,
            inline_depth: plan.number(event, 2).unwrap_or_default(),
            file: text(3)
                .filter(|file| !file.is_empty())
                .map(|file| tables.intern_string(file.as_bytes()))
                .transpose()?,
            line: plan.number(event, 4).filter(|&line| line > 0).and_then(|line| i64::try_from(line).ok()),
        };
        self.symbols.add(address, symbol);
        Ok(())
    }

    /// What is said of the samples that follow, and when it is said for the first time, of those before.
    fn metadata(&mut self, plan: Plan, event: &Event<'_>, tables: &mut Tables) -> Result<(), ReadError> {
        let Some(Value::TextMap(entries)) = plan.value(event, 0) else { return Ok(()) };
        let mut said = Origin::default();
        for (key, value) in entries {
            let number = std::str::from_utf8(value).ok().and_then(|text| text.parse::<i64>().ok());
            match (key, number) {
                (keys::PERIOD_NS, Some(period)) => said.period_ns = u64::try_from(period).ok(),
                (keys::PROCESS, Some(process)) => said.process = Some(process),
                (keys::FREQUENCY_HZ, Some(1..)) if self.wanted == SampleKind::Cpu => {
                    said.period_ns = number.and_then(|hertz| u64::try_from(1_000_000_000 / hertz).ok());
                    said.metadata.push((tables.intern_string(key)?, tables.intern_string(value)?));
                }
                _ => said.metadata.push((tables.intern_string(key)?, tables.intern_string(value)?)),
            }
        }
        match self.origins.last_mut() {
            Some(last) if *last == Origin::default() || last.is_same_source(&said) => *last = said,
            _ => self.origins.push(said),
        }
        Ok(())
    }

    fn clock(&mut self, plan: Plan, event: &Event<'_>) {
        let (Some(time_ns), Some(unix_ns)) = (event.timestamp_ns(), plan.number(event, 0)) else { return };
        let start = i128::from(unix_ns) - i128::from(time_ns);
        self.start_unix_ns = self.start_unix_ns.or_else(|| i64::try_from(start).ok());
    }

    fn cpu(&mut self, plan: Plan, event: &Event<'_>, tables: &mut Tables) -> Result<(), ReadError> {
        let kind = match plan.number(event, 3) {
            Some(1) => SampleKind::OffCpu,
            _ => SampleKind::Cpu,
        };
        // Our exporter has no other number for a thread that is not known.
        let thread = plan.number(event, 1).filter(|&thread| thread > 0 || !plan.is_ours());
        if let (Some(thread), Some(name)) = (thread, plan.value(event, 4).and_then(Value::as_str)) {
            self.thread_names.insert(thread, tables.intern_string(name.as_bytes())?);
        }
        let process = plan.value(event, 7).and_then(|value| match value {
            Value::Signed(process) => Some(process),
            _ => None,
        });
        let worker = plan.number(event, 2).filter(|&worker| worker < NO_WORKER);
        self.hold(kind, plan, event, Held { thread, process, worker, ..Held::default() }, tables)
    }

    /// Keeps a sample whose own facts are in `held`, if its kind is wanted.
    fn hold(
        &mut self,
        kind: SampleKind,
        plan: Plan,
        event: &Event<'_>,
        held: Held,
        tables: &mut Tables,
    ) -> Result<(), ReadError> {
        let is_ours = plan.is_ours();
        let count = if is_ours { plan.number(event, 6).unwrap_or(1) } else { 1 };
        if !self.wanted.includes(kind) {
            *self.left_out.entry(kind).or_default() += count;
            return Ok(());
        }
        let stack = match plan.value(event, 0) {
            Some(Value::Stack(stack) | Value::PooledStack { stack: Some(stack), .. }) => {
                Some(self.stacks.intern(stack.as_bytes())?)
            }
            _ => None,
        };
        let labels = if is_ours { own_labels(plan, event, tables)? } else { Some(source(kind, tables)?) };
        let held = Held {
            time_ns: event.timestamp_ns(),
            count,
            stack,
            labels: labels.map(|labels| self.held.label_row(labels)),
            segment: u32::try_from(self.origins.len() - 1).unwrap_or(u32::MAX),
            is_derived: !is_ours,
            ..held
        };
        Ok(self.held.push(&held)?)
    }

    /// Gives out all samples, and adds to `recovery` what became of them.
    pub(super) fn deliver(
        mut self,
        tables: &mut Tables,
        sink: &mut dyn ProfileSink,
        recovery: &mut Recovery,
    ) -> Result<ControlFlow<()>, ReadError> {
        self.workers.complete();
        self.polls.complete();
        for (kind, count) in sorted(std::mem::take(&mut self.left_out)) {
            let (kind, wanted) = (kind.name(), self.wanted.name());
            let message =
                format!("left out {count} samples of the kind {kind}: the kind asked for is {wanted}");
            recovery.note(Warning { offset: None, message, lost_bytes: 0, saved_samples: None });
        }
        let stacks = self.stacks.resolve(&self.symbols, tables)?;
        let base_labels = self.held.take_labels();
        let held = std::mem::take(&mut self.held).into_samples()?;
        let mut delivery =
            Delivery { sampler: &self, tables, sink, stacks, base_labels, labels: HashMap::new() };
        let mut segment = delivery.begin(0)?;
        let mut current = 0;
        for held in held {
            let held = held?;
            if held.segment != current {
                current = held.segment;
                segment = delivery.begin(current as usize)?;
            }
            recovery.samples = recovery.samples.saturating_add(held.count);
            if delivery.sample(&segment, &held)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

impl Origin {
    /// Whether other metadata only says more of the same samples.
    fn is_same_source(&self, other: &Self) -> bool {
        (self.period_ns, self.process) == (other.period_ns, other.process)
    }
}

/// The samples on their way out.
struct Delivery<'a> {
    sampler: &'a Sampler,
    tables: &'a mut Tables,
    sink: &'a mut dyn ProfileSink,
    stacks: Vec<Option<StackId>>,
    base_labels: Vec<LabelsId>,
    labels: HashMap<(Option<LabelsId>, Option<u64>, Option<u64>), Option<LabelsId>>,
}

impl Delivery<'_> {
    fn begin(&mut self, index: usize) -> Result<Segment, ReadError> {
        let origin = self.sampler.origins.get(index).cloned().unwrap_or_default();
        let segment = Segment {
            format: NAME,
            index: index as u64,
            period_ns: origin.period_ns,
            has_times: true,
            start_unix_ns: self.sampler.start_unix_ns,
            process: origin.process,
            metadata: origin.metadata,
            value_types: value_types(self.sampler.wanted),
            ..Segment::default()
        };
        let at = Context { tables: self.tables, segment: &segment };
        self.sink.segment(at)?;
        if index == 0 {
            for (thread, name) in sorted(self.sampler.thread_names.clone()) {
                self.sink.thread(at, thread, name)?;
            }
        }
        Ok(segment)
    }

    fn sample(&mut self, segment: &Segment, held: &Held) -> Result<ControlFlow<()>, ReadError> {
        let (worker, task) = if held.is_derived { self.place(held) } else { (None, None) };
        let base = held.labels.and_then(|row| self.base_labels.get(row as usize).copied());
        let values = [held.count.cast_signed(), held.bytes.cast_signed()];
        let sample = Sample {
            stack: held.stack.and_then(|row| self.stacks.get(row as usize).copied().flatten()),
            count: held.count,
            time_ns: held.time_ns.and_then(|time_ns| i64::try_from(time_ns).ok()),
            process: held.process,
            thread: held.thread,
            labels: self.labels(base, worker, task)?,
            values: if segment.value_types.is_empty() { &[] } else { &values },
            ..Sample::default()
        };
        Ok(self.sink.sample(Context { tables: self.tables, segment }, &sample)?)
    }

    /// The worker and the task that a sample is of.
    fn place(&self, held: &Held) -> (Option<u64>, Option<u64>) {
        let Sampler { workers, polls, .. } = self.sampler;
        let during = |spans: &Spans, lane: Option<u64>| spans.at(lane?, held.time_ns?);
        let worker = held.worker.or_else(|| during(workers, held.thread));
        (worker, held.task.or_else(|| during(polls, worker)))
    }

    fn labels(
        &mut self,
        base: Option<LabelsId>,
        worker: Option<u64>,
        task: Option<u64>,
    ) -> Result<Option<LabelsId>, TableFull> {
        if let Some(&labels) = self.labels.get(&(base, worker, task)) {
            return Ok(labels);
        }
        let mut set = base.map(|base| self.tables.labels(base).to_vec()).unwrap_or_default();
        for (key, number) in [(&b"worker"[..], worker), (b"task", task)] {
            if let Some(value) = number.and_then(|number| i64::try_from(number).ok()) {
                let key = self.tables.intern_string(key)?;
                set.push(Label { key, value: LabelValue::Number { value, unit: None } });
            }
        }
        let labels =
            if set.is_empty() && base.is_none() { None } else { Some(self.tables.intern_labels(&set)?) };
        self.labels.insert((base, worker, task), labels);
        Ok(labels)
    }
}

fn value_types(wanted: SampleKind) -> Vec<ValueType> {
    let value_type = |kind: &str, unit: &str| ValueType { kind: kind.to_owned(), unit: unit.to_owned() };
    match wanted {
        SampleKind::Allocation => {
            vec![value_type("alloc_objects", "count"), value_type("alloc_space", "bytes")]
        }
        _ => Vec::new(),
    }
}

fn source(kind: SampleKind, tables: &mut Tables) -> Result<LabelsId, TableFull> {
    let key = tables.intern_string(b"source")?;
    let value = LabelValue::Text(tables.intern_string(kind.name().as_bytes())?);
    tables.intern_labels(&[Label { key, value }])
}

/// The labels that an event of our own exporter carries.
fn own_labels(plan: Plan, event: &Event<'_>, tables: &mut Tables) -> Result<Option<LabelsId>, TableFull> {
    let Some(Value::TextMap(pairs)) = plan.value(event, 8) else { return Ok(None) };
    let mut labels = Vec::new();
    for (key, value) in pairs {
        let (key, value) = (tables.intern_string(key)?, tables.intern_string(value)?);
        labels.push(Label { key, value: LabelValue::Text(value) });
    }
    tables.intern_labels(&labels).map(Some)
}

/// In an order that is the same each time.
fn sorted<K: Ord, V>(map: HashMap<K, V>) -> Vec<(K, V)> {
    let mut entries: Vec<_> = map.into_iter().collect();
    entries.sort_by(|(one, _), (other, _)| one.cmp(other));
    entries
}
