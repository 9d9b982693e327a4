//! A program whose allocations are sampled.

#![allow(clippy::unwrap_used, reason = "tests fail by panics")]

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

use borehole_memory::{AllocationObserver, SampledAllocator, sample_allocations, unfollowed_blocks};

#[global_allocator]
static ALLOCATOR: SampledAllocator = SampledAllocator::new();

static ALLOCATED: AtomicU64 = AtomicU64::new(0);
static FREED: AtomicU64 = AtomicU64::new(0);
static MISMATCHES: AtomicUsize = AtomicUsize::new(0);

/// The size that this test allocates and nothing else does.
const BLOCK_BYTES: usize = 10_007;

const BLOCKS: u64 = 200_000;
const THREADS: u64 = 4;

/// The mean distance of samples.
const MEAN_BYTES: usize = 64 << 10;

#[test]
fn samples_stand_for_the_bytes_that_were_allocated_and_each_is_freed_once() {
    let observer = AllocationObserver {
        allocated: |address, size| {
            // An observer may allocate.
            black_box(vec![0_u8; 100]);
            if size == BLOCK_BYTES {
                ALLOCATED.fetch_add(1, Ordering::Relaxed);
            }
            address as u64
        },
        freed: |address, size, token| {
            if size == BLOCK_BYTES {
                FREED.fetch_add(1, Ordering::Relaxed);
            }
            MISMATCHES.fetch_add(usize::from(address as u64 != token), Ordering::Relaxed);
        },
    };
    assert!(sample_allocations(MEAN_BYTES, observer));
    assert!(!sample_allocations(MEAN_BYTES, observer), "the first one stays");
    let work = || {
        for _ in 0..BLOCKS / THREADS / 100 {
            let blocks: Vec<Vec<u8>> = (0..100).map(|_| Vec::with_capacity(BLOCK_BYTES)).collect();
            // Blocks that move to another thread are freed there.
            thread::spawn(move || drop(black_box(blocks))).join().unwrap();
        }
    };
    let threads: Vec<_> = (0..THREADS).map(|_| thread::spawn(work)).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    sample_allocations(0, observer);
    let (allocated, freed) = (ALLOCATED.load(Ordering::Relaxed), FREED.load(Ordering::Relaxed));
    // One in 6.55 or so: 30,500 in the mean, with a standard deviation of less than 180.
    let bytes = allocated * MEAN_BYTES as u64;
    let truth = BLOCKS * BLOCK_BYTES as u64;
    assert!(bytes.abs_diff(truth) < truth / 5, "{allocated} samples for {truth} bytes");
    assert_eq!(allocated, freed + unfollowed_blocks());
    assert_eq!(MISMATCHES.load(Ordering::Relaxed), 0);
}
