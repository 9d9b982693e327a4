//! An allocator that reports one allocation in so many bytes.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// An allocator that passes every call on to another one, and reports sampled blocks to an [`AllocationObserver`].
///
/// An allocation is sampled with a probability that grows with its size, so that sizes of samples add up to those of all
/// allocations. Without an observer, a call costs a comparison more.
///
/// # Examples
///
/// ```
/// use borehole_memory::SampledAllocator;
///
/// #[global_allocator]
/// static ALLOCATOR: SampledAllocator = SampledAllocator::new();
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct SampledAllocator<A = System>(A);

/// Receives sampled blocks, on the thread that allocates or frees them. While it runs, the thread's allocations are not
/// sampled. It must not wait for another thread.
#[derive(Clone, Copy, Debug)]
pub struct AllocationObserver {
    /// A block was allocated: its address and size. The returned number is given to `freed`.
    pub allocated: fn(usize, usize) -> u64,
    /// A sampled block is freed: its address, its size and the number from `allocated`.
    pub freed: fn(usize, usize, u64),
}

static OBSERVER: OnceLock<AllocationObserver> = OnceLock::new();

/// The average number of bytes between two samples; 0: nothing is sampled.
static MEAN_BYTES: AtomicUsize = AtomicUsize::new(0);

/// The number of sampled blocks that were not followed, because there were too many in one place of the table.
static UNFOLLOWED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The number of bytes that this thread allocates before the next sample.
    static LEFT: Cell<u64> = const { Cell::new(0) };
    /// The state of the thread's random numbers; 0 before the first.
    static RANDOM: Cell<u64> = const { Cell::new(0) };
    static IS_OBSERVING: Cell<bool> = const { Cell::new(false) };
}

/// The table of sampled blocks that are not freed: so many groups of slots, each as long as a line of the cache. A free
/// looks into one group.
const GROUPS: usize = 1024;
const GROUP_SLOTS: usize = 8;

static ADDRESSES: [AtomicUsize; GROUPS * GROUP_SLOTS] = [const { AtomicUsize::new(0) }; GROUPS * GROUP_SLOTS];
static TOKENS: [AtomicU64; GROUPS * GROUP_SLOTS] = [const { AtomicU64::new(0) }; GROUPS * GROUP_SLOTS];

/// Starts to sample, or changes the rate: an allocation about every `mean_bytes` bytes, none if that is 0. Returns whether
/// `observer` receives the samples: the observer of the first call stays.
pub fn sample_allocations(mean_bytes: usize, observer: AllocationObserver) -> bool {
    let is_new = OBSERVER.set(observer).is_ok();
    MEAN_BYTES.store(mean_bytes, Ordering::Relaxed);
    is_new
}

/// The number of sampled blocks whose end is not reported, because too many are alive.
#[must_use]
pub fn unfollowed_blocks() -> u64 {
    UNFOLLOWED.load(Ordering::Relaxed)
}

impl SampledAllocator {
    /// The system's allocator.
    #[must_use]
    pub const fn new() -> Self {
        Self(System)
    }
}

impl<A> SampledAllocator<A> {
    /// Another allocator.
    pub const fn over(allocator: A) -> Self {
        Self(allocator)
    }
}

#[inline]
fn allocated(block: *mut u8, size: usize) {
    let mean_bytes = MEAN_BYTES.load(Ordering::Relaxed);
    if mean_bytes == 0 || block.is_null() {
        return;
    }
    // A thread that is ending is not sampled.
    let is_due = LEFT.try_with(|left| match left.get().checked_sub(size as u64) {
        Some(rest) => {
            left.set(rest);
            false
        }
        None => true,
    });
    if is_due == Ok(true) {
        sample(block.addr(), size, mean_bytes);
    }
}

#[cold]
fn sample(address: usize, size: usize, mean_bytes: usize) {
    let is_first = RANDOM.get() == 0;
    LEFT.set(gap(mean_bytes));
    // The first gap of a thread begins with it, like all others.
    if is_first || IS_OBSERVING.get() {
        return;
    }
    if let Some(observer) = OBSERVER.get() {
        let token = observed(|| (observer.allocated)(address, size));
        follow(address, token);
    }
}

fn observed<T>(call: impl FnOnce() -> T) -> T {
    IS_OBSERVING.set(true);
    let result = call();
    IS_OBSERVING.set(false);
    result
}

