//! Python programs that tests start and end.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use borehole_model::{FrameId, StackId, Tables};
use borehole_testkit::peers::{self, Peer};

/// The corpus file `path`.
pub(crate) fn corpus(path: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus")).join(path)
}

/// The peers that are interpreters of Python, by release.
pub(crate) const PYTHONS: [&str; 6] =
    ["python3.8", "python3.9", "python3.10", "python3.11", "python3.12", "python3.13"];

/// The interpreters that are there.
pub(crate) fn pythons() -> impl Iterator<Item = (&'static str, Peer)> {
    PYTHONS.into_iter().filter_map(|name| Some((name, peers::optional(name)?)))
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
