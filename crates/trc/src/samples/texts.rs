//! Texts of the batch's pool in the tables of the model.

use borehole_model::{StringId, TableFull, Tables};
use hashbrown::HashMap;

use crate::event::Event;
use crate::pool::DefinitionNumber;
use crate::value::Value;

/// The ids of long texts that the pool of a batch defines, by the numbers of their definitions: such a text is not looked
/// at again for each event that refers to it.
#[derive(Debug, Default)]
pub(super) struct PooledTexts(HashMap<DefinitionNumber, StringId>);

impl PooledTexts {
    /// The length from which on a text is remembered, in bytes. Shorter ones are found in the tables as fast.
    const LONG: usize = 256;

    /// The id of a value that is text; `None` if it is not.
    ///
    /// # Errors
    /// If the table is full.
    pub(super) fn intern(
        &mut self,
        event: &Event<'_>,
        value: Value<'_>,
        tables: &mut Tables,
    ) -> Result<Option<StringId>, TableFull> {
        let Some(text) = value.as_str() else { return Ok(None) };
        let number = match value {
            Value::PooledText { id, .. } if text.len() >= Self::LONG => event.batch.strings.number(id),
            _ => None,
        };
        let Some(number) = number else { return tables.intern_string(text.as_bytes()).map(Some) };
        if let Some(&id) = self.0.get(&number) {
            return Ok(Some(id));
        }
        let id = tables.intern_string(text.as_bytes())?;
        self.0.insert(number, id);
        Ok(Some(id))
    }

    /// Forgets the definitions: the pool begins anew.
    pub(super) fn begin_batch(&mut self) {
        self.0.clear();
    }
}
