//! Changes to rows that are in the lake: removal and relabelling.
//!
//! Files never change. New files have the rows that stay and those that are different, and one commit puts them in the place of
//! the old ones. A program that dies before it leaves files that nobody sees.

use std::collections::{BTreeMap, BTreeSet};

use datafusion::prelude::SessionContext;

use super::clear::Cleared;
use super::compact::{CompactionGroup, SORT_BYTES, described, sorted_where};
use super::relabel::Relabeling;
use crate::add::Precursor;
use crate::error::Error;
use crate::journal::{Commit, DataFile, Intent, LakeState, Operation, now_us};
use crate::lake::Lake;
use crate::literal::{text, time};
use crate::tables::{DAY_US, LakeTable};
use crate::value::LakeValue;

/// The number of times that a change starts again because others replaced its files.
const TRIES: usize = 50;

/// Rows to change, in all tables. Those that match all conditions are meant.
#[derive(Clone, Debug, Default)]
pub struct RowChoice {
    /// Only rows of these files: their ids in `sources`, or their names.
    pub sources: Vec<String>,
    /// Only rows of this service.
    pub service: Option<String>,
    /// Only rows of this host.
    pub host: Option<String>,
    /// Only rows with all of these labels.
    pub labels: Vec<(String, String)>,
    /// Only rows from this time on, in microseconds since 1970 (UTC).
    pub since_us: Option<i64>,
    /// Only rows before this time, in microseconds since 1970 (UTC).
    pub until_us: Option<i64>,
}

/// The result of a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Amended {
    /// The number of rows changed, by table.
    pub rows: BTreeMap<&'static str, u64>,
    /// The number of Parquet files replaced or removed.
    pub files: u64,
    /// Their bytes, less those of the files in their place.
    pub bytes: u64,
    /// The number of files of profiles all of whose rows were changed.
    pub sources: u64,
    /// The number of stacks that no sample uses any more.
    pub stacks: u64,
    /// The result of the deletion afterwards.
    pub cleared: Cleared,
}

/// Whether a change is made or only described.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AmendMode {
    /// It is made.
    Change,
    /// It is only described: nothing is written.
    Describe,
}

impl RowChoice {
    /// Whether it has no conditions, and so means all rows.
    #[must_use]
    pub const fn is_everything(&self) -> bool {
        let Self { sources, service, host, labels, since_us, until_us } = self;
        sources.is_empty()
            && service.is_none()
            && host.is_none()
            && labels.is_empty()
            && since_us.is_none()
            && until_us.is_none()
    }

    /// The SQL condition for rows of all tables but `stacks` and `sources`.
    fn condition(&self) -> String {
        let mut all = vec!["true".to_owned()];
        all.extend(Some(one_of("source", &self.sources)).filter(|_| !self.sources.is_empty()));
        all.extend(self.service.iter().map(|service| format!("service = {}", text(service))));
        all.extend(self.host.iter().map(|host| format!("host = {}", text(host))));
        let of_label = |(key, value): &(String, String)| {
            format!("label(labels, {}) = {}", text(crate::keys::canonical(key)), text(value))
        };
        all.extend(self.labels.iter().map(of_label));
        all.extend(self.since_us.map(|since| format!("time >= {}", time(since))));
        all.extend(self.until_us.map(|until| format!("time < {}", time(until))));
        all.join(" AND ")
    }

    /// Whether a file may hold chosen rows, judged without opening it.
    fn may_be_in(&self, file: &DataFile) -> bool {
        let is_of = |chosen: &Option<String>, all: Option<&[String]>| match (chosen, all) {
            (Some(chosen), Some(all)) => all.contains(chosen),
            _ => true,
        };
        let is_of_service = file.service.is_none() || self.service.is_none() || self.service == file.service;
        let is_in_time = file.span_us.is_none_or(|(first, last)| {
            self.since_us.is_none_or(|since| last >= since) && self.until_us.is_none_or(|until| first < until)
        });
        let has_label = |(key, value): &(String, String)| {
            let label = format!("{}={value}", crate::keys::canonical(key));
            file.labels.as_ref().is_none_or(|labels| labels.contains(&label))
        };
        let may_match = is_of(&self.host, file.hosts.as_deref()) && self.labels.iter().all(has_label);
        is_of_service && is_in_time && may_match
    }
}

