//! Sampled allocations, and which of them are outstanding.

use hashbrown::{HashMap, HashSet};

use super::stacks::NamedStacks;
use super::view::{AllocationView, LimitRow, LimitedRows, SiteRow};

/// The default mean number of bytes between samples. Source: dial9 0.5.7.
const DEFAULT_RATE_BYTES: u64 = 524_288;

/// The maximum number of outstanding allocations, of 40 bytes each; further ones are counted only.
const MOST_LIVE: usize = 1 << 22;

#[derive(Clone, Copy, Debug)]
struct Live {
    size: u64,
    stack: Option<u32>,
}

/// Allocations by address and time, which a free names. A free may precede its allocation, because batches are unordered.
#[derive(Clone, Debug, Default)]
pub(super) struct AllocationSamples {
    count: u64,
    bytes: u64,
    freed: u64,
    dropped: u64,
    rate_bytes: Option<u64>,
    live: HashMap<(u64, u64), Live>,
    early: HashSet<(u64, u64)>,
    left_out: u64,
}

impl AllocationSamples {
    pub(super) fn allocated(&mut self, address: u64, time_ns: u64, size: u64, stack: Option<u32>) {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(size);
        if self.early.remove(&(address, time_ns)) {
            self.freed += 1;
        } else if self.live.len() < MOST_LIVE {
            self.live.insert((address, time_ns), Live { size, stack });
        } else {
            self.left_out += 1;
        }
    }

    pub(super) fn freed(&mut self, address: u64, allocated_ns: u64) {
        if self.live.remove(&(address, allocated_ns)).is_some() {
            self.freed += 1;
        } else if self.early.len() < MOST_LIVE {
            self.early.insert((address, allocated_ns));
        } else {
            self.left_out += 1;
        }
    }

    pub(super) const fn limit(&self) -> LimitRow {
        LimitRow { what: "sampled allocations", followed: self.count, left_out: self.left_out }
    }

    pub(super) fn dropped(&mut self, events: u64) {
        self.dropped = self.dropped.saturating_add(events);
    }

    pub(super) fn sampled_every(&mut self, rate_bytes: u64) {
        self.rate_bytes = Some(rate_bytes).filter(|&rate_bytes| rate_bytes > 0);
    }

    pub(super) fn view(&self, stacks: &NamedStacks, limit: usize) -> Option<AllocationView> {
        if self.count == 0 && self.early.is_empty() && self.dropped == 0 {
            return None;
        }
        let rate_bytes = self.rate_bytes.unwrap_or(DEFAULT_RATE_BYTES);
        let mut sites: HashMap<Option<u32>, SiteRow> = HashMap::new();
        let mut view = AllocationView {
            allocations: self.count,
            bytes: self.bytes,
            freed: self.freed,
            outstanding: self.live.len() as u64,
            dropped: self.dropped,
            ..AllocationView::default()
        };
        for (&(_, time_ns), live) in &self.live {
            view.outstanding_bytes = view.outstanding_bytes.saturating_add(live.size);
            let site = sites.entry(live.stack);
            let site = site.or_insert_with(|| SiteRow { first_ns: time_ns, ..SiteRow::default() });
            site.count += 1;
            site.bytes = site.bytes.saturating_add(live.size);
            site.first_ns = site.first_ns.min(time_ns);
        }
        // In a fixed order, because floating-point sums depend on it.
        let mut sizes: Vec<u64> = self.live.values().map(|live| live.size).collect();
        sizes.sort_unstable();
        view.estimated_outstanding_bytes = sizes.into_iter().map(|size| stands_for(size, rate_bytes)).sum();
        view.sites = rows(sites, stacks, limit);
        Some(view)
    }
}

fn rows(sites: HashMap<Option<u32>, SiteRow>, stacks: &NamedStacks, limit: usize) -> LimitedRows<SiteRow> {
    let mut rows: Vec<_> = sites.into_iter().collect();
    rows.sort_unstable_by_key(|(stack, row)| (u64::MAX - row.bytes, row.first_ns, *stack));
    LimitedRows::new(rows, limit, |(stack, row)| {
        let callers = stack.map(|stack| stacks.callers(stack)).unwrap_or_default();
        SiteRow { callers, ..row }
    })
}

/// The number of bytes that a sample of this size stands for: larger allocations are more likely to be sampled.
// An estimate does not need the digits that a double lacks.
#[expect(clippy::cast_precision_loss)]
fn stands_for(size: u64, rate_bytes: u64) -> f64 {
    let size = size as f64;
    let chance = -(-size / rate_bytes as f64).exp_m1();
    if chance > 0.0 { size / chance } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_freed_is_outstanding_whatever_order_they_come_in() {
        let mut memory = AllocationSamples::default();
        memory.freed(16, 100);
        memory.allocated(16, 100, 64, None);
        // The same address again, later.
        memory.allocated(16, 200, 1000, None);
        memory.allocated(32, 150, 500, None);
        memory.freed(32, 150);
        let view = memory.view(&NamedStacks::default(), 10).unwrap();
        assert_eq!((view.allocations, view.freed, view.outstanding), (3, 2, 1));
        assert_eq!((view.bytes, view.outstanding_bytes), (1564, 1000));
        assert_eq!((view.sites.rows[0].count, view.sites.rows[0].first_ns), (1, 200));
    }

    #[test]
    fn what_was_dropped_is_told_where_nothing_else_is_known() {
        let mut memory = AllocationSamples::default();
        assert_eq!(memory.view(&NamedStacks::default(), 10), None);
        memory.dropped(3);
        assert_eq!(memory.view(&NamedStacks::default(), 10).map(|view| view.dropped), Some(3));
    }

    #[test]
    fn a_rate_of_zero_is_the_usual_one() {
        let bytes_at = |rate: Option<u64>| {
            let mut memory = AllocationSamples::default();
            memory.allocated(16, 100, 64, None);
            rate.into_iter().for_each(|rate| memory.sampled_every(rate));
            memory.view(&NamedStacks::default(), 10)
        };
        assert_eq!(bytes_at(Some(0)), bytes_at(None));
        assert_ne!(bytes_at(Some(1)), bytes_at(None));
    }

    #[test]
    fn small_samples_stand_for_the_rate_and_large_ones_for_themselves() {
        assert!((stands_for(1, 524_288) - 524_288.5).abs() < 1.0);
        assert!((stands_for(1 << 30, 524_288) - f64::from(1 << 30)).abs() < 1.0);
        assert!(stands_for(0, 524_288).abs() < f64::EPSILON);
    }
}
