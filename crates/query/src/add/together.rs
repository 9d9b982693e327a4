//! Inputs that are added in one commit: their rows of a service and day go into one file.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use borehole_model::Tables;
use datafusion::arrow::array::{ArrayRef, AsArray as _, Int64Array, RecordBatch};
use datafusion::arrow::compute::{SortColumn, concat_batches, lexsort_to_indices, take_record_batch};
use datafusion::arrow::datatypes::TimestampMicrosecondType;
use hashbrown::HashSet;

use super::LISTED_LABELS;
use super::files::{FileWriter, Partition};
use super::numbers::LISTED_NUMBERS;
use super::rows::MINUTE_US;
use super::source::{AddedInput, Precursor};
use super::stacks::{InputStack, write_stacks};
use crate::checksum::hex;
use crate::error::Error;
use crate::ids::LakeStackId;
use crate::journal::{Commit, DataFile, Intent, LakeState, ListedNumber, Operation, Sum, now_us};
use crate::keep::Changes;
use crate::lake::Lake;
use crate::tables::LakeTable;
use crate::time::joined;

/// The rows of inputs that are committed together; longer inputs get files of their own.
pub(super) const ROWS_TOGETHER: usize = 1 << 18;
/// The maximum number of inputs in a commit.
const INPUTS_TOGETHER: usize = 1000;

/// An input that was read completely and is not in the lake yet.
///
/// [`Adding::add`](super::Adding::add) takes it. If it is dropped, large files may stay behind in the lake's folders until they
/// are deleted as the remains of a writer.
#[derive(Debug)]
pub struct FinishedInput {
    pub(super) name: String,
    /// The checksum by which commits know it.
    pub(super) sum: Sum,
    /// The checksum of its longest beginning.
    pub(super) beginning: Option<Sum>,
    pub(super) replaces: Vec<Precursor>,
    pub(super) added: AddedInput,
    /// Rows for files that are shared with other inputs.
    pub(super) rows: Vec<FileRows>,
    /// Files of its own.
    pub(super) done: Vec<DataFile>,
    pub(super) stacks: Vec<InputStack>,
}

impl FinishedInput {
    pub(super) fn row_count(&self) -> usize {
        let of_files: u64 = self.done.iter().map(|file| file.rows).sum();
        let of_rows: usize = self.rows.iter().map(|rows| rows.batch.num_rows()).sum();
        usize::try_from(of_files).unwrap_or(usize::MAX).saturating_add(of_rows)
    }
}

/// Whether this many inputs with this many rows are enough for a commit.
pub(super) const fn are_enough(inputs: usize, rows: usize) -> bool {
    inputs >= INPUTS_TOGETHER || rows >= ROWS_TOGETHER
}

/// Rows of a table, and the facts about them.
#[derive(Debug)]
pub(super) struct FileRows {
    pub(super) table: LakeTable,
    pub(super) partition: Partition,
    pub(super) batch: RecordBatch,
    pub(super) facts: FileFacts,
}

/// The facts about rows that let queries skip their file.
#[derive(Clone, Debug, Default)]
pub(super) struct FileFacts {
    pub(super) span_us: Option<(i64, i64)>,
    pub(super) labels: Option<BTreeSet<String>>,
    pub(super) hosts: Option<BTreeSet<String>>,
    pub(super) numbers: Option<Vec<ListedNumber>>,
}

impl FileFacts {
    /// A file with these facts.
    pub(super) fn describe(self, service: Option<String>, file: DataFile) -> DataFile {
        let listed = |texts: BTreeSet<String>| texts.into_iter().collect();
        let (labels, hosts) = (self.labels.map(listed), self.hosts.map(listed));
        DataFile { service, span_us: self.span_us, labels, hosts, numbers: self.numbers, ..file }
    }

