//! Streaming reads and writes: uploads a blob from a spool file and reads byte ranges of an object.

use std::sync::Arc;

use noetl_store::{BlobError, BlobRef, SpooledFile};
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStoreExt, WriteMultipart};

use super::{ObjectBlobs, WRITES_MAX, failed, is_not_found};
use crate::object_key::ObjectKey;

/// Maximum parts in flight per upload. Each part uses a few mebibytes of memory.
const PARTS_MAX: usize = 1;

impl ObjectBlobs {
    pub(super) async fn write_spooled(
        &self,
        path: &Path,
        content: &Arc<SpooledFile>,
    ) -> Result<(), BlobError> {
        let mut tries = 1;
        loop {
            match self.upload(path, content).await? {
                Ok(()) => return Ok(()),
                Err(error) if tries < WRITES_MAX && is_not_found(&error) => tries += 1,
                Err(error) => return Err(failed("keep content")(error)),
            }
        }
    }

    /// Uploads once. The outer error is a failed read of the spool file; the inner one comes from
    /// the object store.
    async fn upload(
        &self,
        path: &Path,
        content: &Arc<SpooledFile>,
    ) -> Result<Result<(), object_store::Error>, BlobError> {
        let upload = match self.store.put_multipart(path).await {
            Ok(upload) => upload,
            Err(error) => return Ok(Err(error)),
        };
        let mut writing = WriteMultipart::new(upload);
        let mut at = 0;
        loop {
            let piece = content.read_piece(at).await?;
            if piece.is_empty() {
                break;
            }
            at += u64::try_from(piece.len()).unwrap_or(u64::MAX);
            if let Err(error) = writing.wait_for_capacity(PARTS_MAX).await {
                // No object becomes visible. The backend removes the parts that it has stored.
                let _ = writing.abort().await;
                return Ok(Err(error));
            }
            writing.put(piece.into());
        }
        Ok(writing.finish().await.map(drop))
    }

    /// Reads at most `most` bytes of an object from offset `from`. Returns `None` if the object was
    /// replaced since it was listed.
    pub(super) async fn fetch_part(
        &self,
        generation: &ObjectKey,
        blob: &BlobRef,
        from: u64,
        most: usize,
    ) -> Result<Option<Vec<u8>>, BlobError> {
        let length = match self.store.head(&generation.path()).await {
            Ok(meta) => meta.size,
            Err(error) if is_not_found(&error) => return Ok(None),
            Err(error) => return Err(failed("read content")(error)),
        };
        if length != blob.bytes {
            let reason = format!("{length} bytes instead of {}", blob.bytes);
            return Err(BlobError::Corrupt { digest: blob.digest, reason });
        }
        let end = from.saturating_add(u64::try_from(most).unwrap_or(u64::MAX)).min(length);
        if from >= end {
            return Ok(Some(Vec::new()));
        }
        let options =
            GetOptions { range: Some(GetRange::Bounded(from..end)), ..GetOptions::default() };
        let read = async {
            let object = self.store.get_opts(&generation.path(), options).await?;
            object.bytes().await
        };
        match read.await {
            Ok(bytes) => Ok(Some(bytes.into())),
            Err(error) if is_not_found(&error) => Ok(None),
            Err(error) => Err(failed("read content")(error)),
        }
    }
}
