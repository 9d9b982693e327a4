//! Keeps this program from being suspended while it holds other processes, because they would stay stopped with it.
//!
//! The kernel suspends all threads of a program at once, also those that trace. A traced thread then waits until somebody
//! continues the program, which may be never. So a request to suspend that can be handled waits for the end of the last
//! hold ([`suspend`]). SIGSTOP cannot be handled: after it, [`crate::guard`] continues the program until that moment.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::{guard, signals};

static HOLDS: Mutex<Holds> = Mutex::new(Holds { count: 0, begun: 0, is_to_suspend: false });
static CHANGED: Condvar = Condvar::new();

struct Holds {
    count: usize,
    /// How often the program began to hold a process while it held none.
    begun: u64,
    is_to_suspend: bool,
}

/// While this exists, the calling program may hold another process, and is not suspended.
#[derive(Debug)]
pub(crate) struct Hold(());

impl Hold {
    /// Waits until no request to suspend is left, unless another hold exists: then that request waits for both.
    pub(crate) fn begin() -> Self {
        let waits = |holds: &mut Holds| holds.is_to_suspend && holds.count == 0;
        let mut holds = CHANGED.wait_while(lock(), waits).unwrap_or_else(PoisonError::into_inner);
        if holds.count == 0 {
            holds.begun += 1;
            guard::begin(holds.begun);
        }
        holds.count += 1;
        Self(())
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut holds = lock();
        holds.count -= 1;
        if holds.count == 0 {
            if guard::end(holds.begun) {
                signals::obey(libc::SIGSTOP);
            }
            CHANGED.notify_all();
        }
    }
}

/// Does what a signal that suspends programs does to a program that does not handle it, as soon as this program holds
/// no process. Returns when the program is continued.
pub fn suspend(signal: i32) {
    let mut holds = lock();
    holds.is_to_suspend = true;
    let mut holds =
        CHANGED.wait_while(holds, |holds| holds.count > 0).unwrap_or_else(PoisonError::into_inner);
    // The lock keeps other threads from holding a process now.
    signals::obey(signal);
    holds.is_to_suspend = false;
    CHANGED.notify_all();
}

fn lock() -> MutexGuard<'static, Holds> {
    HOLDS.lock().unwrap_or_else(PoisonError::into_inner)
}
