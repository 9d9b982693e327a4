//! Converts events to samples: the stacks of a trace, as a profile.
//!
//! Sources: dial9 0.5.7 and 0.3.2, whose events these are, and its analysis, which finds a sample's worker by the time
//! that the worker spent on the thread.

mod activities;
mod delivery;
mod export;
mod facts;
mod held;
mod plan;
mod symbols;
mod texts;

use std::io::{self, Read, Seek, Write};
use std::ops::ControlFlow;

use borehole_model::{
    Label, LabelValue, LabelsId, ProfileSink, Recovery, TableFull, Tables, Thread, Warning, dial9,
};
use borehole_text::counted;
use hashbrown::HashMap;

pub(super) use self::export::SampleEvents;

use self::delivery::SampleDelivery;
use self::facts::TraceFacts;
use self::held::{HeldSample, HeldSamples};
use self::plan::{EventTopic, SampleField, SamplePlan};
use self::symbols::AddressStacks;
use super::event::Event;
use super::per_type::PerType;
use super::pool::DefinitionNumber;
use super::value::{Stack, Value};
use crate::{Limits, ReadError, SampleKind};

/// The maximum number of definitions whose stacks are known.
const MOST_DEFINED: usize = 1 << 20;

/// Holds samples until the end of the trace, where their symbols are.
///
/// Memory: the distinct stacks and the facts about them. The samples themselves wait in the spool.
pub(super) struct Sampler<S: Write> {
    wanted: SampleKind,
    limits: Limits,
    plans: PerType<SamplePlan>,
    facts: TraceFacts,
    stacks: AddressStacks,
    /// The stacks of the batch's definitions: many samples have one stack, which may be huge.
    defined: HashMap<DefinitionNumber, u32>,
    held: HeldSamples<S>,
    left_out: HashMap<SampleKind, u64>,
    has_input: bool,
}

impl<S: Read + Write + Seek> Sampler<S> {
    /// Creates a sampler that takes samples of the kind `wanted` and holds as much as `limits` allow.
    pub(super) fn new(wanted: SampleKind, limits: Limits, spool: S) -> Self {
        Self {
            wanted,
            limits,
            plans: PerType::default(),
            facts: TraceFacts::new(wanted),
            stacks: AddressStacks::default(),
            defined: HashMap::new(),
            held: HeldSamples::new(spool),
            left_out: HashMap::new(),
            has_input: false,
        }
    }

    /// Begins a batch: types have other numbers.
    pub(super) fn begin_batch(&mut self) {
        self.plans.clear();
        self.defined.clear();
        self.facts.texts.begin_batch();
    }

    /// Fails if everything held for the samples takes more memory than allowed. For now and then: it looks at each worker.
    pub(super) fn check_memory(&self) -> io::Result<()> {
        Ok(self.limits.check(self.stacks.held_bytes().saturating_add(self.facts.held_bytes()))?)
    }

    /// Takes an event. Returns whether it is used up: sinks that keep no events need not see it.
    pub(super) fn absorb(&mut self, event: &Event<'_>, tables: &mut Tables) -> Result<bool, ReadError> {
        let plan = self.plan(event);
        match plan.topic {
            EventTopic::Cpu => self.cpu(plan, event, tables)?,
            EventTopic::Allocation => {
                let bytes = plan.number(event, SampleField::Size).unwrap_or_default();
                let held = HeldSample {
                    thread: plan.number(event, SampleField::Thread),
                    bytes,
                    ..HeldSample::default()
                };
                self.hold(SampleKind::Allocation, plan, event, held, tables)?;
            }
            EventTopic::TaskDump => {
                let held =
                    HeldSample { task: plan.number(event, SampleField::Task), ..HeldSample::default() };
                self.hold(SampleKind::TaskDump, plan, event, held, tables)?;
            }
            _ => self.facts.learn(plan, event, tables)?,
        }
        Ok(plan.topic.is_about_samples())
    }

    #[inline]
    fn plan(&mut self, event: &Event<'_>) -> SamplePlan {
        match self.plans.get(event) {
            Some(plan) => *plan,
            None => *self.plans.set(event, SamplePlan::new(event.schema())),
        }
    }

    fn cpu(&mut self, plan: SamplePlan, event: &Event<'_>, tables: &mut Tables) -> Result<(), ReadError> {
        let kind = match plan.number(event, SampleField::Source) {
            Some(dial9::OFF_CPU) => SampleKind::OffCpu,
            _ => SampleKind::Cpu,
        };
        // Borehole's exporter writes 0 for an unknown thread.
        let thread = plan.number(event, SampleField::Thread).filter(|&thread| thread > 0 || !plan.is_ours());
        let process = plan.value(event, SampleField::Process).and_then(|value| match value {
            Value::Signed(process) => Some(process),
            _ => None,
        });
        if let (Some(number), Some(name)) = (thread, plan.value(event, SampleField::ThreadName))
            && let Some(name) = self.facts.texts.intern(event, name, tables)?
        {
            self.facts.thread_names.insert((self.facts.origin(), Thread { process, number }), name);
        }
        let worker = plan.number(event, SampleField::Worker).filter(|&worker| dial9::is_worker(worker));
        self.hold(kind, plan, event, HeldSample { thread, process, worker, ..HeldSample::default() }, tables)
    }

