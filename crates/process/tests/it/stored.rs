//! Stored processes: core files and images give the same results as the process.

use std::io::BufReader;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use borehole_process::{
    CoreFile, ErrorKind, ForeignMemory as _, ForeignProcess, Image, ImageRecorder, MemoryPiece, Process,
    Stopper,
};

use crate::child::{PATTERN_BYTES, ROLE, Role, pattern};

/// Reads symbols, threads and some memory, as a walker does.
fn look(target: &impl ForeignProcess, child: &Role) -> (u64, Vec<u8>, Vec<i32>, u64) {
    let is_library = |path: &[u8]| path.ends_with(b"/libc.so.6");
    let library = target.mappings().iter().find(|mapping| is_library(&mapping.path)).unwrap();
    let environ = target.symbols(library).unwrap().find("environ").unwrap();
    let mut bytes = vec![0; 10_000];
    target.read(child.pattern_address + 5, &mut bytes).unwrap();
    let threads = target.threads().unwrap();
    let pointer = target.thread_pointer(threads[0]).unwrap();
    (target.read_u64(environ.address).unwrap(), bytes, threads, pointer)
}

#[test]
fn an_image_answers_as_the_process_did() {
    let child = Role::start("wait");
    let process = Process::open(child.id()).unwrap();
    let direct = look(&process, &child);
    let recorder = ImageRecorder::new(&process).unwrap();
    assert_eq!(look(&recorder, &child), direct);
    let mut image = recorder.finish();
    assert_eq!(look(&image, &child), direct);
    assert!((10_000..100_000).contains(&image.bytes()), "{}", image.bytes());
    image.retain_symbols(|name| name == b"environ");

    let mut file = Vec::new();
    image.write(&mut file).unwrap();
    assert!(file.len() < 40_000, "{}", file.len());
    let read = Image::read(file.as_slice()).unwrap();
    assert_eq!(read, image);
    assert_eq!(look(&read, &child), direct);
    // Memory that was not read is missing.
    let error = read.read_u64(child.pattern_address + 200_000).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unmapped);
}

#[test]
fn an_image_is_read_up_to_missing_memory() {
    let child = Role::start("wait");
    let process = Process::open(child.id()).unwrap();
    let recorder = ImageRecorder::new(&process).unwrap();
    let start = child.pattern_address.next_multiple_of(4096);
    recorder.read_u64(start).unwrap();
    assert_eq!(recorder.read_u64(1).unwrap_err().kind(), ErrorKind::Unmapped);
    let mut image = recorder.finish();
    let (mut first, mut second) = ([0; 8], vec![0; 8192]);
    let mut pieces = [
        MemoryPiece { address: start, into: &mut first },
        MemoryPiece { address: start + 96, into: &mut second },
    ];
    assert_eq!(image.read_pieces(&mut pieces).unwrap(), 8 + 4000);
    image.overwrite(start + 6, &[1, 2, 3, 4]);
    assert_eq!(image.read_u64(start).unwrap() >> 48, 0x0201);
    image.overwrite(u64::MAX, &[1, 2]);
}

#[test]
fn other_files_are_not_images() {
    let gzip = |text: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut encoder, text).unwrap();
        encoder.finish().unwrap()
    };
    let refused = |file: &[u8]| Image::read(BufReader::new(file)).unwrap_err().to_string();
    assert!(refused(b"hello").starts_with("image: "), "{}", refused(b"hello"));
    for line in ["hello\n", "page 0\nshort", "page x\n", "symbol 1 2 a\n", "mapping 1 2\n", "no end"] {
        let file = gzip(format!("borehole-image 1\n{line}").as_bytes());
        let said = refused(&file);
        assert!(said.contains("image"), "{line}: {said}");
        assert!(refused(&gzip(line.as_bytes())).starts_with("expected a record of an image"));
    }
}

