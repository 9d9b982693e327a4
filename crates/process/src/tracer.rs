//! Stops the threads of a process, and lets them continue in every case.
//!
//! A dedicated thread traces the stopped threads. The kernel releases everything that a thread traces when that thread
//! ends, so every exit path works the same way: after an error the tracing thread ends; a panic elsewhere drops the
//! guard, which releases the threads; and if this process is killed, all its threads end. Nothing is left behind in the
//! other process, because seizing, unlike attaching, sends no signal.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use borehole_text::cause;

use crate::error::{Error, ErrorKind};
use crate::files;
use crate::handle::ProcessHandle;
use crate::hold::Hold;
use crate::ptrace::{self, Stop};
use crate::registers::Registers;

/// Stops a process for short moments.
#[derive(Debug)]
pub struct Stopper {
    process: i32,
    /// The process; `None` before it is stopped for the first time, if only its number was given.
    handle: Option<Arc<ProcessHandle>>,
    holder: Option<TracerThread>,
    /// From before the threads are stopped until after they are released.
    hold: Option<Hold>,
}

/// A process whose threads, or one of them, are stopped until this guard is dropped.
#[derive(Debug)]
pub struct Stopped<'a> {
    stopper: &'a mut Stopper,
    registers: Option<Registers>,
}

#[derive(Debug)]
struct TracerThread {
    orders: Sender<TracerOrder>,
    answers: Receiver<Result<Option<Registers>, Error>>,
    thread: JoinHandle<()>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TracerOrder {
    Stop,
    StopThread(i32),
    Resume,
}

/// The maximum time for threads to stop. A thread that waits for a disk that does not answer cannot be stopped at all.
const PATIENCE: Duration = Duration::from_millis(200);

/// The maximum number of times that the list of threads is read until it has no new threads. In each round all known
/// threads are stopped already.
const MAX_ROUNDS: usize = 64;

impl Stopper {
    /// Creates a stopper for the process that will have this number when it is stopped for the first time, without any
    /// effect on the process yet. [`Process::stopper`](crate::Process::stopper) never stops another process.
    #[must_use]
    pub fn new(process: i32) -> Self {
        Self { process, handle: None, holder: None, hold: None }
    }

    pub(crate) fn of(handle: Arc<ProcessHandle>) -> Self {
        let mut stopper = Self::new(handle.id());
        stopper.handle = Some(handle);
        stopper
    }

    /// Stops all threads of the process.
    ///
    /// # Errors
    /// If the process is gone, may not be stopped, is traced by another process, or does not stop in time. It then runs on.
    pub fn stop(&mut self) -> Result<Stopped<'_>, Error> {
        self.stop_by(TracerOrder::Stop)
    }

    /// Stops one thread of the process. The others run on.
    ///
    /// # Errors
    /// As [`stop`](Self::stop), or if the thread has ended.
    pub fn stop_thread(&mut self, thread: i32) -> Result<Stopped<'_>, Error> {
        self.stop_by(TracerOrder::StopThread(thread))
    }

    fn stop_by(&mut self, order: TracerOrder) -> Result<Stopped<'_>, Error> {
        self.hold.get_or_insert_with(Hold::begin);
        match self.order(order) {
            Ok(registers) => Ok(Stopped { stopper: self, registers }),
            Err(error) => {
                self.end();
                Err(error)
            }
        }
    }

    fn order(&mut self, order: TracerOrder) -> Result<Option<Registers>, Error> {
        if self.holder.is_none() {
            let handle = match self.handle.take() {
                Some(handle) => handle,
                None => Arc::new(ProcessHandle::open(self.process)?),
            };
            self.holder = Some(TracerThread::start(Arc::clone(self.handle.insert(handle)))?);
        }
        let ended = || Error::new(ErrorKind::Unsupported, "the tracing thread has ended");
        let holder = self.holder.as_ref().ok_or_else(ended)?;
        holder.orders.send(order).map_err(|_| ended())?;
        holder.answers.recv().map_err(|_| ended())?
    }

    /// Ends the tracing thread, which releases all stopped threads.
    fn end(&mut self) {
        if let Some(TracerThread { orders, answers, thread }) = self.holder.take() {
            drop((orders, answers));
            let _ = thread.join();
        }
        self.hold = None;
    }
}

