//! Leases of commands that remote workers hold.
//!
//! A lease begins in the transaction that records the claim, so no crash leaves a command claimed
//! by a remote worker without a lease. Times are the store's. The store only reports expired
//! leases; the caller decides how each command continues.
//!
//! A remote worker either lists the commands it holds, and then only that renews their leases, or
//! it is a published worker, whose heartbeats and reports renew the leases of the commands it has
//! started.

use std::sync::Arc;
use std::time::Duration;

use noetl_model::command::{DEFAULT_POOL, is_remote_worker};
use noetl_model::{CommandId, CommandState, ExecutionId, Tenant, Timestamp};

/// Time within which a published worker must start a command after claiming it.
pub const START_WITHIN: Duration = Duration::from_secs(60);

/// Time without a heartbeat or report after which a published worker's leases expire.
pub const SILENCE_MAX: Duration = Duration::from_secs(90);

/// Maximum time a published worker may hold a command whose tool has no timeout.
pub const HELD_MAX: Duration = Duration::from_secs(3600);

/// Time added to a tool's timeout, so that a worker that enforces the timeout can report it.
pub const TIMEOUT_GRACE: Duration = Duration::from_secs(60);

/// Filter of the commands a worker accepts.
#[derive(Debug, Clone, Default)]
pub struct CommandFilter {
    /// Includes only commands of this tenant; all tenants if `None`.
    pub tenant: Option<Tenant>,
    /// Includes only commands of this pool; the default pool if `None`.
    pub pool: Option<Arc<str>>,
    /// Includes only commands with one of these tool kinds; any kind if `None`.
    pub kinds: Option<Vec<String>>,
    /// Excludes commands of this execution.
    pub not_of: Option<ExecutionId>,
}

impl CommandFilter {
    pub fn pool(&self) -> &str {
        self.pool.as_deref().unwrap_or(DEFAULT_POOL)
    }

    /// Returns `true` if the filter accepts a command of this pool with this tool, whatever its
    /// tenant.
    pub fn takes(&self, pool: &str, tool: &str) -> bool {
        self.pool() == pool
            && self.kinds.as_ref().is_none_or(|kinds| kinds.iter().any(|kind| kind == tool))
    }
}

/// A lease that begins or continues with a state change of its command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseGrant {
    /// Duration of the lease from now.
    pub lasts: Duration,
    /// Whether the worker lists the commands it holds, so that only this renews the lease.
    pub is_named: bool,
}

impl LeaseGrant {
    /// Returns the lease after the state change.
    #[must_use]
    pub fn holding(
        self,
        before: Option<CommandLease>,
        limit_ms: Option<i64>,
        now: Timestamp,
    ) -> CommandLease {
        if self.is_named {
            return CommandLease { until: now.plus(self.lasts), at_most: None };
        }
        CommandLease::moved(before, self.lasts, limit_ms, now)
    }
}

/// Returns the lease of a command in this state with this worker, or `None` if it has none. `named`
/// contains the leases of workers that list the commands they hold.
pub fn lease_of(
    named: &[(CommandId, Duration)],
    command: CommandId,
    state: CommandState,
    worker: Option<&str>,
) -> Option<LeaseGrant> {
    let lasts = lease_in(state, worker)?;
    let named = named.iter().find(|(id, _)| *id == command).map(|(_, lasts)| *lasts);
    Some(LeaseGrant { lasts: named.unwrap_or(lasts), is_named: named.is_some() })
}

/// Returns the duration of a published worker's lease on a command in this state, or `None` if the
/// state has no lease or the worker is not remote.
pub fn lease_in(state: CommandState, worker: Option<&str>) -> Option<Duration> {
    let is_remote = worker.is_some_and(is_remote_worker);
    match state {
        CommandState::Claimed if is_remote => Some(START_WITHIN),
        CommandState::Running if is_remote => Some(SILENCE_MAX),
        _ => None,
    }
}

/// The lease of a command. Database stores represent it as columns of the command's row and apply
/// the same rules there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandLease {
    pub until: Timestamp,
    /// Time beyond which the lease is not renewed; `None` for a worker that lists the commands it
    /// holds.
    pub at_most: Option<Timestamp>,
}

impl CommandLease {
    /// Returns the lease after a command entered a state in which it has a lease of this duration.
    fn moved(before: Option<Self>, lasts: Duration, limit_ms: Option<i64>, now: Timestamp) -> Self {
        match before {
            Some(named @ Self { at_most: None, .. }) => named,
            Some(Self { at_most: Some(at_most), .. }) => {
                Self { until: now.plus(lasts).min(at_most), at_most: Some(at_most) }
            }
            None => {
                let limit = limit_ms.map(|ms| Duration::from_millis(ms.unsigned_abs()));
                let held = limit.map_or(HELD_MAX, |limit| limit + TIMEOUT_GRACE);
                let at_most = now.plus(held);
                Self { until: now.plus(lasts).min(at_most), at_most: Some(at_most) }
            }
        }
    }
}

/// A command that a remote worker holds under a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ActiveLease {
    pub id: CommandId,
    pub execution: ExecutionId,
    /// Expiration time of the lease.
    pub until: Timestamp,
    /// Latest expiration of the lease; `None` if its worker lists the commands it holds.
    pub at_most: Option<Timestamp>,
}

/// Selects the commands for [`limit_held`](crate::CommandLeaseStore::limit_held).
#[derive(Debug, Clone, Copy)]
pub enum HeldBy<'a> {
    /// All commands of one worker.
    Worker(&'a str),
    /// The listed commands, of any worker.
    Commands(&'a [CommandId]),
}

/// Limit that [`limit_held`](crate::CommandLeaseStore::limit_held) set in one database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldLimit {
    /// Latest expiration of the leases.
    pub at_most: Timestamp,
    /// Number of commands whose leases got this limit.
    pub commands: usize,
}
