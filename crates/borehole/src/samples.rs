//! Samples one by one, on demand.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::{io, ops::ControlFlow};

use borehole_model::{
    Context, Frame, FrameId, Label, ProfileSink, Recovery, Sample, Segment, StackId, TableFull, Tables,
};

use crate::stored::StoredSamples;
use crate::{Error, Input};

/// The number of samples that are handed over at once.
const BATCH: usize = 1024;

/// The samples of an input, one by one: the caller asks, where a [`ProfileSink`] is told.
///
/// A thread of its own reads the input, and waits when it is a few thousand samples ahead. Memory grows with what is distinct
/// in the input. Dropping this ends the thread when it next has something to hand over. Events are not among the samples.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "rbt")] {
/// use borehole::{Input, InputOptions, Samples, Source};
///
/// let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/data/daemon_worker.rbt");
/// let mut samples = Samples::of(Input::open(Source::path(trace)?, &InputOptions::default())?)?;
/// let mut observations = 0;
/// while let Some((at, sample)) = samples.next_sample()? {
///     let leaf = sample.stack.map(|stack| at.tables.function(at.tables.leaf(stack)));
///     observations += leaf.map_or(0, |name| sample.count * u64::from(!at.tables.string(name).is_empty()));
/// }
/// assert_eq!((observations, samples.recovery().map(|recovery| recovery.samples)), (30, Some(30)));
/// # }
/// # Ok::<(), borehole::Error>(())
/// ```
#[derive(Debug)]
pub struct Samples {
    name: String,
    messages: Receiver<Message>,
    tables: Tables,
    batch: StoredSamples,
    next: usize,
    recovery: Option<Recovery>,
    is_ended: bool,
}

enum Message {
    Batch(Box<Batch>),
    End(Result<Recovery, Error>),
}

/// Samples, and the rows that are new in the tables.
#[derive(Default)]
struct Batch {
    strings: Vec<Box<[u8]>>,
    frames: Vec<Frame>,
    stacks: Vec<(Option<StackId>, FrameId)>,
    labels: Vec<Box<[Label]>>,
    samples: StoredSamples,
}

impl Samples {
    /// Begins to read `input`.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn of(input: Input) -> Result<Self, Error> {
        // The reader fills a batch while another waits.
        let (sender, messages) = sync_channel(1);
        let name = input.name().to_owned();
        let read = move || {
            let mut batches = Batches { sender, batch: Batch::default(), last: None };
            let mut tables = Tables::default();
            let read = input.read_into(&mut tables, &mut batches);
            batches.hand_over(&tables);
            // Nobody listens if the samples were dropped.
            let _ = batches.sender.send(Message::End(read));
        };
        let started = thread::Builder::new().name("borehole-samples".to_owned()).spawn(read);
        started.map_err(|source| Error::Open { name: name.clone(), source })?;
        let (tables, batch) = (Tables::default(), StoredSamples::default());
        Ok(Self { name, messages, tables, batch, next: 0, recovery: None, is_ended: false })
    }

    /// The next sample, with the tables that its ids refer to and its segment; `None` at the end of the input.
    ///
    /// # Errors
    /// Those of [`Input::read_into`], after all samples before the error.
    pub fn next_sample(&mut self) -> Result<Option<(Context<'_>, Sample<'_>)>, Error> {
        while self.next == self.batch.len() {
            match self.messages.recv() {
                Ok(Message::Batch(batch)) => self.take(*batch)?,
                Ok(Message::End(read)) => {
                    self.is_ended = true;
                    self.recovery = Some(read?);
                }
                Err(_) if self.is_ended => return Ok(None),
                Err(_) => {
                    let source = io::Error::other("the thread that reads it panicked");
                    return Err(Error::Open { name: self.name.clone(), source });
                }
            }
        }
        self.next += 1;
        let found = self.batch.get(self.next - 1);
        Ok(found.map(|(segment, sample)| {
            (Context { tables: &self.tables, segment: &self.batch.segments()[segment] }, sample)
        }))
    }

    /// The outcome of reading; `None` before the end of the input.
    #[must_use]
    pub const fn recovery(&self) -> Option<&Recovery> {
        self.recovery.as_ref()
    }

    /// Adds the new rows in their order, which gives them the ids of the reader's tables.
    fn take(&mut self, batch: Batch) -> Result<(), Error> {
        let Batch { strings, frames, stacks, labels, samples } = batch;
        self.intern(&strings, &frames, &stacks, &labels)
            .map_err(|full| Error::reading("", io::Error::from(full).into()))?;
        (self.batch, self.next) = (samples, 0);
        Ok(())
    }

    fn intern(
        &mut self,
        strings: &[Box<[u8]>],
        frames: &[Frame],
        stacks: &[(Option<StackId>, FrameId)],
        labels: &[Box<[Label]>],
    ) -> Result<(), TableFull> {
        let tables = &mut self.tables;
        strings.iter().try_for_each(|string| tables.intern_string(string).map(drop))?;
        frames.iter().try_for_each(|frame| tables.intern_frame(frame).map(drop))?;
        stacks.iter().try_for_each(|&(parent, frame)| tables.intern_stack(parent, frame).map(drop))?;
        labels.iter().try_for_each(|labels| tables.intern_labels(labels).map(drop))
    }
}

/// Collects samples for the caller's thread.
struct Batches {
    sender: SyncSender<Message>,
    batch: Batch,
    /// How many rows of the tables were handed over.
    last: Option<[usize; 4]>,
}

impl Batches {
    /// Hands the batch over. Returns whether anybody wants more.
    fn hand_over(&mut self, tables: &Tables) -> bool {
        let rows = [tables.string_count(), tables.frame_count(), tables.stack_count(), tables.labels_count()];
        let before = self.last.replace(rows).unwrap_or_default();
        let new = |table: usize| rows[table] - before[table];
        let mut batch = std::mem::take(&mut self.batch);
        batch.strings = last_of(tables.string_ids(), new(0), |id| tables.string(id).into());
        batch.frames = last_of(tables.frame_ids(), new(1), |id| tables.frame(id));
        batch.stacks = last_of(tables.stack_ids(), new(2), |id| (tables.parent(id), tables.leaf(id)));
        batch.labels = last_of(tables.labels_ids(), new(3), |id| tables.labels(id).into());
        self.sender.send(Message::Batch(Box::new(batch))).is_ok()
    }
}

/// The rows of the last `count` ids, in their order.
fn last_of<I, R>(ids: impl DoubleEndedIterator<Item = I>, count: usize, row: impl FnMut(I) -> R) -> Vec<R> {
    let mut rows: Vec<R> = ids.rev().take(count).map(row).collect();
    rows.reverse();
    rows
}

impl ProfileSink for Batches {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        let is_wanted = self.batch.samples.len() < BATCH || self.hand_over(at.tables);
        let segment: &Segment = at.segment;
        self.batch.samples.add_of(segment, sample);
        Ok(if is_wanted { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    }
}
