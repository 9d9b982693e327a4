//! The lines about the profile as a whole, for standard error.

use std::fmt::Write as _;

use borehole_analysis::ProfileSummary;
use borehole_analysis::tokio::TokioView;

use borehole_model::{Mode, ValueType};
use borehole_text::{counted, grouped, printable, with_unit};

use super::args::ReportDialect;
use super::render::seconds;
use crate::filter::other_value_types;

/// How many periods are named before the rest is only counted.
const NAMED_PERIODS: usize = 4;

/// Reli's summary line; in our own dialect, a line about the quality of the samples may follow.
///
/// If segments differ in their period, reli names the last one and multiplies all samples by it. Here all are named, and each
/// sample lasts as long as the period of its segment.
pub(crate) fn text(summary: &ProfileSummary, tokio: &[TokioView], dialect: ReportDialect) -> String {
    let ProfileSummary { samples, matched, .. } = summary;
    if *samples == 0 && !tokio.is_empty() {
        let events: u64 = tokio.iter().map(|view| view.events).sum();
        return format!("trace: {events} events, no samples\n");
    }
    let mut text = match summary.time_ns {
        _ if summary.is_valued => valued(summary),
        None if dialect == ReportDialect::Native => {
            format!("trace: {samples} samples, {matched} matched, sampling period unknown\n")
        }
        time_ns => format!(
            "trace: {samples} samples, {matched} matched, {}, ~{:.2} s {}\n",
            periods(summary),
            seconds(time_ns.unwrap_or(0)),
            sampled(summary.mode),
        ),
    };
    if dialect == ReportDialect::Native {
        text += &others(summary);
    }
    let quality = quality(summary);
    if dialect == ReportDialect::Native && !quality.is_empty() {
        let _ = writeln!(text, "quality: {}", quality.join(", "));
    }
    text
}

/// The first line about values that are added up.
fn valued(summary: &ProfileSummary) -> String {
    let ProfileSummary { samples, matched, value, value_type, .. } = summary;
    let records = counted(*samples, if summary.is_uncounted { "record" } else { "sample" });
    let kind = printable(value_type.kind.as_bytes());
    format!(
        "trace: {} {kind} in {records}, {matched} matched\n",
        printable(with_unit(*value, &value_type.unit).as_bytes())
    )
}

/// The kind of time that the samples stand for.
fn sampled(mode: Mode) -> &'static str {
    match mode {
        Mode::Wall => "sampled wall",
        Mode::Cpu => "sampled CPU time",
        Mode::Gil => "with the GIL",
        Mode::Exception => "with an exception",
        _ => "sampled",
    }
}

/// The value types that could be added up instead, and the samples left out because they have another one.
fn others(summary: &ProfileSummary) -> String {
    let kind = |kind: &ValueType| printable(kind.to_string().as_bytes());
    let mut text = String::new();
    if let Some(others) = other_value_types(&summary.other_value_types) {
        let _ = writeln!(text, "{others}");
    }
    let hidden = summary.hidden.iter();
    let hidden: Vec<_> =
        hidden.map(|(of, samples)| format!("{} of {}", counted(*samples, "sample"), kind(of))).collect();
    if !hidden.is_empty() {
        let _ = writeln!(text, "hidden: {}", hidden.join(", "));
    }
    text
}

fn periods(summary: &ProfileSummary) -> String {
    let named = summary.periods.iter().take(NAMED_PERIODS).map(|row| microseconds(row.period_ns));
    let named = named.collect::<Vec<_>>().join(", ");
    match summary.periods.len() {
        0 => "sampling period 0 us".to_owned(),
        1 => format!("sampling period {named} us"),
        2..=NAMED_PERIODS => format!("sampling periods {named} us"),
        _ => format!("sampling periods {named}, ... us"),
    }
}

/// Nanoseconds as microseconds, with all their digits.
fn microseconds(period_ns: u64) -> String {
    match (period_ns / 1000, period_ns % 1000) {
        (whole, 0) => whole.to_string(),
        (whole, rest) => format!("{whole}.{rest:03}").trim_end_matches('0').to_owned(),
    }
}

