//! Blob content in a file, to be stored.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use crate::{BlobError, BlobRef, StoreError};

/// Number of bytes read from the file at a time.
pub const PIECE_BYTES: usize = 256 << 10;

/// Blob content in a file, so that it need not be in memory. The creator has checked it against its
/// digest.
#[derive(Debug)]
pub struct SpooledFile {
    blob: BlobRef,
    file: File,
}

impl SpooledFile {
    /// Wraps a file that contains the blob from offset 0.
    pub const fn new(blob: BlobRef, file: File) -> Self {
        Self { blob, file }
    }

    pub const fn blob(&self) -> &BlobRef {
        &self.blob
    }

    /// Returns the piece that starts at this offset; empty at the end. Blocks the thread.
    pub fn piece(&self, from: u64) -> io::Result<Vec<u8>> {
        let left = self.blob.bytes.saturating_sub(from);
        let size = usize::try_from(left).unwrap_or(usize::MAX).min(PIECE_BYTES);
        let mut piece = vec![0; size];
        self.file.read_exact_at(&mut piece, from)?;
        Ok(piece)
    }

    /// Returns the piece that starts at this offset, without blocking the thread.
    pub async fn read_piece(self: &Arc<Self>, from: u64) -> Result<Vec<u8>, BlobError> {
        let own = self.clone();
        let read = tokio::task::spawn_blocking(move || own.piece(from)).await;
        let read = read.map_err(|error| StoreError::backend(ACTION, error))?;
        Ok(read.map_err(|error| StoreError::backend(ACTION, error))?)
    }

    /// Returns the whole content, for stores that cannot copy it piece by piece.
    pub async fn read_all(self: &Arc<Self>) -> Result<Vec<u8>, BlobError> {
        let mut bytes = Vec::with_capacity(usize::try_from(self.blob.bytes).unwrap_or(0));
        loop {
            let from = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            let piece = self.read_piece(from).await?;
            if piece.is_empty() {
                return Ok(bytes);
            }
            bytes.extend(piece);
        }
    }
}

const ACTION: &str = "read content that is to be kept";
