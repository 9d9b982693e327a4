//! A server on a free port, and a client that says exactly what it sends.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use borehole_serve::{ServeOptions, Server};
use serde_json::Value;

/// A server that runs until the tests end.
pub(crate) struct Served {
    /// The address after `http://`.
    pub(crate) host: String,
    /// The query that carries the token, if there is one.
    pub(crate) token: Option<String>,
}

/// A response.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Served {
    pub(crate) fn paths<const N: usize>(paths: [PathBuf; N]) -> Self {
        Self::with(ServeOptions::new(paths.to_vec()))
    }

    pub(crate) fn with(options: ServeOptions) -> Self {
        let server = Server::listen(&options).unwrap();
        let (_, address) = server.address().split_once("://").unwrap();
        let address = address.to_owned();
        thread::spawn(move || server.run());
        let (host, query) = address.split_once('/').unwrap();
        let token = query.strip_prefix("?token=").map(str::to_owned);
        Self { host: host.to_owned(), token }
    }

    /// A connection.
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.host).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        stream
    }

    /// Asks with exactly these headers, and `Connection: close`.
    pub(crate) fn ask(&self, line: &str, headers: &[(&str, &str)]) -> Reply {
        let mut stream = self.connect();
        let mut request = format!("{line} HTTP/1.1\r\nConnection: close\r\n");
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        stream.write_all(format!("{request}\r\n").as_bytes()).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        reply(&bytes)
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        self.ask(&format!("GET {path}"), &[("Host", &self.host)])
    }

    pub(crate) fn json(&self, path: &str) -> Value {
        let reply = self.get(path);
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        reply.json()
    }

    /// The id of the input whose name is `name`.
    pub(crate) fn id(&self, name: &str) -> String {
        let inputs = self.json("/api/v1/inputs");
        let found = inputs["inputs"].as_array().unwrap().iter().find(|input| input["name"] == name);
        found.unwrap_or_else(|| panic!("{name}: {inputs}"))["id"].as_str().unwrap().to_owned()
    }
}

pub(crate) fn reply(bytes: &[u8]) -> Reply {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("an answer has a head");
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let mut body = bytes[end + 4..].to_vec();
    if head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        body = whole(&body);
    }
    Reply { status, head, body }
}

/// The content of chunks.
fn whole(mut chunks: &[u8]) -> Vec<u8> {
    let mut content = Vec::new();
    while let Some(end) = chunks.windows(2).position(|two| two == b"\r\n") {
        let length = usize::from_str_radix(std::str::from_utf8(&chunks[..end]).unwrap(), 16).unwrap();
        content.extend_from_slice(&chunks[end + 2..end + 2 + length]);
        chunks = &chunks[(end + 4 + length).min(chunks.len())..];
    }
    content
}
