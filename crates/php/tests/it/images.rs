//! Recorded memory of each release: walked without PHP, and damaged in every way.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use borehole_model::Tables;
use borehole_php::{AttachOptions, Error, ErrorKind, Executor, Php, SampleOutcome, StackWalker, WalkOptions};
use borehole_process::{
    ElfSymbols, Error as ProcessError, ErrorKind as ProcessErrorKind, ForeignMemory, ForeignProcess, Image,
    ImageRecorder, Mappings, MemoryMapping, MemoryPiece, Process,
};
use borehole_testkit::corpus_files;
use borehole_testkit::images::{FailingProcess, ReadFailure, damaged_copies, lines_of_image, read_image};
use borehole_testkit::peers;

use crate::programs::{self, Other, Program};

/// The symbols that attaching needs, of the thousands in a PHP.
const SYMBOLS: &[&str] = &[
    "compiler_globals",
    "compiler_globals_offset",
    "executor_globals",
    "executor_globals_offset",
    "module_registry",
    "sapi_globals",
    "sapi_globals_offset",
    "sapi_module",
    "tsrm_get_ls_cache_tcb_offset",
    "zend_flf_functions",
    "zend_pass_function",
];

/// The recordings.
fn images() -> Vec<PathBuf> {
    corpus_files("php/images", ".image")
}

/// Attaches and walks once.
fn walk(target: &impl ForeignProcess) -> Result<(SampleOutcome, Vec<String>), Error> {
    let php = Php::attach(target, &AttachOptions::default())?;
    let executor = php.executors(target)?.first().copied();
    let executor = executor.ok_or_else(|| Error::from(ProcessError::unmapped(0)))?;
    let mut tables = Tables::default();
    let outcome = StackWalker::new(&php, WalkOptions::default()).sample(target, &executor, &mut tables)?;
    let frames = match outcome {
        SampleOutcome::Stack(stack) => programs::frames(&tables, stack.id),
        SampleOutcome::Idle | SampleOutcome::Torn => Vec::new(),
    };
    Ok((outcome, frames))
}

#[test]
fn recordings_of_each_release_are_walked_as_the_processes_were() {
    let mut releases = BTreeSet::new();
    for path in images() {
        let image = read_image(&path);
        let identity = Php::attach(&image, &AttachOptions::default()).unwrap().identity().clone();
        assert!(path.to_string_lossy().contains(&identity.version), "{identity}: {}", path.display());
        assert_eq!(walk(&image).unwrap().1, lines_of_image(&path), "{identity}");
        releases.insert(identity.release.to_string());
    }
    assert_eq!(Vec::from_iter(releases), ["7.0", "7.2", "7.4", "8.1", "8.2", "8.3", "8.4", "8.5", "8.6"]);
}

/// A target with another tracer.
struct Traced<'i>(&'i Image);

impl ForeignMemory for Traced<'_> {
    fn read_pieces(&self, pieces: &mut [MemoryPiece<'_>]) -> Result<usize, ProcessError> {
        self.0.read_pieces(pieces)
    }
}

impl ForeignProcess for Traced<'_> {
    fn mappings(&self) -> &Mappings {
        self.0.mappings()
    }

    fn symbols(&self, mapping: &MemoryMapping) -> Result<ElfSymbols, ProcessError> {
        self.0.symbols(mapping)
    }

    fn threads(&self) -> Result<Vec<i32>, ProcessError> {
        self.0.threads()
    }

    fn thread_pointer(&self, _thread: i32) -> Result<u64, ProcessError> {
        Err(ProcessError::new(ProcessErrorKind::Denied, "traced already"))
    }
}

