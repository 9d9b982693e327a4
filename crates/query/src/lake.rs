//! A handle to a lake.

use std::fs;
use std::future::Future;
use std::sync::Arc;

use borehole_model::shown::{cause, word};
use datafusion::arrow::array::RecordBatch;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use hashbrown::HashSet;
use object_store::local::LocalFileSystem;
use tokio::runtime::Runtime;
use tokio::sync::Mutex;

use crate::Error;
use crate::add::Adding;
use crate::functions;
use crate::ids::{self, Id};
use crate::journal::{Commit, DataFile, Intent, Journal, Operation, State, now_us};
use crate::place::Place;
use crate::scan::LakeTable;
use crate::tables::{STACK_ID, Table};

/// Rows per batch where memory is limited: a stack may have thousands of frames.
const FRUGAL_ROWS: usize = 1024;

/// A lake: a folder, or a prefix in an object store.
///
/// Any number of programs may add to it, maintain it and query it at once.
#[derive(Debug)]
pub struct Lake {
    place: Place,
    journal: Journal,
    runtime: Runtime,
    known: Mutex<KnownStacks>,
}

/// The stacks of the files read so far; files never change.
#[derive(Debug, Default)]
struct KnownStacks {
    files: HashSet<String>,
    ids: HashSet<Id>,
}

impl Lake {
    /// Opens the lake at `name`: the path of a folder, or an address such as `s3://bucket/lake`, `gs://bucket/lake` or
    /// `az://container/lake`, if the build supports that storage. Credentials come from the environment.
    ///
    /// # Errors
    /// If there is none ([`Error::is_missing`]), or the storage cannot be read.
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
        let create = async |state: &State| match state.version {
            0 => Ok(Intent::Commit(Commit::new(Operation::Create, now_us()))),
            _ => Ok(Intent::Nothing),
        };
        lake.block_on(lake.journal.transact(create))?;
        Ok(lake)
    }

    /// Checks that a lake at `name` can be added to later, whether it exists or not, as far as possible without creating one:
    /// for callers that work for a long time first.
    ///
    /// # Errors
    /// If `name` is not a valid place, the storage cannot be read, or the folder cannot be created or written.
    pub fn check_place(name: &str) -> Result<(), Error> {
        let lake = Self::at(name)?;
        lake.block_on(lake.journal.state())?;
        if lake.place.is_folder() { check_folder(&lake.place) } else { Ok(()) }
    }

    fn at(name: &str) -> Result<Self, Error> {
        let place = Place::parse(name)?;
        let journal = Journal::new(place.clone());
        Ok(Self { journal, place, runtime: runtime()?, known: Mutex::default() })
    }

    pub(crate) const fn place(&self) -> &Place {
        &self.place
    }

    pub(crate) const fn journal(&self) -> &Journal {
        &self.journal
    }

    pub(crate) fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// Its newest state.
    pub(crate) fn state(&self) -> Result<State, Error> {
        self.block_on(self.newest())
    }

    pub(crate) async fn newest(&self) -> Result<State, Error> {
        self.journal.state().await?.ok_or_else(|| {
            let error = Error::missing(format!("{}: expected a lake, found none", self.place));
            error.with_hint(format!("borehole lake add {} FILE... begins one", word(&self.place.to_string())))
        })
    }

    /// Begins to add inputs.
    #[must_use]
    pub fn adding(&self) -> Adding<'_> {
        Adding::new(self)
    }

    /// Whether an input with this checksum is in the lake.
    ///
    /// # Errors
    /// If the lake cannot be read.
    pub fn holds(&self, sha256: &[u8; 32]) -> Result<bool, Error> {
        Ok(self.state()?.sources.contains(&crate::add::files::hex(&sha256[..16])))
    }

    /// The ones among `ids` that belong to stacks of the lake.
    pub(crate) async fn known_of(&self, ids: &HashSet<Id>, state: &State) -> Result<HashSet<Id>, Error> {
        if ids.is_empty() {
            return Ok(HashSet::new());
        }
        let mut known = self.known.lock().await;
        if known.files.iter().any(|path| !state.files.contains_key(path)) {
            // A stack may have been removed with its file.
            *known = KnownStacks::default();
        }
        for file in state.files_of(Table::Stacks) {
            if !known.files.contains(&file.path) {
                let there = self.read_ids(file).await?;
                known.ids.extend(there);
                known.files.insert(file.path.clone());
            }
        }
        Ok(ids.intersection(&known.ids).copied().collect())
    }

    async fn read_ids(&self, file: &DataFile) -> Result<Vec<Id>, Error> {
        let batches = self.read_column(file, STACK_ID).await?;
        let of_batch = |batch: &RecordBatch| {
            let column = Arc::clone(batch.column(0));
            (0..batch.num_rows()).filter_map(move |row| ids::at(&column, row))
        };
        Ok(batches.iter().flat_map(of_batch).collect())
    }

    /// Reads a column of a file.
    pub(crate) async fn read_column(&self, file: &DataFile, column: &str) -> Result<Vec<RecordBatch>, Error> {
        let part = State { files: [(file.path.clone(), file.clone())].into(), ..State::default() };
        let context = self.context_of(&part, None)?;
        let frame = context.sql(&format!("SELECT {column} FROM {}", file.table)).await?;
        Ok(frame.collect().await?)
    }

    /// An engine with the tables of a state, whose queries spill to disk above the given memory.
    pub(crate) fn context_of(
        &self,
        part: &State,
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
    pub(crate) fn register(&self, context: &SessionContext, part: &State) -> Result<(), Error> {
        functions::all().into_iter().for_each(|function| context.register_udf(function));
        let stacks = part.files_of(Table::Stacks).map(|file| file.rows).sum();
        for table in Table::ALL {
            let files = part.files_of(table).cloned().collect();
            let root = ObjectStoreUrl::parse(self.place.root().as_str())?;
            let base = self.place.path("").as_ref().to_owned();
            let table_of_files = LakeTable { table, root, base, files: Arc::new(files), stacks };
            context.register_table(table.name(), Arc::new(table_of_files))?;
        }
        Ok(())
    }
}

/// Checks that an existing folder, or the one above it, accepts new folders. Only creating one tells: permission to write
/// does not mean that the file system allows it.
fn check_folder(place: &Place) -> Result<(), Error> {
    // The store knows where files are.
    let file = LocalFileSystem::new().path_to_filesystem(&place.path("file"));
    let file = file.map_err(|error| Error::storage(place, &error))?;
    let mut folders = file.ancestors().skip(1);
    let Some(existing) = folders.find(|folder| folder.exists()) else { return Ok(()) };
    let probe = existing.join(format!(".borehole-{}", uuid::Uuid::new_v4().simple()));
    let made = fs::create_dir(&probe).and_then(|()| fs::remove_dir(&probe));
    made.map_err(|error| {
        Error::storage(place, &format_args!("{} takes no folders: {}", existing.display(), cause(&error)))
    })
}

/// The runtime of all asynchronous work: a thread per core.
pub(crate) fn runtime() -> Result<Runtime, Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(|error| Error::storage(&"this program", &error))
}
