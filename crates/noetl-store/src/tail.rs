//! Event rows of a database in commit order, for consumers that follow the log.
//!
//! Positions are assigned per commit lane. Within a lane, a row becomes visible only after every
//! row with a smaller position, so a consumer that continues from its last position misses nothing,
//! whatever IDs and times the rows have. Positions are never reused; purged rows leave gaps.

mod body;

use async_trait::async_trait;
use noetl_model::row::EventRow;
use noetl_model::{CatalogId, EventId, Tenant};

use crate::StoreError;

pub use body::{by_reference, message_id};

/// Size of the JSON columns, in bytes, after which a page ends: room for hundreds of typical rows,
/// or a few of the largest.
pub const PAGE_BYTES: usize = 8 << 20;

/// A commit lane: one of the independent commit orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lane {
    pub number: u16,
    /// Last assigned position; 0 if there is none.
    pub newest: i64,
}

/// A row of the log with data of its execution.
#[derive(Debug, Clone, PartialEq)]
pub struct TailRow {
    /// Position in the lane; the event's ID for a row without a position.
    pub position: i64,
    pub tenant: Tenant,
    /// Catalog entry of the execution, if known.
    pub catalog: Option<CatalogId>,
    /// Previous event in the execution's log, if it still exists.
    pub previous: Option<EventId>,
    /// Event row. Its `seq` is 0 if it has no sequence number yet.
    pub row: EventRow,
}

/// The log by position. Each database has its own.
#[async_trait]
pub trait LogTail: Send + Sync {
    /// Returns every lane with its newest position. A row at or before that position is visible or
    /// purged.
    async fn lanes(&self) -> Result<Vec<Lane>, StoreError>;

    /// Returns up to `limit` rows of a lane after a position, in order of positions. Returns fewer
    /// if they exceed [`PAGE_BYTES`], and at least one if any exists.
    async fn tail(&self, lane: u16, after: i64, limit: usize) -> Result<Vec<TailRow>, StoreError>;

    /// Returns rows without a position, which another program wrote before this server adopted the
    /// database: those with an event ID above `after`, in order of IDs, up to about `limit`.
    /// Returns fewer if they exceed [`PAGE_BYTES`]. Rows with the same ID are returned together.
    async fn tail_adopted(&self, after: i64, limit: usize) -> Result<Vec<TailRow>, StoreError>;
}
