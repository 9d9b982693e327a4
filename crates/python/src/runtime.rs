//! Finds the state of CPython's runtime in a process, and its release.

use std::collections::BTreeSet;

use borehole_process::{ElfSymbols, ForeignMemory, ForeignProcess, MemoryMapping, MemoryPiece};

use crate::debug_offsets::{self, places_of_cookie};
use crate::error::{Error, ErrorKind};
use crate::layout::Layout;
use crate::release::{PythonBuild, PythonIdentity, PythonVersion};

/// A runtime, with its release and layout.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Runtime {
    pub(crate) address: u64,
    pub(crate) identity: PythonIdentity,
    pub(crate) layout: Layout,
    /// The address of `None`; 0 if it has no symbol.
    pub(crate) none: u64,
    /// The code of `_PyEval_EvalFrameDefault`; `None` if it has no symbol.
    pub(crate) engine: Option<(u64, u64)>,
}

/// The symbol of the runtime's state, and the section that holds it from 3.10 on.
const RUNTIME: [&str; 2] = ["_PyRuntime", ".PyRuntime"];

/// The bytes of data that are searched for the cookie or the version: those of a program and its libraries.
const MOST_DATA: u64 = 64 << 20;

/// The runtimes in the process, likely ones first, each with the reason why it cannot be walked if it cannot.
///
/// # Errors
/// If there is none, with what was found instead.
pub(crate) fn find(target: &impl ForeignProcess) -> Result<Vec<Result<Runtime, Error>>, Error> {
    let (mut found, mut refused) = (Vec::new(), None);
    let program = target.mappings().iter().find(|mapping| mapping.shows_file());
    for mapping in candidates(target) {
        if found.last().is_some_and(Result::is_ok) {
            break;
        }
        match target.symbols(mapping) {
            Ok(symbols) => {
                let place = RUNTIME.iter().find_map(|name| symbols.find(name));
                found.extend(place.map(|place| of_file(target, mapping, &symbols, place.address)));
                if place.is_none() && symbols.find("PyInterpreterState_Head").is_some() {
                    found.push(Err(too_old(target, mapping)));
                }
            }
            // A program may have mapped any file.
            Err(error) if error.kind() == borehole_process::ErrorKind::Malformed => {}
            Err(error) if is_likely(mapping) || Some(mapping) == program => {
                refused = refused.or(Some((text(&mapping.path), error)));
            }
            Err(_) => {}
        }
    }
    if found.is_empty() {
        found.extend(by_cookie(target)?);
    }
    match (found.is_empty(), refused) {
        (false, _) => Ok(found),
        (true, Some((path, error))) => {
            Err(Error::reading(&format!("cannot search {path} for Python"), error))
        }
        (true, None) => Err(not_python(target, program)),
    }
}

fn not_python(target: &impl ForeignProcess, program: Option<&MemoryMapping>) -> Error {
    let is_pypy = |mapping: &MemoryMapping| has(name_of(&mapping.path), b"pypy");
    if target.mappings().iter().any(is_pypy) {
        let what = "unsupported Python: expected CPython 3.8 to 3.15, found PyPy";
        return Error::new(ErrorKind::UnsupportedVersion, what);
    }
    let program = program.map_or_else(|| "no program".to_owned(), |mapping| text(&mapping.path));
    let what =
        format!("no Python found: expected a program or library with CPython's runtime, found {program}");
    Error::new(ErrorKind::NotPython, what)
}

