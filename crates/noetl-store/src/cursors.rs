//! Cursors: how far a reader of a stream has come.

use async_trait::async_trait;

use crate::{Lease, StoreError};

/// What became of a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advanced {
    /// It is at the new position.
    Moved,
    /// It was there already, or further on, and stays.
    Kept,
    /// The lease it was to be moved under is not the live one. Nothing changed: stop reading.
    Fenced,
}

/// Positions by name. A position only ever grows.
#[async_trait]
pub trait Cursors: Send + Sync {
    /// Where this cursor is; none when it was never moved.
    async fn cursor(&self, name: &str) -> Result<Option<i64>, StoreError>;

    /// Moves a cursor forward, and never back.
    ///
    /// With a `fence` it moves only while that very holding is live; the check and the move are
    /// one step, so a reader that was replaced cannot move it afterwards.
    async fn advance(
        &self,
        name: &str,
        position: i64,
        fence: Option<&Lease>,
    ) -> Result<Advanced, StoreError>;
}
