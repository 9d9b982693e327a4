//! The mapping of keys to actions.

use std::fmt;

use borehole_text::{KeptEnd, crop, pad, width};

/// An action of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// To the row above.
    Up,
    /// To the row below.
    Down,
    /// To the pane of callers; folds a node.
    Left,
    /// To the pane of callees; unfolds a node.
    Right,
    /// A page towards the first row.
    PageUp,
    /// A page towards the last row.
    PageDown,
    /// To the first row.
    Home,
    /// To the last row.
    End,
    /// To the previous pane.
    NextPane,
    /// To the pane before.
    PreviousPane,
    /// Makes the row the focus.
    Focus,
    /// Back to the previous focus.
    Undo,
    /// Callers above, callees below.
    Panes,
    /// Callers and callees as a flame graph.
    Flame,
    /// The tree of callees.
    Callees,
    /// The tree of callers.
    Callers,
    /// Samples over time, by thread.
    Timeline,
    /// Samples by second and part of the second.
    HeatMap,
    /// Samples by thread, process, label.
    Groups,
    /// Functions that changed since an earlier profile.
    Changes,
    /// The overview by self weight.
    BySelf,
    /// The overview by total weight.
    ByTotal,
    /// To the overview.
    ToOverview,
    /// Shows or hides the overview.
    Overview,
    /// The focus follows the cursor of the overview.
    Follow,
    /// Shows or hides the mini flame graph.
    MiniFlame,
    /// Picks the end of labels that stays when they are cut.
    Align,
    /// Folds everything below a node.
    FoldAll,
    /// Unfolds everything below a node.
    UnfoldAll,
    /// Shows only rows that contain a text.
    Filter,
    /// Counts only samples with a frame that matches.
    Match,
    /// Frames by function only, or by file and line.
    NoLine,
    /// Instructions.
    Opcodes,
    /// Functions, files, classes, namespaces as rows.
    Rows,
    /// Samples, time, CPU time as weights.
    Weight,
    /// Folds recursion.
    Recursion,
    /// Collapses the frames of libraries.
    Libraries,
    /// Source lines beside the frame.
    Source,
    /// Copies the frame.
    Copy,
    /// Writes the view to a file.
    Export,
    /// Removes filters and selections, one by one.
    Clear,
    /// Help.
    Help,
    /// Ends the explorer.
    Quit,
}

/// Each action with its name in files, its keys and its help text.
///
/// Source: reli 0.12, the keys of `rbt:explore`, which are the first of each.
const ACTIONS: &[(Action, &str, &[&str], &str)] = &[
    (Action::Up, "up", &["\x1b[A", "\x1bOA", "k"], "up"),
    (Action::Down, "down", &["\x1b[B", "\x1bOB", "j"], "down"),
    (Action::Left, "left", &["\x1b[D", "\x1bOD", "h"], "callers, fold"),
    (Action::Right, "right", &["\x1b[C", "\x1bOC", "l"], "callees, unfold"),
    (Action::PageUp, "page_up", &["\x1b[5~", "\x02"], "page up"),
    (Action::PageDown, "page_down", &["\x1b[6~", "\x06", " "], "page down"),
    (Action::Home, "home", &["\x1b[H", "\x1b[1~", "\x1bOH", "g"], "first row"),
    (Action::End, "end", &["\x1b[F", "\x1b[4~", "\x1bOF", "G"], "last row"),
    (Action::NextPane, "next_pane", &["\t"], "next pane"),
    (Action::PreviousPane, "previous_pane", &["\x1b[Z"], "previous pane"),
    (Action::Focus, "focus", &["\r", "\n"], "focus on the row"),
    (Action::Undo, "undo", &["u", "\x7f", "\x08"], "undo focus"),
    (Action::Panes, "panes", &["P"], "callers and callees"),
    (Action::Flame, "flame", &["S"], "flame graph"),
    (Action::Callees, "callees", &[">"], "tree of callees"),
    (Action::Callers, "callers", &["<"], "tree of callers"),
    (Action::Timeline, "timeline", &["T"], "timeline"),
    (Action::HeatMap, "heat_map", &["M"], "heat map"),
    (Action::Groups, "groups", &["B"], "threads, labels"),
    (Action::Changes, "changes", &["D"], "changes (--baseline)"),
    (Action::BySelf, "by_self", &["s"], "overview by self"),
    (Action::ByTotal, "by_total", &["t"], "overview by total"),
    (Action::ToOverview, "to_overview", &["O"], "to the overview"),
    (Action::Overview, "overview", &["o"], "show or hide overview"),
    (Action::Follow, "follow", &["f"], "follow the overview"),
    (Action::MiniFlame, "mini_flame", &["F"], "mini flame graph"),
    (Action::Align, "align", &["A"], "align labels"),
    (Action::FoldAll, "fold_all", &["H"], "fold a subtree"),
    (Action::UnfoldAll, "unfold_all", &["L"], "unfold a subtree"),
    (Action::Filter, "filter", &["/"], "filter rows"),
    (Action::Match, "match", &["m"], "match samples"),
    (Action::NoLine, "no_line", &["n"], "show or hide lines"),
    (Action::Opcodes, "opcodes", &["c"], "opcodes"),
    (Action::Rows, "rows", &["b"], "functions, files, ..."),
    (Action::Weight, "weight", &["w"], "samples, time, CPU"),
    (Action::Recursion, "recursion", &["r"], "fold recursion"),
    (Action::Libraries, "libraries", &["x"], "collapse libraries"),
    (Action::Source, "source", &["v"], "source lines"),
    (Action::Copy, "copy", &["y"], "copy the frame"),
    (Action::Export, "export", &["e"], "export the view"),
    (Action::Clear, "clear", &["\x1b"], "clear a filter"),
    (Action::Help, "help", &["?"], "help"),
    (Action::Quit, "quit", &["q", "\x03"], "quit"),
];

