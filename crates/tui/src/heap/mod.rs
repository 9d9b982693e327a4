//! The explorer of heaps.

mod actions;
mod draw;
mod history;
mod keymap;
mod node;
mod rows;
mod search;
mod tree;

use borehole_heap::views::{ClassView, CycleView, Heap, Instances, classes, cycles, largest};
use borehole_heap::{MemoryTotal, NodeId, TotalsScope, totals};
use ratatui::layout::Rect;

pub use keymap::{HeapAction, HeapKeymap};

use crate::controls::Controls;
use crate::list::ScrollList;
use crate::theme::Colours;
use history::History;
use node::NodePanes;
use search::SearchState;
use tree::HeapTree;

/// The length of the list of nodes with the largest retained size.
const LARGEST: usize = 2_000;

/// The appearance and the controls of the heap explorer.
#[derive(Clone, Debug, Default)]
pub struct HeapSettings {
    /// The text of the first line.
    pub title: String,
    /// The keys.
    pub keymap: HeapKeymap,
    /// The colours.
    pub colours: Colours,
}

/// Data about the heap computed at the start, so that no key has to wait for it.
pub(crate) struct HeapIndex<'h> {
    pub(crate) heap: Heap<'h>,
    pub(crate) classes: Vec<ClassView>,
    pub(crate) instances: Instances,
    pub(crate) types: Vec<MemoryTotal>,
    pub(crate) roots: Vec<NodeId>,
    pub(crate) largest: Vec<NodeId>,
    pub(crate) cycles: Vec<CycleView>,
}

impl<'h> HeapIndex<'h> {
    fn of(heap: Heap<'h>) -> Self {
        let retained = |node: &NodeId| std::cmp::Reverse(heap.retention().retained(*node));
        let mut roots: Vec<NodeId> = heap.references(None).map(|root| root.to).collect();
        roots.sort_by_key(retained);
        // Parents are computed on first use; compute them now, so that the first key does not wait.
        heap.parents();
        heap.tree();
        Self {
            classes: classes(&heap),
            instances: Instances::of(&heap),
            types: totals(&heap.graph(), TotalsScope::Everything).location_types,
            largest: largest(&heap, LARGEST),
            cycles: cycles(&heap),
            roots,
            heap,
        }
    }

    /// The bytes of everything reachable.
    pub(crate) fn total(&self) -> u64 {
        self.heap.retention().total()
    }

    pub(crate) fn node_count(&self) -> usize {
        self.heap.graph().counts().nodes
    }
}

/// The main view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum HeapView {
    #[default]
    Classes,
    /// The objects of the class at this row of the classes.
    Objects(usize),
    Types,
    Roots,
    Largest,
    Cycles,
    Found,
    Bookmarks,
    Held,
    Holders,
    Way,
    Node,
}

/// The place of the user in the heap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeapPosition {
    pub(crate) view: HeapView,
    pub(crate) node: Option<NodeId>,
    pub(crate) cursor: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeapPrompt {
    Filter,
    Search,
    GoTo,
}

/// The explorer of a heap: its view, and how keys change it. It draws into cells and uses neither a terminal nor files.
pub struct HeapApp<'h> {
    settings: HeapSettings,
    controls: Controls<HeapPrompt>,
    known: HeapIndex<'h>,
    position: HeapPosition,
    history: History,
    /// The list of the view, if it is one.
    list: ScrollList,
    /// The rows of the list that are shown; `None` for all.
    shown: Option<Vec<usize>>,
    /// The number of rows that the filter has been applied to.
    filtered: usize,
    filter: String,
    panes: Option<NodePanes>,
    tree: Option<HeapTree>,
    way: Vec<NodeId>,
    bookmarks: Vec<NodeId>,
    search: SearchState,
    sorts: bool,
    areas: HeapAreas,
}

/// The areas of the screen that a mouse can point at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeapAreas {
    pub(crate) holders: Rect,
    pub(crate) body: Rect,
}

impl<'h> HeapApp<'h> {
    /// Creates an explorer of `heap`. All data that keys may ask for is computed now.
    #[must_use]
    pub fn new(heap: Heap<'h>, settings: HeapSettings) -> Self {
        Self {
            settings,
            controls: Controls::default(),
            known: HeapIndex::of(heap),
            position: HeapPosition::default(),
            history: History::default(),
            list: ScrollList::default(),
            shown: None,
            filtered: 0,
            filter: String::new(),
            panes: None,
            tree: None,
            way: Vec::new(),
            bookmarks: Vec::new(),
            search: SearchState::default(),
            sorts: true,
            areas: HeapAreas::default(),
        }
    }

    /// Whether the user has ended it.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        self.controls.is_done
    }

    /// Whether there is work to do while no key is pressed.
    #[must_use]
    pub const fn is_working(&self) -> bool {
        self.search.is_running
    }

    /// Shows a message in the status line until the next key.
    pub fn say(&mut self, message: impl Into<String>) {
        self.controls.say(message);
    }

    /// Goes to a node, if the graph has it.
    pub fn go_to_node(&mut self, node: NodeId) {
        if (node.0 as usize) < self.known.node_count() {
            self.visit(HeapView::Node, Some(node));
        } else {
            self.say(format!("unknown node: expected below #{}, found #{}", self.known.node_count(), node.0));
        }
    }

    /// Searches for the node at an address and goes there.
    pub fn go_to_address(&mut self, address: u64) {
        self.look_for(borehole_heap::views::SearchTarget::Address(address), format!("{address:#x}"));
    }
}
