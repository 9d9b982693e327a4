//! Recorded memory of each release: walked without Python, and damaged in every way.

use std::cell::Cell;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};

use borehole_model::Tables;
use borehole_process::{
    ElfSymbols, Error as ProcessError, ErrorKind as ProcessErrorKind, ForeignMemory, ForeignProcess, Image,
    ImageRecorder, Mappings, MemoryMapping, MemoryPiece, Process,
};
use borehole_python::{Error, ErrorKind, Python, SampleOutcome, StackWalker, Stillness, WalkOptions};

use crate::programs::{self, Program};

/// The symbols that attaching needs, of the thousands in a Python.
const SYMBOLS: &[&str] =
    &["_PyRuntime", ".PyRuntime", "Py_Version", "_Py_NoneStruct", "PyInterpreterState_Head"];

/// The construct in which the recordings stopped.
const RECORDED: &str = "generator expression";

/// The recordings.
fn images() -> Vec<PathBuf> {
    let folder = fs::read_dir(programs::corpus("python/images")).unwrap();
    let files = folder.map(|entry| entry.unwrap().path());
    let mut images: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|end| end == "image")).collect();
    images.sort();
    images
}

fn read(path: &Path) -> Image {
    Image::read(BufReader::new(File::open(path).unwrap())).unwrap()
}

fn expected(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path.with_extension("txt")).unwrap();
    text.lines().map(ToOwned::to_owned).collect()
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
        let image = read(&path);
        let identity = Python::attach(&image).unwrap().identity();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        assert_eq!(identity.version.to_string(), name);
        assert_eq!(walk(&image).unwrap(), expected(&path), "{identity}");
        releases.push(identity.version.minor);
    }
    releases.sort_unstable();
    assert_eq!(releases, [8, 9, 10, 11, 12, 13, 15]);
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
            let path = programs::corpus("python/images").join(interpreter.version());
            let name = |end: &str| PathBuf::from(format!("{}.{end}", path.display()));
            image.write(File::create(name("image")).unwrap()).unwrap();
            fs::write(name("txt"), found.join("\n") + "\n").unwrap();
        }
    }
}

/// A target that fails after a number of reads.
struct Failing<'i> {
    image: &'i Image,
    reads_left: Cell<u64>,
    how: Failure,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failure {
    /// The memory is unmapped.
    Unmapped,
    /// The process has ended.
    Gone,
    /// All memory is noise from then on.
    Noise,
}

impl ForeignMemory for Failing<'_> {
    fn read_pieces(&self, pieces: &mut [MemoryPiece<'_>]) -> Result<usize, ProcessError> {
        if self.reads_left.get() > 0 {
            self.reads_left.set(self.reads_left.get() - 1);
            return self.image.read_pieces(pieces);
        }
        match self.how {
            Failure::Unmapped => Ok(pieces.first().map_or(0, |piece| piece.into.len() / 2)),
            Failure::Gone => Err(ProcessError::new(ProcessErrorKind::Gone, "no such process")),
            Failure::Noise => {
                let mut noise = Noise::new(pieces.first().map_or(1, |piece| piece.address | 1));
                let bytes = pieces.iter_mut().flat_map(|piece| piece.into.iter_mut());
                Ok(bytes.map(|byte| *byte = noise.next().to_le_bytes()[3]).count())
            }
        }
    }
}

impl ForeignProcess for Failing<'_> {
    fn mappings(&self) -> &Mappings {
        self.image.mappings()
    }

    fn symbols(&self, mapping: &MemoryMapping) -> Result<ElfSymbols, ProcessError> {
        self.image.symbols(mapping)
    }

    fn threads(&self) -> Result<Vec<i32>, ProcessError> {
        self.image.threads()
    }

    fn thread_pointer(&self, thread: i32) -> Result<u64, ProcessError> {
        self.image.thread_pointer(thread)
    }
}

/// Random numbers, equal in each run.
struct Noise(u64);

impl Noise {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

#[test]
fn every_read_may_fail() {
    for path in images() {
        let (image, expected) = (read(&path), expected(&path));
        for how in [Failure::Unmapped, Failure::Gone, Failure::Noise] {
            let mut reads = 0;
            loop {
                let failing = Failing { image: &image, reads_left: Cell::new(reads), how };
                let found = walk(&failing);
                let has_failed = failing.reads_left.get() == 0;
                match &found {
                    Ok(frames) if *frames == expected => {}
                    Err(error) if how == Failure::Gone => {
                        assert_eq!(error.kind(), ErrorKind::Process, "{error}");
                    }
                    // Nothing is made up: there is no stack, or an error.
                    Ok(frames) if how != Failure::Noise => assert!(frames.is_empty(), "{reads}: {frames:?}"),
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
    for (number, path) in images().iter().enumerate() {
        let image = read(path);
        let pages: Vec<u64> = pages(&image);
        let mut noise = Noise::new(number as u64 + 1);
        for _ in 0..100 {
            let mut damaged = image.clone();
            for _ in 0..=noise.next() % 8 {
                let page = pages[usize::try_from(noise.next() % pages.len() as u64).unwrap()];
                let address = page + noise.next() % 512 * 8;
                // Pointers into recorded memory mislead more than wild ones.
                let value = match noise.next() % 3 {
                    0 => noise.next(),
                    1 => {
                        pages[usize::try_from(noise.next() % pages.len() as u64).unwrap()]
                            + noise.next() % 512 * 8
                    }
                    _ => u64::MAX,
                };
                damaged.overwrite(address, &value.to_le_bytes());
            }
            drop(walk(&damaged));
        }
    }
}

/// The addresses of the recorded pages.
fn pages(image: &Image) -> Vec<u64> {
    let readable = |address: &u64| image.read_u64(*address).is_ok();
    let all = image.mappings().iter().flat_map(|mapping| (mapping.start..mapping.end).step_by(4096));
    all.filter(readable).collect()
}