    /// The facts about the rows of both.
    fn with(self, other: Self) -> Self {
        let both = |one: Option<BTreeSet<String>>, other: Option<BTreeSet<String>>| {
            let (mut all, other) = (one?, other?);
            all.extend(other);
            Some(all).filter(|all| all.len() <= LISTED_LABELS)
        };
        let numbers = self.numbers.zip(other.numbers);
        let numbers = numbers.map(|(one, other)| ListedNumber::merged(one.into_iter().chain(other)));
        Self {
            span_us: self.span_us.into_iter().chain(other.span_us).reduce(joined),
            labels: both(self.labels, other.labels),
            hosts: both(self.hosts, other.hosts),
            numbers: numbers.filter(|numbers| numbers.len() <= LISTED_NUMBERS),
        }
    }
}

/// The stacks that a writer has added already.
#[derive(Debug, Default)]
pub(super) struct WrittenStacks {
    ids: HashSet<LakeStackId>,
    /// The number of the first commit that added some.
    since: u64,
}

impl WrittenStacks {
    /// Whether all of them are still in the lake.
    const fn are_in(&self, state: &LakeState) -> bool {
        self.since > state.dropped
    }
}

/// The files of a commit and their bytes.
#[derive(Debug, Default)]
pub(super) struct CommittedFiles {
    pub(super) files: usize,
    pub(super) bytes: u64,
}

impl Lake {
    /// Commits inputs that share `tables`, all or none of them.
    pub(super) async fn commit_inputs(
        &self,
        inputs: &[FinishedInput],
        tables: &Tables,
        written: &mut WrittenStacks,
        replaced: &Changes,
    ) -> Result<CommittedFiles, Error> {
        let mut commit = Commit::new(Operation::Add, now_us());
        commit.sources = inputs.iter().map(|input| hex(&input.sum)).collect();
        let beginnings = inputs.iter().filter_map(|input| input.beginning);
        commit.beginnings = beginnings.collect::<BTreeSet<_>>().iter().map(|sum| hex(sum)).collect();
        commit.add = inputs.iter().flat_map(|input| &input.done).cloned().collect();
        replaced.clone().apply_to(&mut commit);
        let mut stacks = None;
        let committed = self.try_commit(inputs, tables, written, &mut commit, &mut stacks).await;
        match committed {
            Ok(state) => {
                written.took(inputs, &state);
                let bytes = commit.add.iter().map(|file| file.bytes).sum();
                Ok(CommittedFiles { files: commit.add.len(), bytes })
            }
            Err(error) if error.is_uncertain() => {
                // The commit may exist and name these files. If it does not, they are deleted later.
                Err(error.with_hint(
                    "add the file again: the storage did not confirm the commit, and no file counts twice",
                ))
            }
            Err(error) => {
                let of_stacks = stacks.iter().filter_map(|(_, file): &StacksFile| file.as_ref());
                let own = commit.add.iter().filter(|file| !replaced.has(file));
                self.discard(own.chain(of_stacks)).await;
                Err(error)
            }
        }
    }

    async fn try_commit(
        &self,
        inputs: &[FinishedInput],
        tables: &Tables,
        written: &WrittenStacks,
        commit: &mut Commit,
        stacks: &mut Option<StacksFile>,
    ) -> Result<Arc<LakeState>, Error> {
        self.write_rows(inputs, &mut commit.add).await?;
        for file in &mut commit.add {
            file.added_us = file.added_us.or(Some(commit.at_us));
        }
        let of_rows = commit.add.len();
        let sums: Vec<_> = inputs.iter().map(|input| input.sum).collect();
        let intend = async |state: &LakeState| {
            if !commit.remove.iter().all(|path| state.files.contains_key(path)) {
                return Err(Error::lake("other programs replaced files").vanished());
            }
            let known = state.inputs.among(&sums, &self.place).await?;
            if let Some((input, _)) = inputs.iter().zip(&sums).find(|(_, sum)| known.contains(*sum)) {
                return Err(Error::added(format!("{}: already added", input.name)));
            }
            let file = self.stacks_file(inputs, tables, written, state, stacks).await?;
            commit.add.truncate(of_rows);
            commit.add.extend(file);
            Ok(Intent::Commit(commit.clone()))
        };
        self.journal.transact(intend).await
    }

