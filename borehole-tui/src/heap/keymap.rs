//! What the keys of the explorer of heaps can do.

use crate::keymap::{Command, Keys, Row};

/// Something that a key can do in the explorer of heaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HeapAction {
    /// To the row above.
    Up,
    /// To the row below.
    Down,
    /// To what refers to the node; folds a row of a tree.
    Left,
    /// To what the node refers to; unfolds a row of a tree.
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
    /// To the pane before.
    PreviousPane,
    /// Looks at what is under the cursor.
    Focus,
    /// Back to what was looked at before.
    Undo,
    /// Forward again.
    Redo,
    /// The node: what holds it, and its fields.
    Panes,
    /// The tree of what the node alone holds.
    Held,
    /// The tree of what refers to the node.
    Holders,
    /// The way from the root to the node.
    Way,
    /// Classes.
    Classes,
    /// Types of memory.
    Types,
    /// Roots.
    Roots,
    /// What retains most.
    Largest,
    /// Nodes that hold each other.
    Cycles,
    /// What was found last.
    Found,
    /// The bookmarks.
    Bookmarks,
    /// Marks the node, or takes its mark away.
    Bookmark,
    /// Looks for something everywhere.
    Search,
    /// Goes to a node or an address.
    GoTo,
    /// Shows only rows with a text.
    Filter,
    /// Fields as they are stored, or by what they retain.
    Sort,
    /// Folds all below a row.
    FoldAll,
    /// Unfolds all below a row.
    UnfoldAll,
    /// Copies the path.
    Copy,
    /// Takes the filter back, or ends a search.
    Clear,
    /// Help.
    Help,
    /// Ends the explorer.
    Quit,
}

/// Which keys do what in the explorer of heaps.
pub type HeapKeymap = Keys<HeapAction>;

/// Source: reli 0.12, the keys of `rmem:explore`, where they are none of the explorer of profiles.
impl Command for HeapAction {
    const TABLE: &'static [Row<Self>] = &[
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
        (Self::Focus, "focus", &["\r", "\n"], "look at the row"),
        (Self::Undo, "undo", &["u", "\x7f", "\x08", "\x1b[1;3D"], "back"),
        (Self::Redo, "redo", &["U", "\x1b[1;3C"], "forward"),
        (Self::Classes, "classes", &["c"], "classes"),
        (Self::Types, "types", &["b"], "types of memory"),
        (Self::Roots, "roots", &["t"], "roots"),
        (Self::Largest, "largest", &["s"], "what retains most"),
        (Self::Cycles, "cycles", &["x"], "cycles"),
        (Self::Held, "held", &[">"], "tree of what it holds"),
        (Self::Holders, "holders", &["<"], "tree of referrers"),
        (Self::Panes, "panes", &["P"], "the node"),
        (Self::Way, "way", &["p"], "path from the root"),
        (Self::Search, "search", &["F"], "search everywhere"),
        (Self::GoTo, "go_to", &["g", "a"], "go to #node, 0xaddress"),
        (Self::Found, "found", &["n"], "what was found"),
        (Self::Bookmark, "bookmark", &["m"], "bookmark"),
        (Self::Bookmarks, "bookmarks", &["'", "B"], "bookmarks"),
        (Self::Filter, "filter", &["/"], "filter rows"),
        (Self::Sort, "sort", &["r"], "by size, as stored"),
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
