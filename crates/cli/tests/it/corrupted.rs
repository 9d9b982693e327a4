//! Processes and core files whose memory is not what PHP or Python made of it, through the commands that read them: each ends by itself, with
//! a result or an error, in an address space of 2 GB, and keeps no more memory than what it reads is worth.
//!
//! `BOREHOLE_CORRUPTED=2000` sets how many core files there are, and half as many processes of each. `BOREHOLE_CORRUPTED_SEED` chooses other
//! changes.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::{Child, Stdio};

use borehole_process::{ForeignMemory as _, ForeignProcess as _, MemoryMapping, Process};
use borehole_testkit::fuzzing::Random;
use borehole_testkit::{Scratch, peers};

use crate::out_of_memory::run_within;
use crate::program::{text, wait_for};

/// The address space of each command, in KiB.
const LIMIT_KIB: u64 = 2_000_000;

/// A program with something of each kind on its heap, which says that it is ready and waits.
const RICH: &str = r#"
class Node { public $next; public array $bag = []; public ?string $name = null; static $all = [];
    function __construct(public int $n) { self::$all[] = $this; } }
class Table implements IteratorAggregate { private $rows = [];
    function add($key, $value) { $this->rows[$key] = $value; }
    function getIterator(): Iterator { foreach ($this->rows as $key => $value) yield $key => $value; } }
function deep($depth, $do) { return $depth ? deep($depth - 1, $do) : $do(); }
$list = null;
for ($i = 0; $i < 300; $i++) {
    $node = new Node($i); $node->next = $list; $node->name = "node $i"; $list = $node;
    $node->bag = ["k$i" => str_repeat("s", $i), $i => [$i, (string) $i, 1.5 * $i]];
}
$a = new Node(1); $b = new Node(2); $a->next = $b; $b->next = $a; unset($a, $b);
$table = new Table; for ($i = 0; $i < 50; $i++) $table->add("r$i", new ArrayObject([$i, &$list]));
$rows = $table->getIterator(); foreach ($rows as $key => $value) break;
$reference = WeakReference::create($table); $objects = new SplObjectStorage; $objects[$table] = "x";
$queue = new SplPriorityQueue; $queue->insert("a", 1); $stream = fopen("php://memory", "r+");
$bound = Closure::bind(function () { return $this->rows; }, $table, Table::class); $error = new Exception("no");
$anonymous = new class { public $p = [1]; };
deep(20, function () { echo "ready\n"; fgets(STDIN); });
"#;

/// A program with frames of each kind, which does the same.
const RICH_PYTHON: &str = r#"
import sys, threading
class Shop:
    def items(self, count):
        for number in range(count):
            yield from self.item(number)
    def item(self, number):
        yield deep(20) if number == 3 else number
def deep(depth):
    if depth:
        return deep(depth - 1)
    try:
        raise ValueError(depth)
    except ValueError:
        print("ready", flush=True)
        sys.stdin.readline()
held = [{"key %d" % number: [number, str(number), 1.5 * number]} for number in range(3000)]
for number in range(3):
    threading.Thread(target=threading.Event().wait, name="waits %d" % number, daemon=True).start()
sorted(Shop().items(9), key=lambda item: item or 0)
"#;

/// The program, which ends with the test.
struct Rich(Child);

