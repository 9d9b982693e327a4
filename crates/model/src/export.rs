//! The parts that all exporters share.

use std::io;

use crate::{ProfileSink, ValueType};

/// A sink that writes a file format.
///
/// The output is incomplete before [`ProfileSink::finish`].
pub trait Export: ProfileSink {
    /// The data of the samples that the format cannot hold, for one message to the user after `finish`.
    fn losses(&self) -> Losses;

    /// Passes the value type of the counts to a single-value format, before the first sample and only if they do not count
    /// samples. Ignored by default; formats that state the value type override it.
    fn counted(&mut self, _value_type: &ValueType) {}

    /// Moves the output so far to a place where it survives the program, if there is one. Does nothing by default.
    ///
    /// # Errors
    /// If it cannot be written.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<E: Export + ?Sized> Export for Box<E> {
    fn losses(&self) -> Losses {
        (**self).losses()
    }

    fn counted(&mut self, value_type: &ValueType) {
        (**self).counted(value_type);
    }

    fn flush(&mut self) -> io::Result<()> {
        (**self).flush()
    }
}

/// The data that a target format could not hold, with counts.
///
/// # Examples
///
/// ```
/// use borehole_model::Losses;
///
/// let mut losses = Losses::default();
/// losses.add("timestamps", 7);
/// losses.add("annotations", 0);
/// losses.add("timestamps", 5);
/// assert_eq!(losses.to_string(), "timestamps dropped: 12");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    counts: Vec<(&'static str, u64)>,
}

impl Losses {
    /// Counts `count` more of `what`, a plural such as "annotations". Records nothing for 0.
    pub fn add(&mut self, what: &'static str, count: u64) {
        if count == 0 {
            return;
        }
        match self.counts.iter_mut().find(|(name, _)| *name == what) {
            Some((_, sum)) => *sum = sum.saturating_add(count),
            None => self.counts.push((what, count)),
        }
    }

    /// Whether nothing was lost.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// The losses with their counts, in the order of first loss.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.counts.iter().copied()
    }
}

/// An object with a count for each thing lost.
#[cfg(feature = "serde")]
impl serde::Serialize for Losses {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl std::fmt::Display for Losses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, (what, count)) in self.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{what} dropped: {count}")?;
        }
        Ok(())
    }
}
