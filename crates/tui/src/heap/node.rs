//! The view of one node: its holders, and what it refers to.

use borehole_heap::NodeId;
use borehole_heap::views::{NodeField, NodeFields, ValueHolder};

use super::HeapIndex;
use crate::list::ScrollList;

/// The longest list that is sorted; longer ones stay as stored, because a key would have to wait.
pub(super) const MOST_SORTED: usize = 5_000;

/// The panes of a node.
#[derive(Debug)]
pub(crate) struct NodePanes {
    pub(super) node: NodeId,
    pub(super) fields: NodeFields,
    pub(super) holder_count: usize,
    /// The order of fields and holders on the screen; `None` for their own order.
    order: [Option<Vec<usize>>; 2],
    pub(super) lists: [ScrollList; 2],
    pub(super) pane: NodePane,
}

/// The pane that has the cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodePane {
    Holders,
    Fields,
}

impl NodePanes {
    pub(super) fn new(known: &HeapIndex<'_>, node: NodeId, sorts: bool) -> Self {
        let fields = known.heap.fields(Some(node));
        let holder_count = known.heap.holder_count(node);
        let lists = [ScrollList::default(); 2];
        let mut panes =
            Self { node, fields, holder_count, order: [None, None], lists, pane: NodePane::Fields };
        panes.sort(known, sorts);
        panes
    }

    /// Sorts by retained size, largest first, if the lists are short enough.
    pub(super) fn sort(&mut self, known: &HeapIndex<'_>, sorts: bool) {
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

    fn place(&self, pane: NodePane, row: usize) -> usize {
        let order = &self.order[pane as usize];
        order.as_ref().and_then(|order| order.get(row).copied()).unwrap_or(row)
    }

    pub(super) fn field(&self, known: &HeapIndex<'_>, row: usize) -> Option<NodeField> {
        known.heap.field(&self.fields, self.place(NodePane::Fields, row))
    }

    pub(super) fn holder(&self, known: &HeapIndex<'_>, row: usize) -> Option<ValueHolder> {
        known.heap.holder(self.node, self.place(NodePane::Holders, row))
    }

    pub(super) fn len(&self, pane: NodePane) -> usize {
        if pane == NodePane::Fields { self.fields.len() } else { self.holder_count }
    }

    /// The list of the pane that has the cursor, and its length.
    pub(super) fn list(&mut self) -> (&mut ScrollList, usize) {
        let len = self.len(self.pane);
        (&mut self.lists[self.pane as usize], len)
    }

    pub(super) const fn turn(&mut self) {
        self.pane = match self.pane {
            NodePane::Holders => NodePane::Fields,
            NodePane::Fields => NodePane::Holders,
        };
    }

    /// The node under the cursor.
    pub(super) fn current(&self, known: &HeapIndex<'_>) -> Option<NodeId> {
        let row = self.lists[self.pane as usize].cursor;
        match self.pane {
            NodePane::Fields => self.field(known, row).map(|field| field.node),
            NodePane::Holders => self.holder(known, row)?.node,
        }
    }
}
