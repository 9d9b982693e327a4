//! Going before others, for as long as another program waits for us.

#![allow(unsafe_code, reason = "no crate offers these calls for one thread")]

use std::marker::PhantomData;

/// The highest priority that is shared fairly, as a nice value.
const HIGHEST: libc::c_int = -20;

/// The calling thread has the highest priority until this is dropped, as far as the system lets it: a process that stands
/// still for it should not have to wait for everybody else as well.
#[derive(Debug)]
pub struct Urgent {
    before: Option<libc::c_int>,
    /// It is about the thread that it was made on.
    _stays: PhantomData<*const ()>,
}

impl Urgent {
    /// From now on.
    #[must_use]
    pub fn begin() -> Self {
        // SAFETY: the calls take numbers; on Linux 0 is the calling thread.
        let before = unsafe {
            let before = libc::getpriority(libc::PRIO_PROCESS, 0);
            (libc::setpriority(libc::PRIO_PROCESS, 0, HIGHEST) == 0).then_some(before)
        };
        Self { before, _stays: PhantomData }
    }
}

impl Drop for Urgent {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // SAFETY: as above.
            let _ = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, before) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nice() -> i32 {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").expect("our own");
        stat.rsplit(") ").next().and_then(|fields| fields.split(' ').nth(16)?.parse().ok()).expect("a number")
    }

    #[test]
    fn it_ends_as_it_began() {
        let before = nice();
        let urgent = Urgent::begin();
        assert_eq!(nice(), if urgent.before.is_some() { HIGHEST } else { before });
        drop(urgent);
        assert_eq!(nice(), before);
    }
}
