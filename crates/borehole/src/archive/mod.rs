//! Archives of profiles: zip files, and tar files of any compression that is read.
//!
//! The members that are profiles are unpacked into one temporary file, so that each can be read as often as a file, also
//! those of an archive that arrives through a pipe. What hostile archives could make large has limits with names.

mod allowance;
mod member;
mod tarred;
mod unpacking;
mod zipped;

use std::fs::File;
use std::io::{self, Cursor, Read, Seek as _, Write as _};

use borehole_formats::Recovery;
use borehole_wire::envelope::Envelope;

use self::allowance::{Allowance, Allowed, Counted};
pub use self::member::ArchiveMember;
use self::unpacking::Unpacking;
use crate::input::{Beginning, beginning};
use crate::mapped::Mappable;
use crate::spool::temporary_file;
use crate::{Error, InputOptions, Source};

/// The profiles in an archive.
///
/// # Examples
///
/// ```
/// # #[cfg(all(feature = "rbt", feature = "archives"))] {
/// use borehole::{Archive, Input, InputOptions, Source, Unpacked};
///
/// let options = InputOptions::default();
/// let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/data/native.rbt");
/// // A profile is no archive, and is given back.
/// let Unpacked::Source(source) = Archive::unpack(Source::path(trace)?, &options)? else { panic!("no archive") };
/// assert_eq!(Input::open(source, &options)?.format(), borehole::Format::Rbt);
/// # }
/// # Ok::<(), borehole::Error>(())
/// ```
pub struct Archive {
    name: String,
    members: Vec<ArchiveMember>,
    recovery: Recovery,
}

/// A source that may have been an archive.
pub enum Unpacked {
    /// It was one, and these are its profiles.
    Archive(Archive),
    /// It was none.
    Source(Source),
}

/// The kind of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ArchiveKind {
    Zip,
    Tar,
}

impl ArchiveKind {
    /// The kind of an archive that begins with these bytes.
    fn of(bytes: &[u8]) -> Option<Self> {
        if bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06") {
            return Some(Self::Zip);
        }
        (bytes.get(257..262) == Some(b"ustar")).then_some(Self::Tar)
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Zip => "zip",
            Self::Tar => "tar",
        }
    }
}

impl Archive {
    /// Unpacks the profiles of `source` if it is an archive, and gives it back otherwise.
    ///
    /// Profiles are detected as [`Input::open`](crate::Input::open) detects them, with the same options. Members that are no
    /// profiles are skipped; [`Archive::recovery`] says which, and why. Strictly read, a damaged member ends with an error when
    /// it is read.
    ///
    /// # Errors
    /// If the source cannot be read, or if the archive is damaged, exceeds a limit, or has no profiles.
    pub fn unpack(source: Source, options: &InputOptions) -> Result<Unpacked, Error> {
        let (mappable, mut source) = source.split_mappable();
        let (size_bytes, path) = (source.size_bytes(), source.take_path());
        let (name, mut reader) = source.into_parts();
        let prefix = match beginning(&mut reader) {
            Ok(prefix) => prefix,
            Err(source) => return Err(Error::Open { name, source }),
        };
        let Some(kind) = ArchiveKind::of(Beginning::of(&prefix).bytes()) else {
            let rest = Box::new(Cursor::new(prefix).chain(reader));
            return Ok(Unpacked::Source(Source::resumed(name, size_bytes, rest, mappable, path)));
        };
        let whole = mappable.filter(|_| ArchiveKind::of(&prefix) == Some(kind)).and_then(Mappable::whole);
        let input = Cursor::new(prefix).chain(reader);
        let allowance = Allowance::default();
        let mut unpacking = Unpacking::new(name, kind, options, allowance.clone())?;
        match (kind, whole) {
            (ArchiveKind::Zip, Some(file)) => zipped::unpack(file, &mut unpacking)?,
            (ArchiveKind::Zip, None) => {
                let file = spooled(plain(input, &allowance)).map_err(|error| unpacking.unreadable(error))?;
                zipped::unpack(file, &mut unpacking)?;
            }
            (ArchiveKind::Tar, _) => tarred::unpack(plain(input, &allowance), &mut unpacking)?,
        }
        unpacking.finish().map(Unpacked::Archive)
    }

    /// The name for messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The profiles, in the order of their names.
    #[must_use]
    pub fn members(&self) -> &[ArchiveMember] {
        &self.members
    }

    /// The notes on members that were skipped, and the warnings about damage that was read over.
    #[must_use]
    pub const fn recovery(&self) -> &Recovery {
        &self.recovery
    }
}

/// The bytes of an archive, without the compression around it.
fn plain(input: impl Read, allowance: &Allowance) -> impl Read {
    Allowed::new(Envelope::new(Counted::new(input, allowance.clone())), allowance.clone())
}

/// A file with all bytes of `input`: the directory of a zip archive is at its end.
fn spooled(mut input: impl Read) -> io::Result<File> {
    let mut file = temporary_file()?;
    io::copy(&mut input, &mut file)?;
    file.flush()?;
    file.rewind()?;
    Ok(file)
}