impl Drop for Stopper {
    fn drop(&mut self) {
        self.end();
    }
}

impl Stopped<'_> {
    /// The registers of the thread; `None` if all threads are stopped, or the machine is not supported.
    #[must_use]
    pub fn registers(&self) -> Option<Registers> {
        self.registers
    }
}

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        match self.stopper.order(TracerOrder::Resume) {
            Ok(_) => self.stopper.hold = None,
            Err(_) => self.stopper.end(),
        }
    }
}

impl TracerThread {
    fn start(process: Arc<ProcessHandle>) -> Result<Self, Error> {
        let id = process.id();
        let (orders, incoming) = mpsc::channel();
        let (outgoing, answers) = mpsc::channel();
        let hold = move || hold(&process, &incoming, &outgoing);
        let thread = thread::Builder::new().name("borehole-stop".to_owned()).spawn(hold);
        let thread = thread.map_err(|error| no_thread(id, &error))?;
        Ok(Self { orders, answers, thread })
    }
}

/// The system has no thread for stopping a process.
fn no_thread(process: i32, error: &io::Error) -> Error {
    let what = format!("cannot start the thread that stops process {process}: {}", cause(error));
    Error::new(ErrorKind::Unsupported, what)
}

/// Executes orders until the channel closes or an order fails.
fn hold(
    process: &ProcessHandle,
    orders: &Receiver<TracerOrder>,
    answers: &Sender<Result<Option<Registers>, Error>>,
) {
    let mut held = StoppedThreads::default();
    for order in orders {
        let done = match order {
            TracerOrder::Stop => held.stop_all(process).map(|()| None),
            TracerOrder::StopThread(thread) => {
                held.stop_one(process, thread).map(|()| ptrace::registers(thread).ok())
            }
            TracerOrder::Resume => held.resume_all().map(|()| None),
        };
        let is_done = done.is_ok();
        if answers.send(done).is_err() || !is_done {
            break;
        }
    }
}

/// Stopped threads, and the reason each stopped.
#[derive(Debug, Default)]
struct StoppedThreads(BTreeMap<i32, Stop>);

impl StoppedThreads {
    fn stop_all(&mut self, process: &ProcessHandle) -> Result<(), Error> {
        let deadline = Instant::now() + PATIENCE;
        for _ in 0..MAX_ROUNDS {
            let new: Vec<i32> = process
                .threads()?
                .into_iter()
                .filter(|&thread| self.is_to_be_stopped(process.id(), thread))
                .collect();
            if new.is_empty() {
                return if self.0.is_empty() { Err(files::gone(process.id())) } else { Ok(()) };
            }
            let seized: Result<Vec<i32>, Error> =
                new.into_iter().filter_map(|thread| ask(process, thread).transpose()).collect();
            for thread in seized? {
                self.await_stop(process.id(), thread, deadline)?;
            }
        }
        let what = format!("process {} starts threads faster than they can be stopped", process.id());
        Err(Error::new(ErrorKind::Unsupported, what))
    }

    fn stop_one(&mut self, process: &ProcessHandle, thread: i32) -> Result<(), Error> {
        let asked = ask(process, thread)?.ok_or_else(|| vanished(process.id(), thread))?;
        self.await_stop(process.id(), asked, Instant::now() + PATIENCE)
    }

    /// Whether a thread still has to be stopped. An ended thread cannot stop, and an ended main thread stays in the
    /// list while others run.
    fn is_to_be_stopped(&self, process: i32, thread: i32) -> bool {
        !self.0.contains_key(&thread)
            && files::stat(process, &format!("task/{thread}/stat"))
                .is_ok_and(|stat| !matches!(stat.state, b'Z' | b'X'))
    }