impl ExplorerAction for Action {
    const TABLE: &'static [Binding<Self>] = ACTIONS;
}

/// An action with its name in files, its keys and its help text.
pub type Binding<A> = (A, &'static str, &'static [&'static str], &'static str);

/// The actions of an explorer's keys.
pub trait ExplorerAction: Copy + Eq + 'static {
    /// All actions, in the order of the help.
    const TABLE: &'static [Binding<Self>];

    /// Its name in files.
    #[must_use]
    fn name(self) -> &'static str {
        Self::TABLE.iter().find(|row| row.0 == self).map_or("", |row| row.1)
    }
}

/// The keys of the profile explorer.
pub type Keymap = Bindings<Action>;

/// A mapping of keys to actions.
#[derive(Clone, Debug)]
pub struct Bindings<A> {
    keys: Vec<(Vec<u8>, A)>,
}

impl<A: ExplorerAction> Default for Bindings<A> {
    fn default() -> Self {
        let keys = A::TABLE
            .iter()
            .flat_map(|&(action, _, keys, _)| keys.iter().map(move |key| (key.as_bytes().to_vec(), action)));
        Self { keys: keys.collect() }
    }
}

impl<A: ExplorerAction> Bindings<A> {
    /// Parses a JSON document: an object of lists of byte sequences by the name of an action. Actions that it does not name keep
    /// their keys.
    ///
    /// # Errors
    /// If it is not such a document.
    ///
    /// # Examples
    ///
    /// ```
    /// use borehole_tui::{Action, Keymap};
    ///
    /// let keymap = Keymap::from_json(r#"{"quit": ["Q"], "up": ["\u001b[A", "w"]}"#)?;
    /// assert_eq!(keymap.action(b"Q"), Some(Action::Quit));
    /// assert_eq!(keymap.action(b"q"), None);
    /// assert_eq!(keymap.action(b"w"), Some(Action::Up));
    /// # Ok::<(), borehole_tui::KeymapError>(())
    /// ```
    pub fn from_json(text: &str) -> Result<Self, KeymapError> {
        let wrong = |expected: &str, found: &dyn fmt::Display| {
            KeymapError(format!("expected {expected}, found {found}"))
        };
        let json: serde_json::Value =
            serde_json::from_str(text).map_err(|error| wrong("a JSON object", &error))?;
        let object = json.as_object().ok_or_else(|| wrong("a JSON object", &json))?;
        let mut keymap = Self::default();
        for (name, keys) in object {
            let found = A::TABLE.iter().find(|(_, known, ..)| known == name);
            let action = found.ok_or_else(|| wrong(&Self::names(), &format!("'{name}'")))?.0;
            let keys = keys.as_array().ok_or_else(|| wrong("a list of byte sequences", keys))?;
            keymap.keys.retain(|&(_, known)| known != action);
            for key in keys {
                let key = key.as_str().filter(|key| !key.is_empty());
                let key = key.ok_or_else(|| wrong("a byte sequence", &format!("nothing for '{name}'")))?;
                keymap.keys.retain(|(known, _)| known != key.as_bytes());
                keymap.keys.push((key.into(), action));
            }
        }
        Ok(keymap)
    }

