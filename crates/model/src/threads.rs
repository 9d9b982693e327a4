//! Threads and their names.

use hashbrown::HashMap;

use crate::ids::StringId;

/// A thread. Its number is unique within its process only: in containers the same small numbers recur.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Thread {
    /// The process, if it is known.
    pub process: Option<i64>,
    /// The number assigned by the operating system or the runtime.
    pub number: u64,
}

/// The names of threads, each an `N`.
#[derive(Clone, Debug)]
pub struct ThreadNames<N = StringId> {
    names: HashMap<Thread, N>,
}

impl<N: PartialEq> ThreadNames<N> {
    /// Sets the name of a thread. Returns `false` if it already had that name.
    pub fn name(&mut self, thread: Thread, name: N) -> bool {
        let is_new = self.names.get(&thread) != Some(&name);
        self.names.insert(thread, name);
        is_new
    }

    /// The name of a thread. A name given without a process applies only to threads without one, because in each process
    /// another thread may have that number.
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
