//! Stacks, threads and labels of a chunk, each made once from its constants.

use std::borrow::Cow;

use borehole_model::{
    Frame, FrameId, Label, LabelValue, LabelsId, LaneId, NativeFrame, StackId, StringId, TableFull, Tables,
};
use hashbrown::HashMap;

use super::pools::{Constant, ConstantPools};
use super::values::ValueReader;
use crate::frames::composed::{ComposedBytes, LongNames};

/// The module of frames of the kernel.
const KERNEL: &[u8] = b"[kernel]";

/// A constant, by the index of its type and its key; the key 0 stands for none.
pub(super) type ConstantId = (usize, u64);

/// A thread.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct JfrThread {
    pub(super) number: Option<u64>,
    pub(super) name: Option<StringId>,
}

/// The reason why a constant cannot be resolved.
#[derive(Debug)]
pub(super) enum Unresolved {
    /// There is no such constant, or it is damaged.
    Missing,
    /// Names of functions take more bytes than allowed.
    LongNames(LongNames),
    Full(TableFull),
}

impl From<TableFull> for Unresolved {
    fn from(full: TableFull) -> Self {
        Self::Full(full)
    }
}

/// A stack that cannot be read.
#[derive(Clone, Copy, Debug)]
struct DamagedStack;

/// The stacks, frames, threads and labels made of a chunk's constants.
#[derive(Debug, Default)]
pub(super) struct Resolved {
    /// A damaged one is none of them.
    stacks: HashMap<ConstantId, Result<Option<StackId>, DamagedStack>>,
    methods: HashMap<ConstantId, StringId>,
    /// Whether kinds of frames are those of the kernel.
    kernel_kinds: HashMap<ConstantId, bool>,
    frames: HashMap<(ConstantId, u64, u64), FrameId>,
    threads: HashMap<ConstantId, JfrThread>,
    texts: HashMap<ConstantId, Option<StringId>>,
    labels: HashMap<(Option<StringId>, Option<StringId>), Option<LabelsId>>,
    /// The stacks that lack their outer frames.
    pub(super) truncated: u64,
    frames_leaf_first: Vec<FrameId>,
    pub(super) name_bytes: ComposedBytes,
    file_bytes: u64,
}

impl Resolved {
    pub(super) fn new(name_bytes: ComposedBytes, file_bytes: u64) -> Self {
        Self { name_bytes, file_bytes, ..Self::default() }
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.stacks.allocation_size()
            + self.methods.allocation_size()
            + self.kernel_kinds.allocation_size()
            + self.frames.allocation_size()
            + self.threads.allocation_size()
            + self.texts.allocation_size()
            + self.labels.allocation_size()
    }

    /// A stack.
    ///
    /// # Errors
    /// If it is missing, or a table is full.
    #[inline]
    pub(super) fn stack(
        &mut self,
        id: ConstantId,
        pools: &ConstantPools<'_>,
        tables: &mut Tables,
    ) -> Result<Option<StackId>, Unresolved> {
        if id.1 == 0 {
            return Ok(None);
        }
        if let Some(&known) = self.stacks.get(&id) {
            return known.map_err(|DamagedStack| Unresolved::Missing);
        }
        let constant = pools.constant(id.0, id.1).ok_or(Unresolved::Missing)?;
        self.frames_leaf_first.clear();
        self.truncated += u64::from(pools.number_in(constant, b"truncated") == Some(1));
        let stack = match self.read_frames(constant, pools, tables)? {
            Some(()) => Ok(tables.intern_stack_leaf_first(&self.frames_leaf_first)?),
            None => Err(DamagedStack),
        };
        self.stacks.insert(id, stack);
        stack.map_err(|DamagedStack| Unresolved::Missing)
    }

    /// Reads the frames of a stack, from the leaf on; `None` if it is damaged.
    fn read_frames(
        &mut self,
        constant: Constant<'_>,
        pools: &ConstantPools<'_>,
        tables: &mut Tables,
    ) -> Result<Option<()>, Unresolved> {
        let Some((mut values, frame_type)) = pools.field(constant, b"frames") else { return Ok(None) };
        let Ok(count) = values.count() else { return Ok(None) };
        for _ in 0..count {
            let Some(place) = FramePlace::read(&mut values, frame_type, pools) else { return Ok(None) };
            let frame = match self.frames.get(&(place.method, place.line, place.kind.1)) {
                Some(&known) => known,
                None => {
                    let frame = self.frame(&place, pools, tables)?;
                    self.frames.insert((place.method, place.line, place.kind.1), frame);
                    frame
                }
            };
            self.frames_leaf_first.push(frame);
        }
        Ok(Some(()))
    }

    fn frame(
        &mut self,
        place: &FramePlace,
        pools: &ConstantPools<'_>,
        tables: &mut Tables,
    ) -> Result<FrameId, Unresolved> {
        let function = match self.methods.get(&place.method) {
            Some(&known) => known,
            None => {
                let method = pools.constant(place.method.0, place.method.1);
                let name = method.and_then(|method| method_name(method, pools));
                let name = name.as_deref().unwrap_or(b"<lost method>");
                self.name_bytes.add(name, self.file_bytes).map_err(Unresolved::LongNames)?;
                let function = tables.intern_string(name)?;
                self.methods.insert(place.method, function);
                function
            }
        };
        let native = match self.is_of_kernel(place.kind, pools) {
            true => {
                Some(NativeFrame { module: tables.intern_string(KERNEL)?, offset: None, file_offset: None })
            }
            false => None,
        };
        // It is -1 or 0 if it is unknown.
        let line = u32::try_from(place.line).ok().map(u32::cast_signed).filter(|&line| line > 0);
        Ok(tables.intern_frame(&Frame { line: line.map(i64::from), native, ..Frame::named(function) })?)
    }

