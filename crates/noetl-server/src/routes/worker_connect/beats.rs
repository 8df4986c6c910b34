//! Handles the heartbeats of a connection, one after another.

use std::sync::Arc;

use noetl_api::Id;
use noetl_api::connection::HeartbeatOutcome;
use noetl_model::CommandId;
use noetl_remote::WorkerSession;
use tokio::sync::mpsc;

use super::incoming::{Beat, CommandLines};
use crate::app::App;
use crate::error::ApiError;
use crate::http::bound;
use crate::http::caller::Caller;

/// Handles heartbeats until the connection ends.
pub(super) async fn run(
    app: App,
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
                outcome.lost = renew(&app, &caller, &session, received, commands).await?;
            }
            for lines in logs {
                print(&app, &caller, &session, lines).await?;
            }
            Ok::<(), ApiError>(())
        };
        if let Err(error) = handled.await {
            outcome.error = Some(error.message().to_owned());
        }
        if outcomes.send(outcome).await.is_err() {
            return;
        }
    }
}

async fn renew(
    app: &App,
    caller: &Caller,
    session: &WorkerSession,
    received: u64,
    commands: Vec<CommandId>,
) -> Result<Vec<Id>, ApiError> {
    let (mut own, mut foreign) = (Vec::with_capacity(commands.len()), Vec::new());
    for command in commands {
        match session.holds(command) || bound::owns(app, caller, command).await? {
            true => own.push(command),
            false => foreign.push(command),
        }
    }
    let lost = session.renew(received, &own).await?;
    Ok(lost.into_iter().chain(foreign).map(Id::from).collect())
}

async fn print(
    app: &App,
    caller: &Caller,
    session: &WorkerSession,
    lines: CommandLines,
) -> Result<(), ApiError> {
    let CommandLines { execution, command, lines } = lines;
    if !session.holds(command) && !bound::owns(app, caller, command).await? {
        let message = format!("command not found: {command}");
        return Err(ApiError::invalid("command_not_found", message));
    }
    Ok(session.print(execution, lines).await?)
}
