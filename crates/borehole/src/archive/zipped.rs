//! The members of zip archives.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::rc::Rc;

use zip::result::ZipError;
use zip::{SUPPORTED_COMPRESSION_METHODS, ZipArchive};

use super::allowance::Allowed;
use super::unpacking::Unpacking;
use crate::Error;

/// The maximum number of bytes read to find and read the list of members: the list is held in memory.
const MAX_DIRECTORY_BYTES: u64 = 16 << 20;

/// Unpacks the profiles of an archive.
pub(super) fn unpack(file: File, unpacking: &mut Unpacking<'_>) -> Result<(), Error> {
    if let Ok(found) = file.metadata() {
        unpacking.allowance().add_packed(found.len());
    }
    let left = Rc::new(Cell::new(MAX_DIRECTORY_BYTES));
    let archive = ZipArchive::new(UpTo { file, left: Rc::clone(&left) });
    let mut archive = archive.map_err(|error| match error {
        ZipError::Io(_) if left.get() == 0 => unpacking.too_large(format!(
            "too large: expected a list of members of at most {MAX_DIRECTORY_BYTES} bytes"
        )),
        ZipError::Io(error) => unpacking.unreadable(error),
        error => unpacking.malformed(described(&error)),
    })?;
    left.set(u64::MAX);
    for index in 0..archive.len() {
        let name = archive.name_for_index(index).and_then(Result::ok).unwrap_or_default().into_owned();
        match archive.by_index(index) {
            Ok(member)
                if member.is_file() && !SUPPORTED_COMPRESSION_METHODS.contains(&member.compression()) =>
            {
                let found = member.compression();
                let reason = format!("unsupported compression: expected stored or deflated, found {found}");
                drop(member);
                unpacking.skip(&name, &reason);
            }
            Ok(member) if member.is_file() => {
                let allowance = unpacking.allowance().clone();
                unpacking.member(&name, None, &mut Allowed::new(member, allowance))?;
            }
            Ok(_) => {}
            Err(error) => unpacking.skip(&name, &described(&error)),
        }
    }
    Ok(())
}

/// The fault of an archive or a member, in lower case.
fn described(error: &ZipError) -> String {
    match error {
        ZipError::UnsupportedArchive(ZipError::PASSWORD_REQUIRED) | ZipError::InvalidPassword => {
            "encrypted members are not unpacked".to_owned()
        }
        error => error.to_string().to_lowercase(),
    }
}

/// A file of which only so many bytes can be read.
struct UpTo {
    file: File,
    left: Rc<Cell<u64>>,
}

impl Read for UpTo {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(out)?;
        self.left.set(self.left.get().saturating_sub(count as u64));
        if count > 0 && self.left.get() == 0 {
            return Err(io::Error::other("too large"));
        }
        Ok(count)
    }
}

impl Seek for UpTo {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}
