//! Checks for problems in a trace.
//!
//! Source of the checks and their thresholds: the scan for red flags of dial9 0.5.7. Checks that differ from it, because it
//! is misled, say how.

use borehole_text::duration;

use super::handoffs::WaitChain;
use super::tasks::{AllWaiting, BusyTasks, WaitingTasks};
use super::view::{LimitRow, PollCoverage, Seal, Severity, SpanRow, TokioFinding, TokioView};
use super::workers::{CRITICAL_POLL_NS, Contention, EXAMPLES, Poll, SpannedPoll, StuckPoll, Waits};
use super::worst::Tier;

/// The scheduling delay above which a delay is critical.
const CRITICAL_DELAY_NS: u64 = 50_000_000;
/// The number of samples up to which a blocking stack may be chance.
const CHANCE: u64 = 5;
/// The length above which a global queue is critical.
const CRITICAL_QUEUE: u64 = 1000;
/// The ratio of polls between workers up to which they are balanced.
const IMBALANCE: u64 = 3;
/// The number of active periods, or of task counts, up to which they say nothing.
const FEW: u64 = 10;
/// The time in place above which a blocking call is long.
const BLOCKED_NS: u64 = 1_000_000_000;
/// The kernel wait above which there is a warning.
const WARNING_WAIT_NS: u64 = 10_000_000;

/// The inputs of the checks other than the view.
#[derive(Debug)]
pub(super) struct Suspects {
    /// Polls over 50 ms.
    pub(super) critical: Tier<Poll>,
    /// Other polls over 10 ms.
    pub(super) long: Tier<Poll>,
    /// Polls over 10 ms that are still running at the end.
    pub(super) stuck: Tier<StuckPoll>,
    /// Polls that block in place at the end.
    pub(super) left: Vec<Poll>,
    /// The last known length of the global queues.
    pub(super) queued: u64,
    /// Chains of tasks that waited for each other, and their first tasks.
    pub(super) chains: Vec<(WaitChain, u64)>,
    /// Tasks that wait at the end.
    pub(super) waiting: AllWaiting,
    /// Whether nothing was recorded at all.
    pub(super) is_empty: bool,
    /// Polls with more than 20 spans.
    pub(super) spanned: Tier<SpannedPoll>,
    /// The CPU contention of each worker.
    pub(super) contention: Vec<(u64, Contention)>,
    /// The kernel waits of each worker.
    pub(super) waits: Vec<(u64, Waits)>,
    /// Spans of all names.
    pub(super) spans: Vec<SpanRow>,
    /// The time of the first lost events.
    pub(super) lost_ns: Option<u64>,
}

/// The findings, the most severe first, those of each check by time.
pub(super) fn findings(
    view: &TokioView,
    suspects: &Suspects,
    place: impl Fn(u32) -> String,
) -> Vec<TokioFinding> {
    let mut found = Vec::new();
    whole_file(view, suspects, &mut found);
    lost_events(view, suspects, &mut found);
    long_polls(suspects, &place, &mut found);
    stuck_polls(suspects, &place, &mut found);
    blocking_in_place(suspects, &place, &mut found);
    busy_tasks(suspects, &place, &mut found);
    lock_chains(suspects, &place, &mut found);
    limits(view, &mut found);
    waiting_tasks(view, suspects, &place, &mut found);
    task_leak(view, &mut found);
    delays(view, &mut found);
    blocking_calls(view, &mut found);
    queue_depth(view, &mut found);
    worker_imbalance(view, &mut found);
    cpu_contention(suspects, &mut found);
    kernel_waits(suspects, &mut found);
    spans_in_polls(suspects, &mut found);
    spans(&suspects.spans, &mut found);
    found.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    found
}

fn finding(severity: Severity, check: &'static str, evidence: String) -> TokioFinding {
    TokioFinding { severity, check, evidence, time_ns: None, worker: None, task: None }
}