#[test]
fn unreadable_threads_are_an_error_if_needed() {
    let attach = |name: &str| {
        let image = read_image(&programs::corpus(&format!("php/images/{name}.image")));
        Php::attach(&Traced(&image), &AttachOptions::default()).map(drop)
    };
    let refused = attach("8.4.24-zts").unwrap_err().to_string();
    assert_eq!(refused, "cannot find the state of PHP's threads: traced already");
    attach("8.4.24").unwrap();
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
                match (&found, how) {
                    (Ok((SampleOutcome::Stack(_), frames)), _) if *frames == expected => {}
                    (Err(error), ReadFailure::Gone) => {
                        assert_eq!(error.kind(), ErrorKind::Process, "{error}");
                    }
                    (Err(error), ReadFailure::Unmapped) => assert_ne!(error.to_string(), ""),
                    (Ok((SampleOutcome::Torn | SampleOutcome::Idle, _)), ReadFailure::Unmapped)
                    | (_, ReadFailure::Noise) => {}
                    (found, _) => panic!("read {reads} of {}: {found:?}", path.display()),
                }
                if !failing.has_failed() {
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
        for damaged in damaged_copies(&read_image(path), seed, 200) {
            drop(walk(&damaged));
        }
    }
}

/// A recording of 8.2, its executor, and the frames of its stack, leaf first.
fn of_8_2() -> (Image, Php, Executor, Vec<u64>) {
    let path = images().into_iter().find(|path| path.to_string_lossy().contains("8.2.")).unwrap();
    let image = read_image(&path);
    let php = Php::attach(&image, &AttachOptions::default()).unwrap();
    let executor = php.executors(&image).unwrap()[0];
    let mut frames = vec![image.read_u64(executor.globals + 488).unwrap()];
    while let Ok(next) = image.read_u64(frames.last().unwrap() + 48)
        && next != 0
    {
        frames.push(next);
    }
    (image, php, executor, frames)
}

fn sample(
    image: &Image,
    php: &Php,
    executor: &Executor,
    options: WalkOptions,
) -> (SampleOutcome, Vec<String>) {
    let mut tables = Tables::default();
    let outcome = StackWalker::new(php, options).sample(image, executor, &mut tables).unwrap();
    let frames = match outcome {
        SampleOutcome::Stack(stack) => programs::frames(&tables, stack.id),
        SampleOutcome::Idle | SampleOutcome::Torn => Vec::new(),
    };
    (outcome, frames)
}

#[test]
fn a_cyclic_chain_of_frames_is_torn() {
    let (image, php, executor, frames) = of_8_2();
    assert!(frames.len() > 10, "{frames:?}");
    for from in 0..frames.len() {
        for to in 0..=from {
            let mut damaged = image.clone();
            damaged.overwrite(frames[from] + 48, &frames[to].to_le_bytes());
            let (outcome, _) = sample(&damaged, &php, &executor, WalkOptions::default());
            assert_eq!(outcome, SampleOutcome::Torn, "{from} to {to}");
        }
    }
}

/// Memory that changes between two reads of a place in one call.
struct Changing<'i> {
    before: &'i Image,
    after: &'i Image,
}

impl ForeignMemory for Changing<'_> {
    fn read_pieces(&self, pieces: &mut [MemoryPiece<'_>]) -> Result<usize, ProcessError> {
        let mut seen = BTreeSet::new();
        let mut filled = 0;
        for piece in pieces {
            let image = if seen.insert(piece.address) { self.before } else { self.after };
            let wanted = piece.into.len();
            let copied =
                image.read_pieces(&mut [MemoryPiece { address: piece.address, into: piece.into }])?;
            filled += copied;
            if copied < wanted {
                break;
            }
        }
        Ok(filled)
    }
}

/// The result of a walker on memory that changes, if it has seen the stack `known` times before.
fn sample_changing(
    php: &Php,
    executor: &Executor,
    known: (&Image, usize),
    memory: &Changing<'_>,
) -> SampleOutcome {
    let (mut walker, mut tables) = (StackWalker::new(php, WalkOptions::default()), Tables::default());
    for _ in 0..known.1 {
        let outcome = walker.sample(known.0, executor, &mut tables).unwrap();
        assert!(matches!(outcome, SampleOutcome::Stack(_)), "{outcome:?}");
    }
    walker.sample(memory, executor, &mut tables).unwrap()
}

/// A copy of `image` with another number at `address`.
fn changed(image: &Image, address: u64, value: u64) -> Image {
    let mut changed = image.clone();
    changed.overwrite(address, &value.to_le_bytes());
    changed
}

