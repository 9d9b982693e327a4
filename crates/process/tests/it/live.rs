//! Reading a running process.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use borehole_process::{ErrorKind, ForeignMemory as _, ForeignProcess as _, MemoryPiece, Process};

use crate::child::{PATTERN_BYTES, Role, pattern, until};

fn assert_pattern(bytes: &[u8], from: usize) {
    for (index, &byte) in bytes.iter().enumerate() {
        assert_eq!(byte, pattern(from + index), "at {index}");
    }
}

#[test]
fn memory_is_read_small_and_large() {
    let child = Role::start("wait");
    let process = Process::open(child.id()).unwrap();
    for length in [1, 8, 4096, 4097, PATTERN_BYTES] {
        let mut bytes = vec![0; length];
        process.read(child.pattern_address, &mut bytes).unwrap();
        assert_pattern(&bytes, 0);
    }
}

#[test]
fn pieces_are_read_in_one_go_whatever_their_number() {
    let child = Role::start("wait");
    let process = Process::open(child.id()).unwrap();
    for count in [2, 8, 9, 64, 65, 1000] {
        let mut buffers = vec![[0; 16]; count];
        let mut pieces: Vec<_> = (0..)
            .zip(&mut buffers)
            .map(|(index, into)| MemoryPiece { address: child.pattern_address + index * 100, into })
            .collect();
        assert_eq!(process.read_pieces(&mut pieces).unwrap(), count * 16);
        for (index, bytes) in buffers.iter().enumerate() {
            assert_pattern(bytes, index * 100);
        }
    }
}

#[test]
fn an_unmapped_piece_ends_the_batch_without_an_error() {
    let child = Role::start("wait");
    let process = Process::open(child.id()).unwrap();
    for unmapped in [0, 0xfff, 1 << 60, u64::MAX] {
        let (mut first, mut second, mut third) = ([0; 10], [7; 10], [7; 10]);
        let mut pieces = [
            MemoryPiece { address: child.pattern_address, into: &mut first },
            MemoryPiece { address: unmapped, into: &mut second },
            MemoryPiece { address: child.pattern_address, into: &mut third },
        ];
        assert_eq!(process.read_pieces(&mut pieces).unwrap(), 10, "{unmapped:#x}");
        assert_pattern(&first, 0);
        assert_eq!((second, third), ([7; 10], [7; 10]));
        let error = process.read_u64(unmapped).unwrap_err();
        assert_eq!((error.kind(), error.address()), (ErrorKind::Unmapped, Some(unmapped)));
    }
}

#[test]
fn a_range_is_read_up_to_the_end_of_the_mapping() {
    let child = Role::start("wait");
    let process = Process::open(child.id()).unwrap();
    let stack = process.mappings().iter().find(|mapping| mapping.path == b"[stack]").unwrap();
    let (mut bytes, address) = (vec![0; 3 * 4096], stack.end - 4096);
    assert_eq!(process.read_pieces(&mut [MemoryPiece { address, into: &mut bytes }]).unwrap(), 4096);
    let error = process.read(address, &mut bytes).unwrap_err();
    assert_eq!(error.address(), Some(stack.end));
}

#[test]
fn symbols_have_their_addresses() {
    let child = Role::start("wait");
    let process = Process::open(child.id()).unwrap();
    let library = process.mappings().iter().find(|mapping| mapping.path.ends_with(b"/libc.so.6")).unwrap();
    let symbols = process.symbols(library).unwrap();
    let environ = symbols.find("environ").unwrap();
    assert!(!environ.thread_local && environ.size == 8);
    // The child's environment: a pointer to pointers to texts, one of which names its role.
    let mut address = process.read_u64(environ.address).unwrap();
    let mut found = false;
    while let pointer @ 1.. = process.read_u64(address).unwrap() {
        let mut text = [0; 23];
        process.read(pointer, &mut text).unwrap();
        found |= &text == b"BOREHOLE_TEST_ROLE=wait";
        address += 8;
    }
    assert!(found);
    // The result does not depend on the first mapping of the file.
    for mapping in process.mappings().iter().filter(|mapping| mapping.path == library.path) {
        assert_eq!(process.symbols(mapping).unwrap().find("environ"), Some(environ));
    }
    assert!(symbols.find("no such symbol").is_none());
    assert!(symbols.thread_local_block().unwrap().size > 0);
}

