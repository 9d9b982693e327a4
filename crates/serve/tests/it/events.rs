//! Server-sent events.

use std::fs::OpenOptions;
use std::io::{BufRead as _, BufReader, Write as _};

use borehole_testkit::{Scratch, read_corpus};

use crate::client::Served;

/// The next event, as its name and data.
fn next(lines: &mut impl Iterator<Item = std::io::Result<String>>) -> (String, String) {
    let mut name = String::new();
    for line in lines.map(Result::unwrap) {
        if let Some(event) = line.strip_prefix("event: ") {
            event.clone_into(&mut name);
        } else if let Some(data) = line.strip_prefix("data: ") {
            return (name, data.to_owned());
        }
    }
    panic!("the stream has ended")
}

#[test]
fn who_listens_is_told_of_files_that_appear_grow_and_go() {
    let scratch = Scratch::new();
    let first = scratch.write("first.folded", b"main;work 5\n");
    let served = Served::paths([scratch.folder().to_owned()]);
    let id = served.id("first.folded");
    let mut stream = served.connect();
    write!(stream, "GET /api/v1/events HTTP/1.1\r\nHost: {}\r\n\r\n", served.host).unwrap();
    let mut lines = BufReader::new(stream).lines();
    let head = lines.by_ref().map(Result::unwrap).take_while(|line| !line.is_empty());
    assert!(head.collect::<Vec<_>>().contains(&"content-type: text/event-stream".to_owned()));
    // The stream knows the inputs of its first look, which it takes before it says anything; so change until it tells.
    let mut file = OpenOptions::new().append(true).open(&first).unwrap();
    let growing = std::thread::spawn(move || {
        for _ in 0..100 {
            writeln!(file, "main;rest 5").unwrap();
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
    });
    assert_eq!(next(&mut lines), ("input".to_owned(), format!("{{\"id\":\"{id}\"}}")));
    growing.join().unwrap();
    let of_list = |lines: &mut _| while next(lines).0 != "inputs" {};
    let second = scratch.write("second.rbt", &read_corpus("rbt/daemon_worker.rbt"));
    of_list(&mut lines);
    assert!(!served.id("second.rbt").is_empty());
    std::fs::remove_file(second).unwrap();
    of_list(&mut lines);
    assert!(!served.get("/api/v1/inputs").text().contains("second.rbt"));
}
