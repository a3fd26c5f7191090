//! A report store with faults: each call passes, fails, or is done without a reply.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use futures::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMode,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use tokio::sync::Barrier;

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileFate {
    /// It passes.
    Pass,
    /// It is not done, and fails.
    Refuse,
    /// It is done, and its reply is lost.
    LoseReply,
    /// It waits for another that waits, and both pass.
    Meet,
}

/// Decides on a call: its number, its operation, and the file that it is about.
pub(crate) type Decide = dyn Fn(usize, &str, &Path) -> FileFate + Send + Sync;

/// The store.
pub(crate) struct FaultyStore {
    inner: Arc<dyn ObjectStore>,
    decide: Box<Decide>,
    calls: AtomicUsize,
    meeting: Barrier,
}

impl FaultyStore {
    /// Creates one in front of another store.
    pub(crate) fn over(
        inner: &Arc<dyn ObjectStore>,
        decide: impl Fn(usize, &str, &Path) -> FileFate + Send + Sync + 'static,
    ) -> Arc<dyn ObjectStore> {
        Arc::new(Self {
            inner: Arc::clone(inner),
            decide: Box::new(decide),
            calls: AtomicUsize::new(0),
            meeting: Barrier::new(2),
        })
    }

    async fn carry<T>(&self, operation: &str, path: &Path, call: impl Future<Output = Result<T>>) -> Result<T> {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        match (self.decide)(number, operation, path) {
            FileFate::Pass => call.await,
            FileFate::Refuse => Err(lost()),
            FileFate::LoseReply => call.await.and_then(|_| Err(lost())),
            FileFate::Meet => {
                self.meeting.wait().await;
                call.await
            }
        }
    }
}

fn lost() -> Error {
    Error::Generic { store: "faulty", source: "injected".into() }
}

impl fmt::Debug for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FaultyStore({:?})", self.inner)
    }
}

impl fmt::Display for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "faulty {}", self.inner)
    }
}

#[async_trait]
impl ObjectStore for FaultyStore {
    async fn put_opts(&self, path: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        // What is final is put only if it is new.
        let operation = if options.mode == PutMode::Create { "publish" } else { "put" };
        self.carry(operation, path, self.inner.put_opts(path, payload, options)).await
    }

    async fn put_multipart_opts(&self, path: &Path, options: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.carry("multipart", path, self.inner.put_multipart_opts(path, options)).await
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        let operation = if options.head { "head" } else { "get" };
        self.carry(operation, path, self.inner.get_opts(path, options)).await
    }

    fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.carry("copy", to, self.inner.copy_opts(from, to, options)).await
    }
}
