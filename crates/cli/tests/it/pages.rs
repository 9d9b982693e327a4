//! Help, completions and man pages.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use borehole_testkit::{Scratch, project_file};

use crate::program::{listing, program, run, text};

pub(crate) const COMMANDS: [&str; 43] = [
    "record",
    "stack",
    "top",
    "doctor",
    "check",
    "convert",
    "recover",
    "symbolize",
    "info",
    "dump",
    "report",
    "explore",
    "diff",
    "open",
    "formats",
    "completions",
    "man",
    "eg",
    "heap",
    "heap analyze",
    "heap ask",
    "heap ask cycles",
    "heap ask dominators",
    "heap ask find",
    "heap ask node",
    "heap ask path-to-root",
    "heap ask references",
    "heap ask referrers",
    "heap ask retained",
    "heap ask roots",
    "heap ask top-classes",
    "heap ask top-retained",
    "heap capture",
    "heap compare",
    "heap dump",
    "heap explore",
    "heap export",
    "heap info",
    "heap paths",
    "heap query",
    "heap report",
    "heap runs",
    "heap viz",
];

/// The page as `reader` formats it; `None`, with a line on stderr, if that is not installed.
#[expect(clippy::print_stderr, reason = "a skipped check must not go unnoticed")]
fn read_by(reader: &[&str], page: &[u8]) -> Option<(bool, String)> {
    let mut command = Command::new(reader[0]);
    command.args(&reader[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut child) = command.spawn() else {
        eprintln!("{} is not installed: this check is left out", reader[0]);
        return None;
    };
    child.stdin.take().unwrap().write_all(page).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    Some((output.status.success(), String::from_utf8_lossy(&said).into_owned()))
}

/// The arguments that request help of a command.
fn help_of(command: &'static str) -> Vec<&'static str> {
    command.split(' ').chain(["--help"]).collect()
}

#[test]
fn help_goes_to_stdout_and_the_lack_of_a_command_to_stderr() {
    let help = String::from_utf8(run(&["--help"]).quietly()).unwrap();
    for command in COMMANDS {
        assert!(command.contains(' ') || help.contains(&format!("\n  {command} ")), "{command}");
        let page = run(&help_of(command)).quietly();
        assert!(String::from_utf8(page).unwrap().contains("Usage: borehole "), "{command}");
    }
    assert!(run(&[] as &[&str]).failed().contains("Usage: borehole [OPTIONS] <COMMAND>"));
    assert!(run(&["convrt"]).failed().contains("'convert'"));
}

#[test]
fn help_begins_with_the_summary_of_the_command() {
    for (group, listed) in [(&[][..], "convert"), (&[], "report"), (&["heap"], "query"), (&["heap"], "dump")]
    {
        let [list, help] = [&[group, &["--help"]].concat(), &[group, &[listed, "--help"]].concat()]
            .map(|arguments| String::from_utf8(run(arguments).quietly()).unwrap());
        let mut words = help.split("\n\n").next().unwrap().split_whitespace();
        let of_list = list.split_whitespace().collect::<Vec<_>>().join(" ");
        let about = words.by_ref().collect::<Vec<_>>().join(" ");
        assert!(of_list.contains(&format!("{listed} {about}")), "{about}");
    }
}

#[test]
fn help_fits_80_columns() {
    for command in COMMANDS {
        let output = program(&help_of(command)).env("COLUMNS", "80").output().unwrap();
        let help = String::from_utf8(output.stdout).unwrap();
        let widest = help.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(80), "{command}: {widest:?}");
        let example = |line: &&str| line.starts_with("  borehole ");
        let examples = help.lines().skip_while(|line| *line != "Examples:").skip(1);
        assert!(examples.clone().all(|line| example(&line)), "{command}: an example breaks its line");
    }
}

#[test]
fn the_version_is_the_crates() {
    let version = run(&["--version"]).quietly();
    assert_eq!(version, concat!("borehole ", env!("CARGO_PKG_VERSION"), "\n").as_bytes());
}

#[test]
fn bash_and_other_shells_get_a_script_that_knows_every_command() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = run(&["completions", shell]).quietly();
        let script_text = String::from_utf8_lossy(&script);
        for word in COMMANDS.iter().chain(&["--sampling-period", "--last-depth"]) {
            let bare = word.trim_start_matches('-').rsplit(' ').next().unwrap();
            assert!(script_text.contains(bare), "{shell}: {word}");
        }
    }
    let script = run(&["completions", "bash"]).quietly();
    assert_eq!(read_by(&["bash", "-n"], &script), Some((true, String::new())));
    let broken = [&script[..], b"\nif then\n"].concat();
    assert_eq!(read_by(&["bash", "-n"], &broken).map(|(is_good, _)| is_good), Some(false));
}

