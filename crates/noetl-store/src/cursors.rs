//! Cursors: positions of consumers of a stream.

use async_trait::async_trait;

use crate::{Lease, StoreError};

/// Outcome of advancing a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CursorUpdate {
    /// The cursor moved to the new position.
    Moved,
    /// The cursor was already at or after the position, and is unchanged.
    Kept,
    /// The lease given as the fence is not the live one. The cursor is unchanged: stop consuming.
    Fenced,
}

/// Positions by name. A position only ever grows.
#[async_trait]
pub trait CursorStore: Send + Sync {
    /// Returns the position of a cursor, or `None` if it was never advanced.
    async fn cursor(&self, name: &str) -> Result<Option<i64>, StoreError>;

    /// Moves a cursor forward, and never back.
    ///
    /// With a `fence`, the cursor moves only while that lease is live, in the same epoch. The check
    /// and the move are atomic, so a consumer that was replaced cannot move the cursor afterwards.
    async fn advance(
        &self,
        name: &str,
        position: i64,
        fence: Option<&Lease>,
    ) -> Result<CursorUpdate, StoreError>;
}
