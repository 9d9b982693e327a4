//! Red flags of a Tokio program, as text: the three worst in full, the others on a line each.

use borehole_analysis::tokio::{LimitRow, Seal, Severity, TokioFinding, TokioView};
use borehole_text::{duration, grouped, printable, width};

use super::render::SectionDrawing;
use super::tokio::offset;

/// The number of flags that lead the report in full.
const WORST: usize = 3;
/// Columns before the text of a flag: its number and its severity.
const INDENT: usize = 14;

/// Advice on the flags of each check.
const ADVICE: [(&str, &str); 20] = [
    ("stuck-poll", "Look for a lock between threads, a blocking call or a loop without an end in this task."),
    ("starved-task", "The worker that holds the task is busy: look for a stuck or a long poll."),
    (
        "unpolled-task",
        "All workers are busy or the runtime is shutting down: look at `--sections workers,queue`.",
    ),
    (
        "unwoken-task",
        "A future must keep the waker of its last poll, and wake it. Ignore it for tasks that wait for rare things.",
    ),
    ("busy-task", "Wait for an event (a notification, a channel, a timer) instead of yielding in a loop."),
    ("blocking-in-place", "Give the call a timeout, or move it to a thread of its own."),
    (
        "lock-over-await",
        "Release the lock before the await, or let one task own the data and send it messages.",
    ),
    (
        "long-poll",
        "Move the work to `spawn_blocking`, or yield in between: `--sections polls,blocking` show where.",
    ),
    ("sched-delay", "Tasks wait behind long polls, or for a CPU: look at `--sections delays,workers`."),
    (
        "blocking-calls",
        "Use an asynchronous call, or `spawn_blocking`: `--sections blocking` shows the stacks.",
    ),
    ("queue-depth", "Work arrives faster than it is done: limit it where it comes from."),
    ("task-leak", "Tasks are spawned and do not end: `--sections tasks` shows where."),
    ("worker-imbalance", "One worker gets most of the tasks; often it is the only one that is woken."),
    (
        "cpu-contention",
        "Other processes or a quota take the CPU: look at the load and at the limits of the cgroup.",
    ),
    (
        "kernel-sched-wait",
        "Other processes or a quota take the CPU: look at the load and at the limits of the cgroup.",
    ),
    ("many-spans-per-poll", "Work without an await between them: yield, or use fewer spans."),
    (
        "span-duration-outlier",
        "Compare the longest one with the others: `--sections spans`, or `--by FIELD`.",
    ),
    ("unmatched-spans", "The spans were open when the recording ended, or their ends were lost."),
    ("poll-coverage", "Build with `RUSTFLAGS=\"--cfg tokio_unstable\"` to record all tasks."),
    (
        "unsealed-file",
        "Stop the program with a signal that it handles, so that the recorder finishes the file.",
    ),
];

