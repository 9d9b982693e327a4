//! Compaction: many small files into few large ones.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use datafusion::arrow::array::{AsArray as _, RecordBatch};
use datafusion::arrow::compute::concat_batches;
use datafusion::prelude::SessionContext;
use futures::StreamExt as _;

use super::clear::Cleared;
use super::relabel::Relabeling;
use crate::add::LISTED_LABELS;
use crate::add::files::{FileWriter, GROUP_ROWS, Partition};
use crate::add::numbers::LISTED_NUMBERS;
use crate::journal::{Commit, DataFile, Intent, LakeState, ListedNumber, Operation, now_us};
use crate::scan::{TableFiles, distinct_from};
use crate::tables::{DAY_US, LakeTable, TableColumn};
use crate::time::joined;
use crate::{Error, Lake};

/// The size from which a file is large enough.
const LARGE_BYTES: u64 = 256 << 20;
/// Rows per row group, or frames of stacks: twice as many as when adding, which halves the cost of dictionaries.
const LARGE_GROUP: usize = 2 * GROUP_ROWS;
/// The number of rows after which a file is closed: a row group for each core of a large machine.
const FILE_ROWS: u64 = 32 * LARGE_GROUP as u64;
/// The memory that sorting takes before it spills to disk.
pub(super) const SORT_BYTES: usize = 512 << 20;

/// The number of files of a group and of similar size that a commit merges.
const GATHERED: usize = 16;
/// The size of a file from which only a command merges it, so that no commit has to merge many bytes.
const GATHERED_BYTES: u64 = 4 << 20;
/// The number of merges after a commit of few files.
const MERGES: usize = 2;
/// The number of commits between deletions of what nobody needs.
const COMMITS_PER_CLEARING: u64 = 128;

/// The result of a compaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compacted {
    /// The number of files replaced.
    pub files_before: u64,
    /// The number of files in their place.
    pub files_after: u64,
    /// The bytes of the replaced files.
    pub bytes_before: u64,
    /// The bytes of the files in their place.
    pub bytes_after: u64,
    /// The number of file groups that another compaction replaced first.
    pub overtaken: u64,
    /// The result of the deletion afterwards.
    pub cleared: Cleared,
}

/// The files of one table that are merged: those of a service and a day.
pub(super) type CompactionGroup = (LakeTable, Option<String>, Option<i64>);

impl Lake {
    /// Merges the small files of each table, service and day, and deletes what no reader needs any more. Running queries see
    /// each row exactly once, before and after.
    ///
    /// # Errors
    /// If the storage fails. Work finished by then stays intact.
    pub fn compact(&self) -> Result<Compacted, Error> {
        let state = self.state()?;
        let mut compacted = Compacted::default();
        for (group, files) in small_files(&state) {
            self.compact_group(&group, &files, &state, &mut compacted)?;
        }
        compacted.cleared = self.clear()?;
        Ok(compacted)
    }

    /// Merges files where many have gathered, and deletes now and then what nobody needs: the share of this work that a commit
    /// of `added` files has to do, so that the number of files stays small without a command.
    pub(crate) fn compact_share(&self, added: usize) -> Result<(), Error> {
        let state = self.state()?;
        let mut compacted = Compacted::default();
        for (group, files) in gathered(&state).into_iter().take((added / GATHERED).max(MERGES)) {
            self.compact_group(&group, &files, &state, &mut compacted)?;
        }
        if state.version.is_multiple_of(COMMITS_PER_CLEARING) { self.clear().map(drop) } else { Ok(()) }
    }

