//! Answers approvals of `noetl run`, according to the `--approve` flag or a prompt on the terminal.

use std::io::{BufRead, IsTerminal, Write};
use std::sync::Arc;

use noetl_control::ControlPlane;
use noetl_model::event::ParkReason;
use noetl_model::{CommandId, Event, ExecutionId, Fact};
use serde_json::json;

/// Source of the answers to approvals during a run.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Approvals {
    /// Approves every request without a prompt (`--approve`).
    Given,
    /// Prompts the user on the terminal.
    Asked,
    /// Answers no request: each approval waits until it times out.
    Awaited,
}

impl Approvals {
    /// Returns `Given` if `approve` is set, `Asked` if stdin and stderr are terminals, else
    /// `Awaited`.
    pub(crate) fn new(approve: bool) -> Self {
        if approve {
            Self::Given
        } else if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
            Self::Asked
        } else {
            Self::Awaited
        }
    }

    /// Answers a `command.parked` event that waits for a callback; ignores other events.
    ///
    /// Returns at once. A spawned task prompts and sends the answer.
    pub(crate) fn see(self, control: &Arc<ControlPlane>, event: &Event) {
        let Fact::CommandParked { command, step, on: ParkReason::Callback(callback) } = &event.fact
        else {
            return;
        };
        let (execution, command, token) = (event.execution, *command, callback.token.clone());
        let control = control.clone();
        match self {
            Self::Awaited => {}
            Self::Given => {
                tokio::spawn(answer(control, execution, command, token, true));
            }
            Self::Asked => {
                let step = step.clone();
                tokio::spawn(async move {
                    let asked = tokio::task::spawn_blocking(move || ask(&step)).await;
                    if let Ok(approved) = asked {
                        answer(control, execution, command, token, approved).await;
                    }
                });
            }
        }
    }
}

fn ask(step: &str) -> bool {
    let mut terminal = std::io::stderr();
    // If the terminal is closed, the read fails or returns no text, which counts as "no".
    let _ = write!(terminal, "approve step '{step}'? [y/N] ");
    let _ = terminal.flush();
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    read.is_ok() && matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

async fn answer(
    control: Arc<ControlPlane>,
    execution: ExecutionId,
    command: CommandId,
    token: Arc<str>,
    approved: bool,
) {
    let data = json!({ "approved": approved });
    // An answer is rejected only if the command ended in the meantime.
    let _ = control.journal.executions.answer(execution, command, &token, Ok(data)).await;
}
