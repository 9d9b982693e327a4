//! Names that a terminal would obey, or that would forge lines, in every command: on a terminal and through a pipe.
//!
//! The commands are those of the manual pages, so that a new one cannot be forgotten.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use borehole_testkit::raw_profiles::{MappedFile, raw_pprof};
use borehole_testkit::{Scratch, peers, read_corpus};
use nix::pty::{Winsize, openpty};

use crate::program::{program, run, text, wait_for};

/// A title, the clipboard, a colour, a bell, DEL, a C1 control character, a direction mark, a tab, a line break, and a byte that
/// is not UTF-8.
const NASTY: &[u8] =
    b"\x1b]0;PWN\x07\x1b]52;c;UFdO\x07\x1b[31mred\x7fdel\xc2\x9bc1\xe2\x80\xaeback\tcell\nFORGED\xff";

/// [`NASTY`] as far as it can be in an argument that must be UTF-8.
fn nasty_text() -> String {
    String::from_utf8_lossy(NASTY).into_owned()
}

/// Parts of [`NASTY`] that must not be shown: those that do something, and the line break before a forged line.
const FORBIDDEN: [&[u8]; 7] =
    [b"\x1b]", b"\x07", b"\x1b[31mred", b"\x7f", b"\xc2\x9b", b"\xe2\x80\xae", b"\nFORGED"];

/// Who reads the output of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reader {
    /// A person: nothing nasty is shown anywhere.
    Person,
    /// A program: names stay as they are, as far as the format can hold them, but not on a terminal.
    Program,
    /// A person, who leaves with the key `q`.
    AtKeys,
}

use Reader::{AtKeys, Person, Program};

/// Each command, with arguments of which those in braces stand for files and processes with nasty names.
const COMMANDS: &[(&str, Reader, &[&str])] = &[
    ("check", Person, &["{rbt}", "{trc}", "{cut}"]),
    ("completions", Person, &["bash"]),
    ("convert", Person, &["{rbt}", "--to", "pstats-text"]),
    ("convert", Program, &["{rbt}", "--to", "folded"]),
    ("convert", Program, &["{rbt}", "--to", "collapsed"]),
    ("convert", Program, &["{rbt}", "--to", "phpspy"]),
    ("convert", Program, &["{rbt}", "--to", "speedscope"]),
    ("convert", Program, &["{rbt}", "--to", "callgrind"]),
    ("diff", Person, &["{rbt}", "{other}"]),
    ("diff", Program, &["{rbt}", "{other}", "--json"]),
    ("doctor", Person, &[]),
    ("doctor", Person, &["-p", "{pid}"]),
    ("dump", Program, &["{rbt}"]),
    ("dump", Program, &["{rbt}", "--raw"]),
    ("eg", Person, &["-p", "{pid}"]),
    ("explore", AtKeys, &["{rbt}"]),
    ("formats", Person, &[]),
    ("heap analyze", Person, &["{rdump}", "-o", "{new}.rmem"]),
    ("heap ask", Person, &["{rmem}", "top-classes"]),
    ("heap ask cycles", Person, &[]),
    ("heap ask dominators", Person, &["17"]),
    ("heap ask find", Person, &["--content", "PWN"]),
    ("heap ask node", Person, &["17"]),
    ("heap ask path-to-root", Person, &["17"]),
    ("heap ask references", Person, &["17"]),
    ("heap ask referrers", Person, &["17"]),
    ("heap ask retained", Person, &["17"]),
    ("heap ask roots", Person, &[]),
    ("heap ask top-classes", Person, &[]),
    ("heap ask top-retained", Person, &["--limit", "0"]),
    ("heap capture", Person, &["-p", "{pid}", "-o", "{new}.rmem"]),
    ("heap capture", Program, &["-p", "{pid}", "-f", "json"]),
    ("heap compare", Person, &["{rmem}", "{rmem-of-later}"]),
    ("heap dump", Person, &["-p", "{pid}", "-o", "{new}.rdump"]),
    ("heap explore", AtKeys, &["{rmem}"]),
    ("heap export", Program, &["{rmem}", "--to", "json"]),
    ("heap info", Person, &["{rmem}"]),
    ("heap paths", Person, &["{db}", "--dry-run"]),
    (
        "heap query",
        Person,
        &[
            "{db}",
            "SELECT * FROM context_node_locations, context_edges WHERE string_value LIKE '%PWN%' AND link_name LIKE '%PWN%'",
        ],
    ),
    (
        "heap query",
        Program,
        &["{db}", "--csv", "SELECT string_value FROM context_node_locations WHERE string_value LIKE '%PWN%'"],
    ),
    ("heap report", Person, &["{rmem}", "--limit", "0"]),
    ("heap runs", Person, &["{db}"]),
    ("heap viz", Person, &["{rmem}", "-o", "{new}.html"]),
    ("info", Person, &["{rbt}", "{trc}", "{cut}"]),
    ("info", Program, &["{rbt}", "--json"]),
    ("man", Person, &[]),
    ("open", Person, &["{rbt}", "--no-browser"]),
    ("record", Person, &["-p", "{pid}", "-n", "5", "-o", "{new}.rbt"]),
    ("recover", Program, &["{cut}", "--to", "phpspy"]),
    ("report", Person, &["{rbt}", "--last=3", "--callers", ".", "--callees", ".", "--by", "file"]),
    ("report", Person, &["{rbt}", "--by", "script", "--wide"]),
    ("report", Person, &["{rbt}", "--timeline", "--heatmap"]),
    ("report", Person, &["{trc}"]),
    ("report", Program, &["{rbt}", "--json"]),
    ("stack", Person, &["-p", "{pid}"]),
    ("stack", Program, &["-p", "{pid}", "--json"]),
    ("symbolize", Person, &["{pprof}", "-o", "{new}.pb.gz"]),
    ("top", Person, &["-p", "{pid}", "-d", "1s"]),
    ("top", Person, &["-p", "{pid}", "-d", "1s", "--plain"]),
];

