//! The explorer of heaps.

mod actions;
mod draw;
mod keymap;
mod node;
mod rows;
mod tree;

use borehole_heap::views::{ClassView, CycleView, Heap, Instances, Search, classes, cycles, largest};
use borehole_heap::{Graph, NodeId, Scope, Total, totals};
use ratatui::layout::Rect;

pub use keymap::{HeapAction, HeapKeymap};

use crate::list::List;
use crate::prompt::Prompt;
use crate::theme::Colours;
use node::NodePanes;
use tree::Tree;

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
pub(crate) struct Known<'h> {
    pub(crate) heap: Heap<'h, dyn Graph + 'h>,
    pub(crate) classes: Vec<ClassView>,
    pub(crate) instances: Instances,
    pub(crate) types: Vec<Total>,
    pub(crate) roots: Vec<NodeId>,
    pub(crate) largest: Vec<NodeId>,
    pub(crate) cycles: Vec<CycleView>,
}

impl<'h> Known<'h> {
    fn of(heap: Heap<'h, dyn Graph + 'h>) -> Self {
        let retained = |node: &NodeId| std::cmp::Reverse(heap.retention().retained(*node));
        let mut roots: Vec<NodeId> = heap.references(None).map(|root| root.to).collect();
        roots.sort_by_key(retained);
        // Parents are computed on first use; compute them now, so that the first key does not wait.
        heap.parents();
        heap.tree();
        Self {
            classes: classes(&heap),
            instances: Instances::of(&heap),
            types: totals(&heap.graph(), Scope::Everything).location_types,
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
pub(crate) enum View {
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
pub(crate) struct Place {
    pub(crate) view: View,
    pub(crate) node: Option<NodeId>,
    pub(crate) cursor: usize,
}

/// A place to go back to.
#[derive(Debug)]
pub(crate) struct Visited {
    place: Place,
    /// Its tree, if it has one and was visited recently.
    tree: Option<Tree>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PromptKind {
    Filter,
    Search,
    GoTo,
}

/// The explorer of a heap: its view, and how keys change it. It draws into cells and uses neither a terminal nor files.
pub struct HeapApp<'h> {
    settings: HeapSettings,
    known: Known<'h>,
    place: Place,
    past: Vec<Visited>,
    future: Vec<Visited>,
    /// The list of the view, if it is one.
    list: List,
    /// The rows of the list that are shown; `None` for all.
    shown: Option<Vec<usize>>,
    /// The number of rows that the filter has been applied to.
    filtered: usize,
    filter: String,
    panes: Option<NodePanes>,
    tree: Option<Tree>,
    way: Vec<NodeId>,
    bookmarks: Vec<NodeId>,
    search: Option<Search>,
    /// The search text as typed.
    sought: String,
    is_searching: bool,
    sorts: bool,
    prompt: Option<Prompt<PromptKind>>,
    message: Option<String>,
    shows_help: bool,
    help: List,
    areas: Areas,
    is_done: bool,
}

/// The areas of the screen that a mouse can point at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Areas {
    pub(crate) holders: Rect,
    pub(crate) body: Rect,
}

impl<'h> HeapApp<'h> {
    /// Creates an explorer of `heap`. All data that keys may ask for is computed now.
    #[must_use]
    pub fn new(heap: Heap<'h, dyn Graph + 'h>, settings: HeapSettings) -> Self {
        Self {
            settings,
            known: Known::of(heap),
            place: Place::default(),
            past: Vec::new(),
            future: Vec::new(),
            list: List::default(),
            shown: None,
            filtered: 0,
            filter: String::new(),
            panes: None,
            tree: None,
            way: Vec::new(),
            bookmarks: Vec::new(),
            search: None,
            sought: String::new(),
            is_searching: false,
            sorts: true,
            prompt: None,
            message: None,
            shows_help: false,
            help: List::default(),
            areas: Areas::default(),
            is_done: false,
        }
    }

    /// Whether the user has ended it.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        self.is_done
    }

    /// Whether there is work to do while no key is pressed.
    #[must_use]
    pub const fn is_working(&self) -> bool {
        self.is_searching
    }

    /// Shows a message in the status line until the next key.
    pub fn say(&mut self, message: impl Into<String>) {
        self.message = Some(message.into());
    }

    /// Goes to a node, if the graph has it.
    pub fn go_to_node(&mut self, node: NodeId) {
        if (node.0 as usize) < self.known.node_count() {
            self.visit(View::Node, Some(node));
        } else {
            self.say(format!("unknown node: expected below #{}, found #{}", self.known.node_count(), node.0));
        }
    }

    /// Searches for the node at an address and goes there.
    pub fn go_to_address(&mut self, address: u64) {
        self.look_for(borehole_heap::views::Sought::Address(address), format!("{address:#x}"));
    }
}