fn text(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

fn name_of(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or_default()
}

fn has(name: &[u8], part: &[u8]) -> bool {
    name.windows(part.len()).any(|window| window == part)
}

/// Whether the name of a file suggests that it is Python itself.
fn is_likely(mapping: &MemoryMapping) -> bool {
    let name = name_of(&mapping.path);
    name.starts_with(b"python") || name.starts_with(b"libpython")
}

/// The first mapping of each file, likely ones first. Modules of Python, of which a program may have hundreds, are left out.
fn candidates(target: &impl ForeignProcess) -> Vec<&MemoryMapping> {
    let files = target.mappings().iter().filter(|mapping| mapping.file_offset == 0 && mapping.shows_file());
    let is_module =
        |mapping: &MemoryMapping| has(&mapping.path, b"/lib-dynload/") || has(&mapping.path, b"-packages/");
    let mut seen = BTreeSet::new();
    let mut files: Vec<_> = files
        .filter(|mapping| !is_module(mapping) && seen.insert((&mapping.path, mapping.deleted)))
        .collect();
    files.sort_by_key(|mapping| !is_likely(mapping));
    files
}

/// The runtime at `address` in the file that `mapping` shows.
fn of_file(
    target: &impl ForeignProcess,
    mapping: &MemoryMapping,
    symbols: &ElfSymbols,
    address: u64,
) -> Result<Runtime, Error> {
    let none = symbols.find("_Py_NoneStruct").map_or(0, |symbol| symbol.address);
    let engine = symbols.find("_PyEval_EvalFrameDefault");
    let engine = engine.map(|symbol| (symbol.address, symbol.address.saturating_add(symbol.size)));
    if let Some((identity, layout)) = debug_offsets::read(target, address)? {
        return Ok(Runtime { address, identity, layout, none, engine });
    }
    let version = match symbols.find("Py_Version") {
        Some(symbol) => {
            let [a, b, c, d, ..] = target.read_u64(symbol.address)?.to_le_bytes();
            Some(PythonVersion::of_hex(u32::from_le_bytes([a, b, c, d])))
        }
        None => stated_version(target, mapping)?,
    };
    let Some(version) = version else {
        let what =
            format!("{}: expected the version of Python in its memory, found none", text(&mapping.path));
        return Err(Error::new(ErrorKind::Implausible, what));
    };
    let layout = Layout::tabled(version).ok_or_else(|| unsupported(version))?;
    let identity = PythonIdentity { version, build: PythonBuild::Gil };
    Ok(Runtime { address, identity, layout, none, engine })
}

fn unsupported(version: PythonVersion) -> Error {
    let what = if version.is_supported() {
        format!(
            "CPython {version} states no offsets of its structures: it is damaged or has just been started"
        )
    } else {
        format!("unsupported CPython {version}: expected 3.8 to 3.15")
    };
    let kind = if version.is_supported() { ErrorKind::Implausible } else { ErrorKind::UnsupportedVersion };
    Error::new(kind, what)
}

fn too_old(target: &impl ForeignProcess, mapping: &MemoryMapping) -> Error {
    let version = stated_version(target, mapping).ok().flatten();
    let version = version.map_or_else(|| "older than 3.7".to_owned(), |version| version.to_string());
    let what = format!("unsupported CPython {version}: expected 3.8 to 3.15");
    Error::new(ErrorKind::UnsupportedVersion, what)
}

/// The version in the text that `Py_GetVersion` returns, which it builds in the data of the program.
fn stated_version(
    target: &impl ForeignProcess,
    mapping: &MemoryMapping,
) -> Result<Option<PythonVersion>, Error> {
    let mut found = None;
    search(target, &data_of(target, mapping), |bytes, _| {
        let starts = bytes
            .windows(3)
            .enumerate()
            .filter(|(_, part)| part[0] == 0 && matches!(part[1], b'2' | b'3') && part[2] == b'.');
        found = starts.filter_map(|(at, _)| PythonVersion::of_text(&bytes[at + 1..])).next();
        found.is_some()
    })?;
    Ok(found)
}

/// The writable mappings of a file, and those without a file right behind them, where its variables are that begin as zeros.
fn data_of(target: &impl ForeignProcess, file: &MemoryMapping) -> Vec<(u64, u64)> {
    let mut data: Vec<(u64, u64)> = Vec::new();
    for mapping in target.mappings().iter().filter(|mapping| mapping.readable && mapping.writable) {
        let is_behind = || data.last().is_some_and(|&(_, end)| end == mapping.start);
        if mapping.path == file.path || (mapping.path.is_empty() && is_behind()) {
            data.push((mapping.start, mapping.end));
        }
    }
    data
}

/// The runtimes that state their offsets, found by their first bytes.
fn by_cookie(target: &impl ForeignProcess) -> Result<Vec<Result<Runtime, Error>>, Error> {
    let files = target.mappings().iter().filter(|mapping| mapping.shows_file() && mapping.file_offset > 0);
    let data: Vec<(u64, u64)> = files
        .filter(|mapping| mapping.readable && mapping.writable && !mapping.shared)
        .map(|mapping| (mapping.start, mapping.end))
        .collect();
    let mut places = Vec::new();
    search(target, &data, |bytes, start| {
        places.extend(places_of_cookie(bytes, start));
        !places.is_empty()
    })?;
    let runtime = |address: u64| match debug_offsets::read(target, address) {
        Ok(Some((identity, layout))) => {
            Some(Ok(Runtime { address, identity, layout, none: 0, engine: None }))
        }
        Ok(None) => None,
        Err(error) => Some(Err(error)),
    };
    Ok(places.into_iter().filter_map(runtime).collect())
}

/// Passes the memory between these addresses to `is_found`, piece by piece with its address, until that says so.
fn search(
    memory: &impl ForeignMemory,
    spans: &[(u64, u64)],
    mut is_found: impl FnMut(&[u8], u64) -> bool,
) -> Result<(), Error> {
    /// Pieces overlap, so that nothing is cut in two.
    const OVERLAP: u64 = 64;
    let mut bytes = vec![0; 64 << 10];
    let mut left = MOST_DATA;
    for &(start, end) in spans {
        let mut address = start;
        while address < end && left > 0 {
            let wanted = (end - address).min(bytes.len() as u64).min(left);
            let into = &mut bytes[..usize::try_from(wanted).unwrap_or_default()];
            let filled = memory.read_pieces(&mut [MemoryPiece { address, into }])?;
            if is_found(&bytes[..filled], address) {
                return Ok(());
            }
            if filled as u64 <= OVERLAP {
                break;
            }
            left -= wanted;
            address += filled as u64 - if address + (filled as u64) < end { OVERLAP } else { 0 };
        }
    }
    Ok(())
}
