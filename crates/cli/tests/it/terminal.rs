//! On a terminal, which `script` provides.

use std::process::{Command, Stdio};

use borehole_testkit::corpus;

use crate::capture::Busy;

/// Variables that would override the terminal's colours and columns. `CI` enables colours on dumb terminals.
const PREFERENCES: [&str; 5] = ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CI", "COLUMNS"];

/// The text on the terminal after `command`, a shell command line in which `borehole` is the program, and the exit code.
fn on_terminal(command: &str, environment: &[(&str, &str)]) -> (i32, String) {
    let program = env!("CARGO_BIN_EXE_borehole");
    let line = format!("borehole() {{ '{program}' \"$@\"; }}; stty cols 80; {command}");
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).stdin(Stdio::null());
    script.env("SHELL", "/bin/sh").env("TERM", "xterm");
    for name in PREFERENCES {
        script.env_remove(name);
    }
    let output = script.envs(environment.iter().copied()).output().unwrap();
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
