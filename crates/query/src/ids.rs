//! The ids of stacks: 128 bits that depend only on the frames of a stack.

use std::sync::Arc;

use borehole_model::{Frame, FrameId, StackId, StatedModules, StringId, Tables};
use datafusion::arrow::array::{Array, ArrayRef, AsArray as _, BinaryBuilder};
use sha2::{Digest as _, Sha256};

use crate::code::FrameCode;

/// The id of a stack: half of the SHA-256 of the id of its callers and of the checksum of its leaf frame.
pub(crate) type LakeStackId = [u8; 16];

/// Computes ids, each once.
#[derive(Debug, Default)]
pub(crate) struct StackIds {
    of_stack: Vec<Option<LakeStackId>>,
    of_frame: Vec<Option<LakeStackId>>,
    /// The files that native frames are in.
    modules: Arc<StatedModules>,
    /// Whether there was a native frame, whose id depends on its file.
    has_native: bool,
}

impl StackIds {
    /// Sets the files that native frames are in from now on, and returns them.
    pub(crate) fn state(&mut self, modules: &StatedModules) -> Arc<StatedModules> {
        if *self.modules != *modules {
            self.modules = Arc::new(modules.clone());
            if std::mem::take(&mut self.has_native) {
                self.of_stack.clear();
                self.of_frame.clear();
            }
        }
        Arc::clone(&self.modules)
    }

    /// Returns the id of a stack of `tables`, which must be the same in all calls.
    pub(crate) fn of(&mut self, stack: StackId, tables: &Tables) -> LakeStackId {
        if let Some(id) = self.known(stack) {
            return id;
        }
        // Goes from the nearest caller with a known id down to the stack, without recursion, because stacks may be deep.
        let mut unknown = vec![stack];
        let mut caller = tables.parent(stack);
        while let Some(parent) = caller.filter(|&parent| self.known(parent).is_none()) {
            unknown.push(parent);
            caller = tables.parent(parent);
        }
        let mut id = caller.and_then(|parent| self.known(parent)).unwrap_or_default();
        for stack in unknown.into_iter().rev() {
            let frame = self.of_frame(tables.leaf(stack), tables);
            id = half(Sha256::new_with_prefix(id).chain_update(frame));
            if self.of_stack.len() <= stack.index() {
                self.of_stack.resize(tables.stack_count().max(stack.index() + 1), None);
            }
            self.of_stack[stack.index()] = Some(id);
        }
        id
    }

    fn known(&self, stack: StackId) -> Option<LakeStackId> {
        self.of_stack.get(stack.index()).copied().flatten()
    }

    fn of_frame(&mut self, frame: FrameId, tables: &Tables) -> LakeStackId {
        if self.of_frame.len() <= frame.index() {
            self.of_frame.resize(tables.frame_count().max(frame.index() + 1), None);
        }
        if let Some(known) = self.of_frame[frame.index()] {
            return known;
        }
        self.has_native |= tables.frame(frame).native.is_some();
        *self.of_frame[frame.index()].insert(checksum(frame, tables, &self.modules))
    }
}

/// The checksum of all properties of a frame.
fn checksum(frame: FrameId, tables: &Tables, modules: &StatedModules) -> LakeStackId {
    let frame = tables.frame(frame);
    let code = FrameCode::of(&frame, modules, tables);
    let Frame { function, parts, file, line, end_line, column, end_column, opcode, native } = frame;
    let mut sum = FrameChecksum(Sha256::new(), tables);
    sum.text(Some(function));
    sum.text(file);
    sum.text(opcode);
    [line, end_line, column.map(i64::from), end_column.map(i64::from)]
        .into_iter()
        .for_each(|number| sum.number(number));
    sum.number(parts.is_some().then_some(1));
    if let Some(parts) = parts {
        [parts.namespace, parts.class, parts.method].into_iter().for_each(|text| sum.text(Some(text)));
    }
    sum.text(native.map(|native| native.module));
    sum.number(native.and_then(|native| native.offset));
    if let Some(FrameCode { build_id, file_offset, .. }) = code {
        sum.0.update(build_id);
        sum.number(file_offset);
    }
    half(sum.0)
}

fn half(sum: Sha256) -> LakeStackId {
    let mut id = LakeStackId::default();
    id.copy_from_slice(&sum.finalize()[..size_of::<LakeStackId>()]);
    id
}

