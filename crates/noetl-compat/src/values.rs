//! Values that callers look up for a command.

use noetl_model::{Map, Value};

/// Values looked up for a command.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ResolvedValues {
    /// Values of the scope's blobs, in the scope's order.
    pub blobs: Vec<Value>,
    /// Keychain entries that the command's templates name, with their values.
    pub keychain: Map,
}
