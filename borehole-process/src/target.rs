//! A program in foreign memory, with what the system and its files say of it.

use crate::error::Error;
use crate::maps::{Mapping, Mappings};
use crate::memory::Memory;
use crate::symbols::Symbols;

/// A program in foreign memory: a live process, a core file, a recorded image.
pub trait Target: Memory {
    /// What is mapped where, as of when this target was opened.
    fn mappings(&self) -> &Mappings;

    /// The dynamic symbols of the ELF file that `mapping` shows a part of, at their addresses in this target.
    ///
    /// # Errors
    /// When the file cannot be found or read, or is no ELF file.
    fn symbols(&self, mapping: &Mapping) -> Result<Symbols, Error>;

    /// The threads there are now, the main thread first.
    ///
    /// # Errors
    /// When the process is gone.
    fn threads(&self) -> Result<Vec<i32>, Error>;

    /// Where the thread keeps its thread-local storage: on x86-64 the base of the segment `fs`.
    ///
    /// A live thread is stopped for some microseconds to learn it, the first time that it is asked for.
    ///
    /// # Errors
    /// When the thread is gone, or may not be stopped, or the machine is of a kind that is not supported.
    fn thread_pointer(&self, thread: i32) -> Result<u64, Error>;
}

impl<T: Target + ?Sized> Target for &T {
    fn mappings(&self) -> &Mappings {
        (**self).mappings()
    }

    fn symbols(&self, mapping: &Mapping) -> Result<Symbols, Error> {
        (**self).symbols(mapping)
    }

    fn threads(&self) -> Result<Vec<i32>, Error> {
        (**self).threads()
    }

    fn thread_pointer(&self, thread: i32) -> Result<u64, Error> {
        (**self).thread_pointer(thread)
    }
}
