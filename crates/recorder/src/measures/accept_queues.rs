//! The accept queues of the process's listening sockets: connections that wait for the program.

use std::collections::BTreeSet;
use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use super::netlink::{Listener, listeners};
use crate::recorder::Handle;
use crate::source::{Source, SourceState};
use crate::trc::TraceEvent;

/// The accept queue of a listening socket. Source: dial9 0.5.7.
#[derive(TraceEvent, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TcpAcceptQueueEvent {
    /// The time.
    #[traceevent(timestamp)]
    pub timestamp_ns: u64,
    /// The kernel's number of the socket, which is never used again.
    pub socket_cookie: u64,
    /// Its inode.
    pub socket_inode: u64,
    /// 4 or 6.
    pub ip_version: u8,
    /// The address that it listens at.
    pub local_addr: String,
    /// Its port.
    pub local_port: u16,
    /// The number of connections that wait to be accepted.
    #[traceevent(kind = "gauge")]
    pub pending_connections: u32,
    /// The number that may wait.
    pub backlog_limit: u32,
}

/// Samples the queues.
pub(crate) struct AcceptQueueSource {
    /// The inodes of the process's sockets.
    own: BTreeSet<u32>,
    /// The time at which they were listed.
    listed: Option<Instant>,
}

/// Source: dial9 0.5.7.
const EVERY: Duration = Duration::from_millis(400);

/// The time after which the process's sockets are listed again. A server opens its listening sockets once.
const LIST_EVERY: Duration = Duration::from_secs(5);

/// The maximum number of descriptors that are looked at.
const MOST_DESCRIPTORS: usize = 10_000;

impl AcceptQueueSource {
    pub(crate) fn new() -> Self {
        Self { own: BTreeSet::new(), listed: None }
    }

    /// Whether a socket is one of the process. An unknown one may be new.
    fn is_own(&mut self, inode: u32) -> bool {
        if self.listed.is_none_or(|listed| listed.elapsed() >= LIST_EVERY) {
            self.own = own_sockets();
            self.listed = Some(Instant::now());
        }
        self.own.contains(&inode)
    }
}

/// The inodes of the process's sockets.
fn own_sockets() -> BTreeSet<u32> {
    let Ok(descriptors) = fs::read_dir("/proc/self/fd") else { return BTreeSet::new() };
    let inode = |entry: fs::DirEntry| {
        let target = fs::read_link(entry.path()).ok()?;
        target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    };
    descriptors.flatten().take(MOST_DESCRIPTORS).filter_map(inode).collect()
}

fn event(timestamp_ns: u64, listener: &Listener) -> TcpAcceptQueueEvent {
    let [a, b, c, d, ..] = listener.address;
    TcpAcceptQueueEvent {
        timestamp_ns,
        socket_cookie: listener.cookie,
        socket_inode: listener.inode.into(),
        ip_version: if listener.is_v6 { 6 } else { 4 },
        local_addr: match listener.is_v6 {
            true => Ipv6Addr::from(listener.address).to_string(),
            false => Ipv4Addr::from([a, b, c, d]).to_string(),
        },
        local_port: listener.port,
        pending_connections: listener.pending,
        backlog_limit: listener.limit,
    }
}

impl Source for AcceptQueueSource {
    fn name(&self) -> &'static str {
        "accept-queues"
    }

    fn interval(&self) -> Duration {
        EVERY
    }

    fn sample(&mut self, handle: &Handle) -> SourceState {
        // Some sandboxes allow no such sockets.
        let Ok(found) = listeners() else { return SourceState::Ended };
        for listener in found {
            if self.is_own(listener.inode) {
                handle.record_now(|timestamp_ns| event(timestamp_ns, &listener));
            }
        }
        SourceState::Continues
    }
}
