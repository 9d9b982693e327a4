//! Copies heaps of real processes while they are stopped.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use borehole_capture::heap::{HeapOptions, MemoryLimitError, of_core, take};
use borehole_heap::{Graph as _, GraphBuilder};
use borehole_model::Tables;
use borehole_php::{AnalyzeOptions, AttachOptions, Php, SampleOutcome, StackWalker, WalkOptions, analyze};
use borehole_process::{CoreFile, Dump, ForeignMemory as _, ForeignProcess, Process, Stopper};
use borehole_testkit::peers;

/// A PHP program that holds memory and waits for a line, three calls deep.
const WAITS: &str = "
    function inner($held) { echo \"ready\\n\"; fgets(STDIN); echo count($held), \"\\n\"; }
    class Holder { public $held = []; function outer() { inner($this->held); } }
    $holder = new Holder;
    for ($i = 0; $i < 50000; $i++) { $holder->held[] = \"text $i\"; }
    $holder->outer();";

/// A program that allocates and frees memory all the time.
const RESTLESS: &str = "
    echo \"ready\\n\";
    while (true) { $all = []; for ($i = 0; $i < 200000; $i++) { $all[] = str_repeat('x', $i % 97); } }";

struct Program {
    child: Child,
    input: ChildStdin,
    output: BufReader<std::process::ChildStdout>,
}

impl Program {
    /// Starts PHP with `code` and waits until it is ready; `None` if PHP is skipped.
    fn start(options: &[&str], code: &str) -> Option<Self> {
        let mut command = peers::peer("php")?.command();
        command.args(options).args(["-r", code]);
        Some(Self::of(command))
    }

    fn of(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let mut program = Self { output: BufReader::new(child.stdout.take().unwrap()), input, child };
        assert_eq!(program.line(), "ready");
        program
    }

    fn id(&self) -> i32 {
        self.child.id().try_into().unwrap()
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Waits until its main thread is in this state.
    fn until(&self, states: &[char]) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !states.contains(&self.state()) {
            assert!(Instant::now() < deadline, "{states:?}: {}", self.state());
            thread::sleep(Duration::from_micros(200));
        }
    }

    fn state(&self) -> char {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.id())).unwrap();
        stat[stat.rfind(')').unwrap() + 2..].chars().next().unwrap()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The frames of its only stack.
fn frames(target: &impl ForeignProcess) -> Vec<String> {
    let php = Php::attach(target, &AttachOptions::default()).unwrap();
    let executor = php.executors(target).unwrap()[0];
    let (mut walker, mut tables) = (StackWalker::new(&php, WalkOptions::default()), Tables::default());
    let SampleOutcome::Stack(stack) = walker.sample(target, &executor, &mut tables).unwrap() else {
        panic!("no stack")
    };
    let name = |id| String::from_utf8_lossy(tables.string(tables.frame(id).function)).into_owned();
    tables.frames_leaf_first(Some(stack.id)).map(name).collect()
}

fn written_and_read(dump: &Dump) -> Dump {
    let mut file = Vec::new();
    dump.write(&mut file).unwrap();
    Dump::read(&*file).unwrap()
}

fn fact<'d>(dump: &'d Dump, name: &str) -> &'d str {
    std::str::from_utf8(dump.fact(name).unwrap_or_default()).unwrap()
}

#[test]
fn the_copy_shows_what_the_process_shows_and_the_process_runs_on() {
    let settings = [&[][..], &["-d", "opcache.enable_cli=1", "-d", "opcache.protect_memory=1"]];
    for options in settings {
        let Some(mut program) = Program::start(options, WAITS) else { return };
        program.until(&['S']);
        let live = frames(&Process::open(program.id()).unwrap());
        assert_eq!(live, ["fgets", "inner", "Holder::outer", "<main>"]);
        let taken = take(program.id(), &HeapOptions::default()).unwrap();
        assert_eq!(frames(&taken.dump), live);
        assert_eq!(frames(&written_and_read(&taken.dump)), live);
        assert!(taken.dump.held_bytes() > 4 << 20, "{}", taken.dump.held_bytes());
        program.input.write_all(b"\n").unwrap();
        assert_eq!(program.line(), "50000");
        assert!(program.child.wait().unwrap().success());
    }
}