    fn compact_group(
        &self,
        group: &CompactionGroup,
        files: &[DataFile],
        state: &LakeState,
        compacted: &mut Compacted,
    ) -> Result<(), Error> {
        let paths: BTreeSet<&String> = files.iter().map(|file| &file.path).collect();
        let written = if files.iter().any(|file| file.repeats) {
            self.rewrite_stacks(group, files, state)?
        } else {
            let mut part = LakeState { version: state.version, ..LakeState::default() };
            part.files = files.iter().map(|file| (file.path.clone(), file.clone())).collect();
            self.rewrite(group, &part, &sorted(group.0))?
        };
        let mut commit = Commit::new(Operation::Compact, now_us());
        commit.add = written.into_iter().map(|file| described(file, group, files)).collect();
        commit.remove = paths.iter().map(|&path| path.clone()).collect();
        let mut is_overtaken = false;
        let intend = async |now: &LakeState| {
            // Another compaction may have written some of the same stacks to a file that was not looked at.
            let is_unseen = |file: &DataFile| !file.repeats && !state.files.contains_key(&file.path);
            is_overtaken = paths.iter().any(|&path| !now.files.contains_key(path))
                || (group.0 == LakeTable::Stacks && now.files_of(group.0).any(is_unseen));
            Ok(if is_overtaken { Intent::Nothing } else { Intent::Commit(commit.clone()) })
        };
        self.block_on(self.journal.transact(intend))?;
        if is_overtaken {
            compacted.overtaken += 1;
            return commit.add.iter().try_for_each(|file| self.block_on(self.place.delete(&file.path)));
        }
        compacted.files_before += files.len() as u64;
        compacted.files_after += commit.add.len() as u64;
        compacted.bytes_before += files.iter().map(|file| file.bytes).sum::<u64>();
        compacted.bytes_after += commit.add.iter().map(|file| file.bytes).sum::<u64>();
        Ok(())
    }

    /// Writes the rows that `sql` selects from the files of `part` to new files.
    pub(super) fn rewrite(
        &self,
        group: &CompactionGroup,
        part: &LakeState,
        sql: &str,
    ) -> Result<Vec<DataFile>, Error> {
        self.rewrite_in(&self.context_of(part, Some(SORT_BYTES))?, group, sql)
    }

    /// Writes each stack of `files` once, unless it is in another file of `state` that repeats none.
    fn rewrite_stacks(
        &self,
        group: &CompactionGroup,
        files: &[DataFile],
        state: &LakeState,
    ) -> Result<Vec<DataFile>, Error> {
        let is_merged = |file: &DataFile| files.iter().any(|merged| merged.path == file.path);
        let others = state.files_of(group.0).filter(|file| !file.repeats && !is_merged(file));
        let mut all: Vec<_> = others.cloned().collect();
        let kept = all.len();
        all.extend(files.iter().cloned());
        all[kept..].sort_by_key(|file| !file.named);
        let rows = all.iter().map(|file| file.rows).sum();
        let numbered = TableFiles { is_numbered: true, ..self.table_files(group.0, all, rows)? };
        let context = self.context_of(&LakeState::default(), Some(SORT_BYTES))?;
        context.deregister_table(group.0.name())?;
        context.register_table(group.0.name(), Arc::new(distinct_from(numbered, kept)?))?;
        self.rewrite_in(&context, group, &sorted(group.0))
    }

    /// Writes the rows that `sql` selects in an engine to new files.
    pub(super) fn rewrite_in(
        &self,
        context: &SessionContext,
        group: &CompactionGroup,
        sql: &str,
    ) -> Result<Vec<DataFile>, Error> {
        self.rewrite_as(context, group, sql, Ok)
    }

    /// Like [`Lake::rewrite_in`], with rows that are changed on the way.
    pub(super) fn rewrite_as(
        &self,
        context: &SessionContext,
        group: &CompactionGroup,
        sql: &str,
        change: impl Fn(RecordBatch) -> Result<RecordBatch, Error>,
    ) -> Result<Vec<DataFile>, Error> {
        let partition = Partition { service: group.1.clone(), day: group.2 };
        let mut rewriting = Rewriting {
            lake: self,
            table: group.0,
            partition,
            writer: None,
            waiting: Vec::new(),
            weight: 0,
            done: Vec::new(),
        };
        let rewritten = self.block_on(async {
            let mut stream = context.sql(sql).await?.execute_stream().await?;
            while let Some(batch) = stream.next().await {
                rewriting.take(change(batch?)?).await?;
            }
            rewriting.finish().await
        });
        if rewritten.is_err() {
            self.block_on(rewriting.abandon());
        }
        rewritten?;
        Ok(rewriting.done)
    }
}

