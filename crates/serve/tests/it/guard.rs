//! Who is answered.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::symlink;

use borehole_serve::ServeOptions;
use borehole_testkit::{Scratch, corpus};

use crate::client::Served;

const INPUTS: &str = "GET /api/v1/inputs";

#[test]
fn requests_that_another_site_could_send_are_refused() {
    let served = Served::paths([corpus("rbt/daemon_worker.rbt")]);
    let host = served.host.clone();
    let port = host.rsplit(':').next().unwrap();
    let refused = |headers: &[(&str, &str)]| {
        let reply = served.ask(INPUTS, headers);
        assert_eq!(reply.status, 403, "{headers:?}");
        assert_eq!(reply.json()["error"]["kind"], "forbidden");
    };
    // A name that its owner lets lead to this machine.
    refused(&[("Host", &format!("evil.example:{port}"))]);
    refused(&[]);
    refused(&[("Host", &host), ("Origin", "http://evil.example")]);
    refused(&[("Host", &host), ("Origin", "null")]);
    refused(&[("Host", &host), ("Origin", "http://127.0.0.1:1")]);
    refused(&[("Host", &host), ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "no-cors")]);
    // Neither may another page show an answer in a frame.
    refused(&[
        ("Host", &host),
        ("Sec-Fetch-Site", "same-site"),
        ("Sec-Fetch-Mode", "navigate"),
        ("Sec-Fetch-Dest", "iframe"),
    ]);
    for headers in [
        vec![("Host", &*host)],
        vec![("Host", &*host), ("Origin", &*format!("http://{host}")), ("Sec-Fetch-Site", "same-origin")],
        vec![("Host", &*format!("localhost:{port}"))],
    ] {
        assert_eq!(served.ask(INPUTS, &headers).status, 200, "{headers:?}");
    }
    // A link on another page may be followed.
    let link = [
        ("Host", &*host),
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Mode", "navigate"),
        ("Sec-Fetch-Dest", "document"),
    ];
    assert_eq!(served.ask("GET /", &link).status, 200);
}

#[test]
fn others_than_this_machine_need_the_token() {
    let mut options = ServeOptions::new(vec![corpus("rbt/daemon_worker.rbt")]);
    options.listen = "0.0.0.0:0".parse().unwrap();
    let served = Served::with(options);
    let token = served.token.clone().unwrap();
    assert_eq!(token.len(), 32);
    let host = served.host.clone();
    let status =
        |line: &str, more: &[(&str, &str)]| served.ask(line, &[&[("Host", &*host)], more].concat()).status;
    assert_eq!(status(INPUTS, &[]), 403);
    assert_eq!(status("GET /api/v1/inputs?token=0", &[]), 403);
    assert_eq!(status(INPUTS, &[("Cookie", &format!("borehole_token={token}x"))]), 403);
    assert_eq!(status(INPUTS, &[("Authorization", &format!("Bearer {token}"))]), 200);
    let opened = served.ask(&format!("GET /?token={token}"), &[("Host", &host)]);
    let cookie = opened.header("set-cookie").unwrap().to_owned();
    assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap();
    assert_eq!(status(INPUTS, &[("Cookie", &format!("a=b; {cookie}"))]), 200);
}

#[test]
fn nothing_outside_the_paths_is_served() {
    let scratch = Scratch::new();
    let inside = scratch.path("served");
    fs::create_dir(&inside).unwrap();
    let profile = fs::read(corpus("rbt/daemon_worker.rbt")).unwrap();
    fs::write(inside.join("own.rbt"), &profile).unwrap();
    let _ = scratch.write("secret.rbt", &profile);
    symlink(scratch.path("secret.rbt"), inside.join("link.rbt")).unwrap();
    symlink(scratch.folder(), inside.join("folder")).unwrap();
    let served = Served::paths([inside]);
    let inputs = served.json("/api/v1/inputs");
    let names: Vec<_> =
        inputs["inputs"].as_array().unwrap().iter().map(|input| input["path"].as_str().unwrap()).collect();
    assert_eq!(names, ["served/own.rbt"]);
    let secret = scratch.path("secret.rbt").display().to_string().replace('/', "%2F");
    for id in
        ["..%2Fsecret.rbt", "served%2F..%2F..%2Fsecret.rbt", "%2Fetc%2Fpasswd", &secret, "%00", "link.rbt"]
    {
        let reply = served.get(&format!("/api/v1/inputs/{id}/page"));
        assert_eq!((reply.status, &reply.json()["error"]["kind"]), (404, &"missing".into()), "{id}");
    }
    for path in ["/../../etc/passwd", "/inputs/../../../etc/passwd", "/assets/..%2f..%2fCargo.toml"] {
        assert_eq!(served.get(path).status, 404, "{path}");
    }
}

#[test]
fn every_answer_forbids_what_a_hostile_name_could_do() {
    let served = Served::paths([corpus("rbt/daemon_worker.rbt")]);
    for path in ["/", "/api/v1/inputs", "/nowhere", "/inputs/0"] {
        let reply = served.get(path);
        assert!(
            reply.header("content-security-policy").unwrap().contains("frame-ancestors 'none'"),
            "{path}"
        );
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(reply.header("cross-origin-resource-policy"), Some("same-origin"), "{path}");
    }
}

#[test]
fn silent_connections_keep_nobody_out() {
    let mut options = ServeOptions::new(vec![corpus("rbt/daemon_worker.rbt")]);
    options.connections = 100;
    let served = Served::with(options);
    let half = |place: usize| {
        let mut stream = served.connect();
        // Some say nothing, some begin a request and never end it.
        if place.is_multiple_of(2) {
            stream.write_all(b"GET / HTTP/1.1\r\nHost: ").unwrap();
        }
        stream
    };
    let mut silent: Vec<_> = (0..200).map(half).collect();
    // The server ends them after some seconds, in turns, and then answers.
    assert_eq!(served.json("/api/v1/inputs")["inputs"].as_array().unwrap().len(), 1);
    let mut rest = Vec::new();
    silent[0].read_to_end(&mut rest).unwrap_or_default();
    assert!(!rest.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&rest));
}
