//! Workers of a pool: idle between requests, with a different stack in each.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use borehole_model::Tables;
use borehole_php::{AttachOptions, Executor, Php, SampleOutcome, StackWalker, WalkOptions};
use borehole_process::Process;
use borehole_testkit::{Scratch, peers};

use crate::programs;

const PATIENCE: Duration = Duration::from_secs(20);

/// A pool of one worker that ends with the test.
struct Pool {
    manager: Child,
    socket: PathBuf,
}

impl Pool {
    fn start(scratch: &Scratch, options: &[&str]) -> Option<Self> {
        let socket = scratch.folder().join("socket");
        let settings = format!(
            "[global]\nerror_log = {log}\n[one]\nlisten = {socket}\npm = static\npm.max_children = 1\nuser = root\n",
            log = scratch.folder().join("log").display(),
            socket = socket.display(),
        );
        let settings = scratch.write("pool.conf", settings.as_bytes());
        let mut manager = peers::peer("php-fpm")?.command();
        manager.args(options).args(["--nodaemonize", "--allow-to-run-as-root", "--fpm-config"]).arg(settings);
        let manager = manager.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let pool = Self { manager, socket };
        until("the pool listens", || UnixStream::connect(&pool.socket).ok());
        Some(pool)
    }

    fn worker(&self) -> i32 {
        let manager = self.manager.id().try_into().unwrap();
        let workers = || borehole_process::descendants(manager).unwrap();
        until("a worker", || workers().into_iter().find(|&worker| worker != manager))
    }

    /// Requests `script`, and holds back the end of the body.
    fn ask(&self, script: &Path, uri: &str) -> UnixStream {
        let mut stream = UnixStream::connect(&self.socket).unwrap();
        let query = uri.split_once('?').map_or("", |(_, query)| query);
        let script = script.to_string_lossy();
        let parameters = [
            ("REQUEST_METHOD", "PUT"),
            ("CONTENT_LENGTH", "1"),
            ("SCRIPT_FILENAME", &script),
            ("REQUEST_URI", uri),
            ("QUERY_STRING", query),
            ("SCRIPT_NAME", "/"),
        ];
        let mut encoded = Vec::new();
        for (name, value) in parameters {
            encoded.extend([u8::try_from(name.len()).unwrap(), u8::try_from(value.len()).unwrap()]);
            encoded.extend([name.as_bytes(), value.as_bytes()].concat());
        }
        // For `PUT`, PHP reads the body when the script does. Record types of FastCGI: 1 begins a request, 4 carries
        // parameters, 5 the body.
        for (kind, content) in [(1, &[0, 1, 0, 0, 0, 0, 0, 0][..]), (4, &encoded), (4, &[])] {
            stream.write_all(&record(kind, content)).unwrap();
        }
        stream
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // The manager ends its workers when it is asked to end.
        let id = nix::unistd::Pid::from_raw(self.manager.id().try_into().unwrap());
        let _ = nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGTERM);
        drop(self.manager.wait());
    }
}

fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    let [high, low] = u16::try_from(content.len()).unwrap().to_be_bytes();
    [&[1, kind, 0, 1, high, low, 0, 0], content].concat()
}

/// Sends the body and reads the complete answer.
fn finish(mut stream: UnixStream) {
    stream.write_all(&[record(5, b"x"), record(5, b"")].concat()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert!(
        answer.windows(7).any(|part| part == b"\r\n\r\n1\x00\x00" || part == b"\r\n\r\n1\x01\x06"),
        "{}",
        String::from_utf8_lossy(&answer)
    );
}

#[track_caller]
fn until<T>(what: &str, mut done: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        if let Some(found) = done() {
            return found;
        }
        thread::sleep(Duration::from_millis(1));
    }
    panic!("waited for {what}");
}

struct Worker {
    process: Process,
    php: Php,
    executor: Executor,
    walker: StackWalker,
    tables: Tables,
}

impl Worker {
    fn attach(id: i32) -> Self {
        let process = Process::open(id).unwrap();
        let php = Php::attach(&process, &AttachOptions::default()).unwrap();
        let executor = php.executors(&process).unwrap()[0];
        let walker = StackWalker::new(&php, WalkOptions::default());
        Self { process, php, executor, walker, tables: Tables::default() }
    }

    fn sample(&mut self) -> SampleOutcome {
        self.walker.sample(&self.process, &self.executor, &mut self.tables).unwrap()
    }

    /// The stack when the worker waits for the body.
    fn waiting(&mut self) -> Vec<String> {
        until("a worker that waits", || {
            let SampleOutcome::Stack(stack) = self.sample() else { return None };
            let frames = programs::frames(&self.tables, stack.id);
            frames[0].starts_with("file_get_contents").then_some(frames)
        })
    }
}

/// The source of the script `name`, which waits; its code begins on line 3.
fn stack(path: &Path, name: &str, first_line: i64) -> Vec<String> {
    let path = path.display();
    vec![
        "file_get_contents\t<internal>\t-1".to_owned(),
        format!("{name}_query\t{path}\t{}", first_line + 7),
        format!("{name}_page\t{path}\t{}", first_line + 2),
        format!("<main>\t{path}\t{}", first_line + 10),
    ]
}

fn requests_are_kept_apart(options: &[&str]) {
    let scratch = Scratch::new();
    let Some(pool) = Pool::start(&scratch, options) else { return };
    let mut worker = Worker::attach(pool.worker());
    assert_eq!(worker.php.identity().sapi, "fpm-fcgi");
    until("an idle worker", || (worker.sample() == SampleOutcome::Idle).then_some(()));
    assert_eq!(worker.php.request(&worker.process, &worker.executor).unwrap(), None);
    let scripts = [("one", "first", 3), ("two", "other", 6)].map(|(file, name, line)| {
        (programs::corpus(&format!("php/pool/{file}.php")).canonicalize().unwrap(), name, line)
    });
    for round in 0..10 {
        let (path, name, line) = &scripts[round % 2];
        let uri = format!("/{name}?round={round}");
        let stream = pool.ask(path, &uri);
        assert_eq!(worker.waiting(), stack(path, name, *line), "round {round}");
        let request = worker.php.request(&worker.process, &worker.executor).unwrap().unwrap();
        assert_eq!(request.method.as_deref(), Some(&b"PUT"[..]));
        assert_eq!(request.uri.as_deref(), Some(uri.as_bytes()));
        assert_eq!(request.query.as_deref(), Some(format!("round={round}").as_bytes()));
        assert_eq!(request.script.as_deref(), Some(path.as_os_str().as_encoded_bytes()));
        finish(stream);
        // Whether or not the worker is sampled between the requests.
        if round % 3 == 0 {
            until("an idle worker", || (worker.sample() == SampleOutcome::Idle).then_some(()));
        }
    }
    drop(fs::remove_file(&pool.socket));
}

#[test]
fn requests_of_a_pool_are_kept_apart() {
    requests_are_kept_apart(&["-d", "opcache.enable=0"]);
}

#[test]
fn requests_of_a_pool_with_opcache_are_kept_apart() {
    requests_are_kept_apart(&["-d", "opcache.enable=1"]);
}
