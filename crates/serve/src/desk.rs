//! Where questions are asked: the catalogue and the cache together.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tokio::sync::Semaphore;

use crate::cache::{Cache, CacheKey};
use crate::catalogue::{Catalogue, CataloguedInput, InputKind, Listing};
use crate::lakes::Lakes;
use crate::limits::CacheLimits;
use crate::opened::Opened;
use crate::received::ReceivedFiles;
use crate::recordings::Recordings;
use crate::refusal::{Refusal, RefusalKind};
use crate::server::ServeOptions;

/// The inputs, and what was read of them.
pub(crate) struct Desk {
    pub(crate) catalogue: Catalogue,
    cache: Arc<Cache>,
    answerers: Semaphore,
    /// Folders in which source files may be read.
    pub(crate) sources: Vec<PathBuf>,
    received: Option<ReceivedFiles>,
    is_upload_allowed: bool,
    recordings: Option<Recordings>,
    lakes: Option<Lakes>,
}

impl Desk {
    /// A desk for the inputs of a server.
    pub(crate) fn new(options: &ServeOptions) -> io::Result<Self> {
        let takes_files = options.is_upload_allowed || options.recording.is_some();
        let received = takes_files.then(ReceivedFiles::new).transpose()?;
        let mut roots = options.paths.clone();
        roots.extend(received.iter().flat_map(ReceivedFiles::folders));
        Ok(Self {
            catalogue: Catalogue::new(&roots),
            cache: Arc::new(Cache::new(options.cache_bytes)),
            answerers: Semaphore::new(CacheLimits::ANSWERERS),
            sources: options.sources.clone(),
            received,
            is_upload_allowed: options.is_upload_allowed,
            recordings: options.recording.clone().map(Recordings::new),
            lakes: options.lakes.clone().map(Lakes::new),
        })
    }

    /// The place for uploads.
    pub(crate) fn uploads(&self) -> Result<&ReceivedFiles, Refusal> {
        self.received.as_ref().filter(|_| self.is_upload_allowed).ok_or_else(|| {
            Refusal::new(RefusalKind::Forbidden, "uploads are not allowed")
                .with_help("start the server with --allow-upload")
        })
    }

    /// The recordings, and the place for their files.
    pub(crate) fn recordings(&self) -> Result<(&Recordings, &ReceivedFiles), Refusal> {
        self.recordings.as_ref().zip(self.received.as_ref()).ok_or_else(|| {
            Refusal::new(RefusalKind::Forbidden, "recording is not allowed")
                .with_help("start the server with --allow-record and -p PID or -P REGEX")
        })
    }

    /// The lakes.
    pub(crate) fn lakes(&self) -> Result<&Lakes, Refusal> {
        self.lakes.as_ref().ok_or_else(|| Refusal::missing("no lake is served"))
    }

    /// Ends what the server has started, and removes what it was given.
    pub(crate) fn end(&self) {
        self.recordings.iter().for_each(Recordings::stop_all);
        self.received.iter().for_each(ReceivedFiles::remove);
    }

    /// An input as it is now.
    pub(crate) async fn input(self: &Arc<Self>, named: &str) -> Result<CataloguedInput, Refusal> {
        let desk = self.clone();
        let named = named.to_owned();
        blocking(move || desk.catalogue.find(&named)).await?
    }

    /// The inputs as they are now.
    pub(crate) async fn listing(self: &Arc<Self>) -> Result<Arc<Listing>, Refusal> {
        let desk = self.clone();
        blocking(move || desk.catalogue.refreshed()).await
    }

