//! Many clients at once.

use std::io::{Read as _, Write as _};

use borehole_testkit::corpus;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::client::Served;

#[test]
fn a_thousand_connections_are_answered() {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, most, most).unwrap();
    let served = Served::paths([corpus("rbt/daemon_worker.rbt")]);
    let id = served.id("daemon_worker.rbt");
    let request =
        format!("GET /api/v1/inputs/{id}/top HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", served.host);
    let mut waiting: Vec<_> = (0..1000)
        .map(|_| {
            let mut stream = served.connect();
            stream.write_all(request.as_bytes()).unwrap();
            stream
        })
        .collect();
    let answers = waiting.iter_mut().map(|stream| {
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert!(text.starts_with("HTTP/1.1 200 "), "{text}");
        text.split("\r\n\r\n").last().unwrap().to_owned()
    });
    let mut answers: Vec<String> = answers.collect();
    answers.dedup();
    assert_eq!(answers.len(), 1);
}