/// Commands of reli, with arguments as above.
const OF_RELI: &[(&str, Reader, &[&str])] = &[
    ("rbt:analyze", Person, &["{rbt}"]),
    ("converter:phpspy", Program, &["{rbt}"]),
    ("inspector:eg", Person, &["-p", "{pid}"]),
    ("inspector:memory:dump:inspect", Person, &["{rdump}"]),
    ("inspector:memory:report", Person, &["{rmem}"]),
    ("inspector:memory:compare", Person, &["{rmem}", "{rmem-of-later}"]),
];

/// A PHP program whose every name is nasty, and files about it.
struct NastyWorld {
    scratch: Scratch,
    child: Child,
    folder: PathBuf,
}

impl NastyWorld {
    /// `None` if PHP is skipped.
    fn new() -> Option<Self> {
        let php = peers::peer("php")?.command();
        let scratch = Scratch::new();
        let folder = scratch.folder().join(OsStr::from_bytes(NASTY));
        fs::create_dir(&folder).unwrap();
        let found =
            Command::new("sh").args(["-c", "command -v \"$0\""]).arg(php.get_program()).output().unwrap();
        let own = scratch.program(folder.join("php"), String::from_utf8(found.stdout).unwrap().trim_end());
        let script = folder.join("s.php");
        fs::write(&script, script_text()).unwrap();
        let mut command = Command::new(own);
        command.arg(script).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let world = Self { scratch, child: command.spawn().unwrap(), folder };
        world.write_files();
        Some(world)
    }

