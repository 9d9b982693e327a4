//! Frames grouped by text: each distinct text is a group, numbered in order of first use.

use std::collections::HashMap;
use std::sync::Arc;

use borehole_model::{Column, Frame, FrameId, Tables};

use crate::frame_name::{FrameName, PathStyle, class_of, file_of, namespace_of};
use crate::pattern::Pattern;
use crate::query::{Query, RowKind};

/// The number of a group: the index of columns beside the groups.
pub(crate) type GroupId = usize;

/// The patterns of a query that a frame matches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PatternMatches {
    pub(crate) hidden: bool,
    pub(crate) kept: bool,
    pub(crate) callers: bool,
    pub(crate) callees: bool,
    pub(crate) excluded: bool,
    pub(crate) focused: bool,
}

impl PatternMatches {
    fn of(text: &[u8], query: &Query) -> Self {
        let found = |pattern: &Option<Pattern>| pattern.as_ref().is_some_and(|found| found.is_match(text));
        Self {
            hidden: found(&query.hide),
            kept: query.keep.is_none() || found(&query.keep),
            callers: found(&query.callers),
            callees: found(&query.callees),
            excluded: found(&query.exclude),
            focused: query.focus.is_none() || found(&query.focus),
        }
    }
}

/// Frames grouped by the text that a report prints, with the patterns that each group matches.
#[derive(Clone, Debug, Default)]
pub(crate) struct FrameGroups {
    /// By frame: its group.
    of_frame: Column<GroupId>,
    /// By frame: the group that it is shown as, if it differs from its own.
    row_of_frame: Column<GroupId>,
    names: Vec<Arc<FrameName>>,
    traits: Vec<PatternMatches>,
    index: HashMap<Vec<u8>, GroupId>,
}

impl FrameGroups {
    /// The group that a frame is shown as. Requires an earlier call of [`FrameGroups::of`].
    pub(crate) fn row(&self, frame: FrameId) -> Option<GroupId> {
        self.row_of_frame.get(frame.index()).or_else(|| self.of_frame.get(frame.index()))
    }

    /// The name that a frame is shown as, if it differs from its own.
    pub(crate) fn renamed(&self, frame: FrameId) -> Option<&FrameName> {
        self.row_of_frame.get(frame.index()).map(|row| &*self.names[row])
    }

    /// The group of a frame. Its text is built and matched only once.
    pub(crate) fn of(&mut self, frame: FrameId, tables: &Tables, query: &Query) -> GroupId {
        if let Some(group) = self.of_frame.get(frame.index()) {
            return group;
        }
        let group = self.named(FrameName::of(&tables.frame(frame), tables, query), query);
        if let Some(row) = self.shown_as(frame, tables, query) {
            self.row_of_frame.set(frame.index(), row);
        }
        self.of_frame.set(frame.index(), group)
    }

    /// The group that a frame is shown as, if it differs from its own.
    fn shown_as(&mut self, frame: FrameId, tables: &Tables, query: &Query) -> Option<GroupId> {
        let frame = tables.frame(frame);
        if !query.collapse.is_empty() {
            // Libraries are identified by their paths, even if lines are not shown.
            let text = FrameName::whole(&frame, tables, query).text(PathStyle::Full);
            if let Some(collapse) = query.collapse.iter().find(|collapse| collapse.pattern.is_match(&text)) {
                return Some(self.labelled(collapse.name.clone(), query));
            }
        }
        let (part, absent) = match query.rows {
            RowKind::Frames => return None,
            RowKind::Files => (file_of(&frame, tables, &query.path_map), "<no file>"),
            RowKind::Classes => (class_of(&frame, tables), "<no class>"),
            RowKind::Namespaces => (namespace_of(&frame, tables), "<no namespace>"),
        };
        Some(self.labelled(part.unwrap_or_else(|| absent.into()), query))
    }

    /// The group with a function name and nothing else.
    fn labelled(&mut self, function: Vec<u8>, query: &Query) -> GroupId {
        self.named(FrameName { function, ..FrameName::default() }, query)
    }

    /// The group of all frames with the text of `name`.
    pub(crate) fn named(&mut self, name: FrameName, query: &Query) -> GroupId {
        let text = name.text(PathStyle::Full);
        if let Some(&group) = self.index.get(&text) {
            return group;
        }
        let group = self.names.len();
        let mut traits = PatternMatches::of(&text, query);
        traits.hidden |= name.is_of_profiler();
        self.names.push(Arc::new(name));
        self.traits.push(traits);
        self.index.insert(text, group);
        group
    }

    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    pub(crate) fn name(&self, group: GroupId) -> &Arc<FrameName> {
        &self.names[group]
    }

    pub(crate) fn traits(&self, group: GroupId) -> PatternMatches {
        self.traits[group]
    }
}

/// The part of a frame that names its group; `None` if it has none.
type PartOf<'q> = Box<dyn Fn(&Frame, &Tables) -> Option<Vec<u8>> + 'q>;

/// Frames grouped by a part, such as their file or class.
pub(crate) struct PartGroups<'q> {
    part: PartOf<'q>,
    of_frame: Column<GroupId>,
    pub(crate) names: Vec<Option<Vec<u8>>>,
    index: HashMap<Option<Vec<u8>>, GroupId>,
}

impl<'q> PartGroups<'q> {
    pub(crate) fn new(part: impl Fn(&Frame, &Tables) -> Option<Vec<u8>> + 'q) -> Self {
        Self { part: Box::new(part), of_frame: Column::default(), names: Vec::new(), index: HashMap::new() }
    }

    pub(crate) fn of(&mut self, frame: FrameId, tables: &Tables) -> GroupId {
        if let Some(group) = self.of_frame.get(frame.index()) {
            return group;
        }
        let part = (self.part)(&tables.frame(frame), tables);
        let group = *self.index.entry(part).or_insert_with_key(|part| {
            self.names.push(part.clone());
            self.names.len() - 1
        });
        self.of_frame.set(frame.index(), group)
    }

    /// The group of a frame that was looked up before.
    pub(crate) fn get(&self, frame: FrameId) -> Option<GroupId> {
        self.of_frame.get(frame.index())
    }
}
