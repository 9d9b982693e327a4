//! A handle to a lake.

use std::fs;
use std::future::Future;
use std::sync::Arc;

use borehole_text::{cause, shell_word};
use datafusion::arrow::array::Array;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use hashbrown::HashSet;
use object_store::local::LocalFileSystem;
use tokio::runtime::Runtime;
use tokio::sync::Mutex;

use crate::checksum::input_id;
use crate::error::Error;
use crate::functions;
use crate::ids::{self, LakeStackId};
use crate::journal::{Commit, DataFile, Intent, Journal, LakeState, Operation, now_us};
use crate::place::LakePlace;
use crate::scan::TableFiles;
use crate::tables::{LakeTable, STACK_ID};

/// Rows per batch where memory is limited: a stack may have thousands of frames.
const FRUGAL_ROWS: usize = 1024;

/// A lake: a folder, or a prefix in an object store.
///
/// Any number of programs may add to it, maintain it and query it at once.
#[derive(Debug)]
pub struct Lake {
    pub(crate) place: LakePlace,
    pub(crate) journal: Journal,
    runtime: Runtime,
    known: Mutex<KnownStacks>,
}

/// The stacks of the files read so far; files never change.
#[derive(Debug, Default)]
struct KnownStacks {
    files: HashSet<String>,
    ids: HashSet<LakeStackId>,
}

impl Lake {
    /// Opens the lake at `name`: the path of a folder, or an address such as `s3://bucket/lake`, `gs://bucket/lake` or
    /// `az://container/lake`, if the build supports that storage. Credentials come from the environment.
    ///
    /// # Errors
    /// If the lake does not exist ([`Error::is_missing`]), or the storage cannot be read.
    pub fn open(name: &str) -> Result<Self, Error> {
        let lake = Self::at(name)?;
        lake.state()?;
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
        lake.block_on(lake.journal.transact(create))?;
        Ok(lake)
    }

    /// Checks, as far as possible without creating a lake, that a lake at `name` can be added to later, whether it exists or
    /// not. For callers that work for a long time before they add.
    ///
    /// # Errors
    /// If `name` is not a valid place, the storage cannot be read, or the folder cannot be created or written.
    pub fn check_place(name: &str) -> Result<(), Error> {
        let lake = Self::at(name)?;
        lake.block_on(lake.journal.state())?;
        if lake.place.is_folder() { check_folder(&lake.place) } else { Ok(()) }
    }

    fn at(name: &str) -> Result<Self, Error> {
        let place = LakePlace::parse(name)?;
        let journal = Journal::new(place.clone());
        Ok(Self { journal, place, runtime: runtime()?, known: Mutex::default() })
    }

    pub(crate) fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    pub(crate) fn state(&self) -> Result<LakeState, Error> {
        self.block_on(self.newest())
    }

    pub(crate) async fn newest(&self) -> Result<LakeState, Error> {
        self.journal.state().await?.ok_or_else(|| {
            let error = Error::missing(format!("{}: no such lake", self.place));
            error.with_hint(format!(
                "run borehole lake add {} FILE... to create it",
                shell_word(&self.place.to_string())
            ))
        })
    }

    /// Whether an input with this checksum is in the lake.
    ///
    /// # Errors
    /// If the lake cannot be read.
    pub fn holds(&self, sha256: &[u8; 32]) -> Result<bool, Error> {
        Ok(self.state()?.sources.contains(&input_id(sha256)))
    }

    /// Those of `ids` that belong to stacks of the lake.
    pub(crate) async fn known_of(
        &self,
        ids: &HashSet<LakeStackId>,
        state: &LakeState,
    ) -> Result<HashSet<LakeStackId>, Error> {
        if ids.is_empty() {
            return Ok(HashSet::new());
        }
        let mut known = self.known.lock().await;
        if known.files.iter().any(|path| !state.files.contains_key(path)) {
            // A stack may have been removed with its file.
            *known = KnownStacks::default();
        }
        for file in state.files_of(LakeTable::Stacks) {
            if !known.files.contains(&file.path) {
                known.ids.extend(self.read_column(file, STACK_ID, ids::at).await?);
                known.files.insert(file.path.clone());
            }
        }
        Ok(ids.intersection(&known.ids).copied().collect())
    }

    /// Reads the values of a column of a file; `value` returns the one in a row.
    pub(crate) async fn read_column<T>(
        &self,
        file: &DataFile,
        column: &str,
        value: impl Fn(&dyn Array, usize) -> Option<T>,
    ) -> Result<Vec<T>, Error> {
        let part = LakeState { files: [(file.path.clone(), file.clone())].into(), ..LakeState::default() };
        let context = self.context_of(&part, None)?;
        let frame = context.sql(&format!("SELECT {column} FROM {}", file.table)).await?;
        let batches = frame.collect().await?;
        let rows =
            batches.iter().flat_map(|batch| (0..batch.num_rows()).map(move |row| (batch.column(0), row)));
        Ok(rows.filter_map(|(column, row)| value(column, row)).collect())
    }

    /// Deletes files that no commit names. If that fails, a later compaction deletes them.
    pub(crate) async fn discard(&self, files: impl IntoIterator<Item = &DataFile>) {
        for file in files {
            let _ = self.place.delete(&file.path).await;
        }
    }

    /// Creates an engine with the tables of a state. With `memory_bytes`, its queries spill to disk above that.
    pub(crate) fn context_of(
        &self,
        part: &LakeState,
        memory_bytes: Option<usize>,
    ) -> Result<SessionContext, Error> {
        let mut runtime = RuntimeEnvBuilder::new();
        let mut config = SessionConfig::new().with_information_schema(true);
        if let Some(bytes) = memory_bytes {
            config = config.with_batch_size(FRUGAL_ROWS);
            runtime = runtime.with_memory_pool(Arc::new(FairSpillPool::new(bytes)));
        }
        let context = SessionContext::new_with_config_rt(config, runtime.build_arc()?);
        context.register_object_store(self.place.root(), Arc::clone(self.place.store()));
        self.register(&context, part)?;
        Ok(context)
    }

    /// Registers the tables of a state and the functions in an engine.
    pub(crate) fn register(&self, context: &SessionContext, part: &LakeState) -> Result<(), Error> {
        functions::all().into_iter().for_each(|function| context.register_udf(function));
        let stacks = part.files_of(LakeTable::Stacks).map(|file| file.rows).sum();
        for table in LakeTable::ALL {
            let files = part.files_of(table).cloned().collect();
            let root = ObjectStoreUrl::parse(self.place.root().as_str())?;
            let base = self.place.path("").as_ref().to_owned();
            let table_of_files = TableFiles { table, root, base, files: Arc::new(files), stacks };
            context.register_table(table.name(), Arc::new(table_of_files))?;
        }
        Ok(())
    }
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
