//! Where modules and their separate debug files are.
//!
//! Source: GDB's manual, "Debugging Information in Separate Files"; elfutils' manual, `.gnu_debugaltlink`.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use borehole_process::{open_below, open_regular};
use flate2::Crc;

use crate::build_id::BuildId;
use crate::elf_image::{Allowance, ElfImage, ImageSource};
use crate::fault::Fault;
use crate::module::{Module, SymbolSettings};

/// The most bytes of a link to a debug file.
const LINK_BYTES: u64 = 4096 + 64;

/// The bytes of a file to read at a time.
const CHUNK_BYTES: u64 = 1 << 20;

/// Finds files of a module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ModuleFiles<'a> {
    pub(crate) module: &'a Module,
    pub(crate) settings: &'a SymbolSettings,
}

/// A separate debug file.
#[derive(Debug)]
pub(crate) struct DebugFile {
    pub(crate) image: ElfImage,
    pub(crate) path: PathBuf,
}

impl ModuleFiles<'_> {
    /// Opens the file of the module, which must be of the stated build.
    pub(crate) fn open_module(&self) -> Result<ElfImage, Fault> {
        if let Some(bytes) = &self.module.memory {
            return self.checked(ImageSource::Memory(bytes.clone()));
        }
        let path = Path::new(OsStr::from_bytes(&self.module.path));
        let first = open(self.module.root.as_deref(), path).map_err(|error| Fault::of_io(&error));
        let first = first.and_then(ImageSource::file).and_then(|source| self.checked(source));
        first.or_else(|fault| self.open_here(path).or_else(|| self.open_elsewhere(path)).ok_or(fault))
    }

    /// Looks for the module at its path outside the root of its process, which is gone with the process. Only its build ID makes that
    /// file the module.
    fn open_here(&self, path: &Path) -> Option<ElfImage> {
        self.module.root.as_ref().and(self.module.build_id.as_ref())?;
        self.checked(ImageSource::file(open_regular(path).ok()?).ok()?).ok()
    }

    /// Looks for the module in the folders of modules. There a path says nothing, so only its build ID makes a file the module.
    fn open_elsewhere(&self, path: &Path) -> Option<ElfImage> {
        self.module.build_id.as_ref()?;
        let below = path.strip_prefix("/").unwrap_or(path);
        let places = self.settings.module_folders.iter().flat_map(|folder| {
            [Some(folder.join(below)), path.file_name().map(|name| folder.join(name))].into_iter().flatten()
        });
        let mut opened = places.filter_map(|place| open_regular(&place).ok());
        opened.find_map(|file| self.checked(ImageSource::file(file).ok()?).ok())
    }

    fn checked(&self, source: ImageSource) -> Result<ElfImage, Fault> {
        let image = ElfImage::read(source)?;
        match &self.module.build_id {
            Some(expected) if image.build_id.as_ref() != Some(expected) => Err(other_build(expected, &image)),
            _ => Ok(image),
        }
    }

    /// The debug file with this build ID.
    pub(crate) fn debug_of_build(&self, id: &BuildId) -> Option<DebugFile> {
        let place = build_id_place(id)?;
        self.first(self.settings.debug_folders.iter().map(|folder| folder.join(&place)), |image| {
            image.build_id.as_ref() == Some(id)
        })
    }

    /// The debug file of a module: by its build ID, else by the link in it.
    pub(crate) fn debug_of(&self, image: &ElfImage) -> Option<DebugFile> {
        let by_build = image.build_id.as_ref().and_then(|id| self.debug_of_build(id));
        by_build.or_else(|| self.debug_of_link(image))
    }

    fn debug_of_link(&self, image: &ElfImage) -> Option<DebugFile> {
        let (name, rest) = link(image, b".gnu_debuglink")?;
        // The checksum follows at the next multiple of 4.
        let at = (name.len() + 1).next_multiple_of(4) - (name.len() + 1);
        let checksum: [u8; 4] = rest.get(at..at + 4)?.try_into().ok()?;
        let checksum = match image.endian {
            object::Endianness::Little => u32::from_le_bytes(checksum),
            object::Endianness::Big => u32::from_be_bytes(checksum),
        };
        let name = Path::new(OsStr::from_bytes(&name));
        if name.components().count() != 1 || name.file_name().is_none() {
            return None;
        }
        let folder = Path::new(OsStr::from_bytes(&self.module.path)).parent()?;
        let beside = [folder.join(name), folder.join(".debug").join(name)];
        let below = folder.strip_prefix("/").unwrap_or(folder);
        let central = self.settings.debug_folders.iter().map(|place| place.join(below).join(name));
        self.first(beside.into_iter().chain(central), |debug| match (&debug.build_id, &image.build_id) {
            (Some(one), Some(other)) => one == other,
            _ => self.checksum(&debug.source).is_some_and(|found| found == checksum),
        })
    }

    /// The file with the parts that several debug files share.
    pub(crate) fn supplement_of(&self, debug: &ElfImage, path: &Path) -> Option<DebugFile> {
        let (name, id) = link(debug, b".gnu_debugaltlink")?;
        let id = BuildId::new(&id)?;
        let by_name = plain(&path.parent()?.join(OsStr::from_bytes(&name)));
        let by_name = self.first([by_name].into_iter(), |image| image.build_id.as_ref() == Some(&id));
        by_name.or_else(|| self.debug_of_build(&id))
    }

    /// The first file that can be read and is the wanted one, in the file system of the process, then in ours.
    fn first(
        &self,
        paths: impl Iterator<Item = PathBuf>,
        is_wanted: impl Fn(&ElfImage) -> bool,
    ) -> Option<DebugFile> {
        paths.flat_map(|path| [(self.module.root.as_deref(), path.clone()), (None, path)]).find_map(
            |(root, path)| {
                let image = ElfImage::read(ImageSource::file(open(root, &path).ok()?).ok()?).ok()?;
                is_wanted(&image).then_some(DebugFile { image, path })
            },
        )
    }

    /// The checksum of a whole file; `None` if it is too large to be used.
    fn checksum(&self, source: &ImageSource) -> Option<u32> {
        let mut checksum = Crc::new();
        let mut allowance = Allowance::new(self.settings.loaded_bytes);
        let mut offset = 0;
        while offset < source.length() {
            let bytes =
                source.read(offset, CHUNK_BYTES.min(source.length() - offset), &mut allowance).ok()?;
            checksum.update(&bytes);
            offset += bytes.len() as u64;
        }
        Some(checksum.sum())
    }
}

