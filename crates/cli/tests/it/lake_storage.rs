//! Lakes in unreliable storage, which answers late, refuses requests, or executes them and loses the answer.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::lake::{S3, lines};
use crate::program::{Ended, corpus};

/// A proxy between a program and the storage, with one request per connection.
struct Between {
    address: String,
}

/// The fate of a request.
#[derive(Clone, Copy)]
enum Fate {
    /// The answer is half a second late.
    Late,
    /// It is refused before the storage sees it.
    Refused,
    /// The storage executes it, and the answer is lost.
    Unanswered,
    Answered,
}

impl Between {
    /// Requests meet these fates in turn. It listens until the tests end.
    fn start(storage: &S3, fates: &'static [Fate]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let storage = storage.address.clone();
        thread::spawn(move || {
            let count = AtomicUsize::new(0);
            for client in listener.incoming() {
                let fate = fates[count.fetch_add(1, Ordering::Relaxed) % fates.len()];
                let storage = storage.clone();
                // An early disconnect is the program's problem, and its messages are checked elsewhere.
                thread::spawn(move || pass(client.unwrap(), &storage, fate).unwrap_or_default());
            }
        });
        Self { address }
    }

    fn lake(&self, arguments: &[&str]) -> Ended {
        S3::lake_at(&self.address, arguments)
    }
}

fn pass(mut client: TcpStream, storage: &str, fate: Fate) -> std::io::Result<()> {
    let Some(request) = request(&mut client)? else { return Ok(()) };
    if matches!(fate, Fate::Refused) {
        return client.write_all(b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    }
    let mut storage = TcpStream::connect(storage)?;
    storage.write_all(&request)?;
    let mut answer = Vec::new();
    storage.read_to_end(&mut answer)?;
    match fate {
        Fate::Late => thread::sleep(Duration::from_millis(500)),
        Fate::Unanswered => return client.shutdown(Shutdown::Both),
        Fate::Refused | Fate::Answered => {}
    }
    client.write_all(&answer)
}

/// A complete request that asks for the connection to be closed after the answer; `None` if none comes.
fn request(client: &mut TcpStream) -> std::io::Result<Option<Vec<u8>>> {
    let (mut request, mut buffer) = (Vec::new(), [0; 1 << 14]);
    let end = loop {
        if let Some(at) = request.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
        let read = client.read(&mut buffer)?;
        if read == 0 {
            return Ok(None);
        }
        request.extend_from_slice(&buffer[..read]);
    };
    let head = String::from_utf8_lossy(&request[..end]).to_ascii_lowercase();
    let length =
        head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
    let whole = end + 4 + length.unwrap_or(0);
    while request.len() < whole {
        let read = client.read(&mut buffer)?;
        request.extend_from_slice(&buffer[..read]);
    }
    request.splice(end..end, *b"\r\nConnection: close");
    Ok(Some(request))
}

const SERVICES: &str = "SELECT service, sum(value) AS n FROM samples GROUP BY service ORDER BY service";

#[test]
fn late_and_refused_requests_are_retried() {
    let Some(storage) = S3::start() else { return };
    let between = Between::start(&storage, &[Fate::Late, Fate::Refused, Fate::Answered]);
    let lake = "s3://fleet/slow";
    between
        .lake(&["add", lake, &corpus("rbt/daemon_worker.rbt"), "--service", "shop", "--at", "2026-11-01"])
        .done();
    between
        .lake(&["add", lake, &corpus("rbt/annotations.rbt"), "--service", "web", "--at", "2026-11-01"])
        .done();
    let answer = lines(between.lake(&["query", lake, SERVICES, "--csv"]).quietly());
    assert_eq!(answer, ["service,n", "shop,30", "web,12"]);
    assert_eq!(between.lake(&["check", lake]).code, 0);
}

#[test]
fn a_commit_with_a_lost_reply_counts_once() {
    let Some(storage) = S3::start() else { return };
    let between =
        Between::start(&storage, &[Fate::Answered, Fate::Unanswered, Fate::Answered, Fate::Unanswered]);
    let lake = "s3://fleet/lost";
    let trace = corpus("rbt/daemon_worker.rbt");
    let add = || between.lake(&["add", lake, &trace, "--service", "shop", "--at", "2026-11-01"]);
    // A commit without an answer is not claimed as done; a further attempt adds the file or finds it added.
    assert!((0..20).any(|_| add().code == 0), "none of twenty attempts succeeded");
    let answer = lines(storage.lake(&["query", lake, SERVICES, "--csv"]).quietly());
    assert_eq!(answer, ["service,n", "shop,30"]);
    assert_eq!(storage.lake(&["check", lake]).code, 0);
}

#[test]
fn unreachable_storage_is_reported_in_bounded_time() {
    let Some(storage) = S3::start() else { return };
    let between = Between::start(&storage, &[Fate::Refused]);
    let said = between.lake(&["query", "s3://fleet/gone", SERVICES]).failed();
    assert!(said.starts_with("error: s3://fleet/gone/_lake/") && said.contains("503"), "{said}");
}
