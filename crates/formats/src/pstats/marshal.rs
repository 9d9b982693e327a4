//! Objects in Python's marshal format, as far as statistics have them.
//!
//! Source: CPython 3.8 to 3.15, `Python/marshal.c`: the codes of types, `FLAG_REF`, and integers in digits of 15 bits.

use std::ops::Range;

use borehole_wire::Cursor;

use super::NAME;
use crate::documents::whole::cut_off;
use crate::{Error, Limits, Position};

/// The deepest nesting: statistics have a dictionary of tuples with dictionaries of tuples.
const MOST_DEPTH: u32 = 8;

/// The bit of a type's code that makes an object one that later objects refer to.
const REFERRED: u8 = 0x80;

/// The memory of an object, about.
const OBJECT_BYTES: usize = 2 * size_of::<MarshalObject<'_>>();

/// The number of objects between checks of their memory.
const CHECKED_OBJECTS: usize = 1024;

/// An object. The objects inside of it are in [`MarshalReader::parts`].
#[derive(Clone, Debug)]
pub(super) enum MarshalObject<'a> {
    /// The end of a dictionary.
    Null,
    /// `None`, `True` or `False`.
    Constant,
    /// One that does not fit is the nearest one that does.
    Integer(i64),
    Float(f64),
    Text(&'a [u8]),
    Tuple(Range<u32>),
    /// Keys and values by turns.
    Dictionary(Range<u32>),
}

/// Reads objects.
pub(super) struct MarshalReader<'a> {
    cursor: Cursor<'a>,
    /// The objects inside of others, those of one after each other.
    inner: Vec<MarshalObject<'a>>,
    /// The objects inside of those that are being read.
    open: Vec<MarshalObject<'a>>,
    /// The objects that later ones may refer to; `None` while they are read.
    referred: Vec<Option<MarshalObject<'a>>>,
    limits: Limits,
    count: usize,
}

impl<'a> MarshalReader<'a> {
    pub(super) const fn new(bytes: &'a [u8], limits: Limits) -> Self {
        Self {
            cursor: Cursor::new(bytes, 0),
            inner: Vec::new(),
            open: Vec::new(),
            referred: Vec::new(),
            limits,
            count: 0,
        }
    }

    /// The objects inside of a tuple or a dictionary; none of other objects.
    pub(super) fn parts(&self, object: &MarshalObject<'_>) -> &[MarshalObject<'a>] {
        let (MarshalObject::Tuple(range) | MarshalObject::Dictionary(range)) = object else { return &[] };
        self.inner.get(range.start as usize..range.end as usize).unwrap_or_default()
    }

