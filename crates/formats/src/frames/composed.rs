//! A limit on names that are composed of several texts.
//!
//! A file stores a class once, and it stands in the names of all its methods; a path stands in the texts of all frames of a file.
//! Without a limit, a file of one megabyte asks for any amount of memory.

use std::io;

use borehole_model::Tables;

use crate::{Error, ErrorKind, Position};

/// The bytes that composed names may take, whatever they are made of.
const MIN_MOST_BYTES: u64 = 64 << 20;

/// The bytes that they may take for each byte that they are made of. They take less than one in real recordings.
const MAX_RATIO: u64 = 16;

/// The bytes that a frame counts as: the texts of a function and its file may stand in the frames of many lines.
const FRAME_BYTES: usize = 32;

/// The bytes of the names composed so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ComposedBytes(u64);

impl ComposedBytes {
    /// Counts a name, which is made of a part of `source_bytes`.
    ///
    /// # Errors
    /// If all names take too many bytes.
    pub(crate) fn add(&mut self, name: &[u8], source_bytes: u64) -> Result<(), LongNames> {
        self.0 = self.0.saturating_add(name.len() as u64);
        let most = source_bytes.saturating_mul(MAX_RATIO).max(MIN_MOST_BYTES);
        if self.0 > most { Err(LongNames { most }) } else { Ok(()) }
    }

    /// Counts a text that is made of names in `tables`, for an output that holds it.
    ///
    /// # Errors
    /// Those of [`ComposedBytes::add`].
    pub(crate) fn add_text(&mut self, text: &[u8], tables: &Tables) -> io::Result<()> {
        let source_bytes =
            tables.string_bytes().saturating_add(tables.frame_count().saturating_mul(FRAME_BYTES));
        self.add(text, source_bytes as u64).map_err(|long| io::Error::other(long.message()))
    }
}

/// Composed names take more bytes than allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LongNames {
    most: u64,
}

impl LongNames {
    /// The error of an input.
    #[cold]
    pub(crate) fn at(self, format: &'static str, position: Position) -> Error {
        Error::new(ErrorKind::Limit, format, position, self.message())
    }

    fn message(self) -> String {
        format!("names too long: expected at most {} bytes of names of functions", self.most)
    }
}
