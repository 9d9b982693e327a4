//! Inputs in memory: kept until others need their place, and read once however many ask at the same time.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::{Semaphore, watch};

use crate::catalogue::Version;
use crate::limits::CacheLimits;
use crate::opened::Opened;
use crate::refusal::{Refusal, RefusalKind};

/// The name of something read: the inputs in their versions, and the value type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CacheKey {
    /// The ids and versions of the inputs, those of each side of a comparison apart.
    pub(crate) inputs: Vec<Vec<(String, Version)>>,
    pub(crate) value: Option<String>,
}

/// The outcome of reading.
type ReadOutcome = Result<Arc<Opened>, Refusal>;

/// The inputs that are held in memory.
pub(crate) struct Cache {
    slots: Mutex<Slots>,
    most_bytes: usize,
    readers: Semaphore,
}

#[derive(Default)]
struct Slots {
    ready: HashMap<CacheKey, ReadySlot>,
    loading: HashMap<CacheKey, Loading>,
    /// Counts uses and readings: to find what was not used for the longest time, and to tell readings of one key apart.
    clock: u64,
}

struct ReadySlot {
    opened: Arc<Opened>,
    bytes: usize,
    used: u64,
}

/// An input that is being read.
#[derive(Clone)]
struct Loading {
    number: u64,
    waiters: Weak<Waiters>,
    outcome: watch::Receiver<Option<ReadOutcome>>,
}

/// Those who wait for an input. Reading ends when the last of them has gone.
struct Waiters(Arc<AtomicBool>);

impl Drop for Waiters {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Cache {
    /// A cache that holds about `most_bytes`.
    pub(crate) fn new(most_bytes: usize) -> Self {
        Self { slots: Mutex::default(), most_bytes, readers: Semaphore::new(CacheLimits::READERS) }
    }

    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gets the content that `key` names: from memory, or by `read`, which is told by a flag when nobody waits any more.
    pub(crate) async fn get(
        self: &Arc<Self>,
        key: CacheKey,
        read: impl FnOnce(&AtomicBool) -> Result<Opened, Refusal> + Send + 'static,
    ) -> ReadOutcome {
        let (waiters, mut outcome) = {
            let mut slots = self.slots();
            if let Some(opened) = slots.use_ready(&key) {
                return Ok(opened);
            }
            match slots
                .loading
                .get(&key)
                .and_then(|loading| Some((loading.waiters.upgrade()?, loading.outcome.clone())))
            {
                Some(joined) => joined,
                None => self.begin(&mut slots, key, read),
            }
        };
        let found = outcome.wait_for(Option::is_some).await;
        let found = found.ok().and_then(|found| found.clone());
        drop(waiters);
        found.unwrap_or_else(|| Err(Refusal::new(RefusalKind::Internal, "reading ended without a result")))
    }

    fn begin(
        self: &Arc<Self>,
        slots: &mut Slots,
        key: CacheKey,
        read: impl FnOnce(&AtomicBool) -> Result<Opened, Refusal> + Send + 'static,
    ) -> (Arc<Waiters>, watch::Receiver<Option<ReadOutcome>>) {
        let is_unwanted = Arc::new(AtomicBool::new(false));
        let waiters = Arc::new(Waiters(is_unwanted.clone()));
        let (told, outcome) = watch::channel(None);
        slots.clock += 1;
        let number = slots.clock;
        let loading = Loading { number, waiters: Arc::downgrade(&waiters), outcome: outcome.clone() };
        slots.loading.insert(key.clone(), loading);
        let cache = self.clone();
        tokio::spawn(async move {
            let outcome = cache.read(is_unwanted, read).await;
            told.send_replace(Some(cache.keep(key, number, outcome)));
        });
        (waiters, outcome)
    }

    /// Reads when it is its turn, and says how many bytes are held since.
    async fn read(
        &self,
        is_unwanted: Arc<AtomicBool>,
        read: impl FnOnce(&AtomicBool) -> Result<Opened, Refusal> + Send + 'static,
    ) -> Result<(Arc<Opened>, usize), Refusal> {
        let Ok(_reader) = self.readers.acquire().await else {
            return Err(Refusal::new(RefusalKind::Internal, "the server is ending"));
        };
        self.make_room();
        let reading = tokio::task::spawn_blocking(move || {
            let before = borehole_memory::held();
            let opened = read(&is_unwanted)?;
            Ok((Arc::new(opened), borehole_memory::held().saturating_sub(before)))
        });
        // A panic in a reader is a bug, but it must not end the server.
        reading.await.unwrap_or_else(|panicked| {
            Err(Refusal::new(RefusalKind::Internal, format!("reading failed: {panicked}")))
        })
    }

    /// Keeps what the reading of this number has read. A newer reading of the same key goes on: this one was cancelled, and ended
    /// late.
    fn keep(&self, key: CacheKey, number: u64, read: Result<(Arc<Opened>, usize), Refusal>) -> ReadOutcome {
        let mut slots = self.slots();
        if slots.loading.get(&key).is_some_and(|loading| loading.number == number) {
            slots.loading.remove(&key);
        }
        let (opened, bytes) = read?;
        slots.clock += 1;
        let used = slots.clock;
        slots.ready.insert(key, ReadySlot { opened: opened.clone(), bytes, used });
        drop(slots);
        self.make_room();
        Ok(opened)
    }

