//! Work outside the event log that committed events require.

use noetl_model::CommandId;

use crate::execution::Status;

/// Work to perform once the events that require it are durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Dispatches a pending command to a worker.
    Dispatch { command: CommandId },
    /// Asks the worker that runs this command to stop.
    Stop { command: CommandId },
    /// Notifies waiters that the execution ended.
    Finish { status: Status },
}
