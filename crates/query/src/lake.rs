//! A handle to a lake.

use std::fs;
use std::future::Future;
use std::sync::Arc;

use borehole_text::{cause, shell_word};
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use object_store::local::LocalFileSystem;
use tokio::runtime::Runtime;

use crate::add::Precursor;
use crate::checksum::{ContentPrefixes, hex, input_sum};
use crate::error::Error;
use crate::functions;
use crate::journal::{Commit, DataFile, Intent, Journal, LakeState, Operation, now_us};
use crate::literal::text;
use crate::place::LakePlace;
use crate::scan::{TableFiles, distinct_stacks};
use crate::tables::LakeTable;
use crate::value::LakeValue;

/// Rows per batch where memory is limited: a stack may have thousands of frames.
const FRUGAL_ROWS: usize = 1024;

/// The memory that questions take by default.
const QUESTION_BYTES: usize = 1 << 30;

/// A lake: a folder, or a prefix in an object store.
///
/// Any number of programs may add to it, maintain it and query it at once.
#[derive(Debug)]
pub struct Lake {
    pub(crate) place: LakePlace,
    pub(crate) journal: Journal,
    runtime: Runtime,
    /// The memory that a question takes before it spills to disk.
    question_bytes: usize,
}

impl Lake {
    /// Opens the lake at `name`: the path of a folder, or an address such as `s3://bucket/lake`, `gs://bucket/lake` or
    /// `az://container/lake`, if the build supports that storage. Credentials come from the environment.
    ///
    /// # Errors
    /// If the lake does not exist ([`Error::is_missing`]), or the storage cannot be read.
    pub fn open(name: &str) -> Result<Self, Error> {
        let lake = Self::at(name)?;
        lake.check_tables(&*lake.state()?)?;
        Ok(lake)
    }

    /// Opens the lake at `name`, or creates an empty one.
    ///
    /// # Errors
    /// If the storage cannot be read or written.
    pub fn open_or_create(name: &str) -> Result<Self, Error> {
        let lake = Self::at(name)?;
        let create = async |state: &LakeState| match state.version {
            0 => Ok(Intent::Commit(Commit::new(Operation::Create, now_us()))),
            _ => Ok(Intent::Nothing),
        };
        let state = lake.block_on(lake.journal.transact(create))?;
        lake.check_tables(&state)?;
        Ok(lake)
    }

    /// Checks, as far as possible without creating a lake, that a lake at `name` can be added to later, whether it exists or
    /// not. For callers that work for a long time before they add.
    ///
    /// # Errors
    /// If `name` is not a valid place, the storage cannot be read, or the folder cannot be created or written.
    pub fn check_place(name: &str) -> Result<(), Error> {
        let lake = Self::at(name)?;
        if let Some(state) = lake.block_on(lake.journal.state())? {
            lake.check_tables(&state)?;
        }
        if lake.place.is_folder() { check_folder(&lake.place) } else { Ok(()) }
    }

    /// Sets the memory that a question takes before it spills to disk; the default is 1 GiB.
    #[must_use]
    pub fn within(self, question_bytes: usize) -> Self {
        Self { question_bytes, ..self }
    }

    pub(crate) fn at(name: &str) -> Result<Self, Error> {
        Self::at_place(LakePlace::parse(name)?)
    }

    pub(crate) fn at_place(place: LakePlace) -> Result<Self, Error> {
        let journal = Journal::new(place.clone());
        Ok(Self { journal, place, runtime: runtime()?, question_bytes: QUESTION_BYTES })
    }

    pub(crate) fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    pub(crate) fn state(&self) -> Result<Arc<LakeState>, Error> {
        self.block_on(self.newest())
    }

    pub(crate) async fn newest(&self) -> Result<Arc<LakeState>, Error> {
        self.journal.state().await?.ok_or_else(|| self.no_lake())
    }

    /// Refuses a state with tables of earlier builds.
    fn check_tables(&self, state: &LakeState) -> Result<(), Error> {
        if !state.is_outdated() {
            return Ok(());
        }
        let error = Error::lake(format!("{}: tables of an earlier version", self.place));
        let place = shell_word(&self.place.to_string());
        Err(error.with_hint(format!("run borehole lake upgrade {place} once, which rewrites them")))
    }

    fn no_lake(&self) -> Error {
        let error = Error::missing(format!("{}: no such lake", self.place));
        let place = shell_word(&self.place.to_string());
        error.with_hint(format!("run borehole lake add {place} FILE... to create it"))
    }

    /// Whether an input with this checksum is in the lake, as far as this handle has read it. A commit looks again.
    ///
    /// # Errors
    /// If the lake cannot be read.
    pub fn holds(&self, sha256: &[u8; 32]) -> Result<bool, Error> {
        let found = self.block_on(self.journal.among(|state| &state.inputs, &[input_sum(sha256)]))?;
        found.map(|found| !found.is_empty()).ok_or_else(|| self.no_lake())
    }