/// Facts about how well the program was sampled; empty if there are none.
fn quality(summary: &ProfileSummary) -> Vec<String> {
    let mut facts = Vec::new();
    if let (Some(got), Some(span_ns)) = (summary.samples_per_second(), summary.span_ns) {
        // Each thread has a sample per period.
        let asked = match summary.periods[..] {
            [ref only] if only.period_ns > 0 && summary.threads > 1 && summary.processes < 2 => {
                format!("asked for {:.1} from each of {} threads, ", hertz(only.period_ns), summary.threads)
            }
            [ref only] if only.period_ns > 0 => format!("asked for {:.1}, ", hertz(only.period_ns)),
            _ => String::new(),
        };
        let whom = if summary.processes > 1 {
            format!(" from {} processes", grouped(summary.processes as u64))
        } else {
            String::new()
        };
        facts.push(format!("{asked}got {got:.1} samples/s over {:.2} s{whom}", seconds(span_ns.into())));
    }
    if let Some(limit) = summary.depth_limit {
        let count = grouped(summary.at_depth_limit);
        facts.push(format!(
            "{count} samples at the limit of {limit} frames, so frames near the root may be missing"
        ));
    }
    // What is true of all samples needs no note.
    let is_of_some = |count: u64| count > 0 && count < summary.samples;
    if is_of_some(summary.empty) {
        let has_value = summary.is_valued && summary.empty_value != 0;
        let value = has_value.then(|| with_unit(summary.empty_value, &summary.value_type.unit));
        let value = value.map_or_else(String::new, |value| format!(" ({})", printable(value.as_bytes())));
        facts.push(format!("{} with an empty stack{value}", counted(summary.empty, "sample")));
    }
    if is_of_some(summary.without_period) {
        facts.push(format!("{} without a period", counted(summary.without_period, "sample")));
    }
    facts
}

// A double has enough digits for tenths.
#[expect(clippy::cast_precision_loss)]
fn hertz(period_ns: u64) -> f64 {
    1e9 / period_ns as f64
}

#[cfg(test)]
mod tests {
    use borehole_analysis::PeriodSamples;

    use super::*;

    fn with_periods(periods_ns: &[u64]) -> ProfileSummary {
        let row = |&period_ns| PeriodSamples { period_ns, samples: 1 };
        ProfileSummary { periods: periods_ns.iter().map(row).collect(), ..ProfileSummary::default() }
    }

    #[test]
    fn the_first_line_is_reli_s() {
        let summary = ProfileSummary {
            samples: 18432,
            matched: 18000,
            time_ns: Some(184_320_000_000),
            ..with_periods(&[10_000_000])
        };
        let expected =
            "trace: 18432 samples, 18000 matched, sampling period 10000 us, ~184.32 s sampled wall\n";
        assert_eq!(text(&summary, &[], ReportDialect::Reli), expected);
        assert_eq!(text(&summary, &[], ReportDialect::Native), expected);
        let nothing = "trace: 0 samples, 0 matched, sampling period 0 us, ~0.00 s sampled wall\n";
        assert_eq!(text(&ProfileSummary::default(), &[], ReportDialect::Reli), nothing);
        let unknown = "trace: 0 samples, 0 matched, sampling period unknown\n";
        assert_eq!(text(&ProfileSummary::default(), &[], ReportDialect::Native), unknown);
    }

    #[test]
    fn several_periods_are_all_named() {
        assert_eq!(periods(&with_periods(&[10_000_000, 1_500])), "sampling periods 10000, 1.5 us");
        let many = with_periods(&[1000, 2000, 3000, 4000, 5000]);
        assert_eq!(periods(&many), "sampling periods 1, 2, 3, 4, ... us");
    }

    #[test]
    fn the_second_line_speaks_of_quality() {
        let summary = ProfileSummary {
            samples: 2501,
            timed: 2001,
            empty: 3,
            without_period: 0,
            processes: 2,
            span_ns: Some(10_000_000_000),
            ..with_periods(&[10_000_000])
        };
        let expected = "quality: asked for 100.0, got 200.0 samples/s over 10.00 s from 2 processes, \
                        3 samples with an empty stack";
        assert_eq!(text(&summary, &[], ReportDialect::Native).lines().nth(1), Some(expected));
        assert_eq!(text(&summary, &[], ReportDialect::Reli).lines().count(), 1);
    }

    #[test]
    fn the_value_of_empty_stacks_is_said() {
        let value_type = ValueType::new("alloc", "bytes");
        let valued = |empty_value| ProfileSummary {
            samples: 9,
            matched: 8,
            empty: 1,
            empty_value,
            is_valued: true,
            value_type: value_type.clone(),
            ..ProfileSummary::default()
        };
        let quality = |empty_value| {
            let text = text(&valued(empty_value), &[], ReportDialect::Native);
            text.lines().nth(1).map(str::to_owned)
        };
        assert_eq!(quality(2048).as_deref(), Some("quality: 1 sample with an empty stack (2.00 KiB)"));
        // The sample has another value.
        assert_eq!(quality(0).as_deref(), Some("quality: 1 sample with an empty stack"));
    }
}