    fn write_files(&self) {
        let id = self.child.id().to_string();
        wait_for(|| (run(&["stack", "-p", &id]).stdout.len() > 100).then_some(()));
        for name in ["rbt", "other"] {
            let arguments = ["record", "-p", &id, "-n", "20", "--label", "script", "-o"].map(OsString::from);
            self.make(&arguments, name);
        }
        let whole = fs::read(self.place("rbt")).unwrap();
        fs::write(self.place("cut"), &whole[..whole.len() / 2]).unwrap();
        let events = read_corpus("trc/tokio/span_recycled.bin");
        let events = replaced(&events, b"src/main.rs", b"\x1b]0;P\x07\xe2\x80\xae\nF");
        fs::write(self.place("trc"), events).unwrap();
        let path = format!("/{}", nasty_text());
        let file = MappedFile { path: &path, build_id: "00", start: 0x1000, end: 0x9000, file_offset: 0 };
        fs::write(self.place("pprof"), raw_pprof(&file, &[0x2000])).unwrap();
        for name in ["rmem", "rmem-of-later", "db"] {
            self.make(&["heap", "capture", "-p", &id, "-o"].map(OsString::from), name);
        }
        self.make(&["heap", "dump", "-p", &id, "-o"].map(OsString::from), "rdump");
    }

    /// Makes a file under a plain name, and gives it a nasty one.
    #[track_caller]
    fn make(&self, arguments: &[OsString], name: &str) {
        let extension = if name == "db" { "sqlite3" } else { name.split('-').next().unwrap() };
        let extension = if name == "other" { "rbt" } else { extension };
        let plain = self.scratch.path(&format!("plain.{extension}"));
        run(&[arguments, &[plain.clone().into()]].concat()).done();
        fs::rename(plain, self.place(name)).unwrap();
    }