    /// The inputs in the lake that an input with these beginnings may continue: it does if its first bytes have the checksum.
    ///
    /// # Errors
    /// If the lake cannot be read.
    pub fn precursors(&self, prefixes: &ContentPrefixes) -> Result<Vec<Precursor>, Error> {
        let found = self.block_on(self.journal.among(|state| &state.beginnings, &prefixes.sums))?;
        let found = found.ok_or_else(|| self.no_lake())?;
        if found.is_empty() {
            return Ok(Vec::new());
        }
        let beginnings = found.iter().map(|sum| text(&hex(sum))).collect::<Vec<_>>().join(", ");
        let session = self.session()?;
        let mut answer = session.ask(&format!(
            "SELECT source, bytes, CAST(time AS BIGINT), CAST(until AS BIGINT) FROM sources \
             WHERE beginning IN ({beginnings}) AND bytes < {} ORDER BY bytes DESC LIMIT {MOST_PRECURSORS}",
            prefixes.bytes
        ))?;
        let mut precursors = Vec::new();
        while let Some(rows) = answer.next_rows()? {
            precursors.extend(rows.iter().filter_map(|row| precursor(row)));
        }
        Ok(precursors)
    }

    /// Deletes files that no commit names. If that fails, a later compaction deletes them.
    pub(crate) async fn discard(&self, files: impl IntoIterator<Item = &DataFile>) {
        for file in files {
            let _ = self.place.delete(&file.path).await;
        }
    }

    /// Creates an engine with the tables of a state. Its queries spill to disk above `memory_bytes`, or above the memory of
    /// questions.
    pub(crate) fn context_of(
        &self,
        part: &LakeState,
        memory_bytes: Option<usize>,
    ) -> Result<SessionContext, Error> {
        self.check_tables(part)?;
        let context = self.engine(memory_bytes)?;
        self.register(&context, part)?;
        Ok(context)
    }

    /// Creates an engine without tables.
    pub(crate) fn engine(&self, memory_bytes: Option<usize>) -> Result<SessionContext, Error> {
        let mut runtime = RuntimeEnvBuilder::new();
        let mut config = SessionConfig::new().with_information_schema(true);
        if memory_bytes.is_some() {
            config = config.with_batch_size(FRUGAL_ROWS);
        }
        let bytes = memory_bytes.unwrap_or(self.question_bytes);
        runtime = runtime.with_memory_pool(Arc::new(FairSpillPool::new(bytes)));
        let context = SessionContext::new_with_config_rt(config, runtime.build_arc()?);
        context.register_object_store(self.place.root(), Arc::clone(self.place.store()));
        Ok(context)
    }

    /// Registers the tables of a state and the functions in an engine.
    pub(crate) fn register(&self, context: &SessionContext, part: &LakeState) -> Result<(), Error> {
        functions::all().into_iter().for_each(|function| context.register_udf(function));
        let stacks = part.files_of(LakeTable::Stacks).map(|file| file.rows).sum();
        for table in LakeTable::ALL {
            let files = match table {
                LakeTable::Stacks => part.files_of_stacks(),
                _ => part.files_of(table).cloned().collect(),
            };
            let table_of_files = self.table_files(table, files, stacks)?;
            if table == LakeTable::Stacks && part.repeats_stacks() {
                let numbered = TableFiles { is_numbered: true, ..table_of_files };
                context.register_table(table.name(), Arc::new(distinct_stacks(numbered)?))?;
            } else {
                context.register_table(table.name(), Arc::new(table_of_files))?;
            }
        }
        Ok(())
    }

    /// Some files of a table.
    pub(crate) fn table_files(
        &self,
        table: LakeTable,
        files: Vec<DataFile>,
        stacks: u64,
    ) -> Result<TableFiles, Error> {
        let root = ObjectStoreUrl::parse(self.place.root().as_str())?;
        let base = self.place.path("").as_ref().to_owned();
        Ok(TableFiles {
            table,
            root,
            base,
            files: Arc::new(files),
            stacks,
            is_numbered: false,
            is_earlier: false,
        })
    }
}

/// The most inputs that are looked at because they begin as another one does.
const MOST_PRECURSORS: usize = 100;

fn precursor(row: &[LakeValue]) -> Option<Precursor> {
    let [LakeValue::Text(source), numbers @ ..] = row else { return None };
    let &[LakeValue::Integer(bytes), LakeValue::Integer(first), LakeValue::Integer(last)] = numbers else {
        return None;
    };
    let span_us = (i64::try_from(first).ok()?, i64::try_from(last).ok()?);
    Some(Precursor { source: source.clone(), bytes: u64::try_from(bytes).ok()?, span_us })
}

/// Checks that folders can be created in the place, or in the nearest folder above it. It creates one, because permission to
/// write does not mean that the file system allows it.
fn check_folder(place: &LakePlace) -> Result<(), Error> {
    let file = LocalFileSystem::new().path_to_filesystem(&place.path("file"));
    let file = file.map_err(|error| Error::storage(place, &error))?;
    let mut folders = file.ancestors().skip(1);
    let Some(existing) = folders.find(|folder| folder.exists()) else { return Ok(()) };
    let probe = existing.join(format!(".borehole-{}", uuid::Uuid::new_v4().simple()));
    let made = fs::create_dir(&probe).and_then(|()| fs::remove_dir(&probe));
    made.map_err(|error| {
        Error::storage(
            place,
            &format_args!("cannot create folders in {}: {}", existing.display(), cause(&error)),
        )
    })
}

/// Creates the runtime of all asynchronous work, with one thread per core.
pub(crate) fn runtime() -> Result<Runtime, Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(|error| Error::storage(&"cannot start threads", &error))
}
