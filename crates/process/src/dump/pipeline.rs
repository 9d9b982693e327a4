//! Runs work on blocks on several threads, while one thread reads or writes the blocks in order.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// The number of jobs queued at a worker, including the one it is doing.
const DEPTH: usize = 2;

/// A worker, seen from the thread that hands out jobs.
struct PipelineThread<J, R> {
    jobs: SyncSender<J>,
    results: Receiver<R>,
}

/// Takes jobs from `next` until there are none, runs them on other threads, and passes the results to `done` in the
/// order of the jobs. `worker` creates the function that does the jobs, once per thread. `next` and `done` are called
/// on the calling thread; `next` may be called again after it returned none. Stops at the first error of `done`.
pub(super) fn run<J: Send, R: Send, E, W: FnMut(J) -> R>(
    worker: impl Fn() -> W + Sync,
    mut next: impl FnMut() -> Option<J>,
    mut done: impl FnMut(R) -> Result<(), E>,
) -> Result<(), E> {
    let count = thread::available_parallelism().map_or(1, usize::from);
    let worker = &worker;
    thread::scope(|scope| {
        let start = |_| {
            let (jobs, incoming) = sync_channel::<J>(DEPTH);
            let (outgoing, results) = sync_channel(DEPTH);
            let work =
                move || incoming.into_iter().map(worker()).try_for_each(|result| outgoing.send(result));
            thread::Builder::new().spawn_scoped(scope, work).ok()?;
            Some(PipelineThread { jobs, results })
        };
        // The system may have no more threads.
        let workers: Vec<PipelineThread<J, R>> = (0..count).map_while(start).collect();
        let count = workers.len();
        if count == 0 {
            let mut work = worker();
            return std::iter::from_fn(next).try_for_each(|job| done(work(job)));
        }
        let (mut given, mut taken) = (0, 0);
        loop {
            while given - taken < count * DEPTH {
                let Some(job) = next() else { break };
                // A worker that panicked accepts no jobs; the scope propagates its panic.
                let Ok(()) = workers[given % count].jobs.send(job) else { return Ok(()) };
                given += 1;
            }
            if given == taken {
                return Ok(());
            }
            let Ok(result) = workers[taken % count].results.recv() else { return Ok(()) };
            taken += 1;
            done(result)?;
        }
    })
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_jobs() {
        let (mut jobs, mut results) = (0..1000_u64, Vec::new());
        let square = || |number: u64| number * number;
        let take = |result| {
            results.push(result);
            Ok::<(), Infallible>(())
        };
        assert_eq!(run(square, || jobs.next(), take), Ok(()));
        assert_eq!(results, (0..1000).map(|number| number * number).collect::<Vec<_>>());
    }

    #[test]
    fn an_error_of_the_taker_ends_it() {
        let (mut given, mut taken) = (0, 0);
        let endless = || {
            given += 1;
            Some(given)
        };
        let refuse = |_| {
            taken += 1;
            if taken < 10 { Ok(()) } else { Err("full") }
        };
        assert_eq!(run(|| |number: u64| number, endless, refuse), Err("full"));
        assert!(given < 100, "{given}");
    }
}
