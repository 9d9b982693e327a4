//! A running process.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use nix::errno::Errno;
use nix::unistd::Pid;

use crate::elf;
use crate::error::{Error, ErrorKind};
use crate::files;
use crate::handle::ProcessHandle;
use crate::limited::ByteBudget;
use crate::maps::{Mappings, MemoryMapping};
use crate::memory::{ForeignMemory, ForeignProcess, MemoryPiece};
use crate::symbols::ElfSymbols;
use crate::tracer::Stopper;
use crate::{access, tracer, transfer};

/// A running process that may be read.
#[derive(Debug)]
pub struct Process {
    handle: Arc<ProcessHandle>,
    mappings: Mappings,
    /// `/proc/PID/mem`, if it may be opened. It stays bound to the address space that it was opened on.
    memory: Option<File>,
    /// Whether the system refuses the call, so that all reads use the file.
    refuses_call: AtomicBool,
    /// An address that is readable until the program unmaps it.
    probe_address: u64,
    thread_pointers: ThreadPointers,
    symbol_budget: ByteBudget,
}

/// Up to this size, reading one piece from the file is faster than the call: 1.1 µs against 1.5 µs. Above a few pages
/// the call is faster.
const SMALL_PIECE_BYTES: usize = 4096;

impl Process {
    /// Opens the process and checks that its memory can be read.
    ///
    /// # Errors
    /// If the process does not exist or may not be read; then the error names the obstacle and the remedy.
    pub fn open(id: i32) -> Result<Self, Error> {
        let handle = Arc::new(ProcessHandle::open(id)?);
        let maps = handle.read("maps").map_err(|error| access::explain(id, error))?;
        let mappings = Mappings::parse(&maps)?;
        let probe_address = probe_address(id, &mappings)?;
        let memory = File::open(files::path(id, "mem")).ok();
        let refuses_call = AtomicBool::new(false);
        let thread_pointers = ThreadPointers::default();
        let symbol_budget = ByteBudget::new(elf::SYMBOL_BYTES);
        let process =
            Self { handle, mappings, memory, refuses_call, probe_address, thread_pointers, symbol_budget };
        let probed = process.handle.checked(process.probe());
        probed.map_err(|error| access::explain(id, error)).map(|()| process)
    }

    /// The process number.
    #[must_use]
    pub fn id(&self) -> i32 {
        self.handle.id()
    }

    /// Stops this process, and no later one of the same number.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        Stopper::of(Arc::clone(&self.handle))
    }

    pub(crate) fn handle(&self) -> &Arc<ProcessHandle> {
        &self.handle
    }

    /// Opens the file that `mapping` shows, even if the process sees another file system.
    ///
    /// # Errors
    /// If no file is mapped there, or it cannot be opened.
    pub fn open_mapped(&self, mapping: &MemoryMapping) -> Result<File, Error> {
        self.handle.checked(elf::open_mapped(self.id(), mapping))
    }

    /// Whether the process has not ended. A later process with the same number does not count.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.handle.is_running()
    }

    /// Whether the process still runs the program that it ran when it was opened. A process may replace its program,
    /// which replaces its memory too.
    #[must_use]
    pub fn runs_same_program(&self) -> bool {
        match &self.memory {
            // A read from a gone address space returns 0 bytes; from an existing one it returns a byte or an error.
            // Source: Linux, fs/proc/base.c, mem_rw: 0 if mmget_not_zero finds that it is no longer used.
            Some(memory) => !matches!(memory.read_at(&mut [0], self.probe_address), Ok(0)),
            None => self.is_running() && self.shows_same_program(),
        }
    }

    fn shows_same_program(&self) -> bool {
        let shown = |mappings: &Mappings| mappings.iter().find(|mapping| mapping.shows_file()).cloned();
        let now = self.handle.read("maps").and_then(|maps| Mappings::parse(&maps));
        now.is_ok_and(|now| shown(&now) == shown(&self.mappings))
    }

    /// Reads the mappings again.
    ///
    /// # Errors
    /// If the process has ended.
    pub fn refresh(&mut self) -> Result<(), Error> {
        self.mappings = Mappings::parse(&self.handle.read("maps")?)?;
        Ok(())
    }

    fn probe(&self) -> Result<(), Error> {
        self.pieces(&mut [MemoryPiece { address: self.probe_address, into: &mut [0] }], false).map(drop)
    }

    fn pieces(&self, pieces: &mut [MemoryPiece<'_>], prefer_file: bool) -> Result<usize, Error> {
        if (prefer_file || self.refuses_call.load(Ordering::Relaxed))
            && let Some(memory) = &self.memory
        {
            return transfer::by_file(self.id(), memory, pieces);
        }
        match transfer::by_call(Pid::from_raw(self.id()), pieces) {
            Ok(filled) => self.handle.checked(Ok(filled)),
            Err(Errno::ESRCH) => Err(files::gone(self.id())),
            // A sandbox may refuse the call and allow the file.
            Err(Errno::ENOSYS | Errno::EPERM) if self.memory.is_some() => {
                self.refuses_call.store(true, Ordering::Relaxed);
                self.pieces(pieces, true)
            }
            Err(errno) => Err(self.refused(errno)),
        }
    }

    #[cold]
    fn refused(&self, errno: Errno) -> Error {
        let kind = if errno == Errno::EPERM { ErrorKind::Denied } else { ErrorKind::Unsupported };
        Error::new(kind, format!("cannot read the memory of process {}: {}", self.id(), errno.desc()))
    }
}

