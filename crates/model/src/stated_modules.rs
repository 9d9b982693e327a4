//! The files of native code that the metadata of a recording states.

use std::collections::BTreeMap;

use crate::{Frame, NativeModule, StringId, Tables};

/// Files by the names that frames have for them: the last part of their path, or all of it. Those of which there are several are left
/// out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatedModules(BTreeMap<Vec<u8>, Option<NativeModule>>);

impl StatedModules {
    /// Adds a value of the metadata [`NativeModule::KEY`]. Returns whether that changed anything.
    pub fn add(&mut self, text: &[u8]) -> bool {
        let text = std::str::from_utf8(text).ok();
        let Some(module) = text.and_then(NativeModule::parse) else { return false };
        let mut is_changed = false;
        for name in [module.name(), &module.path] {
            let Some(entry) = self.0.get_mut(name.as_bytes()) else {
                self.0.insert(name.into(), Some(module.clone()));
                is_changed = true;
                continue;
            };
            let new = entry.as_ref().and_then(|known| known.joined(&module));
            is_changed |= *entry != new;
            *entry = new;
        }
        is_changed
    }

    /// Whether no file is stated.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The file of this name.
    #[must_use]
    pub fn of(&self, name: StringId, tables: &Tables) -> Option<&NativeModule> {
        self.0.get(tables.string(name))?.as_ref()
    }

    /// The file of a frame without a function, and the offset of its code: of one named by its file in brackets, as live recordings
    /// name it, or by the offset, as in files of `perf record`.
    #[must_use]
    pub fn address(&self, frame: &Frame, tables: &Tables) -> Option<(NativeModule, u64)> {
        let native = frame.native?;
        let module = self.of(native.module, tables)?;
        let function = tables.string(frame.function);
        let offset = match native.offset {
            Some(offset) => {
                let named = function.strip_prefix(b"[")?.strip_suffix(b"]")?;
                u64::try_from(offset).ok().filter(|_| module.name().as_bytes() == named)?
            }
            None => {
                let digits = std::str::from_utf8(function.strip_prefix(b"0x")?).ok()?;
                u64::from_str_radix(digits, 16)
                    .ok()
                    .filter(|_| module.path.as_bytes() == tables.string(native.module))?
            }
        };
        (module.start..module.end).contains(&offset).then(|| (module.clone(), offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_file_are_one_and_files_of_one_name_are_none() {
        let (mut tables, mut modules) = (Tables::default(), StatedModules::default());
        let name = tables.intern_string(b"a").unwrap();
        assert!(modules.add(b"c0 10-20 /bin/a") && modules.add(b"c0 30-40 /bin/a"));
        assert!(!modules.add(b"c0 30-40 /bin/a") && !modules.add(b"no module"));
        let found = modules.of(name, &tables).map(|module| (module.start, module.end));
        assert_eq!(found, Some((0x10, 0x40)));
        assert!(modules.add(b"c1 10-20 /opt/a"));
        assert_eq!(modules.of(name, &tables), None);
        assert!(!modules.add(b"c0 10-20 /bin/a"));
        let path = tables.intern_string(b"/opt/a").unwrap();
        assert!(modules.of(path, &tables).is_some());
    }
}
