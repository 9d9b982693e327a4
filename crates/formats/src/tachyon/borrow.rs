//! Names for the frames of a file that lost its tables, from another run of the same program.
//!
//! Frames are numbered in order of first use, so two runs that began alike numbered the same frames alike, for as long
//! as they ran alike. The shape of their stacks shows how long that was: which frame called which when it was first
//! seen, and how deep. Numbers up to the first difference are named; later names would be guesses.

use hashbrown::HashMap;

use super::read::Reader;
use super::tables::Tables;
use crate::{Error, ReadOptions, Warning};

/// The caller and depth of each frame when it was first seen.
type Shape = HashMap<u32, (Option<u32>, usize)>;

impl<'a> Reader<'a> {
    /// Takes strings and frames from `sibling`, the whole file of another run of the same program, if this file has
    /// lost its own: `bytes` is this file. A warning reports what was borrowed.
    ///
    /// # Errors
    /// If the sibling cannot be read.
    pub fn borrow_tables(&mut self, bytes: &[u8], sibling: &'a [u8]) -> Result<(), Error> {
        if self.has_tables {
            self.say("no tables were borrowed: the file has its own".to_owned());
            return Ok(());
        }
        let lender = Reader::new(sibling)?;
        let tables = lender.tables().clone();
        let theirs = shape(lender)?;
        let ours = shape(Reader::with_options(bytes, ReadOptions::lenient())?)?;
        let count = alike(&ours, &theirs, tables.frame_count());
        let named = ours.keys().filter(|&&frame| (frame as usize) < count).count();
        self.say(format!(
            "tables borrowed by shape from another file: {named} of {} frames are named, which both files \
             number alike as far as their stacks show",
            ours.len()
        ));
        let Tables { strings, mut frames, .. } = tables;
        frames.truncate(count);
        self.tables = Tables::new(strings, frames);
        Ok(())
    }

    fn say(&mut self, message: String) {
        self.recovery.warn(Warning::new(message));
    }
}

fn shape(mut reader: Reader<'_>) -> Result<Shape, Error> {
    let mut shape = Shape::new();
    while let Some(sample) = reader.next_sample()? {
        for depth in sample.kept..sample.frames_root_first.len() {
            let caller = depth.checked_sub(1).map(|caller| sample.frames_root_first[caller]);
            shape.entry(sample.frames_root_first[depth]).or_insert((caller, depth));
        }
    }
    Ok(shape)
}

/// The number of frames, from the first on, that were first seen alike or not seen in the damaged file.
fn alike(ours: &Shape, theirs: &Shape, frames: usize) -> usize {
    let differs = |frame: &u32| ours.get(frame).is_some_and(|seen| theirs.get(frame) != Some(seen));
    let first = (0..).take(frames).find(differs);
    first.map_or(frames, |frame| frame as usize)
}
