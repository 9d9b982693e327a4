//! A small process that continues this program if SIGSTOP suspends it while it holds other processes.
//!
//! No program can delay SIGSTOP, and what a suspended program traces stays stopped. So the guard looks fifty times a second.
//! If it sees the same hold twice and the program is suspended, it continues the program, which suspends itself again at the
//! end of the hold. A process is frozen for at most two looks and the rest of the hold. The guard is in a session of its own
//! and has another name, so that a signal to the program's group or name does not reach it. It ends with the program.

#![allow(unsafe_code, reason = "the guard is a fork of the program and shares a page of memory with it")]

use std::fs::File;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd as _, RawFd};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use libc::{c_int, c_uint, pid_t, siginfo_t};

use crate::pidfd;

static GUARD: OnceLock<Option<Guard>> = OnceLock::new();

struct Guard {
    id: pid_t,
    shared: &'static SharedPage,
}

/// Memory that the program and the guard share.
struct SharedPage {
    /// The number of the current hold; 0 without one.
    hold: AtomicU64,
    /// The number of the hold in which the guard continued the program; 0 if somebody else has continued it since.
    continued_in: AtomicU64,
}

/// The interval of the looks.
const INTERVAL_MS: c_int = 20;

/// Starts the guard, once. Call it before the program needs much memory or has many threads. Without it, or where Linux is
/// older than 5.3, a SIGSTOP that arrives during a hold freezes the other process until this program is continued.
pub fn guard_holds() {
    GUARD.get_or_init(|| Guard::start().ok());
}

/// The process number of the guard; `None` without one.
pub(crate) fn id() -> Option<i32> {
    Some(GUARD.get()?.as_ref()?.id)
}

/// Tells the guard that a hold begins.
pub(crate) fn begin(hold: u64) {
    if let Some(Some(guard)) = GUARD.get() {
        guard.shared.hold.store(hold, Ordering::Release);
    }
}

/// Tells the guard that a hold has ended. Returns whether the guard has continued the program in it, which must now be suspended
/// again.
pub(crate) fn end(hold: u64) -> bool {
    let Some(Some(guard)) = GUARD.get() else { return false };
    guard.shared.hold.store(0, Ordering::Release);
    guard.shared.continued_in.swap(0, Ordering::AcqRel) == hold
}

impl Guard {
    fn start() -> io::Result<Self> {
        let id = pid_t::try_from(std::process::id()).map_err(io::Error::other)?;
        let program = pidfd::open(id)?;
        // Opened here, so that it shows this program.
        let state = File::open("/proc/self/stat")?;
        let shared = share()?;
        heed_continuation()?;
        let blocked = BlockedSignals::all();
        // SAFETY: the child calls only functions that are safe in a fork of a program with threads.
        let id = unsafe { libc::fork() };
        if id == 0 {
            watch(shared, state.as_raw_fd(), program.as_raw_fd());
        }
        drop(blocked);
        if id < 0 { Err(io::Error::last_os_error()) } else { Ok(Self { id, shared }) }
    }
}

/// A page of zeros that a fork shares.
fn share() -> io::Result<&'static SharedPage> {
    let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    // SAFETY: the kernel chooses the address, so no memory in use is replaced.
    let page = unsafe { libc::mmap(ptr::null_mut(), size_of::<SharedPage>(), access, flags, -1, 0) };
    if page == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the page is aligned, zeros are valid numbers, it is never unmapped, and all access is atomic.
    Ok(unsafe { &*page.cast::<SharedPage>() })
}

/// From here on, the program knows if somebody other than the guard has continued it.
fn heed_continuation() -> io::Result<()> {
    extern "C" fn continued(_: c_int, information: *const siginfo_t, _: *const libc::c_void) {
        let Some(Some(guard)) = GUARD.get() else { return };
        // SAFETY: the kernel passes information that is valid during this call.
        if unsafe { (*information).si_pid() } != guard.id {
            guard.shared.continued_in.store(0, Ordering::Release);
        }
    }
    // SAFETY: all zero bytes are a valid action.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = continued as *const () as libc::sighandler_t;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
    // SAFETY: the function has the type that `SA_SIGINFO` asks for, and only reads and writes atomic numbers.
    let result = unsafe { libc::sigaction(libc::SIGCONT, &raw const action, ptr::null_mut()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Signals that are blocked in this thread, and in a fork for ever, until this is dropped.
struct BlockedSignals {
    before: libc::sigset_t,
}

impl BlockedSignals {
    fn all() -> Self {
        // SAFETY: all zero bytes are a valid set, and both live until the calls are over.
        unsafe {
            let (mut all, mut before) = (mem::zeroed(), mem::zeroed());
            libc::sigfillset(&raw mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
            Self { before }
        }
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        // SAFETY: the set is the one that the kernel returned.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, ptr::null_mut()) };
    }
}

/// Runs in the guard until the program ends. Allocates nothing, because another thread may have held the allocator's lock.
fn watch(shared: &SharedPage, state: RawFd, program: RawFd) -> ! {
    // SAFETY: the calls take no addresses, except of texts that live for ever.
    unsafe {
        libc::setsid();
        libc::chdir(c"/".as_ptr());
        libc::prctl(libc::PR_SET_NAME, c"hold-guard".as_ptr());
    }
    close_all_but(state, program);
    let mut last = 0;
    while !ends_within(program, INTERVAL_MS) {
        let hold = shared.hold.load(Ordering::Acquire);
        if hold != 0 && hold == last && is_suspended(state) {
            shared.continued_in.store(hold, Ordering::Release);
            // SAFETY: the call takes no address of this program.
            unsafe { libc::syscall(libc::SYS_pidfd_send_signal, program, libc::SIGCONT, 0_usize, 0) };
        }
        last = hold;
    }
    // SAFETY: the guard ends without running code of the program.
    unsafe { libc::_exit(0) }
}

/// Closes the descriptors of the program, whose readers would wait for the guard too.
fn close_all_but(one: RawFd, other: RawFd) {
    let (low, high) = (one.min(other).cast_unsigned(), one.max(other).cast_unsigned());
    let close = |first: c_uint, last: c_uint| {
        // SAFETY: the guard uses none of these descriptors.
        if first <= last && unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) } != 0 {
            // Linux before 5.9.
            (first..=last.min(4096)).for_each(|descriptor| {
                // SAFETY: as above.
                unsafe { libc::close(descriptor.cast_signed()) };
            });
        }
    };
    if let Some(before) = low.checked_sub(1) {
        close(0, before);
    }
    close(low + 1, high - 1);
    close(high + 1, c_uint::MAX);
}

/// Whether the program ends within this time, which passes otherwise.
fn ends_within(program: RawFd, milliseconds: c_int) -> bool {
    let mut descriptor = libc::pollfd { fd: program, events: libc::POLLIN, revents: 0 };
    // SAFETY: the pointer is to one `pollfd`, which lives until the call is over.
    unsafe { libc::poll(&raw mut descriptor, 1, milliseconds) != 0 }
}

/// Whether `/proc/PID/stat` shows the state of a process that a signal has suspended.
fn is_suspended(stat: RawFd) -> bool {
    let mut text = [0_u8; 256];
    // SAFETY: the kernel writes at most as many bytes as there are.
    let length = unsafe { libc::pread(stat, text.as_mut_ptr().cast(), text.len(), 0) };
    let text = usize::try_from(length).ok().and_then(|length| text.get(..length)).unwrap_or_default();
    let name_end = text.iter().rposition(|&byte| byte == b')');
    name_end.and_then(|end| text.get(end + 2)) == Some(&b'T')
}
