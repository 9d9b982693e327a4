//! Names of addresses from text: the kernel's symbols, and maps of compiled code that programs write for perf.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use borehole_process::open_below;

use crate::names::LONGEST_NAME;

/// Ranges of addresses with their names.
#[derive(Clone, Debug, Default)]
pub struct AddressNames {
    /// Sorted by start; of equal starts the last one stated.
    ranges: Vec<NamedRange>,
    /// All names, end to end.
    names: String,
    left_out: u64,
}

#[derive(Clone, Copy, Debug)]
struct NamedRange {
    start: u64,
    end: u64,
    /// The name's place in all names.
    name: (usize, usize),
}

impl AddressNames {
    /// The maximum number of names. A kernel has a quarter of a million.
    const MAX_NAMES: usize = 4 << 20;

    /// The maximum bytes of a text. A kernel's is 15 MB.
    const TEXT_BYTES: u64 = 256 << 20;

    /// The maximum size of a function of the kernel, which does not state sizes. A name does not reach further.
    const KERNEL_FUNCTION_BYTES: u64 = 1 << 20;

    /// The ranges before an address to look at, where ranges overlap.
    const MAX_BACK: usize = 64;

    /// Reads the symbols of the running kernel.
    ///
    /// # Errors
    /// If the system hides them, as it does from users without privileges.
    pub fn kernel() -> io::Result<Self> {
        let names = Self::parse_kallsyms(&limited(File::open("/proc/kallsyms")?)?);
        if names.ranges.is_empty() {
            let text = "the kernel hides its addresses; run as root, or set kernel.kptr_restrict to 0 or 1";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
        Ok(names)
    }

    /// Reads the map of compiled code that a process has written for perf, in its own `/tmp`.
    ///
    /// # Errors
    /// If there is none, or it belongs neither to the user of the process nor to root: `/tmp` is open to all.
    pub fn perf_map(process: i32) -> io::Result<Self> {
        let folder = PathBuf::from(format!("/proc/{process}"));
        let status = std::fs::read(folder.join("status"))?;
        let number = innermost_number(&status).unwrap_or(process);
        let file = open_below(&folder.join("root"), format!("/tmp/perf-{number}.map").as_bytes())?;
        let (owner, user) = (file.metadata()?.uid(), std::fs::metadata(&folder)?.uid());
        if owner != user && owner != 0 {
            let text = format!("perf-{number}.map belongs to user {owner}, the process to user {user}");
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
        Ok(Self::parse_perf_map(&limited(file)?))
    }

    /// Parses `/proc/kallsyms`. Lines without an address, and those of data, are skipped.
    ///
    /// Source: Linux, kernel/kallsyms.c, `s_show`: address, type, name, and the module in brackets.
    #[must_use]
    pub fn parse_kallsyms(text: &[u8]) -> Self {
        let mut names = Self::default();
        for line in text.split(|&byte| byte == b'\n') {
            let mut fields = line.split(u8::is_ascii_whitespace);
            let (Some(start), Some(kind), Some(name)) =
                (fields.next().and_then(hex), fields.next(), fields.next())
            else {
                continue;
            };
            let ends_code = matches!(name, b"_etext" | b"_einittext" | b"_end");
            if start != 0 && (ends_code || matches!(kind, b"t" | b"T" | b"w" | b"W")) {
                names.add(start, start, if ends_code { b"" } else { name });
            }
        }
        names.sort();
        names.extend_to_next();
        names
    }

    /// Parses a map of compiled code. Lines that are not as expected are counted in [`left_out`](Self::left_out).
    ///
    /// Source: Linux, tools/perf/Documentation/jit-interface.txt: start and size in hexadecimal, and a name.
    #[must_use]
    pub fn parse_perf_map(text: &[u8]) -> Self {
        let mut names = Self::default();
        for line in text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            let mut fields = line.splitn(3, |&byte| byte == b' ');
            let (start, size) = (fields.next().and_then(hex), fields.next().and_then(hex));
            match (start.zip(size), fields.next()) {
                (Some((start, size)), Some(name)) if size > 0 && !name.trim_ascii().is_empty() => {
                    names.add(start, start.saturating_add(size), name.trim_ascii());
                }
                _ => names.left_out += 1,
            }
        }
        names.sort();
        names
    }

    fn add(&mut self, start: u64, end: u64, name: &[u8]) {
        if self.ranges.len() == Self::MAX_NAMES || borehole_memory::check().is_err() {
            self.left_out += 1;
            return;
        }
        let from = self.names.len();
        self.names.push_str(&String::from_utf8_lossy(&name[..name.len().min(LONGEST_NAME)]));
        self.ranges.push(NamedRange { start, end, name: (from, self.names.len()) });
    }

    fn sort(&mut self) {
        // Of equal starts the last stays: a compiler that uses memory again states it again.
        self.ranges.reverse();
        self.ranges.sort_by_key(|range| range.start);
        self.ranges.dedup_by_key(|range| range.start);
    }

    fn extend_to_next(&mut self) {
        let mut next = u64::MAX;
        for range in self.ranges.iter_mut().rev() {
            range.end = next.min(range.start.saturating_add(Self::KERNEL_FUNCTION_BYTES));
            next = range.start;
        }
    }

    /// The name of an address, and the bytes from the start of its range.
    #[must_use]
    pub fn find(&self, address: u64) -> Option<(&str, u64)> {
        let behind = self.ranges.partition_point(|range| range.start <= address);
        let before = self.ranges[..behind].iter().rev().take(Self::MAX_BACK);
        let range = before.into_iter().find(|range| address < range.end)?;
        let name = &self.names[range.name.0..range.name.1];
        (!name.is_empty()).then_some((name, address - range.start))
    }

    /// The number of names.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The lines that were not understood, or were too many.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }
}

/// Reads a text, but not more than the longest that makes sense.
fn limited(file: File) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    file.take(AddressNames::TEXT_BYTES).read_to_end(&mut text)?;
    Ok(text)
}

