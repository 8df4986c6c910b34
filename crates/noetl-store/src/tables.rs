//! How large what is stored is.

use serde::Serialize;

/// A table of a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TableSize {
    pub name: String,
    /// How many rows it has.
    pub rows: u64,
    /// How many bytes it takes, its indexes included.
    pub bytes: u64,
}
