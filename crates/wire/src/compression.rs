//! The compression that a caller asks for.

use std::str::FromStr;
use std::{fmt, io};

/// The compression of what is written. A writer that cannot do each of them says so with an error: see [`Compression::among`].
///
/// # Examples
///
/// ```
/// use borehole_wire::Compression;
///
/// assert_eq!("gzip".parse::<Compression>()?, Compression::Gzip);
/// assert_eq!(Compression::Zstd.extension(), Some("zst"));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Compression {
    /// No compression.
    #[default]
    None,
    /// A gzip member, at the default level.
    Gzip,
    /// A Zstandard frame, at the default level. A build without the feature `zstd` refuses it.
    Zstd,
}

impl Compression {
    /// All of them.
    pub const ALL: &'static [Self] = &[Self::None, Self::Gzip, Self::Zstd];

    /// The name in options.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }

    /// The extension that it adds to the names of files, without a point; `None` for no compression.
    #[must_use]
    pub const fn extension(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Gzip => Some("gz"),
            Self::Zstd => Some("zst"),
        }
    }

    /// This compression, if it is one of those that are `possible`.
    ///
    /// # Examples
    ///
    /// ```
    /// use borehole_wire::Compression;
    ///
    /// let possible = [Compression::None, Compression::Gzip];
    /// let error = Compression::Zstd.among(&possible).err().map(|error| error.to_string());
    /// assert_eq!(error.as_deref(), Some("unsupported compression: expected none or gzip, found zstd"));
    /// ```
    ///
    /// # Errors
    /// If it is none of them. The error is of the kind [`io::ErrorKind::Unsupported`].
    pub fn among(self, possible: &[Self]) -> io::Result<Self> {
        if possible.contains(&self) { Ok(self) } else { Err(unsupported(possible, self.name())) }
    }
}

fn unsupported(possible: &[Compression], found: &str) -> io::Error {
    let names: Vec<_> = possible.iter().map(|known| known.name()).collect();
    let expected = match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => names.concat(),
    };
    let message = format!("unsupported compression: expected {expected}, found {found}");
    io::Error::new(io::ErrorKind::Unsupported, message)
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Parses the name, in any case.
impl FromStr for Compression {
    type Err = io::Error;

    fn from_str(name: &str) -> io::Result<Self> {
        let found = Self::ALL.iter().copied().find(|known| known.name().eq_ignore_ascii_case(name));
        found.ok_or_else(|| unsupported(Self::ALL, name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_in_any_case_and_others_refused() {
        for &known in Compression::ALL {
            assert_eq!(known.to_string().parse::<Compression>().unwrap(), known);
            assert_eq!(known.to_string().to_uppercase().parse::<Compression>().unwrap(), known);
        }
        let error = "lz4".parse::<Compression>().unwrap_err();
        assert_eq!(error.to_string(), "unsupported compression: expected none, gzip or zstd, found lz4");
        assert_eq!(error.kind(), io::ErrorKind::Unsupported);
    }

    #[test]
    fn a_writer_takes_what_it_can_do() {
        assert_eq!(Compression::Gzip.among(&[Compression::Gzip]).unwrap(), Compression::Gzip);
        let error = Compression::None.among(&[Compression::Gzip]).unwrap_err();
        assert_eq!(error.to_string(), "unsupported compression: expected gzip, found none");
    }
}
