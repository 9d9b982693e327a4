//! Decides on the members of an archive, and keeps those that are profiles.

use std::fs::File;
use std::io::{self, Cursor, Read, Write as _};
use std::sync::{Arc, Mutex};

use borehole_formats::{ErrorKind, Position, Recovery, Warning};
use borehole_text::{cause, grouped};

use super::allowance::{Allowance, MAX_RATIO, MIN_ALLOWED_BYTES};
use super::member::{ArchiveMember, MemberDamage};
use super::{Archive, ArchiveKind};
use crate::spool::{in_its_folder, temporary_file};
use crate::{Error, Input, InputOptions, Source};

/// The maximum number of members: they are held in memory.
const MAX_MEMBERS: usize = 1 << 16;

/// The maximum number of bytes of a member's name: the longest path of Linux.
pub(super) const MAX_NAME_BYTES: usize = 4096;

/// The maximum number of bytes of all names.
const MAX_NAMES_BYTES: usize = 16 << 20;

/// The number of first bytes that decide on a member: more than detection looks at, whatever the member's compression.
const SNIFFED_BYTES: u64 = 192 << 10;

const BUFFER_BYTES: usize = 64 << 10;

/// An archive that is being unpacked.
pub(super) struct Unpacking<'o> {
    name: String,
    kind: ArchiveKind,
    options: &'o InputOptions,
    allowance: Allowance,
    unpacked: File,
    end: u64,
    members: Vec<(ArchivedName, MemberBytes)>,
    /// All members so far, with those that are no profiles.
    seen: usize,
    name_bytes: usize,
    recovery: Recovery,
}

/// The name of a member in its archive.
type ArchivedName = String;

/// Where the bytes of a member are.
struct MemberBytes {
    start: u64,
    end: u64,
    damage: Option<MemberDamage>,
}

impl<'o> Unpacking<'o> {
    pub(super) fn new(
        name: String,
        kind: ArchiveKind,
        options: &'o InputOptions,
        allowance: Allowance,
    ) -> Result<Self, Error> {
        let unpacked = match temporary_file() {
            Ok(file) => file,
            Err(source) => return Err(Error::Open { name, source }),
        };
        let (members, recovery) = (Vec::new(), Recovery::default());
        Ok(Self {
            name,
            kind,
            options,
            allowance,
            unpacked,
            end: 0,
            members,
            seen: 0,
            name_bytes: 0,
            recovery,
        })
    }

    pub(super) const fn allowance(&self) -> &Allowance {
        &self.allowance
    }

    /// Takes a member of `size_bytes`, if that is known. Returns whether it is whole.
    pub(super) fn member(
        &mut self,
        name: &str,
        size_bytes: Option<u64>,
        content: &mut dyn Read,
    ) -> Result<bool, Error> {
        self.count(name)?;
        let mut prefix = Vec::new();
        let mut fault = content.take(SNIFFED_BYTES).read_to_end(&mut prefix).err();
        if prefix.is_empty() && fault.is_none() {
            return Ok(true);
        }
        let probe = Source::reader(name, Cursor::new(prefix.clone()));
        if let Err(error) = Input::open(probe, self.options) {
            self.skip(name, &reason(&error));
            return self.is_whole(fault);
        }
        let start = self.end;
        self.keep(&prefix)?;
        if fault.is_none() {
            fault = self.keep_all(content)?;
        }
        let is_short = size_bytes.is_some_and(|size_bytes| self.end - start < size_bytes);
        let fault = fault.or_else(|| is_short.then(|| io::ErrorKind::UnexpectedEof.into()));
        let damage = fault.map(|fault| self.damage(name, &fault)).transpose()?;
        let is_whole = damage.is_none();
        let damage = damage.filter(|_| !self.options.read.is_lenient());
        self.members.push((name.to_owned(), MemberBytes { start, end: self.end, damage }));
        Ok(is_whole)
    }

    /// Counts a member before its name is kept anywhere.
    fn count(&mut self, name: &str) -> Result<(), Error> {
        self.seen += 1;
        self.name_bytes = self.name_bytes.saturating_add(name.len());
        if self.seen > MAX_MEMBERS {
            let most = grouped(MAX_MEMBERS as u64);
            return Err(self.too_large(format!("too many members: expected at most {most}")));
        }
        if name.len() > MAX_NAME_BYTES || self.name_bytes > MAX_NAMES_BYTES {
            return Err(self.too_large(format!(
                "too large: expected names of members of at most {} bytes each and {} bytes in total",
                grouped(MAX_NAME_BYTES as u64),
                grouped(MAX_NAMES_BYTES as u64)
            )));
        }
        Ok(())
    }