    /// The file of the stacks that the writer has not added yet, written anew if `state` lacks some of those.
    ///
    /// The stacks of other writers are not looked at, so that an addition costs the same however many there are. Queries and
    /// compactions take each stack once.
    async fn stacks_file(
        &self,
        inputs: &[FinishedInput],
        tables: &Tables,
        written: &WrittenStacks,
        state: &LakeState,
        made: &mut Option<StacksFile>,
    ) -> Result<Option<DataFile>, Error> {
        let is_known = written.are_in(state);
        if let Some((with_known, file)) = made {
            if *with_known == is_known {
                return Ok(file.clone());
            }
            self.discard(file.as_ref()).await;
        }
        let stacks = inputs.iter().flat_map(|input| &input.stacks);
        let mut new: Vec<_> =
            stacks.filter(|stack| !is_known || !written.ids.contains(&stack.id)).cloned().collect();
        new.sort_unstable_by_key(|stack| (stack.id, stack.stack));
        new.dedup_by_key(|stack| stack.id);
        *made = None;
        let file = if new.is_empty() { None } else { Some(write_stacks(&mut new, self, tables).await?) };
        *made = Some((is_known, file.clone()));
        Ok(file)
    }

    /// Writes the rows of all inputs, and lists the files that are complete.
    async fn write_rows(&self, inputs: &[FinishedInput], files: &mut Vec<DataFile>) -> Result<(), Error> {
        let mut groups: BTreeMap<_, Vec<&FileRows>> = BTreeMap::new();
        for rows in inputs.iter().flat_map(|input| &input.rows) {
            groups.entry((rows.table, &rows.partition)).or_default().push(rows);
        }
        for ((table, partition), rows) in groups {
            let batches: Vec<_> = rows.iter().map(|rows| &rows.batch).collect();
            let batch = in_order(table, &batches)?;
            let mut writer = FileWriter::new(&self.place, table, partition, &batch)?;
            if let Err(error) = writer.write(&batch, &self.place).await {
                writer.abandon().await;
                return Err(error);
            }
            let file = writer.finish(&self.place).await?;
            let facts = rows.iter().map(|rows| rows.facts.clone()).reduce(FileFacts::with);
            files.push(facts.unwrap_or_default().describe(partition.service.clone(), file));
        }
        Ok(())
    }
}

/// A file of stacks, and whether it leaves out the stacks that the writer has added before.
type StacksFile = (bool, Option<DataFile>);

impl WrittenStacks {
    /// Remembers the stacks of inputs whose commit led to `state`.
    fn took(&mut self, inputs: &[FinishedInput], state: &LakeState) {
        if !self.are_in(state) {
            *self = Self { ids: HashSet::new(), since: state.version };
        }
        self.ids.extend(inputs.iter().flat_map(|input| &input.stacks).map(|stack| stack.id));
    }
}

/// Rows in the order of their table.
fn in_order(table: LakeTable, batches: &[&RecordBatch]) -> Result<RecordBatch, Error> {
    let [first, others @ ..] = batches else { return Err(Error::lake("no rows")) };
    if others.is_empty() {
        return Ok((*first).clone());
    }
    let failed = |error: datafusion::arrow::error::ArrowError| Error::lake(error.to_string());
    let batch = concat_batches(&first.schema(), batches.iter().copied()).map_err(failed)?;
    let key = |&key: &&str| match key {
        "minute" => batch.column_by_name("time").map(minutes),
        key => batch.column_by_name(key).cloned(),
    };
    let keys = table.description().order.iter().filter_map(key);
    let keys: Vec<_> = keys.map(|values| SortColumn { values, options: None }).collect();
    let order = lexsort_to_indices(&keys, None).map_err(failed)?;
    take_record_batch(&batch, &order).map_err(failed)
}

fn minutes(times: &ArrayRef) -> ArrayRef {
    let times = times.as_primitive::<TimestampMicrosecondType>();
    Arc::new(times.iter().map(|time| time.map(|time| time.div_euclid(MINUTE_US))).collect::<Int64Array>())
}

