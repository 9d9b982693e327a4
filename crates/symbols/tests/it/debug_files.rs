//! Separate debug files: where they are found, and when they are believed.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use borehole_symbols::{BuildId, CodeAddress, Module, SymbolSettings, Unresolved, build_id_of};

use crate::program::{Asked, C, Program, Row, compiled, rows, tool};

/// A stripped program that links to its debug file, which is beside it.
fn stripped(options: &[&str]) -> (Program, PathBuf) {
    let program = compiled("gcc", C, &[&["-O2", "-g"], options].concat());
    let debug = program.folder.path().join("program.debug");
    let path = program.path.as_os_str();
    tool("objcopy", [OsStr::new("--only-keep-debug"), path, debug.as_os_str()]);
    tool("strip", [path]);
    let mut link = std::ffi::OsString::from("--add-gnu-debuglink=");
    link.push(&debug);
    tool("objcopy", [&*link, path]);
    (program, debug)
}

fn settings(folder: &Path) -> SymbolSettings {
    let mut settings = SymbolSettings::default();
    settings.debug_folders = vec![folder.to_owned()];
    settings
}

fn build_id(path: &Path) -> BuildId {
    build_id_of(&fs::File::open(path).unwrap()).unwrap()
}

/// The functions at the start of `work`, whose address is known from before it was stripped.
fn at_work(program: &Program, address: u64, folder: &Path) -> Result<Vec<Row>, Unresolved> {
    Asked::of(program.module(), settings(folder)).at(address).map(|frames| rows(&frames))
}

fn moved(from: &Path, to: &Path) {
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::rename(from, to).unwrap();
}

#[test]
fn debug_files_are_found_in_each_place() {
    let folder = tempfile::tempdir().unwrap();
    let (program, debug) = stripped(&[]);
    let start = address_in(&debug);
    let expected = [("work".to_owned(), "program.c".to_owned(), 20)];
    let id = build_id(&program.path).to_string();
    let central = folder.path().join(program.path.parent().unwrap().strip_prefix("/").unwrap());
    let mut last = debug;
    for place in [
        program.folder.path().join("program.debug"),
        program.folder.path().join(".debug/program.debug"),
        central.join("program.debug"),
        folder.path().join(".build-id").join(&id[..2]).join(format!("{}.debug", &id[2..])),
    ] {
        if place != last {
            moved(&last, &place);
            last.clone_from(&place);
        }
        assert_eq!(at_work(&program, start, folder.path()).unwrap(), expected, "{place:?}");
    }
    fs::remove_file(&last).unwrap();
    let alone = at_work(&program, start, folder.path());
    assert!(matches!(alone, Err(Unresolved::Uncovered | Unresolved::NoSymbols)), "{alone:?}");
}

/// The address of `work` in a file with symbols.
fn address_in(path: &Path) -> u64 {
    let listed = tool("nm", [path.as_os_str()]);
    let line = listed.lines().find(|line| line.ends_with(" T work")).unwrap();
    u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap()
}

#[test]
fn a_debug_file_without_the_program_is_enough_for_stated_addresses() {
    let folder = tempfile::tempdir().unwrap();
    let (program, debug) = stripped(&[]);
    let (start, id) = (address_in(&debug), build_id(&program.path));
    let digits = id.to_string();
    moved(
        &debug,
        &folder.path().join(".build-id").join(&digits[..2]).join(format!("{}.debug", &digits[2..])),
    );
    let module = Module { build_id: Some(id), ..Module::new("/nowhere/program") };
    let mut asked = Asked::of(module, settings(folder.path()));
    assert_eq!(rows(&asked.at(start).unwrap())[0].0, "work");
    assert_eq!(asked.resolve(CodeAddress::FileOffset(start)), Err(Unresolved::NoFile));
}

#[test]
fn without_build_ids_the_checksum_decides() {
    let folder = tempfile::tempdir().unwrap();
    let (program, debug) = stripped(&["-Wl,--build-id=none"]);
    let start = address_in(&debug);
    assert_eq!(at_work(&program, start, folder.path()).unwrap()[0].0, "work");
    let mut bytes = fs::read(&debug).unwrap();
    bytes.push(0);
    fs::write(&debug, bytes).unwrap();
    assert!(at_work(&program, start, folder.path()).is_err());
}

#[test]
fn files_of_another_build_are_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    let (program, debug) = stripped(&[]);
    let (other, other_debug) = stripped(&["-O1"]);
    let start = address_in(&debug);
    fs::copy(&other_debug, &debug).unwrap();
    assert!(at_work(&program, start, folder.path()).is_err(), "the debug file is another program's");
    let module = Module { build_id: Some(build_id(&other.path)), ..program.module() };
    let mut asked = Asked::of(module, settings(folder.path()));
    assert_eq!(asked.at(start), Err(Unresolved::OtherBuild));
    let report = asked.symbolizer.reports().next().unwrap();
    let (_, text) = report.fault.unwrap();
    assert!(text.starts_with("expected build ID ") && text.contains(", found "), "{text}");
}

#[test]
fn moved_programs_are_found_by_their_build_id_only() {
    let program = compiled("gcc", C, &["-O2", "-g"]);
    let start = program.functions()["work"].0;
    let mut settings = SymbolSettings::default();
    settings.module_folders = vec![program.folder.path().to_owned()];
    let away = Module::new("/srv/app/bin/program");
    assert_eq!(Asked::of(away.clone(), settings.clone()).at(start), Err(Unresolved::NoFile));
    let known = Module { build_id: Some(build_id(&program.path)), ..away.clone() };
    assert!(Asked::of(known, settings.clone()).at(start).is_ok());
    let wrong = Module { build_id: BuildId::parse_hex(b"0123456789"), ..away };
    assert_eq!(Asked::of(wrong, settings).at(start), Err(Unresolved::NoFile));
}

#[test]
fn paths_of_a_container_stay_in_its_root() {
    let program = compiled("gcc", C, &["-O2", "-g"]);
    let start = program.functions()["work"].0;
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("bin")).unwrap();
    std::os::unix::fs::symlink(&program.path, root.path().join("bin/out")).unwrap();
    fs::copy(&program.path, root.path().join("bin/inside")).unwrap();
    let module = |path: &str| Module { root: Some(root.path().to_owned()), ..Module::new(path.as_bytes()) };
    assert!(Asked::of(module("/bin/inside"), SymbolSettings::default()).at(start).is_ok());
    for outside in ["/bin/out", "/bin/../../bin/inside"] {
        assert!(Asked::of(module(outside), SymbolSettings::default()).at(start).is_err(), "{outside}");
    }
}
