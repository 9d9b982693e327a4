//! Python programs that tests start and end.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use borehole_model::{FrameId, StackId, Tables};
use borehole_testkit::peers::{self, Peer};

/// The corpus file `path`.
pub(crate) fn corpus(path: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus")).join(path)
}

/// The peers that are interpreters of Python on this machine, by release.
const PYTHONS: [&str; 7] =
    ["python3.8", "python3.9", "python3.10", "python3.11", "python3.12", "python3.13", "python3.14"];

/// The peers that are always set up: the newest release, and one without a global lock.
const PEERS: [(&str, &str); 2] = [("python3.15", "python"), ("python3.13t", "python3.13t")];

/// An interpreter, with a copy of the programs.
pub(crate) struct Interpreter {
    pub(crate) name: &'static str,
    peer: Peer,
    /// The folder of the copy, and its path as the interpreter sees it.
    copied: PathBuf,
    inside: PathBuf,
}

impl Interpreter {
    /// The interpreter. `use_of` names who asks.
    fn new(name: &'static str, peer: Peer, use_of: &str) -> Self {
        // New releases have a root file system of their own.
        let command = peer.command();
        let is_elsewhere = Path::new(command.get_program()).ends_with("chroot");
        let root = command.get_args().next().filter(|_| is_elsewhere).unwrap_or("/".as_ref());
        let root = Path::new(root);
        let inside = PathBuf::from(format!("/tmp/borehole-{use_of}-{name}-{}", std::process::id()));
        let copied = root.join(inside.strip_prefix("/").unwrap());
        copy(&corpus("python"), &copied);
        Self { name, peer, copied, inside }
    }

    /// The command that runs a program of the folder `python` of the corpus.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = self.peer.command();
        command.arg(self.inside.join(program));
        command
    }

    /// Its version.
    pub(crate) fn version(&self) -> &str {
        self.peer.version()
    }
}

impl Drop for Interpreter {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.copied));
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (from, to) = (from.join(entry.file_name()), to.join(entry.file_name()));
        if from.is_dir() {
            copy(&from, &to);
        } else {
            fs::copy(&from, &to).unwrap();
        }
    }
}

/// The interpreters that are there. At least the newest one is, unless it is left out. `use_of` names who asks.
pub(crate) fn pythons(use_of: &str) -> Vec<Interpreter> {
    let of_machine = |name| Some(Interpreter::new(name, peers::optional(name)?, use_of));
    let of_peers = |(name, peer)| Some(Interpreter::new(name, peers::peer(peer)?, use_of));
    PYTHONS.into_iter().filter_map(of_machine).chain(PEERS.into_iter().filter_map(of_peers)).collect()
}

/// A running program whose standard input and output belong to the test.
pub(crate) struct Program {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Program {
    pub(crate) fn start(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, input, output }
    }

    pub(crate) fn id(&self) -> i32 {
        self.child.id().try_into().unwrap()
    }

    /// The next line that it writes; `None` if it has ended.
    pub(crate) fn line(&mut self) -> Option<Vec<u8>> {
        let mut line = Vec::new();
        let length = self.output.read_until(b'\n', &mut line).unwrap();
        line.pop();
        (length > 0).then_some(line)
    }

    /// The next stack that it prints: the construct it demonstrates, and its frames.
    pub(crate) fn expected(&mut self) -> Option<(String, Vec<String>)> {
        let construct = self.line()?;
        let construct = construct.strip_prefix(b"= ").unwrap_or_else(|| panic!("{construct:?}"));
        let construct = String::from_utf8_lossy(construct).into_owned();
        let lines = std::iter::from_fn(|| self.line()).take_while(|line| line != b".");
        Some((construct, lines.map(|line| String::from_utf8_lossy(&line).into_owned()).collect()))
    }

    /// Lets it continue.
    pub(crate) fn go_on(&mut self) {
        self.input.write_all(b"\n").unwrap();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The frames of a stack as lines of name, file and line.
pub(crate) fn frames(tables: &Tables, stack: StackId) -> Vec<String> {
    let text = |id| String::from_utf8_lossy(tables.string(id)).into_owned();
    let line = |id: FrameId| {
        let frame = tables.frame(id);
        let file = frame.file.map_or_else(|| "-".to_owned(), text);
        format!("{}\t{file}\t{}", text(frame.function), frame.line.unwrap_or(-1))
    };
    tables.frames_leaf_first(Some(stack)).map(line).collect()
}