#[test]
fn a_known_caller_may_have_moved_in_one_copy() {
    /// `ZEND_INIT_FCALL`.
    const INIT: u8 = 61;
    let (image, php, executor, frames) = of_8_2();
    // The caller nearest to the root with two instructions before it.
    let begin =
        |frame: &u64| instruction(&image, image.read_u64(frame + 24).unwrap(), INIT).unwrap_or(u64::MAX);
    let is_far_in = |frame: &&u64| image.read_u64(**frame).unwrap().saturating_sub(64) >= begin(frame);
    let caller = *frames[1..].iter().rfind(is_far_in).unwrap();
    let op = image.read_u64(caller).unwrap();
    let moved = changed(&image, caller, op - 32);
    let whole = sample(&image, &php, &executor, WalkOptions::default()).0;
    for (before, after) in [(&image, &moved), (&moved, &image)] {
        let memory = Changing { before, after };
        for known in [1, 2, 200] {
            assert_eq!(sample_changing(&php, &executor, (&image, known), &memory), whole, "{known}");
        }
        assert_eq!(sample_changing(&php, &executor, (&image, 0), &memory), SampleOutcome::Torn);
        assert_eq!(sample_changing(&php, &executor, (&moved, 1), &memory), whole, "found the other way");
    }
    let elsewhere = changed(&image, caller, op - 64);
    let memory = Changing { before: &moved, after: &elsewhere };
    assert_eq!(sample_changing(&php, &executor, (&image, 1), &memory), SampleOutcome::Torn);
    let memory = Changing { before: &moved, after: &moved };
    assert_ne!(sample_changing(&php, &executor, (&image, 1), &memory), whole);
}

#[test]
fn a_caller_has_to_be_the_same_function_in_both_copies() {
    let (image, php, executor, frames) = of_8_2();
    let other = image.read_u64(frames[1] + 24).unwrap();
    for frame in &frames[frames.len() - 4..] {
        let replaced = changed(&image, frame + 24, other);
        for (before, after) in [(&image, &replaced), (&replaced, &image)] {
            let memory = Changing { before, after };
            let outcome = sample_changing(&php, &executor, (&image, 1), &memory);
            assert_eq!(outcome, SampleOutcome::Torn, "{frame:x}");
        }
    }
}

/// The address of the first instruction with this `code` in the function at `function`, if that is a program's function.
fn instruction(image: &Image, function: u64, code: u8) -> Option<u64> {
    let byte = |address| {
        let mut byte = [0; 1];
        image.read(address, &mut byte).ok().map(|()| byte[0])
    };
    byte(function).filter(|&kind| kind == 2)?;
    let (ops, count) = (image.read_u64(function + 88).ok()?, image.read_u64(function + 80).ok()?);
    (0..count & 0xffff_ffff).map(|row| ops + 32 * row).find(|op| byte(op + 28) == Some(code))
}

#[test]
fn a_returning_caller_has_no_pending_call() {
    const RETURN: u8 = 62;
    let (image, php, executor, frames) = of_8_2();
    let outcome = |image: &Image| sample(image, &php, &executor, WalkOptions::default()).0;
    let mut callers = 0;
    for pair in frames.windows(2) {
        let [called, caller] = [pair[0], pair[1]].map(|frame| image.read_u64(frame + 24).unwrap());
        // The placeholder of a delegating generator was not called.
        let Some(op) = instruction(&image, caller, RETURN).filter(|_| called != 0) else { continue };
        let returning = changed(&image, pair[1], op);
        assert_eq!(outcome(&returning), SampleOutcome::Torn, "{:x}", pair[1]);
        // PHP itself calls it, like destructors.
        let how = image.read_u64(pair[0] + 40).unwrap() | 0x2_0000;
        assert!(matches!(outcome(&changed(&returning, pair[0] + 40, how)), SampleOutcome::Stack(_)));
        callers += 1;
    }
    assert!(callers > 5, "{callers}");
}