fn open(root: Option<&Path>, path: &Path) -> io::Result<File> {
    match root {
        Some(root) => open_below(root, path.as_os_str().as_bytes()),
        None => open_regular(path),
    }
}

fn other_build(expected: &BuildId, image: &ElfImage) -> Fault {
    let found = image.build_id.as_ref().map_or_else(|| "none".to_owned(), ToString::to_string);
    Fault::new(crate::fault::Unresolved::OtherBuild, format!("expected build ID {expected}, found {found}"))
}

/// The path below a folder of debug files.
fn build_id_place(id: &BuildId) -> Option<PathBuf> {
    let digits = id.to_string();
    let (first, rest) = digits.split_at_checked(2).filter(|(_, rest)| !rest.is_empty())?;
    Some(Path::new(".build-id").join(first).join(format!("{rest}.debug")))
}

/// The file name in a section with a link, and the bytes after its zero.
fn link(image: &ElfImage, section: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let content = image.content(image.section(section)?, &mut Allowance::new(LINK_BYTES)).ok()?;
    let end = memchr::memchr(0, &content).filter(|&end| end > 0)?;
    Some((content[..end].to_vec(), content[end + 1..].to_vec()))
}

/// A path without `..`, whatever links there are.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lose_their_way_back() {
        let expected = Path::new("/usr/lib/debug/.dwz/x.debug");
        assert_eq!(plain(Path::new("/usr/lib/debug/.build-id/ab/../../.dwz/./x.debug")), expected);
        assert_eq!(plain(Path::new("/../../etc")), Path::new("/etc"));
    }

    #[test]
    fn build_ids_name_their_debug_file() {
        let place = |digits: &[u8]| build_id_place(&BuildId::parse_hex(digits).unwrap());
        assert_eq!(place(b"0aff01"), Some(PathBuf::from(".build-id/0a/ff01.debug")));
        assert_eq!(place(b"0a"), None);
    }
}
