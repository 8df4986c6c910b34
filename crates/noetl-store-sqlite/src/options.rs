//! Options of the store.

use std::path::PathBuf;

use noetl_store::{OutboxOptions, StoreClock};

/// Options to open a store.
#[derive(Debug, Clone)]
pub struct Options {
    pub location: DatabaseLocation,
    /// Durability of a commit. Default: [`Synchronous::Full`].
    pub synchronous: Synchronous,
    /// Maximum number of concurrent reads of a file. At least 1; default: 4.
    pub readers: usize,
    /// Clock of leases and timers. Default: the system clock.
    pub clock: StoreClock,
    /// Whether events are written to the outbox, and the lease duration of a claim. Default:
    /// disabled, 60 s.
    pub outbox: OutboxOptions,
}

impl Options {
    /// Returns options for a store in this file, which is created with its directory if missing.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self::with_location(DatabaseLocation::File(path.into()))
    }

    /// Returns options for a store in memory, which is lost when it is closed.
    pub fn memory() -> Self {
        Self::with_location(DatabaseLocation::Memory)
    }

    fn with_location(location: DatabaseLocation) -> Self {
        // With four readers, a UI page, its event stream, and a recovery don't wait for each other.
        // They cost little memory: the cache of a reader contains only pages that it has read.
        Self {
            location,
            synchronous: Synchronous::default(),
            readers: 4,
            clock: StoreClock::default(),
            outbox: OutboxOptions::default(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DatabaseLocation {
    /// Database file, next to its `-wal`, `-shm`, and `.lock` files.
    File(PathBuf),
    Memory,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Synchronous {
    /// The write-ahead log is synced to disk before a commit is acknowledged.
    #[default]
    Full,
    /// The write-ahead log is synced only at checkpoints, so a power failure may lose the last
    /// commits. A crash of this process loses nothing.
    Normal,
}

impl Synchronous {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Normal => "normal",
        }
    }
}
