//! Samples that wait for the end of the trace, where the symbols are.

use std::io::{self, BufReader, BufWriter, Read, Seek, Write};

use borehole_model::LabelsId;
use borehole_wire::Cursor;
use hashbrown::HashMap;

/// A sample with the facts of its event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct HeldSample {
    pub(super) time_ns: Option<u64>,
    pub(super) thread: Option<u64>,
    pub(super) process: Option<i64>,
    pub(super) worker: Option<u64>,
    pub(super) task: Option<u64>,
    pub(super) count: u64,
    pub(super) bytes: u64,
    /// A row of the address stacks.
    pub(super) stack: Option<u32>,
    /// A row of [`HeldSamples::labels`].
    pub(super) labels: Option<u32>,
    pub(super) segment: u32,
    /// Whether worker and task must be derived.
    pub(super) is_derived: bool,
}

/// A bit for each optional field, seven numbers, three rows.
const HELD_BYTES: usize = 1 + 7 * 8 + 3 * 4;

/// Samples in a spool: memory grows only with their distinct labels.
pub(super) struct HeldSamples<S: Write> {
    spool: BufWriter<S>,
    labels: Vec<LabelsId>,
    label_rows: HashMap<LabelsId, u32>,
    count: u64,
}

impl<S: Read + Write + Seek> HeldSamples<S> {
    /// Creates an empty list in an empty `spool`.
    pub(super) fn new(spool: S) -> Self {
        Self { spool: BufWriter::new(spool), labels: Vec::new(), label_rows: HashMap::new(), count: 0 }
    }

    pub(super) fn push(&mut self, held: &HeldSample) -> io::Result<()> {
        self.count += 1;
        self.spool.write_all(&held.to_bytes())
    }

    /// The row of a set of labels.
    pub(super) fn label_row(&mut self, labels: LabelsId) -> u32 {
        *self.label_rows.entry(labels).or_insert_with(|| {
            self.labels.push(labels);
            // Ids are dense and have 32 bits themselves.
            u32::try_from(self.labels.len() - 1).unwrap_or(u32::MAX)
        })
    }

    /// The sets of labels by row.
    pub(super) fn take_labels(&mut self) -> Vec<LabelsId> {
        std::mem::take(&mut self.labels)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// All samples in the order of their arrival. [`HeldSamples::clear`] has to follow.
    pub(super) fn samples(&mut self) -> io::Result<impl Iterator<Item = io::Result<HeldSample>>> {
        self.spool.flush()?;
        let spool = self.spool.get_mut();
        spool.rewind()?;
        let mut input = BufReader::new(spool);
        let mut bytes = [0; HELD_BYTES];
        Ok((0..self.count)
            .map(move |_| input.read_exact(&mut bytes).map(|()| HeldSample::from_bytes(&bytes))))
    }

    /// Removes the samples; later ones reuse their space.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        self.count = 0;
        self.labels.clear();
        self.label_rows.clear();
        self.spool.rewind()
    }
}

impl HeldSample {
    fn to_bytes(self) -> [u8; HELD_BYTES] {
        let Self { time_ns, thread, process, worker, task, stack, labels, .. } = self;
        let present = [
            time_ns.is_some(),
            thread.is_some(),
            process.is_some(),
            worker.is_some(),
            task.is_some(),
            stack.is_some(),
            labels.is_some(),
            self.is_derived,
        ];
        let bits = present.iter().rev().fold(0, |bits, &is| bits << 1 | u8::from(is));
        let process = process.map(i64::cast_unsigned);
        let numbers = [time_ns, thread, process, worker, task, Some(self.count), Some(self.bytes)];
        let rows = [stack, labels, Some(self.segment)];
        let mut bytes = [0; HELD_BYTES];
        bytes[0] = bits;
        let (wide, narrow) = bytes[1..].split_at_mut(7 * 8);
        for (place, number) in wide.as_chunks_mut().0.iter_mut().zip(numbers) {
            *place = number.unwrap_or_default().to_le_bytes();
        }
        for (place, row) in narrow.as_chunks_mut().0.iter_mut().zip(rows) {
            *place = row.unwrap_or_default().to_le_bytes();
        }
        bytes
    }

    fn from_bytes(bytes: &[u8; HELD_BYTES]) -> Self {
        let mut cursor = Cursor::new(&bytes[1..], 0);
        let mut number = || cursor.u64_le().unwrap_or_default();
        let numbers = [(); 7].map(|()| number());
        let rows = [(); 3].map(|()| cursor.u32_le().unwrap_or_default());
        let has = |bit: u8| bytes[0] >> bit & 1 == 1;
        Self {
            time_ns: has(0).then_some(numbers[0]),
            thread: has(1).then_some(numbers[1]),
            process: has(2).then_some(numbers[2].cast_signed()),
            worker: has(3).then_some(numbers[3]),
            task: has(4).then_some(numbers[4]),
            count: numbers[5],
            bytes: numbers[6],
            stack: has(5).then_some(rows[0]),
            labels: has(6).then_some(rows[1]),
            segment: rows[2],
            is_derived: has(7),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_come_back_in_order_as_they_were() {
        let full = HeldSample {
            time_ns: Some(u64::MAX),
            thread: Some(7),
            process: Some(-1),
            worker: Some(0),
            task: Some(9),
            count: 1 << 40,
            bytes: 4096,
            stack: Some(0),
            labels: Some(3),
            segment: 2,
            is_derived: true,
        };
        let samples = [full, HeldSample::default(), HeldSample { stack: None, time_ns: None, ..full }];
        let mut held = HeldSamples::new(io::Cursor::new(Vec::new()));
        samples.iter().for_each(|sample| held.push(sample).unwrap());
        let back: Vec<_> = held.samples().unwrap().map(Result::unwrap).collect();
        assert_eq!(back, samples);
        held.clear().unwrap();
        held.push(&full).unwrap();
        let back: Vec<_> = held.samples().unwrap().map(Result::unwrap).collect();
        assert_eq!(back, [full]);
    }
}
