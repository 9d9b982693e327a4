//! Tests with slow writers, and with storage that does not confirm requests.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use borehole_testkit::Scratch;
use futures::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

use super::*;
use crate::Lake;

fn commit() -> Intent {
    Intent::Commit(Commit::new(Operation::Add, now_us()))
}

#[test]
fn numbers_of_deleted_commits_are_not_reused_by_slow_writers() {
    let scratch = Scratch::new();
    let lake = Lake::open_or_create(scratch.path("lake").to_str().unwrap()).unwrap();
    let journal = &lake.journal;
    let mut seen = Vec::new();
    let slow = async |state: &LakeState| {
        seen.push(state.version);
        if seen.len() == 1 {
            for _ in 0..3 {
                let state = journal.transact(async |_| Ok(commit())).await?;
                journal.clear(&state).await?;
            }
        }
        Ok(commit())
    };
    let made = lake.block_on(journal.transact(slow)).unwrap();
    assert_eq!((seen, made.version), (vec![1, 4], 5));
    assert_eq!(lake.state().unwrap().version, 5);
}

/// Storage that carries out requests but loses its replies to commits.
#[derive(Debug, Default)]
struct Forgetful {
    storage: InMemory,
    /// Whether it fails all other requests too.
    is_gone: AtomicBool,
}

impl fmt::Display for Forgetful {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("forgetful")
    }
}

fn lost<T>() -> Result<T> {
    Err(object_store::Error::Generic { store: "forgetful", source: "the reply was lost".into() })
}

#[async_trait]
impl ObjectStore for Forgetful {
    async fn put_opts(&self, path: &Path, bytes: PutPayload, options: PutOptions) -> Result<PutResult> {
        let answer = self.storage.put_opts(path, bytes, options).await;
        if path.as_ref().contains(COMMITS) { lost() } else { answer }
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.storage.put_multipart_opts(path, options).await
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        if self.is_gone.load(Ordering::Relaxed) { lost() } else { self.storage.get_opts(path, options).await }
    }

    fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.storage.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.storage.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.storage.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.storage.copy_opts(from, to, options).await
    }
}

#[test]
fn a_commit_without_a_reply_takes_effect() {
    let storage = Arc::new(Forgetful::default());
    let journal = Journal::new(LakePlace::of_store(Arc::clone(&storage) as Arc<dyn ObjectStore>));
    let runtime = crate::lake::runtime().unwrap();
    runtime.block_on(async {
        assert_eq!(journal.transact(async |_| Ok(commit())).await.unwrap().version, 1);
        storage.is_gone.store(true, Ordering::Relaxed);
        let unseen = journal.transact(async |_| Ok(commit())).await.unwrap_err();
        assert!(!unseen.is_uncertain(), "the commit was never sent: {unseen}");
        let gone = async |_: &LakeState| {
            storage.is_gone.store(true, Ordering::Relaxed);
            Ok(commit())
        };
        storage.is_gone.store(false, Ordering::Relaxed);
        let error = journal.transact(gone).await.unwrap_err();
        assert!(error.is_uncertain(), "{error}");
        storage.is_gone.store(false, Ordering::Relaxed);
        assert_eq!(journal.state().await.unwrap().unwrap().version, 2, "the commit took effect");
    });
}
