//! What a worker declares when it connects.

use std::time::Duration;

use noetl_journal::TenantScope;
use noetl_model::CommandId;
use noetl_store::CommandFilter;

pub use crate::lease_activity::LEASE_MAX;
use crate::leasing::{LeaseError, wanted};
use crate::workers::{WorkerError, check_name};

/// Minimum duration of a lease that a worker may choose.
pub const LEASE_MIN: Duration = Duration::from_secs(10);

/// Maximum number of commands that a worker holds at a time.
const SLOTS_MAX: usize = 10_000;

const POOLS_MAX: usize = 16;

const KINDS_MAX: usize = 1000;

/// Maximum length of a pool, kind, or key, in bytes.
const NAME_MAX: usize = 200;

/// Identity and capacity of a worker.
#[derive(Debug, Clone, Default)]
pub struct WorkerDeclaration {
    pub name: String,
    /// Public key of the process. A different key under the same name is a different process.
    pub public_key: String,
    /// Pools whose commands the worker accepts; the default pool if empty.
    pub pools: Vec<String>,
    /// Tool kinds the worker supports; all if `None`.
    pub kinds: Option<Vec<String>>,
    /// Maximum number of commands the worker holds, from 1 to 10,000.
    pub slots: usize,
    /// Duration of the leases, from [`LEASE_MIN`] to [`LEASE_MAX`]; that of the server if `None`.
    pub lease: Option<Duration>,
}

/// Reasons a connection was not opened.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// A number is outside its range.
    #[error("{what} must be from {least} to {most}, not {found}")]
    Range { what: &'static str, least: u64, most: u64, found: u64 },
    /// A pool or a tool kind is empty, too long, or holds a NUL character.
    #[error("'{name}' is not a valid {what}: names have 1 to 200 bytes and no NUL character")]
    Name { what: &'static str, name: String },
    /// The public key is empty or too long.
    #[error("public_key must have 1 to 200 bytes and no NUL character")]
    Key,
    #[error(transparent)]
    Lease(#[from] LeaseError),
}

impl From<WorkerError> for ConnectError {
    fn from(error: WorkerError) -> Self {
        Self::Lease(error.into())
    }
}

impl WorkerDeclaration {
    /// Checks the declaration and the number of commands that the worker holds. Returns the
    /// duration of its leases.
    pub fn check(&self, default: Duration, holds: &[CommandId]) -> Result<Duration, ConnectError> {
        check_name(&self.name)?;
        if !is_name(&self.public_key) {
            return Err(ConnectError::Key);
        }
        in_range("slots", 1, SLOTS_MAX, self.slots)?;
        in_range("the number of pools", 0, POOLS_MAX, self.pools.len())?;
        in_range("the number of kinds", 0, KINDS_MAX, self.kinds.as_ref().map_or(0, Vec::len))?;
        in_range("the number of commands in holds", 0, SLOTS_MAX, holds.len())?;
        let pools = self.pools.iter().map(|pool| ("pool", pool));
        let kinds = self.kinds.iter().flatten().map(|kind| ("tool kind", kind));
        for (what, name) in pools.chain(kinds) {
            if !is_name(name) {
                let name = name.chars().take(NAME_MAX).collect();
                return Err(ConnectError::Name { what, name });
            }
        }
        let Some(lease) = self.lease else { return Ok(default) };
        if (LEASE_MIN..=LEASE_MAX).contains(&lease) {
            return Ok(lease);
        }
        let (least, most) = (LEASE_MIN.as_secs(), LEASE_MAX.as_secs());
        Err(ConnectError::Range { what: "lease_seconds", least, most, found: lease.as_secs() })
    }

    /// Returns a filter of the accepted commands for each pool. The worker has at least one pool.
    pub(super) fn filters(&self, scope: &TenantScope) -> Vec<CommandFilter> {
        let filter = |pool: Option<&String>| wanted(scope, pool.cloned(), self.kinds.clone());
        if self.pools.is_empty() {
            return vec![filter(None)];
        }
        let mut filters: Vec<CommandFilter> = Vec::with_capacity(self.pools.len());
        for pool in &self.pools {
            if filters.iter().all(|known| known.pool() != pool) {
                filters.push(filter(Some(pool)));
            }
        }
        filters
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= NAME_MAX && !text.contains('\0')
}

fn in_range(
    what: &'static str,
    least: usize,
    most: usize,
    found: usize,
) -> Result<(), ConnectError> {
    if (least..=most).contains(&found) {
        return Ok(());
    }
    let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    let (least, most, found) = (number(least), number(most), number(found));
    Err(ConnectError::Range { what, least, most, found })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declaration() -> WorkerDeclaration {
        WorkerDeclaration {
            name: "w".to_owned(),
            public_key: "k".to_owned(),
            slots: 1,
            ..WorkerDeclaration::default()
        }
    }

    #[test]
    fn a_declaration_outside_the_limits_is_rejected() {
        let default = Duration::from_secs(45);
        let check = |declaration: WorkerDeclaration| declaration.check(default, &[]);
        assert_eq!(check(declaration()).expect("valid"), default);
        for seconds in [10, 300] {
            let lease = Some(Duration::from_secs(seconds));
            assert_eq!(check(WorkerDeclaration { lease, ..declaration() }).ok(), lease);
        }
        let refused = [
            WorkerDeclaration { lease: Some(Duration::from_secs(9)), ..declaration() },
            WorkerDeclaration { lease: Some(Duration::from_secs(301)), ..declaration() },
            WorkerDeclaration { public_key: String::new(), ..declaration() },
            WorkerDeclaration { slots: 0, ..declaration() },
            WorkerDeclaration { slots: 10_001, ..declaration() },
            WorkerDeclaration { name: "local".to_owned(), ..declaration() },
            WorkerDeclaration { pools: vec!["p".to_owned(); 17], ..declaration() },
            WorkerDeclaration { pools: vec![String::new()], ..declaration() },
            WorkerDeclaration { pools: vec!["a\0".to_owned()], ..declaration() },
            WorkerDeclaration { kinds: Some(vec!["k".repeat(201)]), ..declaration() },
        ];
        for declaration in refused {
            assert!(check(declaration.clone()).is_err(), "{declaration:?}");
        }
    }

    #[test]
    fn each_pool_has_one_filter() {
        let pools = ["a", "b", "a"].map(str::to_owned).to_vec();
        let filters = WorkerDeclaration { pools, ..declaration() }.filters(&None);
        assert_eq!(filters.iter().map(CommandFilter::pool).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(declaration().filters(&None)[0].pool(), "shared");
    }
}