    /// The object that the bytes begin with.
    ///
    /// # Errors
    /// If they are damaged, or take more memory than allowed.
    pub(super) fn object(&mut self) -> Result<MarshalObject<'a>, Error> {
        self.nested(0)
    }

    /// The bytes behind the objects read so far.
    pub(super) const fn rest(&self) -> &'a [u8] {
        self.cursor.rest()
    }

    fn nested(&mut self, depth: u32) -> Result<MarshalObject<'a>, Error> {
        let offset = self.cursor.offset();
        let code = self.cursor.u8().map_err(cut)?;
        self.count += 1;
        if self.count.is_multiple_of(CHECKED_OBJECTS) {
            let held = self.count.saturating_mul(OBJECT_BYTES);
            self.limits.check(held).map_err(|over| Error::memory(NAME, Position::Byte(offset), over))?;
        }
        let place = (code & REFERRED != 0).then(|| {
            self.referred.push(None);
            self.referred.len() - 1
        });
        let object = self.of_type(code & !REFERRED, offset, depth)?;
        if let Some(place) = place {
            self.referred[place] = Some(object.clone());
        }
        Ok(object)
    }

    fn of_type(&mut self, code: u8, offset: u64, depth: u32) -> Result<MarshalObject<'a>, Error> {
        Ok(match code {
            b'0' => MarshalObject::Null,
            b'N' | b'T' | b'F' => MarshalObject::Constant,
            b'i' => MarshalObject::Integer(self.signed()?.into()),
            b'l' => MarshalObject::Integer(self.long()?),
            b'g' => MarshalObject::Float(f64::from_le_bytes(self.cursor.array().map_err(cut)?)),
            b'z' | b'Z' => {
                let length = usize::from(self.cursor.u8().map_err(cut)?);
                MarshalObject::Text(self.cursor.bytes(length).map_err(cut)?)
            }
            b's' | b't' | b'u' | b'a' | b'A' => {
                let length = self.length()?;
                MarshalObject::Text(self.cursor.bytes(length).map_err(cut)?)
            }
            b')' | b'(' | b'{' if depth >= MOST_DEPTH => {
                let message = format!("expected statistics, found objects nested {MOST_DEPTH} deep");
                return Err(Error::malformed(NAME, Position::Byte(offset), message));
            }
            b')' => {
                let length = usize::from(self.cursor.u8().map_err(cut)?);
                self.tuple(length, depth)?
            }
            b'(' => {
                let length = self.length()?;
                self.tuple(length, depth)?
            }
            b'{' => self.dictionary(depth)?,
            b'r' => {
                let index = self.length()?;
                let known = self.referred.get(index).and_then(Clone::clone);
                let message = || format!("reference to an unknown object: {index}");
                known.ok_or_else(|| Error::malformed(NAME, Position::Byte(offset), message()))?
            }
            _ => {
                let message = format!("expected an object of statistics, found the type {code:#x}");
                return Err(Error::malformed(NAME, Position::Byte(offset), message));
            }
        })
    }

    fn tuple(&mut self, length: usize, depth: u32) -> Result<MarshalObject<'a>, Error> {
        let begin = self.open.len();
        for _ in 0..length {
            let object = self.nested(depth + 1)?;
            self.open.push(object);
        }
        self.close(begin).map(MarshalObject::Tuple)
    }

    fn dictionary(&mut self, depth: u32) -> Result<MarshalObject<'a>, Error> {
        let begin = self.open.len();
        loop {
            match self.nested(depth + 1)? {
                MarshalObject::Null => return self.close(begin).map(MarshalObject::Dictionary),
                key => self.open.push(key),
            }
            let value = self.nested(depth + 1)?;
            self.open.push(value);
        }
    }

    /// Moves the objects of an object that was read behind those of others.
    fn close(&mut self, begin: usize) -> Result<Range<u32>, Error> {
        let start = self.inner.len();
        self.inner.extend(self.open.drain(begin..));
        let place = |place: usize| {
            let position = Position::Byte(self.cursor.offset());
            u32::try_from(place).map_err(|_| Error::malformed(NAME, position, "too many objects"))
        };
        Ok(place(start)?..place(self.inner.len())?)
    }

    fn signed(&mut self) -> Result<i32, Error> {
        Ok(self.cursor.u32_le().map_err(cut)?.cast_signed())
    }

    fn length(&mut self) -> Result<usize, Error> {
        let offset = self.cursor.offset();
        let length = self.signed()?;
        let message = || format!("expected a length, found {length}");
        usize::try_from(length).map_err(|_| Error::malformed(NAME, Position::Byte(offset), message()))
    }

    /// An integer in digits of 15 bits, the lowest first.
    fn long(&mut self) -> Result<i64, Error> {
        let count = self.signed()?;
        let (mut value, mut bits) = (0_i64, 0_u32);
        for _ in 0..count.unsigned_abs() {
            let digit = i64::from(self.cursor.u16_le().map_err(cut)? & 0x7fff);
            let fits = digit == 0 || (bits < 63 && digit <= i64::MAX >> bits);
            value = if fits { value | digit.checked_shl(bits).unwrap_or(0) } else { i64::MAX };
            bits = bits.saturating_add(15);
        }
        Ok(if count < 0 { -value } else { value })
    }
}

fn cut(error: borehole_wire::Error) -> Error {
    cut_off(NAME, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<MarshalObject<'_>, Error> {
        MarshalReader::new(bytes, Limits::default()).object()
    }

    #[test]
    fn integers_are_as_python_wrote_them() {
        // The output of Python's `marshal.dumps(value, 2)`.
        for (bytes, expected) in [
            (&b"i\xfb\xff\xff\xff"[..], -5),
            (b"l\x03\0\0\0\0\0\0\0\x02\0", 1 << 31),
            (b"l\xfd\xff\xff\xff\0\0\0\0\0\x04", -(1 << 40)),
            (b"l\x05\0\0\0\xff\x7f\xff\x7f\xff\x7f\xff\x7f\x07\0", i64::MAX),
            (b"l\x05\0\0\0\xff\x7f\xff\x7f\xff\x7f\xff\x7f\x0f\0", i64::MAX),
        ] {
            assert!(
                matches!(read(bytes), Ok(MarshalObject::Integer(value)) if value == expected),
                "{expected}"
            );
        }
    }

    #[test]
    fn an_object_that_holds_itself_and_one_that_is_too_deep_are_refused() {
        let error = read(b"\xa9\x01r\0\0\0\0").unwrap_err();
        assert_eq!(error.message(), "reference to an unknown object: 0");
        assert!(read(&b")\x01".repeat(100_000)).unwrap_err().message().contains("nested 8 deep"));
        assert!(read(b"(\xff\xff\xff\x7fN").unwrap_err().is_truncated());
    }
}
