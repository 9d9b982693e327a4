//! Connections to MySQL and MariaDB with time limits.
//!
//! A server may work on a statement for long without a word, and the driver cannot continue after a read that took too
//! long. A thread therefore looks on: after the time limit, it finds out with a second connection whether the server
//! still answers, and if not, it ends the first one, so that the read fails.

use std::os::fd::{AsRawFd as _, RawFd};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use mysql::prelude::Queryable as _;
use mysql::{Conn, OptsBuilder};
use nix::sys::socket::{Shutdown, shutdown};

use super::refused;
use crate::error::Error;
use crate::time_limits::silent;

/// A connection.
pub(super) struct Link {
    connection: Conn,
    watch: Arc<Watch>,
    limit: Duration,
    onlooker: Option<JoinHandle<()>>,
}

/// A reason for no connection.
pub(super) enum NotLinked {
    /// The time limit is over.
    TooSlow,
    Refused(mysql::Error),
}

/// The state that a connection shares with its onlooker.
#[derive(Default)]
pub(super) struct Watch {
    state: Mutex<WatchState>,
    changed: Condvar,
}

#[derive(Default)]
struct WatchState {
    /// The last time at which the server did something that is waited for; `None` if nothing is waited for.
    since: Option<Instant>,
    /// Whether the connection is not used any more.
    is_over: bool,
    /// Whether the onlooker has ended the connection.
    is_cut: bool,
}

impl Link {
    /// Connects within `most`, if there is such a limit; `limit` is the one for answers.
    pub(super) fn new(opts: OptsBuilder, most: Option<Duration>, limit: Duration) -> Result<Self, NotLinked> {
        let connection = connect(opts.clone(), most)?;
        let watch = Arc::new(Watch::default());
        let (socket, id) = (connection.as_raw_fd(), connection.connection_id());
        let watched = Arc::clone(&watch);
        let works = move || works(opts.clone(), id, limit);
        let onlooker = thread::Builder::new().spawn(move || watched.look_on(socket, limit, &works));
        let onlooker = onlooker.map_err(|error| NotLinked::Refused(error.into()))?;
        Ok(Self { connection, watch, limit, onlooker: Some(onlooker) })
    }

    /// Waits for what `work` asks the server for. Work that gets answers piece by piece calls [`Watch::goes_on`].
    pub(super) fn wait<T>(
        &mut self,
        waited_for: &str,
        work: impl FnOnce(&mut Conn, &Arc<Watch>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.watch.goes_on();
        let done = work(&mut self.connection, &self.watch);
        let is_cut = self.watch.rests();
        done.map_err(|error| if is_cut { silent(self.limit, waited_for) } else { error })
    }

    /// Like [`Self::wait`], for work that is done in one piece.
    pub(super) fn ask<T>(
        &mut self,
        waited_for: &str,
        work: impl FnOnce(&mut Conn) -> mysql::Result<T>,
    ) -> Result<T, Error> {
        self.wait(waited_for, |connection, _| work(connection).map_err(refused))
    }

    pub(super) fn connection(&self) -> &Conn {
        &self.connection
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.watch.lock().is_over = true;
        self.watch.changed.notify_one();
        // It must not end a socket that gets this one's number.
        if let Some(onlooker) = self.onlooker.take() {
            drop(onlooker.join());
        }
    }
}

impl Watch {
    /// Notes that the server does what is waited for.
    pub(super) fn goes_on(&self) {
        let before = self.lock().since.replace(Instant::now());
        if before.is_none() {
            self.changed.notify_one();
        }
    }

    /// Notes that nothing is waited for. Returns whether the connection was ended for its silence.
    fn rests(&self) -> bool {
        let mut state = self.lock();
        state.since = None;
        state.is_cut
    }

    fn lock(&self) -> MutexGuard<'_, WatchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a silence longer than `limit`, and ends the connection if the server does not work for it.
    fn look_on(&self, socket: RawFd, limit: Duration, works: &dyn Fn() -> bool) {
        let mut state = self.lock();
        while !state.is_over {
            let left = state.since.map(|since| limit.saturating_sub(since.elapsed()));
            if left == Some(Duration::ZERO) {
                let since = state.since;
                drop(state);
                let works = works();
                state = self.lock();
                if state.since != since {
                    continue;
                }
                if !works {
                    state.is_cut = true;
                    // A connection that has ended needs no end.
                    let _ = shutdown(socket, Shutdown::Both);
                    return;
                }
                state.since = Some(Instant::now());
                continue;
            }
            let wait = left.unwrap_or(Duration::MAX);
            state = match self.changed.wait_timeout(state, wait) {
                Ok((state, _)) => state,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
    }
}

/// Connects within `most`. The thread of a connection that takes longer ends when its server does something, or with this
/// program.
fn connect(opts: OptsBuilder, most: Option<Duration>) -> Result<Conn, NotLinked> {
    let Some(most) = most else { return Conn::new(opts).map_err(NotLinked::Refused) };
    let (connecting, connected) = channel();
    // Nobody may be waiting for it any more.
    let connect = move || drop(connecting.send(Conn::new(opts)));
    thread::Builder::new().spawn(connect).map_err(|error| NotLinked::Refused(error.into()))?;
    match connected.recv_timeout(most) {
        Ok(connected) => connected.map_err(NotLinked::Refused),
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Err(NotLinked::TooSlow),
    }
}

/// Whether the server still works for the connection with this number. A refusal is an answer too.
fn works(opts: OptsBuilder, id: u32, limit: Duration) -> bool {
    let opts = opts.read_timeout(Some(limit)).write_timeout(Some(limit));
    let mut connection = match connect(opts, Some(limit)) {
        Ok(connection) => connection,
        Err(NotLinked::Refused(mysql::Error::MySqlError(_))) => return true,
        Err(NotLinked::Refused(_) | NotLinked::TooSlow) => return false,
    };
    let statement = "SELECT COUNT(*) FROM information_schema.processlist WHERE id = ?";
    match connection.exec_first::<u64, _, _>(statement, (id,)) {
        Ok(found) => found != Some(0),
        Err(error) => matches!(error, mysql::Error::MySqlError(_)),
    }
}
