//! The files of native code that the metadata of a recording states.

use std::collections::HashMap;

use borehole_model::{Frame, NativeModule, StringId, Tables};

/// Files by the name that frames have for them. Those of which there are several are left out.
#[derive(Debug, Default)]
pub(super) struct StatedModules(HashMap<Vec<u8>, Option<NativeModule>>);

impl StatedModules {
    /// Adds a value of the metadata [`NativeModule::KEY`].
    pub(super) fn add(&mut self, text: &[u8]) {
        let Some(module) = std::str::from_utf8(text).ok().and_then(NativeModule::parse) else { return };
        let known = self.0.entry(module.name().into()).or_insert_with(|| Some(module.clone()));
        if known.as_ref().is_some_and(|known| *known != module) {
            *known = None;
        }
    }

    /// The file of this name.
    pub(super) fn of(&self, name: StringId, tables: &Tables) -> Option<&NativeModule> {
        self.0.get(tables.string(name))?.as_ref()
    }

    /// The file of a frame without a function, and the offset of its code.
    pub(super) fn address(&self, frame: &Frame, tables: &Tables) -> Option<(NativeModule, u64)> {
        let native = frame.native?;
        let function = tables.string(frame.function).strip_prefix(b"[")?.strip_suffix(b"]")?;
        let module = self.of(native.module, tables).filter(|module| module.name().as_bytes() == function)?;
        let offset = u64::try_from(native.offset?).ok()?;
        (module.start..module.end).contains(&offset).then(|| (module.clone(), offset))
    }
}
