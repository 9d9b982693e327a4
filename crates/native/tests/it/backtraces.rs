//! Frame for frame what gdb finds.

use std::process::{Child, Command, Stdio};

use borehole_native::{NativeStack, StackEnd};
use borehole_process::Process;
use borehole_testkit::Scratch;
use borehole_testkit::peers;

use crate::programs::{self, Program};

/// Checks that all threads have the frames that gdb finds, up to their roots, and returns the number of frames of the longest.
fn assert_equal(process: i32) -> Option<usize> {
    let gdb = peers::peer("gdb")?;
    let found = programs::stacks(&Process::open(process).unwrap());
    let expected = programs::backtraces(&gdb, process);
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (thread, stack) in &found {
        let expected = &expected[thread];
        let is_same = |(found, expected): &(&u64, &u64)| {
            expected.checked_sub(**found).is_some_and(|before| before <= 1)
        };
        let addresses: Vec<u64> = stack.frames.iter().map(|frame| frame.address).collect();
        let is_equal =
            addresses.len() == expected.len() && addresses.iter().zip(expected).all(|pair| is_same(&pair));
        let same = addresses.iter().zip(expected).take_while(is_same).count();
        let show = |addresses: &[u64]| format!("{:x?}", &addresses[same.min(addresses.len())..]);
        let (found, wanted) = (show(&addresses), show(expected));
        assert!(is_equal, "thread {thread}, {:?}, {same} equal, then {found}, not {wanted}", stack.end);
        assert_eq!(stack.end, StackEnd::Root);
    }
    found.values().map(|stack: &NativeStack| stack.frames.len()).max()
}

/// With callbacks, a frame of variable size, a signal handler and two threads.
#[test]
fn frames_of_c_are_those_that_gdb_finds_however_it_is_compiled() {
    let variants: [&[&str]; 6] = [
        &["-O0"],
        &["-O2"],
        &["-O2", "-fno-omit-frame-pointer"],
        &["-Os", "-s"],
        &["-O2", "-static"],
        &["-O3", "-no-pie", "-fno-plt"],
    ];
    for options in variants {
        // gdb reads the file of the program.
        let scratch = Scratch::new();
        let Some(program) = programs::nested(&scratch, options) else { return };
        let Some(longest) = assert_equal(program.id()) else { return };
        assert!(longest > 300, "{options:?}: {longest}");
    }
}

#[test]
fn frames_of_php_are_those_that_gdb_finds() {
    let Some(php) = peers::peer("php") else { return };
    let program = Program::start(php.command().arg(programs::corpus("nested.php")));
    let Some(longest) = assert_equal(program.id()) else { return };
    assert!(longest > 15, "{longest}");
}

#[test]
fn frames_of_python_are_those_that_gdb_finds() {
    let source = std::fs::read_to_string(programs::corpus("nested.py")).unwrap();
    for python in programs::pythons() {
        let program = Program::start(python.command().args(["-c", &source]));
        let Some(longest) = assert_equal(program.id()) else { return };
        assert!(longest > 15, "{longest}");
    }
}

/// With closures that the standard library calls, trait objects and two threads.
#[test]
fn frames_of_rust_are_those_that_gdb_finds() {
    let variants = [
        ["-Copt-level=0", "-Cstrip=none"],
        ["-Copt-level=2", "-Cstrip=symbols"],
        ["-Copt-level=3", "-Cforce-frame-pointers=yes"],
    ];
    for options in variants {
        let scratch = Scratch::new();
        let mut rust = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
        let program = programs::compiled(rust.args(["--edition", "2024"]), &scratch, "nested.rs", &options);
        let Some(longest) = assert_equal(program.id()) else { return };
        assert!(longest > 50, "{options:?}: {longest}");
    }
}

/// With virtual functions, a handled exception and two threads.
#[test]
fn frames_of_cpp_are_those_that_gdb_finds() {
    // The peer of C comes with it.
    if peers::peer("gcc").is_none() {
        return;
    }
    for options in [["-std=c++17", "-pthread", "-O0"], ["-std=c++17", "-pthread", "-O2"]] {
        let scratch = Scratch::new();
        let program = programs::compiled(&mut Command::new("g++"), &scratch, "nested.cpp", &options);
        let Some(longest) = assert_equal(program.id()) else { return };
        assert!(longest > 50, "{options:?}: {longest}");
    }
}

/// The manager of a pool of PHP, which ends with the test.
struct Pool(Child);

impl Pool {
    /// A worker that waits for requests. There is none for some seconds on a busy machine.
    fn worker(&self) -> i32 {
        // The number of the system call `accept` on x86-64, and that of `accept4`.
        const ACCEPTS: [&str; 2] = ["43 ", "288 "];
        let manager = i32::try_from(self.0.id()).unwrap();
        let accepts = |worker: &i32| {
            let call = std::fs::read_to_string(format!("/proc/{worker}/syscall")).unwrap_or_default();
            ACCEPTS.iter().any(|number| call.starts_with(number))
        };
        let found = (0..6000).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            borehole_process::descendants(manager).unwrap().into_iter().find(accepts)
        });
        found.unwrap()
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn frames_of_a_worker_of_a_pool_of_php_are_those_that_gdb_finds() {
    let Some(fpm) = peers::peer("php-fpm") else { return };
    let scratch = Scratch::new();
    let settings = format!(
        "[global]\nerror_log = {log}\n[one]\nlisten = {socket}\npm = static\npm.max_children = 1\nuser = root\n",
        log = scratch.path("log").display(),
        socket = scratch.path("socket").display(),
    );
    let settings = scratch.write("pool.conf", settings.as_bytes());
    let mut manager = fpm.command();
    manager.args(["--nodaemonize", "--allow-to-run-as-root", "--fpm-config"]).arg(settings);
    let pool = Pool(manager.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let Some(longest) = assert_equal(pool.worker()) else { return };
    assert!(longest > 4, "{longest}");
}
