//! A profile in an archive.

use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};
use std::sync::{Arc, Mutex, PoisonError};

use crate::Source;

/// A profile that was unpacked from an archive. It can be read any number of times.
#[derive(Clone, Debug)]
pub struct ArchiveMember {
    /// The name of the archive, and that in the archive: `run.zip/api/cpu.pb.gz`.
    pub(super) name: String,
    pub(super) unpacked: Arc<Mutex<File>>,
    pub(super) start: u64,
    pub(super) end: u64,
    /// The fault behind its last byte.
    pub(super) damage: Option<MemberDamage>,
}

/// A fault of a member, as an I/O error that can be returned several times.
#[derive(Clone, Debug)]
pub(super) struct MemberDamage {
    pub(super) kind: io::ErrorKind,
    pub(super) message: String,
}

impl ArchiveMember {
    /// The name for messages: that of the archive, and that in the archive.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The bytes. The source ends with an error if the member is damaged.
    #[must_use]
    pub fn source(&self) -> Source {
        let Self { name, unpacked, start, end, damage } = self.clone();
        let reader = MemberReader { unpacked, at: start, end, damage };
        Source::resumed(name, Some(end - start), Box::new(reader), None, None)
    }
}

/// Reads a part of the file that holds all members.
struct MemberReader {
    unpacked: Arc<Mutex<File>>,
    at: u64,
    end: u64,
    damage: Option<MemberDamage>,
}

impl Read for MemberReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.at == self.end {
            let damage = self.damage.take();
            return damage.map_or(Ok(0), |MemberDamage { kind, message }| Err(io::Error::new(kind, message)));
        }
        // Readers of other members move in the same file.
        let mut file = self.unpacked.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(self.at))?;
        let count = (&mut *file).take(self.end - self.at).read(out)?;
        self.at += count as u64;
        Ok(count)
    }
}
