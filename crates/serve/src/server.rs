//! The server: connections, their number and their time.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::api;
use crate::assistant::ToolSet;
use crate::desk::Desk;
use crate::guard::Guard;
use crate::lakes::LakeOptions;
use crate::limits::ConnectionLimits;
use crate::recordings::RecordingCommand;
use crate::stalls::StallLimit;
use crate::tls::{self, TlsFiles};

/// The inputs to serve, and their audience.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServeOptions {
    /// Files and folders.
    pub paths: Vec<PathBuf>,
    /// Folders in which source files may be read.
    pub sources: Vec<PathBuf>,
    /// The address to listen on; port 0 is any free one.
    pub listen: SocketAddr,
    /// Names of this machine under which it may be reached.
    pub hosts: Vec<String>,
    /// Whether a token is needed on this machine as well. It always is from others.
    pub wants_token: bool,
    /// About how many bytes of inputs are kept in memory.
    pub cache_bytes: usize,
    /// The number of connections at the same time.
    pub connections: usize,
    /// The tools that assistants get.
    pub tools: ToolSet,
    /// Whether files may be given to the server.
    pub is_upload_allowed: bool,
    /// The processes that may be recorded, if any.
    pub recording: Option<RecordingCommand>,
    /// The lakes that may be asked, if any.
    pub lakes: Option<LakeOptions>,
    /// The files for encrypted connections; without them, connections are not encrypted.
    pub tls: Option<TlsFiles>,
}

impl ServeOptions {
    /// The options for `paths`, served to this machine only.
    #[must_use]
    pub fn new(paths: Vec<PathBuf>) -> Self {
        Self {
            paths,
            sources: Vec::new(),
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            hosts: Vec::new(),
            wants_token: false,
            cache_bytes: Self::CACHE_BYTES,
            connections: Self::CONNECTIONS,
            tools: ToolSet::default(),
            is_upload_allowed: false,
            recording: None,
            lakes: None,
            tls: None,
        }
    }

    /// The default of [`ServeOptions::cache_bytes`].
    pub const CACHE_BYTES: usize = 512 << 20;

    /// The default of [`ServeOptions::connections`]: a browser opens six for each window.
    pub const CONNECTIONS: usize = 256;
}

/// A server that is listening, and answers once it [runs](Server::run).
pub struct Server {
    runtime: Runtime,
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    desk: Arc<Desk>,
    router: Router,
    address: String,
    connections: usize,
    /// The signals that end it. They are expected from the moment on in which somebody may know the address.
    terminated: Signal,
    interrupted: Signal,
}

impl Server {
    /// Begins to listen.
    ///
    /// # Errors
    /// If the address cannot be listened on, the files for encrypted connections are invalid, or signals cannot be handled.
    pub fn listen(options: &ServeOptions) -> io::Result<Self> {
        let tls = options.tls.as_ref().map(tls::acceptor).transpose()?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind(options.listen)).map_err(|error| {
            io::Error::new(error.kind(), format!("cannot listen on {}: {error}", options.listen))
        })?;
        let signals = || io::Result::Ok((signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?));
        let (terminated, interrupted) = runtime.block_on(async { signals() })?;
        let local = listener.local_addr()?;
        let guard = Guard::new(local, options);
        let token = guard.token.as_ref().map(|token| format!("?token={token}")).unwrap_or_default();
        let desk = Arc::new(Desk::new(options)?);
        let scheme = if tls.is_some() { "https" } else { "http" };
        Ok(Self {
            runtime,
            listener,
            tls,
            router: api::router(desk.clone(), guard, options.tools),
            desk,
            address: format!("{scheme}://{local}/{token}"),
            connections: options.connections.max(1),
            terminated,
            interrupted,
        })
    }

    /// The address to open, with the token if one is needed.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Answers until the process is asked to end.
    pub fn run(self) {
        let Self {
            runtime, listener, tls, desk, router, connections, mut terminated, mut interrupted, ..
        } = self;
        runtime.block_on(async {
            tokio::select! {
                () = accept(listener, tls, router, connections) => {}
                _ = terminated.recv() => {}
                _ = interrupted.recv() => {}
            }
        });
        desk.end();
        // What is being read is not waited for.
        runtime.shutdown_background();
    }
}

/// Accepts connections while there are fewer than `most`; others wait in the system's queue.
async fn accept(listener: TcpListener, tls: Option<TlsAcceptor>, router: Router, most: usize) {
    let places = Arc::new(Semaphore::new(most));
    while let Ok(place) = places.clone().acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                let (router, tls) = (router.clone(), tls.clone());
                tokio::spawn(async move {
                    let _ = timeout(ConnectionLimits::LIFE, connected(stream, tls, router)).await;
                    drop(place);
                });
            }
            // Such as too many open files; connections that end make room.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// Answers the requests of a connection, after the greeting of an encrypted one.
async fn connected(stream: TcpStream, tls: Option<TlsAcceptor>, router: Router) {
    let _ = stream.set_nodelay(true);
    let stream = StallLimit::new(stream, ConnectionLimits::STALL);
    match tls {
        None => answer(stream, router).await,
        Some(tls) => {
            // A client that has no certificate it trusts goes away, or speaks no TLS at all.
            if let Ok(Ok(stream)) = timeout(ConnectionLimits::HEAD, tls.accept(stream)).await {
                answer(stream, router).await;
            }
        }
    }
}

/// Answers requests. An error is the client's: it has gone, or sends no HTTP.
async fn answer(stream: impl AsyncRead + AsyncWrite + Unpin, router: Router) {
    let service = TowerToHyperService::new(router);
    let mut connection = http1::Builder::new();
    connection.timer(TokioTimer::new()).header_read_timeout(ConnectionLimits::HEAD).max_headers(64);
    let _ = connection.serve_connection(TokioIo::new(stream), service).await;
}
