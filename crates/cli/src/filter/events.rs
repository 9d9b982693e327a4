//! Choosing events.

use std::collections::HashMap;

use anyhow::Context as _;
use borehole::model::dial9::{event, field};
use borehole::model::{Event, Tables, Value};
use borehole_analysis::Pattern;

use super::{FilterArgs, SampleArgs, ThreadChoice};

/// Events that others need: symbols, metadata, clocks. They are always kept.
const ALWAYS: [&str; 3] = [event::SYMBOL, event::METADATA, event::CLOCK_SYNC];

/// Fields with the number of a thread, worker or task. A wake belongs to the worker that issued it and to both tasks.
///
/// Source: dial9 0.5.7.
const THREAD: [&str; 2] = [field::THREAD, "dial9.thread_id"];
const WORKER: [&str; 2] = [field::WORKER, field::TARGET_WORKER];
const TASK: [&str; 4] = [field::TASK, field::SPAN_TASK, field::WAKER_TASK, field::WOKEN_TASK];

/// Decides which events are chosen, with a plan per shape of event.
pub(super) struct EventChoice {
    args: FilterArgs,
    pattern: Option<Pattern>,
    /// Indexed by shape.
    plans: Vec<Option<FieldPlan>>,
    /// By worker, whether its current poll was chosen, because the end of a poll does not name its task.
    polls: HashMap<u64, bool>,
}

/// The decision about an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventVerdict {
    /// Always kept, because other events need it.
    Needed,
    Chosen,
    LeftOut,
}

impl EventVerdict {
    const fn of(is_chosen: bool) -> Self {
        if is_chosen { Self::Chosen } else { Self::LeftOut }
    }
}

/// Where the events of a shape have the facts that options ask for.
#[derive(Clone, Debug, Default)]
struct FieldPlan {
    always: bool,
    is_named: bool,
    name_matches: bool,
    threads: Vec<usize>,
    workers: Vec<usize>,
    tasks: Vec<usize>,
    /// Whether the event begins, or ends, a poll.
    begins_poll: bool,
    ends_poll: bool,
}

impl EventChoice {
    pub(super) fn new(args: &FilterArgs) -> anyhow::Result<Self> {
        let pattern = args.matching.as_deref().map(Pattern::new).transpose().context("--match")?;
        Ok(Self { args: args.clone(), pattern, plans: Vec::new(), polls: HashMap::new() })
    }

    /// Whether an option is given that applies mainly to events.
    pub(super) fn is_asked(&self) -> bool {
        let FilterArgs { event, task, worker, .. } = &self.args;
        !(event.is_empty() && task.is_empty() && worker.is_empty())
    }

    /// Decides about an event with the time `since_ns` since the start. An event without a fact does not meet options about it.
    pub(super) fn judge(
        &mut self,
        tables: &Tables,
        event: &Event<'_>,
        since_ns: Option<i64>,
    ) -> EventVerdict {
        let index = event.shape.index();
        if self.plans.len() <= index {
            self.plans.resize(index + 1, None);
        }
        if self.plans[index].is_none() {
            self.plans[index] = Some(self.plan(tables, event));
        }
        let Some(plan) = self.plans[index].as_ref().filter(|plan| !plan.always) else {
            return EventVerdict::Needed;
        };
        let SampleArgs { after, before, thread, interpreter, status, process, label } = &self.args.samples;
        let is_in_time = (after.is_none() && before.is_none())
            || since_ns.is_some_and(|since_ns| self.args.samples.is_in_time(since_ns));
        let taken = is_in_time
            && plan.is_named
            && interpreter.is_empty()
            && process.is_empty()
            && label.is_empty()
            && status.is_empty()
            && (thread.is_empty() || self.is_of_thread(event, &plan.threads))
            && among(&self.args.worker, event, &plan.workers)
            && (self.pattern.is_none() || plan.name_matches || self.text_matches(event));
        let worker = plan.workers.first().and_then(|&field| number(event, field));
        if plan.ends_poll && !self.args.task.is_empty() {
            let of_task = worker.and_then(|worker| self.polls.remove(&worker)).unwrap_or_default();
            return EventVerdict::of(taken && of_task);
        }
        let of_task = among(&self.args.task, event, &plan.tasks);
        if let Some(worker) = worker.filter(|_| plan.begins_poll) {
            self.polls.insert(worker, of_task);
        }
        EventVerdict::of(taken && of_task)
    }

