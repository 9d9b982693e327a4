//! ELF files that a process has mapped to exhaust whoever reads their symbols.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use borehole_process::{Error, ErrorKind, ForeignProcess as _, MemoryMapping, Process};

use crate::child::Role;

/// A library whose `symbols` names are suffixes of one text of `name_bytes`, and whose table of symbols seems to have
/// `table_bytes`.
fn library(path: &Path, symbols: u32, name_bytes: usize, table_bytes: Option<u64>) {
    let words = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let halves = |halves: &[u32]| halves.iter().flat_map(|half| half.to_le_bytes()).collect::<Vec<u8>>();
    let names = [b"\0", &*vec![b'A'; name_bytes], b"\0"].concat();
    let mut table = vec![0; 24];
    for symbol in 1..symbols {
        // A global function of 8 bytes.
        let place = u32::try_from(name_bytes).unwrap().min(symbol);
        table.extend([halves(&[place, 1 << 16 | 0x12]), words(&[0x1000 + u64::from(symbol), 8])].concat());
    }
    let table_at = (0x1000 + names.len() as u64).next_multiple_of(8);
    let sections_at = table_at + table.len() as u64;
    let section = |kind: u32, at: u64, bytes: u64, link: u32, each: u64| {
        [halves(&[0, kind]), words(&[2, 0, at, bytes]), halves(&[link, 1]), words(&[8, each])].concat()
    };
    let mut head = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0\x01\0\0\0".to_vec();
    head.extend(words(&[0x1000, 64, sections_at]));
    head.extend(b"\0\0\0\0\x40\0\x38\0\x01\0\x40\0\x03\0\x02\0");
    head.extend([halves(&[1, 5]), words(&[0, 0, 0, 0x1000, 0x1000, 0x1000])].concat());
    let file = File::create(path).unwrap();
    file.write_all_at(&head, 0).unwrap();
    file.write_all_at(&names, 0x1000).unwrap();
    file.write_all_at(&table, table_at).unwrap();
    let table_bytes = table_bytes.unwrap_or(table.len() as u64);
    let sections = [section(11, table_at, table_bytes, 2, 24), section(3, 0x1000, names.len() as u64, 0, 0)];
    file.write_all_at(&[vec![0; 64], sections.concat()].concat(), sections_at).unwrap();
    // It has few bytes on the disk.
    file.set_len((table_at + table_bytes).max(sections_at + 3 * 64)).unwrap();
}

/// The number of bytes of the names of its symbols.
fn name_bytes(process: &Process, path: &Path) -> Result<usize, Error> {
    let path = path.as_os_str().as_encoded_bytes().to_owned();
    let at = process.mappings().iter().find(|mapping| mapping.shows_file()).unwrap();
    let mapping = MemoryMapping { path, file_offset: 0, ..at.clone() };
    Ok(process.symbols(&mapping)?.iter().map(|(name, _)| name.len()).sum())
}

#[test]
fn names_that_share_their_bytes_take_no_more_memory_than_they_may() {
    let child = Role::start("wait");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("library.so");
    let process = Process::open(child.id()).unwrap();
    library(&path, 10, 100, None);
    assert_eq!(name_bytes(&process, &path).unwrap(), (92..=100).sum());
    // 200 MB of names in a file of 150 kB.
    library(&path, 2000, 100_000, None);
    assert_eq!(name_bytes(&process, &path).unwrap(), 0);
    // Each name is short, and all together are too many.
    library(&path, 200_000, 1000, None);
    assert!(name_bytes(&process, &path).unwrap() < 2_000_000);
    let error = (0..20).find_map(|_| name_bytes(&process, &path).err()).unwrap();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(
        error.to_string().ends_with("too many symbols: expected at most 128 MiB in all files of a process")
    );
}

#[test]
fn a_table_that_is_mostly_a_hole_is_not_read() {
    let child = Role::start("wait");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("library.so");
    library(&path, 10, 100, Some(24 << 24));
    let process = Process::open(child.id()).unwrap();
    let error = name_bytes(&process, &path).unwrap_err();
    assert!(error.to_string().contains("too many symbols"), "{error}");
}