    fn await_stop(&mut self, process: i32, thread: i32, deadline: Instant) -> Result<(), Error> {
        let mut looks = 0_u32;
        loop {
            looks += 1;
            match ptrace::poll_stop(thread) {
                Ok(Some(stop)) => {
                    self.0.insert(thread, stop);
                    return Ok(());
                }
                Err(_) => return Err(vanished(process, thread)),
                Ok(None) if Instant::now() > deadline => return Err(late(process, thread)),
                // A running thread stops within some microseconds; others may take long.
                Ok(None) if looks <= 200 => std::hint::spin_loop(),
                Ok(None) if looks <= 400 => thread::yield_now(),
                Ok(None) => thread::sleep(Duration::from_micros(100)),
            }
        }
    }

    fn resume_all(&mut self) -> Result<(), Error> {
        let mut result = Ok(());
        for (thread, stop) in std::mem::take(&mut self.0) {
            if ptrace::detach(thread, stop).is_err() {
                // The thread was killed meanwhile. The tracing thread must end, or the dead one cannot be reaped.
                result = Err(Error::new(ErrorKind::Gone, format!("thread {thread} has ended")));
            }
        }
        result
    }
}

/// Seizes a thread and asks it to stop; `None` if it has ended. While it is seized, its number is not reused.
fn ask(process: &ProcessHandle, thread: i32) -> Result<Option<i32>, Error> {
    let asked = ptrace::seize(thread).and_then(|()| ptrace::interrupt(thread));
    match asked {
        // Its number may have become that of another process before it was seized, which the end of this thread releases.
        Ok(()) if !process.has_thread(thread) => Err(vanished(process.id(), thread)),
        Ok(()) => Ok(Some(thread)),
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(None),
        Err(error) => process.checked(Err(refused(process.id(), &error))),
    }
}

fn refused(process: i32, error: &io::Error) -> Error {
    let status = files::read(process, "status").unwrap_or_default();
    let tracer = files::status_field(&status, "TracerPid").filter(|tracer| tracer != "0");
    let why = match tracer {
        Some(tracer) => format!("process {tracer} already traces it"),
        None => cause(error),
    };
    Error::new(ErrorKind::Denied, format!("cannot stop process {process}: {why}"))
}

fn late(process: i32, thread: i32) -> Error {
    let what = format!(
        "thread {thread} of process {process} did not stop within {} ms: it is waiting for a device or has ended",
        PATIENCE.as_millis()
    );
    Error::new(ErrorKind::Unsupported, what)
}

fn vanished(process: i32, thread: i32) -> Error {
    let what = format!("thread {thread} of process {process} ended while it was being stopped");
    Error::new(ErrorKind::Gone, what)
}

/// The thread pointer of a thread. Stops only this thread, from a helper thread that ends right after.
pub(crate) fn thread_pointer(process: &Arc<ProcessHandle>, thread: i32) -> Result<u64, Error> {
    let (process, id) = (Arc::clone(process), process.id());
    let learn = move || {
        let mut held = StoppedThreads::default();
        ask(&process, thread)?.ok_or_else(|| vanished(id, thread))?;
        held.await_stop(id, thread, Instant::now() + PATIENCE)?;
        let pointer = ptrace::thread_pointer(thread);
        held.resume_all()?;
        pointer.map_err(|error| {
            let what = format!("cannot read the registers of thread {thread}: {}", cause(&error));
            Error::new(ErrorKind::Unsupported, what)
        })
    };
    let _hold = Hold::begin();
    let learning = thread::Builder::new().spawn(learn).map_err(|error| no_thread(id, &error))?;
    learning.join().unwrap_or_else(|_| Err(vanished(id, thread)))
}