#[test]
fn names_of_gigabytes_and_functions_of_millions_of_instructions_are_cut_or_torn() {
    let (image, php, executor, frames) = of_8_2();
    // The first user function: its `function_name`, and its number of instructions.
    let function = image.read_u64(frames[1] + 24).unwrap();
    let name = image.read_u64(function + 8).unwrap();
    let mut long = image.clone();
    long.overwrite(name + 16, &(3_u64 << 30).to_le_bytes());
    let (outcome, stack) = sample(&long, &php, &executor, WalkOptions::default());
    assert!(matches!(outcome, SampleOutcome::Stack(_)), "{outcome:?}");
    let longest = stack.iter().map(String::len).max();
    assert!(longest.is_some_and(|longest| longest < 5000), "{longest:?}");
    let mut many = image.clone();
    many.overwrite(function + 80, &u32::MAX.to_le_bytes());
    assert_eq!(sample(&many, &php, &executor, WalkOptions::default()).0, SampleOutcome::Torn);
}

#[test]
fn frames_beyond_the_depth_are_counted() {
    let (image, php, executor, _) = of_8_2();
    let (whole, all) = sample(&image, &php, &executor, WalkOptions::default());
    assert!(matches!(whole, SampleOutcome::Stack(stack) if stack.omitted == 0));
    let (cut, some) =
        sample(&image, &php, &executor, WalkOptions { depth: Some(5), opcodes: false, calls: false });
    assert_eq!(some, all[..5]);
    let SampleOutcome::Stack(stack) = cut else { panic!("{cut:?}") };
    // The bottom frame of a fiber counts too; it has no name.
    assert_eq!(stack.omitted, all.len() as u64 - 5 + 1);
}

#[test]
fn frames_have_opcodes_on_request() {
    let (image, php, executor, _) = of_8_2();
    let mut tables = Tables::default();
    let outcome =
        StackWalker::new(&php, WalkOptions::default()).sample(&image, &executor, &mut tables).unwrap();
    let SampleOutcome::Stack(stack) = outcome else { panic!("{outcome:?}") };
    let opcode = |id| tables.frame(id).opcode.map(|name| String::from_utf8_lossy(tables.string(name)));
    let opcodes: Vec<_> = tables.frames_leaf_first(Some(stack.id)).map(opcode).collect();
    assert_eq!(opcodes[0], None);
    assert_eq!(opcodes[1].as_deref(), Some("ZEND_DO_ICALL"));
    assert!(opcodes.iter().flatten().any(|name| name == "ZEND_DO_UCALL"), "{opcodes:?}");
    assert!(opcodes.iter().flatten().any(|name| name == "ZEND_INCLUDE_OR_EVAL"), "{opcodes:?}");
}

#[test]
fn other_programs_are_refused_with_a_reason() {
    let (image, ..) = of_8_2();
    let refusal = |image: &Image, options: &AttachOptions<'_>| {
        let error = Php::attach(image, options).unwrap_err();
        (error.kind(), error.to_string())
    };
    let nothing = refusal(&image, &AttachOptions { is_php: Some(&|_| false), ..AttachOptions::default() });
    assert_eq!(nothing.0, ErrorKind::NotPhp);
    let mut stripped = image.clone();
    stripped.retain_symbols(|name| name != b"executor_globals");
    let (kind, text) = refusal(&stripped, &AttachOptions::default());
    assert_eq!(kind, ErrorKind::NotPhp, "{text}");
    assert!(
        text.starts_with("no PHP found: expected a program or library with PHP's symbols, found "),
        "{text}"
    );
    let (mut unknown, first) = of_unknown_release(&image);
    let (kind, text) = refusal(&unknown, &AttachOptions::default());
    assert_eq!(kind, ErrorKind::UnsupportedVersion, "{text}");
    assert!(text.contains("7.0, 7.1") && text.ends_with("found module API 20300101"), "{text}");
    unknown.overwrite(first + 4, &20_220_829_u32.to_le_bytes());
    unknown.overwrite(first + 8, &[1]);
    let (kind, text) = refusal(&unknown, &AttachOptions::default());
    assert_eq!(kind, ErrorKind::UnsupportedVersion, "{text}");
    assert!(text.contains("--enable-debug"), "{text}");
}

/// The image with a first module that was compiled for an unknown release, and the module's address.
fn of_unknown_release(image: &Image) -> (Image, u64) {
    let mut unknown = image.clone();
    let registry = symbol(image, "module_registry");
    let first = image.read_u64(image.read_u64(registry + 16).unwrap()).unwrap();
    unknown.overwrite(first + 4, &20_300_101_u32.to_le_bytes());
    (unknown, first)
}