impl ForeignMemory for Process {
    fn read_pieces(&self, pieces: &mut [MemoryPiece<'_>]) -> Result<usize, Error> {
        let is_small = matches!(pieces, [piece] if piece.into.len() <= SMALL_PIECE_BYTES);
        self.pieces(pieces, is_small)
    }
}

impl ForeignProcess for Process {
    fn mappings(&self) -> &Mappings {
        &self.mappings
    }

    fn symbols(&self, mapping: &MemoryMapping) -> Result<ElfSymbols, Error> {
        let file = self.open_mapped(mapping)?;
        elf::symbols(&file, mapping, &self.symbol_budget)
    }

    fn threads(&self) -> Result<Vec<i32>, Error> {
        let threads = self.handle.threads()?;
        self.thread_pointers.retain(&threads);
        Ok(threads)
    }

    fn thread_pointer(&self, thread: i32) -> Result<u64, Error> {
        let stat = files::stat(self.id(), &format!("task/{thread}/stat"));
        let started = self.handle.checked(stat).ok().map(|stat| stat.started);
        self.thread_pointers.of(thread, started, || tracer::thread_pointer(&self.handle, thread))
    }
}

/// The known thread pointers. They are remembered because finding one stops the thread, and it does not change while
/// the thread lives. Keyed by thread number, with the start time of the thread, because numbers are reused.
#[derive(Debug, Default)]
struct ThreadPointers(Mutex<BTreeMap<i32, (u64, u64)>>);

impl ThreadPointers {
    /// The pointer of `thread`, which began at `started`, if that is known; calls `ask` if it is not remembered.
    fn of(
        &self,
        thread: i32,
        started: Option<u64>,
        ask: impl FnOnce() -> Result<u64, Error>,
    ) -> Result<u64, Error> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&(since, pointer)) = known.get(&thread)
            && started == Some(since)
        {
            return Ok(pointer);
        }
        let pointer = ask()?;
        if let Some(started) = started {
            known.insert(thread, (started, pointer));
        }
        Ok(pointer)
    }

    fn retain(&self, threads: &[i32]) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.is_empty() {
            let threads: BTreeSet<i32> = threads.iter().copied().collect();
            known.retain(|thread, _| threads.contains(thread));
        }
    }
}

/// A readable address outside the kernel's special mappings, some of which cannot be read from outside.
fn probe_address(id: i32, mappings: &Mappings) -> Result<u64, Error> {
    let mapping = mappings.iter().find(|mapping| mapping.readable && !mapping.path.starts_with(b"[v"));
    let missing = || {
        // An ending process briefly has no memory either. Source: Linux, kernel/kthread.c: 2 is `kthreadd`, the parent
        // of all threads of the kernel.
        let is_of_kernel = files::stat(id, "stat").is_ok_and(|stat| id == 2 || stat.parent == 2);
        if !is_of_kernel {
            return files::gone(id);
        }
        let what = format!("process {id} is a kernel thread, which has no memory to read");
        Error::new(ErrorKind::Unsupported, what)
    };
    mapping.map(|mapping| mapping.start).ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_asked_again_only_when_its_number_is_another_threads() {
        let pointers = ThreadPointers::default();
        let gone = || Err(files::gone(7));
        assert!(pointers.of(7, Some(1), gone).is_err());
        assert_eq!(pointers.of(7, Some(1), || Ok(100)).unwrap(), 100);
        assert_eq!(pointers.of(7, Some(1), gone).unwrap(), 100);
        assert_eq!(pointers.of(7, Some(2), || Ok(200)).unwrap(), 200, "began later");
        assert_eq!(pointers.of(7, None, || Ok(300)).unwrap(), 300, "nobody knows when it began");
        assert_eq!(pointers.of(7, Some(2), gone).unwrap(), 200);
        pointers.retain(&[7]);
        assert_eq!(pointers.of(7, Some(2), gone).unwrap(), 200);
        pointers.retain(&[8]);
        assert!(pointers.of(7, Some(2), gone).is_err(), "it was not in the list any more");
    }
}