/// SQL for the rows of a group, in the order of the table.
fn sorted(table: LakeTable) -> String {
    sorted_where(table, "true", None)
}

/// SQL for the rows that match a condition, relabelled if asked for, in the order of the table.
pub(super) fn sorted_where(table: LakeTable, condition: &str, relabeling: Option<&Relabeling>) -> String {
    sorted_as(table, condition, |column| match relabeling {
        Some(relabeling) => relabeling.column(column.name),
        None => column.name.to_owned(),
    })
}

/// SQL for the rows that match a condition, in the order of the table, with SQL for the value of each column.
pub(super) fn sorted_as(table: LakeTable, condition: &str, value: impl Fn(&TableColumn) -> String) -> String {
    let description = table.description();
    let column = |column: &TableColumn| format!("{} AS {}", value(column), column.name);
    let columns: Vec<_> = description.columns.iter().map(column).collect();
    let keys = description.order.iter().map(|&key| match key {
        "minute" => "date_trunc('minute', time)".to_owned(),
        key => key.to_owned(),
    });
    let keys = keys.collect::<Vec<_>>().join(", ");
    let order = if keys.is_empty() { String::new() } else { format!(" ORDER BY {keys}") };
    let (columns, table) = (columns.join(", "), table.name());
    format!("SELECT * FROM (SELECT {columns} FROM {table} WHERE {condition}) AS chosen{order}")
}

fn small_files(state: &LakeState) -> BTreeMap<CompactionGroup, Vec<DataFile>> {
    let mut groups: BTreeMap<CompactionGroup, Vec<DataFile>> = BTreeMap::new();
    for file in state.files.values().filter(|file| file.bytes < LARGE_BYTES || !file.sorted) {
        let Some(table) = file.table() else { continue };
        // Grouped by their last day, which decides how long they are kept.
        let day = file.span_us.map(|(_, last)| last.div_euclid(DAY_US));
        // Sources are few.
        let service = file.service.clone().filter(|_| table != LakeTable::Sources);
        groups.entry((table, service, day)).or_default().push(file.clone());
    }
    groups.retain(|_, files| files.len() > 1 || files.iter().any(|file| file.repeats));
    groups
}

/// The files that a commit merges without a command, the largest number first: of each group those of similar size, if there
/// are enough. Each merge makes one file of a larger size out of many, so a row is rewritten only a few times.
fn gathered(state: &LakeState) -> Vec<(CompactionGroup, Vec<DataFile>)> {
    let mut sizes: BTreeMap<_, Vec<DataFile>> = BTreeMap::new();
    for (group, files) in small_files(state) {
        for file in files.into_iter().filter(|file| file.bytes < GATHERED_BYTES) {
            let size = if file.repeats { 0 } else { file.rows.max(1).ilog(GATHERED as u64) };
            sizes.entry((group.clone(), file.repeats, size)).or_default().push(file);
        }
    }
    let mut gathered: Vec<_> = sizes
        .into_iter()
        .filter(|(_, files)| files.len() >= GATHERED)
        .map(|((group, ..), files)| (group, files))
        .collect();
    gathered.sort_by_key(|(_, files)| std::cmp::Reverse(files.len()));
    gathered
}

/// A new file with the properties of those that it was made of.
pub(super) fn described(file: DataFile, group: &CompactionGroup, of: &[DataFile]) -> DataFile {
    let spans = of.iter().filter_map(|file| file.span_us);
    let labels = of.iter().map(|file| file.labels.as_deref()).collect::<Option<Vec<_>>>();
    let labels = labels.map(|lists| lists.into_iter().flatten().cloned().collect::<BTreeSet<_>>());
    let labels = labels.filter(|labels| labels.len() <= LISTED_LABELS);
    let hosts = of.iter().map(|file| file.hosts.as_deref()).collect::<Option<Vec<_>>>();
    let hosts = hosts.map(|lists| lists.into_iter().flatten().cloned().collect::<BTreeSet<_>>());
    let hosts = hosts.filter(|hosts| hosts.len() <= LISTED_LABELS);
    let numbers = of.iter().map(DataFile::numbers).collect::<Option<Vec<_>>>();
    let numbers = numbers.map(|lists| ListedNumber::merged(lists.into_iter().flatten()));
    let numbers = numbers.filter(|numbers| numbers.len() <= LISTED_NUMBERS);
    DataFile {
        service: group.1.clone(),
        added_us: of.iter().map(|file| file.added_us).max().flatten(),
        span_us: spans.reduce(joined),
        labels: labels.map(|labels| labels.into_iter().collect()),
        hosts: hosts.map(|hosts| hosts.into_iter().collect()),
        numbers,
        named: of.iter().any(|file| file.named),
        ..file
    }
}

