//! Errors of decoding rows.

/// Error for a row in a form that neither this version nor an earlier one writes.
#[derive(Debug, thiserror::Error)]
pub enum RowError {
    /// A column that this event type requires is empty.
    #[error("event {event}: a {event_type} row without {column}")]
    Missing { event: crate::EventId, event_type: String, column: &'static str },
    /// A JSON column does not match the schema of this event type.
    #[error("event {event}: column {column} of a {event_type} row is not readable")]
    Json {
        event: crate::EventId,
        event_type: String,
        column: &'static str,
        /// Error of the JSON decoder.
        #[source]
        source: serde_json::Error,
    },
    /// A decided row has a type that this version does not know.
    #[error("event {event}: unknown event type {event_type}; a newer version wrote the event")]
    UnknownType { event: crate::EventId, event_type: String },
}
