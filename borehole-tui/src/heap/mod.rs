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

/// As many nodes are in the list of those that retain most.
const LARGEST: usize = 2_000;

/// How the explorer of heaps is to look and to be worked.
#[derive(Clone, Debug, Default)]
pub struct HeapSettings {
    /// What stands in the first line.
    pub title: String,
    /// Which keys do what.
    pub keymap: HeapKeymap,
    /// Which colours there are.
    pub colours: Colours,
}

/// What is known of the heap from the start, so that no key has to wait for it.
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
        // They are worked out once, when first asked for: the first key must not be the one to wait.
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

    /// The bytes of everything that is reached.
    pub(crate) fn total(&self) -> u64 {
        self.heap.retention().total()
    }

    pub(crate) fn node_count(&self) -> usize {
        self.heap.graph().counts().nodes
    }
}

/// What fills the screen.
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

/// Where the user is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) view: View,
    pub(crate) node: Option<NodeId>,
    pub(crate) cursor: usize,
}

/// What can be gone back to.
#[derive(Debug)]
pub(crate) struct Visited {
    place: Place,
    /// The tree of it as it was, if it has one and is not long past.
    tree: Option<Tree>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PromptKind {
    Filter,
    Search,
    GoTo,
}

/// The explorer of a heap: what is shown of it, and what keys change of that. It draws into cells and touches neither a terminal
/// nor a file.
pub struct HeapApp<'h> {
    settings: HeapSettings,
    known: Known<'h>,
    place: Place,
    past: Vec<Visited>,
    future: Vec<Visited>,
    /// The list of the view, where that is one.
    list: List,
    /// Which rows of it are shown, where not all are.
    shown: Option<Vec<usize>>,
    /// How many rows there were when the filter was looked for in them.
    filtered: usize,
    filter: String,
    panes: Option<NodePanes>,
    tree: Option<Tree>,
    way: Vec<NodeId>,
    bookmarks: Vec<NodeId>,
    search: Option<Search>,
    /// What is searched for, as it was typed, and whether the search goes on.
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

/// Where on the screen the parts are that a mouse can point at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Areas {
    pub(crate) holders: Rect,
    pub(crate) body: Rect,
}

impl<'h> HeapApp<'h> {
    /// An explorer of `heap`. What keys may ask for is worked out now.
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

    /// Whether there is work left to do while no key comes.
    #[must_use]
    pub const fn is_working(&self) -> bool {
        self.is_searching
    }

    /// Says something in the status line until the next key.
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

    /// Goes to the node at an address, once it is found.
    pub fn go_to_address(&mut self, address: u64) {
        self.look_for(borehole_heap::views::Sought::Address(address), format!("{address:#x}"));
    }
}
