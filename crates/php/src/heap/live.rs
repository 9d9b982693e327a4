//! Memory of running PHP programs, for tests.
#![cfg(test)]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use borehole_process::{
    Dump, ForeignMemory as _, ForeignProcess as _, Image, ImageRecorder, MemoryPiece, Process,
};
use borehole_testkit::peers::{self, Peer};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::attach::{AttachOptions, Php};
use crate::executor::Executor;

/// The number of bytes read at once.
const PART: u64 = 1 << 20;

/// The bytes that `wait.inc` uses while it asks: the array for the answer.
pub(crate) const ASKING: u64 = 376;

/// The programs of `corpus/php`. Programs that a release does not support end before they are ready.
pub(crate) const PROGRAMS: [&str; 16] = [
    "mem/m1_objects",
    "mem/m2_arrays",
    "mem/m3_closures",
    "mem/m4_generators",
    "mem/m5_mixed",
    "internals/objects",
    "internals/containers",
    "internals/garbage",
    "internals/remnants",
    "internals/modern",
    "internals/lazy",
    "internals/extensions",
    "internals/callables",
    "internals/large",
    "internals/fibers",
    "internals/suspended",
];

/// The symbols that attaching needs, of the thousands in PHP.
const SYMBOLS: &[&str] = &[
    "basic_globals",
    "compiler_globals",
    "compiler_globals_offset",
    "executor_globals",
    "executor_globals_offset",
    "module_registry",
    "output_globals",
    "sapi_globals",
    "sapi_globals_offset",
    "sapi_module",
    "tsrm_get_ls_cache_tcb_offset",
    "zend_flf_functions",
    "zend_mm_get_heap",
    "zend_pass_function",
];

/// The part of `mem/m5_mixed.php` that needs a driver of SQLite.
const DATABASE: &str = "$pdo = new PDO('sqlite::memory:'); $st = $pdo->prepare('select 1');";

/// A copy of a stopped program.
pub(crate) struct CopiedProgram {
    pub(crate) dump: Dump,
    pub(crate) php: Php,
    pub(crate) executor: Executor,
    /// The memory usage that it reported.
    pub(crate) usage: u64,
    /// Its whole report, as JSON.
    pub(crate) ready: String,
    /// The data needed for attaching to it.
    pub(crate) image: Image,
}

/// The number of the next folder.
static NEXT: AtomicU32 = AtomicU32::new(0);

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// The available PHPs, with their root folders.
pub(crate) fn phps() -> Vec<(String, Peer, PathBuf)> {
    let names = ["7.0", "7.2", "7.4", "8.1", "8.3", "8.4", "8.5", "8.6", "8.4-zts"];
    let mut found: Vec<_> = peers::peer("php-extensions")
        .map(|peer| ("php".to_owned(), peer, PathBuf::from("/")))
        .into_iter()
        .collect();
    for name in names.map(|name| format!("php-{name}")) {
        let Some(peer) = peers::optional(&name) else { continue };
        let root = PathBuf::from(peer.command().get_args().next().unwrap());
        found.push((name, peer, root));
    }
    found
}

/// Runs a program of `corpus/php` until it reports that it is ready, and copies it; `None` if it ends before.
pub(crate) fn copy(
    peer: &Peer,
    root: &Path,
    program: &str,
    php: &[&str],
    arguments: &[&str],
) -> Option<CopiedProgram> {
    copy_with(peer, root, program, php, arguments, &[])
}

/// Like [`copy`], with environment variables.
pub(crate) fn copy_with(
    peer: &Peer,
    root: &Path,
    program: &str,
    php: &[&str],
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> Option<CopiedProgram> {
    let (folder, file) = program.split_once('/').unwrap();
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let there = format!("tmp/borehole-{}-{number}-{file}", std::process::id());
    let files = borehole_testkit::corpus(&format!("php/{folder}"));
    fs::create_dir_all(root.join(&there)).unwrap();
    for entry in fs::read_dir(files).unwrap() {
        let entry = entry.unwrap();
        let text = fs::read_to_string(entry.path()).unwrap();
        // Not every PHP has the database, and the program does not use it.
        let text = text.replace(DATABASE, "");
        fs::write(root.join(&there).join(entry.file_name()), text).unwrap();
    }
    let mut command = peer.command();
    command.args(php).arg(format!("/{there}/{file}.php")).args(arguments);
    // No data of this machine gets into the memory.
    command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").current_dir("/");
    command.env("WAIT", "100").envs(environment.iter().copied());
    let copied = run(&mut command);
    fs::remove_dir_all(root.join(&there)).unwrap();
    copied
}

fn run(command: &mut Command) -> Option<CopiedProgram> {
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let running = Running(child);
    let ready = loop {
        let mut line = String::new();
        if errors.read_line(&mut line).unwrap() == 0 {
            return None;
        }
        if let Some(ready) = line.strip_prefix("READY ") {
            break ready.to_owned();
        }
    };
    std::thread::sleep(std::time::Duration::from_millis(50));
    let id = i32::try_from(running.0.id()).unwrap();
    kill(Pid::from_raw(id), Signal::SIGSTOP).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(20));
    let recorder = ImageRecorder::new(Process::open(id).unwrap()).unwrap();
    let php = Php::attach(&recorder, &AttachOptions::default()).unwrap();
    let executor = php.executors(&recorder).unwrap()[0];
    let mut image = recorder.finish();
    image.retain_symbols(|name| SYMBOLS.iter().any(|wanted| wanted.as_bytes() == name));
    let mut dump = Dump::new(image.clone());
    let process = Process::open(id).unwrap();
    for mapping in process.mappings() {
        // Of PHP itself, also its constant tables, such as the empty array and the handlers of objects.
        let is_php = mapping.path.windows(3).any(|part| part == b"php") && !mapping.executable;
        let wanted = mapping.readable && (mapping.writable || is_php) && !mapping.path.starts_with(b"[v");
        if wanted {
            insert(&mut dump, &process, mapping.start, mapping.end);
        }
    }
    let usage = ready.split("\"usage\":").nth(1).unwrap().split(',').next().unwrap().parse().unwrap();
    Some(CopiedProgram { dump, php, executor, usage, ready, image })
}

fn insert(dump: &mut Dump, process: &Process, start: u64, end: u64) {
    let mut address = start;
    while address < end {
        let mut part = vec![0; usize::try_from(PART.min(end - address)).unwrap()];
        let filled = process.read_pieces(&mut [MemoryPiece { address, into: &mut part }]).unwrap();
        part.truncate(filled);
        dump.insert(address, part);
        address += PART;
    }
}
