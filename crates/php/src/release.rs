//! The release and build of PHP.

use std::fmt;

/// A minor version of PHP whose structures are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PhpRelease {
    column: usize,
}

/// The known releases with their module API numbers, in the order of the columns of the layouts.
///
/// Source: `ZEND_MODULE_API_NO` in `Zend/zend_modules.h` of each release; 8.6 as of its third release candidate.
const RELEASES: [(u8, u8, u32); PhpRelease::COUNT] = [
    (7, 0, 20_151_012),
    (7, 1, 20_160_303),
    (7, 2, 20_170_718),
    (7, 3, 20_180_731),
    (7, 4, 20_190_902),
    (8, 0, 20_200_930),
    (8, 1, 20_210_902),
    (8, 2, 20_220_829),
    (8, 3, 20_230_831),
    (8, 4, 20_240_924),
    (8, 5, 20_250_925),
    (8, 6, 20_260_924),
];

impl PhpRelease {
    /// The number of known releases.
    pub(crate) const COUNT: usize = 12;

    /// The release with the module API number `api`; `None` if unknown.
    #[must_use]
    pub fn of_module_api(api: u32) -> Option<Self> {
        RELEASES.iter().position(|release| release.2 == api).map(|column| Self { column })
    }

    /// The release `major`.`minor`; `None` if unknown.
    #[must_use]
    pub fn of_version(major: u8, minor: u8) -> Option<Self> {
        let wanted = |release: &(u8, u8, u32)| (release.0, release.1) == (major, minor);
        RELEASES.iter().position(wanted).map(|column| Self { column })
    }

    /// All known releases, oldest first.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..Self::COUNT).map(|column| Self { column })
    }

    /// Its column in tables that have one for each release.
    pub(crate) const fn column(self) -> usize {
        self.column
    }
}

impl fmt::Display for PhpRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor, _) = RELEASES[self.column];
        write!(f, "{major}.{minor}")
    }
}

/// The threading model that PHP was built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ThreadModel {
    /// One request at a time, with the state in global variables (NTS).
    One,
    /// One request for each thread, each with its own state (ZTS).
    Many,
}

/// The identity of a PHP: release, version, threading model and interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The release.
    pub release: PhpRelease,
    /// The whole version, such as `8.2.36`; empty if no bundled module has it.
    pub version: String,
    /// The threading model.
    pub threads: ThreadModel,
    /// The interface that runs it (SAPI): `cli`, `fpm-fcgi`, `apache2handler`; empty if unknown.
    pub sapi: String,
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.version.is_empty() {
            write!(f, "PHP {}", self.release)?;
        } else {
            write!(f, "PHP {}", self.version)?;
        }
        f.write_str(match self.threads {
            ThreadModel::One => " NTS",
            ThreadModel::Many => " ZTS",
        })?;
        if self.sapi.is_empty() { Ok(()) } else { write!(f, " ({})", self.sapi) }
    }
}
