//! Progress and summary of a recording.

use std::io;
use std::time::Duration;

use borehole::capture::{MeasuredTruth, NativeCounts, News, SampleStatistics, SessionProgress};
use borehole_php::PhpRelease;
use borehole_text::{counted, grouped};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::cell::is_drawn_over;
use crate::messages::say;
use crate::refusal;

/// Shows the events and the progress of a recording.
pub(crate) struct Watcher {
    period: Option<Duration>,
    /// The release given with `--php-version`.
    release: Option<PhpRelease>,
    /// The progress line; `None` without a terminal.
    line: Option<ProgressBar>,
    /// The last process that was not sampled, preferably one with PHP.
    last_refusal: Option<String>,
}

impl Watcher {
    pub(crate) fn new(period: Option<Duration>, release: Option<PhpRelease>) -> Self {
        let line = is_drawn_over(&io::stderr()).then(|| {
            let style = ProgressStyle::with_template("{spinner} {msg}");
            let line = ProgressBar::no_length()
                .with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
            line.set_draw_target(ProgressDrawTarget::stderr_with_hz(5));
            line.set_message("looking for processes that run PHP or Python");
            line
        });
        Self { period, release, line, last_refusal: None }
    }

    pub(crate) fn period(&self) -> Option<Duration> {
        self.period
    }

    /// Why nothing was recorded, and what to try next.
    pub(crate) fn why_nothing(&self, statistics: &SampleStatistics) -> String {
        match (statistics.attached, &self.last_refusal, self.release) {
            (0, Some(refusal), _) => refusal.clone(),
            (0, None, _) => "expected a process that runs PHP or Python (with --native, any program), found none".to_owned(),
            _ if statistics.unstopped > 0 => {
                "its threads could not be stopped; `borehole doctor -p PID` says why".to_owned()
            }
            (.., Some(release)) => {
                format!("no valid stack of PHP {release} found; try another --php-version")
            }
            (.., None) => {
                "every stack changed while it was read; use --stop-process to stop the process for each sample"
                    .to_owned()
            }
        }
    }

    pub(crate) fn hear(&mut self, news: News) {
        match news {
            News::Progress(progress) => {
                if let Some(line) = &self.line {
                    line.set_message(progress_text(&progress));
                    line.tick();
                }
            }
            News::Refused(process, error) => {
                let text = refusal::text(process, &error);
                // A pattern also matches other programs with the text in their command line, such as shells and editors.
                if !error.is_other_program() {
                    self.say(&format!("warning: not sampled: {text}"));
                    self.last_refusal = Some(text);
                } else if self.last_refusal.is_none() {
                    self.last_refusal = Some(text);
                }
            }
            News::Attached { process, facts } if self.line.is_some() => {
                let runtime = crate::stack::runtime(&facts).map_or("", |(_, value)| value);
                self.say(&format!("process {process}: {runtime}"));
            }
            News::Departed(process) if self.line.is_some() => {
                self.say(&format!("process {process} has ended"));
            }
            News::Attached { .. } | News::Departed(_) => {}
        }
    }

    fn say(&self, text: &str) {
        match &self.line {
            Some(line) => line.suspend(|| say(text)),
            None => say(text),
        }
    }

    /// Removes the progress line.
    pub(crate) fn finish(&self) {
        if let Some(line) = &self.line {
            line.finish_and_clear();
        }
    }
}

/// Whether nothing was recorded, although something should have been.
pub(crate) fn is_in_vain(statistics: &SampleStatistics) -> bool {
    let SampleStatistics { attached, taken, idle, torn, .. } = *statistics;
    attached == 0 || (taken == 0 && idle == 0 && torn > 0)
}

fn progress_text(progress: &SessionProgress) -> String {
    let SessionProgress { statistics, processes } = progress;
    let noun = if processes.len() == 1 { "process" } else { "processes" };
    format!("{:.1} s, {} {noun}, {}", seconds(statistics), processes.len(), quality(statistics))
}

fn seconds(statistics: &SampleStatistics) -> f64 {
    Duration::from_nanos(statistics.elapsed_ns).as_secs_f64()
}

