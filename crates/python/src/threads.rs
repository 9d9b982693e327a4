//! The threads of all interpreters.

use std::collections::BTreeSet;

use borehole_process::{ForeignMemory, ForeignProcess, MemoryPiece, mapped, moved, u64_at};

use crate::attach::Python;
use crate::error::{Error, ErrorKind};
use crate::layout::{GilPlace, Layout};

/// More interpreters than any program has.
const MOST_INTERPRETERS: usize = 1 << 10;

/// More threads than any program has.
const MOST_THREADS: usize = 1 << 14;

/// A thread that an interpreter knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PythonThread {
    /// The number of its interpreter: 0 is the main one.
    pub interpreter: u64,
    /// Its number in the kernel, as the process itself sees it; `None` if that is not known.
    pub system_id: Option<u64>,
    /// The address of its state.
    pub(crate) state: u64,
    /// The address of the state of its interpreter.
    pub(crate) interpreter_state: u64,
    /// Its name in the C library, which is `threading.get_ident()`.
    pub(crate) library_id: u64,
    /// The address of what says who holds the global lock; 0 if nothing does.
    pub(crate) lock: u64,
}

/// The threads of all interpreters, as they were listed once.
#[derive(Clone, Debug, Default)]
pub struct ThreadList {
    /// The threads.
    pub threads: Vec<PythonThread>,
    /// The heads of the lists, and where they are.
    heads: Vec<(u64, u64)>,
}

/// An interpreter in memory.
struct Interpreter {
    address: u64,
    id: u64,
    lock: u64,
}

impl Python {
    /// Lists the threads of all interpreters.
    ///
    /// # Errors
    /// If the process is gone, or its memory contradicts its release.
    pub fn threads(&self, target: &impl ForeignProcess) -> Result<ThreadList, Error> {
        let mut list = ThreadList::default();
        let place = moved(self.runtime, self.layout.interpreters_head);
        let mut address = list.head(target, place)?;
        if address == 0 {
            return Err(Error::new(ErrorKind::Implausible, "no interpreter in the process yet"));
        }
        for _ in 0..MOST_INTERPRETERS {
            if address == 0 {
                break;
            }
            let interpreter = self.interpreter(target, address)?;
            self.add_threads(target, &interpreter, &mut list)?;
            address = list.head(target, moved(address, self.layout.interpreter.next))?;
        }
        self.name_by_system(target, &mut list)?;
        Ok(list)
    }

    fn interpreter(&self, memory: &impl ForeignMemory, address: u64) -> Result<Interpreter, Error> {
        let Layout { interpreter, gil, .. } = &self.layout;
        let wrong =
            || Error::new(ErrorKind::Implausible, "expected the state of an interpreter, found other data");
        let id = mapped(memory.read_u64(moved(address, interpreter.id)))?.ok_or_else(wrong)?;
        if id > u64::from(u32::MAX) {
            return Err(wrong());
        }
        let lock = match *gil {
            GilPlace::Runtime(offset) => moved(self.runtime, offset),
            GilPlace::Interpreter { pointer, holder } => {
                let lock = mapped(memory.read_u64(moved(address, pointer)))?.ok_or_else(wrong)?;
                if lock == 0 { 0 } else { moved(lock, holder) }
            }
            GilPlace::Thread => 0,
        };
        Ok(Interpreter { address, id, lock })
    }

    fn add_threads(
        &self,
        memory: &impl ForeignMemory,
        interpreter: &Interpreter,
        list: &mut ThreadList,
    ) -> Result<(), Error> {
        let layout = &self.layout.thread;
        let mut state =
            list.head(memory, moved(interpreter.address, self.layout.interpreter.threads_head))?;
        let mut bytes = vec![0; layout.size];
        while state != 0 && list.threads.len() < MOST_THREADS {
            let filled = memory.read_pieces(&mut [MemoryPiece { address: state, into: &mut bytes }])?;
            let owner = u64_at(&bytes, layout.interpreter);
            if filled < bytes.len() || owner != Some(interpreter.address) {
                if list.threads.is_empty() {
                    let what = "expected the state of a thread, found other data";
                    return Err(Error::new(ErrorKind::Implausible, what));
                }
                // A thread has ended while it was listed: the list is made again soon.
                list.heads.push((0, 1));
                return Ok(());
            }
            list.threads.push(PythonThread {
                interpreter: interpreter.id,
                system_id: layout.native_id.and_then(|at| u64_at(&bytes, at)).filter(|&id| id != 0),
                state,
                interpreter_state: interpreter.address,
                library_id: u64_at(&bytes, layout.thread_id).unwrap_or_default(),
                lock: interpreter.lock,
            });
            state = u64_at(&bytes, layout.next).unwrap_or_default();
        }
        Ok(())
    }

    /// Finds the kernel's numbers of threads whose state does not have them: before 3.11.
    fn name_by_system(&self, target: &impl ForeignProcess, list: &mut ThreadList) -> Result<(), Error> {
        if list.threads.iter().all(|thread| thread.system_id.is_some()) {
            return Ok(());
        }
        let ids: BTreeSet<i32> = target.threads()?.into_iter().collect();
        for thread in list.threads.iter_mut().filter(|thread| thread.system_id.is_none()) {
            let id = mapped(target.read_u64(moved(thread.library_id, GLIBC_THREAD_ID)))?;
            let id = id.and_then(|id| i32::try_from(id & 0xffff_ffff).ok()).filter(|id| ids.contains(id));
            let id = id.or_else(|| {
                let points = |id: &&i32| target.thread_pointer(**id).ok() == Some(thread.library_id);
                ids.iter().find(points).copied()
            });
            thread.system_id = id.and_then(|id| u64::try_from(id).ok());
        }
        Ok(())
    }

    /// Whether threads or interpreters have been added since the list was made, or the newest one has ended. One read call.
    ///
    /// # Errors
    /// If the process is gone.
    pub fn has_other_threads(&self, memory: &impl ForeignMemory, list: &ThreadList) -> Result<bool, Error> {
        for heads in list.heads.chunks(HEADS) {
            let mut found = [[0; 8]; HEADS];
            let mut pieces: [MemoryPiece<'_>; HEADS] =
                std::array::from_fn(|_| MemoryPiece { address: 0, into: &mut [] });
            for ((piece, into), &(address, _)) in pieces.iter_mut().zip(&mut found).zip(heads) {
                *piece = MemoryPiece { address, into };
            }
            let filled = memory.read_pieces(&mut pieces[..heads.len()])?;
            let is_same = |(&(_, head), found): (&(u64, u64), &[u8; 8])| u64::from_le_bytes(*found) == head;
            if filled < 8 * heads.len() || !heads.iter().zip(&found).all(is_same) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The number of heads that are compared in one call.
const HEADS: usize = 16;

/// The place of the kernel's number of a thread behind the address by which the C library names the thread. A number found
/// there counts only if it is one of the process's threads.
///
/// Source: glibc 2.36, `nptl/descr.h`, `struct pthread.tid`, on x86-64.
const GLIBC_THREAD_ID: usize = 0x2d0;

impl ThreadList {
    /// Reads the head of a list, and notes it.
    fn head(&mut self, memory: &impl ForeignMemory, place: u64) -> Result<u64, Error> {
        let Some(head) = mapped(memory.read_u64(place))? else {
            let what = "expected a list of interpreters and threads, found unmapped memory";
            return Err(Error::new(ErrorKind::Implausible, what));
        };
        self.heads.push((place, head));
        Ok(head)
    }
}
