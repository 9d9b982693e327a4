//! The controls that both explorers share: prompt, messages, help, and quitting.

use borehole_text::{pad, printable};
use ratatui::layout::Rect;

use crate::canvas::{CellCanvas, split_top};
use crate::input::{Button, TerminalInput};
use crate::keymap::{Bindings, ExplorerAction};
use crate::list::{CursorStep, ScrollList};
use crate::prompt::{Prompt, Typed};
use crate::theme::TextRole;

/// The state of the controls. `K` is the purpose of a prompt.
#[derive(Debug)]
pub(crate) struct Controls<K> {
    prompt: Option<Prompt<K>>,
    message: Option<String>,
    pub(crate) shows_help: bool,
    help: ScrollList,
    pub(crate) is_done: bool,
}

/// An input that the views have to handle.
pub(crate) enum Request<A, K> {
    Act(A),
    /// A key was typed into the prompt.
    Typed(Prompt<K>, Typed),
    Point(Button, u16, u16),
}

impl<K> Default for Controls<K> {
    fn default() -> Self {
        Self { prompt: None, message: None, shows_help: false, help: ScrollList::default(), is_done: false }
    }
}

impl<K: Copy> Controls<K> {
    /// Handles an input as far as it concerns the prompt and the help. Returns the part that the views have to handle.
    pub(crate) fn take<A: ExplorerAction>(
        &mut self,
        input: &TerminalInput,
        keymap: &Bindings<A>,
    ) -> Option<Request<A, K>> {
        self.message = None;
        match (input, self.prompt.take()) {
            (TerminalInput::Key(key), Some(mut prompt)) => {
                let typed = prompt.take(key);
                self.prompt = Some(prompt.clone()).filter(|_| typed == Typed::More);
                Some(Request::Typed(prompt, typed))
            }
            (TerminalInput::Key(key), None) => self.act(keymap.action(key)?),
            (&TerminalInput::Mouse { button, column, row }, prompt) => {
                self.prompt = prompt;
                if self.shows_help {
                    self.help.turn(button);
                    return None;
                }
                Some(Request::Point(button, column, row))
            }
        }
    }

    fn act<A: ExplorerAction>(&mut self, action: A) -> Option<Request<A, K>> {
        match action.name() {
            "quit" => self.is_done = true,
            "help" => self.shows_help = !self.shows_help,
            "clear" if self.shows_help => self.shows_help = false,
            _ if self.shows_help => step_of(action).into_iter().for_each(|step| self.help.scroll(step)),
            _ => return Some(Request::Act(action)),
        }
        None
    }

    /// Opens a prompt.
    pub(crate) fn ask(&mut self, kind: K, text: String) {
        self.prompt = Some(Prompt { kind, text });
    }

    /// Shows a message in the status line until the next key.
    pub(crate) fn say(&mut self, message: impl Into<String>) {
        self.message = Some(printable(message.into().as_bytes()));
    }

    /// The text of the status line, if there is a prompt or a message. `name` names a prompt.
    pub(crate) fn status(&self, columns: usize, name: impl Fn(K) -> &'static str) -> Option<String> {
        let prompt = self.prompt.as_ref().map(|prompt| prompt.line(name(prompt.kind), columns));
        prompt.or_else(|| self.message.clone())
    }

    pub(crate) fn draw_help(&mut self, canvas: &mut CellCanvas<'_>, area: Rect, rows: &[String]) {
        draw_keys(canvas, area, &mut self.help, rows);
    }
}

/// Draws the keys and their actions, in as many columns as fit.
fn draw_keys(canvas: &mut CellCanvas<'_>, area: Rect, list: &mut ScrollList, rows: &[String]) {
    canvas.title(area, "keys (? closes)", true);
    let [_, area] = split_top(area, 1);
    let columns = usize::from(area.width / 39).max(1);
    let lines = rows.len().div_ceil(columns);
    let window = list.page(lines, usize::from(area.height));
    for (line, row) in (0..).zip(window) {
        let cells = (0..columns).filter_map(|column| rows.get(column * lines + row));
        let text: String = cells.map(|cell| pad(cell, 39)).collect();
        canvas.line(area, line, &text, canvas.colours.style(TextRole::Plain));
    }
}

/// The movement that an action stands for.
pub(crate) fn step_of(action: impl ExplorerAction) -> Option<CursorStep> {
    Some(match action.name() {
        "up" => CursorStep::Up,
        "down" => CursorStep::Down,
        "page_up" => CursorStep::PageUp,
        "page_down" => CursorStep::PageDown,
        "home" => CursorStep::Home,
        "end" => CursorStep::End,
        _ => return None,
    })
}
