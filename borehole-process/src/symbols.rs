//! The symbols of a mapped file, at their addresses in the process.

use std::collections::BTreeMap;

/// Where something that has a name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// The address in the process; of a thread-local symbol the offset in the file's block of thread-local storage.
    pub address: u64,
    /// How many bytes it has; 0 if the file does not say.
    pub size: u64,
    /// Whether each thread has its own.
    pub thread_local: bool,
}

/// What each thread has of a file's thread-local variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadLocalBlock {
    /// Bytes of the block.
    pub size: u64,
    /// What its address is a multiple of.
    pub alignment: u64,
}

impl ThreadLocalBlock {
    /// How far below the thread pointer the block begins, if the file is the program itself and the machine an x86-64.
    ///
    /// Source: System V ABI, "ELF Handling for Thread-Local Storage", variant II.
    #[must_use]
    pub fn below_thread_pointer(&self) -> u64 {
        self.size.checked_next_multiple_of(self.alignment.max(1)).unwrap_or(self.size)
    }
}

/// The symbols of a mapped file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Symbols {
    by_name: BTreeMap<Vec<u8>, Symbol>,
    thread_local_block: Option<ThreadLocalBlock>,
}

impl Symbols {
    /// No symbols yet, of a file with this thread-local storage.
    #[must_use]
    pub fn new(thread_local_block: Option<ThreadLocalBlock>) -> Self {
        Self { by_name: BTreeMap::new(), thread_local_block }
    }

    /// Adds one; the first of a name stays.
    pub fn add(&mut self, name: &[u8], symbol: Symbol) {
        self.by_name.entry(name.to_owned()).or_insert(symbol);
    }

    /// Keeps those whose names are wanted.
    pub(crate) fn retain(&mut self, is_wanted: impl Fn(&[u8]) -> bool) {
        self.by_name.retain(|name, _| is_wanted(name));
    }

    /// The one called `name`.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Symbol> {
        self.by_name.get(name.as_bytes()).copied()
    }

    /// All of them by name.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], Symbol)> {
        self.by_name.iter().map(|(name, symbol)| (name.as_slice(), *symbol))
    }

    /// The thread-local storage of the file; `None` if it has none.
    #[must_use]
    pub fn thread_local_block(&self) -> Option<ThreadLocalBlock> {
        self.thread_local_block
    }
}
