//! PHP programs that are started by a test and ended with it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use borehole_model::{FrameId, StackId, Tables};

/// The corpus file `path`.
pub(crate) fn corpus(path: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../corpus")).join(path)
}

/// A running program whose input and output are the test's.
pub(crate) struct Program {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Program {
    pub(crate) fn start(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, input, output }
    }

    pub(crate) fn id(&self) -> i32 {
        self.child.id().try_into().unwrap()
    }

    /// The next line that it writes; `None` when it has ended.
    pub(crate) fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let length = self.output.read_line(&mut line).unwrap();
        (length > 0).then(|| line.trim_end_matches('\n').to_owned())
    }

    /// The next stack that it says it has: the construct it shows, and its frames.
    pub(crate) fn expected(&mut self) -> Option<(String, Vec<String>)> {
        let construct = self.line()?;
        let construct = construct.strip_prefix("= ").unwrap_or_else(|| panic!("{construct}")).to_owned();
        let lines = std::iter::from_fn(|| self.line());
        Some((construct, lines.take_while(|line| line != ".").collect()))
    }

    /// Lets it go on.
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
