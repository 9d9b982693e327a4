//! Beginnings that wait for their ends.
//!
//! A batch of a trace is what one thread recorded, in order. Batches come in any order, and workers move between threads. An
//! end therefore belongs to the last beginning in its batch or, if there is none, to one that an earlier batch left open on
//! the same thread.

/// The number of beginnings kept from earlier batches: more than threads ever share a worker.
const CARRIED: usize = 64;

/// The time and thread of a beginning.
pub(super) trait Began {
    /// The thread is `None` if the trace does not record it.
    fn began(&self) -> (u64, Option<u64>);
}

#[derive(Clone, Debug, Default)]
pub(super) struct Halves<T> {
    batch: u64,
    open: Option<T>,
    carried: Vec<T>,
}

impl<T: Began> Halves<T> {
    /// Adds a beginning. Returns the previous one of the same batch if it has not ended.
    #[inline]
    pub(super) fn begin(&mut self, batch: u64, began: T) -> Option<T> {
        self.enter(batch);
        self.open.replace(began)
    }

    /// The beginning of an end at this time on this thread.
    #[inline]
    pub(super) fn end(&mut self, batch: u64, time_ns: u64, thread: Option<u64>) -> Option<T> {
        self.enter(batch);
        if let Some(open) = self.open.take_if(|open| may_end(open, time_ns, thread)) {
            return Some(open);
        }
        let rows = self.carried.iter().enumerate().filter(|(_, began)| may_end(*began, time_ns, thread));
        let row = rows.max_by_key(|(_, began)| began.began().0)?.0;
        Some(self.carried.swap_remove(row))
    }

    /// The open beginning in this batch.
    #[inline]
    pub(super) fn open(&mut self, batch: u64) -> Option<&mut T> {
        self.enter(batch);
        self.open.as_mut()
    }

    /// All open beginnings.
    pub(super) fn all(&self) -> impl Iterator<Item = &T> {
        self.carried.iter().chain(&self.open)
    }

    /// The latest open beginning.
    pub(super) fn latest(&self) -> Option<&T> {
        self.all().max_by_key(|began| began.began().0)
    }

    #[inline]
    fn enter(&mut self, batch: u64) {
        if self.batch == batch {
            return;
        }
        self.batch = batch;
        if let Some(open) = self.open.take() {
            if self.carried.len() == CARRIED {
                self.carried.remove(0);
            }
            self.carried.push(open);
        }
    }
}

fn may_end<T: Began>(began: &T, time_ns: u64, thread: Option<u64>) -> bool {
    let (began_ns, began_on) = began.began();
    let is_same = began_on.is_none_or(|began_on| thread.is_none_or(|thread| thread == began_on));
    is_same && began_ns <= time_ns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq)]
    struct At(u64, Option<u64>);

    impl Began for At {
        fn began(&self) -> (u64, Option<u64>) {
            (self.0, self.1)
        }
    }

    #[test]
    fn an_end_belongs_to_the_beginning_of_its_batch_or_of_its_thread() {
        let mut halves = Halves::default();
        assert_eq!(halves.begin(1, At(100, Some(7))), None);
        assert_eq!(halves.begin(2, At(50, Some(8))), None);
        assert_eq!(halves.end(3, 120, Some(8)), Some(At(50, Some(8))));
        assert_eq!(halves.end(3, 90, Some(7)), None, "it begins later");
        assert_eq!(halves.end(3, 120, Some(7)), Some(At(100, Some(7))));
        assert_eq!(halves.end(3, 130, None), None);
        halves.begin(3, At(140, None));
        assert_eq!(halves.begin(3, At(150, None)), Some(At(140, None)));
        assert_eq!(halves.end(3, 160, Some(9)), Some(At(150, None)));
    }
}