    /// Drops what was not used for the longest time until the rest fits. The last one stays, however large it is.
    fn make_room(&self) {
        let mut slots = self.slots();
        while slots.ready.len() > 1 && self.is_full(&slots) {
            let oldest = slots.ready.iter().min_by_key(|(_, slot)| slot.used).map(|(key, _)| key.clone());
            oldest.and_then(|key| slots.ready.remove(&key));
        }
    }

    fn is_full(&self, slots: &Slots) -> bool {
        let held: usize = slots.ready.values().map(|slot| slot.bytes).sum();
        slots.ready.len() > CacheLimits::INPUTS
            || held > self.most_bytes
            || borehole_memory::held() > borehole_memory::budget() / CacheLimits::BUDGET_PART
    }
}

impl Slots {
    fn use_ready(&mut self, key: &CacheKey) -> Option<Arc<Opened>> {
        self.clock += 1;
        let slot = self.ready.get_mut(key)?;
        slot.used = self.clock;
        Some(slot.opened.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use borehole_analysis::diff::DiffView;
    use tokio::runtime::Runtime;
    use tokio::time::sleep;

    use super::*;

    fn key(name: &str) -> CacheKey {
        let version = Version { bytes: 0, modified_ns: 0 };
        CacheKey { inputs: vec![vec![(name.to_owned(), version)]], value: None }
    }

    fn opened() -> Opened {
        Opened::Diff(Box::<DiffView>::default())
    }

    fn unread(_: &AtomicBool) -> Result<Opened, Refusal> {
        panic!("it was read already")
    }

    #[test]
    fn a_cancelled_reading_that_ends_late_leaves_the_newer_one_alone() {
        Runtime::new().unwrap().block_on(async {
            let cache = Arc::new(Cache::new(usize::MAX));
            let (end_first, first_may_end) = channel::<()>();
            let (begun, has_begun) = channel();
            let first = tokio::spawn({
                let cache = cache.clone();
                async move {
                    let read = move |unwanted: &AtomicBool| {
                        begun.send(()).unwrap();
                        first_may_end.recv().unwrap();
                        assert!(unwanted.load(Ordering::Relaxed));
                        Err(Refusal::new(RefusalKind::Busy, "cancelled"))
                    };
                    cache.get(key("a"), read).await
                }
            });
            tokio::task::spawn_blocking(move || has_begun.recv()).await.unwrap().unwrap();
            first.abort();
            assert!(first.await.is_err_and(|error| error.is_cancelled()));

            let number = || cache.slots().loading.get(&key("a")).map(|loading| loading.number);
            let of_first = number();
            let (end_second, second_may_end) = channel::<()>();
            let second = tokio::spawn({
                let cache = cache.clone();
                let read = move |_: &AtomicBool| {
                    second_may_end.recv().unwrap();
                    Ok(opened())
                };
                async move { cache.get(key("a"), read).await }
            });
            // The second has taken the place of the first, and goes on when that one ends.
            while number() == of_first {
                sleep(Duration::from_millis(1)).await;
            }
            let until_free = async |readers| {
                while cache.readers.available_permits() != readers {
                    sleep(Duration::from_millis(1)).await;
                }
            };
            until_free(CacheLimits::READERS - 2).await;
            end_first.send(()).unwrap();
            until_free(CacheLimits::READERS - 1).await;
            sleep(Duration::from_millis(20)).await;
            assert!(number().is_some());
            let third = tokio::spawn({
                let cache = cache.clone();
                async move { cache.get(key("a"), unread).await }
            });
            end_second.send(()).unwrap();
            assert!(Arc::ptr_eq(&second.await.unwrap().unwrap(), &third.await.unwrap().unwrap()));
        });
    }

    #[test]
    fn what_was_not_used_for_the_longest_time_goes_first() {
        Runtime::new().unwrap().block_on(async {
            let cache = Arc::new(Cache::new(usize::MAX));
            for place in 0..CacheLimits::INPUTS {
                cache.get(key(&place.to_string()), |_| Ok(opened())).await.unwrap();
            }
            cache.get(key("0"), unread).await.unwrap();
            cache.get(key("new"), |_| Ok(opened())).await.unwrap();
            cache.get(key("0"), unread).await.unwrap();
            assert_eq!(cache.slots().ready.len(), CacheLimits::INPUTS);
            assert!(!cache.slots().ready.contains_key(&key("1")));
        });
    }

    #[test]
    fn a_panic_of_a_reader_is_an_answer_and_the_next_one_reads() {
        Runtime::new().unwrap().block_on(async {
            let cache = Arc::new(Cache::new(0));
            let failed = cache.get(key("a"), |_| panic!("a bug")).await;
            assert_eq!(failed.err().unwrap().kind, RefusalKind::Internal);
            cache.get(key("a"), |_| Ok(opened())).await.unwrap();
        });
    }
}