    /// Whether frames of a kind are of the kernel.
    fn is_of_kernel(&mut self, kind: ConstantId, pools: &ConstantPools<'_>) -> bool {
        *self.kernel_kinds.entry(kind).or_insert_with(|| {
            let kind = pools.constant(kind.0, kind.1);
            kind.and_then(|kind| pools.text_in(kind, b"description")).as_deref() == Some(b"Kernel")
        })
    }

    /// A thread. Threads of the machine go by their numbers; virtual ones have none there.
    ///
    /// # Errors
    /// If it is missing, or a table is full.
    #[inline]
    pub(super) fn thread(
        &mut self,
        id: ConstantId,
        pools: &ConstantPools<'_>,
        tables: &mut Tables,
    ) -> Result<JfrThread, Unresolved> {
        if id.1 == 0 {
            return Ok(JfrThread::default());
        }
        if let Some(&known) = self.threads.get(&id) {
            return Ok(known);
        }
        let constant = pools.constant(id.0, id.1).ok_or(Unresolved::Missing)?;
        let positive =
            |name: &[u8]| pools.number_in(constant, name).filter(|&number| number.cast_signed() > 0);
        let virtual_number = || positive(b"javaThreadId").map(|number| LaneId::Profile(number >> 2).to_u64());
        let number = positive(b"osThreadId").or_else(virtual_number);
        let text = |name: &[u8]| pools.text_in(constant, name).filter(|text| !text.is_empty());
        let name = text(b"javaName").or_else(|| text(b"osName"));
        let name = name.map(|name| tables.intern_string(&name)).transpose()?;
        let thread = JfrThread { number, name };
        self.threads.insert(id, thread);
        Ok(thread)
    }

    /// The labels of a sample: the state of its thread, and the class that it is about.
    ///
    /// # Errors
    /// If a constant is missing, or a table is full.
    pub(super) fn labels(
        &mut self,
        state: ConstantId,
        class: ConstantId,
        pools: &ConstantPools<'_>,
        tables: &mut Tables,
    ) -> Result<Option<LabelsId>, Unresolved> {
        let state = self.text(state, pools, tables, |constant| pools.text_in(constant, b"name"))?;
        let class = self.text(class, pools, tables, |constant| class_name(constant, pools))?;
        if let Some(&known) = self.labels.get(&(state, class)) {
            return Ok(known);
        }
        let mut labels = Vec::new();
        for (key, value) in [(&b"state"[..], state), (b"class", class)] {
            if let Some(value) = value {
                labels.push(Label { key: tables.intern_string(key)?, value: LabelValue::Text(value) });
            }
        }
        let known = if labels.is_empty() { None } else { Some(tables.intern_labels(&labels)?) };
        self.labels.insert((state, class), known);
        Ok(known)
    }

    fn text<'a>(
        &mut self,
        id: ConstantId,
        pools: &ConstantPools<'a>,
        tables: &mut Tables,
        text: impl FnOnce(Constant<'a>) -> Option<Cow<'a, [u8]>>,
    ) -> Result<Option<StringId>, Unresolved> {
        if id.1 == 0 {
            return Ok(None);
        }
        if let Some(&known) = self.texts.get(&id) {
            return Ok(known);
        }
        let constant = pools.constant(id.0, id.1).ok_or(Unresolved::Missing)?;
        let text = text(constant).map(|text| tables.intern_string(&text)).transpose()?;
        self.texts.insert(id, text);
        Ok(text)
    }
}

/// A frame as a stack has it.
#[derive(Clone, Copy, Debug, Default)]
struct FramePlace {
    method: ConstantId,
    line: u64,
    /// Whether it was interpreted, compiled, native or of the kernel.
    kind: ConstantId,
}

impl FramePlace {
    fn read<'a>(values: &mut ValueReader<'a>, frame_type: usize, pools: &ConstantPools<'a>) -> Option<Self> {
        let mut place = Self::default();
        for field in &pools.types.types[frame_type].fields {
            match (&*field.name, field.is_constant) {
                (b"method", true) => place.method = (field.value_type, values.number().ok()?),
                (b"type", true) => place.kind = (field.value_type, values.number().ok()?),
                (b"lineNumber", false) => place.line = values.number().ok()?,
                _ => pools.types.skip_field(field, values).ok()?,
            }
        }
        Some(place)
    }
}

/// `package.Class.method`; the method alone if it has no class, as functions of native code.
fn method_name(method: Constant<'_>, pools: &ConstantPools<'_>) -> Option<Vec<u8>> {
    let name = symbol(method, b"name", pools)?;
    let class = pools.follow(method, b"type").and_then(|class| class_name(class, pools));
    Some(match class {
        Some(class) if !class.is_empty() => [&class, &b"."[..], &name].concat(),
        _ => name.into_owned(),
    })
}

/// The name of a class with dots.
fn class_name<'a>(class: Constant<'a>, pools: &ConstantPools<'a>) -> Option<Cow<'a, [u8]>> {
    let mut name = symbol(class, b"name", pools)?;
    if name.contains(&b'/') {
        name.to_mut().iter_mut().filter(|byte| **byte == b'/').for_each(|byte| *byte = b'.');
    }
    Some(name)
}

fn symbol<'a>(constant: Constant<'a>, field: &[u8], pools: &ConstantPools<'a>) -> Option<Cow<'a, [u8]>> {
    pools.text_in(pools.follow(constant, field)?, b"string")
}
