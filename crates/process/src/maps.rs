//! The memory mappings of a process.

use crate::error::{Error, ErrorKind};

/// One mapping: a line of `/proc/PID/maps`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryMapping {
    /// The first address.
    pub start: u64,
    /// The address after the last one.
    pub end: u64,
    /// The offset in the file that is mapped at `start`.
    pub file_offset: u64,
    /// Whether it is readable.
    pub readable: bool,
    /// Whether it is writable.
    pub writable: bool,
    /// Whether it is executable.
    pub executable: bool,
    /// Whether other processes see writes to it.
    pub shared: bool,
    /// The path of the file as the process sees it, without the mark of a deleted file; or a name in brackets, or empty.
    pub path: Vec<u8>,
    /// Whether the file has been deleted or replaced since it was mapped.
    pub deleted: bool,
}

/// The mark that the kernel appends to the path of a deleted file.
pub(crate) const DELETED: &[u8] = b" (deleted)";

impl MemoryMapping {
    /// Parses a line of `/proc/PID/maps`.
    ///
    /// Source: Linux, `Documentation/filesystems/proc.rst`, section 1.1.
    fn parse(line: &[u8]) -> Option<Self> {
        let (range, rest) = split_field(line);
        let (permissions, rest) = split_field(rest);
        let (file_offset, rest) = split_field(rest);
        let (_device, rest) = split_field(rest);
        let (_inode, path) = split_field(rest);
        let dash = range.iter().position(|&byte| byte == b'-')?;
        let path = path.trim_ascii_start();
        let has = |flag: u8| permissions.contains(&flag);
        Some(Self {
            start: parse_hex(&range[..dash])?,
            end: parse_hex(&range[dash + 1..])?,
            file_offset: parse_hex(file_offset)?,
            readable: has(b'r'),
            writable: has(b'w'),
            executable: has(b'x'),
            shared: has(b's'),
            path: unescape(path.strip_suffix(DELETED).unwrap_or(path)),
            deleted: path.ends_with(DELETED),
        })
    }

    /// Whether a file of the file system is mapped.
    #[must_use]
    pub fn shows_file(&self) -> bool {
        self.path.starts_with(b"/")
    }
}

/// The mappings of a process in order of their addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mappings(Vec<MemoryMapping>);

impl Mappings {
    /// Creates the list from mappings in order of their addresses.
    #[must_use]
    pub fn new(mut mappings: Vec<MemoryMapping>) -> Self {
        mappings.sort_by_key(|mapping| mapping.start);
        Self(mappings)
    }

    /// Parses `/proc/PID/maps`.
    ///
    /// # Errors
    /// If a line is invalid.
    pub fn parse(text: &[u8]) -> Result<Self, Error> {
        let lines = text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        let parse = |line| MemoryMapping::parse(line).ok_or_else(|| malformed(line));
        Ok(Self::new(lines.map(parse).collect::<Result<_, _>>()?))
    }

    /// Iterates over the mappings.
    pub fn iter(&self) -> std::slice::Iter<'_, MemoryMapping> {
        self.0.iter()
    }

    /// The mapping that contains `address`.
    #[must_use]
    pub fn at(&self, address: u64) -> Option<&MemoryMapping> {
        let behind = self.0.partition_point(|mapping| mapping.start <= address);
        self.0[..behind].last().filter(|mapping| address < mapping.end)
    }
}

impl<'a> IntoIterator for &'a Mappings {
    type Item = &'a MemoryMapping;
    type IntoIter = std::slice::Iter<'a, MemoryMapping>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

fn malformed(line: &[u8]) -> Error {
    let line = String::from_utf8_lossy(line);
    Error::new(ErrorKind::Malformed, format!("expected a mapping, found {line:?}"))
}

fn split_field(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|&byte| byte == b' ').unwrap_or(text.len());
    (&text[..end], text.get(end + 1..).unwrap_or_default())
}

pub(crate) fn parse_hex(digits: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// Decodes the octal numbers that the kernel writes for line breaks in a path.
fn unescape(path: &[u8]) -> Vec<u8> {
    const LINE_BREAK: &[u8] = b"\\012";
    let mut plain = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some(at) = rest.windows(LINE_BREAK.len()).position(|part| part == LINE_BREAK) {
        plain.extend_from_slice(&rest[..at]);
        plain.push(b'\n');
        rest = &rest[at + LINE_BREAK.len()..];
    }
    plain.extend_from_slice(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &[u8] = b"\
7f1234560000-7f1234570000 r--p 00001000 08:01 123                        /usr/lib/a b.so
555500000000-555500001000 r-xp 00000000 00:00 0                          /tmp/new\\012line (deleted)
7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0                          [stack]
7fff00000000-7fff00001000 rw-s 00000000 00:00 0 
";

    #[test]
    fn lines_are_taken_apart() {
        let mappings = Mappings::parse(MAPS).unwrap();
        let all: Vec<_> = mappings.iter().collect();
        assert_eq!(all.len(), 4);
        assert_eq!((&*all[0].path, all[0].deleted, all[0].executable), (&b"/tmp/new\nline"[..], true, true));
        assert_eq!((&*all[1].path, all[1].file_offset), (&b"/usr/lib/a b.so"[..], 0x1000));
        assert_eq!((&*all[2].path, all[2].shows_file()), (&b"[stack]"[..], false));
        assert_eq!((&*all[3].path, all[3].shared, all[3].writable), (&b""[..], true, true));
    }

    #[test]
    fn addresses_find_their_mapping() {
        let mappings = Mappings::parse(MAPS).unwrap();
        let found = |address| mappings.at(address).map(|mapping| mapping.start);
        assert_eq!(found(0x5555_0000_0fff), Some(0x5555_0000_0000));
        assert_eq!(found(0x5555_0000_1000), None);
        assert_eq!(found(0x7ffd_0000_0000), Some(0x7ffd_0000_0000));
        assert_eq!(found(0), None);
    }

    #[test]
    fn other_text_is_refused_with_the_line() {
        let error = Mappings::parse(b"hello\n").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed);
        assert!(error.to_string().contains("hello"), "{error}");
    }
}
