//! The terminal explorers of profiles and of heaps.
//!
//! [`App`] is the state of the profile explorer, [`HeapApp`] that of the heap explorer. Both take [`Input`] and draw into
//! cells. [`Decoder`] splits terminal input into inputs, [`Keymap`] maps them to actions, and [`Screen`] sends changes to a
//! terminal. All access to files and the clipboard goes through a [`Host`], so everything runs in a test as on a terminal.

mod actions;
mod amount;
mod app;
mod changes;
mod draw;
mod flame;
mod focus;
mod groups;
mod heap;
mod host;
mod input;
mod keymap;
mod list;
mod outline;
mod prompt;
mod screen;
mod since;
mod source;
mod text;
mod theme;
mod time;
mod whereabouts;

pub use app::{App, Settings};
pub use heap::{HeapAction, HeapApp, HeapKeymap, HeapSettings};
pub use host::{Clipboard, Host, Stack};
pub use input::{Button, Decoder, Input};
pub use keymap::{Action, Command, Keymap, KeymapError, Keys, Row};
pub use screen::{BEGIN_UPDATE, Cells, END_UPDATE, ENTER, Explorer, LEAVE, Screen};
pub use text::{Anchor, crop, pad, printable, width};
pub use theme::Colours;
