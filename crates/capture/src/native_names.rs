//! The names of native code, as frames of a profile.
//!
//! While a thread is sampled, its frames are raw: they state an address. [`NativeNames::named`] replaces them once the symbols of
//! their files are loaded, which takes longer than the time between two samples.

use std::collections::BTreeSet;
use std::sync::mpsc::{self, Receiver, Sender};

use borehole_model::{Frame, FrameId, NativeFrame, NativeModule, StackId, StringId, Tables};
use borehole_process::{ForeignProcess as _, MemoryMapping, Process};
use borehole_symbols::{AddressNames, Module, SymbolFrame};
use hashbrown::HashMap;

use crate::error::Error;
use crate::native_modules::module_of;
use crate::subject::Patience;
use crate::symbol_thread::{CodePlace, SymbolAnswer, SymbolRequest};

/// The most files of a process that are stated in a recording.
const MOST_MODULES: usize = 1024;

/// The module of code that is in no file.
const MADE: &[u8] = b"[made]";

/// The module of the kernel.
const KERNEL: &[u8] = b"[kernel]";

/// The first address of the kernel. Programs have the lower half of all addresses.
///
/// Source: Linux, `Documentation/arch/x86/x86_64/mm.rst`.
const KERNEL_START: u64 = 1 << 63;

/// The module of raw frames. No file has this name.
const RAW: &[u8] = b"/raw/";

/// The frames of the code of one process.
pub(crate) struct NativeNames {
    /// By the first address of the mapping.
    modules: HashMap<u64, CodeModule>,
    /// The raw frames of addresses.
    raw: HashMap<u64, FrameId>,
    /// The number of times that mappings have changed: an address may be other code since.
    changes: i64,
    /// The names of raw frames.
    names: HashMap<FrameId, FrameNames>,
    /// The named frames, end to end.
    all: Vec<FrameId>,
    /// The named stacks of raw ones.
    stacks: HashMap<StackId, StackId>,
    /// The frames of one stack, the leaf first.
    frames: Vec<FrameId>,
    /// The files of code that was met, as texts of [`NativeModule`].
    met: BTreeSet<String>,
    /// The names of compiled code, once some was met.
    made: Option<AddressNames>,
    answers: (Sender<SymbolAnswer>, Receiver<SymbolAnswer>),
}

/// The names of a raw frame.
#[derive(Clone, Copy)]
enum FrameNames {
    /// Being looked up, in a module of this name.
    Awaited(StringId),
    /// A stretch of all named frames, the most inlined first.
    Known(usize, usize),
}

/// The module of a mapping, and its name.
#[derive(Clone)]
struct CodeModule {
    /// `None` if it is in no file.
    module: Option<Module>,
    name: StringId,
}

impl Default for NativeNames {
    fn default() -> Self {
        Self {
            modules: HashMap::new(),
            raw: HashMap::new(),
            changes: 0,
            names: HashMap::new(),
            all: Vec::new(),
            stacks: HashMap::new(),
            frames: Vec::new(),
            met: BTreeSet::new(),
            made: None,
            answers: mpsc::channel(),
        }
    }
}

impl NativeNames {
    /// Drops all ids of tables.
    pub(crate) fn forget(&mut self) {
        let (changes, made, met) = (self.changes, self.made.take(), std::mem::take(&mut self.met));
        *self = Self { changes, made, met, ..Self::default() };
    }

    /// Forgets which modules are where. What is being looked up stays.
    pub(crate) fn forget_modules(&mut self) {
        self.modules.clear();
        self.raw.clear();
        self.changes += 1;
        self.made = None;
    }

    /// The raw frame of an address.
    pub(crate) fn raw(
        &mut self,
        process: &Process,
        address: u64,
        tables: &mut Tables,
    ) -> Result<FrameId, Error> {
        if let Some(&known) = self.raw.get(&address) {
            return Ok(known);
        }
        let name = tables.intern_string(RAW)?;
        let native =
            Some(NativeFrame { module: name, offset: Some(address.cast_signed()), file_offset: None });
        let raw = tables.intern_frame(&Frame { native, line: Some(self.changes), ..Frame::named(name) })?;
        self.raw.insert(address, raw);
        if !self.names.contains_key(&raw) {
            self.ask(process, address, raw, tables)?;
        }
        Ok(raw)
    }

    fn ask(
        &mut self,
        process: &Process,
        address: u64,
        raw: FrameId,
        tables: &mut Tables,
    ) -> Result<(), Error> {
        if address >= KERNEL_START {
            let name = tables.intern_string(KERNEL)?;
            self.names.insert(raw, FrameNames::Awaited(name));
            SymbolRequest::send(raw, CodePlace::Kernel(address), &self.answers.0);
            return Ok(());
        }
        if let Some(mapping) = process.mappings().at(address) {
            let CodeModule { module, name } = self.module(process, mapping, tables)?;
            if let Some(module) = module {
                self.names.insert(raw, FrameNames::Awaited(name));
                let file_offset = address - mapping.start + mapping.file_offset;
                SymbolRequest::send(raw, CodePlace::File(module, file_offset), &self.answers.0);
                return Ok(());
            }
        }
        self.add_made(process, address, raw, tables)
    }