#[test]
fn a_wrong_release_is_refused() {
    let mut refused = 0;
    for path in images() {
        let image = read_image(&path);
        let own = Php::attach(&image, &AttachOptions::default()).unwrap().identity().release;
        let (unknown, _) = of_unknown_release(&image);
        for release in borehole_php::PhpRelease::all() {
            let options = AttachOptions { release: Some(release), ..AttachOptions::default() };
            match Php::attach(&image, &options) {
                Ok(_) => assert_eq!(release, own),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::UnsupportedVersion, "{own} as {release}: {error}");
                    let expected = format!("unexpected PHP version: expected PHP {release}, found PHP {own}");
                    assert!(release != own && error.to_string().starts_with(&expected), "{error}");
                }
            }
            if let Err(error) = Php::attach(&unknown, &options) {
                assert_eq!(error.kind(), ErrorKind::Implausible, "{own} as {release}: {error}");
                refused += 1;
            }
        }
    }
    assert!(refused > 20, "{refused}");
}

fn symbol(image: &Image, name: &str) -> u64 {
    let symbols = image.mappings().iter().filter_map(|mapping| image.symbols(mapping).ok());
    symbols.into_iter().find_map(|symbols| symbols.find(name)).unwrap().address
}

/// Records the stack of `everything.php` in every installed release. `UPDATE_GOLDEN=1` asks for it.
#[test]
fn recordings_are_updated_on_request() {
    if !borehole_testkit::updates_golden() {
        return;
    }
    let folder = programs::corpus("php/images");
    fs::create_dir_all(&folder).unwrap();
    // The folder has the same name on every machine, because the name gets into the recordings.
    let programs = Path::new("/tmp/borehole-stacks");
    programs::copy(&programs::corpus("php/stacks"), programs);
    let machine = peers::peer("php").unwrap();
    record(
        Program::start(
            machine
                .command()
                .env_clear()
                .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
                .current_dir("/")
                .arg(programs.join("everything.php")),
        ),
        &folder,
    );
    fs::remove_dir_all(programs).unwrap();
    for name in ["7.0", "7.2", "7.4", "8.1", "8.3", "8.4", "8.5", "8.6", "8.4-zts"] {
        if let Some(other) = Other::set_up(&format!("php-{name}"), programs) {
            let mut command = other.command();
            record(
                Program::start(
                    command
                        .env_clear()
                        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
                        .current_dir("/")
                        .arg(other.corpus.join("everything.php")),
                ),
                &folder,
            );
        }
    }
}

fn record(mut program: Program, folder: &Path) {
    let (_, printed) = program.expected().unwrap();
    programs::rest(program.id());
    let recorder = ImageRecorder::new(Process::open(program.id()).unwrap()).unwrap();
    let identity = Php::attach(&recorder, &AttachOptions::default()).unwrap().identity().clone();
    let frames = walk(&recorder).unwrap().1;
    assert!(programs::are_printed_as(&frames, &printed), "{identity}: {frames:#?} {printed:#?}");
    let mut image = recorder.finish();
    image.retain_symbols(|name| SYMBOLS.iter().any(|wanted| wanted.as_bytes() == name));
    let threads = if identity.to_string().contains("ZTS") { "-zts" } else { "" };
    let name = format!("{}{threads}", identity.version);
    image.write(File::create(folder.join(format!("{name}.image"))).unwrap()).unwrap();
    fs::write(folder.join(format!("{name}.txt")), frames.join("\n") + "\n").unwrap();
}

#[test]
fn pointers_to_the_last_page_are_invalid() {
    let (image, php, executor, frames) = of_8_2();
    for address in [u64::MAX - 4095, u64::MAX - 4094, u64::MAX - 64, u64::MAX - 63, u64::MAX] {
        for place in [executor.globals + 488, frames[3] + 48] {
            let damaged = changed(&image, place, address);
            let (outcome, _) = sample(&damaged, &php, &executor, WalkOptions::default());
            assert_eq!(outcome, SampleOutcome::Torn, "{address:x} at {place:x}");
        }
    }
}

/// Recorded memory, with more memory at addresses that were not recorded.
struct Extended<'i> {
    image: &'i Image,
    more: Vec<(u64, Vec<u8>)>,
}

