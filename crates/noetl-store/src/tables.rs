//! Sizes of stored tables.

use serde::Serialize;

/// Size of a table in a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TableSize {
    pub name: String,
    /// Number of rows in the table.
    pub rows: u64,
    /// Size in bytes, including indexes.
    pub bytes: u64,
}