#[test]
fn a_walk_of_the_copy_misses_nothing() {
    for options in [&["-d", "opcache.enable_cli=0"], &["-d", "opcache.enable_cli=1"]] {
        let Some(program) = Program::start(options, WAITS) else { return };
        program.until(&['S']);
        let dump = written_and_read(&take(program.id(), &HeapOptions::default()).unwrap().dump);
        let mut builder = GraphBuilder::new();
        let analysis = analyze(&dump, &AnalyzeOptions::default(), &mut builder).unwrap();
        assert_eq!((analysis.missing, analysis.torn, analysis.is_incomplete), (0, 0, false), "{options:?}");
        assert!(
            analysis.used_bytes.is_some() && analysis.doubt.is_none(),
            "{options:?}: {:?}",
            analysis.doubt
        );
        // The heap holds a text per element, and PHP's own memory.
        let nodes = builder.finish().unwrap().counts().nodes;
        assert!(nodes > 110_000, "{options:?}: {nodes}");
    }
}

#[test]
fn the_facts_of_the_moment_are_in_the_copy() {
    let Some(program) = Program::start(&[], WAITS) else { return };
    let options = HeapOptions { created_at: "2026-11-21T20:00:00Z".to_owned(), ..HeapOptions::default() };
    let taken = take(program.id(), &options).unwrap();
    let dump = &taken.dump;
    assert_eq!(fact(dump, "pid"), program.id().to_string());
    assert_eq!(fact(dump, "created_at"), "2026-11-21T20:00:00Z");
    assert_eq!(fact(dump, "php"), taken.identity.to_string());
    assert_eq!((fact(dump, "stopped"), fact(dump, "unreadable_bytes")), ("yes", "0"));
    let stopped = taken.statistics.stopped.unwrap();
    assert_eq!(fact(dump, "stop_us"), stopped.as_micros().to_string());
    assert!(fact(dump, "rss_bytes").parse::<u64>().unwrap() > 4 << 20);
    assert!(taken.statistics.stopping + taken.statistics.planning + taken.statistics.copying <= stopped);
}

#[test]
fn a_process_need_not_be_stopped() {
    let Some(mut program) = Program::start(&[], WAITS) else { return };
    program.until(&['S']);
    // While it is stopped by a tracer, nothing else can stop it.
    let mut stopper = Stopper::new(program.id());
    let held = stopper.stop().unwrap();
    assert!(take(program.id(), &HeapOptions::default()).is_err());
    let taken = take(program.id(), &HeapOptions { stop: false, ..HeapOptions::default() }).unwrap();
    drop(held);
    assert_eq!(taken.statistics.stopped, None);
    assert_eq!((fact(&taken.dump, "stopped"), taken.dump.fact("stop_us")), ("no", None));
    assert_eq!(frames(&taken.dump).len(), 4);
    program.input.write_all(b"\n").unwrap();
    assert_eq!(program.line(), "50000");
}

#[test]
fn a_running_process_is_copied_at_one_moment() {
    let Some(program) = Program::start(&["-d", "memory_limit=-1"], RESTLESS) else { return };
    for _ in 0..10 {
        let taken = take(program.id(), &HeapOptions::default()).unwrap();
        assert_eq!(taken.statistics.unreadable_bytes, 0);
        assert_eq!(frames(&taken.dump).last().unwrap(), "<main>");
    }
    // Changes during the read are not an error.
    let options = HeapOptions { stop: false, ..HeapOptions::default() };
    assert!((0..10).any(|_| take(program.id(), &options).is_ok()));
}

/// A program with so much memory that its copy is packed. It waits, or changes some of it all the time.
fn large(changes: bool) -> String {
    let then = if changes {
        "while (true) { $all[mt_rand(0, count($all) - 1)] = [str_repeat('x', mt_rand(1, 900))]; }"
    } else {
        "fgets(STDIN);"
    };
    format!(
        "$all = []; for ($i = 0; $i < 90000; $i++) {{ $all[] = [$i, \"text $i\", [md5(\"$i\"), str_repeat('y', 300)]]; }}
         echo \"ready\\n\"; {then}"
    )
}