impl Extended<'_> {
    fn in_more(&self, address: u64, length: usize) -> Option<&[u8]> {
        self.more.iter().find_map(|(start, bytes)| {
            bytes.get(usize::try_from(address.checked_sub(*start)?).ok()?..)?.get(..length)
        })
    }
}

impl ForeignMemory for Extended<'_> {
    fn read_pieces(&self, pieces: &mut [MemoryPiece<'_>]) -> Result<usize, ProcessError> {
        let mut filled = 0;
        for piece in pieces {
            let wanted = piece.into.len();
            let copied = match self.in_more(piece.address, wanted) {
                Some(bytes) => {
                    piece.into.copy_from_slice(bytes);
                    wanted
                }
                None => self
                    .image
                    .read_pieces(&mut [MemoryPiece { address: piece.address, into: &mut *piece.into }])?,
            };
            filled += copied;
            if copied < wanted {
                break;
            }
        }
        Ok(filled)
    }
}

/// Memory whose executor runs this many functions on top of the recorded stack, all with the same million of instructions.
fn with_large_functions<'i>(image: &'i Image, frames: &[u64], count: u64) -> Extended<'i> {
    const FRAMES: u64 = 0x1000_0000_0000;
    const FUNCTIONS: u64 = 0x1100_0000_0000;
    const OPS: u64 = 0x1200_0000_0000;
    const OP_COUNT: u64 = 1 << 20;
    let number = |address| image.read_u64(address).unwrap_or_default();
    let is_user =
        |&&frame: &&u64| number(number(frame + 24)) & 0xff == 2 && number(number(frame + 24) + 8) != 0;
    let named = number(frames.iter().find(is_user).unwrap() + 24);
    let put = |bytes: &mut Vec<u8>, at: u64, value: u64| {
        let at = usize::try_from(at).unwrap();
        bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
    };
    let (mut stack, mut functions) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    for row in 0..count {
        let called_by = if row + 1 < count { FRAMES + 64 * (row + 1) } else { frames[0] };
        for (offset, value) in [(0, OPS), (24, FUNCTIONS + 256 * row), (40, 0x2_0000), (48, called_by)] {
            put(&mut stack, 64 * row + offset, value);
        }
        // A user function; only its first line differs from the others.
        for (offset, value) in [
            (0, 2),
            (8, number(named + 8)),
            (80, OP_COUNT),
            (88, OPS),
            (152, number(named + 152)),
            (160, row),
        ] {
            put(&mut functions, 256 * row + offset, value);
        }
    }
    Extended { image, more: vec![(FRAMES, stack), (FUNCTIONS, functions), (OPS, vec![0; 32 << 20])] }
}

#[test]
fn functions_that_share_a_million_instructions_do_not_fill_the_memory() {
    let (image, php, executor, frames) = of_8_2();
    let executing = changed(&image, executor.globals + 488, 0x1000_0000_0000);
    let (mut walker, mut tables) = (StackWalker::new(&php, WalkOptions::default()), Tables::default());
    let whole = walker.sample(&image, &executor, &mut tables).unwrap();
    for (count, is_taken) in [(2, true), (40, false), (2, true)] {
        let memory = with_large_functions(&executing, &frames, count);
        let outcome = walker.sample(&memory, &executor, &mut tables).unwrap();
        assert_eq!(matches!(outcome, SampleOutcome::Stack(_)), is_taken, "{count}: {outcome:?}");
        // The former mapping is still requested the first times.
        let again = (0..8).any(|_| walker.sample(&image, &executor, &mut tables).unwrap() == whole);
        assert!(again, "{count}");
    }
}

/// `image` as if its PHP served requests, with the place of the request's start time.
fn of_a_server(image: &Image) -> (Image, Php, Executor, u64) {
    let name = image.read_u64(symbol(image, "sapi_module")).unwrap();
    let mut image = image.clone();
    image.overwrite(name, b"fpm");
    let php = Php::attach(&image, &AttachOptions::default()).unwrap();
    assert_eq!(php.identity().sapi, "fpm");
    let executor = php.executors(&image).unwrap()[0];
    let time = symbol(&image, "sapi_globals") + 440;
    (image, php, executor, time)
}

