//! A program in foreign memory, with information from the system and its files.

use crate::error::Error;
use crate::maps::{Mapping, Mappings};
use crate::memory::Memory;
use crate::symbols::Symbols;

/// A program in foreign memory: a live process, a core file or a recorded image.
pub trait Target: Memory {
    /// The mappings at the moment when this target was opened.
    fn mappings(&self) -> &Mappings;

    /// The dynamic symbols of the ELF file that `mapping` shows a part of, at their addresses in this target.
    ///
    /// # Errors
    /// If the file cannot be found or read, or is not an ELF file.
    fn symbols(&self, mapping: &Mapping) -> Result<Symbols, Error>;

    /// The current threads, the main thread first.
    ///
    /// # Errors
    /// If the process is gone.
    fn threads(&self) -> Result<Vec<i32>, Error>;

    /// The address where the thread keeps its thread-local storage: on x86-64 the base of the segment `fs`.
    ///
    /// The first request stops a live thread for some microseconds.
    ///
    /// # Errors
    /// If the thread is gone or may not be stopped, or the machine is not supported.
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
