//! The properties of samples beside their numbers.

use borehole_model::{Context, LabelsId, ProfileSink, Sample, Status, StringId, Thread, ThreadNames};

use crate::ReadError;

/// A sample that was read, without its numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ResolvedSample {
    pub(crate) sample: Sample<'static>,
    pub(crate) thread_name: Option<StringId>,
}

impl ResolvedSample {
    /// Passes the name of the sample's thread to `sink`, unless it is the known one.
    ///
    /// # Errors
    /// If the sink fails.
    pub(crate) fn name_thread(
        &self,
        at: Context<'_>,
        known: &mut ThreadNames,
        sink: &mut dyn ProfileSink,
    ) -> Result<(), ReadError> {
        if let Some((thread, name)) = at.thread(&self.sample).zip(self.thread_name)
            && known.name(thread, name)
        {
            sink.thread(at, thread, name)?;
        }
        Ok(())
    }
}

/// The properties of written samples beside their stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct SampleScope {
    pub(crate) process: Option<i64>,
    pub(crate) thread: Option<u64>,
    pub(crate) interpreter: Option<u64>,
    pub(crate) status: Option<Status>,
    pub(crate) labels: Option<LabelsId>,
}

impl SampleScope {
    #[inline]
    pub(crate) fn of(at: Context<'_>, sample: &Sample<'_>) -> Self {
        let Sample { thread, interpreter, status, labels, .. } = *sample;
        Self { process: at.process(sample), thread, interpreter, status, labels }
    }

    pub(crate) fn thread(&self) -> Option<Thread> {
        self.thread.map(|number| Thread { process: self.process, number })
    }
}