    fn plan(&self, tables: &Tables, event: &Event<'_>) -> FieldPlan {
        let shape = tables.shape(event.shape);
        let name = tables.string(shape.name);
        let is_one_of = |text: &[u8], names: &[&str]| names.iter().any(|name| name.as_bytes() == text);
        let fields = |names: &[&str]| {
            let fields = shape.fields.iter().enumerate();
            fields
                .filter(|(_, field)| is_one_of(tables.string(field.name), names))
                .map(|(index, _)| index)
                .collect()
        };
        let events = &self.args.event;
        FieldPlan {
            always: is_one_of(name, &ALWAYS),
            is_named: events.is_empty() || events.iter().any(|glob| glob_matches(glob.as_bytes(), name)),
            name_matches: self.pattern.as_ref().is_some_and(|pattern| pattern.is_match(name)),
            threads: fields(&THREAD),
            workers: fields(&WORKER),
            tasks: fields(&TASK),
            begins_poll: name == event::POLL_START.as_bytes(),
            ends_poll: name == event::POLL_END.as_bytes(),
        }
    }

    /// Whether an event is of a chosen thread. Events have only numbers of threads, not names.
    fn is_of_thread(&self, event: &Event<'_>, fields: &[usize]) -> bool {
        let mut found = fields.iter().filter_map(|&field| number(event, field));
        found.any(|found| self.args.samples.thread.contains(&ThreadChoice::Number(found)))
    }

    fn text_matches(&self, event: &Event<'_>) -> bool {
        let Some(pattern) = &self.pattern else { return true };
        event.values.iter().any(|value| match value {
            Value::Text(text) => pattern.is_match(text.as_bytes()),
            _ => false,
        })
    }
}

fn among(asked: &[u64], event: &Event<'_>, fields: &[usize]) -> bool {
    asked.is_empty()
        || fields.iter().any(|&field| number(event, field).is_some_and(|found| asked.contains(&found)))
}

fn number(event: &Event<'_>, field: usize) -> Option<u64> {
    match event.values.get(field)? {
        Value::Unsigned(number) => Some(*number),
        Value::Signed(number) => u64::try_from(*number).ok(),
        _ => None,
    }
}

/// Whether `glob` matches all of `text`. Backtracks to the last star only.
fn glob_matches(glob: &[u8], text: &[u8]) -> bool {
    let (mut at_glob, mut at_text) = (0, 0);
    let mut star = None;
    while at_text < text.len() {
        match glob.get(at_glob) {
            Some(b'*') => {
                star = Some((at_glob, at_text));
                at_glob += 1;
            }
            Some(&wanted) if wanted == b'?' || wanted == text[at_text] => {
                at_glob += 1;
                at_text += 1;
            }
            _ => match &mut star {
                Some((after_star, from)) => {
                    *from += 1;
                    (at_glob, at_text) = (*after_star + 1, *from);
                }
                None => return false,
            },
        }
    }
    glob[at_glob..].iter().all(|&rest| rest == b'*')
}

#[cfg(test)]
mod tests {
    use super::glob_matches;

    #[test]
    fn stars_and_question_marks_stand_for_text() {
        let matches = |glob: &str, text: &str| glob_matches(glob.as_bytes(), text.as_bytes());
        for (glob, text) in
            [("Poll*", "PollStartEvent"), ("*", ""), ("*Event", "EventEvent"), ("a?c*", "abc")]
        {
            assert!(matches(glob, text), "{glob} {text}");
        }
        for (glob, text) in [("Poll", "PollStartEvent"), ("", "a"), ("*Event", "Events"), ("a?c", "ac")] {
            assert!(!matches(glob, text), "{glob} {text}");
        }
    }
}