#[cfg(test)]
mod tests {
    use std::fmt;
    use std::sync::atomic::{AtomicU64, Ordering};

    use async_trait::async_trait;
    use borehole_model::{Context, Frame, ProfileSink as _, Recovery, Sample, Segment};
    use futures::stream::BoxStream;
    use object_store::memory::InMemory;
    use object_store::path::Path;
    use object_store::{
        CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
        PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
    };

    use super::*;
    use crate::InputDetails;
    use crate::place::LakePlace;

    /// Storage that counts the requests to it.
    #[derive(Debug, Default)]
    struct Counting {
        storage: InMemory,
        requests: AtomicU64,
    }

    impl Counting {
        fn count(&self) {
            self.requests.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl fmt::Display for Counting {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("counting")
        }
    }

    #[async_trait]
    impl ObjectStore for Counting {
        async fn put_opts(&self, path: &Path, bytes: PutPayload, options: PutOptions) -> Result<PutResult> {
            self.count();
            self.storage.put_opts(path, bytes, options).await
        }

        async fn put_multipart_opts(
            &self,
            path: &Path,
            options: PutMultipartOptions,
        ) -> Result<Box<dyn MultipartUpload>> {
            self.count();
            self.storage.put_multipart_opts(path, options).await
        }

        async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
            self.count();
            self.storage.get_opts(path, options).await
        }

        fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
            self.count();
            self.storage.delete_stream(paths)
        }

        fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
            self.count();
            self.storage.list(prefix)
        }

        async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
            self.count();
            self.storage.list_with_delimiter(prefix).await
        }

        async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
            self.count();
            self.storage.copy_opts(from, to, options).await
        }
    }

    /// Adds an input of one sample of a stack of its own, with a share of the maintenance.
    fn add(lake: &Lake, number: u64) {
        let mut sha256 = [0; 32];
        sha256[..8].copy_from_slice(&number.to_le_bytes());
        let mut adding = lake.adding();
        let (tables, mut addition) = adding.input(InputDetails { sha256, ..InputDetails::default() });
        let name = tables.intern_string(format!("f{number}").as_bytes()).unwrap();
        let frame = tables.intern_frame(&Frame::named(name)).unwrap();
        let stack = Some(tables.intern_stack(None, frame).unwrap());
        let at = Context { tables, segment: &Segment::default() };
        addition.segment(at).unwrap();
        let _ = addition.sample(at, &Sample { stack, count: 1, ..Sample::default() }).unwrap();
        let input = addition.finish(&Recovery::default()).unwrap();
        adding.add(input).unwrap();
        let committed = adding.commit().unwrap();
        assert!(committed.maintenance.is_none(), "{:?}", committed.maintenance);
    }

    #[test]
    fn an_addition_takes_as_many_requests_late_as_early() {
        let store = Arc::new(Counting::default());
        let open = || {
            let place = LakePlace::of_store(Arc::clone(&store) as Arc<dyn ObjectStore>);
            Lake::at_place(place).unwrap()
        };
        let lake = open();
        // The requests of programs that add one input each, from the second state on.
        let mut requests = Vec::new();
        for number in 0..320 {
            let is_measured = number >= 64;
            let before = store.requests.load(Ordering::Relaxed);
            if is_measured {
                add(&open(), number);
            } else {
                add(&lake, number);
            }
            requests.push(store.requests.load(Ordering::Relaxed) - before);
        }
        let least = |range: std::ops::Range<usize>| *requests[range].iter().min().unwrap();
        assert_eq!(least(64..192), least(192..320), "without maintenance: {requests:?}");
        // Of the same phase between two states, and of the same share of merges.
        let sum = |range: std::ops::Range<usize>| requests[range].iter().sum::<u64>();
        let (early, late) = (sum(64..192), sum(192..320));
        assert!(late * 10 <= early * 11, "{early} and {late} requests: {requests:?}");
    }
}
