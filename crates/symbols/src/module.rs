//! Modules, addresses in them, and the frames found there.

use std::path::PathBuf;
use std::sync::Arc;

use crate::build_id::BuildId;

/// How a [`Symbolizer`](crate::Symbolizer) works.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SymbolSettings {
    /// The amount of information to look for.
    pub detail: SymbolDetail,
    /// Folders with separate debug files, found by build ID (`.build-id/ab/cdef.debug`) or by the module's path.
    pub debug_folders: Vec<PathBuf>,
    /// Folders to look for modules in that are not at their path, by the whole path and by the name alone. Only modules with a
    /// build ID are looked for there.
    pub module_folders: Vec<PathBuf>,
    /// The maximum number of bytes of files to hold. Modules that were used least recently are dropped and loaded again
    /// when needed. A module that needs more by itself is resolved with less detail, or not at all.
    pub loaded_bytes: u64,
}

impl Default for SymbolSettings {
    fn default() -> Self {
        Self {
            detail: SymbolDetail::Lines,
            debug_folders: vec![PathBuf::from("/usr/lib/debug")],
            module_folders: Vec::new(),
            loaded_bytes: 2 << 30,
        }
    }
}

/// The amount of information to look for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SymbolDetail {
    /// Function names from symbol tables only.
    Functions,
    /// Files, lines and inlined functions too, where there is debug information.
    #[default]
    Lines,
}

/// A program or library.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Module {
    /// The absolute path of the file, as its process sees it.
    pub path: Vec<u8>,
    /// The root folder of the process, such as `/proc/PID/root`. Links lead to no file outside it.
    pub root: Option<PathBuf>,
    /// The build ID that the file must have. Absent: any file at the path is believed.
    pub build_id: Option<BuildId>,
    /// The ELF image itself, such as the vDSO copied from memory. Then no file is opened for the module.
    pub memory: Option<Arc<[u8]>>,
}

impl Module {
    /// The file at `path`, whatever its build.
    #[must_use]
    pub fn new(path: impl Into<Vec<u8>>) -> Self {
        Self { path: path.into(), ..Self::default() }
    }
}

/// An address in a module. For a return address, pass the address before it: it belongs to the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CodeAddress {
    /// The position in the file of the byte that was mapped.
    FileOffset(u64),
    /// The address that the file states for it.
    Stated(u64),
}

/// One function at an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SymbolFrame {
    /// The function as people read it. Absent: only the line is known.
    pub function: Option<Arc<str>>,
    /// The name in the symbol table, if it differs from the function.
    pub system_name: Option<Arc<str>>,
    /// The source file.
    pub file: Option<Arc<str>>,
    /// The line, 1-based.
    pub line: Option<u32>,
    /// The column, 1-based.
    pub column: Option<u32>,
    /// Bytes from the start of the function's symbol; only for the function that contains the code.
    pub offset: Option<u64>,
    /// Whether the function was inlined into the next one.
    pub is_inlined: bool,
}
