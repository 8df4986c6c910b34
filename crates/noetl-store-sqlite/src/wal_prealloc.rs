//! Preallocates space in the file of the write-ahead log (WAL).
//!
//! A sync after the file has grown also writes file system metadata, and takes about twice as long
//! as a sync of existing bytes. Zeros are therefore written after the end of the WAL while no
//! caller waits for the writer. SQLite ends the WAL at the first frame with a wrong checksum, as it
//! does with leftover frames of an older WAL.

use std::fs::{File, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

/// Size in bytes of the WAL header, and of the header of a frame.
const LOG_HEAD: u64 = 32;
const FRAME_HEAD: u64 = 24;

/// Number of bytes to add at a time: enough for a few steps, because the next sync writes them to
/// disk.
const ROOM: u64 = 256 * 1024;

/// Number of bytes to have left after a commit: more than a step needs.
const LEFT_MIN: u64 = 64 * 1024;

/// Number of pages of a commit that is large enough to amortize the growth of the file.
const LARGE: u32 = 64;

/// Zeros to write at a time. The system caches bytes of one write as a unit, and small commits
/// would make large units dirty.
static ZEROS: [u8; 16 * 1024] = [0; 16 * 1024];

/// Preallocator of a WAL file. Only the thread that writes the WAL may use it.
pub(crate) struct WalPreallocator {
    path: PathBuf,
    /// Opened on first use, because the first commit creates the file.
    file: Option<File>,
    frame: u64,
    /// End of the preallocated space, in bytes.
    end: u64,
}

impl WalPreallocator {
    pub(crate) fn new(database: &Path, page_size: u32) -> Self {
        let mut path = database.to_owned().into_os_string();
        path.push("-wal");
        Self { path: path.into(), file: None, frame: u64::from(page_size) + FRAME_HEAD, end: 0 }
    }

    /// Preallocates space after a WAL of `pages` pages, of which the last commit added `added`.
    pub(crate) fn make(&mut self, pages: u32, added: u32) {
        let wanted = LOG_HEAD + u64::from(pages) * self.frame + LEFT_MIN;
        if pages == 0 || wanted <= self.end || added >= LARGE {
            return;
        }
        self.end = self.extend(wanted).unwrap_or_else(|error| {
            // Preallocation only saves time. If the disk is full, the commit that needs the space
            // fails.
            tracing::debug!(%error, "failed to preallocate WAL");
            u64::MAX
        });
    }

    /// Extends the file if `wanted` is past its end, and returns its size.
    fn extend(&mut self, wanted: u64) -> std::io::Result<u64> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(OpenOptions::new().write(true).open(&self.path)?),
        };
        // A commit may have extended the file in the meantime.
        let end = file.seek(SeekFrom::End(0))?;
        if wanted <= end {
            return Ok(end);
        }
        let mut grown = end;
        while grown < end + ROOM {
            file.write_all(&ZEROS)?;
            grown += ZEROS.len() as u64;
        }
        Ok(grown)
    }
}
