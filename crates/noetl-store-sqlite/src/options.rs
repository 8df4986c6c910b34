//! What a caller chooses.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use noetl_model::Clock;
use noetl_store::SystemClock;

/// How to open a store.
#[derive(Clone)]
pub struct Options {
    /// Where it is.
    pub location: Location,
    /// What a commit waits for. Default: [`Synchronous::Full`].
    pub synchronous: Synchronous,
    /// How many reads of a file run at once. Default: 4. At least one is used.
    pub readers: usize,
    /// What time it is for the store. Default: the machine's clock.
    pub clock: Arc<dyn Clock>,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("location", &self.location)
            .field("synchronous", &self.synchronous)
            .field("readers", &self.readers)
            .finish_non_exhaustive()
    }
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
        let clock = Arc::new(SystemClock);
        Self { location, synchronous: Synchronous::default(), readers: 4, clock }
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
    /// For the disk: a commit that was answered survives a power cut.
    #[default]
    Full,
    /// For the operating system: a power cut may take the last commits, never the file's order. A
    /// crash of this process takes nothing.
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