    /// Notes that a member is not read.
    pub(super) fn skip(&mut self, name: &str, reason: &str) {
        self.recovery.note(Warning::new(format!("skipped {name}: {reason}")));
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.end += bytes.len() as u64;
        self.unpacked.write_all(bytes).map_err(|error| self.unreadable(in_its_folder(error)))
    }

    /// Keeps the rest of a member; returns the fault that ended it.
    fn keep_all(&mut self, content: &mut dyn Read) -> Result<Option<io::Error>, Error> {
        let mut buffer = vec![0; BUFFER_BYTES];
        loop {
            match content.read(&mut buffer) {
                Ok(0) => return Ok(None),
                Ok(count) => self.keep(&buffer[..count])?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Ok(Some(error)),
            }
        }
    }

    /// Whether a member that is not kept was whole.
    fn is_whole(&mut self, fault: Option<io::Error>) -> Result<bool, Error> {
        match fault {
            Some(fault) => self.ends_early(&fault).map(|()| false),
            None => Ok(true),
        }
    }

    /// The damage of a member, which lenient reading reports as a warning.
    fn damage(&mut self, name: &str, fault: &io::Error) -> Result<MemberDamage, Error> {
        self.check_allowance()?;
        let message = match fault.kind() {
            io::ErrorKind::UnexpectedEof => "truncated archive".to_owned(),
            _ => cause(fault).to_lowercase(),
        };
        if self.options.read.is_lenient() {
            self.recovery.warn(Warning::new(format!("{name}: {message}")));
        }
        Ok(MemberDamage { kind: fault.kind(), message })
    }

    /// Ends the archive at a fault between members, or in one that is not kept.
    pub(super) fn ends_early(&mut self, fault: &io::Error) -> Result<(), Error> {
        self.check_allowance()?;
        let message = format!("damaged archive: {}", cause(fault).to_lowercase());
        if self.options.read.is_lenient() {
            self.recovery.warn(Warning::new(message));
            return Ok(());
        }
        Err(self.error(ErrorKind::Malformed, message))
    }

    fn check_allowance(&self) -> Result<(), Error> {
        if self.allowance.is_exceeded() {
            return Err(self.too_large(format!(
                "too large: expected an archive that unpacks to at most {} bytes or {MAX_RATIO} times its size",
                grouped(MIN_ALLOWED_BYTES)
            )));
        }
        Ok(())
    }

    pub(super) fn too_large(&self, message: String) -> Error {
        self.error(ErrorKind::Limit, message)
    }

    /// The error of an archive that is not what it seems.
    pub(super) fn malformed(&self, message: String) -> Error {
        self.error(ErrorKind::Malformed, message)
    }

    fn error(&self, kind: ErrorKind, message: String) -> Error {
        let source = borehole_formats::Error::new(kind, self.kind.name(), Position::Whole, message);
        Error::Read { name: self.name.clone(), source }
    }

    /// The error of the operating system, or of the compression around an archive.
    pub(super) fn unreadable(&self, error: io::Error) -> Error {
        if let Err(error) = self.check_allowance() {
            return error;
        }
        let source = borehole_formats::Error::io(self.kind.name(), Position::Whole, error);
        Error::Read { name: self.name.clone(), source }
    }

    /// The archive, if it has profiles.
    pub(super) fn finish(self) -> Result<Archive, Error> {
        let Self { name, unpacked, mut members, recovery, seen, .. } = self;
        if members.is_empty() {
            let skipped = recovery.notes.first().map(|note| note.message.clone());
            return Err(Error::NoProfiles { name, members: seen, skipped });
        }
        members.sort_by(|(one, _), (other, _)| one.cmp(other));
        let unpacked = Arc::new(Mutex::new(unpacked));
        let members = members.into_iter().map(|(member, MemberBytes { start, end, damage })| {
            let name = format!("{name}/{member}");
            ArchiveMember { name, unpacked: Arc::clone(&unpacked), start, end, damage }
        });
        Ok(Archive { members: members.collect(), name, recovery })
    }
}

/// Why a member is not a profile.
fn reason(error: &Error) -> String {
    match error {
        Error::Foreign { foreign, .. } if foreign.is_archive => {
            "archives in archives are not opened".to_owned()
        }
        Error::Foreign { foreign, .. } => foreign.name.to_owned(),
        Error::NotReadable { format, .. } => format!("{} cannot be read", format.name()),
        Error::Empty { .. } => "empty".to_owned(),
        _ => "unknown format".to_owned(),
    }
}
