//! The symbols of a mapped file, at their addresses in the process.

use std::collections::BTreeMap;

/// The place of a named object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ElfSymbol {
    /// The address in the process; for a thread-local symbol, the offset in the file's block of thread-local storage.
    pub address: u64,
    /// The size in bytes; 0 if the file does not state it.
    pub size: u64,
    /// Whether each thread has its own copy.
    pub thread_local: bool,
}

/// The block that each thread has for a file's thread-local variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadLocalBlock {
    /// The size in bytes.
    pub size: u64,
    /// The address of the block is a multiple of this.
    pub alignment: u64,
}

impl ThreadLocalBlock {
    /// The distance in bytes from the start of the block up to the thread pointer, for the main program on x86-64.
    ///
    /// Source: System V ABI, "ELF Handling for Thread-Local Storage", variant II.
    #[must_use]
    pub fn below_thread_pointer(&self) -> u64 {
        self.size.checked_next_multiple_of(self.alignment.max(1)).unwrap_or(self.size)
    }
}

/// The symbols of a mapped file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ElfSymbols {
    by_name: BTreeMap<Vec<u8>, ElfSymbol>,
    thread_local_block: Option<ThreadLocalBlock>,
}

impl ElfSymbols {
    /// Creates an empty list for a file with this thread-local storage.
    #[must_use]
    pub fn new(thread_local_block: Option<ThreadLocalBlock>) -> Self {
        Self { by_name: BTreeMap::new(), thread_local_block }
    }

    /// Adds a symbol, unless there is one of the same name.
    pub fn add(&mut self, name: &[u8], symbol: ElfSymbol) {
        self.by_name.entry(name.to_owned()).or_insert(symbol);
    }

    pub(crate) fn retain(&mut self, is_wanted: impl Fn(&[u8]) -> bool) {
        self.by_name.retain(|name, _| is_wanted(name));
    }

    /// The symbol called `name`.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<ElfSymbol> {
        self.by_name.get(name.as_bytes()).copied()
    }

    /// Iterates over all symbols, in order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], ElfSymbol)> {
        self.by_name.iter().map(|(name, symbol)| (name.as_slice(), *symbol))
    }

    /// The thread-local storage of the file; `None` if it has none.
    #[must_use]
    pub fn thread_local_block(&self) -> Option<ThreadLocalBlock> {
        self.thread_local_block
    }
}
