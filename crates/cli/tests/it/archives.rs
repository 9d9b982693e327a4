//! Archives of profiles, written by tar and by Python's zipfile.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use borehole_testkit::{Scratch, read_corpus};

use crate::program::{Ended, piped, run, samples_in, text};

/// A folder with two profiles and what is none, and another one inside.
fn folder() -> Scratch {
    let scratch = Scratch::new();
    for folder in ["run/deep", "archives"] {
        fs::create_dir_all(scratch.path(folder)).unwrap();
    }
    let _ = scratch.write("run/b.rbt", &read_corpus("rbt/daemon_worker.rbt"));
    let _ = scratch.write("run/deep/a.rbt", &read_corpus("rbt/pid_samples.rbt"));
    let _ = scratch.write("run/readme.txt", b"Buy milk\n");
    let _ = scratch.write("run/inner.zip", b"PK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
    scratch
}

#[track_caller]
fn made(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn tar(scratch: &Scratch, name: &str, options: &[&str]) -> PathBuf {
    let archive = scratch.path("archives").join(name);
    made(Command::new("tar").args(options).arg("-cf").arg(&archive).arg("run").current_dir(scratch.folder()));
    archive
}

fn zip(scratch: &Scratch, name: &str) -> PathBuf {
    let archive = scratch.path("archives").join(name);
    let python = ["-m", "zipfile", "-c"];
    made(Command::new("python3").args(python).arg(&archive).arg("run").current_dir(scratch.folder()));
    archive
}

/// Runs a script of Python in the folder.
fn python(scratch: &Scratch, script: &str) {
    made(Command::new("python3").args(["-c", script]).current_dir(scratch.folder()));
}

fn folded(input: &Path) -> Ended {
    run(&["convert", text(input), "--to", "folded"])
}

const SAMPLES: u64 = 30 + 20;

#[test]
fn members_of_archives_are_inputs_and_others_are_named() {
    let scratch = folder();
    let long = format!("run/{}/{}.folded", "d".repeat(150), "f".repeat(120));
    fs::create_dir_all(scratch.path(&long).parent().unwrap()).unwrap();
    let _ = scratch.write(&long, b"main;long 5\n");
    for archive in [
        zip(&scratch, "a.zip"),
        tar(&scratch, "gnu.tar", &["--format=gnu"]),
        tar(&scratch, "pax.tar", &["--format=pax"]),
        tar(&scratch, "a.tar.gz", &["-z"]),
        tar(&scratch, "no-name-for-it", &["-z"]),
    ] {
        let ended = folded(&archive);
        assert_eq!((ended.code, samples_in(&ended.stdout)), (0, SAMPLES + 5), "{}", ended.stderr);
        let note = |what: &str| format!("note: {}: skipped {what}\n", text(&archive));
        for skipped in
            ["run/readme.txt: unknown format", "run/inner.zip: archives in archives are not opened"]
        {
            assert!(ended.stderr.contains(&note(skipped)), "{}", ended.stderr);
        }
        assert_eq!(ended.stderr.matches("skipped").count(), 2, "{}", ended.stderr);
        let bytes = fs::read(&archive).unwrap();
        let ended = piped(&["convert", "--to", "folded"], &bytes);
        assert_eq!((ended.code, samples_in(&ended.stdout)), (0, SAMPLES + 5), "{}", ended.stderr);
        let labelled = run(&["convert", text(&archive), "--label-inputs", "--to", "jsonl"]).done();
        assert!(String::from_utf8(labelled).unwrap().contains(&format!("{}/{long}", text(&archive))));
    }
}

#[test]
fn archives_in_folders_and_beside_other_inputs_are_opened() {
    let scratch = folder();
    let archive = tar(&scratch, "a.tar.gz", &["-z"]);
    let ended = folded(&scratch.path("archives"));
    assert_eq!((ended.code, samples_in(&ended.stdout)), (0, SAMPLES));
    let ended = run(&["convert", text(&archive), text(&scratch.path("run/b.rbt")), "--to", "folded"]);
    assert_eq!((ended.code, samples_in(&ended.stdout)), (0, SAMPLES + 30));
}

#[test]
fn info_and_check_look_at_every_member() {
    let scratch = folder();
    for archive in [zip(&scratch, "a.zip"), tar(&scratch, "a.tar.gz", &["-z"])] {
        let info = run(&["info", "--json", text(&archive)]).done();
        let names: Vec<_> = String::from_utf8(info)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["file"].clone())
            .collect();
        let expected = ["run/b.rbt", "run/deep/a.rbt"].map(|name| format!("{}/{name}", text(&archive)));
        assert_eq!(names, expected);
        let check = run(&["check", text(&archive)]);
        assert_eq!((check.code, check.stdout.split(|&byte| byte == b'\n').count()), (0, 3));
    }
}

#[test]
fn a_command_for_one_input_takes_an_archive_with_one_profile() {
    let scratch = folder();
    let two = zip(&scratch, "two.zip");
    let error = run(&["dump", text(&two)]);
    assert_eq!(error.code, 2);
    let expected = format!("error: {}: expected one profile, found an archive with 2 profiles\n", text(&two));
    assert!(error.stderr.ends_with(&expected), "{}", error.stderr);
    fs::remove_file(scratch.path("run/deep/a.rbt")).unwrap();
    let one = zip(&scratch, "one.zip");
    let dump = run(&["dump", text(&one)]);
    assert_eq!(dump.stdout, run(&["dump", text(&scratch.path("run/b.rbt"))]).quietly());
}

#[test]
fn an_archive_without_profiles_is_an_error_that_names_a_member() {
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.path("run")).unwrap();
    fs::create_dir_all(scratch.path("archives")).unwrap();
    let _ = scratch.write("run/readme.txt", b"Buy milk\n");
    let archive = tar(&scratch, "a.tar", &[]);
    let expected = format!(
        "error: {}: unsupported input: expected an archive with a profile, found 1 other member \
         (skipped run/readme.txt: unknown format)\n",
        text(&archive)
    );
    assert_eq!(folded(&archive).failed(), expected);
}

