//! Lost events that are not yet stated in a file.

use std::collections::BTreeMap;

use crate::clock::now_ns;
use crate::events::EventsLostEvent;
use crate::trc::Writer;

/// The maximum number of distinct thread names: while files cannot be written, any number of threads may come and go.
const MOST_NAMES: usize = 256;

/// The number of lost events by the name of the thread that recorded them.
#[derive(Debug, Default)]
pub(crate) struct UnwrittenLosses {
    counts: BTreeMap<Option<String>, u64>,
}

impl UnwrittenLosses {
    pub(crate) fn note(&mut self, thread_name: Option<&str>, lost_events: u64) {
        if lost_events > 0 {
            let name = thread_name.map(str::to_owned);
            let is_told = self.counts.len() < MOST_NAMES || self.counts.contains_key(&name);
            let count = self.counts.entry(name.filter(|_| is_told)).or_default();
            *count = count.saturating_add(lost_events);
        }
    }

    /// A batch of events that state the losses; empty if nothing was lost.
    pub(crate) fn batch(&self) -> Vec<u8> {
        if self.counts.is_empty() {
            return Vec::new();
        }
        let mut writer = Writer::new(Vec::new());
        for (thread_name, &lost_events) in &self.counts {
            let thread_name = thread_name.as_deref();
            // Writing to a vector cannot fail, and the event fits.
            let _ = writer.write(&EventsLostEvent { timestamp_ns: now_ns(), lost_events, thread_name });
        }
        writer.finish().unwrap_or_default()
    }

    /// Forgets the losses, once the batch is in a file.
    pub(crate) fn clear(&mut self) {
        self.counts.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trc::{Reader, Value};

    fn told(losses: &UnwrittenLosses) -> Vec<(Option<String>, u64)> {
        let batch = losses.batch();
        let mut reader = Reader::new(&*batch);
        let mut told = Vec::new();
        while let Some(event) = reader.next_event().unwrap() {
            let name = event.value_of("thread_name").and_then(|name| name.as_str().map(str::to_owned));
            told.push((name, event.value_of("lost_events").and_then(Value::as_u64).unwrap()));
        }
        told
    }

    #[test]
    fn losses_that_cannot_be_written_are_added_up_until_they_can() {
        let mut losses = UnwrittenLosses::default();
        assert!(losses.batch().is_empty());
        for _ in 0..1000 {
            losses.note(Some("main"), 2);
            losses.note(None, 1);
            losses.note(Some("idle"), 0);
        }
        assert_eq!(told(&losses), [(None, 1000), (Some("main".to_owned()), 2000)]);
        losses.clear();
        assert!(losses.batch().is_empty());
    }

    #[test]
    fn names_without_end_are_counted_as_none() {
        let mut losses = UnwrittenLosses::default();
        (0..10 * MOST_NAMES).for_each(|thread| losses.note(Some(&thread.to_string()), 1));
        let told = told(&losses);
        assert_eq!((told.len(), told.iter().map(|loss| loss.1).sum::<u64>()), (MOST_NAMES + 1, 2560));
        assert_eq!(told[0], (None, 2560 - 256));
    }
}
