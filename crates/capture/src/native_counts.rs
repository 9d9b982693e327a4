//! Counts of native stacks by how they ended, and of calls of interpreters by whether they were joined.

use std::ops::{AddAssign, Sub};

/// The number of counts in a file.
const COUNTS: usize = 9;

/// Declares the counts, with the keys under which a file states them.
macro_rules! counts {
    ($($(#[$doc:meta])* $count:ident = $key:literal,)+) => {
        /// The number of native stacks by outcome.
        ///
        /// `stacks` is the sum of `whole`, `cut`, `bare` and `corrupted`.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct NativeCounts {
            $($(#[$doc])* pub $count: u64,)+
        }

        impl NativeCounts {
            /// The counts as keys and values, for the metadata of a file.
            #[must_use]
            pub fn facts(&self) -> [(&'static str, u64); COUNTS] {
                [$(($key, self.$count),)+]
            }
        }

        impl AddAssign for NativeCounts {
            fn add_assign(&mut self, other: Self) {
                $(self.$count += other.$count;)+
            }
        }

        impl Sub for NativeCounts {
            type Output = Self;

            fn sub(self, other: Self) -> Self {
                Self { $($count: self.$count.saturating_sub(other.$count),)+ }
            }
        }
    };
}

counts! {
    /// Native stacks.
    stacks = "native.stacks",
    /// Stacks that were followed to their root.
    whole = "native.whole",
    /// Stacks with more frames than are followed, or that go on behind what was copied of them.
    cut = "native.cut",
    /// Stacks that end at code without unwind information.
    bare = "native.no_information",
    /// Stacks that end at memory that is no stack.
    corrupted = "native.corrupted",
    /// Callers of code that a program made, found by a search of the stack.
    searched = "native.searched",
    /// Calls of an interpreter that were joined to their native frame.
    joined = "native.joined",
    /// Calls of an interpreter without a native frame.
    unjoined = "native.unjoined",
    /// Samples that the system has lost, because the buffer for them was full.
    lost = "native.lost",
}
