//! Writes and reads blobs in pieces: from a file to a row, and from part of a row.

use std::io;

use noetl_model::Timestamp;
use noetl_store::{BlobError, BlobRef, PIECE_BYTES, SpooledFile};
use rusqlite::blob::Blob;
use rusqlite::{Connection, MAIN_DB, OptionalExtension, params};

use crate::column::size;
use crate::connection::{READER_CACHE_KIB, WRITER_CACHE_KIB};

/// Page cache of a large write, in KiB. Further pages go to the write-ahead log at once, where they
/// end up in any case.
const CACHE_KIB: i64 = 4096;

/// Page cache of a reader that reads part of a blob, in KiB. It traverses all pages before the
/// part, which are not needed later.
const PART_CACHE_KIB: i64 = 512;

/// Writes a blob. If it exists, rewrites only the pieces that differ, which are damaged.
pub(super) fn put(
    connection: &Connection,
    content: &SpooledFile,
    now: Timestamp,
) -> rusqlite::Result<()> {
    let blob = content.blob();
    let name = blob.digest.to_string();
    let note = include_str!("../../queries/blob_put.sql");
    let values = params![name, size(blob.bytes), blob.media_type, now.as_micros()];
    connection.prepare_cached(note)?.execute(values)?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    let filled = fill(connection, content, &name);
    // Restore the page cache for later writes, even after an error.
    connection.pragma_update(None, "cache_size", -WRITER_CACHE_KIB)?;
    filled
}

fn fill(connection: &Connection, content: &SpooledFile, name: &str) -> rusqlite::Result<()> {
    let room = include_str!("../../queries/blob_data_room.sql");
    connection.prepare_cached(room)?.execute((name, size(content.blob().bytes)))?;
    let sql = "select rowid from blob_data where digest = ?1";
    let row = connection.prepare_cached(sql)?.query_row([name], |row| row.get(0))?;
    let mut blob = connection.blob_open(MAIN_DB, c"blob_data", c"data", row, false)?;
    let mut there = vec![0; PIECE_BYTES];
    let mut at = 0;
    loop {
        let piece = content.piece(at).map_err(unreadable)?;
        if piece.is_empty() {
            return blob.close();
        }
        let place = usize::try_from(at).map_err(unreadable)?;
        let there = &mut there[..piece.len()];
        blob.read_at_exact(there, place)?;
        if *there != *piece {
            blob.write_all_at(&piece, place)?;
        }
        at += u64::try_from(piece.len()).map_err(unreadable)?;
    }
}

/// Reads part of a blob. Returns `None` if the blob does not exist.
pub(super) fn part(
    connection: &Connection,
    asked: &BlobRef,
    from: u64,
    most: usize,
) -> rusqlite::Result<Option<Result<Vec<u8>, BlobError>>> {
    let sql = "select rowid from blob_data where digest = ?1";
    let mut find = connection.prepare_cached(sql)?;
    let row = find.query_row([asked.digest.to_string()], |row| row.get(0)).optional()?;
    let Some(row) = row else { return Ok(None) };
    connection.pragma_update(None, "cache_size", -PART_CACHE_KIB)?;
    let part = part_of(connection, row, asked, from, most);
    connection.pragma_update(None, "cache_size", -READER_CACHE_KIB)?;
    part.map(Some)
}

fn part_of(
    connection: &Connection,
    row: i64,
    asked: &BlobRef,
    from: u64,
    most: usize,
) -> rusqlite::Result<Result<Vec<u8>, BlobError>> {
    let blob: Blob<'_> = connection.blob_open(MAIN_DB, c"blob_data", c"data", row, true)?;
    let length = blob.len();
    if u64::try_from(length) != Ok(asked.bytes) {
        let reason = format!("{length} bytes instead of {}", asked.bytes);
        return Ok(Err(BlobError::Corrupt { digest: asked.digest, reason }));
    }
    let from = usize::try_from(from).unwrap_or(usize::MAX).min(length);
    let mut part = vec![0; most.min(length - from)];
    blob.read_at_exact(&mut part, from)?;
    Ok(Ok(part))
}

fn unreadable(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(io::Error::other(error).into())
}
