//! Records the completions of a connection, many at a time.

use noetl_access::Caller;
use noetl_api::connection::{AckStatus, CompletionOutcome};
use noetl_model::CommandId;
use noetl_remote::{SessionReporter, WorkerSession};
use tokio::sync::mpsc;

use crate::host::{ConnectionFailure, ConnectionHost, Refusal};
use crate::incoming::IncomingCompletion;

/// Maximum length of an error message in an ack, in characters.
const ERROR_MAX: usize = 2000;

/// A completion that was handled.
pub(crate) struct Completed {
    pub(crate) outcome: CompletionOutcome,
    /// Command that was claimed with the completion, to be sent with its ack.
    pub(crate) next: Option<CommandId>,
    /// Size of the completion in its frame.
    pub(crate) bytes: usize,
}

/// Starts to record a completion. It is recorded even if the connection ends meanwhile.
pub(crate) fn start(
    host: ConnectionHost,
    caller: Caller,
    session: &WorkerSession,
    incoming: IncomingCompletion,
    completed: mpsc::Sender<Completed>,
) {
    let reporter = session.reporter();
    let is_held = session.holds(incoming.command.into());
    tokio::spawn(async move {
        let (id, event_id, bytes) = (incoming.id.clone(), incoming.command, incoming.bytes);
        let recorded = Box::pin(record(&host, &caller, &reporter, incoming, is_held)).await;
        let (status, next, error) = match recorded {
            Ok((status, next)) => (status, next, None),
            Err((status, error)) => (status, None, Some(error.chars().take(ERROR_MAX).collect())),
        };
        let outcome = CompletionOutcome { id, event_id, status, error };
        let sent = completed.send(Completed { outcome, next, bytes }).await;
        // The connection has ended; the next one sends the command.
        if let (Err(_), Some(next)) = (sent, next) {
            reporter.release(next);
        }
    });
}

async fn record(
    host: &ConnectionHost,
    caller: &Caller,
    reporter: &SessionReporter,
    incoming: IncomingCompletion,
    is_held: bool,
) -> Result<(AckStatus, Option<CommandId>), (AckStatus, String)> {
    let IncomingCompletion { command, completion, takes_next, .. } = incoming;
    let completion = completion.map_err(|error| (AckStatus::Rejected, error))?;
    let execution = completion.execution;
    if !is_held && !host.owns(caller, command.into()).await.map_err(failed)? {
        // Acknowledged as late, like a command of another tenant.
        return Ok((AckStatus::Late, None));
    }
    let recorded = reporter.record(completion, takes_next).await;
    let recorded = recorded
        .map_err(|error| failed(host.refusal(ConnectionFailure::Report(execution, error))))?;
    let (counts, next) = recorded;
    Ok((if counts { AckStatus::Accepted } else { AckStatus::Late }, next))
}

fn failed(error: Refusal) -> (AckStatus, String) {
    let is_callers = error.is_client_error;
    let status = if is_callers { AckStatus::Rejected } else { AckStatus::Retry };
    (status, error.message)
}
