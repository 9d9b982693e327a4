//! A proxy between a program and a server, which fails at a chosen byte.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// The failure of a [`Proxy`] whose bytes are used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyFailure {
    /// It closes all connections, and new ones at once.
    Close,
    /// It keeps all connections, and new ones, and passes nothing on.
    Silence,
}

/// Passes bytes between a port of its own and that of a server on loopback, until it fails. It ends when this is dropped.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    shared: Arc<ProxyState>,
}

#[derive(Debug)]
struct ProxyState {
    server: u16,
    failure: ProxyFailure,
    /// The bytes that may still pass, in both directions and all connections.
    left: AtomicU64,
    passed: AtomicU64,
    is_over: AtomicBool,
    /// Both ends of all connections.
    ends: Mutex<Vec<TcpStream>>,
}

impl Proxy {
    /// Begins to pass on `most` bytes to and from the port `server`.
    ///
    /// # Panics
    /// If loopback has no free port.
    #[must_use]
    pub fn start(server: u16, most: u64, failure: ProxyFailure) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("the loopback has a free port");
        let port = listener.local_addr().expect("it listens").port();
        let (left, passed) = (AtomicU64::new(most), AtomicU64::new(0));
        let (is_over, ends) = (AtomicBool::new(false), Mutex::default());
        let shared = Arc::new(ProxyState { server, failure, left, passed, is_over, ends });
        let state = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming().flatten().take_while(|_| !state.is_over()) {
                // A server that is gone closes the client's connection.
                let _ = state.join(client);
            }
        });
        Self { port, shared }
    }

    /// Its port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The bytes that have passed.
    #[must_use]
    pub fn passed(&self) -> u64 {
        self.shared.passed.load(Ordering::Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        self.shared.close();
        // It waits for a connection.
        drop(TcpStream::connect(("127.0.0.1", self.port)));
    }
}

impl ProxyState {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Passes on what a client and the server say to each other.
    fn join(self: &Arc<Self>, client: TcpStream) -> std::io::Result<()> {
        self.keep(client.try_clone()?);
        if self.left.load(Ordering::Relaxed) == 0 {
            self.fail();
            return Ok(());
        }
        let server = TcpStream::connect(("127.0.0.1", self.server))?;
        self.keep(server.try_clone()?);
        for (from, to) in [(client.try_clone()?, server.try_clone()?), (server, client)] {
            let state = Arc::clone(self);
            thread::spawn(move || state.pass(from, to));
        }
        Ok(())
    }

    fn keep(&self, end: TcpStream) {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner).push(end);
    }

    fn pass(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut bytes = [0; 1 << 12];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            let taken = self.take(count);
            if to.write_all(&bytes[..taken]).is_err() {
                break;
            }
            self.passed.fetch_add(taken as u64, Ordering::Relaxed);
            if taken < count || self.left.load(Ordering::Relaxed) == 0 {
                return self.fail();
            }
        }
        // The other end learns that this one has ended.
        let _ = to.shutdown(Shutdown::Write);
    }

    /// The number of bytes, of `count`, that still pass.
    fn take(&self, count: usize) -> usize {
        let left = |left: u64| Some(left.saturating_sub(count as u64));
        let before = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left).unwrap_or_default();
        usize::try_from(before).unwrap_or(usize::MAX).min(count)
    }

    fn fail(&self) {
        if self.failure == ProxyFailure::Close {
            self.close();
        }
    }

    fn close(&self) {
        for end in self.ends.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            // It may have ended by itself.
            let _ = end.shutdown(Shutdown::Both);
        }
    }
}