/// SQL that is true for rows whose column has one of these values.
pub(super) fn one_of<'v>(column: &str, values: impl IntoIterator<Item = &'v String>) -> String {
    let values = values.into_iter().map(|value| text(value)).collect::<Vec<_>>();
    if values.is_empty() { "false".to_owned() } else { format!("{column} IN ({})", values.join(", ")) }
}

/// The rows of a file that a change is about.
pub(super) enum Affected {
    All,
    /// Those that match an SQL condition.
    Where(String),
}

/// The files in the place of one file.
#[derive(Debug, Default)]
struct Replacement {
    table: Option<LakeTable>,
    rows: u64,
    /// The size of the old file.
    bytes: u64,
    files: Vec<DataFile>,
    /// The inputs whose row in `sources` was changed, and the checksums of their beginnings.
    sources: Vec<String>,
    beginnings: Vec<String>,
}

/// A change of rows, made file by file.
pub(super) struct Amendment<'l> {
    lake: &'l Lake,
    operation: Operation,
    relabeling: Option<&'l Relabeling>,
    mode: AmendMode,
    /// The new files by the path of the old one, also of those that stay as they are.
    done: BTreeMap<String, Replacement>,
}

impl<'l> Amendment<'l> {
    pub(super) const fn new(
        lake: &'l Lake,
        operation: Operation,
        relabeling: Option<&'l Relabeling>,
        mode: AmendMode,
    ) -> Self {
        Self { lake, operation, relabeling, mode, done: BTreeMap::new() }
    }

    /// Makes the change in one commit: `affected` chooses rows of each file of a state. Rows that are added meanwhile stay as
    /// they are.
    pub(super) fn run(
        mut self,
        affected: impl Fn(&LakeState) -> Result<Vec<(DataFile, Affected)>, Error>,
    ) -> Result<Amended, Error> {
        let ran = self.try_run(affected);
        match &ran {
            Ok(Some(_)) => {}
            Err(error) if error.is_uncertain() => {}
            _ => self.discard(),
        }
        ran?.ok_or_else(|| {
            let place = &self.lake.place;
            Error::lake(format!("{place}: other programs replaced files {TRIES} times"))
                .with_hint("run the command again")
        })
    }

    fn try_run(
        &mut self,
        affected: impl Fn(&LakeState) -> Result<Vec<(DataFile, Affected)>, Error>,
    ) -> Result<Option<Amended>, Error> {
        for _ in 0..TRIES {
            let state = self.lake.state()?;
            self.prepare(&state, affected(&state)?)?;
            if self.mode == AmendMode::Describe || self.commit()? {
                return Ok(Some(self.amended()));
            }
        }
        Ok(None)
    }

    /// Makes the replacements of files of a state that are not made yet.
    fn prepare(&mut self, state: &LakeState, files: Vec<(DataFile, Affected)>) -> Result<(), Error> {
        let paths: BTreeSet<_> = files.iter().map(|(file, _)| file.path.clone()).collect();
        for (file, rows) in files {
            if !self.done.contains_key(&file.path) {
                let replacement = self.replaced(&file, &rows, state)?;
                self.done.insert(file.path.clone(), replacement);
            }
        }
        self.forget_others(&paths);
        Ok(())
    }

    fn discard(&self) {
        let written = self.done.values().flat_map(|replacement| &replacement.files);
        self.lake.block_on(self.lake.discard(written));
    }

    /// Discards replacements of files that are not among the ones to change any more.
    fn forget_others(&mut self, paths: &BTreeSet<String>) {
        let others = self.done.extract_if(.., |path, _| !paths.contains(path));
        let files: Vec<_> = others.flat_map(|(_, replacement)| replacement.files).collect();
        self.lake.block_on(self.lake.discard(&files));
    }

