//! Signals that suspend this program.

#![allow(unsafe_code, reason = "the actions of signals are set")]

use libc::c_int;

/// Lets a signal act as it does on programs that do not handle it, once. In a process group without a shell, the kernel
/// ignores signals of terminals.
pub(crate) fn obey(signal: c_int) {
    // SAFETY: all zero bytes are a valid action, which is the default one.
    let (default, mut before): (libc::sigaction, libc::sigaction) = unsafe { std::mem::zeroed() };
    // SAFETY: both actions live until the call is over, and the default one runs no code of this program.
    let is_changed = unsafe { libc::sigaction(signal, &raw const default, &raw mut before) } == 0;
    // SAFETY: the call takes no addresses. The program is suspended in it.
    unsafe { libc::raise(signal) };
    // SIGSTOP has no other action.
    if is_changed {
        // SAFETY: this is the action that the kernel returned.
        unsafe { libc::sigaction(signal, &raw const before, std::ptr::null_mut()) };
    }
}