impl Rich {
    /// Starts `program` in the interpreter called `peer`, with the option for programs in arguments.
    fn start(peer: &str, option: &str, program: &str) -> Option<Self> {
        let mut command = peers::peer(peer)?.command();
        command.args([option, program]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        let rich = Self(child);
        rich.until_it_waits();
        Some(rich)
    }

    fn until_it_waits(&self) {
        let stat = || fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap();
        wait_for(|| stat().rsplit(") ").next().is_some_and(|rest| rest.starts_with('S')).then_some(()));
    }
}

impl Drop for Rich {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A core file as the kernel would write it, and the words in it that may be changed.
struct Core {
    bytes: Vec<u8>,
    /// The headers and notes.
    header_bytes: usize,
    /// The offset, address and length of what the process may write to.
    writable: Vec<(usize, u64, usize)>,
    /// The offsets of words that lead to what the process may write to, with their values.
    pointers: Vec<(usize, u64)>,
}

/// The sizes of ELF's header, of a program header and of a page.
const HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
const PAGE: usize = 4096;

impl Core {
    fn of(process: &Process, id: u32) -> Self {
        let mapped = process.mappings().iter().filter(|mapping| mapping.readable);
        let mapped: Vec<_> = mapped.filter(|mapping| !mapping.path.starts_with(b"[v")).collect();
        let memory: Vec<_> = mapped.iter().map(|mapping| dumped(process, mapping)).collect();
        let notes = notes(&mapped, id);
        let header_bytes = HEADER + PROGRAM_HEADER * (mapped.len() + 1) + notes.len();
        let note_at = header_bytes - notes.len();
        let mut core = Self { bytes: Vec::new(), header_bytes, writable: Vec::new(), pointers: Vec::new() };
        let half_words = [4_u16, 62].map(u16::to_le_bytes).concat();
        core.bytes =
            [&b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0"[..], &half_words, &1_u32.to_le_bytes()].concat();
        core.bytes.extend([0, HEADER as u64, 0].map(u64::to_le_bytes).concat());
        let count = u16::try_from(mapped.len() + 1).unwrap();
        core.bytes.extend(0_u32.to_le_bytes());
        core.bytes.extend([64_u16, 56, count, 0, 0, 0].map(u16::to_le_bytes).concat());
        core.bytes.extend(program_header(4, 0, [note_at as u64, 0, notes.len() as u64, 0]));
        let mut at = header_bytes.next_multiple_of(PAGE);
        for (mapping, memory) in mapped.iter().zip(&memory) {
            let flags = 4 | u32::from(mapping.writable) << 1 | u32::from(mapping.executable);
            let sizes = [at as u64, mapping.start, memory.len() as u64, mapping.end - mapping.start];
            core.bytes.extend(program_header(1, flags, sizes));
            if mapping.writable && !memory.is_empty() {
                core.writable.push((at, mapping.start, memory.len()));
            }
            at += memory.len();
        }
        core.bytes.extend(notes);
        core.bytes.resize(header_bytes.next_multiple_of(PAGE), 0);
        core.bytes.extend(memory.concat());
        core.find_pointers();
        core
    }

    fn find_pointers(&mut self) {
        for &(at, _, length) in &self.writable {
            let (words, _) = self.bytes[at..at + length].as_chunks::<8>();
            let words =
                words.iter().enumerate().map(|(index, word)| (at + index * 8, u64::from_le_bytes(*word)));
            let leads = |value: u64| {
                self.writable
                    .iter()
                    .any(|&(_, start, length)| (start..start + length as u64).contains(&value))
            };
            self.pointers.extend(words.filter(|&(_, value)| leads(value)));
        }
        assert!(self.pointers.len() > 10_000, "{}", self.pointers.len());
    }

    /// Changes of memory: of 1 to 1024 words that lead somewhere, or of what is beside them.
    fn changes(&self, random: &mut Random) -> Vec<(usize, Vec<u8>)> {
        let count = 1 << random.below(11);
        (0..count).map(|_| self.change(random)).collect()
    }

    fn change(&self, random: &mut Random) -> (usize, Vec<u8>) {
        let (at, value) = self.pointers[random.below(self.pointers.len())];
        let telling = TELLING[random.below(TELLING.len())];
        let (at, value) = match random.below(6) {
            0 => (at, self.pointers[random.below(self.pointers.len())].1),
            1 => (at, telling),
            2 => (at, value ^ 1 << random.below(64)),
            3 => (at, value.wrapping_add_signed(NEAR[random.below(NEAR.len())])),
            4 => (at + 8, telling),
            _ => (at, random.number()),
        };
        (at.min(self.bytes.len() - 8), value.to_le_bytes().to_vec())
    }

    /// Changes of headers and notes.
    fn header_changes(&self, random: &mut Random) -> Vec<(usize, Vec<u8>)> {
        let count = 1 << random.below(4);
        let change = |_| {
            let length = [1, 2, 4, 8][random.below(4)];
            let value = TELLING[random.below(TELLING.len())].to_le_bytes();
            (random.below(self.header_bytes - 8), value[..length].to_vec())
        };
        (0..count).map(change).collect()
    }

    /// The address of the word at an offset, if it is the process's own.
    fn address(&self, at: usize) -> Option<u64> {
        let found =
            self.writable.iter().find(|&&(start, _, length)| (start..start + length - 7).contains(&at));
        found.map(|&(start, address, _)| address + (at - start) as u64)
    }
}

/// Numbers that lengths, counts and addresses are compared with.
const TELLING: [u64; 16] = [
    0,
    1,
    2,
    7,
    8,
    255,
    256,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    1 << 32,
    1 << 40,
    u64::MAX >> 1,
    1 << 63,
    u64::MAX - 255,
    u64::MAX,
];

/// Distances from a value to what is beside it.
const NEAR: [i64; 8] = [-16, -8, 8, 16, 24, 56, 4096, 1 << 21];

/// The memory of a mapping that the kernel would dump: of files that are not written to, the first page.
fn dumped(process: &Process, mapping: &MemoryMapping) -> Vec<u8> {
    let length = usize::try_from(mapping.end - mapping.start).unwrap();
    let is_first = mapping.shows_file() && mapping.file_offset == 0;
    let mut bytes = vec![0; if mapping.writable { length } else { usize::from(is_first) * PAGE }];
    match process.read(mapping.start, &mut bytes) {
        Ok(()) => bytes,
        Err(_) => Vec::new(),
    }
}

/// `PT_LOAD` or `PT_NOTE`, with the offset, the address, and the sizes in the file and in memory.
fn program_header(kind: u32, flags: u32, [offset, address, in_file, in_memory]: [u64; 4]) -> Vec<u8> {
    let start = [kind, flags].map(u32::to_le_bytes).concat();
    let alignment = if kind == 4 { 4 } else { PAGE as u64 };
    [start, [offset, address, 0, in_file, in_memory, alignment].map(u64::to_le_bytes).concat()].concat()
}

/// `NT_PRSTATUS`, `NT_PRPSINFO` and `NT_FILE`: one thread, the number of the process, and the mapped files.
fn notes(mapped: &[&MemoryMapping], id: u32) -> Vec<u8> {
    let with_id = |length: usize, at: usize| {
        let mut bytes = vec![0; length];
        bytes[at..at + 4].copy_from_slice(&id.to_le_bytes());
        bytes
    };
    let shown: Vec<_> = mapped.iter().filter(|mapping| mapping.shows_file()).collect();
    let mut files = [shown.len() as u64, PAGE as u64].map(u64::to_le_bytes).concat();
    for mapping in &shown {
        let pages = mapping.file_offset / PAGE as u64;
        files.extend([mapping.start, mapping.end, pages].map(u64::to_le_bytes).concat());
    }
    for mapping in &shown {
        files.extend([&mapping.path[..], b"\0"].concat());
    }
    let note = |kind: u32, mut content: Vec<u8>| {
        let head = [5, u32::try_from(content.len()).unwrap(), kind].map(u32::to_le_bytes).concat();
        content.resize(content.len().next_multiple_of(4), 0);
        [head, b"CORE\0\0\0\0".to_vec(), content].concat()
    };
    [note(1, with_id(336, 32)), note(3, with_id(136, 24)), note(0x4649_4c45, files)].concat()
}

/// A number of the environment.
fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// The number of core files, and the seed.
fn asked() -> (u64, u64) {
    (number("BOREHOLE_CORRUPTED", 24), number("BOREHOLE_CORRUPTED_SEED", 11))
}

/// Runs the command, which must end by itself and within its limits. Otherwise the file `kept` stays for whoever looks into it.
#[track_caller]
fn ends_by_itself(arguments: &[&str], which: &str, kept: &Path) {
    let ended = run_within(arguments, LIMIT_KIB);
    let is_well = matches!(ended.code, Some(0 | 2 | 3)) && !ended.said.contains("needs more than");
    if !is_well && kept.exists() {
        fs::copy(kept, Path::new(env!("CARGO_TARGET_TMPDIR")).join("corrupted")).unwrap();
    }
    let folder = env!("CARGO_TARGET_TMPDIR");
    assert!(
        is_well,
        "{arguments:?} of {which}: {:?}, {}; kept in {folder}/corrupted",
        ended.code, ended.said
    );
}

#[test]
fn corrupted_core_files_are_read_to_an_end() {
    let Some(rich) = Rich::start("php", "-r", RICH) else { return };
    let core = Core::of(&Process::open(rich.0.id().cast_signed()).unwrap(), rich.0.id());
    let scratch = Scratch::new();
    let path = scratch.write("core", &core.bytes);
    let whole = run_within(&["heap", "info", text(&path)], LIMIT_KIB);
    assert_eq!(whole.code, Some(0), "before any change: {}", whole.said);
    let file = File::options().write(true).open(&path).unwrap();
    let (count, seed) = asked();
    for number in 0..count {
        let mut random = Random::new(seed + number);
        let mut changes = core.changes(&mut random);
        if random.below(4) == 0 {
            changes.extend(core.header_changes(&mut random));
        }
        for (at, bytes) in &changes {
            file.write_all_at(bytes, *at as u64).unwrap();
        }
        ends_by_itself(&["heap", "info", text(&path)], &format!("core file {number} of seed {seed}"), &path);
        for (at, bytes) in &changes {
            file.write_all_at(&core.bytes[*at..*at + bytes.len()], *at as u64).unwrap();
        }
    }
}

#[test]
fn corrupted_processes_are_read_to_an_end_and_run_on() {
    let Some(rich) = Rich::start("php", "-r", RICH) else { return };
    let id = rich.0.id().to_string();
    let scratch = Scratch::new();
    let dump = scratch.path("heap.rdump");
    corrupt(&rich, |which| {
        ends_by_itself(&["stack", "-p", &id], which, &dump);
        ends_by_itself(&["heap", "dump", "-p", &id, "--force", "-o", text(&dump)], which, &dump);
        if dump.exists() {
            ends_by_itself(&["heap", "info", text(&dump)], which, &dump);
        }
    });
}

#[test]
fn corrupted_processes_of_python_are_sampled_to_an_end_and_run_on() {
    let Some(rich) = Rich::start("python", "-c", RICH_PYTHON) else { return };
    let id = rich.0.id().to_string();
    let scratch = Scratch::new();
    let trace = scratch.path("trace.bin");
    let record = ["record", "-p", &id, "--rate", "1000", "-d", "100ms", "--force", "-o", text(&trace)];
    corrupt(&rich, |which| {
        ends_by_itself(&["stack", "-p", &id], which, &trace);
        ends_by_itself(&record, which, &trace);
    });
}

/// Changes the memory of the program, has it read, and changes it back, again and again.
fn corrupt(rich: &Rich, mut read: impl FnMut(&str)) {
    let core = Core::of(&Process::open(rich.0.id().cast_signed()).unwrap(), rich.0.id());
    let memory = File::options().write(true).open(format!("/proc/{}/mem", rich.0.id())).unwrap();
    let (count, seed) = asked();
    for number in 0..count / 2 {
        let mut random = Random::new(seed + number);
        let changes = core.changes(&mut random);
        let placed: Vec<_> =
            changes.iter().filter_map(|(at, bytes)| Some((core.address(*at)?, *at, bytes))).collect();
        for (address, _, bytes) in &placed {
            memory.write_all_at(bytes, *address).unwrap();
        }
        read(&format!("process {number} of seed {seed}"));
        rich.until_it_waits();
        for (address, at, _) in &placed {
            memory.write_all_at(&core.bytes[*at..*at + 8], *address).unwrap();
        }
    }
}
