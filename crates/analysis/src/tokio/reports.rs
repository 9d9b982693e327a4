//! The periodic reports of runtimes, each at its own times.

use super::names::at;
use super::view::QueueView;

/// The length above which a queue is high.
const HIGH: u64 = 100;

/// The silence after which a runtime is considered gone: it reports every 10 ms. Source: dial9 0.5.7.
const SILENT_NS: u64 = 1_000_000_000;

#[derive(Clone, Copy, Debug)]
struct RuntimeReport {
    time_ns: u64,
    value: u64,
    /// The runtime, as a row of the names of runtimes.
    runtime: u32,
    /// Whether it was not reported but follows from other reports.
    is_derived: bool,
}

/// The maximum number of reports; of one runtime, they take half a day. Later ones are left out.
const MOST_REPORTS: usize = 1 << 22;

/// A figure of each runtime. Memory: 24 bytes a report.
#[derive(Clone, Debug, Default)]
pub(super) struct Reports(Vec<RuntimeReport>);

impl Reports {
    pub(super) fn add(&mut self, time_ns: u64, runtime: u32, value: u64) {
        if self.0.len() < MOST_REPORTS {
            self.0.push(RuntimeReport { time_ns, value, runtime, is_derived: false });
        }
    }

    /// The sum over all runtimes at the time of each report. Each runtime counts with its latest report: from the beginning, if
    /// its first report comes soon after it, until it has been silent for long.
    pub(super) fn summed(&self) -> Vec<(u64, u64)> {
        let mut reports = derived(&self.0);
        reports.extend_from_slice(&self.0);
        reports.sort_by_key(|report| report.time_ns);
        let (mut series, mut last, mut sum) = (Vec::new(), Vec::new(), 0u128);
        for round in reports.chunk_by(|one, other| one.time_ns == other.time_ns) {
            for report in round {
                let before: u64 = std::mem::replace(at(&mut last, report.runtime), report.value);
                sum = sum - u128::from(before) + u128::from(report.value);
            }
            if round.iter().any(|report| !report.is_derived) {
                series.push((round[0].time_ns, u64::try_from(sum).unwrap_or(u64::MAX)));
            }
        }
        series
    }

    /// The lengths of the global queues, if these are what runtimes report.
    // A mean does not need the digits that a double lacks.
    #[expect(clippy::cast_precision_loss)]
    pub(super) fn queue(&self) -> Option<QueueView> {
        let series = self.summed();
        let mut view = QueueView { samples: series.len() as u64, ..QueueView::default() };
        view.max_ns = series.first()?.0;
        let mut sum = 0u64;
        for (time_ns, depth) in series {
            sum = sum.saturating_add(depth);
            view.high += u64::from(depth > HIGH);
            if depth > view.max {
                (view.max, view.max_ns) = (depth, time_ns);
            }
        }
        view.mean = sum as f64 / view.samples as f64;
        Some(view)
    }
}

/// Derived reports: the state of runtimes before their first report, and their end after their last.
fn derived(reports: &[RuntimeReport]) -> Vec<RuntimeReport> {
    let start_ns = reports.iter().map(|report| report.time_ns).min().unwrap_or_default();
    let mut ends: Vec<Option<(RuntimeReport, u64)>> = Vec::new();
    for &report in reports {
        let (first, last_ns) = at(&mut ends, report.runtime).get_or_insert((report, report.time_ns));
        if report.time_ns < first.time_ns {
            *first = report;
        }
        *last_ns = report.time_ns.max(*last_ns);
    }
    let mut derived = Vec::new();
    for (first, last_ns) in ends.into_iter().flatten() {
        let gone_ns = last_ns.saturating_add(SILENT_NS);
        derived.push(RuntimeReport { time_ns: gone_ns, value: 0, is_derived: true, ..first });
        if first.time_ns - start_ns <= SILENT_NS {
            derived.push(RuntimeReport { time_ns: start_ns, is_derived: true, ..first });
        }
    }
    derived
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_runtime_counts_with_what_it_said_last_in_whatever_order_reports_come() {
        let mut reports = Reports::default();
        for (time_ns, runtime, value) in [(30, 0, 7), (20, 1, 2), (10, 0, 1), (30, 1, 5)] {
            reports.add(time_ns, runtime, value);
        }
        assert_eq!(reports.summed(), [(10, 3), (20, 3), (30, 12)]);
        assert_eq!(Reports::default().summed(), []);
    }

    #[test]
    fn numbers_without_end_add_up_to_the_largest() {
        let mut reports = Reports::default();
        for (time_ns, runtime, value) in [(u64::MAX, 0, u64::MAX), (u64::MAX, 1, u64::MAX), (0, 0, 1)] {
            reports.add(time_ns, runtime, value);
        }
        assert_eq!(reports.summed(), [(0, 1), (u64::MAX, u64::MAX)]);
    }
}