/// Points a finding at a poll.
fn of_poll(poll: &Poll, finding: TokioFinding) -> TokioFinding {
    let Poll { start_ns, worker, task, .. } = *poll;
    TokioFinding { time_ns: Some(start_ns), worker: Some(worker), task: Some(task), ..finding }
}

/// Checks that the trace can show anything: without polls, checks that find nothing mean nothing.
fn whole_file(view: &TokioView, suspects: &Suspects, found: &mut Vec<TokioFinding>) {
    if view.seal == Seal::Incomplete {
        let evidence = "the file was sealed before all threads delivered their events: some are missing";
        found.push(finding(Severity::Warning, "incomplete-file", evidence.to_owned()));
    }
    if suspects.is_empty {
        let evidence = "the trace has no events except its own description: nothing was recorded, or the process \
                        ended before delivering it";
        found.push(finding(Severity::Warning, "empty-trace", evidence.to_owned()));
    } else if view.polls.durations.count == 0 {
        let only = view.contents.only().map(|only| format!(", only {only}")).unwrap_or_default();
        let evidence = format!(
            "the trace has no complete poll{only}: most checks had no data, so other problems may go unnoticed"
        );
        found.push(finding(Severity::Warning, "no-polls", evidence));
    }
    if view.poll_coverage == PollCoverage::Spawned {
        let evidence =
            "only tasks spawned through the recorder are seen: the busy shares leave out all others";
        found.push(finding(Severity::Info, "poll-coverage", evidence.to_owned()));
    }
    if view.seal == Seal::Absent {
        // Source: `dial9-core` 0.5.7 calls on idle threads every 30 s; `Builder::flush_every` of `borehole-recorder`.
        let evidence = "the file was never sealed: if the process was killed, its last events are missing \
                        (dial9: up to 30 s per thread; borehole-recorder: since its last flush)";
        found.push(finding(Severity::Info, "unsealed-file", evidence.to_owned()));
    }
}

/// Checks for lost events. Not in the scan, because dial9 traces do not record losses.
fn lost_events(view: &TokioView, suspects: &Suspects, found: &mut Vec<TokioFinding>) {
    if view.lost_events > 0 {
        let count = view.lost_events;
        let evidence = format!("{count} events were lost: the ends of unfinished polls may be among them");
        let time_ns = suspects.lost_ns;
        found.push(TokioFinding { time_ns, ..finding(Severity::Warning, "events-lost", evidence) });
    }
}

fn long_polls(suspects: &Suspects, place: &impl Fn(u32) -> String, found: &mut Vec<TokioFinding>) {
    for (severity, tier, limit_ms) in
        [(Severity::Critical, &suspects.critical, 50), (Severity::Warning, &suspects.long, 10)]
    {
        for poll in tier.examples.sorted() {
            let evidence =
                format!("a poll took {}; task spawned at {}", duration(poll.duration_ns), place(poll.place));
            found.push(of_poll(&poll, finding(severity, "long-poll", evidence)));
        }
        let count = tier.count;
        if count > EXAMPLES as u64 {
            let most = if limit_ms == 50 { "" } else { " and up to 50 ms" };
            let evidence = format!("{count} polls over {limit_ms} ms{most} in total");
            found.push(finding(severity, "long-poll", evidence));
        }
    }
}

/// Checks for polls that never end. Not in the scan, which records a poll only at its end.
fn stuck_polls(suspects: &Suspects, place: &impl Fn(u32) -> String, found: &mut Vec<TokioFinding>) {
    for StuckPoll { poll, queue, is_at_least } in suspects.stuck.examples.sorted() {
        let severity =
            if poll.duration_ns > CRITICAL_POLL_NS { Severity::Critical } else { Severity::Warning };
        let evidence = format!(
            "a poll was still running at the end of the trace, after {}{}; task spawned at {}{}",
            if is_at_least { "at least " } else { "" },
            duration(poll.duration_ns),
            place(poll.place),
            behind(suspects, queue)
        );
        found.push(of_poll(&poll, finding(severity, "stuck-poll", evidence)));
    }
    let count = suspects.stuck.count;
    if count > EXAMPLES as u64 {
        let evidence = format!("{count} workers were in polls over 10 ms at the end of the trace");
        found.push(finding(Severity::Warning, "stuck-poll", evidence));
    }
}

