//! Threads, and what they are called.

use hashbrown::HashMap;

use crate::ids::StringId;

/// A thread. Its number tells it from the other threads of its process, and from no others: in containers the same
/// small numbers come again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Thread {
    /// The process, if it is known.
    pub process: Option<i64>,
    /// The number that the operating system, or the runtime, gave it.
    pub number: u64,
}

/// What threads are called, each by an `N`.
#[derive(Clone, Debug)]
pub struct ThreadNames<N = StringId> {
    names: HashMap<Thread, N>,
}

impl<N: PartialEq> ThreadNames<N> {
    /// Names a thread; false if it was called so already.
    pub fn name(&mut self, thread: Thread, name: N) -> bool {
        let is_new = self.names.get(&thread) != Some(&name);
        self.names.insert(thread, name);
        is_new
    }

    /// What a thread is called. What was said of a number without a process is of threads without one only: in each process
    /// another thread may have the number.
    #[must_use]
    pub fn of(&self, thread: Thread) -> Option<&N> {
        self.names.get(&thread)
    }

    /// Forgets all names.
    pub fn clear(&mut self) {
        self.names.clear();
    }
}

impl<N> Default for ThreadNames<N> {
    fn default() -> Self {
        Self { names: HashMap::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_that_of_the_thread_of_one_process_or_of_none() {
        let mut names = ThreadNames::default();
        let thread = |process| Thread { process, number: 1 };
        assert!(names.name(thread(None), "nobody's") && names.name(thread(Some(7)), "main"));
        let found = [None, Some(7), Some(8)].map(|process| names.of(thread(process)).copied());
        assert_eq!(found, [Some("nobody's"), Some("main"), None]);
    }
}
