//! The formats of heaps.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use borehole_heap::rmem;
use borehole_text::UnknownName;

/// The format of a heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeapFormat {
    /// Memory of a process, still to be analyzed: `.rdump`.
    Rdump,
    /// Memory of a process that crashed: an ELF core file.
    Core,
    /// A graph in reli's container: `.rmem`.
    Rmem,
    /// A graph in reli's JSON.
    Json,
    /// A graph with a line of JSON for each node, edge, location and fact.
    Lines,
    /// A heap for Java's tools.
    Hprof,
    /// A heap for Chrome's developer tools.
    HeapSnapshot,
    /// An SQLite database.
    Sqlite,
    /// A database of a PostgreSQL server.
    Postgresql,
    /// A database of a MySQL or MariaDB server.
    Mysql,
}

impl HeapFormat {
    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::Rdump,
        Self::Core,
        Self::Rmem,
        Self::Json,
        Self::Lines,
        Self::Hprof,
        Self::HeapSnapshot,
        Self::Sqlite,
        Self::Postgresql,
        Self::Mysql,
    ];

    /// Its name, as options state it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rdump => "rdump",
            Self::Core => "core",
            Self::Rmem => "rmem",
            Self::Json => "json",
            Self::Lines => "jsonl",
            Self::Hprof => "hprof",
            Self::HeapSnapshot => "heapsnapshot",
            Self::Sqlite => "sqlite3",
            Self::Postgresql => "postgresql",
            Self::Mysql => "mysql",
        }
    }

    /// Whether it can be read; the others are only written, for other programs.
    #[must_use]
    pub const fn readable(self) -> bool {
        !matches!(self, Self::Lines | Self::Hprof | Self::HeapSnapshot)
    }

    /// The format of files with this name, in upper or lower case.
    #[must_use]
    pub fn from_path(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        match extension.as_str() {
            "rdump" => Some(Self::Rdump),
            "rmem" => Some(Self::Rmem),
            "json" => Some(Self::Json),
            "jsonl" => Some(Self::Lines),
            "hprof" => Some(Self::Hprof),
            "heapsnapshot" => Some(Self::HeapSnapshot),
            "sqlite3" | "sqlite" | "db" => Some(Self::Sqlite),
            _ => None,
        }
    }
}

impl fmt::Display for HeapFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Parses the name in any case, or one of `sqlite` and `mariadb`.
impl FromStr for HeapFormat {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        let lower = name.to_ascii_lowercase();
        let asked = match lower.as_str() {
            "sqlite" => Self::Sqlite.name(),
            "mariadb" => Self::Mysql.name(),
            other => other,
        };
        let found = Self::ALL.iter().copied().find(|format| format.name() == asked);
        found.ok_or_else(|| UnknownName::new(name, "format", Self::ALL.iter().map(|format| format.name())))
    }
}

/// The first bytes of a dump.
const DUMP_MAGIC: [u8; 8] = *b"\x7fRDUMP\r\n";

/// The first keys of reli's memory profiler documents, in reli's order and in sorted order. Other JSON objects are not heaps.
///
/// Source: reli 0.12 `-f json`.
const JSON_KEYS: [&[u8]; 4] =
    [b"\"summary\"", b"\"context\"", b"\"location_types_summary\"", b"\"class_objects_summary\""];

/// The format of a file with this beginning.
pub(crate) fn heap_format(beginning: &[u8]) -> Option<HeapFormat> {
    match beginning {
        _ if beginning.starts_with(b"JAVA PROFILE ") => Some(HeapFormat::Hprof),
        _ if beginning.starts_with(b"{\"snapshot\":") => Some(HeapFormat::HeapSnapshot),
        _ if beginning.starts_with(b"{\"type\":\"heap\"") => Some(HeapFormat::Lines),
        _ if beginning.starts_with(&rmem::MAGIC) => Some(HeapFormat::Rmem),
        _ if beginning.starts_with(&DUMP_MAGIC) => Some(HeapFormat::Rdump),
        _ if beginning.starts_with(b"SQLite format 3\0") => Some(HeapFormat::Sqlite),
        // An ELF file whose type, the half word behind its 16 bytes of identification, is ET_CORE.
        _ if beginning.starts_with(b"\x7fELF") && beginning.get(16) == Some(&4) => Some(HeapFormat::Core),
        _ if is_json(beginning) => Some(HeapFormat::Json),
        _ => None,
    }
}

fn is_json(beginning: &[u8]) -> bool {
    let first = beginning.trim_ascii_start().strip_prefix(b"{").map(<[u8]>::trim_ascii_start);
    first.is_some_and(|first| JSON_KEYS.iter().any(|key| first.starts_with(key)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_read_back_by_their_names() {
        for &format in HeapFormat::ALL {
            assert_eq!(
                (format.to_string().parse(), format.name().to_uppercase().parse()),
                (Ok(format), Ok(format))
            );
        }
        let [sqlite, mariadb] = ["sqlite", "MariaDB"].map(str::parse);
        assert_eq!((sqlite, mariadb), (Ok(HeapFormat::Sqlite), Ok(HeapFormat::Mysql)));
        let error = "pprof".parse::<HeapFormat>().unwrap_err().to_string();
        assert!(error.starts_with("unknown format: expected one of rdump, core, rmem, json"), "{error}");
    }

    #[cfg(feature = "capture")]
    #[test]
    fn dumps_are_detected_by_what_their_writer_begins_with() {
        assert_eq!(heap_format(&borehole_process::Dump::MAGIC), Some(HeapFormat::Rdump));
    }
}