/// A random number of bytes, with an exponential distribution.
fn gap(mean_bytes: usize) -> u64 {
    let mut state = RANDOM.get();
    if state == 0 {
        // The place of the thread's own variable differs from that of other threads.
        state = RANDOM.with(|random| std::ptr::from_ref(random).addr() as u64) ^ 0x9E37_79B9_7F4A_7C15;
    }
    // xorshift64: Marsaglia, "Xorshift RNGs", 2003.
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    RANDOM.set(state.max(1));
    let random = ((state >> 11) as f64 + 1.0) / (1_u64 << 53) as f64;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is positive, and saturates"
    )]
    let gap = (-random.ln() * mean_bytes as f64) as u64;
    gap
}

fn group(address: usize) -> usize {
    let mixed = (address as u64 >> 4).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((mixed >> 40) as usize % GROUPS) * GROUP_SLOTS
}

fn follow(address: usize, token: u64) {
    let group = group(address);
    let claim = |slot: &usize| {
        ADDRESSES[*slot].compare_exchange(0, address, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    };
    match (group..group + GROUP_SLOTS).find(claim) {
        // Whoever frees the block got its address after this.
        Some(slot) => TOKENS[slot].store(token, Ordering::Relaxed),
        None => drop(UNFOLLOWED.fetch_add(1, Ordering::Relaxed)),
    }
}

/// Stops to follow a block. Returns its number if it was sampled.
#[inline]
fn forget(block: *mut u8) -> Option<u64> {
    if MEAN_BYTES.load(Ordering::Relaxed) == 0 {
        return None;
    }
    let (address, group) = (block.addr(), group(block.addr()));
    let slot =
        (group..group + GROUP_SLOTS).find(|slot| ADDRESSES[*slot].load(Ordering::Relaxed) == address)?;
    let token = TOKENS[slot].load(Ordering::Relaxed);
    ADDRESSES[slot].store(0, Ordering::Relaxed);
    Some(token)
}

#[cold]
fn freed(address: usize, size: usize, token: u64) {
    if let Some(observer) = OBSERVER.get()
        && IS_OBSERVING.try_with(Cell::get) == Ok(false)
    {
        observed(|| (observer.freed)(address, size, token));
    }
}

#[expect(unsafe_code, reason = "an allocator is unsafe; this one passes every call on to another one")]
// SAFETY: every block comes from the inner allocator, which gets each call as its caller made it. Sampling does not touch
// blocks, and does not unwind unless the observer does.
unsafe impl<A: GlobalAlloc> GlobalAlloc for SampledAllocator<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps to the contract of `alloc`.
        let block = unsafe { self.0.alloc(layout) };
        allocated(block, layout.size());
        block
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps to the contract of `alloc_zeroed`.
        let block = unsafe { self.0.alloc_zeroed(layout) };
        allocated(block, layout.size());
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // Before it is free: another thread may get the address at once.
        if let Some(token) = forget(block) {
            freed(block.addr(), layout.size(), token);
        }
        // SAFETY: the caller keeps to the contract of `dealloc`.
        unsafe { self.0.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let (address, token) = (block.addr(), forget(block));
        // SAFETY: the caller keeps to the contract of `realloc`.
        let grown = unsafe { self.0.realloc(block, layout, size) };
        match token {
            Some(token) if grown.is_null() => follow(address, token),
            Some(token) => freed(address, layout.size(), token),
            None => {}
        }
        allocated(grown, size);
        grown
    }
}

/// Visits the return addresses of the calling thread, the leaf first, each with the address of its function, until `visit`
/// returns false. It does not allocate, and takes no lock of this program's.
#[cfg(all(unix, feature = "stacks"))]
#[expect(unsafe_code, reason = "the function that takes a lock would wait while other threads look up names")]
pub fn visit_stack(mut visit: impl FnMut(usize, usize) -> bool) {
    let mut frame = |frame: &backtrace::Frame| visit(frame.ip().addr(), frame.symbol_address().addr());
    // SAFETY: it must be synchronized on Windows only, for `dbghelp`. The unwinder of Unix systems, `_Unwind_Backtrace`, may
    // run on any number of threads.
    unsafe { backtrace::trace_unsynchronized(&mut frame) }
}
