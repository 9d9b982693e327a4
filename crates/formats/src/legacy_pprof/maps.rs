//! The list of mapped files at the end of a profile, in the form of `/proc/PID/maps`.

/// A mapped file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MappedFile {
    start: u64,
    end: u64,
    file_offset: u64,
    pub(super) name: Vec<u8>,
}

impl MappedFile {
    /// Parses `START-END PERMISSIONS OFFSET DEVICE INODE NAME`; `None` for another line, and for memory without a file.
    ///
    /// Source: Linux, `Documentation/filesystems/proc.rst`.
    pub(super) fn parse(line: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(line.trim_ascii()).ok()?;
        let mut words = text.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let hexadecimal = |digits: &str| u64::from_str_radix(digits, 16).ok();
        let (_permissions, file_offset) = (words.next()?, hexadecimal(words.next()?)?);
        let (_device, inode) = (words.next()?, words.next()?);
        let after = inode.as_ptr() as usize - text.as_ptr() as usize + inode.len();
        let name = text[after..].trim_start().as_bytes().to_vec();
        let file = Self { start: hexadecimal(start)?, end: hexadecimal(end)?, file_offset, name };
        (!file.name.is_empty()).then_some(file)
    }

    /// Converts an address of the process to one of the file.
    pub(super) const fn in_file(&self, address: u64) -> u64 {
        address.wrapping_sub(self.start).wrapping_add(self.file_offset)
    }
}

/// The file at an address. `files` are in order of address.
pub(super) fn find(files: &[MappedFile], address: u64) -> Option<&MappedFile> {
    let after = files.partition_point(|file| file.start <= address);
    files[..after].last().filter(|file| address < file.end)
}

/// Puts files in order of address.
pub(super) fn sort(files: &mut [MappedFile]) {
    files.sort_by_key(|file| file.start);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_by_address() {
        let line = |text: &str| MappedFile::parse(text.as_bytes());
        assert_eq!(line("7f00-7f10 rw-p 00000000 00:00 0"), None);
        assert_eq!(line("MAPPED_LIBRARIES:"), None);
        let mut files = vec![
            line("7f20-7f30 r-xp 00000100 00:00 9    /lib/a b.so").unwrap(),
            line("  0400-0500 r-xp 00000000 08:01 3 /bin/x").unwrap(),
        ];
        sort(&mut files);
        assert_eq!(files[1].name, b"/lib/a b.so");
        assert_eq!(find(&files, 0x7f21).map(|file| file.in_file(0x7f21)), Some(0x101));
        assert_eq!(find(&files, 0x7f30), None);
        assert_eq!(find(&files, 0x3ff), None);
    }
}
