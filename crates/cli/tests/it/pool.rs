//! Samples a whole php-fpm pool while it serves.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{fs, thread};

use borehole_testkit::{Scratch, peers};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::program::{program, run, text, wait_for};

const SCRIPT: &[u8] = b"<?php
function slow_query(float $end) { $sum = 0; while (microtime(true) < $end) { $sum += crc32('x'); } return $sum; }
echo slow_query(microtime(true) + 0.05);
";

const WORKERS: usize = 3;

pub(crate) struct Pool(Child);

impl Pool {
    /// The id of its manager.
    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // The manager ends its workers when it is asked to end.
        let _ = kill(Pid::from_raw(self.0.id().try_into().unwrap()), Signal::SIGTERM);
        let _ = self.0.wait();
    }
}

/// Starts a pool of this name, with settings of PHP, that listens on the file `socket` in the folder.
pub(crate) fn start(scratch: &Scratch, name: &str, workers: usize, php: &[&str]) -> Option<Pool> {
    let folder = scratch.folder().display();
    let settings = format!(
        "[global]\nerror_log = {folder}/log\n[{name}]\nlisten = {folder}/socket\npm = static\n\
         pm.max_children = {workers}\nuser = root\n"
    );
    let settings = scratch.write("pool.conf", settings.as_bytes());
    let mut manager = peers::peer("php-fpm")?.command();
    manager.args(["--nodaemonize", "--allow-to-run-as-root", "--fpm-config"]).arg(settings).args(php);
    let manager = manager.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let pool = Pool(manager);
    let socket = scratch.path("socket");
    wait_for(|| UnixStream::connect(&socket).ok());
    Some(pool)
}

/// Sends a request and reads the whole answer. Kinds of record: 1 begins a request, 4 carries parameters, 5 the body.
pub(crate) fn request(socket: &Path, script: &Path, uri: &str) {
    let parameters = [
        ("REQUEST_METHOD", "GET"),
        ("SCRIPT_FILENAME", text(script)),
        ("SCRIPT_NAME", uri),
        ("REQUEST_URI", uri),
        ("QUERY_STRING", ""),
    ];
    let mut encoded = Vec::new();
    for (name, value) in parameters {
        encoded.extend([name.len(), value.len()].map(|length| u8::try_from(length).unwrap()));
        encoded.extend([name.as_bytes(), value.as_bytes()].concat());
    }
    let mut stream = UnixStream::connect(socket).unwrap();
    for (kind, content) in [(1, &[0, 1, 0, 0, 0, 0, 0, 0][..]), (4, &encoded), (4, &[]), (5, &[])] {
        let [high, low] = u16::try_from(content.len()).unwrap().to_be_bytes();
        stream.write_all(&[&[1, kind, 0, 1, high, low, 0, 0], content].concat()).unwrap();
    }
    stream.read_to_end(&mut Vec::new()).unwrap();
}

#[test]
fn a_pool_is_sampled_with_the_requests_that_it_serves() {
    let scratch = Scratch::new();
    let Some(_pool) = start(&scratch, "sampled-pool", WORKERS, &[]) else { return };
    let script = scratch.write("index.php", SCRIPT);
    let (socket, folder) = (scratch.path("socket"), scratch.path("out/"));
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        // One request at a time with pauses, to limit the load.
        scope.spawn(|| {
            for uri in ["/cart", "/search"].iter().cycle() {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                request(&socket, &script, uri);
                thread::sleep(Duration::from_millis(10));
            }
        });
        let mut record =
            program(&["record", "-P", "^php-fpm: pool sampled-pool", "--rate", "100", "--threads", "2"]);
        record
            .args(["--label", "request,uri,script", "-d", "3s", "-o"])
            .arg(format!("{}/", folder.display()));
        let output = record.output().unwrap();
        stop.store(true, Ordering::Relaxed);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        assert!(said.contains(&format!("Sampled {WORKERS} processes")) && said.contains(" idle"), "{said}");
    });
    let mut files: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert_eq!(files.len(), 2, "{files:?}");
    let arguments: Vec<_> = ["report", "--by", "http.url", "--sections", "by,total", "--no-line"]
        .into_iter()
        .chain(files.iter().map(|file| text(file)))
        .collect();
    let report = String::from_utf8(run(&arguments).done()).unwrap();
    for shown in ["  /cart\n", "  /search\n", "  slow_query", "  <main>"] {
        assert!(report.contains(shown), "{shown}: {report}");
    }
    let dumps = files.iter().map(|file| String::from_utf8(run(&["dump", text(file)]).done()).unwrap());
    let dump: String = dumps.collect();
    for label in [r#"["http.method","GET"]"#, r#"["request.start","1"#, text(&script)] {
        assert!(dump.contains(label), "{label}");
    }
}
