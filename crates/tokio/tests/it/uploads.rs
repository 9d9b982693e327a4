//! Completed files are copied.

use std::fs;
use std::path::{Path, PathBuf};

use borehole_recorder::Recorder;
use borehole_tokio::{TokioRecorder, Upload};
use tokio::runtime::Builder;

use super::scratch::Scratch;

/// Records two files, the second one at the end.
fn record(upload: Upload, folder: &Path) {
    let recorder = upload.start(Recorder::builder(folder).metadata("service", "shop")).unwrap();
    let tokio = TokioRecorder::new(recorder.handle());
    let runtime = tokio.build("main", Builder::new_current_thread().enable_all()).unwrap();
    runtime.block_on(async { tokio.spawn(async {}).await.unwrap() });
    assert!(recorder.handle().dump("half"));
    runtime.block_on(async { tokio.spawn(async {}).await.unwrap() });
    drop(runtime);
    recorder.finish().unwrap();
}

/// All files below a folder, in order.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

fn contents(files: &[PathBuf]) -> Vec<Vec<u8>> {
    let mut contents: Vec<_> = files.iter().map(|file| fs::read(file).unwrap()).collect();
    contents.sort();
    contents
}

#[test]
fn a_folder_gets_every_file_by_service_host_and_boot() {
    let (traces, shared) = (Scratch::new(), Scratch::new());
    record(Upload::to(shared.folder().to_str().unwrap()).unwrap(), traces.folder());
    let copies = files(shared.folder());
    assert_eq!(contents(&copies), contents(&files(traces.folder())), "{copies:?}");
    assert_eq!(copies.len(), 2);
    let place = copies[0].strip_prefix(shared.folder()).unwrap().to_str().unwrap();
    let parts: Vec<_> = place.split('/').collect();
    assert!(
        parts[0] == "service=shop" && parts[1].starts_with("host=") && parts[2].starts_with("boot="),
        "{place}"
    );
}

#[test]
fn what_does_not_fit_the_budget_is_lost_for_the_copy_only() {
    let (traces, shared) = (Scratch::new(), Scratch::new());
    record(Upload::to(shared.folder().to_str().unwrap()).unwrap().pending_bytes(1), traces.folder());
    assert_eq!((files(traces.folder()).len(), files(shared.folder()).len()), (2, 0));
}

#[test]
fn a_wrong_address_is_an_error_at_the_start() {
    let refused = |address| match Upload::to(address) {
        Ok(_) => panic!("{address}"),
        Err(error) => error.to_string(),
    };
    assert!(refused("nowhere://x/y").starts_with("nowhere://x/y: cannot copy files there: "));
    assert!(cfg!(feature = "s3") || refused("s3://bucket/x").contains("s3://bucket/x: cannot copy"));
}

/// A storage that understands just enough of S3: it keeps what is put.
#[cfg(feature = "s3")]
mod s3 {
    use std::collections::BTreeMap;
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::sync::{Arc, Mutex};
    use std::{io, thread};

    use super::*;

    type Objects = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

    fn answer(stream: TcpStream, objects: &Objects) -> io::Result<()> {
        let mut stream = BufReader::new(stream);
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
            assert!(line.starts_with("PUT "), "{line}");
            let (mut len, mut is_signed) = (0, false);
            loop {
                let mut header = String::new();
                stream.read_line(&mut header)?;
                let header = header.trim_end().to_ascii_lowercase();
                if let Some(value) = header.strip_prefix("content-length: ") {
                    len = value.parse().unwrap();
                }
                is_signed |= header.starts_with("authorization: aws4-hmac-sha256 credential=key/");
                if header.is_empty() {
                    break;
                }
            }
            assert!(is_signed);
            let mut body = vec![0; len];
            stream.read_exact(&mut body)?;
            objects.lock().unwrap().insert(path, body);
            stream.get_mut().write_all(b"HTTP/1.1 200 OK\r\nETag: \"1\"\r\nContent-Length: 0\r\n\r\n")?;
        }
    }

    #[test]
    fn storage_gets_every_file() {
        let (listener, objects) = (TcpListener::bind("127.0.0.1:0").unwrap(), Objects::default());
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let kept = Arc::clone(&objects);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let kept = Arc::clone(&kept);
                thread::spawn(move || answer(stream.unwrap(), &kept));
            }
        });
        let options = [
            ("aws_endpoint", &*endpoint),
            ("aws_allow_http", "true"),
            ("aws_access_key_id", "key"),
            ("aws_secret_access_key", "secret"),
            ("aws_region", "here"),
        ];
        let options = options.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let traces = Scratch::new();
        record(Upload::with_options("s3://bucket/traces", options).unwrap(), traces.folder());
        let objects = objects.lock().unwrap();
        let mut copies: Vec<_> = objects.values().cloned().collect();
        copies.sort();
        assert_eq!(copies, contents(&files(traces.folder())));
        assert!(
            objects.keys().all(|path| path.starts_with("/bucket/traces/service%3Dshop/")),
            "{:?}",
            objects.keys()
        );
    }
}
