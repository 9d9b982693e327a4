//! Descriptors of processes, which never mean a later process of the same number.
//!
//! Source: Linux, `pidfd_open(2)`, since 5.3; `pidfd_send_signal(2)`, since 5.1.

#![allow(unsafe_code, reason = "no crate in use offers these calls")]

use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

use libc::{c_int, pid_t};

/// The process that has this number now.
pub(crate) fn open(process: pid_t) -> io::Result<OwnedFd> {
    // SAFETY: the call takes no addresses.
    let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, process, 0) };
    match c_int::try_from(descriptor) {
        // SAFETY: the kernel has just created this descriptor for the caller. It is closed on exec.
        Ok(descriptor @ 0..) => Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether all threads of the process have ended. Its number is not reused before that.
pub(crate) fn has_ended(process: &OwnedFd) -> bool {
    let mut descriptor = libc::pollfd { fd: process.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: the pointer is to one `pollfd`, which lives until the call is over.
    unsafe { libc::poll(&raw mut descriptor, 1, 0) > 0 }
}

/// Sends a signal, if the process has not been waited for.
pub(crate) fn signal(process: &OwnedFd, signal: c_int) -> io::Result<()> {
    let information = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: without information, the kernel fills it in as `kill` does.
    let result =
        unsafe { libc::syscall(libc::SYS_pidfd_send_signal, process.as_raw_fd(), signal, information, 0) };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
