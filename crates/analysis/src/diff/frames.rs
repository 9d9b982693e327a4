//! The identity of frames across both sides.

use std::sync::Arc;

use borehole_model::{Frame, FrameId, StackId, StringId, TableFull, Tables};

use super::view::DiffFrame;
use super::{DiffQuery, Identity};
use crate::call_paths::CallPaths;
use crate::frame_name::FrameName;
use crate::query::Query;

/// The properties of a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MergedFrame {
    /// The frame that represents all identical ones.
    pub(crate) group: FrameId,
    pub(crate) is_hidden: bool,
    pub(crate) is_focus: bool,
}

/// The source file of a frame, or the library of native code.
pub(crate) fn file(frame: &Frame, tables: &Tables) -> Option<StringId> {
    let file = frame.file.or(frame.native.map(|native| native.module))?;
    Some(file).filter(|&file| !tables.string(file).is_empty())
}

/// By frame of `tables`: its properties. Identical frames become one frame of `merged`.
pub(crate) fn known(
    tables: &Tables,
    merged: &mut Tables,
    query: &DiffQuery,
    identity: Identity,
) -> Result<Vec<MergedFrame>, TableFull> {
    let everything = Query::default();
    let frames = tables.frame_ids().map(|id| {
        let frame = tables.frame(id);
        let mut string = |id: StringId| merged.intern_string(tables.string(id));
        let mut same = Frame::named(string(frame.function)?);
        if matches!(identity, Identity::File | Identity::Line) {
            same.file = file(&frame, tables).map(string).transpose()?;
        }
        same.line = frame.line.filter(|_| identity == Identity::Line);
        let group = merged.intern_frame(&same)?;
        let name = FrameName::of(&frame, tables, &everything);
        let looks = query.focus.is_some() || query.hide.is_some();
        let text = if looks { name.text(crate::PathStyle::Full) } else { Vec::new() };
        let matches = |pattern: &Option<crate::Pattern>| pattern.as_ref().map(|found| found.is_match(&text));
        Ok(MergedFrame {
            group,
            is_hidden: name.is_of_profiler() || matches(&query.hide).unwrap_or(false),
            is_focus: matches(&query.focus).unwrap_or(true),
        })
    });
    frames.collect()
}

/// The calls of all stacks of `tables`, whose frames are `known`. Each row is a frame of the merged tables. Stacks
/// without a frame in focus do not count.
pub(crate) fn paths(tables: &Tables, merged: &Tables, known: &[MergedFrame]) -> CallPaths {
    let frame_of = |stack: StackId| &known[tables.leaf(stack).index()];
    let mut in_focus: Vec<bool> = Vec::with_capacity(tables.stack_count());
    for stack in tables.stack_ids() {
        let frame = frame_of(stack);
        let is_below = tables.parent(stack).is_some_and(|caller| in_focus[caller.index()]);
        in_focus.push(is_below || !frame.is_hidden && frame.is_focus);
    }
    let row_of =
        |stack| Some(frame_of(stack)).filter(|frame| !frame.is_hidden).map(|frame| frame.group.index());
    CallPaths::new(tables, merged.frame_count(), row_of, |stack| in_focus[stack.index()])
}

/// The names of all frames of `merged`, by frame.
pub(crate) fn names(merged: &Tables) -> Vec<Arc<DiffFrame>> {
    let string = |id| merged.string(id).to_vec();
    let names = merged.frame_ids().map(|id| {
        let frame = merged.frame(id);
        DiffFrame { function: string(frame.function), file: frame.file.map(string), line: frame.line }
    });
    names.map(Arc::new).collect()
}
