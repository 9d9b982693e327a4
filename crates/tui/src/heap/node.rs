//! The view of one node: its holders, and what it refers to.

use borehole_heap::NodeId;
use borehole_heap::views::{Field, Fields, Holder};

use super::Known;
use crate::list::List;

/// The longest list that is sorted; longer ones stay as stored, because a key would have to wait.
pub(super) const MOST_SORTED: usize = 5_000;

/// The panes of a node.
#[derive(Debug)]
pub(crate) struct NodePanes {
    pub(super) node: NodeId,
    pub(super) fields: Fields,
    pub(super) holder_count: usize,
    /// The order of fields and holders on the screen; `None` for their own order.
    order: [Option<Vec<usize>>; 2],
    pub(super) lists: [List; 2],
    pub(super) pane: Pane,
}

/// The pane that has the cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pane {
    Holders,
    Fields,
}

impl NodePanes {
    pub(super) fn new(known: &Known<'_>, node: NodeId, sorts: bool) -> Self {
        let fields = known.heap.fields(Some(node));
        let holder_count = known.heap.holder_count(node);
        let lists = [List::default(); 2];
        let mut panes = Self { node, fields, holder_count, order: [None, None], lists, pane: Pane::Fields };
        panes.sort(known, sorts);
        panes
    }

    /// Sorts by retained size, largest first, if the lists are short enough.
    pub(super) fn sort(&mut self, known: &Known<'_>, sorts: bool) {
        let retained = |node: Option<NodeId>| {
            std::cmp::Reverse(node.map_or(u64::MAX, |node| known.heap.retention().retained(node)))
        };
        let sorted = |count: usize, key: &dyn Fn(usize) -> Option<NodeId>| {
            let mut order: Vec<usize> = (0..count).collect();
            order.sort_by_cached_key(|&place| retained(key(place)));
            (sorts && count <= MOST_SORTED).then_some(order)
        };
        let field = |place| known.heap.field(&self.fields, place).map(|field| field.node);
        let fields = if self.fields.len() <= MOST_SORTED { sorted(self.fields.len(), &field) } else { None };
        let holder = |place| known.heap.holder(self.node, place).and_then(|holder| holder.node);
        let holders =
            if self.holder_count <= MOST_SORTED { sorted(self.holder_count, &holder) } else { None };
        self.order = [holders, fields];
    }

    fn place(&self, pane: Pane, row: usize) -> usize {
        let order = &self.order[pane as usize];
        order.as_ref().and_then(|order| order.get(row).copied()).unwrap_or(row)
    }

    pub(super) fn field(&self, known: &Known<'_>, row: usize) -> Option<Field> {
        known.heap.field(&self.fields, self.place(Pane::Fields, row))
    }

    pub(super) fn holder(&self, known: &Known<'_>, row: usize) -> Option<Holder> {
        known.heap.holder(self.node, self.place(Pane::Holders, row))
    }

    pub(super) fn len(&self, pane: Pane) -> usize {
        if pane == Pane::Fields { self.fields.len() } else { self.holder_count }
    }

    /// The list of the pane that has the cursor, and its length.
    pub(super) fn list(&mut self) -> (&mut List, usize) {
        let len = self.len(self.pane);
        (&mut self.lists[self.pane as usize], len)
    }

    pub(super) const fn turn(&mut self) {
        self.pane = match self.pane {
            Pane::Holders => Pane::Fields,
            Pane::Fields => Pane::Holders,
        };
    }

    /// The node under the cursor.
    pub(super) fn current(&self, known: &Known<'_>) -> Option<NodeId> {
        let row = self.lists[self.pane as usize].cursor;
        match self.pane {
            Pane::Fields => self.field(known, row).map(|field| field.node),
            Pane::Holders => self.holder(known, row)?.node,
        }
    }
}