    fn replaced(&self, file: &DataFile, rows: &Affected, state: &LakeState) -> Result<Replacement, Error> {
        let Some(table) = file.table() else { return Ok(Replacement::default()) };
        let mut part = LakeState { version: state.version, ..LakeState::default() };
        part.files = [(file.path.clone(), file.clone())].into();
        let context = self.lake.context_of(&part, Some(SORT_BYTES))?;
        let (condition, rows) = match rows {
            Affected::All => ("true", file.rows),
            Affected::Where(condition) => (&**condition, self.lake.matching(&context, table, condition)?),
        };
        let mut replacement =
            Replacement { table: Some(table), rows, bytes: file.bytes, ..Replacement::default() };
        if rows == 0 {
            return Ok(replacement);
        }
        if table == LakeTable::Sources {
            let ids = self.lake.values(&context, &format!("SELECT source FROM sources WHERE {condition}"))?;
            replacement.sources = ids.iter().map(LakeValue::to_text).collect();
            let known =
                format!("SELECT beginning FROM sources WHERE ({condition}) AND beginning IS NOT NULL");
            replacement.beginnings =
                self.lake.values(&context, &known)?.iter().map(LakeValue::to_text).collect();
        }
        if self.mode == AmendMode::Change {
            replacement.files = self.written(&context, file, table, (condition, rows))?;
        }
        Ok(replacement)
    }

    /// Writes the rows of a file that stay, and those that are different.
    fn written(
        &self,
        context: &SessionContext,
        file: &DataFile,
        table: LakeTable,
        (condition, rows): (&str, u64),
    ) -> Result<Vec<DataFile>, Error> {
        let others = format!("({condition}) IS NOT TRUE");
        let mut files = Vec::new();
        if rows < file.rows {
            files = self.write(context, file, table, &others, None)?;
        }
        if self.relabeling.is_some() {
            match self.write(context, file, table, condition, self.relabeling) {
                Ok(changed) => files.extend(changed),
                Err(error) => {
                    self.lake.block_on(self.lake.discard(&files));
                    return Err(error);
                }
            }
        }
        Ok(files)
    }

    /// Writes the rows of a file that match a condition, relabelled if asked for.
    fn write(
        &self,
        context: &SessionContext,
        file: &DataFile,
        table: LakeTable,
        condition: &str,
        relabeling: Option<&Relabeling>,
    ) -> Result<Vec<DataFile>, Error> {
        let day = file.span_us.map(|(_, last)| last.div_euclid(DAY_US));
        let of_file = |service| -> CompactionGroup { (table, service, day) };
        let (group, sql, like) = match relabeling {
            None => (of_file(file.service.clone()), sorted_where(table, condition, None), file.clone()),
            Some(relabeling) => {
                context.register_udf(relabeling.function());
                let like = relabeling.file(file);
                (of_file(like.service.clone()), sorted_where(table, condition, Some(relabeling)), like)
            }
        };
        let written = self.lake.rewrite_in(context, &group, &sql)?;
        Ok(written.into_iter().map(|file| described(file, &group, std::slice::from_ref(&like))).collect())
    }

    /// The changes to the files of the lake.
    fn changes(&self) -> Changes {
        let mut changes = Changes::default();
        for (path, replacement) in self.done.iter().filter(|(_, replacement)| replacement.rows > 0) {
            changes.remove.push(path.clone());
            changes.add.extend(replacement.files.iter().cloned());
            if self.relabeling.is_none() {
                changes.forgotten.extend(replacement.sources.iter().cloned());
                changes.forgotten_beginnings.extend(replacement.beginnings.iter().cloned());
            }
        }
        changes
    }

    /// Commits all replacements; `false` if another writer has replaced one of the old files.
    fn commit(&self) -> Result<bool, Error> {
        let mut commit = Commit::new(self.operation, now_us());
        self.changes().apply_to(&mut commit);
        if commit.remove.is_empty() {
            return Ok(true);
        }
        let mut is_current = false;
        let intend = async |now: &LakeState| {
            is_current = commit.remove.iter().all(|path| now.files.contains_key(path));
            Ok(if is_current { Intent::Commit(commit.clone()) } else { Intent::Nothing })
        };
        self.lake.block_on(self.lake.journal.transact(intend))?;
        Ok(is_current)
    }

