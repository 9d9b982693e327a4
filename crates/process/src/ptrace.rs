//! The calls of `ptrace` that are needed to stop a thread.
//!
//! The calls are made directly, not through a wrapper, for two reasons: a signal that arrives while a thread is stopped
//! must reach it afterwards, whatever its number; and an exit must not be taken from a parent that waits for it.

#![allow(unsafe_code, reason = "no crate offers these calls with signals beyond 31")]

use std::io;

use libc::{c_int, c_void, pid_t};

use crate::registers::Registers;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It was asked to stop, or a signal stopped its process.
    Asked,
    /// This signal is about to be delivered.
    Signal(c_int),
}

/// Makes the calling thread the tracer of `thread`, without stopping it.
pub(crate) fn seize(thread: pid_t) -> io::Result<()> {
    // SAFETY: the request takes no addresses, only the options, of which there are none.
    check(unsafe { libc::ptrace(libc::PTRACE_SEIZE, thread, NOTHING, NOTHING) })
}

pub(crate) fn interrupt(thread: pid_t) -> io::Result<()> {
    // SAFETY: the request takes no arguments.
    check(unsafe { libc::ptrace(libc::PTRACE_INTERRUPT, thread, NOTHING, NOTHING) })
}

/// Lets a stopped thread continue, and delivers its pending signal.
pub(crate) fn detach(thread: pid_t, stop: Stop) -> io::Result<()> {
    let signal = match stop {
        Stop::Asked => 0,
        Stop::Signal(signal) => signal,
    };
    let signal = std::ptr::without_provenance_mut::<c_void>(usize::try_from(signal).unwrap_or(0));
    // SAFETY: the last argument is a number in the shape of a pointer; it is not dereferenced.
    check(unsafe { libc::ptrace(libc::PTRACE_DETACH, thread, NOTHING, signal) })
}

/// Checks whether a seized thread has stopped; does not wait, and leaves exits to the parent.
pub(crate) fn poll_stop(thread: pid_t) -> io::Result<Option<Stop>> {
    let Some(info) = changed(thread, libc::WSTOPPED | libc::__WALL)? else { return Ok(None) };
    // SAFETY: what `waitid` filled in has this field.
    let status = unsafe { info.si_status() };
    // Source: Linux, `ptrace(2)`: the event is in the bits above the signal.
    let is_event = status >> 8 == libc::PTRACE_EVENT_STOP;
    Ok(Some(if is_event { Stop::Asked } else { Stop::Signal(status & 0xff) }))
}

/// Whether a child has ended. Its exit can still be waited for, and its stops are left to its tracer.
///
/// Source: Linux 6.1, `kernel/exit.c`, `wait_task_stopped`: a wait for exits alone also returns stops of traced children.
pub(crate) fn has_ended(child: pid_t) -> io::Result<bool> {
    let info = changed(child, libc::WEXITED | libc::WNOWAIT)?;
    let is_end = |code| matches!(code, libc::CLD_EXITED | libc::CLD_KILLED | libc::CLD_DUMPED);
    Ok(info.is_some_and(|info| is_end(info.si_code)))
}

/// A change of a child or traced thread that `flags` wait for; `None` if there is none yet.
fn changed(id: pid_t, flags: c_int) -> io::Result<Option<libc::siginfo_t>> {
    let id = libc::id_t::try_from(id).map_err(io::Error::other)?;
    // SAFETY: all zero bytes are a valid `siginfo_t`, which means that nothing happened.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: `info` lives until the call is over, and nothing else writes to it.
    if unsafe { libc::waitid(libc::P_PID, id, &raw mut info, flags | libc::WNOHANG) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: what `waitid` filled in, or left zero, has this field.
    Ok((unsafe { info.si_pid() } != 0).then_some(info))
}

/// Lets the system keep the exit status of children until they are waited for, even if this program was started with
/// SIGCHLD ignored.
pub(crate) fn heed_ends_of_children() {
    // SAFETY: the default action runs no code of this program.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

/// The registers of a stopped thread.
#[cfg(target_arch = "x86_64")]
fn all_registers(thread: pid_t) -> io::Result<libc::user_regs_struct> {
    // SAFETY: all bytes zero are valid registers.
    let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
    let into = (&raw mut registers).cast::<c_void>();
    // SAFETY: the request writes one `user_regs_struct` to its last argument, which is one.
    check(unsafe { libc::ptrace(libc::PTRACE_GETREGS, thread, NOTHING, into) })?;
    Ok(registers)
}

/// The base of the segment `fs` of a stopped thread.
#[cfg(target_arch = "x86_64")]
pub(crate) fn thread_pointer(thread: pid_t) -> io::Result<u64> {
    all_registers(thread).map(|registers| registers.fs_base)
}

/// The registers of a stopped thread that unwinding begins with.
#[cfg(target_arch = "x86_64")]
pub(crate) fn registers(thread: pid_t) -> io::Result<Registers> {
    let registers = all_registers(thread)?;
    Ok(Registers { ip: registers.rip, sp: registers.rsp, bp: registers.rbp })
}

/// The thread pointer of a stopped thread.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn thread_pointer(_thread: pid_t) -> io::Result<u64> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The registers of a stopped thread that unwinding begins with.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn registers(_thread: pid_t) -> io::Result<Registers> {
    Err(io::ErrorKind::Unsupported.into())
}

const NOTHING: *mut c_void = std::ptr::null_mut();

fn check(result: libc::c_long) -> io::Result<()> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
