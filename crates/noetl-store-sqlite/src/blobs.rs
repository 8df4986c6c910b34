//! Implements [`Blobs`] and [`BlobRefs`] on the tables `blob`, `blob_data`, and `blob_ref`.

mod spooled;

use std::sync::Arc;

use async_trait::async_trait;
use noetl_model::{ExecutionId, Timestamp};
use noetl_store::{
    BlobError, BlobPage, BlobRef, BlobRefs, Blobs, Digest, SpooledFile, StoreError, StoredBlob,
};
use rusqlite::{OptionalExtension, Row, params};

use crate::SqliteStore;
use crate::column::{count, digest, size};
use crate::encoded_append::rows;

#[async_trait]
impl Blobs for SqliteStore {
    async fn put_blob(&self, bytes: Vec<u8>, media_type: &str) -> Result<BlobRef, BlobError> {
        let blob = BlobRef::from_bytes(&bytes, media_type);
        let kept = self.write("keep content", move |connection, now| {
            let name = blob.digest.to_string();
            let note = include_str!("../queries/blob_put.sql");
            let keep = include_str!("../queries/blob_data_put.sql");
            let values = params![name, size(blob.bytes), blob.media_type, now.as_micros()];
            connection.prepare_cached(note)?.execute(values)?;
            connection.prepare_cached(keep)?.execute((name, bytes))?;
            Ok(blob)
        });
        Ok(kept.await?)
    }

    async fn put_spooled(&self, content: Arc<SpooledFile>) -> Result<BlobRef, BlobError> {
        let kept = self.write("keep content", move |connection, now| {
            spooled::put(connection, &content, now).map(|()| content.blob().clone())
        });
        Ok(kept.await?)
    }

    async fn blob_part(
        &self,
        blob: &BlobRef,
        from: u64,
        most: usize,
    ) -> Result<Vec<u8>, BlobError> {
        let asked = blob.clone();
        let part = self
            .read("read content", move |connection| spooled::part(connection, &asked, from, most));
        part.await?.ok_or(BlobError::Missing { digest: blob.digest })?
    }

    async fn touch_blob(&self, digest: Digest) -> Result<bool, BlobError> {
        let touched = self.write("touch content", move |connection, now| {
            let sql = include_str!("../queries/blob_touch.sql");
            Ok(connection.prepare_cached(sql)?.execute((digest.to_string(), now.as_micros()))? > 0)
        });
        Ok(touched.await?)
    }

    async fn blob(&self, blob: &BlobRef) -> Result<Vec<u8>, BlobError> {
        let asked = blob.clone();
        let found = self.read("read content", move |connection| {
            let sql = "select data from blob_data where digest = ?1";
            let mut get = connection.prepare_cached(sql)?;
            let bytes = get.query_row([asked.digest.to_string()], |row| row.get(0)).optional()?;
            let bytes: Option<Vec<u8>> = bytes;
            // Verify the digest here: hashing large content must not run on the caller's thread.
            Ok(bytes.map(|bytes| asked.check(&bytes).map(|()| bytes)))
        });
        found.await?.ok_or(BlobError::Missing { digest: blob.digest })?
    }

    async fn delete_blob(&self, digest: Digest, seen: Timestamp) -> Result<bool, BlobError> {
        let removed = self.write("remove content", move |connection, _| {
            let sql = include_str!("../queries/blob_delete.sql");
            let mut delete = connection.prepare_cached(sql)?;
            Ok(delete.execute((digest.to_string(), seen.as_micros()))? > 0)
        });
        Ok(removed.await?)
    }

    async fn blobs(&self, after: Option<Digest>, limit: usize) -> Result<BlobPage, BlobError> {
        let now = self.clock().now();
        // The empty text sorts before every digest.
        let after = after.map(|after| after.to_string()).unwrap_or_default();
        let listed = self.read("list content", move |connection| {
            let sql = include_str!("../queries/blob_list.sql");
            let mut list = connection.prepare_cached(sql)?;
            list.query_map((after, rows(limit)), stored)?.collect()
        });
        Ok(BlobPage { now, blobs: listed.await? })
    }
}

#[async_trait]
impl BlobRefs for SqliteStore {
    async fn references(&self, execution: ExecutionId) -> Result<Vec<Digest>, StoreError> {
        self.read("list references", move |connection| {
            let sql = "select digest from blob_ref where execution_id = ?1 order by digest";
            let mut list = connection.prepare_cached(sql)?;
            list.query_map([execution.get()], |row| digest(row, 0))?.collect()
        })
        .await
    }

    async fn unreferenced(&self, among: &[Digest]) -> Result<Vec<Digest>, StoreError> {
        let among = among.to_vec();
        self.read("look for references", move |connection| {
            let sql = "select exists (select 1 from blob_ref where digest = ?1)";
            let mut find = connection.prepare_cached(sql)?;
            let mut free = Vec::new();
            for digest in among {
                let is_referred_to = find.query_row([digest.to_string()], |row| row.get(0));
                let is_referred_to: bool = is_referred_to?;
                free.extend((!is_referred_to).then_some(digest));
            }
            Ok(free)
        })
        .await
    }

    async fn drop_references(&self, execution: ExecutionId) -> Result<usize, StoreError> {
        self.write("drop references", move |connection, _| {
            let sql = "delete from blob_ref where execution_id = ?1";
            connection.prepare_cached(sql)?.execute([execution.get()])
        })
        .await
    }
}

fn stored(row: &Row<'_>) -> rusqlite::Result<StoredBlob> {
    Ok(StoredBlob {
        digest: digest(row, 0)?,
        bytes: count(row, 1)?,
        written_at: Timestamp::from_micros(row.get(2)?),
    })
}
