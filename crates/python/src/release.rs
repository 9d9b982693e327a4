//! The releases of CPython, and the one in a process.

use std::fmt;

/// A version of CPython.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PythonVersion {
    /// The first number: 3.
    pub major: u8,
    /// The second number, which decides the layout of the structures.
    pub minor: u8,
    /// The third number.
    pub micro: u8,
}

impl PythonVersion {
    /// The version of a number such as `0x030b07f0`.
    ///
    /// Source: CPython, `Include/patchlevel.h`, `PY_VERSION_HEX`.
    pub(crate) const fn of_hex(hex: u32) -> Self {
        let [major, minor, micro, _] = hex.to_be_bytes();
        Self { major, minor, micro }
    }

    /// Whether the layout of its structures is known.
    #[must_use]
    pub const fn is_supported(self) -> bool {
        self.major == 3 && matches!(self.minor, 8..=15)
    }

    /// The version at the start of `text`, if it is followed by a space and a parenthesis, as in `sys.version`.
    pub(crate) fn of_text(text: &[u8]) -> Option<Self> {
        let end = text.iter().take(LONGEST_VERSION).position(|&byte| byte == b' ')?;
        if text.get(end + 1) != Some(&b'(') {
            return None;
        }
        let numbers = std::str::from_utf8(&text[..end]).ok()?;
        let mut parts = numbers.splitn(3, '.');
        let [major, minor] = [parts.next()?, parts.next()?].map(|part| part.parse().ok());
        let micro = parts.next()?;
        let digits = micro.find(|character: char| !character.is_ascii_digit()).unwrap_or(micro.len());
        Some(Self { major: major?, minor: minor?, micro: micro[..digits].parse().ok()? })
    }
}

/// The length of `3.11.10rc2+`, with room to spare.
const LONGEST_VERSION: usize = 16;

impl fmt::Display for PythonVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.micro)
    }
}

/// Whether one thread at a time runs Python code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PythonBuild {
    /// A global lock lets one thread of an interpreter run at a time.
    Gil,
    /// Threads run at the same time.
    FreeThreaded,
}

/// The CPython in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PythonIdentity {
    /// Its version.
    pub version: PythonVersion,
    /// Its build.
    pub build: PythonBuild,
}

impl fmt::Display for PythonIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CPython {}", self.version)?;
        f.write_str(match self.build {
            PythonBuild::Gil => "",
            PythonBuild::FreeThreaded => " free-threaded",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_numbers_and_texts() {
        let version = |major, minor, micro| PythonVersion { major, minor, micro };
        assert_eq!(PythonVersion::of_hex(0x030f_02f0), version(3, 15, 2));
        assert_eq!(PythonVersion::of_text(b"3.8.18 (default, Jan"), Some(version(3, 8, 18)));
        assert_eq!(PythonVersion::of_text(b"3.12.0rc1+ (main"), Some(version(3, 12, 0)));
        for text in [&b"3.8.18"[..], b"3.8 (x", b"3.8.18 x", b" (", b"3.8.x (", b""] {
            assert_eq!(PythonVersion::of_text(text), None);
        }
    }
}
