//! Finds PHP in a process, and checks that its structures are the known ones.

use std::collections::BTreeSet;

use borehole_process::{ElfSymbols, ForeignMemory, ForeignProcess, MemoryMapping};

use crate::error::{Error, ErrorKind};
use crate::executor::{Executor, ExecutorLocation};
use crate::heap_pointer::{HeapPointer, heap_pointers};
use crate::layout::Layout;
use crate::modules;
use crate::proof;
use crate::release::{Identity, PhpRelease, ThreadModel};
use crate::remote;

/// A test of whether the file at a path is PHP.
pub type IsPhp<'a> = &'a dyn Fn(&[u8]) -> bool;

/// Options of attaching, which override the detection.
#[derive(Clone, Copy, Default)]
pub struct AttachOptions<'a> {
    /// The release, for a process whose modules do not state a known one.
    pub release: Option<PhpRelease>,
    /// Which mapped file is PHP, by its path. Otherwise files with `php` in their name are tried first, then all others.
    pub is_php: Option<IsPhp<'a>>,
}

/// PHP in a process, with the location of its state.
#[derive(Clone, Debug)]
pub struct Php {
    pub(crate) identity: Identity,
    pub(crate) layout: Layout,
    pub(crate) place: ExecutorLocation,
    /// The memory that the workers of a pool share: opcache's.
    pub(crate) shared: Vec<(u64, u64)>,
    /// The address of `zend_pass_function`, which does nothing; 0 if it has no symbol.
    pub(crate) pass_function: u64,
    /// The address of the pointer to the functions called without a frame; 0 if there is none.
    pub(crate) frameless_functions: u64,
    /// The code of `execute_ex`; `None` if it has no symbol, or frames of this release do not say whether it was called for them.
    pub(crate) engine: Option<(u64, u64)>,
    /// The variables that `zend_mm_get_heap` loads; empty if it has no symbol.
    pub(crate) heap_pointers: Vec<HeapPointer>,
}

impl Php {
    /// Finds PHP in `target`, with its release and state, and checks that they fit together.
    ///
    /// # Errors
    /// If there is no PHP, its release or build is unknown, its memory contradicts the release, or the process cannot be read.
    pub fn attach(target: &impl ForeignProcess, options: &AttachOptions<'_>) -> Result<Self, Error> {
        let symbols = find_php(target, options)?;
        let found = modules::identify(target, &symbols, options.release)?;
        let layout = Layout::of(found.release);
        let place = ExecutorLocation::find(target, &symbols, found.threads)?;
        if let (ThreadModel::One, Some(symbol)) = (found.threads, symbols.find("executor_globals")) {
            proof::executor_size(symbol.size, &layout, found.release)?;
        }
        let address = |name: &str| symbols.find(name).map_or(0, |symbol| symbol.address);
        let engine = symbols.find("execute_ex").filter(|_| layout.frame_top != 0);
        let php = Self {
            engine: engine.map(|symbol| (symbol.address, symbol.address.saturating_add(symbol.size))),
            heap_pointers: heap_pointers(target, &symbols, found.threads),
            identity: Identity { sapi: sapi(target, &symbols), ..found },
            layout,
            place,
            shared: shared_memory(target),
            pass_function: address("zend_pass_function"),
            frameless_functions: address("zend_flf_functions"),
        };
        for executor in php.executors(target)? {
            php.prove(target, &executor)?;
        }
        Ok(php)
    }

    /// The current executors: one, or one for each thread that serves requests.
    ///
    /// # Errors
    /// If the process is gone, or none of its threads has a known executor and one of them cannot be read.
    pub fn executors(&self, target: &impl ForeignProcess) -> Result<Vec<Executor>, Error> {
        self.place.executors(target)
    }

    /// Checks an executor until it is plausible, or has been implausible for too long.
    fn prove(&self, memory: &impl ForeignMemory, executor: &Executor) -> Result<(), Error> {
        let mut attempts = 1;
        loop {
            match proof::executor(memory, &self.layout, executor) {
                Err(error) if error.kind() == ErrorKind::Implausible && attempts < proof::ATTEMPTS => {
                    attempts += 1;
                }
                proof => return proof,
            }
        }
    }