/// Has the system write a core file of a child. `None` if the system does not write core files there.
fn core_file(folder: &Path) -> Option<(Role, std::path::PathBuf)> {
    let script = "ulimit -c unlimited && exec \"$0\" --exact child::role --nocapture";
    let mut command = Command::new("sh");
    command.arg("-c").arg(script).arg(std::env::current_exe().unwrap());
    command.env(ROLE, "count").current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut role = Role::of(command);
    // Waiting for a child closes its standard input, at which it would free its memory while it is killed.
    let _input = role.child.stdin.take();
    let kill = format!("kill -ABRT {}", role.id());
    assert!(Command::new("sh").arg("-c").arg(kill).status().unwrap().success());
    assert_eq!(role.child.wait().unwrap().signal(), Some(6));
    let entries = std::fs::read_dir(folder).unwrap();
    let file =
        entries.map(|entry| entry.unwrap().path()).find(|path| path.to_string_lossy().contains("core"));
    file.map(|file| (role, file))
}

#[test]
fn a_core_file_has_the_memory_of_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let Some((child, file)) = core_file(folder.path()) else {
        eprintln!("left out: this system writes no core files into the folder of a process");
        return;
    };
    let core = CoreFile::open(&file, Path::new("/")).unwrap();
    assert_eq!(core.missing_bytes(), 0, "the system cut the core file off: is the disk full?");
    let (environ, bytes, threads, pointer) = look(&core, &child);
    assert!((0..).zip(&bytes).all(|(index, &byte)| byte == pattern(index + 5)));
    assert_eq!((threads[0], threads.len()), (child.id(), core.threads().unwrap().len()));
    assert!(threads.len() >= 5, "{threads:?}");
    assert_eq!(core.read_u64(pointer).unwrap(), pointer);
    assert!(core.mappings().at(environ).unwrap().writable);
    let mut all = vec![0; PATTERN_BYTES];
    core.read(child.pattern_address, &mut all).unwrap();
    // Code is not dumped; it is read from its file.
    let code = core.mappings().iter().find(|mapping| mapping.executable && mapping.shows_file()).unwrap();
    let mut bytes = [0; 4096];
    core.read(code.start, &mut bytes).unwrap();
    assert!(bytes.iter().any(|&byte| byte != 0));
    assert_eq!(core.read_u64(1).unwrap_err().kind(), ErrorKind::Unmapped);
    assert_eq!(core.thread_pointer(1).unwrap_err().kind(), ErrorKind::Gone);
    // Another file of that name is not taken for it.
    let root = tempfile::tempdir().unwrap();
    let other = root.path().join(std::str::from_utf8(&code.path[1..]).unwrap());
    std::fs::create_dir_all(other.parent().unwrap()).unwrap();
    std::fs::copy("/bin/sh", other).unwrap();
    let core = CoreFile::open(&file, root.path()).unwrap();
    assert_eq!(core.read(code.start, &mut bytes).unwrap_err().kind(), ErrorKind::Unmapped);
    let error = core.symbols(code).unwrap_err().to_string();
    assert!(error.ends_with("it is not the file that the process had mapped"), "{error}");
}

#[test]
fn other_files_are_not_core_files() {
    let own = std::env::current_exe().unwrap();
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    for (file, wanted) in [
        (own.as_path(), "invalid core file: expected an ELF file of type CORE, found another type"),
        (manifest.as_path(), "invalid core file: "),
        (Path::new("/no/such/file"), "/no/such/file: "),
        (Path::new("/dev/zero"), "expected a regular file"),
    ] {
        let error = CoreFile::open(file, Path::new("/")).unwrap_err();
        assert!(error.to_string().contains(wanted), "{error}");
    }
}

#[test]
fn a_stopped_process_is_recorded_consistently() {
    let child = Role::start("count");
    let process = Process::open(child.id()).unwrap();
    let mut stopper = Stopper::new(child.id());
    let stopped = stopper.stop().unwrap();
    let recorder = ImageRecorder::new(&process).unwrap();
    let counter = recorder.read_u64(child.counter_address).unwrap();
    drop(stopped);
    crate::child::until("it counts on", || process.read_u64(child.counter_address).unwrap() > counter);
    assert_eq!(recorder.read_u64(child.counter_address).unwrap(), counter);
}
