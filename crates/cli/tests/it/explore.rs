//! The explorer on a pseudo-terminal, whose screen shows what a terminal would.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::num::NonZero;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use borehole_testkit::{Scratch, assert_golden, project_file};
use nix::pty::{Winsize, openpty};
use nix::sys::signal::{Signal, kill};
use nix::sys::termios::{LocalFlags, tcgetattr};
use nix::unistd::Pid;

use crate::program::{corpus, named_pipe, text, wait_for};

/// Flag of `open`: fail rather than wait.
///
/// Source: Linux, `asm-generic/fcntl.h`; the same on every machine that the command is built for.
const O_NONBLOCK: i32 = 0o4000;

fn cells(count: u16) -> NonZero<u16> {
    NonZero::new(count).unwrap()
}

/// A program on a terminal of its own.
pub(crate) struct Terminal {
    child: Child,
    keys: File,
    /// The program's end of the terminal.
    side: OwnedFd,
    screen: Arc<Mutex<vt100::Parser<Updates>>>,
}

/// The screen that a terminal still shows while it is being updated.
#[derive(Default)]
struct Updates {
    before: Option<String>,
}

impl vt100::Callbacks for Updates {
    fn unhandled_csi(
        &mut self,
        screen: &mut vt100::Screen,
        kind: Option<u8>,
        _: Option<u8>,
        parameters: &[&[u16]],
        action: char,
    ) {
        match (kind, parameters, action) {
            (Some(b'?'), [[2026]], 'h') => self.before = Some(screen.contents()),
            (Some(b'?'), [[2026]], 'l') => self.before = None,
            _ => {}
        }
    }
}

