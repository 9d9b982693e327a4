//! PHP programs that tests start and end.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use borehole_model::{FrameId, StackId, Tables};
use borehole_testkit::peers::{self, Peer};

/// The corpus file `path`.
pub(crate) fn corpus(path: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus")).join(path)
}

/// A running program whose standard input and output belong to the test.
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

    /// The next line that it writes; `None` if it has ended.
    pub(crate) fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let length = self.output.read_line(&mut line).unwrap();
        (length > 0).then(|| line.trim_end_matches('\n').to_owned())
    }

    /// The next stack that it prints: the construct it demonstrates, and its frames.
    pub(crate) fn expected(&mut self) -> Option<(String, Vec<String>)> {
        let construct = self.line()?;
        let construct = construct.strip_prefix("= ").unwrap_or_else(|| panic!("{construct}")).to_owned();
        let lines = std::iter::from_fn(|| self.line());
        Some((construct, lines.take_while(|line| line != ".").collect()))
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

/// Whether a frame is the one that PHP prints. Before 8.4, PHP does not say where a closure begins.
pub(crate) fn is_printed_as(frame: &str, printed: &str) -> bool {
    let Some((before, after)) = printed.split_once("{closure}") else { return frame == printed };
    let place = frame.strip_prefix(before).and_then(|rest| rest.strip_prefix("{closure:"));
    let Some(place) = place.and_then(|rest| rest.strip_suffix(after)?.strip_suffix('}')) else {
        return false;
    };
    let (file, line) = place.rsplit_once(':').unwrap_or(("", place));
    let mut executing = after.trim_start_matches('\t').split('\t');
    let executing_file = executing.next().unwrap_or_default();
    let executing_line: u32 = executing.next().unwrap_or_default().parse().unwrap();
    (file.is_empty() || file == executing_file) && (1..=executing_line).contains(&line.parse().unwrap())
}

/// Like [`is_printed_as`], for the frames of a stack.
pub(crate) fn are_printed_as(frames: &[String], printed: &[String]) -> bool {
    let is_same = |(frame, printed): (&String, &String)| is_printed_as(frame, printed);
    frames.len() == printed.len() && frames.iter().zip(printed).all(is_same)
}

/// A PHP of another release, in a root file system of its own.
pub(crate) struct Other {
    peer: Peer,
    /// The path of its root on this machine.
    copied: PathBuf,
    /// The path of the programs for this PHP.
    pub(crate) corpus: PathBuf,
}

impl Other {
    /// Finds the one called `name`, if it is installed, with a copy of the programs.
    pub(crate) fn find(name: &str) -> Option<Self> {
        Self::set_up(name, Path::new(&format!("/tmp/borehole-{}-{name}", std::process::id())))
    }

    /// Like [`Self::find`], with the copy in the folder `corpus`.
    pub(crate) fn set_up(name: &str, corpus: &Path) -> Option<Self> {
        Self::with("php/stacks", name, corpus)
    }

    /// Like [`Self::set_up`], with the programs of the folder `programs` of the corpus.
    pub(crate) fn with(programs: &str, name: &str, corpus: &Path) -> Option<Self> {
        let peer = peers::optional(name)?;
        let command = peer.command();
        assert_eq!(command.get_program(), "chroot");
        let root = PathBuf::from(command.get_args().next().unwrap());
        let copied = root.join(corpus.strip_prefix("/").unwrap());
        copy(&self::corpus(programs), &copied);
        Some(Self { peer, copied, corpus: corpus.to_owned() })
    }

    pub(crate) fn command(&self) -> Command {
        self.peer.command()
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.copied));
    }
}

pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (from, to) =
            (from.join(entry.as_ref().unwrap().file_name()), to.join(entry.unwrap().file_name()));
        if from.is_dir() {
            copy(&from, &to);
        } else {
            fs::copy(&from, &to).unwrap();
        }
    }
}

/// Waits until a process sleeps.
pub(crate) fn rest(id: i32) {
    let state = || fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
    while !state().rsplit(") ").next().unwrap().starts_with('S') {
        std::thread::sleep(Duration::from_millis(1));
    }
}
