//! Build IDs, which tell whether two files are of one build.

use std::fmt;
use std::fs::File;

use crate::elf_image::{ElfImage, ImageSource};

/// The number that a linker gave to a build of a program or library.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BuildId(Box<[u8]>);

impl BuildId {
    /// The maximum length in bytes. Linkers write 8, 16 or 20.
    pub(crate) const MAX_BYTES: usize = 64;

    /// Creates a build ID from its bytes; `None` if there are none or too many.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Option<Self> {
        (1..=Self::MAX_BYTES).contains(&bytes.len()).then(|| Self(bytes.into()))
    }

    /// Parses hexadecimal digits, as most programs write build IDs.
    #[must_use]
    pub fn parse_hex(text: &[u8]) -> Option<Self> {
        let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        if !text.len().is_multiple_of(2) {
            return None;
        }
        let bytes: Option<Vec<u8>> =
            text.chunks_exact(2).map(|pair| Some(digit(&pair[0])? << 4 | digit(&pair[1])?)).collect();
        Self::new(&bytes?)
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The build ID of an ELF file; `None` if it is none, or states none.
#[must_use]
pub fn build_id_of(file: &File) -> Option<BuildId> {
    let source = ImageSource::file(file.try_clone().ok()?).ok()?;
    ElfImage::read(source).ok()?.build_id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_digits_are_parsed_and_written() {
        let id = BuildId::parse_hex(b"00fF1a").unwrap();
        assert_eq!((id.bytes(), id.to_string().as_str()), (&[0, 0xff, 0x1a][..], "00ff1a"));
        for text in [&b""[..], b"123", b"0g", &[b'0'; 2 * BuildId::MAX_BYTES + 2]] {
            assert_eq!(BuildId::parse_hex(text), None, "{text:?}");
        }
    }
}
