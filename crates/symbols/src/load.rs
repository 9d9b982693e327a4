//! Loads the symbols of a module.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use crate::code_symbols::CodeSymbols;
use crate::debug_files::{DebugFile, ModuleFiles};
use crate::dwarf::DebugInfo;
use crate::elf_image::{Allowance, ElfImage};
use crate::fault::{Fault, Unresolved};
use crate::module::{CodeAddress, Module, SymbolDetail, SymbolFrame, SymbolSettings};
use crate::names::Names;

const SPLIT: &str = "split debug information (.dwo files) is not read, so inlined functions are not shown";

/// The symbols of a module, ready for lookups.
#[derive(Debug)]
pub(crate) struct LoadedModule {
    /// The headers of the module. Absent if only its debug file is there.
    image: Option<ElfImage>,
    symbols: CodeSymbols,
    debug: Option<DebugInfo>,
    pub(crate) debug_path: Option<PathBuf>,
    /// The bytes of files that are held.
    pub(crate) bytes: u64,
    /// Why debug information that is there is not used.
    pub(crate) complaint: Option<String>,
}

impl LoadedModule {
    /// Reads the symbols of `module`.
    pub(crate) fn load(module: &Module, settings: &SymbolSettings) -> Result<Self, Fault> {
        let files = ModuleFiles { module, settings };
        let (image, debug_file) = match files.open_module() {
            Ok(image) => {
                let is_complete = image.section(b".symtab").is_some()
                    && (settings.detail == SymbolDetail::Functions || DebugInfo::is_in(&image));
                let debug_file = if is_complete { None } else { files.debug_of(&image) };
                (Some(image), debug_file)
            }
            Err(fault) => match module.build_id.as_ref().and_then(|id| files.debug_of_build(id)) {
                Some(debug_file) => (None, Some(debug_file)),
                None => return Err(fault),
            },
        };
        Self::of_files(&files, image, debug_file)
    }

    fn of_files(
        files: &ModuleFiles<'_>,
        image: Option<ElfImage>,
        debug_file: Option<DebugFile>,
    ) -> Result<Self, Fault> {
        let mut allowance = Allowance::new(files.settings.loaded_bytes);
        let mut symbols = CodeSymbols::default();
        for image in image.iter().chain(debug_file.as_ref().map(|file| &file.image)) {
            symbols.add(image, &mut allowance)?;
        }
        let debug = match files.settings.detail {
            SymbolDetail::Functions => Ok(None),
            SymbolDetail::Lines => debug_info(files, image.as_ref(), debug_file.as_ref(), &mut allowance),
        };
        let (debug, complaint) = debug.map_or_else(|fault| (None, Some(fault.text)), |debug| (debug, None));
        let is_split = debug.as_ref().is_some_and(|debug| debug.is_split);
        let complaint = complaint.or_else(|| is_split.then(|| SPLIT.to_owned()));
        if symbols.is_empty() && debug.is_none() {
            let text = complaint.unwrap_or_else(|| "no symbol table, and no debug file was found".to_owned());
            return Err(Fault::new(Unresolved::NoSymbols, text));
        }
        let image = image.map(ElfImage::closed);
        let debug_path = debug_file.map(|file| file.path);
        Ok(Self { image, symbols, debug, debug_path, bytes: allowance.taken(), complaint })
    }

    /// The address that the file states for an address.
    pub(crate) fn stated(&self, address: CodeAddress) -> Result<u64, Unresolved> {
        match (address, &self.image) {
            (CodeAddress::Stated(address), _) => Ok(address),
            (CodeAddress::FileOffset(offset), Some(image)) => {
                image.stated_address(offset).ok_or(Unresolved::Uncovered)
            }
            // Debug files state other offsets.
            (CodeAddress::FileOffset(_), None) => Err(Unresolved::NoFile),
        }
    }

    /// Puts the functions at `address` into `frames`.
    pub(crate) fn resolve(
        &mut self,
        address: u64,
        names: &mut Names,
        frames: &mut Vec<SymbolFrame>,
    ) -> Result<(), Unresolved> {
        if let Some(debug) = &self.debug
            && let Err(fault) = debug.find(address, names, frames)
        {
            self.complaint.get_or_insert(fault.text);
        }
        if let Some(symbol) = self.symbols.find(address) {
            let mut frame = frames.pop().unwrap_or_default();
            frame.offset = Some(symbol.offset);
            let text = names.function(symbol.name);
            let is_better = |known: &Arc<str>| {
                let is_whole = text.system_name.is_some() && frame.system_name.is_none();
                is_whole && text.function.contains(&**known) || is_public_name(&text.function, known)
            };
            if frame.function.as_ref().is_none_or(is_better) {
                (frame.function, frame.system_name) = (Some(text.function), text.system_name);
            }
            frames.push(frame);
        }
        if frames.is_empty() { Err(Unresolved::Uncovered) } else { Ok(()) }
    }
}

/// Whether `name` is how a program calls the function that its library knows as `known`: `read`, which is `__GI___libc_read` in the
/// debug information of glibc.
fn is_public_name(name: &str, known: &str) -> bool {
    known.starts_with("__") && !name.starts_with('_') && known.ends_with(name)
}

/// The debug information of a module, in itself or in its debug file; `None` if there is none.
fn debug_info(
    files: &ModuleFiles<'_>,
    image: Option<&ElfImage>,
    debug_file: Option<&DebugFile>,
    allowance: &mut Allowance,
) -> Result<Option<DebugInfo>, Fault> {
    let module_path = Path::new(OsStr::from_bytes(&files.module.path));
    let in_module = image.map(|image| (image, module_path));
    let in_file = debug_file.map(|file| (&file.image, &*file.path));
    let mut places = in_module.into_iter().chain(in_file);
    let Some((image, path)) = places.find(|(image, _)| DebugInfo::is_in(image)) else { return Ok(None) };
    let supplement = files.supplement_of(image, path);
    DebugInfo::read(image, supplement.as_ref().map(|file| &file.image), allowance).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_for_the_library_itself_give_way_to_those_for_programs() {
        assert!(is_public_name("read", "__GI___libc_read"));
        assert!(!is_public_name("__read", "__GI___libc_read"));
        assert!(!is_public_name("compare.part.0", "compare"));
        assert!(!is_public_name("write", "__GI___libc_read"));
    }
}