#[test]
fn a_packed_copy_is_what_the_process_has() {
    let Some(program) = Program::start(&["-d", "memory_limit=-1"], &large(false)) else { return };
    program.until(&['S']);
    let taken = take(program.id(), &HeapOptions::default()).unwrap();
    assert!(taken.statistics.copied_bytes > 50 << 20, "{:?}", taken.statistics);
    let process = Process::open(program.id()).unwrap();
    for (address, bytes) in taken.dump.ranges() {
        let mut now = vec![0; bytes.len()];
        process.read(address, &mut now).unwrap();
        assert!(now == *bytes, "{address:#x}");
    }
    let goal = HeapOptions { memory_goal: Some(1 << 30), ..HeapOptions::default() };
    assert_eq!(take(program.id(), &goal).unwrap().dump.held_bytes(), taken.dump.held_bytes());
    let read = written_and_read(&taken.dump);
    assert!(read.spans().eq(taken.dump.spans()));
}

#[test]
fn a_large_process_that_changes_is_copied_at_one_moment() {
    let Some(program) = Program::start(&["-d", "memory_limit=-1"], &large(true)) else { return };
    let doubt = || {
        let mut taken = take(program.id(), &HeapOptions::default()).unwrap();
        assert_eq!((taken.statistics.unreadable_bytes, taken.statistics.attempts), (0, 1));
        taken.dump.keep(usize::MAX, usize::MAX);
        let mut builder = GraphBuilder::new();
        let analysis = analyze(&taken.dump, &AnalyzeOptions::default(), &mut builder).unwrap();
        assert_eq!((analysis.missing, analysis.torn), (0, 0));
        analysis.doubt
    };
    let mut sound = 0;
    for _ in 0..8 {
        match doubt() {
            Some(doubt) => assert!(is_within_an_allocation(&doubt), "{doubt}"),
            None => sound += 1,
        }
        if sound == 2 {
            return;
        }
    }
    panic!("{sound} of 8 copies are of one moment between two allocations");
}

/// Whether a doubt is that of a process that was stopped within an allocation: it has counted one and not made it yet, which has at
/// most 3,072 bytes if PHP cuts it from pages; or it has not linked all slots of new pages, of which there are at most seven.
///
/// Source: PHP 8.2, `Zend/zend_alloc.c`, `zend_mm_alloc_small_slow`, and `Zend/zend_alloc_sizes.h`.
fn is_within_an_allocation(doubt: &str) -> bool {
    let numbers = doubt.split(|character: char| !character.is_ascii_digit());
    let numbers: Vec<u64> = numbers.filter_map(|number| number.parse().ok()).collect();
    let [counted, found] = numbers[..] else { return false };
    let is_near = (1..=3072).contains(&counted.saturating_sub(found))
        || (1..7 * 4096).contains(&found.saturating_sub(counted));
    doubt.starts_with("inconsistent heap: expected ") && is_near
}

/// Whether a part of `mapping` is in a range.
fn has_some(dump: &Dump, is_meant: impl Fn(&borehole_process::MemoryMapping) -> bool) -> bool {
    let meant: Vec<_> = dump.mappings().iter().filter(|mapping| is_meant(mapping)).collect();
    assert!(!meant.is_empty());
    let mut ranges = dump.ranges();
    ranges.any(|(address, bytes)| {
        let end = address + bytes.len() as u64;
        meant.iter().any(|mapping| mapping.start < end && address < mapping.end)
    })
}

