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
    /// The body of an append has another format.
    #[error("execution {execution}: the append at event {seq} is not readable")]
    Body {
        execution: crate::ExecutionId,
        /// Sequence number of the first event in the body.
        seq: crate::Seq,
        #[source]
        source: serde_json::Error,
    },
    /// The body of an append has another number of events than its columns say.
    #[error(
        "execution {execution}: the append at event {seq} has {found} events instead of {expected}"
    )]
    Count {
        execution: crate::ExecutionId,
        /// Sequence number of the first event in the body.
        seq: crate::Seq,
        /// Number of events that the columns state.
        expected: u64,
        found: usize,
    },
    /// A decided row has a type that this version does not know.
    #[error("event {event}: unknown event type {event_type}; a newer version wrote the event")]
    UnknownType { event: crate::EventId, event_type: String },
}
