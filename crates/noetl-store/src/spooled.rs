//! Content in a file, on its way to a place.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use crate::{BlobError, BlobRef, StoreError};

/// Bytes read from the file at a time.
pub const PIECE_BYTES: usize = 256 << 10;

/// Content in a file, so that none of it has to be in memory. Whoever made it has compared it with
/// its digest.
#[derive(Debug)]
pub struct Spooled {
    blob: BlobRef,
    file: File,
}

impl Spooled {
    /// The content of this file, from its beginning.
    pub const fn new(blob: BlobRef, file: File) -> Self {
        Self { blob, file }
    }

    pub const fn blob(&self) -> &BlobRef {
        &self.blob
    }

    /// The piece that begins at this place; empty at the end. Blocks.
    pub fn piece(&self, from: u64) -> io::Result<Vec<u8>> {
        let left = self.blob.bytes.saturating_sub(from);
        let size = usize::try_from(left).unwrap_or(usize::MAX).min(PIECE_BYTES);
        let mut piece = vec![0; size];
        self.file.read_exact_at(&mut piece, from)?;
        Ok(piece)
    }

    /// The same for callers that must not block.
    pub async fn read_piece(self: &Arc<Self>, from: u64) -> Result<Vec<u8>, BlobError> {
        let own = self.clone();
        let read = tokio::task::spawn_blocking(move || own.piece(from)).await;
        let read = read.map_err(|error| StoreError::backend(ACTION, error))?;
        Ok(read.map_err(|error| StoreError::backend(ACTION, error))?)
    }

    /// All of it, for places that take content whole.
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