    fn amended(&self) -> Amended {
        let mut amended = Amended::default();
        for replacement in self.done.values().filter(|replacement| replacement.rows > 0) {
            if let Some(table) = replacement.table {
                *amended.rows.entry(table.name()).or_default() += replacement.rows;
            }
            let written = replacement.files.iter().map(|file| file.bytes).sum();
            amended.files += 1;
            amended.bytes += replacement.bytes.saturating_sub(written);
            amended.sources += replacement.sources.len() as u64;
        }
        amended
    }
}

/// Files that take the place of others, and inputs that are gone with those.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes {
    add: Vec<DataFile>,
    remove: Vec<String>,
    forgotten: Vec<String>,
    forgotten_beginnings: Vec<String>,
}

impl Changes {
    /// Whether a file is one of the new ones.
    pub(crate) fn has(&self, file: &DataFile) -> bool {
        self.add.iter().any(|added| added.path == file.path)
    }

    /// Makes them a part of a commit.
    pub(crate) fn apply_to(self, commit: &mut Commit) {
        commit.add.extend(self.add);
        commit.remove.extend(self.remove);
        commit.forgotten.extend(self.forgotten);
        commit.forgotten_beginnings.extend(self.forgotten_beginnings);
    }
}

impl Lake {
    /// Commits with `commit` while inputs are removed: all in one commit. `commit` fails with [`Error::is_vanished`] if others
    /// have replaced a file, and is then called again.
    pub(crate) fn replacing<T>(
        &self,
        inputs: &[Precursor],
        mut commit: impl FnMut(&Changes) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if inputs.is_empty() {
            return commit(&Changes::default());
        }
        let condition = one_of("source", inputs.iter().map(|input| &input.source));
        let mut amendment = Amendment::new(self, Operation::Add, None, AmendMode::Change);
        let mut last = None;
        for _ in 0..TRIES {
            let state = self.state()?;
            let affected = |file: &DataFile| {
                let is_of = |input: &Precursor| {
                    let (first, last) = input.span_us;
                    file.span_us.is_none_or(|span| span.0 <= last && span.1 >= first)
                };
                let may_have = file.table().is_some_and(|table| table != LakeTable::Stacks);
                (may_have && inputs.iter().any(is_of))
                    .then(|| (file.clone(), Affected::Where(condition.clone())))
            };
            let committed = amendment
                .prepare(&state, state.files.values().filter_map(affected).collect())
                .and_then(|()| commit(&amendment.changes()));
            match committed {
                Err(error) if error.is_vanished() => last = Some(error),
                Ok(committed) => return Ok(committed),
                // The commit may exist and name the files.
                Err(error) if error.is_uncertain() => return Err(error),
                Err(error) => {
                    amendment.discard();
                    return Err(error);
                }
            }
        }
        amendment.discard();
        Err(last.unwrap_or_else(|| Error::lake("no tries")))
    }

    /// Removes the chosen rows from all tables, and stacks that no sample uses any more. Files of profiles that have no rows left
    /// may be added again.
    ///
    /// # Errors
    /// If nothing is chosen, a source is unknown, or the storage fails. Then nothing was removed, unless the storage's reply was
    /// lost.
    pub fn remove(&self, choice: &RowChoice, mode: AmendMode) -> Result<Amended, Error> {
        let mut removed = self.amend(choice, Operation::Remove, None, mode)?;
        if mode == AmendMode::Change && !removed.rows.is_empty() {
            removed.stacks = self.drop_unused_stacks()?;
            removed.cleared = self.clear()?;
        }
        Ok(removed)
    }

    /// Changes the labels, the service or the host of the chosen rows.
    ///
    /// # Errors
    /// Like [`Lake::remove`].
    pub fn relabel(
        &self,
        choice: &RowChoice,
        relabeling: &Relabeling,
        mode: AmendMode,
    ) -> Result<Amended, Error> {
        self.amend(choice, Operation::Relabel, Some(relabeling), mode)
    }

