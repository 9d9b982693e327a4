//! Uploads of objects.

use std::sync::Arc;

use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt as _, Result};
use tokio::task::JoinSet;

/// The size of a part of an object; smaller objects are sent at once.
const PART_BYTES: usize = 10 << 20;
/// The number of parts sent at once.
const SENT_AT_ONCE: usize = 8;

/// An upload of an object that becomes visible only when it is finished.
///
/// `object_store` has one too, but it leaves parts behind if the last part cannot be sent. No object listing shows them, and
/// the storage provider charges for them.
pub(super) struct Upload {
    store: Arc<dyn ObjectStore>,
    path: Path,
    waiting: Vec<u8>,
    parts: Option<UploadParts>,
}

struct UploadParts {
    upload: Box<dyn MultipartUpload>,
    sent: JoinSet<Result<()>>,
}

impl Upload {
    pub(super) const fn new(store: Arc<dyn ObjectStore>, path: Path) -> Self {
        Self { store, path, waiting: Vec::new(), parts: None }
    }

    pub(super) async fn write(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(PART_BYTES - self.waiting.len()));
            self.waiting.extend_from_slice(now);
            bytes = later;
            if self.waiting.len() == PART_BYTES {
                self.send().await?;
            }
        }
        Ok(())
    }

    /// Sends the buffered bytes as a part.
    async fn send(&mut self) -> Result<()> {
        let parts = match &mut self.parts {
            Some(parts) => parts,
            none => none.insert(UploadParts {
                upload: self.store.put_multipart(&self.path).await?,
                sent: JoinSet::new(),
            }),
        };
        while parts.sent.len() >= SENT_AT_ONCE {
            parts.arrived().await?;
        }
        parts.sent.spawn(parts.upload.put_part(std::mem::take(&mut self.waiting).into()));
        Ok(())
    }

    /// Finishes the object; on failure nothing of it remains.
    pub(super) async fn finish(mut self) -> Result<()> {
        let finished = self.complete().await;
        if finished.is_err() {
            self.abandon().await;
        }
        finished
    }

    async fn complete(&mut self) -> Result<()> {
        if self.parts.is_none() {
            let whole = std::mem::take(&mut self.waiting);
            return self.store.put(&self.path, whole.into()).await.map(drop);
        }
        if !self.waiting.is_empty() {
            self.send().await?;
        }
        let parts = self.parts.as_mut().expect("there are parts");
        while !parts.sent.is_empty() {
            parts.arrived().await?;
        }
        parts.upload.complete().await.map(drop)
    }

    /// Discards the parts that were sent.
    pub(super) async fn abandon(self) {
        if let Some(mut parts) = self.parts {
            parts.sent.shutdown().await;
            // If this fails too, only the store knows of them.
            let _ = parts.upload.abort().await;
        }
    }
}

impl UploadParts {
    /// Waits until one of the parts in flight has arrived.
    async fn arrived(&mut self) -> Result<()> {
        match self.sent.join_next().await {
            Some(sent) => sent?,
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use async_trait::async_trait;
    use futures::stream::BoxStream;
    use object_store::memory::InMemory;
    use object_store::{
        CopyOptions, GetOptions, GetResult, ListResult, ObjectMeta, PutMultipartOptions, PutOptions,
        PutPayload, PutResult, UploadPart,
    };

    use super::*;

    /// Storage that accepts a limited number of parts per object, and optionally never completes an object.
    #[derive(Debug, Default)]
    struct Full {
        storage: InMemory,
        takes: usize,
        completes: bool,
        /// The number of uploads begun and of those aborted.
        begun: AtomicUsize,
        aborted: Arc<AtomicUsize>,
    }

    impl fmt::Display for Full {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("full")
        }
    }

    #[derive(Debug)]
    struct Part {
        upload: Box<dyn MultipartUpload>,
        takes: usize,
        completes: bool,
        aborted: Arc<AtomicUsize>,
    }

    fn full<T>() -> Result<T> {
        Err(object_store::Error::Generic { store: "full", source: "no room".into() })
    }

    #[async_trait]
    impl MultipartUpload for Part {
        fn put_part(&mut self, data: PutPayload) -> UploadPart {
            match self.takes.checked_sub(1) {
                Some(takes) => self.takes = takes,
                None => return Box::pin(async { full() }),
            }
            self.upload.put_part(data)
        }

        async fn complete(&mut self) -> Result<PutResult> {
            if self.completes { self.upload.complete().await } else { full() }
        }

        async fn abort(&mut self) -> Result<()> {
            self.aborted.fetch_add(1, Ordering::Relaxed);
            self.upload.abort().await
        }
    }

    #[async_trait]
    impl ObjectStore for Full {
        async fn put_opts(&self, path: &Path, bytes: PutPayload, options: PutOptions) -> Result<PutResult> {
            self.storage.put_opts(path, bytes, options).await
        }

        async fn put_multipart_opts(
            &self,
            path: &Path,
            options: PutMultipartOptions,
        ) -> Result<Box<dyn MultipartUpload>> {
            self.begun.fetch_add(1, Ordering::Relaxed);
            let upload = self.storage.put_multipart_opts(path, options).await?;
            let (takes, completes) = (self.takes, self.completes);
            Ok(Box::new(Part { upload, takes, completes, aborted: Arc::clone(&self.aborted) }))
        }

        async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
            self.storage.get_opts(path, options).await
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

    /// Uploads `bytes` bytes. Returns whether that succeeded and how many uploads were begun and aborted.
    fn upload(bytes: usize, takes: usize, completes: bool) -> (bool, usize, usize) {
        let store = Arc::new(Full { takes, completes, ..Full::default() });
        let path = Path::from("object");
        let whole: Vec<u8> = (0..=u8::MAX).cycle().take(bytes).collect();
        let finished = crate::lake::runtime().unwrap().block_on(async {
            let mut upload = Upload::new(Arc::clone(&store) as Arc<dyn ObjectStore>, path.clone());
            for some in whole.chunks(3 << 20) {
                if let Err(error) = upload.write(some).await {
                    upload.abandon().await;
                    return Err(error);
                }
            }
            upload.finish().await?;
            assert!(
                store.get(&path).await?.bytes().await? == whole,
                "the object differs from what was written"
            );
            Ok(())
        });
        (finished.is_ok(), store.begun.load(Ordering::Relaxed), store.aborted.load(Ordering::Relaxed))
    }

    #[test]
    fn a_failed_upload_leaves_no_parts() {
        const LONG: usize = 2 * PART_BYTES + 1;
        assert_eq!(upload(PART_BYTES - 1, 0, false), (true, 0, 0));
        assert_eq!(upload(2 * PART_BYTES, 2, true), (true, 1, 0));
        assert_eq!(upload(LONG, 3, true), (true, 1, 0));
        assert_eq!(upload(LONG, 3, false), (false, 1, 1), "it cannot be completed");
        for takes in 0..3 {
            assert_eq!(upload(LONG, takes, true), (false, 1, 1), "room for {takes} of 3 parts");
        }
        assert_eq!(upload(10 * PART_BYTES, 0, true), (false, 1, 1), "an error before the end");
    }
}
