//! Internal to [Borehole](https://docs.rs/borehole), whose own crates alone depend on it. Its interface may change at any time.
//!
//! The terminal explorers of profiles, of heaps and of Tokio traces.
//!
//! [`App`] is the state of the profile explorer, [`HeapApp`] that of the heap explorer, [`TokioApp`] that of the explorer of Tokio
//! traces. All take [`TerminalInput`] and draw into cells. [`InputDecoder`] splits terminal input into inputs, [`Keymap`] maps them to actions, and [`TerminalScreen`] sends
//! changes to a terminal. All access to files and the clipboard goes through a [`Host`], so everything runs in a test as on a
//! terminal.

#![forbid(unsafe_code)]

mod actions;
mod amount;
mod app;
mod canvas;
mod changes;
mod controls;
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
mod theme;
mod time;
mod tokio;
mod whereabouts;

pub use app::{App, Settings};
pub use heap::{HeapAction, HeapApp, HeapKeymap, HeapSettings};
pub use host::{Clipboard, Host, WeightedStack};
pub use input::{Button, InputDecoder, TerminalInput};
pub use keymap::{Action, Binding, Bindings, ExplorerAction, Keymap, KeymapError};
pub use screen::{BEGIN_UPDATE, END_UPDATE, ENTER, Explorer, LEAVE, ScreenCells, TerminalScreen};
pub use theme::Colours;
pub use tokio::{TokioAction, TokioApp, TokioKeymap, TokioSettings};
