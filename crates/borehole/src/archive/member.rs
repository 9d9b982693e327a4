//! A profile in an archive.

use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};
use std::sync::{Arc, Mutex, PoisonError};

use crate::Source;

/// A profile that was unpacked from an archive. It can be read any number of times.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "folded")] {
/// use borehole::model::Count;
/// use borehole::{Archive, Input, InputOptions, Source, Unpacked, import_all};
///
/// let (mut archive, stacks) = (tar::Builder::new(Vec::new()), b"main;query 3\n");
/// let mut header = tar::Header::new_gnu();
/// header.set_size(stacks.len() as u64);
/// archive.append_data(&mut header, "api/cpu.folded", &stacks[..])?;
///
/// let archive = Source::reader("run.tar", std::io::Cursor::new(archive.into_inner()?));
/// let options = InputOptions::default();
/// let Unpacked::Archive(archive) = Archive::unpack(archive, &options)? else { panic!("an archive") };
/// for member in archive.members() {
///     assert_eq!(member.name(), "run.tar/api/cpu.folded");
///     let mut count = Count::default();
///     import_all([Input::open(member.source(), &options)?], &mut count)?;
///     assert_eq!(count.samples, 3);
/// }
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
