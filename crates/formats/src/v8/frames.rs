//! Frames as V8 states them in its profiles.

use borehole_model::{Frame, FrameId, TableFull, Tables};
use serde::Deserialize;

/// The name of the node above all others, which is no function.
pub(crate) const ROOT: &str = "(root)";

/// The name of functions without one, as DevTools shows them.
pub(crate) const ANONYMOUS: &[u8] = b"(anonymous)";

/// Where a function is. Lines and columns are 0-based, and -1 if they are unknown.
///
/// Source: the Chrome DevTools Protocol, domain Runtime, type `CallFrame`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct CallFrame {
    pub(crate) function_name: String,
    pub(crate) url: String,
    pub(crate) line_number: Option<i64>,
    pub(crate) column_number: Option<i64>,
}

impl CallFrame {
    /// Whether it is the node above all others.
    pub(crate) fn is_root(&self) -> bool {
        self.function_name == ROOT
    }

    pub(crate) fn intern(&self, tables: &mut Tables) -> Result<FrameId, TableFull> {
        let name = if self.function_name.is_empty() { ANONYMOUS } else { self.function_name.as_bytes() };
        let function = tables.intern_string(name)?;
        let file = match &*self.url {
            "" => None,
            url => Some(tables.intern_string(url.as_bytes())?),
        };
        let line = self.line_number.filter(|&line| line >= 0).map(|line| line.saturating_add(1));
        let column = self.column_number.and_then(|column| u32::try_from(column).ok());
        tables.intern_frame(&Frame { file, line, column, ..Frame::named(function) })
    }
}