/// The tasks that wait behind a stuck poll.
fn behind(suspects: &Suspects, queue: u64) -> String {
    let all = [
        (queue, "tasks wait in the worker's queue"),
        (suspects.queued, "tasks wait in the global queue"),
        (suspects.waiting.starved.count, "tasks were woken and wait to be polled"),
    ];
    all.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("; {count} {what}")).collect()
}

/// Checks for calls that block in place and do not return. Not in the scan.
fn blocking_in_place(suspects: &Suspects, place: &impl Fn(u32) -> String, found: &mut Vec<TokioFinding>) {
    let long = suspects.left.iter().filter(|poll| poll.duration_ns > BLOCKED_NS);
    let mut long: Vec<_> = long.collect();
    long.sort_by_key(|poll| u64::MAX - poll.duration_ns);
    for poll in long.iter().take(EXAMPLES) {
        let evidence = format!(
            "a poll has blocked in place for {}, and another thread took over its worker; task spawned at {}",
            duration(poll.duration_ns),
            place(poll.place)
        );
        found.push(of_poll(poll, finding(Severity::Warning, "blocking-in-place", evidence)));
    }
    if long.len() > EXAMPLES {
        let evidence = format!("{} polls block in place at the end of the trace", long.len());
        found.push(finding(Severity::Warning, "blocking-in-place", evidence));
    }
}

/// Checks for busy loops. Not in the scan.
fn busy_tasks(suspects: &Suspects, place: &impl Fn(u32) -> String, found: &mut Vec<TokioFinding>) {
    let BusyTasks { count, wakes, start_ns, duration_ns, task, place: row } = suspects.waiting.busy;
    if count == 0 {
        return;
    }
    let per_second = u128::from(wakes) * 1_000_000_000 / u128::from(duration_ns.max(1));
    let evidence = format!(
        "a task woke itself {per_second} times a second for {}: a busy loop; task spawned at {}{}",
        duration(duration_ns),
        place(row),
        if count > 1 { format!(" ({count} such tasks)") } else { String::new() }
    );
    let (time_ns, task) = (Some(start_ns), Some(task));
    found.push(TokioFinding { time_ns, task, ..finding(Severity::Warning, "busy-task", evidence) });
}

/// Checks for locks and permits that are held over an await. Not in the scan.
fn lock_chains(suspects: &Suspects, place: &impl Fn(u32) -> String, found: &mut Vec<TokioFinding>) {
    for &(WaitChain { tasks, start_ns, duration_ns, place: row, .. }, task) in &suspects.chains {
        let evidence = format!(
            "{tasks} tasks spawned at {} ran one after another for {}, each woken by the one before: a lock or \
             permit is held over an await, {} on average",
            place(row),
            duration(duration_ns),
            duration(duration_ns / tasks.saturating_sub(1).max(1))
        );
        let (time_ns, task) = (Some(start_ns), Some(task));
        found.push(TokioFinding { time_ns, task, ..finding(Severity::Warning, "lock-over-await", evidence) });
    }
}

/// Reports what was not followed.
fn limits(view: &TokioView, found: &mut Vec<TokioFinding>) {
    for &LimitRow { what, followed, left_out } in &view.limits {
        let evidence = format!("{what}: {followed} were followed, {left_out} more were not, to bound memory");
        found.push(finding(Severity::Info, "limits", evidence));
    }
}

