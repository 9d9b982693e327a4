//! The facts about a trace's samples outside of them.

use borehole_memory::HeldBytes as _;
use borehole_model::{StringId, Tables, Thread};
use hashbrown::HashMap;

use super::activities::Activities;
use super::plan::{EventTopic, SampleField, SamplePlan};
use super::symbols::{AddressSymbols, Symbol};
use super::texts::PooledTexts;
use crate::event::Event;
use crate::keys;
use crate::value::Value;
use crate::{ReadError, SampleKind};

/// The facts that hold for the samples of a trace, wherever it states them.
///
/// Memory: the symbols, and 24 bytes for each poll and each interval of a worker's activity.
#[derive(Debug)]
pub(super) struct TraceFacts {
    wanted: SampleKind,
    pub(super) symbols: AddressSymbols,
    /// The worker, by thread.
    pub(super) workers: Activities,
    /// The task, by worker.
    pub(super) polls: Activities,
    pub(super) origins: Vec<SampleOrigin>,
    /// Whether the first of them was stated.
    has_origin: bool,
    pub(super) start_unix_ns: Option<i64>,
    /// The names of the threads in samples, each with its range of samples: its process may be stated later.
    pub(super) thread_names: HashMap<(u32, Thread), StringId>,
    pub(super) texts: PooledTexts,
}

/// The common facts of a range of samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct SampleOrigin {
    pub(super) period_ns: Option<u64>,
    pub(super) process: Option<i64>,
    pub(super) metadata: Vec<(StringId, StringId)>,
}

impl TraceFacts {
    pub(super) fn new(wanted: SampleKind) -> Self {
        Self {
            wanted,
            symbols: AddressSymbols::default(),
            workers: Activities::default(),
            polls: Activities::default(),
            origins: vec![SampleOrigin::default()],
            has_origin: false,
            start_unix_ns: None,
            thread_names: HashMap::new(),
            texts: PooledTexts::default(),
        }
    }

    /// Takes an event that is not itself a sample.
    pub(super) fn learn(
        &mut self,
        plan: SamplePlan,
        event: &Event<'_>,
        tables: &mut Tables,
    ) -> Result<(), ReadError> {
        match plan.topic {
            EventTopic::Poll | EventTopic::PollEnd => self.poll(plan, event),
            EventTopic::Unpark | EventTopic::Park => self.worker_moves(plan, event),
            EventTopic::Symbol => self.symbol(plan, event, tables)?,
            EventTopic::Metadata => self.metadata(plan, event, tables)?,
            EventTopic::Clock => self.clock(plan, event),
            _ => {}
        }
        Ok(())
    }

    /// The names of threads, in a deterministic order.
    pub(super) fn named_threads(&self) -> Vec<(Thread, StringId)> {
        let mut named: Vec<_> = self.thread_names.iter().map(|(&key, &name)| (key, name)).collect();
        named.sort_unstable_by_key(|&(key, _)| key);
        let with_process = |((origin, thread), name): ((u32, Thread), StringId)| {
            let origin = self.origins.get(origin as usize);
            let process = thread.process.or(origin.and_then(|origin| origin.process));
            (Thread { process, ..thread }, name)
        };
        named.into_iter().map(with_process).collect()
    }

    /// The range of the current samples.
    pub(super) fn origin(&self) -> u32 {
        u32::try_from(self.origins.len() - 1).unwrap_or(u32::MAX)
    }

    pub(super) fn held_bytes(&self) -> usize {
        let names = self.thread_names.allocation_size() + self.origins.held_bytes();
        self.symbols.held_bytes() + self.workers.held_bytes() + self.polls.held_bytes() + names
    }

    /// Sorts everything, after the last event.
    pub(super) fn complete(&mut self) {
        self.workers.complete();
        self.polls.complete();
    }

    fn poll(&mut self, plan: SamplePlan, event: &Event<'_>) {
        let (Some(time_ns), Some(worker)) = (event.timestamp_ns(), plan.number(event, SampleField::Worker))
        else {
            return;
        };
        match plan.topic {
            EventTopic::Poll => {
                self.polls.begin(worker, time_ns, plan.number(event, SampleField::Task).unwrap_or_default());
            }
            _ => self.polls.end(worker, time_ns),
        }
    }

    fn worker_moves(&mut self, plan: SamplePlan, event: &Event<'_>) {
        let (Some(time_ns), Some(thread)) = (event.timestamp_ns(), plan.number(event, SampleField::Thread))
        else {
            return;
        };
        match (plan.topic, plan.number(event, SampleField::Worker)) {
            (EventTopic::Unpark, Some(worker)) => self.workers.begin(thread, time_ns, worker),
            _ => self.workers.end(thread, time_ns),
        }
    }

    fn symbol(&mut self, plan: SamplePlan, event: &Event<'_>, tables: &mut Tables) -> Result<(), ReadError> {
        let (Some(address), Some(name)) =
            (plan.number(event, SampleField::Address), plan.value(event, SampleField::Symbol))
        else {
            return Ok(());
        };
        let Some(name) = self.texts.intern(event, name, tables)? else { return Ok(()) };
        let file = plan.value(event, SampleField::File).filter(|file| file.as_str() != Some(""));
        let symbol = Symbol {
            name,
            inline_depth: plan.number(event, SampleField::InlineDepth).unwrap_or_default(),
            file: file.map_or(Ok(None), |file| self.texts.intern(event, file, tables))?,
            line: plan
                .number(event, SampleField::Line)
                .filter(|&line| line > 0)
                .and_then(|line| i64::try_from(line).ok()),
        };
        self.symbols.add(address, symbol);
        Ok(())
    }

    /// Takes facts about the following samples; the first ones hold for earlier samples too.
    fn metadata(
        &mut self,
        plan: SamplePlan,
        event: &Event<'_>,
        tables: &mut Tables,
    ) -> Result<(), ReadError> {
        let Some(Value::TextMap(entries)) = plan.value(event, SampleField::Entries) else { return Ok(()) };
        let mut said = SampleOrigin::default();
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
        let is_first = !std::mem::replace(&mut self.has_origin, true);
        // Recorders repeat and extend the facts when they seal a file. The exporter's facts, without a time, end the
        // earlier ones.
        let is_again = |last: &SampleOrigin| event.timestamp_ns().is_some() && last.is_same_source(&said);
        match self.origins.last_mut() {
            Some(last) if is_first || is_again(last) => *last = said,
            _ => self.origins.push(said),
        }
        Ok(())
    }

    fn clock(&mut self, plan: SamplePlan, event: &Event<'_>) {
        let (Some(time_ns), Some(unix_ns)) =
            (event.timestamp_ns(), plan.number(event, SampleField::UnixTime))
        else {
            return;
        };
        let start = i128::from(unix_ns) - i128::from(time_ns);
        self.start_unix_ns = self.start_unix_ns.or_else(|| i64::try_from(start).ok());
    }
}

impl SampleOrigin {
    /// Whether other metadata only adds facts about the same samples.
    fn is_same_source(&self, other: &Self) -> bool {
        (self.period_ns, self.process) == (other.period_ns, other.process)
    }
}
