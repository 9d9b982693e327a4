//! Resolves addresses, and keeps the modules that it needs.

use std::collections::HashMap;
use std::path::PathBuf;

use crate::build_id::BuildId;
use crate::fault::{Fault, Unresolved};
use crate::load::LoadedModule;
use crate::module::{CodeAddress, Module, SymbolFrame, SymbolSettings};
use crate::names::Names;

/// A module of a [`Symbolizer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModuleId(usize);

/// The outcome for the addresses of a module.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ModuleReport<'a> {
    /// The module.
    pub module: &'a Module,
    /// The addresses that were resolved.
    pub resolved: u64,
    /// The addresses that were not.
    pub unresolved: u64,
    /// The reason why the module could not be loaded. Absent: it was, or was not needed.
    pub fault: Option<(Unresolved, &'a str)>,
    /// The separate debug file that was used last.
    pub debug_file: Option<&'a PathBuf>,
    /// Why debug information that is there was not used, or not all of it.
    pub complaint: Option<&'a str>,
}

/// A module, and what is known of it.
#[derive(Debug)]
struct KnownModule {
    module: Module,
    /// The index of its symbols, which modules of one build share.
    image: usize,
    fault: Option<Fault>,
    resolved: u64,
    unresolved: u64,
}

/// Symbols, while they are loaded.
#[derive(Debug, Default)]
struct KeptImage {
    loaded: Option<Box<LoadedModule>>,
    /// The number of the last lookup.
    used: u64,
    debug_path: Option<PathBuf>,
    complaint: Option<String>,
}

/// Finds functions, files and lines of addresses.
///
/// # Examples
///
/// ```
/// use borehole_symbols::{CodeAddress, Module, Symbolizer, SymbolSettings};
///
/// let mut symbolizer = Symbolizer::new(SymbolSettings::default());
/// let id = symbolizer.module(Module::new("/usr/bin/true"));
/// let mut frames = Vec::new();
/// if let Err(reason) = symbolizer.resolve(id, CodeAddress::FileOffset(0x2000), &mut frames) {
///     assert!(!reason.to_string().is_empty());
/// }
/// ```
#[derive(Debug)]
pub struct Symbolizer {
    settings: SymbolSettings,
    modules: Vec<KnownModule>,
    ids: HashMap<Module, ModuleId>,
    images: Vec<KeptImage>,
    images_of_builds: HashMap<BuildId, usize>,
    names: Names,
    lookups: u64,
}

impl Symbolizer {
    /// Creates a symbolizer that has loaded nothing.
    #[must_use]
    pub fn new(settings: SymbolSettings) -> Self {
        let (modules, ids) = (Vec::new(), HashMap::new());
        let (images, images_of_builds) = (Vec::new(), HashMap::new());
        Self { settings, modules, ids, images, images_of_builds, names: Names::default(), lookups: 0 }
    }

    /// The id of a module. Opens nothing: the first lookup does.
    pub fn module(&mut self, module: Module) -> ModuleId {
        if let Some(&id) = self.ids.get(&module) {
            return id;
        }
        let id = ModuleId(self.modules.len());
        let image = self.image_of(&module);
        self.ids.insert(module.clone(), id);
        self.modules.push(KnownModule { module, image, fault: None, resolved: 0, unresolved: 0 });
        id
    }

    /// The number of modules that are known.
    #[must_use]
    pub fn module_count(&self) -> usize {
        self.modules.len()
    }

    /// The index of the symbols of a module: those of one build are loaded once, whatever their paths.
    fn image_of(&mut self, module: &Module) -> usize {
        let new = self.images.len();
        let index = match &module.build_id {
            Some(id) => *self.images_of_builds.entry(id.clone()).or_insert(new),
            None => new,
        };
        if index == new {
            self.images.push(KeptImage::default());
        }
        index
    }

    /// Replaces the content of `frames` with the functions at an address, innermost first. All but the last were inlined.
    ///
    /// # Errors
    /// If nothing is known of the address.
    pub fn resolve(
        &mut self,
        id: ModuleId,
        address: CodeAddress,
        frames: &mut Vec<SymbolFrame>,
    ) -> Result<(), Unresolved> {
        frames.clear();
        let found = self.find(id, address, frames);
        let module = &mut self.modules[id.0];
        let count = if found.is_ok() { &mut module.resolved } else { &mut module.unresolved };
        *count += 1;
        found
    }

    fn find(
        &mut self,
        id: ModuleId,
        address: CodeAddress,
        frames: &mut Vec<SymbolFrame>,
    ) -> Result<(), Unresolved> {
        let (loaded, names) = self.loaded(id)?;
        let stated = loaded.stated(address)?;
        loaded.resolve(stated, names, frames)
    }

    /// The address that the file of a module states for the byte at `file_offset`; `None` if it states none, or cannot be read.
    pub fn stated_address(&mut self, id: ModuleId, file_offset: u64) -> Option<u64> {
        self.loaded(id).ok()?.0.stated(CodeAddress::FileOffset(file_offset)).ok()
    }

    /// The symbols of a module, loaded if they are not.
    fn loaded(&mut self, id: ModuleId) -> Result<(&mut LoadedModule, &mut Names), Unresolved> {
        let known = &mut self.modules[id.0];
        if let Some(fault) = &known.fault {
            return Err(fault.reason);
        }
        let index = known.image;
        if self.images[index].loaded.is_none() {
            match LoadedModule::load(&known.module, &self.settings) {
                Ok(loaded) => {
                    self.images[index].loaded = Some(Box::new(loaded));
                    self.drop_unused(index);
                }
                Err(fault) => return Err(known.fault.insert(fault).reason),
            }
        }
        self.lookups += 1;
        let image = &mut self.images[index];
        image.used = self.lookups;
        let loaded = image.loaded.as_deref_mut();
        loaded.map(|loaded| (loaded, &mut self.names)).ok_or(Unresolved::NoFile)
    }

    /// Drops symbols, those used least recently first, until all others fit beside those at `kept`.
    fn drop_unused(&mut self, kept: usize) {
        loop {
            let held = self.images.iter().enumerate().filter_map(|(index, image)| {
                image.loaded.as_ref().map(|loaded| (index, image.used, loaded.bytes))
            });
            let total = held.clone().map(|(_, _, bytes)| bytes).fold(0, u64::saturating_add);
            let oldest = held.filter(|&(index, ..)| index != kept).min_by_key(|&(_, used, _)| used);
            match oldest {
                Some((index, ..)) if total > self.settings.loaded_bytes => self.images[index].unload(),
                _ => return,
            }
        }
    }

    /// Tells what became of the addresses of each module that was asked about.
    pub fn reports(&self) -> impl Iterator<Item = ModuleReport<'_>> {
        let asked = self.modules.iter().filter(|known| known.resolved + known.unresolved > 0);
        asked.map(|known| {
            let image = &self.images[known.image];
            let loaded = image.loaded.as_deref();
            ModuleReport {
                module: &known.module,
                resolved: known.resolved,
                unresolved: known.unresolved,
                fault: known.fault.as_ref().map(|fault| (fault.reason, &*fault.text)),
                debug_file: loaded.map_or(image.debug_path.as_ref(), |loaded| loaded.debug_path.as_ref()),
                complaint: loaded.map_or(image.complaint.as_deref(), |loaded| loaded.complaint.as_deref()),
            }
        })
    }
}

impl KeptImage {
    fn unload(&mut self) {
        if let Some(loaded) = self.loaded.take() {
            (self.debug_path, self.complaint) = (loaded.debug_path, loaded.complaint);
        }
    }
}
