//! Which events to take.

use std::collections::HashMap;

use anyhow::Context as _;
use borehole::model::{Event, Tables, Value};
use borehole_analysis::Pattern;

use super::{FilterArgs, SampleArgs, ThreadChoice};

/// Without these nothing is known of the others: symbols, facts about the recording, clocks.
const ALWAYS: [&[u8]; 3] = [b"SymbolTableEntry", b"SegmentMetadataEvent", b"ClockSyncEvent"];

/// Fields that name a thread, a worker, a task. Source: dial9 0.5.7; a wake is its issuer's, and of both tasks.
const THREAD: [&[u8]; 2] = [b"tid", b"dial9.thread_id"];
const WORKER: [&[u8]; 2] = [b"worker_id", b"target_worker"];
const TASK: [&[u8]; 4] = [b"task_id", b"dial9.tokio.task_id", b"waker_task_id", b"woken_task_id"];

/// What is asked for, and what is known of the events' names already.
pub(super) struct EventChoice {
    args: FilterArgs,
    pattern: Option<Pattern>,
    /// By shape.
    plans: Vec<Option<Plan>>,
    /// Whether the poll that goes on was taken, by worker: its end does not say of which task it is.
    polls: HashMap<u64, bool>,
}

/// What is to be done with an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is needed to understand others.
    Needed,
    Chosen,
    LeftOut,
}

impl Verdict {
    const fn of(is_chosen: bool) -> Self {
        if is_chosen { Self::Chosen } else { Self::LeftOut }
    }
}

/// How to look at the events of a shape.
#[derive(Clone, Debug, Default)]
struct Plan {
    always: bool,
    is_named: bool,
    name_matches: bool,
    threads: Vec<usize>,
    workers: Vec<usize>,
    tasks: Vec<usize>,
    /// Whether polls begin, or end, with it.
    begins_poll: bool,
    ends_poll: bool,
}

impl EventChoice {
    pub(super) fn new(args: &FilterArgs) -> anyhow::Result<Self> {
        let pattern = args.matching.as_deref().map(Pattern::new).transpose().context("--match")?;
        Ok(Self { args: args.clone(), pattern, plans: Vec::new(), polls: HashMap::new() })
    }

    /// Whether an event is asked for that is not asked for as a sample too.
    pub(super) fn is_asked(&self) -> bool {
        let FilterArgs { event, task, worker, .. } = &self.args;
        !(event.is_empty() && task.is_empty() && worker.is_empty())
    }

    /// What an event does not know it does not meet. `since_ns` is its time since the start.
    pub(super) fn judge(&mut self, tables: &Tables, event: &Event<'_>, since_ns: Option<i64>) -> Verdict {
        let index = event.shape.index();
        if self.plans.len() <= index {
            self.plans.resize(index + 1, None);
        }
        if self.plans[index].is_none() {
            self.plans[index] = Some(self.plan(tables, event));
        }
        let Some(plan) = self.plans[index].as_ref().filter(|plan| !plan.always) else {
            return Verdict::Needed;
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
            return Verdict::of(taken && of_task);
        }
        let of_task = among(&self.args.task, event, &plan.tasks);
        if let Some(worker) = worker.filter(|_| plan.begins_poll) {
            self.polls.insert(worker, of_task);
        }
        Verdict::of(taken && of_task)
    }

    fn plan(&self, tables: &Tables, event: &Event<'_>) -> Plan {
        let shape = tables.shape(event.shape);
        let name = tables.string(shape.name);
        let fields = |names: &[&[u8]]| {
            let fields = shape.fields.iter().enumerate();
            fields
                .filter(|(_, field)| names.contains(&tables.string(field.name)))
                .map(|(index, _)| index)
                .collect()
        };
        let events = &self.args.event;
        Plan {
            always: ALWAYS.contains(&name),
            is_named: events.is_empty() || events.iter().any(|glob| glob_matches(glob.as_bytes(), name)),
            name_matches: self.pattern.as_ref().is_some_and(|pattern| pattern.is_match(name)),
            threads: fields(&THREAD),
            workers: fields(&WORKER),
            tasks: fields(&TASK),
            begins_poll: name == b"PollStartEvent",
            ends_poll: name == b"PollEndEvent",
        }
    }

    /// Events have the numbers of threads, and not their names.
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

/// Whether all of `text` is what `glob` says. Linear but for the last star, to which it goes back.
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