    fn module(
        &mut self,
        process: &Process,
        mapping: &MemoryMapping,
        tables: &mut Tables,
    ) -> Result<CodeModule, Error> {
        if let Some(known) = self.modules.get(&mapping.start) {
            return Ok(known.clone());
        }
        let name = tables.intern_string(file_name(&mapping.path))?;
        let module = CodeModule { module: module_of(process, mapping), name };
        if let Some(Module { build_id, memory: None, .. }) = &module.module
            && self.met.len() < MOST_MODULES
        {
            let module = NativeModule {
                build_id: build_id.as_ref().map(ToString::to_string).unwrap_or_default(),
                start: mapping.file_offset,
                end: mapping.file_offset.saturating_add(mapping.end - mapping.start),
                path: String::from_utf8_lossy(&mapping.path).into_owned(),
            };
            self.met.insert(module.to_string());
        }
        self.modules.insert(mapping.start, module.clone());
        Ok(module)
    }

    /// The files of code that was met, as texts of [`NativeModule`].
    pub(crate) fn met(&self) -> impl Iterator<Item = &String> {
        self.met.iter()
    }

    /// The stack with the names of its raw frames, and at most `depth` frames; `None` if some are still looked up.
    pub(crate) fn named(
        &mut self,
        stack: StackId,
        depth: usize,
        patience: Patience,
        tables: &mut Tables,
    ) -> Result<Option<StackId>, Error> {
        if let Some(&known) = self.stacks.get(&stack) {
            return Ok(Some(known));
        }
        self.frames.clear();
        let mut rest = Some(stack);
        while let Some(stack) = rest {
            let frame = tables.leaf(stack);
            rest = tables.parent(stack);
            if let Some(FrameNames::Awaited(_)) = self.names.get(&frame) {
                self.listen_for(frame, patience, tables)?;
            }
            match self.names.get(&frame) {
                None => self.frames.push(frame),
                Some(&FrameNames::Known(start, end)) => self.frames.extend_from_slice(&self.all[start..end]),
                Some(FrameNames::Awaited(_)) => return Ok(None),
            }
        }
        self.frames.truncate(depth);
        let mut named = None;
        for &frame in self.frames.iter().rev() {
            named = Some(tables.intern_stack(named, frame)?);
        }
        let named = named.unwrap_or(stack);
        self.stacks.insert(stack, named);
        Ok(Some(named))
    }

    /// Takes answers until that for `frame` is there, or, without patience, there are no more.
    fn listen_for(&mut self, frame: FrameId, patience: Patience, tables: &mut Tables) -> Result<(), Error> {
        while matches!(self.names.get(&frame), Some(FrameNames::Awaited(_))) {
            let answer = match patience {
                Patience::None => self.answers.1.try_recv().ok(),
                Patience::Wait => self.answers.1.recv().ok(),
            };
            let Some(answer) = answer else { return Ok(()) };
            self.add(&answer, tables)?;
        }
        Ok(())
    }

    fn add(&mut self, answer: &SymbolAnswer, tables: &mut Tables) -> Result<(), Error> {
        let Some(&FrameNames::Awaited(module)) = self.names.get(&answer.raw) else { return Ok(()) };
        let start = self.all.len();
        for found in &answer.frames {
            self.all.push(found_frame(found, module, tables)?);
        }
        if answer.frames.is_empty() {
            // Without a symbol, code of the same file is one function; the offset says where in the file.
            let name = tables.string(module);
            let unnamed = if name.starts_with(b"[") { name.to_vec() } else { [b"[", name, b"]"].concat() };
            self.all.push(plain_frame(&unnamed, module, Some(answer.offset), tables)?);
        }
        self.names.insert(answer.raw, FrameNames::Known(start, self.all.len()));
        Ok(())
    }

    /// Code that the program made, by the names that it wrote for profilers.
    fn add_made(
        &mut self,
        process: &Process,
        address: u64,
        raw: FrameId,
        tables: &mut Tables,
    ) -> Result<(), Error> {
        let module = tables.intern_string(MADE)?;
        let made = self.made.get_or_insert_with(|| AddressNames::perf_map(process.id()).unwrap_or_default());
        let frame = match made.find(address) {
            Some((name, offset)) => plain_frame(name.as_bytes(), module, Some(offset), tables)?,
            None => plain_frame(MADE, module, None, tables)?,
        };
        self.names.insert(raw, FrameNames::Known(self.all.len(), self.all.len() + 1));
        self.all.push(frame);
        Ok(())
    }
}

fn found_frame(found: &SymbolFrame, module: StringId, tables: &mut Tables) -> Result<FrameId, Error> {
    let function = tables.intern_string(found.function.as_deref().unwrap_or_default().as_bytes())?;
    let file = found.file.as_ref().map(|file| tables.intern_string(file.as_bytes())).transpose()?;
    let offset = found.offset.and_then(|offset| offset.try_into().ok());
    let native = Some(NativeFrame { module, offset, file_offset: None });
    let line = found.line.map(i64::from);
    Ok(tables.intern_frame(&Frame { file, line, native, ..Frame::named(function) })?)
}

fn plain_frame(
    function: &[u8],
    module: StringId,
    offset: Option<u64>,
    tables: &mut Tables,
) -> Result<FrameId, Error> {
    let function = tables.intern_string(function)?;
    let native = Some(NativeFrame {
        module,
        offset: offset.and_then(|offset| offset.try_into().ok()),
        file_offset: None,
    });
    Ok(tables.intern_frame(&Frame { native, ..Frame::named(function) })?)
}

fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}
