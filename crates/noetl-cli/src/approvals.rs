//! Answers to approvals of `noetl run`: by a flag, or by whoever sits at the terminal.

use std::io::{BufRead, IsTerminal, Write};
use std::sync::Arc;

use noetl_control::Control;
use noetl_model::event::Parked;
use noetl_model::{CommandId, Event, ExecutionId, Fact};
use serde_json::json;

/// Who answers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Approvals {
    /// Every approval is given.
    Given,
    /// Whoever sits at the terminal is asked.
    Asked,
    /// Nobody: an approval waits until its time is over.
    Awaited,
}

impl Approvals {
    /// As the flag says, else by whether somebody is there to be asked.
    pub(crate) fn new(approve: bool) -> Self {
        if approve {
            Self::Given
        } else if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
            Self::Asked
        } else {
            Self::Awaited
        }
    }

    /// Answers an event that waits for an answer.
    pub(crate) fn see(self, control: &Arc<Control>, event: &Event) {
        let Fact::CommandParked { command, step, on: Parked::Callback(callback) } = &event.fact
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
    // A terminal that went away says nothing, which is no.
    let _ = write!(terminal, "approve step '{step}'? [y/N] ");
    let _ = terminal.flush();
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    read.is_ok() && matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

async fn answer(
    control: Arc<Control>,
    execution: ExecutionId,
    command: CommandId,
    token: Arc<str>,
    approved: bool,
) {
    let data = json!({ "approved": approved });
    // Refused only when it ended meanwhile.
    let _ = control.executions.answer(execution, command, &token, Ok(data)).await;
}