    /// Computes an answer in a thread for such work, once it is its turn. If nobody waits any more by then, there is nothing to do.
    pub(crate) async fn compute<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let turn = self.answerers.acquire().await;
        let _turn = turn.map_err(|_| Refusal::new(RefusalKind::Internal, "the server is ending"))?;
        blocking(work).await
    }

    /// The id of the only heap.
    pub(crate) async fn only_heap(self: &Arc<Self>) -> Result<String, Refusal> {
        let listing = self.listing().await?;
        let is_heap = |kind| matches!(kind, InputKind::Heap | InputKind::Database);
        let mut heaps = listing.entries().into_iter().filter(|entry| is_heap(entry.kind));
        match (heaps.next(), heaps.next()) {
            (Some(only), None) => Ok(only.id.clone()),
            (Some(one), Some(other)) => Err(Refusal::invalid("there are several heaps")
                .with_help(format!("name one as input, such as {} or {}", one.name, other.name))),
            (None, _) => Err(Refusal::missing("there is no heap")),
        }
    }

    /// An input with what was read of it.
    pub(crate) async fn open(
        self: &Arc<Self>,
        named: &str,
        value: Option<&str>,
    ) -> Result<(CataloguedInput, Arc<Opened>), Refusal> {
        let said = value.map(str::to_owned);
        let read =
            move |input: &CataloguedInput, unwanted: &_| Opened::read(input, said.as_deref(), unwanted);
        self.open_by(named, value, read).await
    }

    /// An input with what `read` reads of it, unless it has been read before.
    pub(crate) async fn open_by(
        self: &Arc<Self>,
        named: &str,
        value: Option<&str>,
        read: impl FnOnce(&CataloguedInput, &AtomicBool) -> Result<Opened, Refusal> + Send + 'static,
    ) -> Result<(CataloguedInput, Arc<Opened>), Refusal> {
        let input = self.input(named).await?;
        let inputs = vec![vec![(input.entry.id.clone(), input.version)]];
        let key = CacheKey { inputs, value: value.map(str::to_owned) };
        let read_of = input.clone();
        let opened = self.cache.get(key, move |unwanted| read(&read_of, unwanted)).await?;
        Ok((input, opened))
    }

    /// Compares two sets of profiles, or heaps.
    pub(crate) async fn compare(
        self: &Arc<Self>,
        sides: [&[String]; 2],
        value: Option<&str>,
    ) -> Result<([Vec<CataloguedInput>; 2], Arc<Opened>), Refusal> {
        let mut found = [Vec::new(), Vec::new()];
        for (names, found) in sides.iter().zip(&mut found) {
            for name in *names {
                found.push(self.input(name).await?);
            }
        }
        if found.iter().any(Vec::is_empty) {
            return Err(Refusal::invalid("missing side: expected inputs before and after")
                .with_help("name at least one input for each side"));
        }
        let is_heaps = is_of_heaps(found.iter().flatten())?;
        let versions = |side: &Vec<CataloguedInput>| {
            side.iter().map(|input| (input.entry.id.clone(), input.version)).collect()
        };
        let key = CacheKey { inputs: found.iter().map(versions).collect(), value: value.map(str::to_owned) };
        let inputs = found.clone();
        let value = value.map(str::to_owned);
        let read = move |unwanted: &_| {
            let [before, after] = &inputs;
            if is_heaps {
                return Opened::compare_heaps(before.iter().chain(after), unwanted);
            }
            let [before, after] =
                [before, after].map(|side| side.iter().map(|input| &*input.file).collect::<Vec<_>>());
            Opened::compare([&before, &after], value.as_deref(), unwanted)
        };
        Ok((found, self.cache.get(key, read).await?))
    }
}

/// Whether inputs that are to be compared are all heaps, or all profiles.
fn is_of_heaps<'i>(inputs: impl Iterator<Item = &'i CataloguedInput>) -> Result<bool, Refusal> {
    let kinds = inputs.map(|input| match input.entry.kind {
        InputKind::Profile | InputKind::Tokio => Ok(false),
        InputKind::Heap | InputKind::Database => Ok(true),
        InputKind::Unreadable => Err(Refusal::new(
            RefusalKind::Unreadable,
            format!("{}: {}", input.entry.name, input.entry.error.as_deref().unwrap_or("unknown format")),
        )),
    });
    let kinds = kinds.collect::<Result<Vec<bool>, Refusal>>()?;
    match kinds.iter().filter(|&&is_heap| is_heap).count() {
        0 => Ok(false),
        heaps if heaps == kinds.len() => Ok(true),
        _ => Err(Refusal::invalid("expected profiles or heaps to compare, found both")
            .with_help("compare inputs of one kind")),
    }
}

/// Does blocking work in a thread for it.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Refusal> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| Refusal::new(RefusalKind::Internal, format!("the work failed: {error}")))
}