    fn amend(
        &self,
        choice: &RowChoice,
        operation: Operation,
        relabeling: Option<&Relabeling>,
        mode: AmendMode,
    ) -> Result<Amended, Error> {
        if choice.is_everything() {
            return Err(Error::question("expected a condition on the rows to change, found none"));
        }
        let choice = RowChoice { sources: self.source_ids(&choice.sources)?, ..choice.clone() };
        let condition = choice.condition();
        Amendment::new(self, operation, relabeling, mode).run(|state| {
            let whole = self.whole_sources(state, &choice, &condition)?;
            let of_sources = one_of("source", &whole);
            let affected = |file: &DataFile| match file.table()? {
                LakeTable::Stacks => None,
                LakeTable::Sources => Some((file.clone(), Affected::Where(of_sources.clone()))),
                _ if !choice.may_be_in(file) => None,
                _ => Some((file.clone(), Affected::Where(condition.clone()))),
            };
            Ok(state.files.values().filter_map(affected).collect())
        })
    }

    /// The ids of the files that `asked` names by ids or names.
    fn source_ids(&self, asked: &[String]) -> Result<Vec<String>, Error> {
        let context = self.context_of(&*self.state()?, Some(SORT_BYTES))?;
        let mut ids = Vec::new();
        for asked in asked {
            let asked = text(asked);
            let sql = format!("SELECT DISTINCT source FROM sources WHERE source = {asked} OR name = {asked}");
            let found = self.values(&context, &sql)?;
            if found.is_empty() {
                let error = Error::missing(format!("unknown source {asked}"));
                return Err(
                    error.with_hint("borehole lake query LAKE 'SELECT source, name FROM sources' lists them")
                );
            }
            ids.extend(found.iter().map(LakeValue::to_text));
        }
        Ok(ids)
    }

    /// The inputs all of whose rows match a condition: those named, or those that have such rows and no others.
    fn whole_sources(
        &self,
        state: &LakeState,
        choice: &RowChoice,
        condition: &str,
    ) -> Result<BTreeSet<String>, Error> {
        let context = self.context_of(state, Some(SORT_BYTES))?;
        let tables = LakeTable::ALL.into_iter().filter(|table| table.has_origin());
        let of_rows = |condition: &str| {
            let of_table =
                |table: LakeTable| format!("SELECT source FROM {} WHERE {condition}", table.name());
            tables.clone().map(of_table).collect::<Vec<_>>().join(" UNION ALL ")
        };
        let (matching, others) = (of_rows(condition), of_rows(&format!("({condition}) IS NOT TRUE")));
        let sql = format!(
            "SELECT DISTINCT source FROM ({matching}) AS matching LEFT ANTI JOIN ({others}) AS others USING (source)"
        );
        let found = self.values(&context, &sql)?;
        let mut whole: BTreeSet<_> =
            found.iter().filter(|&id| *id != LakeValue::Absent).map(LakeValue::to_text).collect();
        // A file without rows has no others.
        let is_only_of_sources = RowChoice { sources: Vec::new(), ..choice.clone() }.is_everything();
        if is_only_of_sources {
            whole.extend(choice.sources.iter().cloned());
        }
        Ok(whole)
    }

    /// The number of rows that match a condition.
    fn matching(&self, context: &SessionContext, table: LakeTable, condition: &str) -> Result<u64, Error> {
        let sql = format!("SELECT count(*) FROM {} WHERE {condition}", table.name());
        let counted = self.values(context, &sql)?;
        Ok(match counted.first() {
            Some(LakeValue::Integer(rows)) => u64::try_from(*rows).unwrap_or(0),
            _ => 0,
        })
    }

    /// The values of the only column of an answer.
    pub(super) fn values(&self, context: &SessionContext, sql: &str) -> Result<Vec<LakeValue>, Error> {
        let batches = self.block_on(async { context.sql(sql).await?.collect().await })?;
        let values = |batch: &datafusion::arrow::array::RecordBatch| {
            let column = std::sync::Arc::clone(batch.column(0));
            (0..batch.num_rows()).map(move |row| crate::value::value_at(&column, row))
        };
        Ok(batches.iter().flat_map(values).collect())
    }
}