#[test]
fn a_truncated_archive_fails_and_gives_its_first_members_if_read_leniently() {
    let scratch = folder();
    let archive = tar(&scratch, "a.tar", &["--sort=name"]);
    let bytes = fs::read(&archive).unwrap();
    let at = bytes.windows(14).position(|name| name == b"run/deep/a.rbt").unwrap();
    // In a member, and in a header.
    for cut in [at + 700, at + 100] {
        let cut = scratch.write("cut.tar", &bytes[..cut]);
        let ended = folded(&cut);
        assert_eq!(ended.code, 2, "{}", ended.stderr);
        let ended = run(&["convert", "--lenient", text(&cut), "--to", "folded"]);
        assert!(ended.code == 3 && samples_in(&ended.stdout) >= 30, "{}", ended.stderr);
        assert!(ended.stderr.contains("warning: "), "{}", ended.stderr);
    }
}

#[test]
fn zip_files_of_other_writers_are_read_or_said_not_to_be() {
    let scratch = folder();
    python(
        &scratch,
        "
import io, sys, zipfile
class Pipe(io.RawIOBase):
    def __init__(self, file): self.file = file
    def writable(self): return True
    def write(self, data): return self.file.write(data)
with open('archives/streamed.zip', 'wb') as out, zipfile.ZipFile(Pipe(out), 'w', zipfile.ZIP_DEFLATED) as archive:
    archive.write('run/b.rbt')
with zipfile.ZipFile('archives/bzip2.zip', 'w', zipfile.ZIP_BZIP2) as archive:
    archive.write('run/b.rbt')
with zipfile.ZipFile('archives/wrong.zip', 'w', zipfile.ZIP_STORED) as archive:
    archive.write('run/b.rbt')
data = bytearray(open('archives/wrong.zip', 'rb').read())
data[len(data) // 2] ^= 1
open('archives/wrong.zip', 'wb').write(data)
",
    );
    let ended = folded(&scratch.path("archives/streamed.zip"));
    assert_eq!((ended.code, samples_in(&ended.stdout)), (0, 30), "{}", ended.stderr);
    let error = folded(&scratch.path("archives/bzip2.zip")).failed();
    let said = "skipped run/b.rbt: unsupported compression: expected stored or deflated, found Bzip2";
    assert!(error.contains(said), "{error}");
    assert_eq!(folded(&scratch.path("archives/wrong.zip")).code, 2);
}

#[test]
fn an_archive_that_unpacks_to_too_much_is_refused() {
    let scratch = folder();
    python(
        &scratch,
        "
import tarfile, zipfile
class Stacks:
    left = 80 << 20
    def read(self, size):
        size = min(size, self.left)
        self.left -= size
        return (b'main;f 1\\n' * (size // 9 + 1))[:size]
member = tarfile.TarInfo('a.folded')
member.size = 80 << 20
with tarfile.open('archives/bomb.tar.gz', 'w:gz', compresslevel=9) as archive:
    archive.addfile(member, Stacks())
with zipfile.ZipFile('archives/bomb.zip', 'w', zipfile.ZIP_DEFLATED) as archive, archive.open('a.folded', 'w') as out:
    for _ in range(80): out.write((b'main;f 1\\n' * (1 << 17))[:1 << 20])
",
    );
    let expected =
        "too large: expected an archive that unpacks to at most 67,108,864 bytes or 200 times its size";
    for archive in ["archives/bomb.tar.gz", "archives/bomb.zip"] {
        let error = folded(&scratch.path(archive)).failed();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn every_prefix_and_every_changed_byte_of_an_archive_is_survived() {
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.path("run")).unwrap();
    fs::create_dir_all(scratch.path("archives")).unwrap();
    let _ = scratch.write("run/a.folded", b"main;query 3\n");
    for archive in [zip(&scratch, "a.zip"), tar(&scratch, "a.tar.gz", &["-z"])] {
        let bytes = fs::read(&archive).unwrap();
        for at in (0..bytes.len()).step_by(7) {
            let ended = piped(&["convert", "--to", "folded", "--lenient"], &bytes[..at]);
            assert!([0, 2, 3].contains(&ended.code), "{at}: {}", ended.stderr);
            let mut changed = bytes.clone();
            changed[at] ^= 0xff;
            let ended = piped(&["convert", "--to", "folded", "--lenient"], &changed);
            assert!([0, 2, 3].contains(&ended.code), "{at}: {}", ended.stderr);
        }
    }
}