/// The number of a process in its innermost namespace.
///
/// Source: Linux, `Documentation/filesystems/proc.rst`, table 1-2.
fn innermost_number(status: &[u8]) -> Option<i32> {
    let line = status.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(b"NSpid:"))?;
    std::str::from_utf8(line).ok()?.split_ascii_whitespace().last()?.parse().ok()
}

fn hex(digits: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(digits).ok()?;
    u64::from_str_radix(digits.strip_prefix("0x").unwrap_or(digits), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_the_kernel_reach_to_the_next_and_not_beyond_its_code() {
        let text = b"\
ffffffff81000000 T _stext
ffffffff81000100 t do_one
ffffffff81000180 D some_data
ffffffff81000200 W do_two
ffffffff81000300 T _etext
ffffffffc0001000 t in_module\t[ext4]
0000000000000000 T hidden
nonsense
";
        let names = AddressNames::parse_kallsyms(text);
        for (address, expected) in [
            (0xffff_ffff_8100_0000, Some(("_stext", 0))),
            (0xffff_ffff_8100_01ff, Some(("do_one", 0xff))),
            (0xffff_ffff_8100_0210, Some(("do_two", 0x10))),
            (0xffff_ffff_8100_0300, None),
            (0xffff_ffff_c000_1001, Some(("in_module", 1))),
            (0xffff_ffff_c020_0000, None),
            (0, None),
        ] {
            assert_eq!(names.find(address), expected, "{address:#x}");
        }
    }

    #[test]
    fn compiled_code_that_replaced_other_code_has_its_name() {
        let text = b"1000 40 first\n2000 100 lambda at a b.js:3\n1000 10 second\n0x2010 8 inner\nbad\n3000 0 empty\n";
        let names = AddressNames::parse_perf_map(text);
        for (address, expected) in [
            (0x1000, Some(("second", 0))),
            (0x1020, None),
            (0x2013, Some(("inner", 3))),
            (0x2020, Some(("lambda at a b.js:3", 0x20))),
            (0x2100, None),
        ] {
            assert_eq!(names.find(address), expected, "{address:#x}");
        }
        assert_eq!((names.left_out(), names.len()), (2, 3));
    }

    #[test]
    fn a_process_in_a_container_has_its_number_there() {
        assert_eq!(innermost_number(b"Name:\tx\nNSpid:\t4711\t12\t1\nUid:\t0\n"), Some(1));
        assert_eq!(innermost_number(b"Name:\tx\n"), None);
    }
}
