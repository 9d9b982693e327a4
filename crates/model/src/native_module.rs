//! Files of native code in the metadata of recordings.

use std::fmt;

/// A file of native code that a recording has met: the value of the metadata [`NativeModule::KEY`].
///
/// Its text is the build ID in hexadecimal digits or `-`, the range of the code in the file in hexadecimal digits, and the path, with
/// spaces between.
///
/// # Examples
///
/// ```
/// use borehole_model::NativeModule;
///
/// let module = NativeModule::parse("5f3a01 1000-9000 /usr/bin/php").unwrap();
/// assert_eq!((module.name(), module.start), ("php", 0x1000));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NativeModule {
    /// The build ID. Absent: empty.
    pub build_id: String,
    /// The offset in the file at which its code begins.
    pub start: u64,
    /// The offset behind its code.
    pub end: u64,
    /// The path, as the process sees it.
    pub path: String,
}

impl NativeModule {
    /// The key of the metadata.
    pub const KEY: &str = "native.module";

    /// Parses the text of a module; `None` if it is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (build_id, rest) = text.split_once(' ')?;
        let (range, path) = rest.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let hex = |digits| u64::from_str_radix(digits, 16).ok();
        let (start, end) = (hex(start)?, hex(end)?);
        let build_id = if build_id == "-" { String::new() } else { build_id.to_owned() };
        (start < end && !path.is_empty()).then(|| Self { build_id, start, end, path: path.to_owned() })
    }

    /// Both as one, if they are parts of the same file, which may be mapped apart.
    pub(crate) fn joined(&self, other: &Self) -> Option<Self> {
        let is_same = self.build_id == other.build_id && self.path == other.path;
        let (start, end) = (self.start.min(other.start), self.end.max(other.end));
        is_same.then(|| Self { start, end, ..self.clone() })
    }

    /// The part of the path by which frames name it.
    #[must_use]
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

impl fmt::Display for NativeModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { build_id, start, end, path } = self;
        let build_id = if build_id.is_empty() { "-" } else { build_id };
        write!(f, "{build_id} {start:x}-{end:x} {path}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_read_as_they_are_written_and_other_texts_are_none() {
        for text in ["5f3a01 1000-9000 /usr/bin/a program", "- 0-1 /x"] {
            assert_eq!(NativeModule::parse(text).unwrap().to_string(), text);
        }
        for text in ["", "5f 1000 /x", "5f 9-8 /x", "5f 1-2 ", "5f x-y /z"] {
            assert_eq!(NativeModule::parse(text), None, "{text}");
        }
    }
}
