//! The text of `phpspy`, which `reli` writes and reads as well.
//!
//! ```text
//! 0 App\Db::query /app/Db.php:42
//! 1 <main> /app/index.php:5
//! # uri = /users
//! # pid = 4711
//!
//! ```
//!
//! A trace is a block of lines up to a blank one: frames from the leaf to the root, and comments that say
//! what else was true. With `phpspy -1` it is one line, with tabs in the place of line feeds. How a frame's
//! line is taken apart, although nothing quotes the spaces in it, stands with the `location` module of this
//! crate and in `docs/formats/phpspy.md`.
//!
//! The text has no times and no counts: a run of equal samples is written out in full, up to
//! [`LONGEST_RUN`].

mod export;
mod import;
mod read;

pub use export::{ExportOptions, Exporter, LONGEST_RUN, Opcodes};
pub use import::import;

/// The short name of the format.
pub const NAME: &str = "phpspy";

/// The file of the frame that `reli`'s template `phpspy_with_opcode` puts before the leaf to name its
/// opcode, and with two colons the beginning of that frame's function.
///
/// Source: reli-prof, `resources/templates/phpspy_with_opcode.php`.
const VM: &[u8] = b"<VM>";

/// The file of a native frame in live captures of `reli`: `module::symbol+0x1f [native]:0`.
const NATIVE: &[u8] = b"[native]";