    /// The file with a name, in the folder with the nasty name.
    fn place(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// An argument without its braces.
    fn argument(&self, argument: &str, number: usize) -> OsString {
        match argument.strip_prefix('{').and_then(|rest| rest.split_once('}')) {
            None => argument.into(),
            Some(("pid", "")) => self.child.id().to_string().into(),
            // The names of outputs are UTF-8.
            Some(("new", ending)) => self.scratch.path(&format!("{}{number}{ending}", nasty_text())).into(),
            Some((name, _)) => self.place(name).into(),
        }
    }

    fn arguments(&self, name: &str, arguments: &[&str], number: usize) -> Vec<OsString> {
        let mut words: Vec<OsString> = name.split([' ']).map(OsString::from).collect();
        if let Some(["heap", "ask", _]) = name.split(' ').collect::<Vec<_>>().get(..3) {
            words.insert(2, self.place("rmem").into());
        }
        words.extend(arguments.iter().map(|argument| self.argument(argument, number)));
        words
    }

    /// Runs a command, and checks what it shows.
    fn check(&self, (name, reader, arguments): &(&str, Reader, &[&str]), numbers: [usize; 2]) {
        let [piped, typed] = numbers.map(|number| self.arguments(name, arguments, number));
        if *reader != AtKeys {
            let output = self.program(&piped).output().unwrap();
            assert!(
                matches!(output.status.code(), Some(0 | 3)) || *name == "doctor",
                "{piped:?}: {output:?}"
            );
            check_shown(&output.stderr, &piped, Place::Pipe, &FORBIDDEN);
            if *reader == Person {
                check_shown(&output.stdout, &piped, Place::Pipe, &FORBIDDEN);
            }
        }
        // Line breaks within quotes belong to formats such as CSV.
        let forbidden = if *reader == Program { &FORBIDDEN[..FORBIDDEN.len() - 1] } else { &FORBIDDEN };
        let shown = on_terminal(self.program(&typed), *reader == AtKeys);
        check_shown(&shown, &typed, Place::Terminal, forbidden);
    }

    fn program(&self, arguments: &[OsString]) -> Command {
        let mut program = program(arguments);
        program.env("TMPDIR", self.scratch.folder()).env("TERM", "xterm").env_remove("NO_COLOR");
        program
    }
}

impl Drop for NastyWorld {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program whose names hold as much of [`NASTY`] as PHP accepts in them.
fn script_text() -> Vec<u8> {
    let quoted: String = NASTY.iter().map(|byte| format!("\\x{byte:02x}")).collect();
    format!(
        r#"<?php
        $nasty = "{quoted}";
        $name = "n\u{{9b}}c1\u{{202e}}back\xff";
        eval("class $name {{ function $name() {{ usleep(1000); }} }}");
        $object = new $name;
        $object->$nasty = [$nasty => $nasty . 'x', 'list' => range(1, 1000)];
        $$nasty = $object;
        while (true) $object->$name();
        "#
    )
    .into_bytes()
}

fn replaced(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut bytes = bytes.to_vec();
    let places: Vec<_> = (0..bytes.len() - from.len()).filter(|&at| bytes[at..].starts_with(from)).collect();
    assert!(!places.is_empty());
    places.into_iter().for_each(|at| bytes[at..at + to.len()].copy_from_slice(to));
    bytes
}

/// Everything that a program writes to a terminal. With `leaves`, it gets the key `q` until it ends.
fn on_terminal(mut program: Command, leaves: bool) -> Vec<u8> {
    let size = Winsize { ws_row: 40, ws_col: 200, ws_xpixel: 0, ws_ypixel: 0 };
    let pty = openpty(&size, None).unwrap();
    let end = || Stdio::from(pty.slave.try_clone().unwrap());
    let mut child = program.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
    // The program keeps its own copies.
    drop((program, pty.slave));
    let mut terminal = File::from(pty.master);
    let mut output = terminal.try_clone().unwrap();
    let shown = thread::spawn(move || {
        let mut shown = Vec::new();
        let mut bytes = [0; 4096];
        // It fails when the program has closed its end.
        while let Ok(count @ 1..) = output.read(&mut bytes) {
            shown.extend_from_slice(&bytes[..count]);
        }
        shown
    });
    wait_for(|| {
        if leaves {
            thread::sleep(Duration::from_millis(300));
            let _ = terminal.write_all(b"q");
        }
        child.try_wait().unwrap()
    });
    shown.join().unwrap()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Pipe,
    Terminal,
}

#[track_caller]
fn check_shown(shown: &[u8], arguments: &[OsString], place: Place, forbidden: &[&[u8]]) {
    let shown: Vec<u8> = shown.iter().copied().filter(|&byte| byte != b'\r').collect();
    for part in forbidden {
        let found = shown.windows(part.len()).position(|bytes| bytes == *part);
        let about = found
            .map(|at| String::from_utf8_lossy(&shown[at.saturating_sub(200)..]).escape_debug().to_string());
        assert!(found.is_none(), "{arguments:?}, {place:?}: {} is shown: {about:?}", part.escape_ascii());
    }
    let shown =
        std::str::from_utf8(&shown).unwrap_or_else(|error| panic!("{arguments:?}, {place:?}: {error}"));
    // The command itself controls terminals only.
    let controls = |sign: char| sign.is_control() && sign != '\n' && sign != '\t';
    assert!(place == Place::Terminal || !shown.contains(controls), "{arguments:?}, {place:?}: {shown:?}");
}

/// The commands that have no further ones below them, as the manual pages list them, and `borehole-lake`'s in one.
fn commands() -> BTreeSet<String> {
    let scratch = Scratch::new();
    run(&["man", "-o", text(scratch.folder())]).quietly();
    let pages = crate::program::listing(scratch.folder());
    let names = pages.iter().filter_map(|page| page.strip_suffix(".1")?.strip_prefix("borehole-"));
    // Names of commands have dashes too.
    let spaced = |name: &str| match name.split_once('-') {
        Some(("heap", rest)) => match rest.strip_prefix("ask-") {
            Some(question) => format!("heap ask {question}"),
            None => format!("heap {rest}"),
        },
        _ => name.to_owned(),
    };
    names.map(spaced).filter(|name| name != "heap").collect()
}

/// The names of reli's commands.
fn commands_of_reli() -> Vec<String> {
    let scratch = Scratch::new();
    let reli = scratch.path("reli");
    symlink(env!("CARGO_BIN_EXE_borehole"), &reli).unwrap();
    let help = Command::new(reli).arg("--help").output().unwrap();
    let help = String::from_utf8([help.stdout, help.stderr].concat()).unwrap();
    let names = help.lines().filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next());
    names.filter(|name| name.contains(':')).map(str::to_owned).collect()
}

#[test]
fn no_command_shows_what_a_terminal_would_obey() {
    let Some(world) = NastyWorld::new() else { return };
    let known: BTreeSet<String> = COMMANDS.iter().map(|(name, ..)| (*name).to_owned()).collect();
    assert_eq!(known, commands(), "each command is checked here");
    for (number, command) in COMMANDS.iter().chain(OF_RELI).enumerate() {
        world.check(command, [2 * number, 2 * number + 1]);
    }
}

/// Files that do not exist, processes that cannot be named so, and values that are not accepted.
#[test]
fn no_error_shows_what_a_terminal_would_obey() {
    let reli = commands_of_reli();
    assert!(reli.len() > 15, "{reli:?}");
    let nasty = OsString::from(OsStr::from_bytes(NASTY));
    for name in commands().into_iter().chain(reli).chain(["lake".to_owned(), String::new()]) {
        // They would print their pages and wait for nothing.
        let words: Vec<OsString> =
            name.split(' ').filter(|word| !word.is_empty()).map(OsString::from).collect();
        let option = [OsStr::new("--"), &nasty].map(OsStr::as_bytes).concat();
        for arguments in [
            vec![nasty.clone()],
            vec![OsString::from(OsStr::from_bytes(&option))],
            vec!["-p".into(), nasty.clone()],
        ] {
            let arguments = [words.clone(), arguments].concat();
            let output = program(&arguments).output().unwrap();
            check_shown(&[output.stdout, output.stderr].concat(), &arguments, Place::Pipe, &FORBIDDEN);
            let typed = on_terminal(program(&arguments), false);
            check_shown(&typed, &arguments, Place::Terminal, &FORBIDDEN);
        }
    }
}

#[test]
fn passwords_in_addresses_are_not_shown() {
    let address = "s3://user:hunter2secret@127.0.0.1:1/x";
    for command in commands().into_iter().chain(["lake info".to_owned()]) {
        let words: Vec<&str> = command.split(' ').collect();
        if ["completions", "man", "formats"].contains(&words[0]) {
            continue;
        }
        let output = program(&[&words[..], &[address]].concat()).output().unwrap();
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(!said.contains("hunter2secret"), "{command}: {said}");
    }
}

/// The longest name that a table shows pads no other row, and an error is a screen long.
#[test]
fn long_names_stay_short() {
    let scratch = Scratch::new();
    let [folded, later] = ["long.folded", "later.folded"].map(|name| scratch.path(name));
    let long = "x".repeat(100_000);
    for (path, count) in [(&folded, 5), (&later, 9)] {
        let lines = (0..30).map(|number| format!("main;{long};leaf{number} {count}\n"));
        fs::write(path, lines.collect::<String>() + &format!("main;{long} 3\n")).unwrap();
    }
    let [folded, later] = [text(&folded), text(&later)];
    for arguments in [
        &["report", folded][..],
        &["report", folded, "--last=2", "--callers", "leaf1", "--sections", "self+total,callers,tail"],
        &["report", folded, "--by", "file"],
        &["diff", folded, later],
        &["info", folded],
        &["rbt:analyze", folded],
    ] {
        let output = run(arguments);
        for shown in [String::from_utf8(output.stdout).unwrap(), output.stderr] {
            let widest = shown.lines().map(|line| line.chars().count()).max().unwrap_or(0);
            assert!(widest < 700, "{arguments:?}: a line of {widest} columns");
        }
    }
    let whole = String::from_utf8(run(&["report", folded, "--wide"]).done()).unwrap();
    assert!(whole.contains(&long));
    let missing = Path::new(&long).with_extension("rbt");
    let said = run(&["info", text(&missing)]).failed();
    assert!(said.chars().count() < 2000 && said.starts_with("error: xxx"), "{said}");
}
