//! The report store: files in memory, over calls that can fail.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, Extensions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult,
};
use payments_machine::layers::weaken::Weakness;

use crate::plans::broken::{Broken, Part};
use crate::plans::faults::{FaultKind, Faults};
use crate::plans::switches::Switches;
use crate::time::pause;

/// The store.
pub(crate) struct Files {
    pub(crate) inner: Arc<dyn ObjectStore>,
    pub(crate) faults: Faults,
    pub(crate) broken: Broken,
    pub(crate) switches: Switches,
    pub(crate) weakness: Option<Weakness>,
}

impl Files {
    async fn carry<T>(&self, call: impl Future<Output = object_store::Result<T>>) -> object_store::Result<T> {
        pause(self.faults.millis(5..60)).await;
        if self.faults.draw(FaultKind::FileSlow, 40) {
            pause(self.faults.millis(1_000..15_000)).await;
        }
        if self.broken.is(Part::Reports) {
            return Err(Error::Generic { store: "month", source: "the store is down".into() });
        }
        let per_thousand = if self.switches.is_failing() { 500 } else { 15 };
        if !self.faults.draw(FaultKind::FileFailed, per_thousand) {
            return call.await;
        }
        let lost = || Error::Generic { store: "month", source: "injected".into() };
        if self.faults.millis(0..2).is_zero() {
            return Err(lost());
        }
        call.await.and_then(|_| Err(lost()))
    }
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Files")
    }
}

impl fmt::Display for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the month's files")
    }
}

#[async_trait]
impl ObjectStore for Files {
    async fn put_opts(&self, path: &Path, payload: PutPayload, options: PutOptions) -> object_store::Result<PutResult> {
        let file = path.as_ref();
        if self.weakness == Some(Weakness::LostFile) && file.starts_with("journal/") && file.ends_with("3.jsonl.gz") {
            return Ok(PutResult { e_tag: None, version: None, extensions: Extensions::default() });
        }
        self.carry(self.inner.put_opts(path, payload, options)).await
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        options: PutMultipartOptions,
    ) -> object_store::Result<Box<dyn MultipartUpload>> {
        self.carry(self.inner.put_multipart_opts(path, options)).await
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> object_store::Result<GetResult> {
        self.carry(self.inner.get_opts(path, options)).await
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, object_store::Result<Path>>,
    ) -> BoxStream<'static, object_store::Result<Path>> {
        self.inner.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> object_store::Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> object_store::Result<()> {
        self.carry(self.inner.copy_opts(from, to, options)).await
    }
}
