//! Store trait that reads command rows.

use std::sync::Arc;

use async_trait::async_trait;
use noetl_model::{CommandId, CommandRow};

use crate::StoreError;
use crate::command_leases::CommandFilter;

/// Reads command rows. [`crate::EventLog::commit`] writes them.
#[async_trait]
pub trait CommandStore: Send + Sync {
    async fn command(&self, id: CommandId) -> Result<Option<CommandRow>, StoreError>;

    /// Returns commands that are not terminal, with an ID above `after`, oldest first.
    async fn open_commands(
        &self,
        after: CommandId,
        limit: usize,
    ) -> Result<Vec<CommandRow>, StoreError>;

    /// Returns pending commands that match the filter, oldest first.
    async fn pending_commands(
        &self,
        wanted: &CommandFilter,
        limit: usize,
    ) -> Result<Vec<CommandRow>, StoreError>;

    /// Returns the number of pending commands by pool, in byte order. Omits pools without any.
    async fn pending_by_pool(&self) -> Result<Vec<(Arc<str>, u64)>, StoreError>;
}
