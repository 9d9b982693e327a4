//! Counts allocations of a piece of code.
//!
//! With the feature `allocations`, every allocation of the program goes through a counter, so only tests enable it.

/// The allocations of a piece of code on its own thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocations {
    /// The number of allocations.
    pub count: u64,
    /// The bytes of all allocations together.
    pub bytes: u64,
    /// The most bytes that it held at a time, in addition to those held before.
    pub peak_bytes: u64,
}

/// Runs `code` and counts what it allocates.
///
/// # Panics
/// If `code` panics.
pub fn allocations<R>(code: impl FnOnce() -> R) -> (R, Allocations) {
    let mut result = None;
    let info = allocation_counter::measure(|| result = Some(code()));
    let found = Allocations { count: info.count_total, bytes: info.bytes_total, peak_bytes: info.bytes_max };
    (result.expect("the code has run"), found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_allocations_are_counted_and_the_peak_is_held_at_once() {
        let ((), none) = allocations(|| {});
        assert_eq!((none.count, none.bytes, none.peak_bytes), (0, 0, 0));
        let ((), some) = allocations(|| {
            drop(std::hint::black_box(vec![0_u8; 1000]));
            drop(std::hint::black_box(vec![0_u8; 500]));
        });
        assert_eq!((some.count, some.bytes, some.peak_bytes), (2, 1500, 1000));
    }
}
