//! The process of a segment.

/// The process named by the metadata of a segment that have been read or written.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SegmentProcess {
    process: Option<i64>,
    is_named: bool,
}

impl SegmentProcess {
    /// The metadata key of a process.
    pub(super) const KEY: &'static [u8] = b"pid";

    /// Takes an entry. A segment of several processes has no process: each of its samples names one.
    pub(super) fn metadata(&mut self, key: &[u8], value: &[u8]) {
        if key == Self::KEY {
            let process = std::str::from_utf8(value).ok().and_then(|pid| pid.parse().ok());
            let is_another = std::mem::replace(&mut self.is_named, true);
            self.process = process.filter(|_| !is_another || process == self.process);
        }
    }

    /// The process of samples that name none.
    #[inline]
    pub(super) const fn process(self) -> Option<i64> {
        self.process
    }

    /// Whether there was such an entry.
    pub(super) const fn is_named(self) -> bool {
        self.is_named
    }
}
