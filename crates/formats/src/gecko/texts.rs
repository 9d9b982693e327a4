//! Texts that many frames share, interned once.

use std::collections::HashMap;

use borehole_model::{StringId, TableFull, Tables};

/// The ids of texts by their place in a list.
#[derive(Debug, Default)]
pub(super) struct SharedTexts(HashMap<usize, StringId>);

impl SharedTexts {
    /// The id of the text at `index`.
    ///
    /// # Errors
    /// If a table is full.
    pub(super) fn intern(
        &mut self,
        index: usize,
        text: &str,
        tables: &mut Tables,
    ) -> Result<StringId, TableFull> {
        if let Some(&known) = self.0.get(&index) {
            return Ok(known);
        }
        let id = tables.intern_string(text.as_bytes())?;
        self.0.insert(index, id);
        Ok(id)
    }
}
