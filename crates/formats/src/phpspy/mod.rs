//! The text of `phpspy`, which `reli` also writes and reads.
//!
//! ```text
//! 0 App\Db::query /app/Db.php:42
//! 1 <main> /app/index.php:5
//! # uri = /users
//! # pid = 4711
//!
//! ```
//!
//! A trace is a block of lines up to a blank one: frames from the leaf to the root, and comments with further facts. With
//! `phpspy -1` it is one line, with tabs instead of line feeds. The `location` module of this crate and
//! `docs/formats/phpspy.md` explain how a frame's line is parsed, although spaces in it are not quoted.
//!
//! The text has no times and no counts: a run of equal samples is written out in full, up to [`LONGEST_RUN`].

mod export;
mod facts;
mod import;
mod read;

pub use export::{ExportOptions, Exporter, OpcodeOutput};
pub(crate) use facts::FACTS;
pub use import::import;

pub use crate::lines::runs::LONGEST_RUN;

use crate::registry::{Codec, EventSupport, Exporting, Import};

/// The short name of the format.
pub const NAME: &str = "phpspy";

/// The file of the frame that `reli`'s template `phpspy_with_opcode` puts before the leaf to name its opcode. Followed by two
/// colons, it is the beginning of that frame's function.
///
/// Source: reli-prof, `resources/templates/phpspy_with_opcode.php`.
const VM: &[u8] = b"<VM>";

/// The file of a native frame in live captures of `reli`: `module::symbol+0x1f [native]:0`.
const NATIVE: &[u8] = b"[native]";

/// Reads and writes the format.
pub(crate) const CODEC: Codec = Codec {
    import: Some(Import::Plain(|input, options, tables, sink| import(input, options, tables, sink))),
    export: Some(Exporting {
        events: EventSupport::Lost,
        start: |to, options| Box::new(Exporter::new(to.output, options.get())),
    }),
};
