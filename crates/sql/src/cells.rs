//! Encodes rows for the transfer from the thread that creates them to the one that sends them.

use crate::rows::Cell;

/// Encodes cells one after the other, for [`Cells`].
pub(crate) fn encode_cells(cells: &[Cell<'_>], bytes: &mut Vec<u8>) {
    for cell in cells {
        match cell {
            Cell::Null => bytes.push(0),
            Cell::Integer(number) => {
                bytes.push(1);
                bytes.extend_from_slice(&number.to_le_bytes());
            }
            Cell::Text(text) => {
                bytes.push(2);
                bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
                bytes.extend_from_slice(text.as_bytes());
            }
        }
    }
}

/// Cells encoded by [`encode_cells`].
pub(crate) struct Cells<'b>(pub(super) &'b [u8]);

/// A decoded cell.
pub(crate) enum Decoded<'b> {
    Null,
    Integer(i64),
    Text(&'b str),
}

impl<'b> Iterator for Cells<'b> {
    type Item = Decoded<'b>;

    fn next(&mut self) -> Option<Decoded<'b>> {
        let (&tag, rest) = self.0.split_first()?;
        if tag == 0 {
            self.0 = rest;
            return Some(Decoded::Null);
        }
        let (number, rest) = rest.split_first_chunk()?;
        if tag == 1 {
            self.0 = rest;
            return Some(Decoded::Integer(i64::from_le_bytes(*number)));
        }
        let length = usize::try_from(u64::from_le_bytes(*number)).ok()?;
        let (text, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some(Decoded::Text(std::str::from_utf8(text).expect("texts were encoded")))
    }
}
