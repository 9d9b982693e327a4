//! Sampled allocations, with their stacks.
//!
//! The program's threads put samples into a fixed place and go on; a source records them. An allocation may happen while the
//! thread holds any lock of the recorder, so nothing here may wait for one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use std::{io, mem};

use borehole_memory::{AllocationObserver, sample_allocations, unfollowed_blocks, visit_stack};

use crate::clock::now_ns;
use crate::events::{AllocEvent, FreeEvent};
use crate::recorder::Handle;
use crate::source::{Source, SourceState};
use crate::trc::{StackFrames, TraceEvent};

/// Samples of allocations were dropped, because they came too fast. Source: dial9 0.5.7.
#[derive(TraceEvent, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryProfileOverflowEvent {
    /// The time.
    #[traceevent(timestamp)]
    pub timestamp_ns: u64,
    /// The number of allocations since the last such event.
    pub dropped_allocs: u64,
    /// The number of frees since the last such event.
    pub dropped_frees: u64,
}

/// The most frames of a stack.
const MOST_FRAMES: usize = 64;

/// The most samples that wait to be recorded: 2,000 samples are a GiB between two looks at the default rate of dial9.
const MOST_SAMPLES: usize = 2_000;

const EVERY: Duration = Duration::from_millis(20);

/// A sample.
struct AllocationSample {
    timestamp_ns: u64,
    tid: u32,
    address: usize,
    size: usize,
    kind: SampleOf,
}

#[expect(clippy::large_enum_variant, reason = "a sample may not allocate")]
enum SampleOf {
    Allocation { frames: [u64; MOST_FRAMES], count: usize },
    Free { allocated_ns: u64 },
}

/// The samples that wait, in memory that is allocated before there is one.
static SAMPLES: Mutex<Vec<AllocationSample>> = Mutex::new(Vec::new());
static DROPPED_ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static DROPPED_FREES: AtomicU64 = AtomicU64::new(0);

impl Handle {
    /// Samples an allocation about every `mean_bytes` bytes, with its stack, and its end. The program must have
    /// [`SampledAllocator`](crate::SampledAllocator) as its global allocator. Another call changes the rate.
    ///
    /// # Errors
    /// If another recording of the process does that already, or the system cannot create a thread.
    pub fn sample_allocations(&self, mean_bytes: u64) -> io::Result<()> {
        let mean_bytes = usize::try_from(mean_bytes).unwrap_or(usize::MAX);
        lock(|samples| samples.reserve(MOST_SAMPLES));
        if !sample_allocations(mean_bytes, AllocationObserver { allocated, freed }) {
            return Err(io::Error::other("allocations are sampled already, maybe by another recording"));
        }
        self.look_up_names()?;
        self.set_metadata("memory.sample_rate_bytes", &mean_bytes.to_string());
        self.add_source(Box::new(AllocationSource { samples: Vec::with_capacity(MOST_SAMPLES) }))
    }
}

fn lock<T>(act: impl FnOnce(&mut Vec<AllocationSample>) -> T) -> T {
    act(&mut SAMPLES.lock().unwrap_or_else(PoisonError::into_inner))
}

fn allocated(address: usize, size: usize) -> u64 {
    let (mut frames, mut count) = ([0; MOST_FRAMES], 0);
    visit_stack(|frame, function| {
        if function == (allocated as fn(usize, usize) -> u64) as usize {
            count = 0;
        } else {
            frames[count] = frame as u64;
            count += 1;
        }
        count < MOST_FRAMES
    });
    let timestamp_ns = now_ns();
    put(timestamp_ns, address, size, SampleOf::Allocation { frames, count }, &DROPPED_ALLOCATIONS);
    timestamp_ns
}

fn freed(address: usize, size: usize, allocated_ns: u64) {
    put(now_ns(), address, size, SampleOf::Free { allocated_ns }, &DROPPED_FREES);
}

fn put(timestamp_ns: u64, address: usize, size: usize, kind: SampleOf, dropped: &AtomicU64) {
    // Whoever holds the lock only pushes or swaps, so a thread that does not get it at once is rare.
    match SAMPLES.try_lock() {
        Ok(mut samples) if samples.len() < samples.capacity() => {
            samples.push(AllocationSample { timestamp_ns, tid: tid(), address, size, kind });
        }
        _ => drop(dropped.fetch_add(1, Ordering::Relaxed)),
    }
}

/// The system's number of the thread; 0 if the system does not provide it.
fn tid() -> u32 {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    return u32::try_from(nix::unistd::gettid().as_raw()).unwrap_or(0);
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    0
}

/// Records the samples that wait.
struct AllocationSource {
    samples: Vec<AllocationSample>,
}

impl Source for AllocationSource {
    fn name(&self) -> &'static str {
        "allocations"
    }

    fn interval(&self) -> Duration {
        EVERY
    }

    fn sample(&mut self, handle: &Handle) -> SourceState {
        lock(|samples| mem::swap(samples, &mut self.samples));
        for sample in self.samples.drain(..) {
            sample.record(handle);
        }
        let [dropped_allocs, dropped_frees] =
            [&DROPPED_ALLOCATIONS, &DROPPED_FREES].map(|count| count.swap(0, Ordering::Relaxed));
        if dropped_allocs + dropped_frees > 0 {
            handle.record_now(|timestamp_ns| MemoryProfileOverflowEvent {
                timestamp_ns,
                dropped_allocs,
                dropped_frees,
            });
        }
        if unfollowed_blocks() > 0 {
            handle.set_metadata("memory.unfollowed_blocks", &unfollowed_blocks().to_string());
        }
        SourceState::Continues
    }
}

impl AllocationSample {
    fn record(&self, handle: &Handle) {
        let (timestamp_ns, tid) = (self.timestamp_ns, self.tid);
        let (addr, size) = (self.address as u64, self.size as u64);
        match &self.kind {
            SampleOf::Allocation { frames, count } => {
                let frames = &frames[..*count];
                handle.name_stack(frames);
                let callchain = StackFrames::from(frames);
                handle.record(&AllocEvent { timestamp_ns, tid, size, addr, callchain });
            }
            SampleOf::Free { allocated_ns } => {
                let alloc_timestamp_ns = *allocated_ns;
                handle.record(&FreeEvent { timestamp_ns, tid, addr, size, alloc_timestamp_ns });
            }
        }
    }
}
