//! Internal to [Borehole](https://docs.rs/borehole), whose own crates alone depend on it. Its interface may change at any time.
//!
//! The memory that a program holds, counted as it is allocated, and a budget for it.
//!
//! A program that installs [`CountingAllocator`] and calls [`set_budget`] can read hostile files: readers and writers call
//! [`check`] while they work, and stop with an error when the program holds more than the budget. What grows without a check
//! ends at [`on_refusal`]'s function, once it asks for a quarter more.
//!
//! [`SampledAllocator`] reports one allocation in so many bytes, for programs that record themselves.
//!
//! The counts are those of the whole process. In a program that does not install the allocator they stay 0, and no budget is
//! ever exceeded.

mod sampling;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{error, fmt, io};

#[cfg(all(unix, feature = "stacks"))]
pub use sampling::visit_stack;
pub use sampling::{AllocationObserver, SampledAllocator, sample_allocations, unfollowed_blocks};

/// Bytes that are allocated and not freed.
static HELD: AtomicUsize = AtomicUsize::new(0);
/// Bytes that the program may hold.
static BUDGET: AtomicUsize = AtomicUsize::new(usize::MAX);
/// The function that is called when an allocation is refused.
static REFUSED: OnceLock<fn(Refusal)> = OnceLock::new();

/// The system's allocator, with a count of the bytes that are held.
///
/// # Examples
///
/// ```
/// use borehole_memory::CountingAllocator;
///
/// #[global_allocator]
/// static ALLOCATOR: CountingAllocator = CountingAllocator;
///
/// let before = borehole_memory::held();
/// let block = vec![0u8; 1 << 20];
/// assert!(borehole_memory::held() >= before + block.len());
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct CountingAllocator;

/// A collection that knows the size of its own allocations, for limits that hold without [`CountingAllocator`] as well.
pub trait HeldBytes {
    /// The bytes allocated, used or not. What the elements have allocated is not among them.
    fn held_bytes(&self) -> usize;
}

impl<T> HeldBytes for Vec<T> {
    fn held_bytes(&self) -> usize {
        self.capacity().saturating_mul(size_of::<T>())
    }
}

impl HeldBytes for String {
    fn held_bytes(&self) -> usize {
        self.capacity()
    }
}

/// Why an allocation was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The program would have held far more than its budget.
    Budget {
        /// The budget, in bytes.
        budget: usize,
    },
    /// The system has no more memory for the program.
    System {
        /// The bytes that were asked for.
        asked: usize,
    },
}

/// The program holds more memory than its budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverBudget {
    /// The budget, in bytes.
    pub budget: usize,
}

/// The bytes that the program holds.
#[must_use]
pub fn held() -> usize {
    HELD.load(Ordering::Relaxed)
}

/// The bytes that the program may hold; `usize::MAX` if nobody set a budget.
#[must_use]
pub fn budget() -> usize {
    BUDGET.load(Ordering::Relaxed)
}

/// Sets the bytes that the program may hold.
pub fn set_budget(bytes: usize) {
    BUDGET.store(bytes, Ordering::Relaxed);
}

/// Sets the function that is called before an allocation fails, which should end the process: std aborts it otherwise. It must
/// not allocate. The first call counts.
pub fn on_refusal(end: fn(Refusal)) {
    let _ = REFUSED.set(end);
}

/// Whether the program keeps to its budget. It costs as much as a comparison.
///
/// # Errors
/// When the program holds more.
#[inline]
pub fn check() -> Result<(), OverBudget> {
    check_with(0)
}

/// Whether the program would keep to its budget with `more` bytes, which it is sure to need for what it holds.
///
/// # Errors
/// When it would hold more.
#[inline]
pub fn check_with(more: usize) -> Result<(), OverBudget> {
    let budget = budget();
    if held().saturating_add(more) <= budget { Ok(()) } else { Err(OverBudget { budget }) }
}

impl OverBudget {
    /// The cause of an I/O error that was made of it; `None` for other errors.
    #[must_use]
    pub fn of(error: &io::Error) -> Option<Self> {
        error.get_ref()?.downcast_ref().copied()
    }
}

/// "needs more than 4 GiB of memory"; it does not allocate.
impl fmt::Display for OverBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.budget;
        match bytes.trailing_zeros() {
            30.. if bytes > 0 => write!(f, "needs more than {} GiB of memory", bytes >> 30),
            _ if bytes >= 1 << 20 => write!(f, "needs more than {} MiB of memory", bytes >> 20),
            _ => write!(f, "needs more than {bytes} bytes of memory"),
        }
    }
}

impl error::Error for OverBudget {}

impl From<OverBudget> for io::Error {
    fn from(over: OverBudget) -> Self {
        Self::new(io::ErrorKind::OutOfMemory, over)
    }
}

impl From<OverBudget> for String {
    fn from(over: OverBudget) -> Self {
        over.to_string()
    }
}

/// The budget with the quarter that [`check`] may be late by.
fn ceiling() -> usize {
    let budget = budget();
    budget.saturating_add(budget / 4)
}

/// Counts bytes that are asked for; false if the program must not get them.
fn take(bytes: usize) -> bool {
    let held = HELD.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
    held <= ceiling() || {
        give_back(bytes);
        refuse(Refusal::Budget { budget: budget() });
        false
    }
}

fn give_back(bytes: usize) {
    HELD.fetch_sub(bytes, Ordering::Relaxed);
}

/// Returns `block`, unless the system refused it.
fn given(block: *mut u8, asked: usize) -> *mut u8 {
    if block.is_null() {
        give_back(asked);
        refuse(Refusal::System { asked });
    }
    block
}

#[cold]
fn refuse(refusal: Refusal) {
    if let Some(end) = REFUSED.get() {
        end(refusal);
    }
}

#[expect(unsafe_code, reason = "an allocator is unsafe; this one passes every call on to the system's")]
// SAFETY: every block comes from `System`, which gets each call as its caller made it, and counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !take(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller keeps to the contract of `alloc`.
        given(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !take(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller keeps to the contract of `alloc_zeroed`.
        given(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        give_back(layout.size());
        // SAFETY: the caller keeps to the contract of `dealloc`.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let more = size.saturating_sub(layout.size());
        if !take(more) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller keeps to the contract of `realloc`.
        let grown = given(unsafe { System.realloc(block, layout, size) }, more);
        if !grown.is_null() {
            give_back(layout.size().saturating_sub(size));
        }
        grown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[global_allocator]
    static ALLOCATOR: CountingAllocator = CountingAllocator;

    #[test]
    fn what_is_held_follows_allocations_and_the_budget_is_checked() {
        let before = held();
        let mut block = vec![1u8; 10 << 20];
        assert!(held() >= before + (10 << 20), "{} of {before}", held());
        block.truncate(1 << 20);
        block.shrink_to_fit();
        assert!((before + (1 << 20)..before + (9 << 20)).contains(&held()));

        set_budget(before + (512 << 10));
        let over = check().unwrap_err();
        assert_eq!(over, OverBudget { budget: before + (512 << 10) });
        assert!(Vec::<u8>::new().try_reserve_exact(64 << 20).is_err(), "far beyond the budget");
        set_budget(usize::MAX);
        assert_eq!(check(), Ok(()));
        drop(block);
        assert!(held() < before + (1 << 20));
    }
}
