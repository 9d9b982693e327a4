//! Summary of a lake.

use std::collections::BTreeSet;

use crate::tables::LakeTable;
use crate::time::joined;
use crate::{Error, Lake};

/// A summary of a lake.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LakeInfo {
    /// The number of its last commit.
    pub version: u64,
    /// The time of the last commit, in microseconds since 1970 (UTC).
    pub changed_us: i64,
    /// The number of inputs added.
    pub sources: u64,
    /// Its services, in order.
    pub services: Vec<String>,
    /// Its tables.
    pub tables: Vec<TableInfo>,
}

/// A summary of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableInfo {
    /// Its name.
    pub name: &'static str,
    /// The number of its files.
    pub files: u64,
    /// The number of its rows.
    pub rows: u64,
    /// The bytes of its files.
    pub bytes: u64,
    /// Its first and last time, in microseconds since 1970 (UTC); `None` if its rows have no times.
    pub span_us: Option<(i64, i64)>,
}

impl Lake {
    /// Summarizes the lake from its journal; no file is opened.
    ///
    /// # Errors
    /// If the journal cannot be read.
    pub fn info(&self) -> Result<LakeInfo, Error> {
        let state = self.state()?;
        let services: BTreeSet<_> = state.files.values().filter_map(|file| file.service.clone()).collect();
        let table = |table: LakeTable| {
            let mut info = TableInfo { name: table.name(), ..TableInfo::default() };
            for file in state.files_of(table) {
                info.files += 1;
                info.rows += file.rows;
                info.bytes += file.bytes;
                info.span_us = info.span_us.into_iter().chain(file.span_us).reduce(joined);
            }
            info
        };
        Ok(LakeInfo {
            version: state.version,
            changed_us: state.changed_us,
            sources: state.inputs.len(),
            services: services.into_iter().collect(),
            tables: LakeTable::ALL.into_iter().map(table).collect(),
        })
    }

    /// The paths of the files of a table below the lake, for engines that read them directly. Replaced files lie beside them for
    /// an hour.
    ///
    /// # Errors
    /// If there is no such table, or the journal cannot be read.
    pub fn files(&self, table: &str) -> Result<Vec<String>, Error> {
        let known = LakeTable::expect(table)?;
        Ok(self.state()?.files_of(known).map(|file| file.path.clone()).collect())
    }
}
