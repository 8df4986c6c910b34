//! Leases: exclusive, time-limited rights to a name.
//!
//! A lease is a row with a holder, an expiration time, and an epoch. The epoch grows each time a
//! free or expired name is acquired, and never shrinks, so a write that names its epoch
//! distinguishes a former holder from the current one. Times are the store's.

use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;
use noetl_model::Timestamp;

use crate::StoreError;

/// A lease of a name by one holder in one epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    pub name: String,
    pub holder: String,
    /// Number of times the name was acquired, from 1.
    pub epoch: i64,
    /// Expiration time, by the store's clock. The lease has expired at that instant.
    pub until: Timestamp,
}

impl Lease {
    /// Returns `true` if the lease has not expired at this instant.
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.until > now
    }

    /// Returns `true` if both are the same lease (name, holder, and epoch), whatever their
    /// expiration.
    pub fn is_same(&self, other: &Self) -> bool {
        (&self.name, &self.holder, self.epoch) == (&other.name, &other.holder, other.epoch)
    }
}

/// Returns the number that [`LeaseStore::acquire_any`] acquires, given every live lease with this
/// prefix: the lowest one that the holder has, or else the lowest free one. Every store calls this
/// function.
pub fn number_to_take(
    prefix: &str,
    numbers: Range<u16>,
    holder: &str,
    live: &[Lease],
) -> Option<u16> {
    let held_by = |number: u16| {
        let name = format!("{prefix}{number}");
        live.iter().find(|lease| lease.name == name).map(|lease| lease.holder.as_str())
    };
    let own = numbers.clone().find(|&number| held_by(number) == Some(holder));
    own.or_else(|| numbers.clone().find(|&number| held_by(number).is_none()))
}

/// Names that at most one holder has at a time.
#[async_trait]
pub trait LeaseStore: Send + Sync {
    /// Acquires a name for `ttl` from now.
    ///
    /// A name that is free or whose lease has expired starts its next epoch. If the holder already
    /// has the lease, its epoch continues with the new expiration time. Returns `None` if another
    /// holder has it. Of several concurrent callers, exactly one holder acquires it.
    async fn acquire(
        &self,
        name: &str,
        holder: &str,
        ttl: Duration,
    ) -> Result<Option<Lease>, StoreError>;

    /// Renews a lease for `ttl` from now. Returns `false` if the lease is lost: expired, released,
    /// or acquired in a later epoch. An expired lease stays expired even if no other holder
    /// acquired it, because others may have acted on its expiration.
    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<bool, StoreError>;

    /// Releases a lease before it expires. Returns `false` without effect if the lease is already
    /// lost. The name retains its epoch.
    async fn release(&self, lease: &Lease) -> Result<bool, StoreError>;

    /// Returns the live lease of this name.
    async fn lease(&self, name: &str) -> Result<Option<Lease>, StoreError>;

    /// Returns every live lease whose name starts with `prefix`, in byte order of the names.
    async fn live(&self, prefix: &str) -> Result<Vec<Lease>, StoreError>;

    /// Acquires one of the names `<prefix><number>`, with the number in decimal, like
    /// [`LeaseStore::acquire`].
    ///
    /// Selects the lowest number that the holder already has, so that a call whose response was
    /// lost can be repeated, or else the lowest free one. Returns `None` if all are in use. Two
    /// holders never get the same number.
    async fn acquire_any(
        &self,
        prefix: &str,
        numbers: Range<u16>,
        holder: &str,
        ttl: Duration,
    ) -> Result<Option<(u16, Lease)>, StoreError>;
}
