//! The actions of keys in the heap explorer.

use crate::keymap::{Binding, Bindings, ExplorerAction};

/// An action of a key in the heap explorer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HeapAction {
    /// To the row above.
    Up,
    /// To the row below.
    Down,
    /// To the nodes that refer to this one; folds a row of a tree.
    Left,
    /// To the nodes that this one refers to; unfolds a row of a tree.
    Right,
    /// A page towards the first row.
    PageUp,
    /// A page towards the last row.
    PageDown,
    /// To the first row.
    Home,
    /// To the last row.
    End,
    /// To the next pane.
    NextPane,
    /// To the previous pane.
    PreviousPane,
    /// Opens the row under the cursor.
    Focus,
    /// Back to the previous place.
    Undo,
    /// Forward again.
    Redo,
    /// The node: its holders and its fields.
    Panes,
    /// The tree of what only this node keeps alive.
    Held,
    /// The tree of nodes that refer to this one.
    Holders,
    /// The path from a root to the node.
    Way,
    /// Classes.
    Classes,
    /// Types of memory.
    Types,
    /// Roots.
    Roots,
    /// The nodes with the largest retained size.
    Largest,
    /// Nodes that keep each other alive.
    Cycles,
    /// The latest search results.
    Found,
    /// The bookmarks.
    Bookmarks,
    /// Sets or removes a bookmark on the node.
    Bookmark,
    /// Searches the whole heap.
    Search,
    /// Goes to a node or an address.
    GoTo,
    /// Shows only rows that contain a text.
    Filter,
    /// Sorts fields as stored or by retained size.
    Sort,
    /// Folds everything below a row.
    FoldAll,
    /// Unfolds everything below a row.
    UnfoldAll,
    /// Copies the path.
    Copy,
    /// Removes the filter, or ends a search.
    Clear,
    /// Help.
    Help,
    /// Ends the explorer.
    Quit,
}

/// The keys of the heap explorer.
pub type HeapKeymap = Bindings<HeapAction>;

/// Source: reli 0.12, the keys of `rmem:explore`, except those that the profile explorer has already.
impl ExplorerAction for HeapAction {
    const TABLE: &'static [Binding<Self>] = &[
        (Self::Up, "up", &["\x1b[A", "\x1bOA", "k"], "up"),
        (Self::Down, "down", &["\x1b[B", "\x1bOB", "j"], "down"),
        (Self::Left, "left", &["\x1b[D", "\x1bOD", "h"], "referrers, fold"),
        (Self::Right, "right", &["\x1b[C", "\x1bOC", "l"], "fields, unfold"),
        (Self::PageUp, "page_up", &["\x1b[5~", "\x02"], "page up"),
        (Self::PageDown, "page_down", &["\x1b[6~", "\x06", " "], "page down"),
        (Self::Home, "home", &["\x1b[H", "\x1b[1~", "\x1bOH"], "first row"),
        (Self::End, "end", &["\x1b[F", "\x1b[4~", "\x1bOF", "G"], "last row"),
        (Self::NextPane, "next_pane", &["\t"], "next pane"),
        (Self::PreviousPane, "previous_pane", &["\x1b[Z"], "previous pane"),
        (Self::Focus, "focus", &["\r", "\n"], "open the row"),
        (Self::Undo, "undo", &["u", "\x7f", "\x08", "\x1b[1;3D"], "back"),
        (Self::Redo, "redo", &["U", "\x1b[1;3C"], "forward"),
        (Self::Classes, "classes", &["c"], "classes"),
        (Self::Types, "types", &["b"], "types of memory"),
        (Self::Roots, "roots", &["t"], "roots"),
        (Self::Largest, "largest", &["s"], "largest retained"),
        (Self::Cycles, "cycles", &["x"], "cycles"),
        (Self::Held, "held", &[">"], "tree of retained nodes"),
        (Self::Holders, "holders", &["<"], "tree of referrers"),
        (Self::Panes, "panes", &["P"], "the node"),
        (Self::Way, "way", &["p"], "path from the root"),
        (Self::Search, "search", &["F"], "search the whole heap"),
        (Self::GoTo, "go_to", &["g", "a"], "go to #node, 0xaddress"),
        (Self::Found, "found", &["n"], "search results"),
        (Self::Bookmark, "bookmark", &["m"], "bookmark"),
        (Self::Bookmarks, "bookmarks", &["'", "B"], "bookmarks"),
        (Self::Filter, "filter", &["/"], "filter rows"),
        (Self::Sort, "sort", &["r"], "sort by size or not"),
        (Self::FoldAll, "fold_all", &["H"], "fold a subtree"),
        (Self::UnfoldAll, "unfold_all", &["L"], "unfold a subtree"),
        (Self::Copy, "copy", &["y"], "copy the path"),
        (Self::Clear, "clear", &["\x1b"], "clear filter, end search"),
        (Self::Help, "help", &["?"], "help"),
        (Self::Quit, "quit", &["q", "\x03"], "quit"),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_one_meaning() {
        let keymap = HeapKeymap::default();
        for &(action, name, keys, _) in HeapAction::TABLE {
            assert!(!keys.is_empty(), "{name}");
            assert!(keys.iter().all(|key| keymap.action(key.as_bytes()) == Some(action)), "{name}");
        }
    }

    #[test]
    fn keys_of_both_explorers_that_mean_the_same_are_the_same() {
        for &(_, name, keys, _) in HeapAction::TABLE {
            let Some(&(_, _, others, _)) = crate::keymap::Action::TABLE.iter().find(|row| row.1 == name)
            else {
                continue;
            };
            assert_eq!(keys[0], others[0], "{name}");
        }
    }
}
