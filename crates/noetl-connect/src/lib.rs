//! Connection of a remote worker: a WebSocket over which the server pushes commands.
//!
//! `docs/protocol.md` describes the protocol. A session in `noetl-remote` claims commands and records
//! completions; this crate receives and sends frames, and ends the connection. The server upgrades
//! the request, after it has authenticated the caller, and converts between its API and the services.

mod beats;
mod completing;
mod errors;
mod handshake;
mod host;
mod incoming;
mod line;
mod outbox;
mod socket;

use axum::extract::ws::WebSocketUpgrade;
use noetl_api::connection::FRAME_MAX;

pub use host::{ConnectionFailure, ConnectionHost, Conversions, Refusal};
pub use line::serve;

/// Size in bytes at which the server stops reading a frame. Frames between [`FRAME_MAX`] and this
/// size are read, so that the worker reads the error instead of a reset connection.
const READ_MAX: usize = 2 * FRAME_MAX;

/// Initial size of the buffers of a connection, in bytes. A worker has few connections, and most
/// frames are small.
const BUFFER: usize = 16 << 10;

/// Returns the upgrade with the limits of worker connections.
pub fn with_limits(upgrade: WebSocketUpgrade) -> WebSocketUpgrade {
    upgrade
        .max_message_size(READ_MAX)
        .max_frame_size(READ_MAX)
        .read_buffer_size(BUFFER)
        .write_buffer_size(BUFFER)
}