/// The weight of a batch, in which a row counts as much as a frame of a stack, because stacks may be deep.
fn weight(batch: &RecordBatch) -> usize {
    let lists = batch.columns().iter().find_map(|column| column.as_list_opt::<i32>());
    lists.map_or(batch.num_rows(), |lists| {
        let ends = lists.value_offsets();
        ends.last().zip(ends.first()).map_or(0, |(last, first)| usize::try_from(last - first).unwrap_or(0))
    })
}

/// Rows being written to new files.
struct Rewriting<'l> {
    lake: &'l Lake,
    table: LakeTable,
    partition: Partition,
    writer: Option<(FileWriter, u64)>,
    waiting: Vec<RecordBatch>,
    /// Their total weight.
    weight: usize,
    done: Vec<DataFile>,
}

impl Rewriting<'_> {
    async fn take(&mut self, batch: RecordBatch) -> Result<(), Error> {
        self.weight += weight(&batch);
        self.waiting.push(batch);
        if self.weight >= LARGE_GROUP { self.write().await } else { Ok(()) }
    }

    async fn write(&mut self) -> Result<(), Error> {
        let Some(first) = self.waiting.first() else { return Ok(()) };
        let batch =
            concat_batches(&first.schema(), &self.waiting).map_err(|error| Error::lake(error.to_string()))?;
        self.waiting.clear();
        self.weight = 0;
        let place = &self.lake.place;
        let (writer, rows) = match &mut self.writer {
            Some(open) => open,
            none => none.insert((FileWriter::new(place, self.table, &self.partition, &batch)?, 0)),
        };
        writer.write(&batch, place).await?;
        *rows += batch.num_rows() as u64;
        if *rows >= FILE_ROWS { self.close().await } else { Ok(()) }
    }

    async fn close(&mut self) -> Result<(), Error> {
        if let Some((writer, _)) = self.writer.take() {
            self.done.push(writer.finish(&self.lake.place).await?);
        }
        Ok(())
    }

    async fn finish(&mut self) -> Result<(), Error> {
        self.write().await?;
        self.close().await
    }

    async fn abandon(&mut self) {
        if let Some((writer, _)) = self.writer.take() {
            writer.abandon().await;
        }
        self.lake.discard(&self.done).await;
    }
}

#[cfg(test)]
mod tests {
    use borehole_model::{Context, Frame, Mode, ProfileSink as _, Recovery, Sample, Segment, Tables};
    use borehole_testkit::Scratch;

    use super::*;
    use crate::{InputDetails, SampleChoice};

    /// Adds 7 samples of 5 ns on a CPU.
    fn add(lake: &Lake, number: u8) {
        let source = InputDetails {
            sha256: [number; 32],
            service: Some("shop".to_owned()),
            ..InputDetails::default()
        };
        let mut adding = lake.adding();
        let (tables, mut addition) = adding.input(source);
        let name = tables.intern_string(b"main").unwrap();
        let frame = tables.intern_frame(&Frame::named(name)).unwrap();
        let stack = Some(tables.intern_stack(None, frame).unwrap());
        let segment = Segment { period_ns: Some(5), mode: Mode::Cpu, ..Segment::default() };
        let shared: &Tables = tables;
        let at = Context { tables: shared, segment: &segment };
        addition.segment(at).unwrap();
        let _ = addition.sample(at, &Sample { stack, count: 7, ..Sample::default() }).unwrap();
        addition.commit(shared, &Recovery::default()).unwrap();
    }

