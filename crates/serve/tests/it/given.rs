//! Files that clients give to the server, and how answers travel.

use std::fs;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use borehole_serve::{ServeOptions, TlsFiles};
use borehole_testkit::{Scratch, corpus, read_corpus};
use flate2::read::GzDecoder;
use serde_json::json;

use crate::client::{Reply, Served, reply};

/// Sends a body to a path.
fn post(served: &Served, path: &str, body: &[u8], length: usize) -> Reply {
    let mut stream = served.connect();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n",
        served.host
    );
    stream.write_all(head.as_bytes()).unwrap();
    // The server may have refused before the end.
    let _ = stream.write_all(body);
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    reply(&bytes)
}

fn receiving() -> Served {
    let mut options = ServeOptions::new(vec![corpus("rbt/daemon_worker.rbt")]);
    options.is_upload_allowed = true;
    Served::with(options)
}

#[test]
fn an_upload_is_an_input_like_others() {
    let served = receiving();
    let profile = read_corpus("rbt/native.rbt");
    let given = post(&served, "/api/v1/inputs?name=..%2F%3Cb%3Ex.rbt", &profile, profile.len());
    assert_eq!(given.status, 201, "{}", given.text());
    let input = &given.json()["input"];
    assert_eq!((&input["path"], &input["kind"]), (&json!("uploads/1-..bx.rbt"), &json!("profile")));
    let id = input["id"].as_str().unwrap();
    let top = served.json(&format!("/api/v1/inputs/{id}/top"));
    assert!(top["total"].as_i64().unwrap() > 0, "{top}");
    // A text that is no profile is listed, and says so.
    let other = post(&served, "/api/v1/inputs?name=n.txt", b"hello", 5);
    let other = other.json()["input"].clone();
    assert_eq!(other["kind"], "unreadable");
    // Where the server keeps it is nobody's business.
    let why = other["error"].as_str().unwrap();
    assert!(why.starts_with("2-n.txt: ") && !why.contains('/'), "{why}");
    let page = served.get(&format!("/api/v1/inputs/{}/page", other["id"].as_str().unwrap()));
    assert!(page.status == 422 && !page.text().contains("borehole-serve-"), "{}", page.text());
}

#[test]
fn uploads_are_refused_unless_they_are_allowed_whole_and_small() {
    let closed = Served::paths([corpus("rbt/daemon_worker.rbt")]);
    let refused = post(&closed, "/api/v1/inputs?name=a.rbt", b"x", 1);
    assert_eq!(refused.status, 403);
    assert!(refused.text().contains("--allow-upload"), "{}", refused.text());
    let served = receiving();
    assert_eq!(post(&served, "/api/v1/inputs", b"", 0).status, 400);
    assert_eq!(post(&served, "/api/v1/inputs?colour=1", b"x", 1).status, 400);
    // A client that leaves before the end leaves nothing behind.
    let mut leaving = served.connect();
    let host = &served.host;
    write!(leaving, "POST /api/v1/inputs HTTP/1.1\r\nHost: {host}\r\nContent-Length: 100\r\n\r\nhalf")
        .unwrap();
    drop(leaving);
    assert_eq!(served.json("/api/v1/inputs")["inputs"].as_array().unwrap().len(), 1);
}

#[test]
fn recording_is_refused_unless_it_is_allowed() {
    let served = Served::paths([corpus("rbt/daemon_worker.rbt")]);
    let refused = post(&served, "/api/v1/recordings?seconds=1", b"", 0);
    assert_eq!(refused.status, 403, "{}", refused.text());
    assert_eq!(served.json("/api/v1/inputs")["may"], json!({ "upload": false, "record": false }));
}

#[test]
fn answers_are_compressed_for_those_who_can_read_that() {
    let served = Served::paths([corpus("tachyon/corpus/26_realapp_zstd.bin")]);
    let path = format!("GET /api/v1/inputs/{}/page", served.id("26_realapp_zstd.bin"));
    let plain = served.ask(&path, &[("Host", &served.host)]);
    let packed = served.ask(&path, &[("Host", &served.host), ("Accept-Encoding", "gzip")]);
    assert_eq!((plain.header("content-encoding"), packed.header("content-encoding")), (None, Some("gzip")));
    let mut unpacked = Vec::new();
    GzDecoder::new(&*packed.body).read_to_end(&mut unpacked).unwrap();
    assert!(unpacked == plain.body && packed.body.len() < plain.body.len() / 2);
    let tag = packed.header("etag").unwrap();
    let again = [("Host", &*served.host), ("Accept-Encoding", "gzip"), ("If-None-Match", tag)];
    assert_eq!(served.ask(&path, &again).status, 304);
}

#[test]
fn connections_are_encrypted_by_the_certificate() {
    let scratch = Scratch::new();
    let [certificate, key] = ["server.crt", "server.key"].map(|name| scratch.path(name));
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "30",
            "-subj",
            "/CN=localhost",
        ])
        .args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"])
        .arg("-keyout")
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let mut options = ServeOptions::new(vec![corpus("rbt/daemon_worker.rbt")]);
    options.tls = Some(TlsFiles { certificate: certificate.clone(), key: key.clone() });
    options.wants_token = true;
    let served = Served::with(options);
    let token = served.token.clone().unwrap();
    let mut client = Command::new("openssl")
        .args(["s_client", "-quiet", "-no_ign_eof", "-verify_return_error", "-verify_hostname", "localhost"])
        .args(["-connect", &served.host, "-CAfile"])
        .arg(&certificate)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = client.stdin.take().unwrap();
    write!(input, "GET /?token={token} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", served.host)
        .unwrap();
    let mut text = String::new();
    client.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    drop(input);
    let ended = client.wait_with_output().unwrap();
    assert!(text.starts_with("HTTP/1.1 200 "), "{text}{}", String::from_utf8_lossy(&ended.stderr));
    assert!(text.contains("SameSite=Strict; Secure"), "{text}");
    // Who speaks plainly gets nothing.
    let mut plain = served.connect();
    let _ = write!(plain, "GET / HTTP/1.1\r\nHost: {}\r\n\r\n", served.host);
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"), "{}", String::from_utf8_lossy(&answer));
    // Files that are no certificate are refused before anybody is answered.
    fs::write(&certificate, "nothing").unwrap();
    let mut options = ServeOptions::new(Vec::new());
    options.tls = Some(TlsFiles { certificate, key });
    let error = borehole_serve::Server::listen(&options).err().unwrap().to_string();
    assert!(error.contains("server.crt: "), "{error}");
}