#[test]
fn every_command_has_a_man_page_that_says_all_its_help_says() {
    let scratch = Scratch::new();
    let folder = scratch.path("man1");
    run(&["man", "-o", text(&folder)]).quietly();
    let mut expected: Vec<_> =
        COMMANDS.iter().map(|command| format!("borehole-{}.1", command.replace(' ', "-"))).collect();
    expected.push("borehole.1".to_owned());
    expected.sort();
    assert_eq!(listing(&folder), expected);
    for name in expected {
        let page = fs::read(folder.join(&name)).unwrap();
        let source = String::from_utf8(page.clone()).unwrap();
        assert!(source.contains(".SH NAME\n") && !source.contains("EXTRA"), "{name}");
        if let Some((is_good, shown)) = read_by(&["groff", "-man", "-Tutf8", "-ww"], &page) {
            assert!(is_good && !shown.contains("warning:"), "{name}: {shown}");
            assert!(shown.contains("borehole"), "{name}");
        }
    }
    let convert = fs::read_to_string(folder.join("borehole-convert.1")).unwrap();
    assert!(convert.contains("Memory that the command may hold"), "{convert}");
    assert!(convert.contains(".SH EXAMPLES"), "{convert}");
    let main = run(&["man"]).quietly();
    assert_eq!(main, fs::read(folder.join("borehole.1")).unwrap());
    let main = String::from_utf8(main).unwrap();
    // The page of `lake` belongs to another program.
    assert!(!main.contains("borehole\\-help") && main.contains("borehole\\-lake(1)"), "{main}");
}

#[test]
fn a_page_is_replaced_when_the_new_one_is_whole() {
    let scratch = Scratch::new();
    let [page, old] = ["borehole.1", "old"].map(|name| scratch.path(name));
    fs::write(&page, "old").unwrap();
    fs::hard_link(&page, &old).unwrap();
    run(&["man", "-o", text(scratch.folder())]).quietly();
    assert_eq!(fs::read_to_string(old).unwrap(), "old");
    assert_eq!(fs::read(page).unwrap(), run(&["man"]).quietly());
}

#[cfg(feature = "lake")]
#[test]
fn the_program_for_lakes_has_pages_and_scripts_of_its_own() {
    let scratch = Scratch::new();
    let folder = scratch.path("man1");
    run(&["lake", "man", "-o", text(&folder)]).quietly();
    let pages = listing(&folder);
    for name in ["borehole-lake.1", "borehole-lake-add.1", "borehole-lake-query.1", "borehole-lake-compact.1"]
    {
        assert!(pages.iter().any(|page| page == name), "{name}: {pages:?}");
        let page = fs::read_to_string(folder.join(name)).unwrap();
        assert!(page.contains(".SH NAME\n") && page.contains("lake"), "{name}");
    }
    // Both programs may write their pages to the same folder, in any order.
    let page = fs::read(folder.join("borehole-lake.1")).unwrap();
    run(&["man", "-o", text(&folder)]).quietly();
    assert_eq!(fs::read(folder.join("borehole-lake.1")).unwrap(), page);
    let script = run(&["lake", "completions", "bash"]).quietly();
    assert!(String::from_utf8_lossy(&script).contains("compact"));
    assert_eq!(read_by(&["bash", "-n"], &script), Some((true, String::new())));
}

#[test]
fn the_picture_in_the_readme_is_what_the_command_draws() {
    let scratch = Scratch::new();
    let picture = scratch.path("flame.svg");
    let title = "examples/python/before.bin";
    let profile = project_file(title);
    run(&["convert", text(&profile), "--no-line", &format!("--title={title}"), "-o", text(&picture)]).done();
    let same = fs::read(project_file("docs/images/flame.svg")).unwrap() == fs::read(&picture).unwrap();
    assert!(same, "docs/images/flame.svg: run `cargo xtask pictures` to draw it again");
}

#[test]
fn formats_are_listed_with_their_directions() {
    let table = String::from_utf8(run(&["formats"]).quietly()).unwrap();
    assert!(table.contains("rbt            yes   yes    .rbt "), "{table}");
    assert!(table.contains("flamegraph     -     yes "), "{table}");
}

#[test]
fn a_dash_is_standard_output_for_man_pages_too() {
    assert_eq!(run(&["man", "-o", "-"]).quietly(), run(&["man"]).quietly());
    assert!(!std::path::Path::new("-").exists());
}
