//! Programs that block, and what gdb says of their stacks.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use borehole_native::{NativeStack, SectionPool, Unwinder};
use borehole_process::{ForeignProcess, Process, Registers};
use borehole_testkit::Scratch;
use borehole_testkit::peers::{self, Peer};

/// A program that has said `ready`, and ends with its input.
pub(crate) struct Program(Child);

impl Program {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        let program = Self(child);
        program.wait();
        program
    }

    /// Waits until it reads its input: it goes on for a moment after it has said so.
    fn wait(&self) {
        let call = format!("/proc/{}/syscall", self.id());
        while !std::fs::read_to_string(&call).unwrap().starts_with("0 0x0 ") {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    pub(crate) fn id(&self) -> i32 {
        self.0.id().try_into().unwrap()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

pub(crate) fn corpus(name: &str) -> PathBuf {
    borehole_testkit::project_file("corpus/native").join(name)
}

/// The releases of Python of this machine: `python` is the newest one.
pub(crate) fn pythons() -> Vec<Peer> {
    let names =
        ["python3.8", "python3.9", "python3.10", "python3.11", "python3.12", "python3.13", "python3.14"];
    let optional = names.into_iter().filter_map(peers::optional);
    optional.chain(["python3.13t", "python"].into_iter().filter_map(peers::peer)).collect()
}

/// Compiles a program of the corpus with `compiler`, and starts it.
pub(crate) fn compiled(compiler: &mut Command, scratch: &Scratch, name: &str, options: &[&str]) -> Program {
    let program = scratch.path(name);
    let built = compiler.args(options).arg("-o").arg(&program).arg(corpus(name)).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    Program::start(&mut Command::new(program))
}

/// Builds and starts `nested.c`; `None` if there is no compiler.
pub(crate) fn nested(scratch: &Scratch, options: &[&str]) -> Option<Program> {
    let program = scratch.path("nested");
    let built = peers::peer("gcc")?
        .command()
        .args(["-pthread", "-Wall", "-o"])
        .arg(&program)
        .args(options)
        .arg(corpus("nested.c"))
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    Some(Program::start(&mut Command::new(program)))
}

/// The stacks of all threads by their numbers, each thread stopped for it.
pub(crate) fn stacks(process: &Process) -> BTreeMap<i32, NativeStack> {
    let mut unwinder = Unwinder::new(&SectionPool::default());
    let threads = process.threads().unwrap();
    threads.into_iter().map(|thread| (thread, stack(process, process, &mut unwinder, thread).1)).collect()
}

/// The registers and the stack of a thread, read through `target`.
pub(crate) fn stack(
    process: &Process,
    target: &impl ForeignProcess,
    unwinder: &mut Unwinder,
    thread: i32,
) -> (Registers, NativeStack) {
    let mut stopper = process.stopper();
    let stopped = stopper.stop_thread(thread).unwrap();
    let registers = stopped.registers().unwrap();
    let mut stack = NativeStack::default();
    unwinder.unwind(target, registers, &mut stack).unwrap();
    (registers, stack)
}

/// The addresses of the frames of each thread, as gdb finds them.
pub(crate) fn backtraces(gdb: &Peer, process: i32) -> BTreeMap<i32, Vec<u64>> {
    const SCRIPT: &str = "
import gdb
gdb.execute('set backtrace past-main on')
gdb.execute('set backtrace past-entry on')
for thread in gdb.selected_inferior().threads():
    thread.switch()
    frame, addresses = gdb.newest_frame(), []
    while frame is not None:
        # Inlined functions and tail calls have no frames; gdb infers them.
        if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
            addresses.append(str(frame.pc()))
        frame = frame.older()
    print('thread', thread.ptid[1], *addresses)
";
    let scratch = Scratch::new();
    let script = scratch.write("frames.py", SCRIPT.as_bytes());
    let (process, script) = (process.to_string(), script.display().to_string());
    // Some programs have a file system of their own.
    let (root, program) = (format!("set sysroot /proc/{process}/root"), format!("/proc/{process}/exe"));
    let found = gdb.run(&["-batch", "-nx", "-iex", &root, &program, "-p", &process, "-x", &script]);
    let text = String::from_utf8_lossy(&found.stdout).into_owned();
    let lines = text.lines().filter_map(|line| line.strip_prefix("thread "));
    let stacks: BTreeMap<i32, Vec<u64>> = lines
        .map(|line| {
            let mut words = line.split(' ');
            let thread = words.next().unwrap().parse().unwrap();
            (thread, words.map(|word| word.parse().unwrap()).collect())
        })
        .collect();
    assert!(!stacks.is_empty(), "{text}{}", String::from_utf8_lossy(&found.stderr));
    stacks
}