#[test]
fn the_copy_holds_exactly_the_requested_memory() {
    let Some(program) = Program::start(&["-d", "opcache.enable_cli=1"], WAITS) else { return };
    let dump = |options: HeapOptions| {
        let dump = take(program.id(), &options).unwrap().dump;
        assert!(Php::attach(&dump, &AttachOptions::default()).is_ok());
        dump
    };
    let has_heap = |dump: &Dump| has_some(dump, |mapping| mapping.path == b"[heap]");
    let has_code = |dump: &Dump| has_some(dump, |mapping| mapping.executable && mapping.shows_file());
    let has_shared = |dump: &Dump| has_some(dump, |mapping| mapping.shared && mapping.writable);
    let all = dump(HeapOptions::default());
    assert_eq!((has_heap(&all), has_code(&all), has_shared(&all)), (true, false, true));
    let less = dump(HeapOptions { exclude_heap: true, ..HeapOptions::default() });
    assert_eq!((has_heap(&less), has_code(&less), has_shared(&less)), (false, false, true));
    assert!(less.held_bytes() < all.held_bytes());
    let private = dump(HeapOptions { exclude_shared: true, ..HeapOptions::default() });
    assert_eq!((has_heap(&private), has_code(&private), has_shared(&private)), (true, false, false));
    let more = dump(HeapOptions { include_binary: true, ..HeapOptions::default() });
    assert_eq!((has_heap(&more), has_code(&more), has_shared(&more)), (true, true, true));
    let libc = more.mappings().iter().find(|mapping| mapping.path.ends_with(b"libc.so.6")).unwrap();
    assert_eq!(more.bytes(libc.start, 4).as_deref(), Some(&b"\x7fELF"[..]));
    // Only touched pages of shared memory are copied; all of it is 128 MB.
    assert!(all.held_bytes() < 64 << 20, "{}", all.held_bytes());
}

/// Fills a large block of shared memory, to which the program has access and none of its values refers.
const SHARES: &str = "
    $block = shmop_open(getmypid(), 'n', 0600, 96 << 20) ?: exit(1);
    for ($at = 0; $at < 96 << 20; $at += 1 << 20) { shmop_write($block, str_repeat('z', 1 << 20), $at); }
    shmop_delete($block);";

#[test]
fn shared_memory_that_no_value_refers_to_is_left_out() {
    let code = format!("{SHARES} {WAITS}");
    for cached in ["opcache.enable_cli=0", "opcache.enable_cli=1"] {
        let Some(program) = Program::start(&["-d", cached, "-d", "memory_limit=-1"], &code) else { return };
        program.until(&['S']);
        let taken = take(program.id(), &HeapOptions::default()).unwrap();
        let is_block = |mapping: &borehole_process::MemoryMapping| mapping.path.starts_with(b"/SYSV");
        assert!(!has_some(&taken.dump, is_block));
        let statistics = taken.statistics;
        assert_eq!(statistics.left_out_bytes, 96 << 20);
        assert_eq!(fact(&taken.dump, "left_out_bytes"), (96 << 20).to_string());
        assert_eq!(statistics.shared_bytes > 0, cached == "opcache.enable_cli=1");
        assert!(taken.dump.held_bytes() < 64 << 20, "{}", taken.dump.held_bytes());
        let mut builder = GraphBuilder::new();
        let analysis =
            analyze(&written_and_read(&taken.dump), &AnalyzeOptions::default(), &mut builder).unwrap();
        let damage = (analysis.missing, analysis.torn, analysis.left_out);
        assert_eq!((damage, analysis.doubt), ((0, 0, 0), None), "{cached}");
    }
}

#[test]
fn a_walk_without_shared_memory_says_that_it_was_left_out() {
    let Some(program) = Program::start(&["-d", "opcache.enable_cli=1"], WAITS) else { return };
    program.until(&['S']);
    let options = HeapOptions { exclude_shared: true, ..HeapOptions::default() };
    let taken = take(program.id(), &options).unwrap();
    assert_eq!((fact(&taken.dump, "exclude_shared"), taken.statistics.shared_bytes), ("yes", 0));
    assert!(taken.statistics.left_out_bytes > 1 << 20);
    let mut builder = GraphBuilder::new();
    let analysis = analyze(&written_and_read(&taken.dump), &AnalyzeOptions::default(), &mut builder).unwrap();
    assert_eq!((analysis.missing, analysis.torn, analysis.doubt), (0, 0, None));
    assert!(analysis.left_out > 0);
    // The names of functions are missing, and the values are there.
    let graph = builder.finish().unwrap();
    let texts = (0..graph.counts().locations).filter(|&row| {
        graph.location(row).string.is_some_and(|text| graph.string(text).starts_with(b"text 1"))
    });
    // 1, 10 to 19, 100 to 199, and so on.
    assert_eq!(texts.count(), 1 + 10 + 100 + 1000 + 10_000);
}

