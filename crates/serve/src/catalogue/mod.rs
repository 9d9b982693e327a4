//! The inputs that are served: which files there are, and what is known of each without reading it.
//!
//! Folders are looked at again at regular times, rather than watched by the kernel, because that works on every file system.

mod head;
mod scan;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock, TryLockError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use borehole_text::{document, iso_utc};
use schemars::JsonSchema;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::limits::CatalogueLimits;
use crate::refusal::Refusal;
use scan::FoundFile;

/// An input as it is listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct InputEntry {
    /// Its name in questions: the same as long as its path is.
    pub(crate) id: String,
    /// The name of the file.
    pub(crate) name: String,
    /// The path, from the folder that is served.
    pub(crate) path: String,
    /// The kind.
    pub(crate) kind: InputKind,
    /// The name of its format; empty if unknown.
    pub(crate) format: String,
    /// Its size in bytes.
    pub(crate) bytes: u64,
    /// When it was last changed, in UTC.
    pub(crate) modified: String,
    /// The host that it comes from.
    pub(crate) host: Option<String>,
    /// The service.
    pub(crate) service: Option<String>,
    /// The process.
    pub(crate) process: Option<String>,
    /// When its first sample was taken, in UTC.
    pub(crate) start: Option<String>,
    /// Why it cannot be read.
    pub(crate) error: Option<String>,
}

/// The kind of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum InputKind {
    /// A profile: samples with stacks.
    Profile,
    /// The memory of a PHP process.
    Heap,
    /// A trace of events, such as those of a Tokio program.
    Tokio,
    /// A heap in a database.
    Database,
    /// A file that cannot be read.
    Unreadable,
}

impl InputKind {
    /// Its name in lists.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Profile => "profile",
            Self::Heap => "heap",
            Self::Tokio => "tokio",
            Self::Database => "database",
            Self::Unreadable => "unreadable",
        }
    }
}

/// The size and time of a file, which differ when its content does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Version {
    pub(crate) bytes: u64,
    pub(crate) modified_ns: u128,
}

/// An input, where it is and in which version.
#[derive(Clone, Debug)]
pub(crate) struct CataloguedInput {
    pub(crate) entry: InputEntry,
    pub(crate) file: PathBuf,
    pub(crate) version: Version,
}

/// All inputs below the paths that are served.
pub(crate) struct Catalogue {
    roots: Vec<PathBuf>,
    listing: RwLock<Arc<Listing>>,
    looked: Mutex<Option<Instant>>,
}

/// The inputs as they were at the last look that found a change. Whoever has it may compare it with a later one.
#[derive(Default)]
pub(crate) struct Listing {
    inputs: BTreeMap<PathBuf, CataloguedInput>,
    /// The number of files that are too many to be listed: the oldest ones.
    pub(crate) left_out: usize,
}

impl Listing {
    /// All inputs, in the order of their paths.
    pub(crate) fn inputs(&self) -> impl Iterator<Item = &CataloguedInput> {
        self.inputs.values()
    }

    /// All inputs as they are listed.
    pub(crate) fn entries(&self) -> Vec<&InputEntry> {
        self.inputs().map(|input| &input.entry).collect()
    }
}

impl Catalogue {
    /// The catalogue of files and of the files in folders.
    pub(crate) fn new(roots: &[PathBuf]) -> Self {
        Self { roots: roots.to_vec(), listing: RwLock::default(), looked: Mutex::new(None) }
    }

    /// The inputs, after a look at the folders unless somebody just had one. While somebody looks, others get the last listing.
    pub(crate) fn refreshed(&self) -> Arc<Listing> {
        let mut looked = match self.looked.try_lock() {
            Ok(looked) => looked,
            Err(TryLockError::Poisoned(looked)) => looked.into_inner(),
            Err(TryLockError::WouldBlock) => {
                let listing = self.listing();
                if !listing.inputs.is_empty() {
                    return listing;
                }
                self.looked.lock().unwrap_or_else(PoisonError::into_inner)
            }
        };
        if looked.is_none_or(|last| last.elapsed() >= CatalogueLimits::FRESH) {
            self.look();
            *looked = Some(Instant::now());
        }
        self.listing()
    }

    /// Has the next question look at the folders again: there is something new for sure.
    pub(crate) fn expect_change(&self) {
        *self.looked.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The inputs as they were at the last look.
    fn listing(&self) -> Arc<Listing> {
        self.listing.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Looks at the folders again. Only what is new or different is opened.
    fn look(&self) {
        let known = self.listing();
        let scan::FoundFiles { files, left_out } = scan::files(&self.roots);
        let is_same = left_out == known.left_out
            && files.len() == known.inputs.len()
            && files
                .iter()
                .all(|file| known.inputs.get(&file.path).is_some_and(|known| known.version == file.version));
        if is_same {
            return;
        }
        let inputs = files.into_iter().map(|file| {
            let same = known.inputs.get(&file.path).filter(|known| known.version == file.version);
            let input = same.cloned().unwrap_or_else(|| catalogued(&file));
            (file.path, input)
        });
        let listing = Arc::new(Listing { inputs: inputs.collect(), left_out });
        *self.listing.write().unwrap_or_else(PoisonError::into_inner) = listing;
    }

    /// An input by its id, its path, or its name if no other has that name.
    pub(crate) fn find(&self, named: &str) -> Result<CataloguedInput, Refusal> {
        let listing = self.refreshed();
        if let Some(found) =
            listing.inputs().find(|input| input.entry.id == named || input.entry.path == named)
        {
            return Ok(found.clone());
        }
        let mut found = listing.inputs().filter(|input| input.entry.name == named);
        match (found.next(), found.next()) {
            (Some(only), None) => Ok(only.clone()),
            (Some(_), Some(_)) => {
                Err(Refusal::invalid(format!("several inputs are called {}", document(named.as_bytes())))
                    .with_help("use the id of one of them"))
            }
            _ => Err(Refusal::missing(format!("no input {}", document(named.as_bytes())))
                .with_help("/api/v1/inputs lists the inputs and their ids")),
        }
    }
}

/// Looks at the beginning of a file.
fn catalogued(file: &FoundFile) -> CataloguedInput {
    let path = document(file.shown.as_os_str().as_encoded_bytes());
    let name = file.path.file_name().map_or_else(|| path.clone(), |name| document(name.as_encoded_bytes()));
    let head = head::of(&file.path, &name);
    let modified = u64::try_from(file.version.modified_ns / 1_000_000_000).unwrap_or(0);
    let entry = InputEntry {
        id: id_of(&file.path),
        name,
        path,
        kind: head.kind,
        format: head.format,
        bytes: file.version.bytes,
        modified: iso_utc(modified),
        host: head.host,
        service: head.service,
        process: head.process,
        start: head.start_unix_s.map(iso_utc),
        error: head.error,
    };
    CataloguedInput { entry, file: file.path.clone(), version: file.version }
}

/// The id of a path: short enough to type, and too long to meet by chance.
fn id_of(path: &Path) -> String {
    let digest = Sha256::digest(path.as_os_str().as_encoded_bytes());
    digest.iter().take(CatalogueLimits::ID_BYTES).map(|byte| format!("{byte:02x}")).collect()
}

impl Version {
    /// The version of a file.
    fn of(metadata: &std::fs::Metadata) -> Self {
        let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        let modified_ns = modified.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        Self { bytes: metadata.len(), modified_ns }
    }
}
