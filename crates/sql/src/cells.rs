//! Encodes rows for the transfer from the thread that creates them to the one that sends them.

use crate::rows::CellValue;

/// Encodes cells one after the other, for [`EncodedCells`].
pub(crate) fn encode_cells(cells: &[CellValue<'_>], bytes: &mut Vec<u8>) {
    for cell in cells {
        match cell {
            CellValue::Null => bytes.push(0),
            CellValue::Integer(number) => {
                bytes.push(1);
                bytes.extend_from_slice(&number.to_le_bytes());
            }
            CellValue::Text(text) => {
                bytes.push(2);
                bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
                bytes.extend_from_slice(text.as_bytes());
            }
        }
    }
}

/// Cells encoded by [`encode_cells`].
pub(crate) struct EncodedCells<'b>(pub(super) &'b [u8]);

/// A decoded cell.
pub(crate) enum DecodedCell<'b> {
    Null,
    Integer(i64),
    Text(&'b str),
}

impl<'b> Iterator for EncodedCells<'b> {
    type Item = DecodedCell<'b>;

    fn next(&mut self) -> Option<DecodedCell<'b>> {
        let (&tag, rest) = self.0.split_first()?;
        if tag == 0 {
            self.0 = rest;
            return Some(DecodedCell::Null);
        }
        let (number, rest) = rest.split_first_chunk()?;
        if tag == 1 {
            self.0 = rest;
            return Some(DecodedCell::Integer(i64::from_le_bytes(*number)));
        }
        let length = usize::try_from(u64::from_le_bytes(*number)).ok()?;
        let (text, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some(DecodedCell::Text(std::str::from_utf8(text).expect("texts were encoded")))
    }
}
