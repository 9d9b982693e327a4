//! The global queues of all runtimes, as they report them.

use super::reports::Reports;
use super::view::QueueView;

/// The length above which a queue is high.
const HIGH: u64 = 100;

#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    depths: Reports,
}

impl Queue {
    pub(super) fn add(&mut self, time_ns: u64, runtime: u32, depth: u64) {
        self.depths.add(time_ns, runtime, depth);
    }

    // A mean does not need the digits that a double lacks.
    #[expect(clippy::cast_precision_loss)]
    pub(super) fn view(&self) -> Option<QueueView> {
        let series = self.depths.summed();
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
