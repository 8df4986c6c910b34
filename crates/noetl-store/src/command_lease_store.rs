//! Storage of the leases of commands that remote workers hold; see [`crate::command_leases`].

use std::time::Duration;

use async_trait::async_trait;
use noetl_model::{CommandId, ExecutionId, Tenant};

use crate::command_leases::{ActiveLease, HeldBy, HeldLimit};
use crate::{CommandRow, StoreError};

/// Leases of commands that remote workers hold. `scope` restricts calls to one tenant's commands;
/// all tenants if `None`.
#[async_trait]
pub trait CommandLeaseStore: Send + Sync {
    /// Renews the leases of these commands for a worker that lists the commands it holds. From now
    /// on, only this call renews them. Returns the renewed ones: those that the worker still holds,
    /// possibly without some that another transaction is changing.
    async fn renew_leases(
        &self,
        scope: Option<&Tenant>,
        worker: &str,
        commands: &[CommandId],
        lasts: Duration,
    ) -> Result<Vec<CommandId>, StoreError>;

    /// Records a sign of life of a published worker. Renews the leases of the commands it has
    /// started for [`SILENCE_MAX`](crate::command_leases::SILENCE_MAX) from now, at most up to their limits; commands it has claimed
    /// but not started are not renewed. Returns the number renewed.
    async fn touch_worker(&self, scope: Option<&Tenant>, worker: &str)
    -> Result<usize, StoreError>;

    /// Expires the leases of all commands that a worker holds. Returns their number.
    async fn release_leases(
        &self,
        scope: Option<&Tenant>,
        worker: &str,
    ) -> Result<usize, StoreError>;

    /// Limits the leases of workers that don't list the commands they hold, so that they expire
    /// `within` from now at the latest. Leases with an earlier limit are unchanged.
    ///
    /// Returns the limit of each database that contains such a lease.
    async fn limit_held(
        &self,
        scope: Option<&Tenant>,
        by: HeldBy<'_>,
        within: Duration,
    ) -> Result<Vec<HeldLimit>, StoreError>;

    /// Returns those of these commands that have a lease, by ID.
    async fn held(&self, commands: &[CommandId]) -> Result<Vec<ActiveLease>, StoreError>;

    /// Returns the commands of an execution that workers hold under a lease, by ID.
    async fn held_of(&self, execution: ExecutionId) -> Result<Vec<CommandRow>, StoreError>;

    /// Claims commands whose leases have expired, the longest expired first. Each is returned again
    /// after `reclaim_after`, unless it has ended by then. Concurrent callers get different commands.
    async fn claim_expired(
        &self,
        limit: usize,
        reclaim_after: Duration,
    ) -> Result<Vec<CommandRow>, StoreError>;
}
