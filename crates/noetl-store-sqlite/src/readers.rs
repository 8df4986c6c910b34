//! Fixed pool of read-only connections, each used by one read at a time.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use noetl_store::StoreError;
use rusqlite::Connection;
use tokio::sync::Semaphore;

use crate::connection;

/// A fixed number of read-only connections. A read waits for a free one, then runs on a blocking
/// thread.
#[derive(Debug)]
pub(crate) struct Readers {
    connections: Vec<Mutex<Connection>>,
    permits: Arc<Semaphore>,
}

impl Readers {
    pub(crate) fn open(path: &Path, count: usize) -> rusqlite::Result<Self> {
        let count = count.max(1);
        let connections: rusqlite::Result<Vec<_>> =
            (0..count).map(|_| connection::open_reader(path).map(Mutex::new)).collect();
        Ok(Self { connections: connections?, permits: Arc::new(Semaphore::new(count)) })
    }

    /// Runs `read` on a free connection. If the caller is cancelled, the connection still returns
    /// to the pool.
    pub(crate) async fn run<T, R>(self: &Arc<Self>, read: R) -> Result<T, StoreError>
    where
        T: Send + 'static,
        R: FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    {
        let permit = self.permits.clone().acquire_owned().await;
        let permit = permit.map_err(|closed| StoreError::backend("read", closed))?;
        let readers = self.clone();
        let task = tokio::task::spawn_blocking(move || {
            // Dropped last, after the connection is free.
            let _permit = permit;
            readers.read(read)
        });
        task.await.map_err(|error| StoreError::backend("read", error))?
    }

    fn read<T>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let free = self.connections.iter().find_map(|connection| connection.try_lock().ok());
        // With a permit, a connection is free, unless a read panicked on it. Readers have no state
        // that could be inconsistent, so a poisoned connection can be used.
        let first = || self.connections[0].lock().unwrap_or_else(PoisonError::into_inner);
        read(&free.unwrap_or_else(first))
    }
}