/// Checks for tasks that wait at the end. Not in the scan.
fn waiting_tasks(
    view: &TokioView,
    suspects: &Suspects,
    place: &impl Fn(u32) -> String,
    found: &mut Vec<TokioFinding>,
) {
    let AllWaiting { starved, unpolled, unwoken, .. } = suspects.waiting;
    // The lost events may include the poll.
    let starves = if view.lost_events > 0 { Severity::Warning } else { Severity::Critical };
    for (severity, check, what, why, waiting) in [
        (starves, "starved-task", "were woken but not polled again", "", starved),
        (Severity::Warning, "unpolled-task", "were spawned but never polled", "", unpolled),
        (
            Severity::Warning,
            "unwoken-task",
            "were polled but never woken",
            ": their wakers were lost, or they wait for something rare, such as a signal or a long timer",
            unwoken,
        ),
    ] {
        let WaitingTasks { count, longest_ns, since_ns, task, place: row } = waiting;
        if count == 0 {
            continue;
        }
        let (longest, place) = (duration(longest_ns), place(row));
        let evidence = format!("{count} tasks {what}, the longest for {longest}, spawned at {place}{why}");
        let (time_ns, task) = (Some(since_ns), Some(task));
        found.push(TokioFinding { time_ns, task, ..finding(severity, check, evidence) });
    }
}

/// Checks for growing numbers of tasks. Unlike in the scan, ends of tasks that were never spawned do not reduce the count.
fn task_leak(view: &TokioView, found: &mut Vec<TokioFinding>) {
    let Some(counts) = view.tasks.counted.filter(|counts| counts.samples > FEW) else { return };
    if counts.last > counts.first.saturating_mul(2) && counts.last == counts.peak {
        let evidence = format!("live tasks grew from {} to {}, their peak", counts.first, counts.last);
        let time_ns = Some(view.end_ns);
        found.push(TokioFinding { time_ns, ..finding(Severity::Warning, "task-leak", evidence) });
    }
}

fn delays(view: &TokioView, found: &mut Vec<TokioFinding>) {
    let delays = &view.delays;
    let Some(worst) = delays.worst.rows.first().filter(|_| delays.high > 0) else { return };
    let severity = if worst.delay_ns > CRITICAL_DELAY_NS { Severity::Critical } else { Severity::Warning };
    let count = delays.high;
    let evidence = format!("{count} scheduling delays over 5 ms, the longest {}", duration(worst.delay_ns));
    found.push(TokioFinding {
        time_ns: Some(worst.poll_ns.saturating_sub(worst.delay_ns)),
        worker: worst.worker,
        task: Some(worst.task),
        ..finding(severity, "sched-delay", evidence)
    });
}

/// Checks for blocking calls. Counts only samples during polls, because otherwise a worker leaves its CPU when it is idle.
/// The scan counts those too, and names the call in which an idle worker waits.
fn blocking_calls(view: &TokioView, found: &mut Vec<TokioFinding>) {
    let blocking = &view.blocking;
    let Some(top) = blocking.stacks.rows.first().filter(|top| top.count > CHANCE) else { return };
    let within = if top.call == top.leaf { String::new() } else { format!(" (in {})", top.leaf) };
    let (in_polls, samples) = (blocking.in_polls, blocking.samples);
    let evidence = format!(
        "{in_polls} of {samples} off-CPU samples were taken during polls, {} of them in {}{within}",
        top.count, top.call
    );
    let time_ns = Some(top.first_ns);
    found.push(TokioFinding { time_ns, ..finding(Severity::Warning, "blocking-calls", evidence) });
}

fn queue_depth(view: &TokioView, found: &mut Vec<TokioFinding>) {
    let Some(queue) = view.queue.filter(|queue| queue.high > 0) else { return };
    let severity = if queue.max > CRITICAL_QUEUE { Severity::Critical } else { Severity::Warning };
    let evidence = format!(
        "the global queue reached {} tasks, and was over 100 in {} of {} samples",
        queue.max, queue.high, queue.samples
    );
    let time_ns = Some(queue.max_ns);
    found.push(TokioFinding { time_ns, ..finding(severity, "queue-depth", evidence) });
}