/// A checksum of texts and numbers that depends on where each one ends.
struct FrameChecksum<'t>(Sha256, &'t Tables);

impl FrameChecksum<'_> {
    fn text(&mut self, text: Option<StringId>) {
        let text = text.map(|text| self.1.string(text));
        self.number(text.map(|text| i64::try_from(text.len()).unwrap_or(i64::MAX)));
        self.0.update(text.unwrap_or_default());
    }

    fn number(&mut self, number: Option<i64>) {
        self.0.update([u8::from(number.is_some())]);
        self.0.update(number.unwrap_or(0).to_le_bytes());
    }
}

/// Ids as a column.
pub(crate) fn array(ids: impl ExactSizeIterator<Item = Option<LakeStackId>>) -> ArrayRef {
    let mut column = BinaryBuilder::with_capacity(ids.len(), ids.len() * size_of::<LakeStackId>());
    ids.for_each(|id| column.append_option(id));
    Arc::new(column.finish())
}

/// The id in a row of a column; `None` for an absent one, and in a column of another type.
pub(crate) fn at(column: &dyn Array, row: usize) -> Option<LakeStackId> {
    if column.is_null(row) {
        return None;
    }
    let views = column.as_binary_view_opt().map(|column| column.value(row));
    views.or_else(|| Some(column.as_binary_opt::<i32>()?.value(row)))?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use borehole_model::NativeFrame;

    use super::*;

    fn tables_of(names: &[&str]) -> (Tables, StackId) {
        let mut tables = Tables::default();
        let mut stack = None;
        for name in names {
            let function = tables.intern_string(name.as_bytes()).unwrap();
            let frame = tables.intern_frame(&Frame::named(function)).unwrap();
            stack = Some(tables.intern_stack(stack, frame).unwrap());
        }
        (tables, stack.unwrap())
    }

    #[test]
    fn equal_stacks_have_equal_ids_in_different_tables() {
        let (one, stack) = tables_of(&["main", "query"]);
        let (mut other, _) = tables_of(&["other", "things"]);
        let frames: Vec<_> = ["main", "query"]
            .map(|name| other.intern_string(name.as_bytes()).unwrap())
            .map(|function| other.intern_frame(&Frame::named(function)).unwrap())
            .into_iter()
            .rev()
            .collect();
        let same = other.intern_stack_leaf_first(&frames).unwrap().unwrap();
        assert_eq!(StackIds::default().of(stack, &one), StackIds::default().of(same, &other));
    }

    #[test]
    fn ids_depend_on_where_frame_names_end() {
        let ids = [&["ab", "c"][..], &["a", "bc"], &["abc"], &["c", "ab"]].map(|names| {
            let (tables, stack) = tables_of(names);
            StackIds::default().of(stack, &tables)
        });
        for (row, id) in ids.iter().enumerate() {
            assert!(!ids[row + 1..].contains(id));
        }
    }

    #[test]
    fn ids_of_native_code_depend_on_its_build_and_not_on_other_files() {
        let mut tables = Tables::default();
        let (function, module) = (tables.intern_string(b"run").unwrap(), tables.intern_string(b"a").unwrap());
        let native = Some(NativeFrame { module, offset: Some(8), file_offset: None });
        let frame = tables.intern_frame(&Frame { native, ..Frame::named(function) }).unwrap();
        let stack = tables.intern_stack(None, frame).unwrap();
        let mut ids = StackIds::default();
        let mut id = |files: &[&str]| {
            let mut modules = StatedModules::default();
            for file in files {
                modules.add(file.as_bytes());
            }
            ids.state(&modules);
            ids.of(stack, &tables)
        };
        let (unknown, one, other) = (id(&[]), id(&["c0 0-9 /bin/a"]), id(&["c1 0-9 /bin/a"]));
        assert!(unknown != one && one != other && unknown != other);
        assert_eq!(id(&["c0 0-9 /bin/a", "d0 0-9 /bin/b"]), one);
        assert_eq!(id(&["d0 0-9 /bin/b"]), unknown);
    }

    #[test]
    fn ids_of_deep_stacks_need_no_recursion() {
        let names: Vec<String> = (0..100_000).map(|n| format!("f{n}")).collect();
        let (tables, stack) = tables_of(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let mut ids = StackIds::default();
        assert_eq!(ids.of(stack, &tables), ids.of(stack, &tables));
    }
}
