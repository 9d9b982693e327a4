//! The files of native code in a process.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use borehole_process::{ForeignMemory as _, MemoryMapping, Process, open_below, open_regular};
use borehole_symbols::{BuildId, Module};

/// The most bytes of the kernel's module in the process, which has two pages.
const MOST_VDSO_BYTES: u64 = 64 << 10;

/// The module that a mapping shows; `None` if it shows none.
pub(crate) fn module_of(process: &Process, mapping: &MemoryMapping) -> Option<Module> {
    if mapping.path == b"[vdso]" {
        let length = usize::try_from((mapping.end - mapping.start).min(MOST_VDSO_BYTES)).ok()?;
        let mut bytes = vec![0; length];
        process.read(mapping.start, &mut bytes).ok()?;
        return Some(Module { memory: Some(Arc::from(bytes)), ..Module::new(mapping.path.clone()) });
    }
    // Memory that processes share has such a path too.
    if !mapping.shows_file()
        || [&b"/dev/"[..], b"/memfd:"].iter().any(|start| mapping.path.starts_with(start))
    {
        return None;
    }
    let build_id = build_id_of(process.open_mapped(mapping));
    let module = |root: Option<PathBuf>, path: Vec<u8>| Module {
        root,
        build_id: build_id.clone(),
        ..Module::new(path)
    };
    let mut places = places_of(process.id(), mapping).into_iter().map(|(root, path)| module(root, path));
    let first = places.next()?;
    Some(if is_there(&first) { first } else { places.find(is_there).unwrap_or(first) })
}

/// The places where the file of a mapping may be: below the root of its process; as this process sees it, if the other one has only
/// changed its root; behind the kernel's link to it, even if it was deleted or replaced, which needs privileges; and the program.
fn places_of(process: i32, mapping: &MemoryMapping) -> Vec<(Option<PathBuf>, Vec<u8>)> {
    let folder = format!("/proc/{process}");
    let mut places = Vec::new();
    if !mapping.deleted {
        places.push((Some(format!("{folder}/root").into()), mapping.path.clone()));
        places.push((None, mapping.path.clone()));
    }
    places.push((None, format!("{folder}/map_files/{:x}-{:x}", mapping.start, mapping.end).into_bytes()));
    // The link names a replaced program with a mark behind its path.
    let program = borehole_process::program(process).unwrap_or_default();
    if program.as_os_str().as_bytes().starts_with(&mapping.path) {
        places.push((None, format!("{folder}/exe").into_bytes()));
    }
    places
}

/// Whether the file of a module can be opened, and is of its build.
fn is_there(module: &Module) -> bool {
    let opened = match &module.root {
        Some(root) => open_below(root, &module.path),
        None => open_regular(Path::new(OsStr::from_bytes(&module.path))),
    };
    opened.is_ok_and(|file| build_id_of(Ok::<_, ()>(file)) == module.build_id)
}

fn build_id_of<E>(opened: Result<File, E>) -> Option<BuildId> {
    opened.ok().and_then(|file| borehole_symbols::build_id_of(&file))
}