    /// Keeps a sample with its own facts in `held`, if its kind is wanted.
    fn hold(
        &mut self,
        kind: SampleKind,
        plan: SamplePlan,
        event: &Event<'_>,
        held: HeldSample,
        tables: &mut Tables,
    ) -> Result<(), ReadError> {
        let is_ours = plan.is_ours();
        let count = if is_ours { plan.number(event, SampleField::Count).unwrap_or(1) } else { 1 };
        if !self.wanted.includes(kind) {
            let left_out = self.left_out.entry(kind).or_default();
            *left_out = left_out.saturating_add(count);
            return Ok(());
        }
        let stack = match plan.value(event, SampleField::Stack) {
            Some(Value::Stack(stack)) => Some(self.stacks.intern(stack.as_bytes(), &self.limits)?),
            Some(Value::PooledStack { id, stack: Some(stack) }) => Some(self.pooled_stack(id, stack, event)?),
            _ => None,
        };
        let labels = if is_ours { own_labels(plan, event, tables)? } else { Some(source(kind, tables)?) };
        let held = HeldSample {
            time_ns: event.timestamp_ns(),
            count,
            stack,
            labels: labels.map(|labels| self.held.label_row(labels)),
            segment: self.facts.origin(),
            is_derived: !is_ours,
            ..held
        };
        Ok(self.held.push(&held)?)
    }

    /// The number of a stack that the batch defines.
    fn pooled_stack(&mut self, id: u32, stack: Stack<'_>, event: &Event<'_>) -> io::Result<u32> {
        let number = event.batch.stacks.number(id);
        if let Some(&known) = number.and_then(|number| self.defined.get(&number)) {
            return Ok(known);
        }
        let row = self.stacks.intern(stack.as_bytes(), &self.limits)?;
        if self.defined.len() >= MOST_DEFINED {
            self.defined.clear();
        }
        self.defined.extend(number.map(|number| (number, row)));
        Ok(row)
    }

    /// Delivers all samples so far, if there are any, and begins another input, whose addresses, threads and tasks have
    /// other meanings. Without a name, the input is unknown.
    pub(super) fn begin_input(
        &mut self,
        name: &str,
        tables: &mut Tables,
        sink: &mut dyn ProfileSink,
        recovery: &mut Recovery,
    ) -> Result<ControlFlow<()>, ReadError> {
        if !self.held.is_empty() && self.deliver(tables, sink, recovery)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        self.held.clear()?;
        self.facts = TraceFacts::new(self.wanted);
        self.stacks = AddressStacks::default();
        self.defined.clear();
        self.has_input = !name.is_empty();
        Ok(ControlFlow::Continue(()))
    }

    /// Delivers all samples, and adds their number to `recovery`.
    pub(super) fn deliver(
        &mut self,
        tables: &mut Tables,
        sink: &mut dyn ProfileSink,
        recovery: &mut Recovery,
    ) -> Result<ControlFlow<()>, ReadError> {
        self.facts.complete();
        if self.facts.symbols.left_out > 0 {
            let warning = self.facts.symbols.warning();
            sink.warning(&warning)?;
            recovery.warn(warning);
        }
        let mut delivery = SampleDelivery {
            wanted: self.wanted,
            has_input: self.has_input,
            facts: &self.facts,
            stacks: self.stacks.resolve(&self.facts.symbols, tables, &self.limits)?,
            tables,
            sink,
            base_labels: self.held.take_labels(),
            labels: HashMap::new(),
        };
        let (mut current, mut segment) = (0, delivery.begin(0)?);
        for held in self.held.samples()? {
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

    /// Notes in `recovery` the samples omitted from all inputs.
    pub(super) fn note_left_out(&mut self, sink: &mut dyn ProfileSink, recovery: &mut Recovery) {
        if sink.watches_events() {
            // The sink has handled the events themselves; task dumps are useful only as samples.
            self.left_out.retain(|kind, _| *kind == SampleKind::TaskDump);
        }
        for (kind, count) in sorted(std::mem::take(&mut self.left_out)) {
            let samples = counted(count, &format!("{} sample", kind.name()));
            let wanted = self.wanted.name();
            recovery.note(Warning::new(format!("{samples} left out: the selected kind is {wanted}")));
        }
    }
}

fn source(kind: SampleKind, tables: &mut Tables) -> Result<LabelsId, TableFull> {
    let key = tables.intern_string(dial9::label::SOURCE.as_bytes())?;
    let value = LabelValue::Text(tables.intern_string(kind.name().as_bytes())?);
    tables.intern_labels(&[Label { key, value }])
}

/// The labels in an event of Borehole's own exporter.
fn own_labels(
    plan: SamplePlan,
    event: &Event<'_>,
    tables: &mut Tables,
) -> Result<Option<LabelsId>, TableFull> {
    let Some(Value::TextMap(pairs)) = plan.value(event, SampleField::Labels) else { return Ok(None) };
    let mut labels = Vec::new();
    for (key, value) in pairs {
        let (key, value) = (tables.intern_string(key)?, tables.intern_string(value)?);
        labels.push(Label { key, value: LabelValue::Text(value) });
    }
    tables.intern_labels(&labels).map(Some)
}

/// The pairs in a deterministic order.
fn sorted<K: Ord, V>(map: HashMap<K, V>) -> Vec<(K, V)> {
    let mut entries: Vec<_> = map.into_iter().collect();
    entries.sort_by(|(one, _), (other, _)| one.cmp(other));
    entries
}
