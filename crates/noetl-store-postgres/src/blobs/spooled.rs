//! Writes and reads blobs in pieces: copies a file into a row, and reads part of a row.
//!
//! The Postgres protocol can send one value in pieces only with `copy`, which can't replace rows.
//! The bytes are therefore copied to a temporary table of the transaction, and from there to the
//! blob table within the database. The transaction makes this atomic.

use std::sync::Arc;

use noetl_store::{BlobError, BlobRef, SpooledFile, StoreError};
use sqlx::{Postgres, Row, Transaction};

use crate::PostgresStore;
use crate::column::size;
use crate::error::{store_error, write_error};

const ACTION: &str = "keep content";

/// Header of a binary copy: signature, flags, and extension length.
const HEAD: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
const END: [u8; 2] = (-1_i16).to_be_bytes();

impl PostgresStore {
    pub(super) async fn copy_in(&self, content: &Arc<SpooledFile>) -> Result<(), BlobError> {
        let mut transaction = self.begin(ACTION).await?;
        let made = include_str!("../../queries/blob_spool.sql");
        let made = sqlx::raw_sql(made).execute(&mut *transaction).await;
        made.map_err(|error| write_error(ACTION, error))?;
        send(&mut transaction, content).await?;
        let blob = content.blob();
        let kept = sqlx::query(include_str!("../../queries/blob_put_spooled.sql"))
            .bind(&blob.digest.as_bytes()[..])
            .bind(size(blob.bytes))
            .bind(&blob.media_type)
            .persistent(false)
            .execute(&mut *transaction)
            .await;
        kept.map_err(|error| write_error(ACTION, error))?;
        transaction.commit().await.map_err(|error| write_error(ACTION, error))?;
        Ok(())
    }

    pub(super) async fn part(
        &self,
        blob: &BlobRef,
        from: u64,
        most: usize,
    ) -> Result<Vec<u8>, BlobError> {
        let sql = include_str!("../../queries/blob_part.sql");
        // SQL offsets count from 1 and are 32-bit.
        let first = i32::try_from(from).unwrap_or(i32::MAX).saturating_add(1);
        let most = i32::try_from(most).unwrap_or(i32::MAX);
        let make = || {
            let query = sqlx::query(sql).bind(&blob.digest.as_bytes()[..]);
            query.bind(first).bind(most)
        };
        let found = self.one("read content", make, |row| Ok((row.try_get(0)?, row.try_get(1)?)));
        let found: Option<(i64, Vec<u8>)> = found.await?;
        let (length, part) = found.ok_or(BlobError::Missing { digest: blob.digest })?;
        if u64::try_from(length) != Ok(blob.bytes) {
            let reason = format!("{length} bytes instead of {}", blob.bytes);
            return Err(BlobError::Corrupt { digest: blob.digest, reason });
        }
        Ok(part)
    }
}

/// Sends one row with one column, whose bytes are read from the file.
async fn send(
    transaction: &mut Transaction<'_, Postgres>,
    content: &Arc<SpooledFile>,
) -> Result<(), BlobError> {
    let failed = |error| BlobError::from(store_error(ACTION, error));
    let bytes = i32::try_from(content.blob().bytes)
        .map_err(|_| StoreError::backend(ACTION, "it is larger than a value of the database"))?;
    let statement = "copy noetl_spool (data) from stdin with (format binary)";
    let mut copy = transaction.copy_in_raw(statement).await.map_err(failed)?;
    copy.send(HEAD).await.map_err(failed)?;
    copy.send(&1_i16.to_be_bytes()[..]).await.map_err(failed)?;
    copy.send(&bytes.to_be_bytes()[..]).await.map_err(failed)?;
    let mut at = 0;
    loop {
        let piece = match content.read_piece(at).await {
            Ok(piece) => piece,
            Err(error) => {
                // The transaction is rolled back, whatever the response.
                let _ = copy.abort("the file could not be read").await;
                return Err(error);
            }
        };
        if piece.is_empty() {
            break;
        }
        at += u64::try_from(piece.len()).unwrap_or(u64::MAX);
        copy.send(&piece[..]).await.map_err(failed)?;
    }
    copy.send(&END[..]).await.map_err(failed)?;
    copy.finish().await.map_err(failed)?;
    Ok(())
}
