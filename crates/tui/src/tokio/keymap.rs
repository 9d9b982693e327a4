//! The actions of keys in the explorer of Tokio traces.

use crate::keymap::{Binding, Bindings, ExplorerAction};

/// An action of a key in the explorer of Tokio traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TokioAction {
    /// To the lane or row above.
    Up,
    /// To the lane or row below.
    Down,
    /// To an earlier time.
    Left,
    /// To a later time.
    Right,
    /// A page towards the first row.
    PageUp,
    /// A page towards the last row.
    PageDown,
    /// To the first row.
    Home,
    /// To the last row.
    End,
    /// From the lanes to the list, or back.
    NextPane,
    /// Shows the moment of the row, or zooms to the poll under the cursor.
    Focus,
    /// Back to the previous range of time.
    Undo,
    /// Shows half of the time.
    ZoomIn,
    /// Shows twice the time.
    ZoomOut,
    /// Shows the whole trace.
    ZoomAll,
    /// To the moment of the next flag.
    NextFlag,
    /// To the moment of the flag before.
    PreviousFlag,
    /// The flags.
    Flags,
    /// The longest polls.
    Polls,
    /// The tasks.
    Tasks,
    /// The longest spans.
    Spans,
    /// Shows only rows that contain a text.
    Filter,
    /// The next program of the trace.
    NextProgram,
    /// The samples of the trace in the explorer of profiles.
    Samples,
    /// Copies the row.
    Copy,
    /// Removes the filter.
    Clear,
    /// Help.
    Help,
    /// Ends the explorer.
    Quit,
}

/// The keys of the explorer of Tokio traces.
pub type TokioKeymap = Bindings<TokioAction>;

impl ExplorerAction for TokioAction {
    const TABLE: &'static [Binding<Self>] = &[
        (Self::Up, "up", &["\x1b[A", "\x1bOA", "k"], "lane or row above"),
        (Self::Down, "down", &["\x1b[B", "\x1bOB", "j"], "lane or row below"),
        (Self::Left, "left", &["\x1b[D", "\x1bOD", "h"], "earlier"),
        (Self::Right, "right", &["\x1b[C", "\x1bOC", "l"], "later"),
        (Self::PageUp, "page_up", &["\x1b[5~", "\x02"], "page up, a screen earlier"),
        (Self::PageDown, "page_down", &["\x1b[6~", "\x06", " "], "page down, later"),
        (Self::Home, "home", &["\x1b[H", "\x1b[1~", "\x1bOH", "g"], "first row, start"),
        (Self::End, "end", &["\x1b[F", "\x1b[4~", "\x1bOF", "G"], "last row, end"),
        (Self::NextPane, "next_pane", &["\t"], "lanes or list"),
        (Self::Focus, "focus", &["\r", "\n"], "to the moment"),
        (Self::Undo, "undo", &["u", "\x7f", "\x08"], "previous range"),
        (Self::ZoomIn, "zoom_in", &["+", "="], "zoom in"),
        (Self::ZoomOut, "zoom_out", &["-"], "zoom out"),
        (Self::ZoomAll, "zoom_all", &["0"], "the whole trace"),
        (Self::NextFlag, "next_flag", &["n"], "next flag"),
        (Self::PreviousFlag, "previous_flag", &["N"], "flag before"),
        (Self::Flags, "flags", &["f"], "flags"),
        (Self::Polls, "polls", &["p"], "longest polls"),
        (Self::Tasks, "tasks", &["t"], "tasks"),
        (Self::Spans, "spans", &["s"], "longest spans"),
        (Self::Filter, "filter", &["/"], "filter rows"),
        (Self::NextProgram, "next_program", &["]"], "next program"),
        (Self::Samples, "samples", &["v"], "samples as a profile"),
        (Self::Copy, "copy", &["y"], "copy the row"),
        (Self::Clear, "clear", &["\x1b"], "clear the filter"),
        (Self::Help, "help", &["?"], "help"),
        (Self::Quit, "quit", &["q", "\x03"], "quit"),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keymap::Action;

    #[test]
    fn every_key_has_one_meaning() {
        let keymap = TokioKeymap::default();
        for &(action, name, keys, _) in TokioAction::TABLE {
            assert!(!keys.is_empty(), "{name}");
            assert!(keys.iter().all(|key| keymap.action(key.as_bytes()) == Some(action)), "{name}");
        }
    }

    #[test]
    fn keys_that_mean_the_same_in_the_explorer_of_profiles_are_the_same() {
        for &(_, name, keys, _) in TokioAction::TABLE {
            let Some(&(_, _, others, _)) = Action::TABLE.iter().find(|row| row.1 == name) else { continue };
            assert_eq!(keys[0], others[0], "{name}");
        }
    }
}