    fn names() -> String {
        let names: Vec<_> = A::TABLE.iter().map(|&(_, name, ..)| name).collect();
        format!("one of {}", names.join(", "))
    }

    /// The action of a key.
    #[must_use]
    pub fn action(&self, key: &[u8]) -> Option<A> {
        self.keys.iter().find(|(known, _)| known == key).map(|&(_, action)| action)
    }

    /// The names of an action's keys for people.
    pub(crate) fn labels(&self, action: A) -> Vec<String> {
        let mut labels: Vec<String> = Vec::new();
        for (key, _) in self.keys.iter().filter(|&&(_, known)| known == action) {
            let label = label(key);
            if !labels.contains(&label) {
                labels.push(label);
            }
        }
        labels
    }

    /// The last line of the screen: the key and the label of each of these actions, as many as fit.
    pub(crate) fn footer(&self, keys: &[(A, &str)], columns: usize) -> String {
        let mut text = String::new();
        for &(action, name) in keys {
            let key = self.labels(action).into_iter().next().unwrap_or_default();
            let part = format!(" {key} {name}");
            if width(&text) + width(&part) <= columns {
                text += &part;
            }
        }
        text
    }

    /// All keys and their actions, in order.
    pub(crate) fn help(&self) -> Vec<String> {
        let line = |&(action, _, _, help): &Binding<A>| {
            let keys = self.labels(action).join(" ");
            format!(" {} {help}", pad(&crop(&keys, 14, KeptEnd::Left), 14))
        };
        A::TABLE.iter().map(line).collect()
    }
}

fn label(key: &[u8]) -> String {
    let named = match key {
        b"\x1b[A" | b"\x1bOA" => "Up",
        b"\x1b[B" | b"\x1bOB" => "Down",
        b"\x1b[C" | b"\x1bOC" => "Right",
        b"\x1b[D" | b"\x1bOD" => "Left",
        b"\x1b[5~" => "PgUp",
        b"\x1b[6~" => "PgDn",
        b"\x1b[H" | b"\x1b[1~" | b"\x1bOH" => "Home",
        b"\x1b[F" | b"\x1b[4~" | b"\x1bOF" => "End",
        b"\x1b[Z" => "S-Tab",
        b"\t" => "Tab",
        b"\r" | b"\n" => "Enter",
        b"\x7f" | b"\x08" => "Backspace",
        b"\x1b" => "Esc",
        b"\x1b[1;3D" => "Alt-Left",
        b"\x1b[1;3C" => "Alt-Right",
        b" " => "Space",
        [control @ 1..=26] => return format!("^{}", char::from(control + b'@')),
        _ => return borehole_text::printable(key),
    };
    named.to_owned()
}

/// An invalid document of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeymapError(String);

impl fmt::Display for KeymapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for KeymapError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_one_meaning_and_every_action_a_key() {
        let keymap = Keymap::default();
        for (key, action) in &keymap.keys {
            assert_eq!(keymap.action(key), Some(*action), "{key:?}");
        }
        assert!(Action::TABLE.iter().all(|&(action, ..)| !keymap.labels(action).is_empty()));
        assert_eq!(keymap.labels(Action::PageDown), ["PgDn", "^F", "Space"]);
    }

    #[test]
    fn errors_say_what_was_expected() {
        let error = |text| Keymap::from_json(text).unwrap_err().to_string();
        assert!(error("[").starts_with("expected a JSON object, found "));
        assert_eq!(error("[]"), "expected a JSON object, found []");
        assert!(error(r#"{"jump": ["x"]}"#).ends_with("found 'jump'"));
        assert_eq!(error(r#"{"up": "x"}"#), r#"expected a list of byte sequences, found "x""#);
        assert_eq!(error(r#"{"up": [""]}"#), "expected a byte sequence, found nothing for 'up'");
        assert_eq!(Keymap::from_json("{}").unwrap().keys.len(), Keymap::default().keys.len());
    }
}
