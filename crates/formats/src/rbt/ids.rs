//! The numbers of frames and stacks in a segment, and the ids of them for callers, which include their segment.

use std::io;
use std::num::{NonZeroU32, NonZeroU64};
use std::sync::atomic::{AtomicU32, Ordering};

/// A frame that the current segment defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FrameId(NonZeroU64);

/// A stack that the current segment defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StackId(NonZeroU64);

/// The number of a frame in the segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FrameNumber(pub(super) u32);

/// The number of a stack in the segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct StackNumber(pub(super) u32);

/// The number of a segment, different for each one that the process writes.
///
/// It is in the lower half of the ids, and the frame's or stack's number is in the upper half: removing the id's own
/// segment leaves the number, and removing another segment leaves more than any number.
#[derive(Clone, Copy, Debug)]
pub(super) struct SegmentId(NonZeroU64);

impl SegmentId {
    pub(super) fn next() -> Self {
        static BEFORE: AtomicU32 = AtomicU32::new(0);
        // Numbers repeat after 2^32 segments. There is one number less than that, so two successive segments have the
        // largest one.
        let number = NonZeroU32::MIN.saturating_add(BEFORE.fetch_add(1, Ordering::Relaxed));
        Self(number.into())
    }

    pub(super) fn frame(self, number: FrameNumber) -> FrameId {
        FrameId(self.0 | (u64::from(number.0) << 32))
    }

    #[inline]
    pub(super) fn stack(self, number: StackNumber) -> StackId {
        StackId(self.0 | (u64::from(number.0) << 32))
    }

    /// The number of a frame in this segment.
    ///
    /// # Errors
    /// If another segment defines it.
    pub(super) fn number_of_frame(self, id: FrameId) -> io::Result<FrameNumber> {
        u32::try_from(self.strip(id.0)).map(FrameNumber).map_err(|_| foreign("frame"))
    }

    /// The number of a stack in this segment.
    ///
    /// # Errors
    /// If another segment defines it.
    #[inline]
    pub(super) fn number_of_stack(self, id: StackId) -> io::Result<StackNumber> {
        u32::try_from(self.strip_stack(id)).map(StackNumber).map_err(|_| foreign("stack"))
    }

    /// The number of a stack in this segment; 2³² or more if another segment defines it.
    #[inline]
    pub(super) const fn strip_stack(self, id: StackId) -> u64 {
        self.strip(id.0)
    }

    #[inline]
    const fn strip(self, id: NonZeroU64) -> u64 {
        (id.get() ^ self.0.get()).rotate_left(32)
    }
}

#[cold]
fn foreign(what: &str) -> io::Error {
    let message = format!("{what} belongs to another segment");
    io::Error::new(io::ErrorKind::InvalidInput, message)
}