impl Terminal {
    pub(crate) fn start(
        arguments: &[&str],
        (columns, lines): (u16, u16),
        environment: &[(&str, &str)],
    ) -> Self {
        let size = Winsize { ws_row: lines, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let pty = openpty(&size, None).unwrap();
        let end = || Stdio::from(pty.slave.try_clone().unwrap());
        // The process that runs the tests may ignore SIGHUP.
        let mut command = Command::new("env");
        command.args(["--default-signal=HUP", env!("CARGO_BIN_EXE_borehole")]);
        // A process group of its own, as a shell creates it.
        command.args(arguments).stdin(end()).stdout(end()).stderr(end()).process_group(0);
        command.env_remove("NO_COLOR").env_remove("COLORTERM").env("TERM", "xterm-256color");
        let child = command.envs(environment.iter().copied()).spawn().unwrap();
        let parser = vt100::Parser::new_with_callbacks(cells(lines), cells(columns), 0, Updates::default());
        let screen = Arc::new(Mutex::new(parser));
        let keys = File::from(pty.master);
        let (mut output, shown) = (keys.try_clone().unwrap(), screen.clone());
        // It ends when the terminal closes.
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                shown.lock().unwrap().process(&bytes[..count]);
            }
        });
        Self { child, keys, side: pty.slave, screen }
    }

    pub(crate) fn shown(&self) -> String {
        let screen = self.screen.lock().unwrap();
        screen.callbacks().before.clone().unwrap_or_else(|| screen.screen().contents())
    }

    #[track_caller]
    pub(crate) fn shows(&self, wanted: &str) -> String {
        let found = wait_for(|| {
            let shown = self.shown();
            let is_there = shown.contains(wanted);
            Some(shown).filter(|_| is_there)
        });
        assert!(!found.is_empty());
        found
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    fn resize(&self, (columns, lines): (u16, u16)) {
        self.screen.lock().unwrap().screen_mut().set_size(cells(lines), cells(columns));
        let [rows, cols] = [lines, columns].map(|number| number.to_string());
        let mut stty = Command::new("stty");
        stty.args(["rows", &rows, "cols", &cols]).stdin(Stdio::from(self.side.try_clone().unwrap()));
        assert!(stty.status().unwrap().success());
    }

    /// Whether the terminal is restored: lines are edited and echoed, and the main screen shows.
    fn is_restored(&self) -> bool {
        let flags = tcgetattr(&self.side).unwrap().local_flags;
        let screen = self.screen.lock().unwrap();
        flags.contains(LocalFlags::ICANON | LocalFlags::ECHO)
            && !screen.screen().alternate_screen()
            && !screen.screen().hide_cursor()
            && screen.screen().mouse_protocol_mode() == vt100::MouseProtocolMode::None
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), signal).unwrap();
    }

    /// Waits until it is stopped, with the terminal restored.
    #[track_caller]
    pub(crate) fn stops(&self) {
        let is_stopped = || {
            let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
            stat.rsplit_once(") ").unwrap().1.starts_with('T').then_some(())
        };
        wait_for(is_stopped);
        wait_for(|| self.is_restored().then_some(()));
    }

    /// Its exit status, with the terminal restored.
    #[track_caller]
    pub(crate) fn ended(&mut self) -> i32 {
        let status = wait_for(|| self.child.try_wait().unwrap());
        wait_for(|| self.is_restored().then_some(()));
        status.code().unwrap()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A trace with labels and times.
fn trace() -> String {
    corpus("rbt/annotations_ts.rbt")
}

#[test]
fn screens_are_as_they_were_at_several_sizes() {
    let path = trace();
    let views = [
        ("panes", "P", "entry points"),
        ("flame", "S", "flame graph"),
        ("tree", ">", "call tree"),
        ("time", "T", "timeline"),
    ];
    for size in [(80, 24), (120, 40), (40, 10)] {
        // The title is the path, which depends on the machine; it is only in the first line.
        let mut terminal = Terminal::start(&["explore", &path], size, &[]);
        terminal.shows("by self");
        for (name, key, title) in views {
            terminal.press(key);
            let shown = terminal.shows(title);
            let lines: Vec<_> = shown.lines().skip(1).map(str::trim_end).collect();
            let golden = format!("crates/cli/tests/golden/explore-{name}-{}x{}.txt", size.0, size.1);
            assert_golden(project_file(&golden), (lines.join("\n") + "\n").as_bytes());
        }
        terminal.press("q");
        assert_eq!(terminal.ended(), 0);
    }
}

#[test]
fn a_tokio_trace_opens_with_its_lanes_and_flags_and_leads_to_its_samples() {
    let trace = corpus("trc/in/real_057_blocked.bin.gz");
    let mut terminal = Terminal::start(&["explore", &trace], (80, 24), &[]);
    let shown = terminal.shows("long-poll: a poll took 15.6 ms");
    assert!(shown.contains("worker 0") && shown.contains("worker 1") && shown.contains("flags ·"), "{shown}");
    terminal.press("p\r");
    terminal.shows("worker 1: poll of 15.6 ms at +0.079040 s, task 10 of src/main.rs:93:9");
    terminal.press("v");
    terminal.shows("by self");
    terminal.press("q");
    terminal.shows("▸ 125 ms from ");
    terminal.press("q");
    assert_eq!(terminal.ended(), 0);
    let mut terminal = Terminal::start(&["explore", "--kind", "off-cpu", &trace], (80, 24), &[]);
    terminal.shows("by self");
    terminal.press("q");
    assert_eq!(terminal.ended(), 0);
}

#[test]
fn reli_s_command_line_opens_the_same_explorer() {
    let scratch = Scratch::new();
    let keymap = scratch.path("keys.json");
    fs::write(&keymap, r#"{"quit": ["Q"]}"#).unwrap();
    let arguments = ["rbt:explore", &trace(), "--keymap", text(&keymap), "--path-map", "/app=/srv"];
    let mut terminal = Terminal::start(&arguments, (100, 30), &[]);
    terminal.shows("by self");
    terminal.press("qS");
    terminal.shows("flame graph");
    terminal.press("Q");
    assert_eq!(terminal.ended(), 0);
}

#[test]
fn a_resized_terminal_is_filled_anew() {
    let mut terminal = Terminal::start(&["explore", &trace()], (60, 12), &[]);
    terminal.shows("by self");
    terminal.resize((110, 35));
    let shown = terminal.shows("T time");
    assert!(shown.lines().count() >= 35, "{shown}");
    terminal.resize((30, 8));
    wait_for(|| (!terminal.shown().contains("T time")).then_some(()));
    terminal.press("q");
    assert_eq!(terminal.ended(), 0);
}

#[test]
fn signals_and_keys_that_end_it_restore_the_terminal() {
    for signal in [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT] {
        let mut terminal = Terminal::start(&["explore", &trace()], (80, 24), &[]);
        terminal.shows("by self");
        terminal.signal(signal);
        assert_eq!(terminal.ended(), 130, "{signal}");
    }
    let mut terminal = Terminal::start(&["explore", &trace()], (80, 24), &[]);
    terminal.shows("by self");
    assert!(!terminal.is_restored());
    terminal.press("\x03");
    assert_eq!(terminal.ended(), 0);
}

#[test]
fn colours_are_what_the_terminal_has_and_its_user_wants() {
    let cases = [
        (&[][..], 2),
        (&[("COLORTERM", "truecolor")][..], 3),
        (&[("NO_COLOR", "1")][..], 0),
        (&[("TERM", "dumb")][..], 0),
    ];
    for (environment, expected) in cases {
        let mut terminal = Terminal::start(&["explore", &trace()], (80, 24), environment);
        terminal.shows("by self");
        let screen = terminal.screen.lock().unwrap().screen().clone();
        let colour = |column| match screen.cell(0, column).unwrap().bgcolor() {
            vt100::Color::Default => 0,
            vt100::Color::Idx(_) => 2,
            vt100::Color::Rgb(..) => 3,
        };
        assert_eq!(colour(0), expected, "{environment:?}");
        terminal.press("q");
        assert_eq!(terminal.ended(), 0);
    }
}

#[test]
fn a_followed_file_is_shown_as_it_grows_and_shrinks() {
    let scratch = Scratch::new();
    let path = scratch.path("stacks.folded");
    fs::write(&path, "main;query 3\n").unwrap();
    let mut terminal = Terminal::start(&["explore", "--follow", text(&path)], (80, 24), &[]);
    terminal.shows("· 3 samples");
    fs::write(&path, "main;query 3\nmain;render 1000\n").unwrap();
    terminal.shows("1,003 samples");
    terminal.shows("render");
    fs::write(&path, "main 1\n").unwrap();
    terminal.shows("· 1 samples");
    fs::write(&path, "\u{0}\u{1}nonsense").unwrap();
    terminal.shows("the file is damaged or still being written");
    assert!(!terminal.shown().contains("warning"), "{}", terminal.shown());
    fs::remove_file(&path).unwrap();
    terminal.press("q");
    assert_eq!(terminal.ended(), 0);
}

#[test]
fn views_are_exported_and_other_tools_read_them() {
    let scratch = Scratch::new();
    let [folded, pprof, svg] = ["a.folded", "a.pb.gz", "a.svg"].map(|name| scratch.path(name));
    let mut terminal = Terminal::start(&["explore", &corpus("rbt/native.rbt")], (80, 24), &[]);
    terminal.shows("by self");
    for path in [&folded, &pprof, &svg] {
        terminal.press(&format!("e\x15{}\r", text(path)));
        wait_for(|| path.exists().then_some(()));
    }
    terminal.press(&format!("e\x15{}\r", text(&svg)));
    terminal.shows("exists");
    let zstd = scratch.path("a.rbt.zst");
    terminal.press(&format!("e\x15{}\r", text(&zstd)));
    terminal.shows("unsupported compression");
    assert!(!zstd.exists());
    terminal.press("q");
    assert_eq!(terminal.ended(), 0);
    let whole = crate::program::run(&["convert", &corpus("rbt/native.rbt"), "--to", "folded"]).done();
    let count = |folded: &[u8]| -> u64 {
        let text = String::from_utf8(folded.to_vec()).unwrap();
        text.lines().map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
    };
    assert_eq!(count(&fs::read(&folded).unwrap()), count(&whole));
    assert!(crate::program::samples_in(&fs::read(&pprof).unwrap()) > 0);
    assert!(
        roxmltree::Document::parse_with_options(
            &fs::read_to_string(&svg).unwrap(),
            roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() }
        )
        .is_ok()
    );
}

#[test]
fn terminal_input_is_printed_for_keymaps() {
    let mut terminal = Terminal::start(&["explore", "--diagnose"], (80, 24), &[]);
    terminal.shows("press keys");
    terminal.press("\x1b[A");
    terminal.shows(r#"1b 5b 41  "\x1b[A""#);
    terminal.press("q");
    assert_eq!(terminal.ended(), 0);
}

#[test]
fn the_explorer_takes_the_mouse_unless_disabled() {
    for (options, expected) in [
        (&["explore"][..], vt100::MouseProtocolMode::PressRelease),
        (&["explore", "--no-mouse"][..], vt100::MouseProtocolMode::None),
    ] {
        let path = trace();
        let mut terminal = Terminal::start(&[options, &[&*path]].concat(), (80, 24), &[]);
        terminal.shows("by self");
        let mode = terminal.screen.lock().unwrap().screen().mouse_protocol_mode();
        assert_eq!(mode, expected);
        terminal.press("q");
        assert_eq!(terminal.ended(), 0);
    }
}

#[test]
fn a_missing_terminal_or_file_is_reported() {
    let message = crate::program::run(&["explore", &trace()]).failed();
    assert!(message.starts_with("error: missing terminal: expected one on standard output"), "{message}");
    let compared = ["explore", "--baseline", &trace(), "-"];
    let mut terminal = Terminal::start(&compared, (80, 24), &[]);
    terminal.shows("error: -: unsupported input: expected a file");
    assert_eq!(terminal.ended(), 2);
    let mut terminal = Terminal::start(&["explore", "no-such-file.rbt"], (80, 24), &[]);
    terminal.shows("error: no-such-file.rbt: no such file or directory");
    assert_eq!(terminal.ended(), 2);
}

#[test]
fn changes_follow_the_view_and_the_growing_file() {
    let scratch = Scratch::new();
    let [before, after] = ["before.folded", "after.folded"].map(|name| scratch.path(name));
    fs::write(&before, "main;query 500\nmain;render 500\n").unwrap();
    fs::write(&after, "main;query 900\nmain;render 100\n").unwrap();
    let files = ["--baseline", text(&before), text(&after)];
    let shape = ["--hide", "^query$", "--follow"];
    let mut terminal = Terminal::start(&[&["explore"][..], &files[..], &shape[..]].concat(), (100, 24), &[]);
    terminal.shows("by self");
    terminal.press("D");
    // Hidden frames count for their callers.
    let shown = terminal.shows("+40.00% * main");
    assert!(!shown.contains("query"), "{shown}");
    fs::write(&after, "main;query 100\nmain;render 900\n").unwrap();
    terminal.shows("-40.00% * main");
    terminal.press("q");
    assert_eq!(terminal.ended(), 0);
}

#[test]
fn two_profiles_show_what_changed() {
    let scratch = Scratch::new();
    let [before, after] = ["before.folded", "after.folded"].map(|name| scratch.path(name));
    fs::write(&before, "main;query 500\nmain;render 500\n").unwrap();
    fs::write(&after, "main;query 900\nmain;render 100\n").unwrap();
    // The option has the name that `diff` uses; the second one is its former name.
    for option in ["--baseline", "--base"] {
        let mut terminal = Terminal::start(&["explore", option, text(&before), text(&after)], (100, 24), &[]);
        terminal.shows("by self");
        terminal.press("D");
        let shown = terminal.shows("changes; *");
        assert!(shown.contains("50.00%    90.00%   +40.00%"), "{shown}");
        terminal.press("q");
        assert_eq!(terminal.ended(), 0);
    }
}

#[test]
fn stopping_restores_the_terminal_and_continuing_redraws_it() {
    let mut terminal = Terminal::start(&["explore", &trace()], (80, 24), &[]);
    let shown = terminal.shows("by self");
    for by_key in [true, false] {
        if by_key {
            terminal.press("\x1a");
        } else {
            terminal.signal(Signal::SIGTSTP);
        }
        terminal.stops();
        // Output of a shell meanwhile.
        terminal.screen.lock().unwrap().process(b"\x1b[2J\x1b[H$ fg");
        terminal.signal(Signal::SIGCONT);
        wait_for(|| (terminal.shown() == shown && !terminal.is_restored()).then_some(()));
    }
    terminal.press("q");
    assert_eq!(terminal.ended(), 0);
}

#[test]
fn files_that_grow_while_they_are_read_are_followed() {
    let scratch = Scratch::new();
    let growing = scratch.path("stacks.folded");
    let slow = named_pipe(scratch.path("slow"));
    fs::write(&growing, "main;query 3\n").unwrap();
    let arguments = ["explore", "--follow", "--from", "folded", text(&growing), text(&slow)];
    let terminal = Terminal::start(&arguments, (200, 24), &[]);
    // The pipe is opened after the first file has been read.
    let mut pipe = fs::OpenOptions::new().write(true).open(&slow).unwrap();
    fs::write(&growing, "main;query 3\nmain;late 1000\n").unwrap();
    pipe.write_all(b"main;slow 20\n").unwrap();
    drop(pipe);
    terminal.shows("· 23 samples");
    // It is read again without another change.
    let again = || fs::OpenOptions::new().write(true).custom_flags(O_NONBLOCK).open(&slow).ok();
    wait_for(again).write_all(b"main;slow 20\n").unwrap();
    terminal.shows("· 1,023 samples");
}

#[test]
fn a_time_view_is_exported_as_its_samples() {
    let scratch = Scratch::new();
    let [rbt, svg] = ["time.rbt", "time.svg"].map(|name| scratch.path(name));
    let mut terminal = Terminal::start(&["explore", &trace()], (80, 24), &[]);
    terminal.shows("· 6 samples");
    terminal.press("w");
    terminal.shows("60.0 ms time");
    for path in [&rbt, &svg] {
        terminal.press(&format!("e\x15{}\r", text(path)));
        wait_for(|| path.exists().then_some(()));
    }
    terminal.press("q");
    assert_eq!(terminal.ended(), 0);
    let report = crate::program::run(&["report", text(&rbt)]).stderr;
    assert!(report.contains("6 samples") && report.contains("~0.06 s sampled wall"), "{report}");
    assert!(fs::read_to_string(&svg).unwrap().contains("all (6 samples, 100%)"));
}
