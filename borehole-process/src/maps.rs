//! What is mapped where in a process.

/// One mapping, a line of `/proc/PID/maps`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Its first address.
    pub start: u64,
    /// The address behind its last.
    pub end: u64,
    /// The offset in the file that `start` shows.
    pub file_offset: u64,
    /// Whether it can be read.
    pub readable: bool,
    /// Whether it can be written.
    pub writable: bool,
    /// Whether it can be executed.
    pub executable: bool,
    /// Whether writes are seen by others.
    pub shared: bool,
    /// The file, a name in brackets, or nothing, as the process sees it; the mark of a deleted file is cut off.
    pub path: Vec<u8>,
    /// Whether the file has been deleted or replaced since.
    pub deleted: bool,
}

/// The mappings of a process in order of their addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mappings(Vec<Mapping>);

impl Mappings {
    /// These mappings, in order of their addresses.
    #[must_use]
    pub fn new(mut mappings: Vec<Mapping>) -> Self {
        mappings.sort_by_key(|mapping| mapping.start);
        Self(mappings)
    }

    /// Each of them.
    pub fn iter(&self) -> std::slice::Iter<'_, Mapping> {
        self.0.iter()
    }

    /// The one that holds `address`.
    #[must_use]
    pub fn at(&self, address: u64) -> Option<&Mapping> {
        let behind = self.0.partition_point(|mapping| mapping.start <= address);
        self.0[..behind].last().filter(|mapping| address < mapping.end)
    }
}
