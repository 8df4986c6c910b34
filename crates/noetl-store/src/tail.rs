//! The log of a database in the order it was committed, for whoever follows it.
//!
//! Positions are given by lane. Within a lane a row is seen only when every row with a smaller
//! position is, so a reader that goes on from the last position it saw misses nothing, whatever ids
//! and times the rows have. Positions are never given twice; rows may go, which leaves gaps.

mod body;

use async_trait::async_trait;
use noetl_model::row::EventRow;
use noetl_model::{CatalogId, EventId, Tenant};

use crate::StoreError;

pub use body::{by_reference, message_id};

/// Bytes of the JSON columns after which a page ends: room for hundreds of usual rows, and few of the
/// largest.
pub const PAGE_BYTES: usize = 8 << 20;

/// One order of commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lane {
    /// Which one it is.
    pub number: u16,
    /// The last position that was given in it; 0 when there is none.
    pub newest: i64,
}

/// A row of the log with what belongs to it elsewhere.
#[derive(Debug, Clone, PartialEq)]
pub struct TailRow {
    /// Its place in its lane; the event's id for a row that has no place.
    pub position: i64,
    pub tenant: Tenant,
    /// The catalog entry of its execution, where that is known.
    pub catalog: Option<CatalogId>,
    /// The event before it in its execution's log, if that is still there.
    pub previous: Option<EventId>,
    /// The row. Its `seq` is 0 when it has no place in its log yet.
    pub row: EventRow,
}

/// The log by position. Each database has its own.
#[async_trait]
pub trait Tail: Send + Sync {
    /// Every lane, with its newest position. A row at or before it is there or gone for good.
    async fn lanes(&self) -> Result<Vec<Lane>, StoreError>;

    /// Rows of a lane after a position, in the order of their positions: up to `limit`, fewer where
    /// they are more than [`PAGE_BYTES`], and at least one if there is any.
    async fn tail(&self, lane: u16, after: i64, limit: usize) -> Result<Vec<TailRow>, StoreError>;

    /// Rows that have no position, because another program wrote them before this database was
    /// ours: those with an event id above `after`, in the order of those ids, up to about `limit`,
    /// fewer where they are more than [`PAGE_BYTES`]. Rows with one id come together.
    async fn tail_adopted(&self, after: i64, limit: usize) -> Result<Vec<TailRow>, StoreError>;
}
