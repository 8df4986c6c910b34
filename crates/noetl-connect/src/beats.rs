//! Handles the heartbeats of a connection, one after another.

use std::sync::Arc;

use noetl_access::Caller;
use noetl_api::Id;
use noetl_api::connection::HeartbeatOutcome;
use noetl_model::CommandId;
use noetl_remote::WorkerSession;
use tokio::sync::mpsc;

use crate::host::{ConnectionFailure, ConnectionHost, Refusal};
use crate::incoming::{Beat, CommandLines};

/// Handles heartbeats until the connection ends.
pub(crate) async fn run(
    host: ConnectionHost,
    caller: Caller,
    session: Arc<WorkerSession>,
    mut beats: mpsc::Receiver<Beat>,
    outcomes: mpsc::Sender<HeartbeatOutcome>,
) {
    while let Some(Beat { id, received, commands, logs }) = beats.recv().await {
        let mut outcome = HeartbeatOutcome { id, ..HeartbeatOutcome::default() };
        let handled = async {
            // Leases are renewed first: they matter more than step logs.
            if let Some(commands) = commands {
                outcome.lost = renew(&host, &caller, &session, received, commands).await?;
            }
            for lines in logs {
                print(&host, &caller, &session, lines).await?;
            }
            Ok::<(), Refusal>(())
        };
        if let Err(error) = handled.await {
            outcome.error = Some(error.message);
        }
        if outcomes.send(outcome).await.is_err() {
            return;
        }
    }
}

async fn renew(
    host: &ConnectionHost,
    caller: &Caller,
    session: &WorkerSession,
    received: u64,
    commands: Vec<CommandId>,
) -> Result<Vec<Id>, Refusal> {
    let (mut own, mut foreign) = (Vec::with_capacity(commands.len()), Vec::new());
    for command in commands {
        match session.holds(command) || host.owns(caller, command).await? {
            true => own.push(command),
            false => foreign.push(command),
        }
    }
    let lost = session.renew(received, &own).await;
    let lost = lost.map_err(|error| host.refusal(ConnectionFailure::Lease(error)))?;
    Ok(lost.into_iter().chain(foreign).map(Id::from).collect())
}

async fn print(
    host: &ConnectionHost,
    caller: &Caller,
    session: &WorkerSession,
    lines: CommandLines,
) -> Result<(), Refusal> {
    let CommandLines { execution, command, lines } = lines;
    if !session.holds(command) && !host.owns(caller, command).await? {
        let message = format!("command not found: {command}");
        return Err(Refusal { code: "command_not_found", message, is_client_error: true });
    }
    let printed = session.print(execution, lines).await;
    printed.map_err(|error| host.refusal(ConnectionFailure::Log(error)))
}
