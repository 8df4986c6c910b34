//! Room in the file of the write-ahead log, made before it is needed.
//!
//! The sync of a file that has grown writes what the file system knows of it too, and takes about
//! twice as long as the sync of bytes that were there. So zeros are written behind the end of the log
//! while nobody waits for the writer. SQLite ends a log where its sums do not fit, as it does with
//! what is left of an older log.

use std::fs::{File, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

/// Bytes of a log before its first frame, and of a frame before its page.
const LOG_HEAD: u64 = 32;
const FRAME_HEAD: u64 = 24;

/// Bytes added at a time: a few steps' worth, as the next sync takes them to the disk.
const ROOM: u64 = 256 * 1024;

/// Bytes that are to be left after a commit: more than a step takes.
const LEFT_MIN: u64 = 64 * 1024;

/// Pages of a commit that is large enough to bear its own growth.
const LARGE: u32 = 64;

/// Written at a time: the system keeps what is written at once together, and small commits would soil
/// large pieces.
static ZEROS: [u8; 16 * 1024] = [0; 16 * 1024];

/// The file of a log. Only the thread that writes to the log may make room in it.
pub(crate) struct Room {
    path: PathBuf,
    /// Opened when it is first needed: the first commit makes it.
    file: Option<File>,
    frame: u64,
    /// Up to where there is room.
    end: u64,
}

impl Room {
    pub(crate) fn new(database: &Path, page_size: u32) -> Self {
        let mut path = database.to_owned().into_os_string();
        path.push("-wal");
        Self { path: path.into(), file: None, frame: u64::from(page_size) + FRAME_HEAD, end: 0 }
    }

    /// Makes room behind a log of `pages`, to which the last commit added `added`.
    pub(crate) fn make(&mut self, pages: u32, added: u32) {
        let wanted = LOG_HEAD + u64::from(pages) * self.frame + LEFT_MIN;
        if pages == 0 || wanted <= self.end || added >= LARGE {
            return;
        }
        self.end = self.extend(wanted).unwrap_or_else(|error| {
            // It only saves time. A disk that is full is told by the commit that meets it.
            tracing::debug!(%error, "could not make room in the write-ahead log");
            u64::MAX
        });
    }

    /// Adds room where `wanted` is past the end of the file, and returns the new end.
    fn extend(&mut self, wanted: u64) -> std::io::Result<u64> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(OpenOptions::new().write(true).open(&self.path)?),
        };
        // A commit may have made the file longer meanwhile.
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
