//! Reasons why a connection ends, with the error and the close code that the worker gets.

use axum::extract::ws::{CloseCode, close_code};
use noetl_api::connection::ProtocolError;
use tokio_tungstenite::tungstenite;

use crate::host::Refusal;

/// Close code of a server that stops or has no capacity.
const TRY_AGAIN_LATER: CloseCode = 1013;

/// End of a connection, with what the worker gets to know of it.
#[derive(Debug)]
pub(crate) enum End {
    /// The worker closed the connection, or the connection was lost.
    Closed,
    Stopping,
    /// The worker gets this error.
    Error(ProtocolError, CloseCode),
}

impl End {
    /// Ends the connection because of an invalid frame.
    pub(crate) fn invalid(error: ProtocolError) -> Self {
        let code = match error.code.as_str() {
            "frame_too_large" => close_code::SIZE,
            "frame_not_text" => close_code::UNSUPPORTED,
            "malformed_json" | "invalid_message" => close_code::INVALID,
            _ => close_code::POLICY,
        };
        Self::Error(error, code)
    }

    /// Ends the connection for a reason other than a frame.
    pub(crate) fn policy(code: &str, message: impl Into<String>) -> Self {
        Self::Error(ProtocolError::new(code, message), close_code::POLICY)
    }

    /// Ends the connection because its `hello` was rejected.
    pub(crate) fn rejected(error: Refusal) -> Self {
        let code = match error.is_client_error {
            true => close_code::POLICY,
            false => TRY_AGAIN_LATER,
        };
        Self::Error(ProtocolError::new(error.code, error.message), code)
    }

    /// Ends the connection after a failed read.
    pub(crate) fn unreadable(error: axum::Error) -> Self {
        use tungstenite::Error as SocketError;
        use tungstenite::error::CapacityError;
        let error = error.into_inner();
        match error.downcast_ref::<SocketError>() {
            Some(SocketError::Capacity(CapacityError::MessageTooLong { size, .. })) => {
                Self::invalid(ProtocolError::too_large(*size))
            }
            Some(SocketError::Utf8(_)) => {
                let message = "a frame is UTF-8 text";
                Self::invalid(ProtocolError::new("frame_not_text", message))
            }
            Some(SocketError::Protocol(error)) if !is_reset(error) => {
                let message = format!("frame violates the WebSocket protocol: {error}");
                let error = ProtocolError::new("websocket_violation", message);
                Self::Error(error, close_code::PROTOCOL)
            }
            _ => Self::Closed,
        }
    }
}

/// Returns `true` if the connection was lost.
fn is_reset(error: &tungstenite::error::ProtocolError) -> bool {
    use tungstenite::error::ProtocolError as Violation;
    matches!(error, Violation::ResetWithoutClosingHandshake | Violation::SendAfterClosing)
}

/// Returns the error for a binary frame.
pub(crate) fn not_text() -> ProtocolError {
    ProtocolError::new("frame_not_text", "frames are text, and this one is binary")
}