#[test]
fn other_programs_and_ended_processes_are_reported() {
    let mut sleep = Command::new("sleep").arg("60").spawn().unwrap();
    let id = sleep.id().try_into().unwrap();
    let error = take(id, &HeapOptions::default()).unwrap_err();
    sleep.kill().unwrap();
    // It has ended, but has not been waited for.
    while !fs::read_to_string(format!("/proc/{id}/stat")).unwrap().contains(") Z ") {
        thread::yield_now();
    }
    let dead = take(id, &HeapOptions::default()).unwrap_err();
    sleep.wait().unwrap();
    let gone = take(id, &HeapOptions::default()).unwrap_err();
    assert!(error.is_other_program(), "{error}");
    assert!(dead.is_gone() && gone.is_gone(), "{dead}; {gone}");
}

/// Killed at any moment, it leaves a complete copy or none.
#[test]
fn a_process_killed_during_the_copy_is_gone() {
    let (mut gone, mut whole) = (0, 0);
    for round in 0..40_u64 {
        let Some(mut program) = Program::start(&[], WAITS) else { return };
        program.until(&['S']);
        let id = program.id();
        let result = thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_micros(round * 700));
                program.child.kill().unwrap();
            });
            take(id, &HeapOptions::default())
        });
        match result {
            Ok(taken) => {
                assert_eq!(frames(&taken.dump).len(), 4);
                whole += 1;
            }
            Err(error) => {
                assert!(error.is_gone(), "round {round}: {error}");
                gone += 1;
            }
        }
    }
    assert!(gone > 0 && gone + whole == 40, "{gone} gone, {whole} whole");
}

#[test]
fn a_process_runs_on_if_its_copier_dies() {
    let Some(program) = Program::start(&["-d", "memory_limit=-1"], RESTLESS) else { return };
    for _ in 0..5 {
        let mut copier = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "heap::copies_what_it_is_told_to", "--nocapture"])
            .env("BOREHOLE_TEST_HEAP", program.id().to_string())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        program.until(&['t']);
        copier.kill().unwrap();
        assert_eq!(copier.wait().unwrap().signal(), Some(9));
        program.until(&['R', 'S']);
        thread::sleep(Duration::from_millis(2));
        assert!(program.state() != 't');
    }
}

/// Runs only in a child, where the variable is set.
#[test]
fn copies_what_it_is_told_to() {
    if let Ok(process) = std::env::var("BOREHOLE_TEST_HEAP") {
        let end = Instant::now() + Duration::from_secs(60);
        while Instant::now() < end {
            drop(take(process.parse().unwrap(), &HeapOptions::default()));
        }
    }
}

#[test]
fn it_runs_on_after_a_panic() {
    let Some(mut program) = Program::start(&[], WAITS) else { return };
    // The mapped file of PHP is looked up before and after the stop, and while the copy is planned.
    for count in [0, 3, 30, 300, 3000] {
        let left = std::sync::atomic::AtomicI32::new(count);
        let is_php = move |path: &[u8]| {
            assert!(left.fetch_sub(1, std::sync::atomic::Ordering::Relaxed) != 0, "too many requests");
            path.windows(3).any(|part| part == b"php")
        };
        let options = HeapOptions { is_php: Some(Box::new(is_php)), ..HeapOptions::default() };
        drop(catch_unwind(AssertUnwindSafe(|| take(program.id(), &options).is_ok())));
        program.until(&['S']);
    }
    program.input.write_all(b"\n").unwrap();
    assert_eq!(program.line(), "50000");
}

/// The core file of an aborted program in `folder`. `None` if the system does not write core files there.
fn core_file(mut program: Program, folder: &Path) -> Option<PathBuf> {
    let abort = format!("kill -ABRT {}", program.id());
    assert!(Command::new("sh").arg("-c").arg(abort).status().unwrap().success());
    assert_eq!(program.child.wait().unwrap().signal(), Some(6));
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().path()).find(|path| path.to_string_lossy().contains("core"))
}

