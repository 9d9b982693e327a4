//! On a terminal, which `script` provides.

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;

use borehole_testkit::{Scratch, corpus};

use crate::capture::Busy;
use crate::program::wait_for;

/// Variables that would override the terminal's colours and columns. `CI` enables colours on dumb terminals.
const PREFERENCES: [&str; 5] = ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CI", "COLUMNS"];

/// A terminal on which a shell runs `command`, in which `borehole` is the program.
fn terminal(command: &str) -> Command {
    let program = env!("CARGO_BIN_EXE_borehole");
    let line = format!("borehole() {{ '{program}' \"$@\"; }}; stty cols 80; {command}");
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).stdin(Stdio::null());
    script.env("SHELL", "/bin/sh").env("TERM", "xterm");
    for name in PREFERENCES {
        script.env_remove(name);
    }
    script
}

/// The text on the terminal after `command`, and the exit code.
fn on_terminal(command: &str, environment: &[(&str, &str)]) -> (i32, String) {
    let output = terminal(command).envs(environment.iter().copied()).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap().replace('\r', ""))
}

fn trace(name: &str) -> String {
    format!("'{}'", corpus(&format!("rbt/{name}")).display())
}

#[test]
fn binary_output_is_not_written_to_a_terminal() {
    let trace = trace("native.rbt");
    let cases = [
        (format!("convert {trace} --to rbt"), "rbt"),
        (format!("convert {trace} --to pprof"), "pprof"),
        (format!("convert {trace} --to otlp"), "otlp"),
        (format!("convert {trace} --to folded --compress"), "folded, compressed"),
        (format!("recover {trace}"), "rbt"),
        (format!("converter:pprof < {trace}"), "pprof"),
    ];
    for (command, what) in cases {
        let expected = format!(
            "error: unsupported output: expected a file or a pipe for {what}, found a terminal; name one with \
             -o\n"
        );
        assert_eq!(on_terminal(&format!("borehole {command}"), &[]), (2, expected));
    }
}

#[test]
fn text_is_written_to_a_terminal() {
    let (code, shown) = on_terminal(&format!("borehole convert --to folded {}", trace("tiny_one.rbt")), &[]);
    assert_eq!((code, shown.lines().count()), (0, 1), "{shown}");
}

#[test]
fn a_missing_input_is_reported_at_once() {
    let (code, shown) = on_terminal("borehole report < /dev/tty", &[]);
    let expected = "error: missing input: expected a path or data on standard input, found a terminal\n";
    assert_eq!((code, &*shown), (2, expected));
}

#[test]
fn colours_are_for_terminals_of_users_who_want_them() {
    let (_, coloured) = on_terminal("borehole --help", &[]);
    assert!(coloured.contains('\x1b'), "{coloured}");
    for command in ["borehole --help", "borehole convert --bogus"] {
        for unwanted in [("NO_COLOR", "1"), ("TERM", "dumb")] {
            let (_, plain) = on_terminal(command, &[unwanted]);
            assert!(!plain.is_empty() && !plain.contains('\x1b'), "{plain:?}");
        }
    }
}

#[test]
fn a_report_fits_the_terminal() {
    let trace = trace("realistic_54k.rbt.gz");
    let (code, shown) = on_terminal(&format!("borehole report {trace} 2>&-"), &[]);
    let widest = shown.lines().map(|line| line.chars().count()).max();
    assert_eq!((code, widest), (0, Some(80)), "{shown}");
    let (_, whole) = on_terminal(&format!("borehole report --crop 0 {trace} 2>&-"), &[]);
    assert!(whole.lines().any(|line| line.chars().count() > 120), "{whole}");
}

#[test]
fn long_work_shows_its_progress_and_cleans_up_behind_it() {
    let trace = trace("realistic_54k_ts.rbt");
    // Longer than the update interval of the progress bar.
    let line = format!("(cat {trace}; sleep 2; cat {trace}) | borehole convert --to folded > /dev/null");
    let (code, shown) = on_terminal(&line, &[]);
    assert_eq!(code, 0);
    assert!(shown.contains("B/s") && shown.contains("\x1b[2K"), "{shown:?}");
    let (_, dumb) = on_terminal(&line, &[("TERM", "dumb")]);
    assert!(!dumb.contains("B/s") && !dumb.contains('\x1b'), "{dumb:?}");
    let (_, piped) = on_terminal(&format!("({line}) 2>&1 | cat"), &[]);
    assert!(!piped.contains("B/s"), "{piped:?}");
}

#[test]
fn tables_are_appended_if_the_terminal_cannot_overwrite() {
    let Some(busy) = Busy::start("dumb-terminal") else { return };
    let top = format!("borehole top -p {} -d 1s", busy.id());
    let (code, shown) = on_terminal(&top, &[("TERM", "dumb")]);
    assert!(code == 0 && shown.contains("self%") && !shown.contains('\x1b'), "{shown:?}");
}

/// Under `stty tostop`, the terminal suspends background commands that write to it.
#[test]
fn a_background_command_waits_with_its_output_until_it_is_in_the_foreground() {
    let Some(busy) = Busy::start("in-background") else { return };
    let program = env!("CARGO_BIN_EXE_borehole");
    let line = format!(
        "set -m; stty tostop; '{program}' stack -p {} & \
         until grep -q ') T' /proc/$!/stat; do sleep 0.02; done; echo it waits; fg; echo \"code $?\"",
        busy.id()
    );
    let (code, shown) = on_terminal(&line, &[]);
    let (before, after) = shown.split_once("it waits\n").unwrap_or_else(|| panic!("{code}: {shown:?}"));
    assert!(!before.contains("busy.php"), "{shown:?}");
    assert!(after.contains("busy.php") && after.contains("code 0"), "{shown:?}");
}

#[test]
fn the_key_q_ends_recordings_of_running_processes() {
    let Some(busy) = Busy::start("ended-by-key") else { return };
    let scratch = Scratch::new();
    let (trace, folder) = (scratch.path("trace.rbt"), scratch.path("out"));
    let commands = [
        format!("record -p {} -o '{}'", busy.id(), trace.display()),
        format!("inspector:daemon -P '^[^ ]*php.* ended-by-key$' -F rbt -o '{}'", folder.display()),
        format!("inspector:trace -p {}", busy.id()),
    ];
    for command in commands {
        // Afterwards the terminal edits lines again.
        let line = format!("borehole {command}; code=$?; stty -a; exit $code");
        let mut script = terminal(&line).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (mut keys, mut output) = (script.stdin.take().unwrap(), script.stdout.take().unwrap());
        let shown = Mutex::new(String::new());
        let text = || shown.lock().unwrap().clone();
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut bytes = [0; 4096];
                while let Ok(count @ 1..) = output.read(&mut bytes) {
                    *shown.lock().unwrap() += &String::from_utf8_lossy(&bytes[..count]);
                }
            });
            wait_for(|| text().contains("PHP 8.").then_some(()));
            keys.write_all(b"xq").unwrap();
            let code = wait_for(|| script.try_wait().unwrap()).code();
            assert_eq!(code, Some(0), "{}", text());
        });
        let text = text();
        assert!(text.contains("Sampled 1 process for ") && text.contains(" icanon"), "{text}");
    }
}
