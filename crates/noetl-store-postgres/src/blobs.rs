//! Implements [`Blobs`] and [`BlobRefs`] on the tables `blob` and `blob_ref`.

mod spooled;

use std::sync::Arc;

use async_trait::async_trait;
use noetl_model::{ExecutionId, Timestamp};
use noetl_store::{
    BlobError, BlobPage, BlobRef, BlobRefs, Blobs, Digest, SpooledFile, StoreError, StoredBlob,
};
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::PostgresStore;
use crate::arrays::rows;
use crate::column::{PgTimestamptz, number, size, unreadable};

#[async_trait]
impl Blobs for PostgresStore {
    async fn put_blob(&self, bytes: Vec<u8>, media_type: &str) -> Result<BlobRef, BlobError> {
        let blob = BlobRef::from_bytes(&bytes, media_type);
        let sql = include_str!("../queries/blob_put.sql");
        let make = || {
            let query = sqlx::query(sql).bind(&blob.digest.as_bytes()[..]).bind(size(blob.bytes));
            query.bind(media_type).bind(&bytes)
        };
        self.touch("keep content", make).await?;
        Ok(blob)
    }

    async fn put_spooled(&self, content: Arc<SpooledFile>) -> Result<BlobRef, BlobError> {
        self.copy_in(&content).await?;
        Ok(content.blob().clone())
    }

    async fn blob_part(
        &self,
        blob: &BlobRef,
        from: u64,
        most: usize,
    ) -> Result<Vec<u8>, BlobError> {
        self.part(blob, from, most).await
    }

    async fn touch_blob(&self, digest: Digest) -> Result<bool, BlobError> {
        let sql = include_str!("../queries/blob_touch.sql");
        let make = || sqlx::query(sql).bind(digest.as_bytes().to_vec());
        Ok(self.touch("touch content", make).await? > 0)
    }

    async fn blob(&self, blob: &BlobRef) -> Result<Vec<u8>, BlobError> {
        let action = "read content";
        let sql = "select data from noetl.blob where digest = $1";
        let make = || sqlx::query(sql).bind(&blob.digest.as_bytes()[..]);
        let found: Option<Vec<u8>> = self.one(action, make, |row| row.try_get(0)).await?;
        let bytes = found.ok_or(BlobError::Missing { digest: blob.digest })?;
        let asked = blob.clone();
        // Hashing large content must not block an async worker thread.
        let checked = tokio::task::spawn_blocking(move || asked.check(&bytes).map(|()| bytes));
        checked.await.map_err(|error| StoreError::backend(action, error))?
    }

    async fn delete_blob(&self, digest: Digest, seen: Timestamp) -> Result<bool, BlobError> {
        let sql = include_str!("../queries/blob_delete.sql");
        let make =
            || sqlx::query(sql).bind(digest.as_bytes().to_vec()).bind(PgTimestamptz::clamped(seen));
        Ok(self.touch("remove content", make).await? > 0)
    }

    async fn blobs(&self, after: Option<Digest>, limit: usize) -> Result<BlobPage, BlobError> {
        let sql = include_str!("../queries/blob_list.sql");
        // An empty byte string sorts before every digest.
        let after = after.map(|after| after.as_bytes().to_vec()).unwrap_or_default();
        let make = || sqlx::query(sql).bind(&after).bind(rows(limit));
        let listed = self.list("list content", make, stored).await?;
        let now = listed.first().map(|(now, _)| *now).unwrap_or_default();
        Ok(BlobPage { now, blobs: listed.into_iter().filter_map(|(_, blob)| blob).collect() })
    }
}

#[async_trait]
impl BlobRefs for PostgresStore {
    async fn references(&self, execution: ExecutionId) -> Result<Vec<Digest>, StoreError> {
        let sql = "select digest from noetl.blob_ref where execution_id = $1 order by digest";
        let make = || sqlx::query(sql).bind(execution.get());
        self.list("list references", make, |row| digest(row, 0)).await
    }

    async fn unreferenced(&self, among: &[Digest]) -> Result<Vec<Digest>, StoreError> {
        let sql = include_str!("../queries/blob_ref_missing.sql");
        let among: Vec<&[u8]> = among.iter().map(|digest| &digest.as_bytes()[..]).collect();
        let make = || sqlx::query(sql).bind(&among);
        self.list("look for references", make, |row| digest(row, 0)).await
    }

    async fn drop_references(&self, execution: ExecutionId) -> Result<usize, StoreError> {
        let sql = "delete from noetl.blob_ref where execution_id = $1";
        self.touch("drop references", || sqlx::query(sql).bind(execution.get())).await
    }
}

fn digest(row: &PgRow, index: usize) -> Result<Digest, sqlx::Error> {
    let bytes: &[u8] = row.try_get(index)?;
    Ok(Digest::from_bytes(bytes.try_into().map_err(unreadable)?))
}

/// Returns the database's time, and a blob unless the row has none.
fn stored(row: &PgRow) -> Result<(Timestamp, Option<StoredBlob>), sqlx::Error> {
    let now = row.try_get::<PgTimestamptz, _>(0)?.0;
    if row.try_get::<Option<&[u8]>, _>(1)?.is_none() {
        return Ok((now, None));
    }
    let written_at = row.try_get::<PgTimestamptz, _>(3)?.0;
    let blob = StoredBlob { digest: digest(row, 1)?, bytes: number(row, 2)?, written_at };
    Ok((now, Some(blob)))
}