#[test]
fn a_core_file_gives_the_heap_of_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let Some(php) = peers::peer("php") else { return };
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -c unlimited && exec \"$0\" \"$@\""]).arg(php.command().get_program());
    command.args(php.command().get_args()).args(["-r", WAITS]).current_dir(folder.path());
    let program = Program::of(command);
    program.until(&['S']);
    let (id, live) = (program.id(), frames(&Process::open(program.id()).unwrap()));
    let Some(file) = core_file(program, folder.path()) else {
        eprintln!("left out: this system writes no core files into the folder of a process");
        return;
    };
    let core = CoreFile::open(&file, Path::new("/")).unwrap();
    let taken = of_core(&core, &AttachOptions::default()).unwrap();
    assert_eq!(frames(&taken.dump), live);
    assert_eq!(frames(&written_and_read(&taken.dump)), live);
    assert_eq!((fact(&taken.dump, "pid"), fact(&taken.dump, "stopped")), (&*id.to_string(), "core"));
    assert_eq!((taken.statistics.unreadable_bytes, core.missing_bytes()), (0, 0));
    // A truncated file gives the rest or an error.
    let length = fs::metadata(&file).unwrap().len();
    for part in [1, 50, 90, 99] {
        let cut = fs::OpenOptions::new().write(true).open(&file).unwrap();
        cut.set_len(length * (100 - part) / 100).unwrap();
        let Ok(core) = CoreFile::open(&file, Path::new("/")) else { continue };
        assert!((1..=length).contains(&core.missing_bytes()), "{part}");
        if let Ok(less) = of_core(&core, &AttachOptions::default()) {
            assert!(less.statistics.copied_bytes < taken.statistics.copied_bytes);
        }
    }
}

#[test]
fn the_copy_keeps_where_the_memory_limit_was_exceeded() {
    let Some(program) = Program::start(&[], WAITS) else { return };
    let error = MemoryLimitError { file: b"/app/a\xff.php".to_vec(), line: 42, max_depth: 512 };
    let options = HeapOptions { memory_limit_error: Some(error.clone()), ..HeapOptions::default() };
    let mut dump = written_and_read(&take(program.id(), &options).unwrap().dump);
    assert_eq!(MemoryLimitError::of(&dump), Some(error));
    dump.set_fact("memory_limit_error_line", "soon");
    assert_eq!((MemoryLimitError::of(&dump), MemoryLimitError::of(&Dump::default())), (None, None));
}

/// A pool with one worker of another user, which waits for its first request.
#[test]
fn a_worker_of_a_pool_is_copied_while_it_is_idle() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let settings = format!(
        "[global]\nerror_log = {}\n[one]\nlisten = {}\npm = static\npm.max_children = 1\nuser = www-data\n",
        path("log"),
        path("socket"),
    );
    fs::write(path("pool.conf"), settings).unwrap();
    let Some(fpm) = peers::peer("php-fpm") else { return };
    let mut command = fpm.command();
    command.args(["--nodaemonize", "--allow-to-run-as-root", "--fpm-config", &path("pool.conf")]);
    let mut manager = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let id = manager.id().try_into().unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    let taken = loop {
        let workers = borehole_process::descendants(id).unwrap();
        let taken = workers
            .into_iter()
            .find(|&worker| worker != id)
            .map(|worker| (worker, take(worker, &HeapOptions::default())));
        match taken {
            Some((worker, Ok(taken))) => break (worker, taken),
            // It may not have started yet.
            _ => assert!(Instant::now() < deadline, "{taken:?}"),
        }
    };
    Command::new("sh").arg("-c").arg(format!("kill -TERM {id}")).status().unwrap();
    manager.wait().unwrap();
    let (worker, taken) = taken;
    assert_eq!((taken.identity.sapi.as_str(), fact(&taken.dump, "pid")), ("fpm-fcgi", &*worker.to_string()));
    // The workers share opcache's memory, of which more is mapped than resident.
    assert!(has_some(&taken.dump, |mapping| mapping.shared && mapping.end - mapping.start >= 64 << 20));
    assert!(taken.dump.held_bytes() < 64 << 20, "{}", taken.dump.held_bytes());
}