impl SectionDrawing<'_> {
    /// The flags: the worst ones first.
    pub(super) fn flags(&self, view: &TokioView) -> Vec<String> {
        let count = |wanted| view.findings.iter().filter(|finding| finding.severity == wanted).count();
        let [critical, warnings, infos] = [Severity::Critical, Severity::Warning, Severity::Info].map(count);
        let mut lines =
            vec![self.cut(&format!("# red flags: {critical} critical, {warnings} warning, {infos} info"))];
        if view.findings.is_empty() {
            let polls = grouped(view.polls.durations.count);
            lines.push(self.cut(&format!("  none in {polls} polls of {} workers", view.workers.len())));
        }
        let worst = worst(&view.findings);
        for &row in &worst {
            lines.extend(self.full_flag(view, row));
        }
        for row in (0..view.findings.len()).filter(|row| !worst.contains(row)) {
            lines.push(self.flag_line(&view.findings[row], row));
        }
        if view.findings.len() > worst.len() {
            lines.push(self.cut("  (--flag N for all about one)"));
        }
        lines.extend(about(view).into_iter().map(|line| self.cut(&line)));
        lines
    }

    /// All about the flag with this number, which is 1-based.
    pub(super) fn one_flag(&self, view: &TokioView, number: usize) -> Vec<String> {
        let Some(row) = number.checked_sub(1).filter(|&row| row < view.findings.len()) else {
            return vec![self.cut(&format!("# no flag {number}: there are {}", view.findings.len()))];
        };
        let finding = &view.findings[row];
        let mut lines = vec![format!("# flag {number} of {}: {}", view.findings.len(), finding.check)];
        lines.extend(self.full_flag(view, row));
        if let Some((_, advice)) = ADVICE.iter().find(|(check, _)| *check == finding.check) {
            lines.extend(indented(advice, self.flag_columns()));
        }
        lines
    }

    fn full_flag(&self, view: &TokioView, row: usize) -> Vec<String> {
        let finding = &view.findings[row];
        let mut lines = indented(&printable(finding.evidence.as_bytes()), self.flag_columns());
        if let Some(first) = lines.first_mut() {
            *first = format!("{}{}", head(finding, row), first.trim_start());
        }
        let mut place = finding.check.to_owned();
        if finding.time_ns.is_some() {
            place += &format!(" at {}", offset(view, finding.time_ns));
        }
        for (what, number) in [("worker", finding.worker), ("task", finding.task)] {
            place += &number.map(|number| format!(", {what} {number}")).unwrap_or_default();
        }
        lines.extend(indented(&place, self.flag_columns()));
        lines
    }

    fn flag_line(&self, finding: &TokioFinding, row: usize) -> String {
        let line = format!("{}{}", head(finding, row), printable(finding.evidence.as_bytes()));
        self.cut_at(&line, self.flag_columns())
    }
}

/// The number and the severity of a flag.
fn head(finding: &TokioFinding, row: usize) -> String {
    let (number, severity) = (row + 1, finding.severity.name());
    format!("{number:>3} {severity:<columns$}", columns = INDENT - 4)
}

/// The rows of the worst flags, each of another check.
fn worst(findings: &[TokioFinding]) -> Vec<usize> {
    let mut rows: Vec<usize> = Vec::new();
    for (row, finding) in findings.iter().enumerate() {
        let is_worth = finding.severity > Severity::Info;
        if rows.len() < WORST && is_worth && rows.iter().all(|&known| findings[known].check != finding.check)
        {
            rows.push(row);
        }
    }
    rows
}

/// A text in lines of so many columns, which begin after those of the number and the severity.
fn indented(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if width(line) + 1 + width(word) <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(format!("{}{word}", " ".repeat(INDENT))),
        }
    }
    lines
}

/// Lines about the start of the times of a report, about whether the trace is complete, and about what was not followed.
fn about(view: &TokioView) -> Vec<String> {
    let seal = match view.seal {
        Seal::Absent => ", never sealed",
        Seal::Complete => "",
        Seal::Incomplete => ", incomplete",
    };
    let span = duration(view.end_ns - view.start_ns);
    let only = view.contents.only().filter(|_| view.contents.runtime == 0);
    let only = only.map(|only| format!(", only {only}")).unwrap_or_default();
    let events = format!("  {} events{only} over {span}{seal}", grouped(view.events));
    let start = format!("  times count from the start of the trace ({} ns on its clock)", view.start_ns);
    let limits = view.limits.iter().map(|&LimitRow { what, followed, left_out }| {
        format!("  limits: {what}: {} followed, {} left out", grouped(followed), grouped(left_out))
    });
    [events, start].into_iter().chain(limits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(severity: Severity, check: &'static str) -> TokioFinding {
        TokioFinding { severity, check, evidence: String::new(), time_ns: None, worker: None, task: None }
    }

    #[test]
    fn the_worst_are_of_different_checks_and_not_mere_information() {
        let findings = [
            finding(Severity::Critical, "long-poll"),
            finding(Severity::Critical, "long-poll"),
            finding(Severity::Warning, "queue-depth"),
            finding(Severity::Info, "unsealed-file"),
        ];
        assert_eq!(worst(&findings), [0, 2]);
    }

    #[test]
    fn evidence_is_broken_into_lines_that_fit() {
        let lines = indented(&"word ".repeat(40), 80);
        assert!(lines.len() == 4 && lines.iter().all(|line| width(line) <= 80), "{lines:?}");
    }
}
