//! The names of native code, as frames of a profile.

use borehole_model::{Frame, FrameId, NativeFrame, Tables};
use borehole_process::{ForeignProcess as _, MemoryMapping, Process};
use hashbrown::HashMap;

use crate::error::Error;

/// The number of addresses whose frames are remembered.
const MOST_ADDRESSES: usize = 1 << 18;

/// The module of code that is in no file.
const MADE: &[u8] = b"[made]";

/// The frames of the code of one process.
#[derive(Default)]
pub(crate) struct NativeNames {
    /// By the path of the file.
    modules: HashMap<Vec<u8>, ModuleSymbols>,
    known: HashMap<u64, FrameId>,
    frame: Vec<FrameId>,
}

/// The functions of a module in order of their addresses.
#[derive(Default)]
struct ModuleSymbols(Vec<(u64, u64, Vec<u8>)>);

impl ModuleSymbols {
    fn of(process: &Process, mapping: &MemoryMapping) -> Self {
        let Ok(symbols) = process.symbols(mapping) else { return Self::default() };
        let functions =
            symbols.iter().filter(|(name, symbol)| !symbol.thread_local && !name.starts_with(b"."));
        let mut functions: Vec<_> =
            functions.map(|(name, symbol)| (symbol.address, symbol.size, name.to_vec())).collect();
        functions.sort_unstable();
        Self(functions)
    }

    fn find(&self, address: u64) -> Option<(&[u8], u64)> {
        let behind = self.0.partition_point(|(start, ..)| *start <= address);
        let (start, size, name) = self.0[..behind].last()?;
        (address - start < *size).then_some((name, address - start))
    }
}

impl NativeNames {
    /// Drops all ids of tables.
    pub(crate) fn forget(&mut self) {
        self.known.clear();
    }

    /// Forgets which modules are where.
    pub(crate) fn forget_modules(&mut self) {
        self.modules.clear();
        self.forget();
    }

    /// The frames at an address, the most inlined first.
    pub(crate) fn frames(
        &mut self,
        process: &Process,
        address: u64,
        tables: &mut Tables,
    ) -> Result<&[FrameId], Error> {
        if self.known.len() >= MOST_ADDRESSES {
            self.forget();
        }
        let frame = match self.known.get(&address) {
            Some(&known) => known,
            None => {
                let frame = self.frame_at(process, address, tables)?;
                self.known.insert(address, frame);
                frame
            }
        };
        self.frame.clear();
        self.frame.push(frame);
        Ok(&self.frame)
    }

    fn frame_at(&mut self, process: &Process, address: u64, tables: &mut Tables) -> Result<FrameId, Error> {
        let mapping = process.mappings().at(address);
        let Some(mapping) = mapping.filter(|mapping| mapping.shows_file() || mapping.path == b"[vdso]")
        else {
            return intern(MADE, MADE, None, tables);
        };
        if !self.modules.contains_key(&mapping.path) {
            self.modules.insert(mapping.path.clone(), ModuleSymbols::of(process, mapping));
        }
        let module = file_name(&mapping.path);
        let found = self.modules.get(&mapping.path).and_then(|symbols| symbols.find(address));
        if let Some((function, offset)) = found {
            return intern(function, module, Some(offset), tables);
        }
        // Without a symbol, code of the same file is one function; the offset says where in the file.
        let unnamed = if module.starts_with(b"[") { module.to_vec() } else { [b"[", module, b"]"].concat() };
        intern(&unnamed, module, Some(address - mapping.start + mapping.file_offset), tables)
    }
}

fn intern(
    function: &[u8],
    module: &[u8],
    offset: Option<u64>,
    tables: &mut Tables,
) -> Result<FrameId, Error> {
    let function = tables.intern_string(function)?;
    let module = tables.intern_string(module)?;
    let offset = offset.and_then(|offset| i64::try_from(offset).ok());
    let native = Some(NativeFrame { module, offset });
    Ok(tables.intern_frame(&Frame { native, ..Frame::named(function) })?)
}

fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}
