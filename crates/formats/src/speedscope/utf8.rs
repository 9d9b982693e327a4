//! Names in JSON, which holds only UTF-8.

use std::borrow::Cow;
use std::io;

/// The handling of bytes in names that are not UTF-8, which JSON cannot hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Utf8Errors {
    /// Omit them.
    #[default]
    Ignore,
    /// Replace them by U+FFFD.
    Substitute,
    /// Fail.
    Fail,
}

impl Utf8Errors {
    /// Converts `bytes` to text.
    ///
    /// # Errors
    /// If they are not UTF-8 and [`Fail`](Self::Fail) is chosen.
    pub(super) fn text(self, bytes: &[u8]) -> io::Result<Cow<'_, str>> {
        let error = match std::str::from_utf8(bytes) {
            Ok(text) => return Ok(Cow::Borrowed(text)),
            Err(error) => error,
        };
        match self {
            Self::Ignore => Ok(bytes.utf8_chunks().map(|chunk| chunk.valid()).collect::<String>().into()),
            Self::Substitute => Ok(String::from_utf8_lossy(bytes)),
            Self::Fail => {
                let name = String::from_utf8_lossy(bytes);
                let at = error.valid_up_to();
                let message = format!("invalid name: expected UTF-8, found another byte at {at} of {name:?}");
                Err(io::Error::new(io::ErrorKind::InvalidData, message))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_outside_utf8_are_left_out_replaced_or_refused() {
        let bytes = b"caf\xe9 \xf0\x9f";
        assert_eq!(Utf8Errors::Ignore.text(bytes).unwrap(), "caf ");
        assert_eq!(Utf8Errors::Substitute.text(bytes).unwrap(), "caf\u{fffd} \u{fffd}");
        let error = Utf8Errors::Fail.text(bytes).unwrap_err();
        let text = "invalid name: expected UTF-8, found another byte at 3 of \"caf\u{fffd} \u{fffd}\"";
        assert_eq!(error.to_string(), text);
    }
}