/// The stack that `walker` finds.
fn found(
    walker: &mut StackWalker,
    tables: &mut Tables,
    memory: &impl ForeignMemory,
    executor: &Executor,
) -> Vec<String> {
    match walker.sample(memory, executor, tables).unwrap() {
        SampleOutcome::Stack(stack) => programs::frames(tables, stack.id),
        outcome => panic!("{outcome:?}"),
    }
}

/// The recording of a server, and the same with other functions at the same addresses: only their names differ.
fn of_two_requests() -> (Image, Image, Php, Executor, u64) {
    let (image, .., frames) = of_8_2();
    let (before, php, executor, time) = of_a_server(&image);
    let number = |address| before.read_u64(address).unwrap_or_default();
    let functions = frames.iter().map(|frame| number(frame + 24));
    let is_declared = |function: &u64| {
        let (kind, flags) = (number(*function) & 0xff, number(*function) >> 32);
        kind == 2 && flags & 0xc4_0000 == 0 && number(function + 8) != 0
    };
    let declared: BTreeSet<u64> = functions.filter(is_declared).collect();
    let names: BTreeSet<u64> = declared.iter().map(|function| number(function + 8)).collect();
    assert!(names.len() > 3, "{names:?}");
    let mut after = before.clone();
    for name in names {
        after.overwrite(name + 24, b"Z");
    }
    (before, after, php, executor, time)
}

#[test]
fn stale_names_of_the_previous_request_are_noticed() {
    let (before, after, php, executor, time) = of_two_requests();
    let more = || vec![(time, vec![0; 8])];
    let before = Extended { image: &before, more: more() };
    let after = Extended { image: &after, more: more() };
    let new = || (StackWalker::new(&php, WalkOptions::default()), Tables::default());
    let (mut walker, mut tables) = new();
    let expected = found(&mut walker, &mut tables, &after, &executor);
    let (mut walker, mut tables) = new();
    assert_ne!(found(&mut walker, &mut tables, &before, &executor), expected);
    for _ in 0..65 {
        found(&mut walker, &mut tables, &after, &executor);
    }
    assert_eq!(found(&mut walker, &mut tables, &after, &executor), expected);
}

#[test]
fn fewer_objects_mean_another_request() {
    let (before, after, php, executor, time) = of_two_requests();
    let objects = executor.globals + 840 + 8;
    let next = before.read_u64(objects).unwrap();
    assert!(next & 0xffff_ffff > 1, "{next:x}");
    let after = changed(&after, objects, next - 1);
    let before = Extended { image: &before, more: vec![(time, vec![0; 8])] };
    let after = Extended { image: &after, more: vec![(time, vec![0; 8])] };
    let (mut walker, mut tables) = (StackWalker::new(&php, WalkOptions::default()), Tables::default());
    let expected = found(&mut walker, &mut tables, &after, &executor);
    let (mut walker, mut tables) = (StackWalker::new(&php, WalkOptions::default()), Tables::default());
    assert_ne!(found(&mut walker, &mut tables, &before, &executor), expected);
    assert_eq!(found(&mut walker, &mut tables, &after, &executor), expected);
}

#[test]
fn code_under_a_known_stack_may_get_other_instructions_at_the_same_place() {
    let (image, php, executor, frames) = of_8_2();
    let number = |address| image.read_u64(address).unwrap_or_default();
    let mut replaced = 0;
    for function in frames.iter().map(|frame| number(frame + 24)) {
        let is_short_lived = (number(function) >> 32) & 0xc4_0000 != 0 || number(function + 8) == 0;
        if number(function) & 0xff != 2 || !is_short_lived {
            continue;
        }
        let mut other = image.clone();
        // The line of its first instruction.
        other.overwrite(number(function + 88) + 24, &777_u32.to_le_bytes());
        let (mut walker, mut tables) = (StackWalker::new(&php, WalkOptions::default()), Tables::default());
        for memory in [&image, &image, &other, &image, &other] {
            let outcome = walker.sample(memory, &executor, &mut tables).unwrap();
            assert!(matches!(outcome, SampleOutcome::Stack(_)), "{function:x}: {outcome:?}");
        }
        replaced += 1;
    }
    assert!(replaced > 3, "{replaced}");
}
