//! Outcome of resolving a placeholder, as the control plane answers a worker.

use noetl_model::Value;

/// Outcome of resolving a placeholder.
#[derive(Debug, Clone, PartialEq)]
pub enum ResolvedPlaceholder {
    /// The placeholder is valid in the execution, and the credential has the field.
    Value { alias: String, field: String, value: Value },
    /// The placeholder is valid in the execution, but its value is not stored: it stands for a
    /// token, or for a credential or field that was removed.
    Named { alias: String, field: String },
    /// The text is no placeholder, or its MAC is not valid in the execution.
    Text,
}
