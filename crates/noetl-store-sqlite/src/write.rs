//! Writes that are not appends.

use noetl_model::Timestamp;
use noetl_store::StoreError;
use rusqlite::{Connection, TransactionBehavior};

use crate::SqliteStore;
use crate::error::{commit_failed, store_error};

impl SqliteStore {
    /// Runs `work` in a transaction of its own on the writing connection. When this returns `Ok`,
    /// what it wrote is as durable as an append.
    pub(crate) async fn write<T, W>(&self, action: &'static str, work: W) -> Result<T, StoreError>
    where
        T: Send + 'static,
        W: FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        let run = move |connection: &mut Connection| {
            let failed = |error| store_error(action, error);
            let begun = connection.transaction_with_behavior(TransactionBehavior::Immediate);
            let transaction = begun.map_err(failed)?;
            let answer = work(&transaction).map_err(failed)?;
            transaction.commit().map_err(|error| commit_failed(action, error))?;
            Ok(answer)
        };
        self.writer().run(run).await
    }

    /// The store's present in the form of its columns.
    pub(crate) fn now(&self) -> i64 {
        self.clock().now().as_micros()
    }
}

/// A column that holds an instant or nothing.
pub(crate) fn micros(at: Option<Timestamp>) -> Option<i64> {
    at.map(Timestamp::as_micros)
}

/// A number of bytes as SQLite takes it; nothing is larger than the largest it knows.
pub(crate) fn size(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
