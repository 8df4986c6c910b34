//! Leases: who may do what only one may do at a time, and until when.
//!
//! A lease is a row with a holder, an end and an epoch. The epoch grows with every new holding and
//! never shrinks, so a write that names the epoch it was made under tells a late holder from the
//! present one. Time is the store's own.

use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;
use noetl_model::Timestamp;

use crate::StoreError;

/// One holding of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    pub name: String,
    pub holder: String,
    /// Which holding of this name it is: 1, 2, 3 …
    pub epoch: i64,
    /// When it ends, by the store's clock. At that instant it is over.
    pub until: Timestamp,
}

impl Lease {
    /// Whether it is not over at this instant.
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.until > now
    }

    /// Whether both are the same holding, whatever its end.
    pub fn is_same(&self, other: &Self) -> bool {
        (&self.name, &self.holder, self.epoch) == (&other.name, &other.holder, other.epoch)
    }
}

/// The number [`Leases::acquire_any`] takes, given every live lease with this prefix: the lowest
/// one the holder has already, else the lowest nobody has. Every store asks this one function.
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
pub trait Leases: Send + Sync {
    /// Takes a name for `ttl` from now.
    ///
    /// A name that is free or whose lease is over begins its next epoch. A lease the holder has
    /// already goes on in its epoch with the new end. None when somebody else has it. Of several
    /// callers at once exactly one holder gets it.
    async fn acquire(
        &self,
        name: &str,
        holder: &str,
        ttl: Duration,
    ) -> Result<Option<Lease>, StoreError>;

    /// Moves the end of a lease to `ttl` from now. False when it is lost: over, given back, or
    /// another holding has begun. One that is over stays over even if nobody took it, because
    /// others may have acted on its end.
    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<bool, StoreError>;

    /// Gives a lease back before its end. False when it is lost already; then nothing changes. The
    /// name keeps its epoch.
    async fn release(&self, lease: &Lease) -> Result<bool, StoreError>;

    /// The live lease of this name.
    async fn lease(&self, name: &str) -> Result<Option<Lease>, StoreError>;

    /// Every live lease whose name begins with `prefix`, in the order of their names' bytes.
    async fn live(&self, prefix: &str) -> Result<Vec<Lease>, StoreError>;

    /// Takes one of the names `<prefix><number>`, in decimal, as [`Leases::acquire`] does.
    ///
    /// It is the lowest number the holder has already, so that a call whose answer was lost can be
    /// repeated; else the lowest that is free. None when all are taken. Two holders never get the
    /// same number.
    async fn acquire_any(
        &self,
        prefix: &str,
        numbers: Range<u16>,
        holder: &str,
        ttl: Duration,
    ) -> Result<Option<(u16, Lease)>, StoreError>;
}