    /// Replaces the files of samples by files like those of earlier builds.
    fn make_old(lake: &Lake) {
        let state = lake.state().unwrap();
        let files: Vec<_> = state.files_of(LakeTable::Samples).cloned().collect();
        let group = (LakeTable::Samples, Some("shop".to_owned()), Some(0));
        let columns =
            "service, time, host, process, thread, interpreter, stack_id, value, period_ns, status, labels";
        let written = lake.rewrite(&group, &state, &format!("SELECT {columns} FROM samples")).unwrap();
        let mut commit = Commit::new(Operation::Compact, now_us());
        let old = |file| DataFile { numbers: None, ..described(file, &group, &files) };
        commit.add = written.into_iter().map(old).collect();
        commit.remove = files.iter().map(|file| file.path.clone()).collect();
        lake.block_on(lake.journal.transact(async |_| Ok(Intent::Commit(commit.clone())))).unwrap();
    }

    /// The sum of all samples, and its value type.
    fn sum(lake: &Lake, asked: Option<&str>) -> (String, String) {
        let session = lake.session().unwrap();
        let addend = session.addend(&[&SampleChoice::default()], asked).unwrap();
        let value_type = addend.value_type().to_string();
        let sql = crate::top(&SampleChoice { addend, ..SampleChoice::default() }, None);
        let rows = session.ask(&sql).unwrap().next_rows().unwrap().unwrap();
        (rows[0][1].to_text(), value_type)
    }

    #[test]
    fn samples_of_earlier_builds_count_as_wall_time() {
        let scratch = Scratch::new();
        let lake = Lake::open_or_create(scratch.path("lake").to_str().unwrap()).unwrap();
        add(&lake, 1);
        assert_eq!(sum(&lake, Some("cpu")), ("35".to_owned(), "cpu/nanoseconds".to_owned()));
        make_old(&lake);
        assert_eq!(sum(&lake, None), ("7".to_owned(), "samples/count".to_owned()));
        assert_eq!(sum(&lake, Some("wall")), ("35".to_owned(), "wall/nanoseconds".to_owned()));
        add(&lake, 2);
        for _ in 0..2 {
            assert_eq!(sum(&lake, Some("samples")).0, "14");
            assert_eq!(sum(&lake, None).0, "7", "samples of different clocks are not added up");
            assert_eq!(sum(&lake, Some("cpu")).0, "35");
            assert_eq!(sum(&lake, Some("wall")).0, "35");
            lake.compact().unwrap();
        }
        assert_eq!(lake.check().unwrap().findings, []);
    }

    #[test]
    fn compactions_at_once_leave_no_stack_twice() {
        let scratch = Scratch::new();
        let lake = Lake::open_or_create(scratch.path("lake").to_str().unwrap()).unwrap();
        (1..=4).for_each(|number| add(&lake, number));
        let seen = lake.state().unwrap();
        let files: Vec<_> = seen.files_of(LakeTable::Stacks).cloned().collect();
        let mut compacted = Compacted::default();
        for half in files.chunks(2) {
            lake.compact_group(&(LakeTable::Stacks, None, None), half, &seen, &mut compacted).unwrap();
        }
        assert_eq!((compacted.files_before, compacted.files_after, compacted.overtaken), (2, 1, 1));
        assert_eq!(sum(&lake, None).0, "28");
        lake.compact().unwrap();
        assert_eq!(sum(&lake, None).0, "28");
        assert_eq!(lake.check().unwrap().strays, 0);
    }

    #[test]
    fn merged_files_list_labels_up_to_a_limit() {
        let file = |labels: std::ops::Range<usize>| DataFile {
            table: LakeTable::Samples.name().to_owned(),
            labels: Some(labels.map(|label| format!("uri=/{label:03}")).collect()),
            ..DataFile::default()
        };
        let listed = |of: &[DataFile]| {
            let together = described(file(0..0), &(LakeTable::Samples, None, None), of);
            together.labels.map(|labels| labels.len())
        };
        assert_eq!(listed(&[file(0..60), file(4..64)]), Some(64));
        assert_eq!(listed(&[file(0..60), file(5..65)]), None);
        assert_eq!(listed(&[file(0..2), DataFile { labels: None, ..file(0..0) }]), None);
    }
}
