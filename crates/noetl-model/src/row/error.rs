//! Rows that cannot be read.

/// A row that is not what this version, or one before it, writes.
#[derive(Debug, thiserror::Error)]
pub enum RowError {
    /// A column that this type of event always fills is empty.
    #[error("event {event}: a {event_type} row without {column}")]
    Missing { event: crate::EventId, event_type: String, column: &'static str },
    /// A JSON column does not hold what this type of event puts there.
    #[error("event {event}: column {column} of a {event_type} row is not readable")]
    Json {
        event: crate::EventId,
        event_type: String,
        column: &'static str,
        /// What the decoder says.
        #[source]
        source: serde_json::Error,
    },
    /// A decided row of a type this version does not know.
    #[error("event {event}: unknown event type {event_type}; a newer version wrote it")]
    UnknownType { event: crate::EventId, event_type: String },
}
