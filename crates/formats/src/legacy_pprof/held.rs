//! Samples that wait for the list of mapped files.

use borehole_model::{
    Context, Frame, FrameId, LabelsId, NativeFrame, ProfileSink, Sample, Segment, StackId, TableFull, Tables,
};
use hashbrown::HashMap;

use super::maps::{self, MappedFile};
use crate::documents::whole::DocumentDamage;
use crate::{Error, Position, ReadError};

/// The samples between checks of their memory.
const CHECKED_SAMPLES: usize = 256;

/// A sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeldSample {
    pub(super) count: u64,
    pub(super) stack: HeldStack,
    pub(super) labels: Option<LabelsId>,
}

/// The stack of a sample.
#[derive(Clone, Copy, Debug)]
pub(super) enum HeldStack {
    Named(Option<StackId>),
    /// Where its addresses begin and end.
    Addresses(usize, usize),
}

/// All samples of a profile.
#[derive(Debug, Default)]
pub(super) struct HeldSamples {
    pub(super) samples: Vec<HeldSample>,
    /// The values of all samples, each as many as there are value types.
    pub(super) values: Vec<i64>,
    /// The addresses of all stacks, from the leaf to the root.
    pub(super) addresses: Vec<u64>,
    pub(super) files: Vec<MappedFile>,
}

impl HeldSamples {
    /// Checks the memory held, once in a while.
    pub(super) fn check(
        &self,
        format: &'static str,
        at: Position,
        damage: &DocumentDamage,
    ) -> Result<(), Error> {
        if !(self.samples.len() + self.files.len()).is_multiple_of(CHECKED_SAMPLES) {
            return Ok(());
        }
        let held = size_of::<HeldSample>() * self.samples.capacity()
            + size_of::<u64>() * (self.values.capacity() + self.addresses.capacity())
            + size_of::<MappedFile>() * self.files.capacity();
        damage.limits.check(held).map_err(|over| Error::memory(format, at, over))
    }

    /// Passes a segment with the samples to `sink`.
    ///
    /// # Errors
    /// If the tables are full, or the sink fails.
    pub(super) fn deliver(
        mut self,
        segment: &Segment,
        damage: &mut DocumentDamage,
        tables: &mut Tables,
        sink: &mut dyn ProfileSink,
    ) -> Result<(), ReadError> {
        maps::sort(&mut self.files);
        sink.segment(Context { tables, segment })?;
        damage.recovery.segments += 1;
        let (columns, mut frames) = (segment.value_types.len(), AddressFrames::default());
        let mut frames_leaf_first = Vec::new();
        for (index, sample) in self.samples.iter().enumerate() {
            let stack = match sample.stack {
                HeldStack::Named(stack) => stack,
                HeldStack::Addresses(start, end) => {
                    frames_leaf_first.clear();
                    for &address in &self.addresses[start..end] {
                        frames_leaf_first.push(frames.frame(address, &self.files, tables)?);
                    }
                    tables.intern_stack_leaf_first(&frames_leaf_first)?
                }
            };
            let HeldSample { count, labels, .. } = *sample;
            let values = &self.values[index * columns..(index + 1) * columns];
            damage.recovery.samples = damage.recovery.samples.saturating_add(count);
            let sample = Sample { stack, count, labels, values, ..Sample::default() };
            damage.recovery.stopped = sink.sample(Context { tables, segment }, &sample)?.is_break();
            if damage.recovery.stopped {
                break;
            }
        }
        Ok(())
    }
}

/// Frames by address.
#[derive(Debug, Default)]
struct AddressFrames(HashMap<u64, FrameId>);

impl AddressFrames {
    fn frame(
        &mut self,
        address: u64,
        files: &[MappedFile],
        tables: &mut Tables,
    ) -> Result<FrameId, TableFull> {
        if let Some(&known) = self.0.get(&address) {
            return Ok(known);
        }
        let file = maps::find(files, address);
        let shown = file.map_or(address, |file| file.in_file(address));
        let function = tables.intern_string(format!("{shown:#x}").as_bytes())?;
        let native = match file {
            Some(file) => Some(NativeFrame {
                module: tables.intern_string(&file.name)?,
                offset: None,
                file_offset: None,
            }),
            None => None,
        };
        let frame = tables.intern_frame(&Frame { native, ..Frame::named(function) })?;
        self.0.insert(address, frame);
        Ok(frame)
    }
}