fn worker_imbalance(view: &TokioView, found: &mut Vec<TokioFinding>) {
    let polls = view.workers.iter().map(|row| (row.polls, row.worker));
    let (Some(least), Some(most)) = (polls.clone().min(), polls.max()) else { return };
    if least.0 > 0 && most.0 > least.0.saturating_mul(IMBALANCE) {
        let evidence = format!("worker {} had {} polls, worker {} had {}", most.1, most.0, least.1, least.0);
        let worker = Some(most.1);
        found.push(TokioFinding { worker, ..finding(Severity::Info, "worker-imbalance", evidence) });
    }
}

/// Compares CPU time on one thread only; the scan subtracts times of two threads if a worker changes threads.
fn cpu_contention(suspects: &Suspects, found: &mut Vec<TokioFinding>) {
    for &(worker, Contention { stretches, low, mean_ratio, longest_ns, longest_start_ns }) in
        &suspects.contention
    {
        if stretches <= FEW || low.saturating_mul(10) <= stretches {
            continue;
        }
        let evidence = format!(
            "{low} of {stretches} active periods lasted over 1 ms with less than half a CPU (mean \
             {mean_ratio:.2}, the longest {})",
            duration(longest_ns)
        );
        found.push(TokioFinding {
            time_ns: Some(longest_start_ns),
            worker: Some(worker),
            ..finding(Severity::Warning, "cpu-contention", evidence)
        });
    }
}

fn kernel_waits(suspects: &Suspects, found: &mut Vec<TokioFinding>) {
    for &(worker, Waits { count, longest_ns, at_ns }) in &suspects.waits {
        if count == 0 {
            continue;
        }
        let severity = if longest_ns > WARNING_WAIT_NS { Severity::Warning } else { Severity::Info };
        let evidence =
            format!("{count} unparks waited over 1 ms for a CPU, the longest {}", duration(longest_ns));
        found.push(TokioFinding {
            time_ns: Some(at_ns),
            worker: Some(worker),
            ..finding(severity, "kernel-sched-wait", evidence)
        });
    }
}

fn spans_in_polls(suspects: &Suspects, found: &mut Vec<TokioFinding>) {
    for SpannedPoll { spans, poll } in suspects.spanned.examples.sorted() {
        let evidence = format!("{spans} spans in one poll of {}", duration(poll.duration_ns));
        found.push(of_poll(&poll, finding(Severity::Warning, "many-spans-per-poll", evidence)));
    }
    let count = suspects.spanned.count;
    if count > EXAMPLES as u64 {
        let evidence = format!("{count} polls with more than 20 spans in total");
        found.push(finding(Severity::Warning, "many-spans-per-poll", evidence));
    }
}

fn spans(spans: &[SpanRow], found: &mut Vec<TokioFinding>) {
    for span in spans.iter().filter(|span| span.outliers > 0) {
        let evidence = format!(
            "{}: {} of {} spans took over 10 times the median of {}, the longest {}",
            span.name,
            span.outliers,
            span.durations.count,
            duration(span.durations.p50_ns),
            duration(span.durations.max_ns)
        );
        let time_ns = Some(span.longest_start_ns);
        found.push(TokioFinding { time_ns, ..finding(Severity::Info, "span-duration-outlier", evidence) });
    }
    let unmatched: Vec<_> = spans.iter().filter(|span| span.unmatched > 0).collect();
    if !unmatched.is_empty() {
        let count: u64 = unmatched.iter().map(|span| span.unmatched).sum();
        let names = unmatched.iter().take(EXAMPLES).map(|span| format!("{} ({})", span.name, span.unmatched));
        let names = names.collect::<Vec<_>>().join(", ");
        let more = if unmatched.len() > EXAMPLES { ", ..." } else { "" };
        let evidence = format!("{count} spans were entered but never exited: {names}{more}");
        found.push(finding(Severity::Info, "unmatched-spans", evidence));
    }
}
