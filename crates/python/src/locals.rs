//! The local variables of the frames of a stack.

use borehole_process::{Error, ForeignMemory, moved};

use crate::chain::RawFrame;
use crate::containers::{number, tuple};
use crate::layout::{Layout, VariableNames};
use crate::objects::{self, name_of_type, read_text};
use crate::values::{HeldValue, ValueReader, held, in_cell};

/// The most variables that are read of a frame.
const MOST_VARIABLES: usize = 256;

/// A variable of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalVariable {
    /// Its name.
    pub name: Vec<u8>,
    /// Its value, as `repr` would write it; cut if it is long.
    pub value: String,
}

/// The kinds of variables that are in cells: those that inner functions use, and those of outer functions.
///
/// Source: CPython 3.11 to 3.15, `Include/internal/pycore_code.h`, `CO_FAST_CELL` and `CO_FAST_FREE`.
const IN_CELL: u8 = 0xc0;

/// The variables of a frame that have a value.
pub(crate) fn of_frame(
    memory: &impl ForeignMemory,
    layout: &Layout,
    frame: &RawFrame,
) -> Result<Vec<LocalVariable>, Error> {
    let mut variables = Vec::new();
    for (index, (name, is_cell)) in
        names(memory, layout, frame.code)?.into_iter().take(MOST_VARIABLES).enumerate()
    {
        let place = moved(frame.address, layout.frame.locals + 8 * index);
        let Some(word) = number(memory, place)? else { break };
        let mut word = held(word);
        if let HeldValue::Object(object) = word
            && object != 0
            && is_cell
            && is_cell_object(memory, layout, object)?
        {
            word = HeldValue::Object(in_cell(memory, &layout.object, object)?);
        }
        let value = match word {
            HeldValue::Object(0) => continue,
            HeldValue::Object(object) => ValueReader::text(memory, &layout.object, object)?,
            HeldValue::Integer(value) => value.to_string(),
        };
        let Some(name) = read_text(memory, &layout.object, name)? else { continue };
        variables.push(LocalVariable { name, value });
    }
    Ok(variables)
}

/// Whether it is a cell: a variable that an inner function uses is in one from the first instructions of the function on only.
fn is_cell_object(memory: &impl ForeignMemory, layout: &Layout, object: u64) -> Result<bool, Error> {
    let kind = number(memory, moved(object, layout.object.kind))?.unwrap_or_default();
    let name = borehole_process::mapped(name_of_type(memory, &layout.object, kind))?;
    Ok(name.as_deref() == Some(b"cell"))
}

/// The names of the variables of a code object in the order of their places, each with whether it may be in a cell.
fn names(memory: &impl ForeignMemory, layout: &Layout, code: u64) -> Result<Vec<(u64, bool)>, Error> {
    let items = |place: usize| {
        let Some(address) = number(memory, moved(code, place))? else { return Ok(Vec::new()) };
        Ok::<_, Error>(tuple(memory, &layout.object, address)?.unwrap_or_default())
    };
    match layout.code.variables {
        VariableNames::Apart([plain, cells, free]) => {
            let in_cells = [items(cells)?, items(free)?].concat();
            let plain = items(plain)?.into_iter().map(|name| (name, false));
            Ok(plain.chain(in_cells.into_iter().map(|name| (name, true))).collect())
        }
        VariableNames::Joined { names, kinds } => {
            let names = items(names)?;
            let kinds = number(memory, moved(code, kinds))?.unwrap_or_default();
            let kinds = objects::bytes(memory, &layout.object, kinds, names.len());
            let kinds = borehole_process::mapped(kinds)?.flatten().unwrap_or_default();
            let is_cell = |index: usize| kinds.get(index).is_some_and(|kind| kind & IN_CELL != 0);
            Ok(names.into_iter().enumerate().map(|(index, name)| (name, is_cell(index))).collect())
        }
    }
}
