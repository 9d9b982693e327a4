//! Servers, workers and number crunchers of Python, sampled while they work.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use borehole_testkit::Scratch;
use borehole_testkit::peers;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::program::{corpus, run, text, wait_for};

/// A Python that has the servers, for the programs of the corpus; `None` if it is left out.
fn python(scratch: &Scratch) -> Option<Command> {
    let mut command = peers::peer("python-servers")?.command();
    let (Some(python), Some(packages)) = (command.get_args().nth(1), command.get_args().next()) else {
        panic!("expected env, a path of packages and Python, found {command:?}")
    };
    let packages = format!("{}:{}", packages.to_str().unwrap(), corpus("python/servers"));
    let python = python.to_owned();
    command = Command::new("env");
    command.arg(packages).arg(python);
    // gunicorn has a folder for its own control there.
    command.env("HOME", scratch.path("")).current_dir(scratch.path(""));
    command.stdin(Stdio::null()).stderr(Stdio::null());
    Some(command)
}

/// A server that is asked to end when the test is over, and its processes with it.
struct Server(Child);

impl Server {
    fn id(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let id = Pid::from_raw(self.0.id().try_into().unwrap());
        // If it has ended, the test says why.
        let _ = kill(id, Signal::SIGTERM);
        drop(self.0.wait());
    }
}

/// Asks a server for its page, as long as `sampling` takes, from two threads.
fn under_load<T>(socket: &Path, sampling: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(false);
    let ask = || {
        let mut connection = UnixStream::connect(socket).ok()?;
        connection.write_all(b"GET / HTTP/1.0\r\nHost: localhost\r\n\r\n").ok()?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer).ok()?;
        answer.contains(" 200 ").then_some(())
    };
    wait_for(&ask);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    ask();
                }
            });
        }
        let sampled = sampling();
        is_over.store(true, Ordering::Relaxed);
        sampled
    })
}

/// Records what is on a CPU and returns the stacks, a line each.
fn recorded(scratch: &Scratch, server: &Server, options: &[&str]) -> Vec<String> {
    let path: PathBuf = scratch.path("recorded.folded");
    let id = server.id();
    let fixed = ["record", "-p", &id, "--mode", "cpu", "--rate", "500", "-n", "400", "-o", text(&path)];
    let said = run(&[&fixed[..], options].concat());
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(said.stderr.contains(" 0 failed"), "{}", said.stderr);
    std::fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
}

/// The number of samples whose stacks have frames of these functions, in this order.
fn samples_of(stacks: &[String], functions: &[&str]) -> u64 {
    let has_all = |stack: &&String| {
        let mut rest = stack.as_str();
        functions.iter().all(|function| {
            let at = rest.find(&format!("{function} "));
            rest = at.map_or("", |at| &rest[at..]);
            at.is_some()
        })
    };
    let samples = |stack: &String| stack.rsplit(' ').next().unwrap().parse::<u64>().unwrap();
    stacks.iter().filter(has_all).map(samples).sum()
}

#[test]
fn the_workers_of_gunicorn_are_sampled_in_their_pages() {
    let scratch = Scratch::new();
    let Some(mut python) = python(&scratch) else { return };
    let socket = scratch.path("socket");
    let bind = format!("unix:{}", text(&socket));
    python.args(["-m", "gunicorn", "--workers", "2", "--bind", &bind, "wsgi:app"]);
    let server = Server(python.spawn().unwrap());
    let stacks = under_load(&socket, || recorded(&scratch, &server, &["--children"]));
    let of_pages =
        samples_of(&stacks, &["Arbiter.spawn_worker", "SyncWorker.handle", "Flask.wsgi_app", "page"]);
    assert!(of_pages > 100, "{of_pages}: {}", stacks.join("\n"));
}

#[test]
fn the_tasks_of_uvicorn_are_joined_to_those_that_await_them() {
    let scratch = Scratch::new();
    let Some(mut python) = python(&scratch) else { return };
    let socket = scratch.path("socket");
    python.args(["-m", "uvicorn", "--uds", text(&socket), "--log-level", "error", "asgi:app"]);
    let server = Server(python.spawn().unwrap());
    let stacks = under_load(&socket, || recorded(&scratch, &server, &["--async"]));
    let of_pages = samples_of(&stacks, &["run_asgi", "app", "page", "compute"]);
    assert!(of_pages > 100, "{of_pages}: {}", stacks.join("\n"));
}

#[test]
fn the_jobs_of_celery_are_sampled_in_its_workers() {
    let scratch = Scratch::new();
    let jobs = scratch.path("jobs");
    std::fs::create_dir(&jobs).unwrap();
    let (Some(mut worker), Some(mut giver)) = (python(&scratch), python(&scratch)) else { return };
    let options = ["--concurrency", "2", "--without-gossip", "--without-mingle", "--without-heartbeat"];
    worker.args(["-m", "celery", "-A", "jobs", "worker"]).args(options).env("JOBS", &jobs);
    let handed_over = giver.arg(corpus("python/servers/jobs.py")).arg("2000").env("JOBS", &jobs).status();
    assert!(handed_over.unwrap().success());
    let server = Server(worker.stdout(Stdio::null()).spawn().unwrap());
    // Each job is a file until a worker takes it.
    wait_for(|| (std::fs::read_dir(&jobs).unwrap().count() < 2000).then_some(()));
    let stacks = recorded(&scratch, &server, &["--children"]);
    let of_jobs = samples_of(&stacks, &["Worker.workloop", "build_tracer.<locals>.trace_task", "compute"]);
    assert!(of_jobs > 100, "{of_jobs}: {}", stacks.join("\n"));
}

#[test]
fn threads_in_numpy_are_sampled_where_they_called_it() {
    let scratch = Scratch::new();
    let Some(mut python) = python(&scratch) else { return };
    python.arg(corpus("python/servers/products.py")).arg("4").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut program = python.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(program.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    let input = program.stdin.take();
    let server = Server(program);
    let stacks = recorded(&scratch, &server, &[]);
    let of_products = samples_of(&stacks, &["Thread.run", "multiply"]);
    let native = recorded(&scratch, &server, &["--native", "--force"]);
    drop(input);
    assert!(of_products > 350, "{of_products}: {}", stacks.join("\n"));
    let of_library =
        native.iter().filter(|stack| stack.contains("multiply ") && stack.contains("cblas_")).count();
    assert!(of_library > 0, "{native:#?}");
}