    /// The identity of this PHP.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The first address of the function that runs the code of scripts, `execute_ex`, and that behind it. `None` before PHP 7.4,
    /// whose frames do not say whether it was called for them.
    #[must_use]
    pub fn engine(&self) -> Option<(u64, u64)> {
        self.engine
    }

    /// Whether `address` is in opcache's memory, whose contents do not change.
    pub(crate) fn is_shared(&self, address: u64) -> bool {
        self.shared.iter().any(|&(start, end)| start <= address && address < end)
    }
}

/// Whether the symbols are those of PHP: its list of modules, and the location of its state.
fn is_php(symbols: &ElfSymbols) -> bool {
    let has = |name: &str| symbols.find(name).is_some();
    has("module_registry") && (has("executor_globals") || has("executor_globals_offset"))
}

/// The symbols of the mapped file that is PHP: the program itself or a library.
fn find_php(target: &impl ForeignProcess, options: &AttachOptions<'_>) -> Result<ElfSymbols, Error> {
    let candidates = candidates(target, options);
    let program = target.mappings().iter().find(|mapping| mapping.path.starts_with(b"/"));
    let mut refused = None;
    for mapping in &candidates {
        match target.symbols(mapping) {
            Ok(symbols) if is_php(&symbols) => return Ok(symbols),
            Ok(_) => {}
            // A program may have mapped any file, such as character tables, fonts and archives. Other libraries are examined
            // just in case, and may be unreadable.
            Err(error) if error.kind() == borehole_process::ErrorKind::Malformed => {}
            Err(error) if is_likely(mapping) || Some(*mapping) == program => {
                refused = refused.or(Some((text(&mapping.path), error)));
            }
            Err(_) => {}
        }
    }
    match (refused, program) {
        (Some((path, error)), _) => Err(Error::reading(&format!("cannot search {path} for PHP"), error)),
        (None, program) => {
            let program = program.map_or_else(|| "no program".to_owned(), |mapping| text(&mapping.path));
            let what =
                format!("no PHP found: expected a program or library with PHP's symbols, found {program}");
            Err(Error::new(ErrorKind::NotPhp, what))
        }
    }
}

fn text(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

/// Whether the name of a file suggests that it is PHP.
fn is_likely(mapping: &MemoryMapping) -> bool {
    let name = mapping.path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    name.windows(3).any(|part| part == b"php")
}

/// The first mapping of each file, likely ones first.
fn candidates<'t>(target: &'t impl ForeignProcess, options: &AttachOptions<'_>) -> Vec<&'t MemoryMapping> {
    let files = target.mappings().iter().filter(|mapping| mapping.file_offset == 0);
    let mut files: Vec<_> = files.filter(|mapping| mapping.path.starts_with(b"/")).collect();
    if let Some(is_php) = options.is_php {
        files.retain(|mapping| is_php(&mapping.path));
        return files;
    }
    let mut seen = BTreeSet::new();
    files.retain(|mapping| seen.insert((&mapping.path, mapping.deleted)));
    files.sort_by_key(|mapping| !is_likely(mapping));
    files
}

/// The name of the interface that runs PHP (SAPI), as far as it can be read.
fn sapi(target: &impl ForeignMemory, symbols: &ElfSymbols) -> String {
    let name = || {
        let module = symbols.find("sapi_module")?;
        let name = target.read_u64(module.address).ok()?;
        remote::c_string(target, name).ok()
    };
    String::from_utf8(name().unwrap_or_default()).unwrap_or_default()
}

/// The shared writable memory, where opcache keeps its code.
fn shared_memory(target: &impl ForeignProcess) -> Vec<(u64, u64)> {
    let shared = target.mappings().iter().filter(|mapping| mapping.shared && mapping.readable);
    shared.filter(|mapping| mapping.writable).map(|mapping| (mapping.start, mapping.end)).collect()
}
