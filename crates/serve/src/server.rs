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

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::ops::Range;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::thread;

    use borehole::heap::{
        Child, Edge, Graph, GraphBuilder, GraphCounts, HeapGraph, HeapSink as _, MemoryLocation,
        NodeAttribute, NodeId, NodeType, Strength, StringId, Totals, Vocabulary,
    };
    use borehole_testkit::corpus;

    use super::*;
    use crate::opened::{Opened, OpenedHeap};

    const NODES: u32 = 20_000;
    /// The looks after which the graph waits for the test.
    const BEFORE: u64 = 5_000;

    /// A graph that counts how often its references are looked at, and stops at one of the looks until it may go on.
    struct CountedGraph {
        graph: HeapGraph,
        looks: Arc<Looks>,
    }

    #[derive(Default)]
    struct Looks {
        count: AtomicU64,
        may_go_on: AtomicBool,
    }

    fn until(is_so: impl Fn() -> bool) {
        while !is_so() {
            thread::sleep(Duration::from_millis(1));
        }
    }

    macro_rules! forwarded {
        ($($method:ident($($argument:ident: $kind:ty)?) -> $result:ty;)+) => {
            $(fn $method(&self, $($argument: $kind)?) -> $result {
                self.graph.$method($($argument)?)
            })+
        };
    }

    impl Graph for CountedGraph {
        forwarded! {
            counts() -> GraphCounts;
            node_type(node: NodeId) -> NodeType;
            canonical(node: NodeId) -> Option<NodeId>;
            children(parent: Option<NodeId>) -> Range<usize>;
            locations(node: NodeId) -> Range<usize>;
            location(row: usize) -> MemoryLocation;
            location_node(row: usize) -> NodeId;
            attributes(node: NodeId) -> Range<usize>;
            attribute(row: usize) -> NodeAttribute;
            attribute_node(row: usize) -> NodeId;
            string(string: StringId) -> &[u8];
            vocabulary() -> &Vocabulary;
            summary() -> &[(StringId, StringId)];
            totals() -> Option<&Totals>;
            created() -> &str;
        }

        fn child(&self, row: usize) -> Option<Child> {
            let looks = &self.looks;
            if looks.count.fetch_add(1, Ordering::Relaxed) == BEFORE {
                until(|| looks.may_go_on.load(Ordering::Relaxed));
            }
            self.graph.child(row)
        }
    }

    /// A list of nodes.
    fn list() -> HeapGraph {
        let mut builder = GraphBuilder::new();
        let link = builder.string(b"next");
        let mut parent = None;
        for _ in 0..NODES {
            let child = builder.node(NodeType::OBJECT);
            builder.edge(Edge { parent, child, link, is_tree: true, strength: Strength::Strong });
            parent = Some(child);
        }
        builder.finish().unwrap()
    }

    /// A server with such a heap in place of a file, and what counts its work.
    fn serving() -> (String, Arc<Opened>, Arc<Looks>) {
        let name = "8.1.2.rdump";
        let options = ServeOptions::new(vec![corpus(&format!("php/heap/{name}"))]);
        let server = Server::listen(&options).unwrap();
        let looks = Arc::new(Looks::default());
        let graph = CountedGraph { graph: list(), looks: looks.clone() };
        let read = move |_: &_, _: &_| Ok(Opened::Heap(OpenedHeap::of(graph)));
        let opened = server.runtime.block_on(server.desk.open_by(name, None, read)).unwrap();
        let host = server.address().trim_start_matches("http://").trim_end_matches('/').to_owned();
        thread::spawn(move || server.run());
        (host, opened.1, looks)
    }

    fn ask(host: &str, view: &str) -> std::net::TcpStream {
        let mut stream = std::net::TcpStream::connect(host).unwrap();
        let line = format!("GET /api/v1/inputs/8.1.2.rdump/{view} HTTP/1.1");
        write!(stream, "{line}\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
        stream
    }

    #[test]
    fn a_view_that_nobody_waits_for_any_more_is_not_computed_to_its_end() {
        let (host, opened, looks) = serving();
        let count = || looks.count.load(Ordering::Relaxed);
        // The cache has it, and this test; so does who waits for an answer.
        let is_waited_for = || Arc::strong_count(&opened) > 2;
        let asked = ask(&host, "page");
        until(|| count() > BEFORE);
        assert!(is_waited_for());
        drop(asked);
        until(|| !is_waited_for());
        looks.may_go_on.store(true, Ordering::Relaxed);

        // The look that was under way is the last one: another question is answered after it.
        let mut text = String::new();
        ask(&host, "heap_ask?node=x").read_to_string(&mut text).unwrap();
        let ended = count();
        assert!(text.starts_with("HTTP/1.1 400 "), "{text}");
        assert_eq!(ended, BEFORE + 1);

        // Who stays gets the view, which takes more looks than that.
        text.clear();
        ask(&host, "page").read_to_string(&mut text).unwrap();
        assert!(text.starts_with("HTTP/1.1 200 "), "{text}");
        assert!(count() - ended > BEFORE, "{}", count() - ended);
    }
}