#[test]
fn symbols_of_a_deleted_program_are_still_found() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("program");
    // Not by this process: what it has open for writing cannot be started, and processes that it starts meanwhile have it open too.
    let copied = Command::new("cp").arg(std::env::current_exe().unwrap()).arg(&copy).status().unwrap();
    assert!(copied.success());
    let child = Role::start_program(&copy, "wait");
    let before = Process::open(child.id()).unwrap();
    let program =
        |process: &Process| process.mappings().iter().find(|mapping| mapping.shows_file()).cloned().unwrap();
    let symbols = before.symbols(&program(&before)).unwrap();
    std::fs::remove_file(&copy).unwrap();
    let after = Process::open(child.id()).unwrap();
    assert!(program(&after).deleted);
    assert_eq!(after.symbols(&program(&after)).unwrap(), symbols);
    assert!(after.runs_same_program());
}

#[test]
fn memory_without_a_file_has_no_symbols() {
    let child = Role::start("wait");
    let process = Process::open(child.id()).unwrap();
    let stack = process.mappings().iter().find(|mapping| mapping.path == b"[stack]").unwrap();
    let error = process.symbols(stack).unwrap_err();
    assert!(error.to_string().starts_with("no file is mapped at"), "{error}");
}

#[test]
fn a_process_that_has_ended_is_gone() {
    let mut child = Role::start("wait");
    let process = Process::open(child.id()).unwrap();
    assert!(process.is_running());
    child.child.kill().unwrap();
    // A zombie process has no memory.
    until("it ends", || child.state() == 'Z');
    let gone = |result: Result<u64, borehole_process::Error>| result.unwrap_err().kind() == ErrorKind::Gone;
    // Other threads of the zombie may still be ending, and have it until then.
    until("its memory is gone", || process.read_u64(child.pattern_address).is_err());
    assert!(gone(process.read_u64(child.pattern_address)));
    let mut large = vec![0; 10_000];
    assert_eq!(process.read(child.pattern_address, &mut large).unwrap_err().kind(), ErrorKind::Gone);
    assert!(!process.is_running());
    assert_eq!(Process::open(child.id()).unwrap_err().kind(), ErrorKind::Gone);
    child.child.wait().unwrap();
    assert!(gone(process.read_u64(child.pattern_address)));
    assert_eq!(Process::open(child.id()).unwrap_err().kind(), ErrorKind::Gone);
    assert_eq!(process.threads().unwrap_err().kind(), ErrorKind::Gone);
}

#[test]
fn another_program_in_the_same_process_is_noticed() {
    let mut shell = Command::new("sh");
    shell.args(["-c", "read go; exec sleep 60"]).stdin(std::process::Stdio::piped());
    let mut child = shell.spawn().unwrap();
    let id = child.id().try_into().unwrap();
    let name = |wanted: &str| std::fs::read_to_string(format!("/proc/{id}/comm")).unwrap().trim() == wanted;
    until("the shell runs", || name("sh"));
    let process = Process::open(id).unwrap();
    assert!(process.runs_same_program());
    drop(child.stdin.take());
    until("the shell is replaced", || name("sleep"));
    assert!(process.is_running() && !process.runs_same_program());
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn kernel_threads_are_refused() {
    // Process 2 exists on machines that are not containers.
    if std::fs::read("/proc/2/comm").is_ok_and(|name| name == b"kthreadd\n") {
        let error = Process::open(2).unwrap_err();
        assert!(error.to_string().contains("is a kernel thread"), "{error}");
    }
}

#[test]
fn permission_errors_have_a_reason_and_a_hint() {
    let nobody = 65_534;
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let child = Role::start("wait");
    // A program of another user, which may not read the child.
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "live::opens_what_it_is_told_to", "--nocapture"])
        .env("BOREHOLE_TEST_OPEN", child.id().to_string())
        .uid(nobody)
        .gid(nobody)
        .output();
    // If that user cannot read the test program, there is nothing to test.
    let Ok(output) = output else { return };
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        said.contains("it belongs to user 0, and this process runs as user 65534; run as root"),
        "{said}"
    );
}

/// Runs only in a child, where the variable is set.
#[test]
fn opens_what_it_is_told_to() {
    if let Ok(process) = std::env::var("BOREHOLE_TEST_OPEN") {
        println!("{}", Process::open(process.parse().unwrap()).unwrap_err());
    }
}
