//! Frame for frame what gdb finds.

use borehole_native::{NativeStack, StackEnd};
use borehole_process::Process;
use borehole_testkit::Scratch;
use borehole_testkit::peers;

use crate::programs::{self, Program};

/// Checks that all threads have the frames that gdb finds, up to their roots, and returns the number of frames of the longest.
fn assert_equal(program: &Program) -> Option<usize> {
    let gdb = peers::peer("gdb")?;
    let found = programs::stacks(&Process::open(program.id()).unwrap());
    let expected = programs::backtraces(&gdb, program.id());
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
        let Some(longest) = assert_equal(&program) else { return };
        assert!(longest > 300, "{options:?}: {longest}");
    }
}

#[test]
fn frames_of_php_are_those_that_gdb_finds() {
    let Some(php) = peers::peer("php") else { return };
    let program = Program::start(php.command().arg(programs::corpus("nested.php")));
    let Some(longest) = assert_equal(&program) else { return };
    assert!(longest > 15, "{longest}");
}

#[test]
fn frames_of_python_are_those_that_gdb_finds() {
    let source = std::fs::read_to_string(programs::corpus("nested.py")).unwrap();
    for python in programs::pythons() {
        let program = Program::start(python.command().args(["-c", &source]));
        let Some(longest) = assert_equal(&program) else { return };
        assert!(longest > 15, "{longest}");
    }
}
