//! The `jsonl` format: one JSON object per line, as `borehole dump` prints them.
//!
//! It holds all data of the model, so that writing and reading restores the profile. `docs/dump.md` describes every
//! line for users; a test compares that page with this code.
//!
//! * [`Exporter`] writes the lines, [`import`] reads them.
//! * [`LineWriter`] is the JSON writer underneath: small, without allocation per line, and useful for any other output
//!   of lines.

mod event;
mod export;
mod facts;
mod import;
mod read;

pub use borehole_text::LineWriter;
pub use export::{ExportOptions, Exporter};
pub(crate) use facts::FACTS;
pub use import::import;

use crate::frames::function_name::FunctionName;
use crate::registry::{Codec, EventSupport, Exporting, Import};

/// The short name of the format.
pub const NAME: &str = "jsonl";

/// Reads and writes the format.
pub(crate) const CODEC: Codec = Codec {
    import: Some(Import::Plain(|input, options, tables, sink| import(input, options, tables, sink))),
    export: Some(Exporting {
        events: EventSupport::Kept,
        start: |to, options| Box::new(Exporter::new(to.output, options.get())),
    }),
};

/// The version of the lines, stated in the first of them. It changes if current readers would misread the new lines; a
/// new key or a new type of line does not change it.
pub const SCHEMA_VERSION: u64 = 1;

/// The parts of a PHP function's name: namespace, class, method.
type PhpNameParts<'a> = [&'a [u8]; 3];

/// The default name parts of a frame whose line states none: in a segment of `format`, for a frame that is native or
/// not.
///
/// Only `rbt` files have PHP names in parts, nearly always those of [`FunctionName::split`]; so lines of either format
/// need no keys for the parts.
fn assumed_parts<'a>(format: &str, native: bool, function: &'a [u8]) -> Option<PhpNameParts<'a>> {
    (format == "rbt" && !native).then(|| {
        let FunctionName { namespace, class, method } = FunctionName::split(function);
        [namespace, class, method]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_php_frames_of_rbt_have_assumed_parts() {
        assert_eq!(assumed_parts("rbt", false, b"A::b"), Some([b"".as_slice(), b"A", b"b"]));
        assert_eq!(assumed_parts("rbt", true, b"A::b"), None);
        assert_eq!(assumed_parts("folded", false, b"A::b"), None);
    }
}
