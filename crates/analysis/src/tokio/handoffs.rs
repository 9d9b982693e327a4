//! Tasks that run one after another because each waits for the one before: chains of wakes among tasks of one place.
//!
//! A lock or a permit that is held over an await shows in the wakes: the task that lets go of it wakes the next one, which
//! wakes the next. Each of them has it from its own wake until it wakes the next task, and spends most of that time waiting
//! for something else.

use super::tasks::Wait;

/// The maximum number of wakes kept, of 32 bytes each; later ones are not searched.
const MOST: usize = 1 << 18;
/// The shortest time that a task has what others wait for.
const SHORTEST_NS: u64 = 1_000_000;
/// The minimum number of tasks in a chain, and the minimum time that it takes.
const FEWEST: u64 = 20;
const LEAST_NS: u64 = 100_000_000;

/// A wake of a task by another one of the same place.
#[derive(Clone, Copy, Debug)]
struct Handoff {
    place: u32,
    time_ns: u64,
    waker: u32,
    woken: u32,
    /// The time since the poll began in which it happened.
    in_poll_ns: u64,
}

/// The longest chain of a place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WaitChain {
    pub(super) tasks: u64,
    pub(super) start_ns: u64,
    pub(super) duration_ns: u64,
    /// The first task, as a row.
    pub(super) task_row: u32,
    pub(super) place: u32,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Handoffs(Vec<Handoff>);

impl Handoffs {
    /// Records a wake, in a poll that began `in_poll_ns` before.
    pub(super) fn add(&mut self, wake: Wait, waker: u32, woken: u32) {
        if self.0.len() < MOST {
            let Wait { place, poll_ns: time_ns, delay_ns: in_poll_ns, .. } = wake;
            self.0.push(Handoff { place, time_ns, waker, woken, in_poll_ns });
        }
    }

    /// The longest chain of each place; `place` is that of a task.
    pub(super) fn chains(mut self, place: impl Fn(u32) -> Option<u32>) -> Vec<WaitChain> {
        self.0.retain(|handoff| place(handoff.woken) == Some(handoff.place));
        self.0.sort_unstable_by_key(|handoff| (handoff.place, handoff.time_ns));
        let places = self.0.chunk_by(|one, other| one.place == other.place);
        let longest = places.filter_map(|handoffs| {
            let chains = handoffs.chunk_by(|one, other| other.follows(one));
            chains.map(chain).max_by_key(|chain| chain.duration_ns)
        });
        longest.filter(|chain| chain.tasks >= FEWEST && chain.duration_ns >= LEAST_NS).collect()
    }
}

impl Handoff {
    /// Whether the task that the other wake woke held on for long, and waited most of that time.
    fn follows(&self, before: &Self) -> bool {
        let held_ns = self.time_ns - before.time_ns;
        self.waker == before.woken && held_ns >= SHORTEST_NS && self.in_poll_ns.saturating_mul(2) < held_ns
    }
}

fn chain(handoffs: &[Handoff]) -> WaitChain {
    let (Some(first), Some(last)) = (handoffs.first(), handoffs.last()) else { return WaitChain::default() };
    WaitChain {
        tasks: handoffs.len() as u64,
        start_ns: first.time_ns,
        duration_ns: last.time_ns - first.time_ns,
        task_row: first.waker,
        place: first.place,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn chains(held_ns: u64, in_poll_ns: u64, is_chain: bool) -> Vec<u64> {
        let mut handoffs = Handoffs::default();
        // From several threads, so not in order.
        for number in (0..30).rev() {
            let wake = Wait {
                place: 1,
                poll_ns: u64::from(number) * held_ns,
                delay_ns: in_poll_ns,
                ..Wait::default()
            };
            handoffs.add(wake, if is_chain { number } else { 99 }, number + 1);
        }
        handoffs.chains(|_| Some(1)).into_iter().map(|chain| chain.tasks).collect()
    }

    #[test]
    fn tasks_that_wait_for_each_other_in_turn_are_a_chain_unless_they_work_or_one_wakes_all() {
        assert_eq!(chains(5 * MS, 10_000, true), [30]);
        assert_eq!(chains(5 * MS, 4 * MS, true), [], "in one poll");
        assert_eq!(chains(5 * MS, 10_000, false), [], "woken by one task");
        assert_eq!(chains(MS / 2, 10_000, true), [], "short");
    }
}
