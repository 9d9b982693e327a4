//! What is said while a recording runs, and at its end.

use std::io;
use std::time::Duration;

use borehole::capture::{News, Progress, Statistics};
use borehole_php::Release;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::cell::is_drawn_over;
use crate::messages::{counted, say};
use crate::refusal;

/// Hears what happens and tells the user.
pub(crate) struct Watcher {
    period: Option<Duration>,
    /// The release that every PHP is taken for, if one was named.
    release: Option<Release>,
    /// On a terminal only.
    line: Option<ProgressBar>,
    /// Of PHP, if there was one: of another program it is no surprise.
    last_refusal: Option<String>,
}

impl Watcher {
    pub(crate) fn new(period: Option<Duration>, release: Option<Release>) -> Self {
        let line = is_drawn_over(&io::stderr()).then(|| {
            let style = ProgressStyle::with_template("{spinner} {msg}");
            let line = ProgressBar::no_length()
                .with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
            line.set_draw_target(ProgressDrawTarget::stderr_with_hz(5));
            line.set_message("looking for processes that run PHP");
            line
        });
        Self { period, release, line, last_refusal: None }
    }

    pub(crate) fn period(&self) -> Option<Duration> {
        self.period
    }

    /// Why a recording has nothing in it, and what to try next.
    pub(crate) fn why_nothing(&self, statistics: &Statistics) -> String {
        match (statistics.attached, &self.last_refusal, self.release) {
            (0, Some(refusal), _) => refusal.clone(),
            (0, None, _) => "expected a process that runs PHP, found none".to_owned(),
            (.., Some(release)) => format!(
                "no stack makes sense as one of PHP {release}; without --php-version the process says which PHP it is"
            ),
            (.., None) => {
                "each stack changed while it was read; --stop-process stops the process for a sample"
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
                // A pattern matches whatever has it in its command line, a shell or an editor.
                if !error.is_other_program() {
                    self.say(&format!("warning: not sampled: {text}"));
                    self.last_refusal = Some(text);
                } else if self.last_refusal.is_none() {
                    self.last_refusal = Some(text);
                }
            }
            News::Attached { process, facts } if self.line.is_some() => {
                let php = facts.iter().find(|(key, _)| key == "php").map_or("", |(_, value)| value);
                self.say(&format!("process {process}: {php}"));
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

    /// Leaves the terminal to whatever is said next.
    pub(crate) fn finish(&self) {
        if let Some(line) = &self.line {
            line.finish_and_clear();
        }
    }
}

/// Whether a recording has nothing in it, though it should have.
pub(crate) fn is_in_vain(statistics: &Statistics) -> bool {
    let Statistics { attached, taken, idle, torn, .. } = *statistics;
    attached == 0 || (taken == 0 && idle == 0 && torn > 0)
}

fn progress_text(progress: &Progress) -> String {
    let Progress { statistics, processes } = progress;
    let processes = match processes.len() {
        1 => "1 process".to_owned(),
        count => format!("{count} processes"),
    };
    format!("{:.1} s, {processes}, {}", seconds(statistics), quality(statistics))
}

fn seconds(statistics: &Statistics) -> f64 {
    Duration::from_nanos(statistics.elapsed_ns).as_secs_f64()
}

/// How many samples, at which rate, and what else became of those that were asked for.
fn quality(statistics: &Statistics) -> String {
    let mut text =
        format!("{} ({:.1}/s)", counted(statistics.taken, "sample"), statistics.taken_per_second());
    for (name, count) in [
        ("idle", statistics.idle),
        ("missed", statistics.missed),
        ("torn", statistics.torn),
        ("failed", statistics.failed),
        ("retried", statistics.retried),
        ("stopped", statistics.stopped),
        ("not to be stopped", statistics.unstopped),
        ("truncated", statistics.truncated),
    ] {
        // The first three are said even if there are none: that is the news.
        if count > 0 || matches!(name, "missed" | "torn" | "failed") {
            text += &format!(", {count} {name}");
        }
    }
    text
}

/// The last line.
pub(crate) fn summary(statistics: &Statistics, period: Option<Duration>) -> String {
    let asked = match period {
        // Of the slowest the period says more.
        Some(period) if period > Duration::from_secs(1) => {
            format!("a sample each {} s", period.as_secs_f64())
        }
        Some(period) => format!("{:.1} samples/s", 1.0 / period.as_secs_f64()),
        None => "as many samples as possible".to_owned(),
    };
    let processes = if statistics.attached == 1 { "process" } else { "processes" };
    format!(
        "recorded {} {processes} for {:.1} s, asked for {asked}: {}",
        statistics.attached,
        seconds(statistics),
        quality(statistics)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_for_is_said_of_slow_rates_too() {
        let asked = |period| summary(&Statistics::default(), Some(period));
        assert!(asked(Duration::from_millis(10)).contains("asked for 100.0 samples/s: "));
        assert!(asked(Duration::from_secs(1000)).contains("asked for a sample each 1000 s: "));
    }

    #[test]
    fn the_rate_beside_the_samples_is_theirs() {
        let statistics =
            Statistics { taken: 130, idle: 296, elapsed_ns: 3_100_000_000, ..Statistics::default() };
        assert!(quality(&statistics).starts_with("130 samples (41.9/s), 296 idle, "));
    }
}
