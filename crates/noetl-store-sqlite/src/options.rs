//! What a caller chooses.

use std::path::PathBuf;

use noetl_store::{OutboxOptions, StoreClock};

/// How to open a store.
#[derive(Debug, Clone)]
pub struct Options {
    pub location: Location,
    /// What a commit waits for. Default: [`Synchronous::Full`].
    pub synchronous: Synchronous,
    /// How many reads of a file run at once. Default: 4. At least one is used.
    pub readers: usize,
    /// The clock leases and due times are compared with. Default: the machine's.
    pub clock: StoreClock,
    /// Whether events go to the outbox, and how long a claim lasts. Default: they do not, 60 s.
    pub outbox: OutboxOptions,
}

impl Options {
    /// A store in this file, made when it is missing, with its directory.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self::at(Location::File(path.into()))
    }

    /// A store that is gone when it is closed.
    pub fn memory() -> Self {
        Self::at(Location::Memory)
    }

    fn at(location: Location) -> Self {
        // Four keep a page of the UI, its stream and a recovery from waiting for each other, and
        // cost little: a reader's cache is filled only by what it reads.
        Self {
            location,
            synchronous: Synchronous::default(),
            readers: 4,
            clock: StoreClock::default(),
            outbox: OutboxOptions::default(),
        }
    }
}

/// Where a store is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// In this file, with `-wal`, `-shm` and `.lock` files beside it.
    File(PathBuf),
    /// In this process.
    Memory,
}

/// What a commit waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Synchronous {
    /// For the disk: the write-ahead log is synced before a commit is acknowledged.
    #[default]
    Full,
    /// For the operating system: the log is synced at checkpoints only, so a power cut may lose the
    /// last commits. A crash of this process loses nothing.
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
