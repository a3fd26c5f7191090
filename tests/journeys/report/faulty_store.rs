//! A report store with faults: each call passes, fails, or is done without a reply.

use payments_tests::prelude::*;
use std::fmt;

use async_trait::async_trait;
use futures::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMode,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use tokio::sync::Barrier;

/// Decides on a call by its operation, and the file that it is about.
type Decide<T> = Box<dyn Fn(&str, &Path) -> T + Send + Sync>;

/// The store.
pub(crate) struct FaultyStore {
    inner: Arc<dyn ObjectStore>,
    fate: Decide<Fate>,
    meets: Decide<bool>,
    meeting: Barrier,
}

impl FaultyStore {
    /// Creates one in front of another store. A call that does not pass fails, and is done if its reply is lost.
    pub(crate) fn over(
        inner: &Arc<dyn ObjectStore>,
        fate: impl Fn(&str, &Path) -> Fate + Send + Sync + 'static,
    ) -> Arc<dyn ObjectStore> {
        Arc::new(Self::new(inner, Box::new(fate), Box::new(|_, _| false)))
    }

    /// Creates one in which each of these calls waits for another one.
    pub(crate) fn meeting(
        inner: &Arc<dyn ObjectStore>,
        meets: impl Fn(&str, &Path) -> bool + Send + Sync + 'static,
    ) -> Arc<dyn ObjectStore> {
        Arc::new(Self::new(inner, Box::new(|_, _| Fate::Pass), Box::new(meets)))
    }

    fn new(inner: &Arc<dyn ObjectStore>, fate: Decide<Fate>, meets: Decide<bool>) -> Self {
        Self { inner: Arc::clone(inner), fate, meets, meeting: Barrier::new(2) }
    }

    async fn carry<T>(&self, operation: &str, path: &Path, call: impl Future<Output = Result<T>>) -> Result<T> {
        if (self.meets)(operation, path) {
            self.meeting.wait().await;
        }
        match (self.fate)(operation, path) {
            Fate::Pass => call.await,
            Fate::LoseReply => call.await.and_then(|_| Err(lost())),
            Fate::Refuse(_, why) => Err(Error::PermissionDenied { path: path.to_string(), source: why.into() }),
            _ => Err(lost()),
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
        // A final file is put only if it is new.
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
