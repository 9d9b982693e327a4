//! Recorded memory of each release: walked without Python, and damaged in every way.

use std::fs::{self, File};
use std::path::PathBuf;

use borehole_model::Tables;
use borehole_process::{ForeignProcess, ImageRecorder, Process};
use borehole_python::{Error, ErrorKind, Python, SampleOutcome, StackWalker, Stillness, WalkOptions};
use borehole_testkit::corpus_files;
use borehole_testkit::images::{FailingProcess, ReadFailure, damaged_copies, lines_of_image, read_image};

use crate::programs::{self, Program};

/// The symbols that attaching needs, of the thousands in a Python.
const SYMBOLS: &[&str] =
    &["_PyRuntime", ".PyRuntime", "Py_Version", "_Py_NoneStruct", "PyInterpreterState_Head"];

/// The construct in which the recordings stopped.
const RECORDED: &str = "generator expression";

/// The recordings.
fn images() -> Vec<PathBuf> {
    corpus_files("python/images", ".image")
}

/// Attaches and walks each thread, as if they ran. Returns the frames of the first stack.
fn walk(target: &impl ForeignProcess) -> Result<Vec<String>, Error> {
    let python = Python::attach(target)?;
    let mut tables = Tables::default();
    let mut walker = StackWalker::new(&python, WalkOptions::default());
    for thread in &python.threads(target)?.threads {
        for _ in 0..8 {
            let sample = walker.sample(target, thread, Stillness::Running, &mut tables)?;
            if let SampleOutcome::Stack { id, .. } = sample.outcome {
                return Ok(programs::frames(&tables, id));
            }
        }
    }
    Ok(Vec::new())
}

#[test]
fn recordings_of_each_release_are_walked_as_the_processes_were() {
    let mut releases = Vec::new();
    for path in images() {
        let image = read_image(&path);
        let identity = Python::attach(&image).unwrap().identity();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let (version, build) = name.strip_suffix('t').map_or((&*name, ""), |version| (version, "t"));
        assert_eq!(identity.version.to_string(), version);
        assert_eq!(walk(&image).unwrap(), lines_of_image(&path), "{identity}");
        releases.push(format!("{}{build}", identity.version.minor));
    }
    releases.sort_unstable();
    assert_eq!(releases, ["10", "11", "12", "13", "13t", "14", "15", "8", "9"]);
}

/// Records the images of the interpreters that are there: `RECORD_IMAGES=1` writes them.
#[test]
fn processes_can_be_recorded() {
    for interpreter in programs::pythons("images") {
        let mut program = Program::start(&mut interpreter.command("stacks/constructs.py"));
        let printed = loop {
            let (construct, printed) = program.expected().unwrap();
            if construct == RECORDED {
                break printed;
            }
            program.go_on();
        };
        let process = Process::open(program.id()).unwrap();
        let mut stopper = process.stopper();
        let (mut image, found) = loop {
            let _stopped = stopper.stop().unwrap();
            let recorder = ImageRecorder::new(&process).unwrap();
            let found = walk(&recorder).unwrap();
            // The program prints its stack right before it waits.
            if found == printed {
                break (recorder.finish(), found);
            }
        };
        image.retain_symbols(|name| SYMBOLS.iter().any(|wanted| wanted.as_bytes() == name));
        assert_eq!(walk(&image).unwrap(), found, "{}", interpreter.name);
        if std::env::var_os("RECORD_IMAGES").is_some() {
            // The build without a global lock is named as Python names it.
            let build = if interpreter.name.ends_with('t') { "t" } else { "" };
            let path = programs::corpus("python/images").join(interpreter.version());
            let name = |end: &str| PathBuf::from(format!("{}{build}.{end}", path.display()));
            image.write(File::create(name("image")).unwrap()).unwrap();
            fs::write(name("txt"), found.join("\n") + "\n").unwrap();
        }
    }
}

#[test]
fn every_read_may_fail() {
    for path in images() {
        let (image, expected) = (read_image(&path), lines_of_image(&path));
        for how in ReadFailure::ALL {
            let mut reads = 0;
            loop {
                let failing = FailingProcess::after(reads, &image, how);
                let found = walk(&failing);
                let has_failed = failing.has_failed();
                match &found {
                    Ok(frames) if *frames == expected => {}
                    Err(error) if how == ReadFailure::Gone => {
                        assert_eq!(error.kind(), ErrorKind::Process, "{error}");
                    }
                    // Nothing is made up: there is no stack, or an error.
                    Ok(frames) if how != ReadFailure::Noise => {
                        assert!(frames.is_empty(), "{reads}: {frames:?}");
                    }
                    Ok(_) | Err(_) => assert!(has_failed, "{reads} of {}: {found:?}", path.display()),
                }
                if !has_failed {
                    break;
                }
                reads += 1;
            }
            assert!(reads > 20, "{}: {reads} reads", path.display());
        }
    }
}

#[test]
fn damaged_memory_is_walked_to_an_end() {
    for (path, seed) in images().iter().zip(1..) {
        for damaged in damaged_copies(&read_image(path), seed, 100) {
            drop(walk(&damaged));
        }
    }
}
