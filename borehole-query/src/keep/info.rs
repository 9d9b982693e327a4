//! What is in a lake, at a glance.

use std::collections::BTreeSet;

use crate::tables::Table;
use crate::{Error, Lake};

/// A lake at a glance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LakeInfo {
    /// The number of its last commit.
    pub version: u64,
    /// When that was made, in microseconds since 1970 (UTC).
    pub changed_us: i64,
    /// How many inputs have been added.
    pub sources: u64,
    /// Its services, in order.
    pub services: Vec<String>,
    /// Its tables.
    pub tables: Vec<TableInfo>,
}

/// A table at a glance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableInfo {
    /// What it is called.
    pub name: &'static str,
    /// How many files it is in.
    pub files: u64,
    /// How many rows it has.
    pub rows: u64,
    /// How many bytes its files have.
    pub bytes: u64,
    /// Its first and last time, in microseconds since 1970 (UTC); `None` where rows have no times.
    pub span_us: Option<(i64, i64)>,
}

impl Lake {
    /// What the journal says of the lake; no file is opened.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn info(&self) -> Result<LakeInfo, Error> {
        let state = self.state()?;
        let services: BTreeSet<_> = state.files.values().filter_map(|file| file.service.clone()).collect();
        let table = |table: Table| {
            let mut info = TableInfo { name: table.name(), ..TableInfo::default() };
            for file in state.files_of(table) {
                info.files += 1;
                info.rows += file.rows;
                info.bytes += file.bytes;
                let spans = [info.span_us, file.span_us].into_iter().flatten();
                info.span_us = spans.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)));
            }
            info
        };
        Ok(LakeInfo {
            version: state.version,
            changed_us: state.changed_us,
            sources: state.sources.len() as u64,
            services: services.into_iter().collect(),
            tables: Table::ALL.into_iter().map(table).collect(),
        })
    }

    /// The paths of the files of a table, below the lake: for engines that read them by themselves. Files that were replaced
    /// lie beside them for an hour.
    ///
    /// # Errors
    /// When there is no such table, or the journal cannot be read.
    pub fn files(&self, table: &str) -> Result<Vec<String>, Error> {
        let Some(known) = Table::of_name(table) else {
            let names = Table::ALL.map(Table::name).join(", ");
            return Err(Error::missing(format!("expected a table of {names}, found {table}")));
        };
        Ok(self.state()?.files_of(known).map(|file| file.path.clone()).collect())
    }
}
