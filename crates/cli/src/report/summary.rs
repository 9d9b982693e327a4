//! The lines about the profile as a whole, for standard error.

use std::fmt::Write as _;

use borehole_analysis::Summary;
pub(crate) use borehole_analysis::amount::grouped;
use borehole_analysis::amount::with_unit;
use borehole_analysis::tokio::TokioView;

use borehole_model::{Mode, ValueType};

use super::args::Dialect;
use super::render::seconds;
use crate::cell::printable;
use crate::messages::counted;

/// How many periods are named before the rest is only counted.
const NAMED_PERIODS: usize = 4;

/// reli's summary line; natively followed by one about the quality of the samples, if there is anything to
/// say.
///
/// Where segments differ in their period, reli names the last one and multiplies all samples by it; here all
/// are named, and each sample is as long as its own.
pub(crate) fn text(summary: &Summary, tokio: &[TokioView], dialect: Dialect) -> String {
    let Summary { samples, matched, .. } = summary;
    if *samples == 0 && !tokio.is_empty() {
        let events: u64 = tokio.iter().map(|view| view.events).sum();
        return format!("trace: {events} events, no samples\n");
    }
    let mut text = match summary.time_ns {
        _ if summary.is_valued => valued(summary),
        None if dialect == Dialect::Native => {
            format!("trace: {samples} samples, {matched} matched, sampling period unknown\n")
        }
        time_ns => format!(
            "trace: {samples} samples, {matched} matched, {}, ~{:.2} s {}\n",
            periods(summary),
            seconds(time_ns.unwrap_or(0)),
            sampled(summary.mode),
        ),
    };
    if dialect == Dialect::Native {
        text += &others(summary);
    }
    let quality = quality(summary);
    if dialect == Dialect::Native && !quality.is_empty() {
        let _ = writeln!(text, "quality: {}", quality.join(", "));
    }
    text
}

/// The first line about values that are added up.
fn valued(summary: &Summary) -> String {
    let Summary { samples, matched, value, value_type, .. } = summary;
    let records = counted(*samples, if summary.is_uncounted { "record" } else { "sample" });
    let kind = printable(value_type.kind.as_bytes());
    format!(
        "trace: {} {kind} in {records}, {matched} matched\n",
        printable(with_unit(*value, &value_type.unit).as_bytes())
    )
}

/// What the time of samples is a time of.
fn sampled(mode: Mode) -> &'static str {
    match mode {
        Mode::Wall => "sampled wall",
        Mode::Cpu => "sampled CPU time",
        Mode::Gil => "with the GIL",
        Mode::Exception => "with an exception",
        _ => "sampled",
    }
}

/// What could be added up instead, and what was left out because it cannot be added.
fn others(summary: &Summary) -> String {
    let kind = |kind: &ValueType| printable(kind.to_string().as_bytes());
    let mut text = String::new();
    let others: Vec<_> = summary.other_value_types.iter().map(kind).collect();
    if !others.is_empty() {
        let _ = writeln!(text, "other value types: {}; --value NAME shows them", others.join(", "));
    }
    let hidden = summary.hidden.iter();
    let hidden: Vec<_> =
        hidden.map(|(of, samples)| format!("{} of {}", counted(*samples, "sample"), kind(of))).collect();
    if !hidden.is_empty() {
        let _ = writeln!(text, "hidden: {}", hidden.join(", "));
    }
    text
}

fn periods(summary: &Summary) -> String {
    let named = summary.periods.iter().take(NAMED_PERIODS).map(|row| microseconds(row.period_ns));
    let named = named.collect::<Vec<_>>().join(", ");
    match summary.periods.len() {
        0 => "sampling period 0 us".to_owned(),
        1 => format!("sampling period {named} us"),
        2..=NAMED_PERIODS => format!("sampling periods {named} us"),
        _ => format!("sampling periods {named}, ... us"),
    }
}

/// Nanoseconds as microseconds, with as many digits as there are.
fn microseconds(period_ns: u64) -> String {
    match (period_ns / 1000, period_ns % 1000) {
        (whole, 0) => whole.to_string(),
        (whole, rest) => format!("{whole}.{rest:03}").trim_end_matches('0').to_owned(),
    }
}

/// What there is to say about how well the program was sampled.
fn quality(summary: &Summary) -> Vec<String> {
    let mut facts = Vec::new();
    if let (Some(got), Some(span_ns)) = (summary.samples_per_second(), summary.span_ns) {
        // Of several threads there is a sample each a period.
        let asked = match summary.periods[..] {
            [ref only] if only.period_ns > 0 && summary.threads > 1 && summary.processes < 2 => {
                format!("asked for {:.1} of each of {} threads, ", hertz(only.period_ns), summary.threads)
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
            "{count} samples at the limit of {limit} frames, perhaps without their outer ones"
        ));
    }
    for (count, what) in
        [(summary.empty, "samples with an empty stack"), (summary.without_period, "samples without a period")]
    {
        // Samples without a period are worth a word only beside samples with one.
        if count > 0 && count < summary.samples {
            facts.push(format!("{} {what}", grouped(count)));
        }
    }
    facts
}

// Tenths have no use for the digits that a double lacks.
#[expect(clippy::cast_precision_loss)]
fn hertz(period_ns: u64) -> f64 {
    1e9 / period_ns as f64
}

#[cfg(test)]
mod tests {
    use borehole_analysis::PeriodSamples;

    use super::*;

    fn with_periods(periods_ns: &[u64]) -> Summary {
        let row = |&period_ns| PeriodSamples { period_ns, samples: 1 };
        Summary { periods: periods_ns.iter().map(row).collect(), ..Summary::default() }
    }

    #[test]
    fn the_first_line_is_that_of_reli() {
        let summary = Summary {
            samples: 18432,
            matched: 18000,
            time_ns: Some(184_320_000_000),
            ..with_periods(&[10_000_000])
        };
        let expected =
            "trace: 18432 samples, 18000 matched, sampling period 10000 us, ~184.32 s sampled wall\n";
        assert_eq!(text(&summary, &[], Dialect::Reli), expected);
        assert_eq!(text(&summary, &[], Dialect::Native), expected);
        let nothing = "trace: 0 samples, 0 matched, sampling period 0 us, ~0.00 s sampled wall\n";
        assert_eq!(text(&Summary::default(), &[], Dialect::Reli), nothing);
        let unknown = "trace: 0 samples, 0 matched, sampling period unknown\n";
        assert_eq!(text(&Summary::default(), &[], Dialect::Native), unknown);
    }

    #[test]
    fn several_periods_are_all_named() {
        assert_eq!(periods(&with_periods(&[10_000_000, 1_500])), "sampling periods 10000, 1.5 us");
        let many = with_periods(&[1000, 2000, 3000, 4000, 5000]);
        assert_eq!(periods(&many), "sampling periods 1, 2, 3, 4, ... us");
    }

    #[test]
    fn the_second_line_speaks_of_quality() {
        let summary = Summary {
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
        assert_eq!(text(&summary, &[], Dialect::Native).lines().nth(1), Some(expected));
        assert_eq!(text(&summary, &[], Dialect::Reli).lines().count(), 1);
    }
}