/// The number and rate of samples, and what became of the other ticks.
fn quality(statistics: &SampleStatistics) -> String {
    let taken = counted(statistics.taken, "sample");
    let mut text = format!("{taken} ({:.1}/s)", statistics.taken_per_second());
    for (name, count) in [
        ("idle", statistics.idle),
        ("missed", statistics.missed),
        ("torn", statistics.torn),
        ("failed", statistics.failed),
        ("of ended threads", statistics.gone),
    ] {
        // Losses are printed even if there are none, because that is good news.
        if count > 0 || !matches!(name, "idle" | "of ended threads") {
            text += &format!(", {} {name}{}", grouped(count), share(count, statistics.asked));
        }
    }
    for (name, count) in [
        ("retried", statistics.retried),
        ("stopped", statistics.stopped),
        ("could not be stopped", statistics.unstopped),
        ("truncated", statistics.truncated),
        ("of waiting tasks", statistics.tasks),
        ("times not all waiting tasks", statistics.cut_tasks),
    ] {
        if count > 0 {
            text += &format!(", {} {name}", grouped(count));
        }
    }
    text
}

/// `count` as a percentage of `whole`, such as ` (12%)`; empty for none.
fn share(count: u64, whole: u64) -> String {
    let percent = count.saturating_mul(100).checked_div(whole);
    match percent.filter(|_| count > 0) {
        None => String::new(),
        Some(0) => " (<1%)".to_owned(),
        Some(percent) => format!(" ({percent}%)"),
    }
}

/// The summary at the end.
pub(crate) fn summary(statistics: &SampleStatistics, period: Option<Duration>) -> String {
    let rate = match period {
        // For slow rates, the period is clearer.
        Some(period) if period > Duration::from_secs(1) => format!("every {} s", period.as_secs_f64()),
        Some(period) => format!("at {} Hz", (10.0 / period.as_secs_f64()).round() / 10.0),
        None => "as often as possible".to_owned(),
    };
    let (processes, each) = if statistics.attached == 1 { ("process", "") } else { ("processes", " each") };
    format!(
        "Sampled {} {processes} for {:.1} s {rate}{each}: {}",
        grouped(statistics.attached),
        seconds(statistics),
        quality(statistics)
    )
}

/// How far samples of running threads are from those of stopped ones; `None` if that was not measured.
pub(crate) fn truth(statistics: &SampleStatistics) -> Option<String> {
    let MeasuredTruth { distance_millionths, noise_millionths, .. } = statistics.truth;
    let (distance, noise) = distance_millionths.zip(noise_millionths)?;
    let percent = |millionths: u32| format!("{:.1}%", f64::from(millionths) / 1e4);
    Some(format!(
        "The samples differ by {} from {} taken with the thread stopped; two halves of these differ by {}",
        percent(distance),
        grouped(statistics.reference),
        percent(noise)
    ))
}

/// How native stacks ended, and how many calls of interpreters were joined to them; `None` if there were none.
pub(crate) fn native(statistics: &SampleStatistics) -> Option<String> {
    let NativeCounts { stacks, whole, cut, bare, corrupted, joined, unjoined, lost, .. } = statistics.native;
    if stacks == 0 {
        return None;
    }
    let mut text = format!("Native stacks: {} of {} reach the root", grouped(whole), grouped(stacks));
    let losses = [
        (bare, "end at code without unwind information"),
        (corrupted, "at memory that is no stack"),
        (cut, "are longer than what is followed"),
    ];
    for (count, what) in losses.into_iter().filter(|(count, _)| *count > 0) {
        text += &format!(", {} {what}", grouped(count));
    }
    if lost > 0 {
        text += &format!("; {} samples lost, because the system's buffer was full", grouped(lost));
    }
    if joined + unjoined > 0 {
        let calls = grouped(joined + unjoined);
        text += &format!("; {} of {calls} interpreter calls joined", grouped(joined));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_has_the_rate_or_the_period() {
        let asked = |period| summary(&SampleStatistics::default(), Some(period));
        assert!(asked(Duration::from_millis(10)).contains(" at 100 Hz each: "));
        assert!(asked(Duration::from_secs(1000)).contains(" every 1000 s each: "));
    }

    #[test]
    fn the_rate_beside_the_samples_is_theirs() {
        let statistics = SampleStatistics {
            asked: 427,
            taken: 130,
            idle: 296,
            missed: 1,
            elapsed_ns: 3_100_000_000,
            ..SampleStatistics::default()
        };
        assert!(
            quality(&statistics).starts_with("130 samples (41.9/s), 296 idle (69%), 1 missed (<1%), 0 torn")
        );
    }
}
