//! Runs a single tool call.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use noetl_model::placeholder::{defuse, defuse_failure};
use noetl_model::scope::ScopePart;
use noetl_model::{Failure, FailureKind, Map, Value};
use noetl_playbook::pipeline::TaskCall;
use noetl_tools::{LogSink, ToolCall};
use tracing::error;

use crate::executor::CommandExecutor;
use crate::secrets::CommandSecrets;
use crate::task::CommandTask;

/// Calls the tool of a command that is not a pipeline.
pub(crate) async fn plain(
    performer: &CommandExecutor,
    command: &CommandTask,
    secrets: &CommandSecrets,
) -> Result<Value, Failure> {
    let issued = &command.issued;
    let mut call = ToolCall {
        attempt: issued.attempt,
        config: issued.config.clone(),
        input: issued.input.clone(),
        timeout: issued.timeout_ms.map(Duration::from_millis),
        ..call_for(performer, command, secrets)
    };
    load_results(performer, command, &mut call.context).await?;
    revealed(performer, &issued.tool, call, secrets).await
}

/// Calls the tool of a task.
pub(crate) async fn task(
    performer: &CommandExecutor,
    command: &CommandTask,
    secrets: &CommandSecrets,
    task: TaskCall,
) -> Result<Value, Failure> {
    let call = ToolCall {
        attempt: task.attempt,
        config: task.config,
        input: task.input,
        timeout: task.timeout,
        ..call_for(performer, command, secrets)
    };
    revealed(performer, &task.kind, call, secrets).await
}

fn call_for(
    performer: &CommandExecutor,
    command: &CommandTask,
    secrets: &CommandSecrets,
) -> ToolCall {
    ToolCall {
        context: context(command),
        artifacts: performer.services.artifacts(command),
        credentials: secrets.source(),
        logs: performer.services.logs(command),
        ..bare(command)
    }
}

/// Returns a call without settings, arguments, or services.
pub(crate) fn bare(command: &CommandTask) -> ToolCall {
    ToolCall {
        execution: command.execution,
        command: command.id,
        tenant: command.tenant.clone(),
        step: command.issued.step.clone(),
        attempt: 1,
        config: Map::new(),
        input: Map::new(),
        timeout: None,
        cancel: command.cancel.clone(),
        logs: LogSink::default(),
        context: Map::new(),
        artifacts: None,
        credentials: None,
        trace: command.trace(),
    }
}

/// Calls a tool with placeholders replaced by their secrets. Defuses text in the result that looks
/// like a placeholder: no external data may pass for a redacted secret.
async fn revealed(
    performer: &CommandExecutor,
    kind: &str,
    mut call: ToolCall,
    secrets: &CommandSecrets,
) -> Result<Value, Failure> {
    secrets.reveal(&mut call).await?;
    let mut outcome = guarded(performer, kind, call).await;
    match &mut outcome {
        Ok(value) => defuse(value),
        Err(failure) => defuse_failure(failure),
    }
    outcome
}

/// Returns the execution context that tools can read.
fn context(command: &CommandTask) -> Map {
    let mut context = Map::new();
    context.insert("execution_id".to_owned(), command.execution.to_string().into());
    context.insert("step".to_owned(), (*command.issued.step).into());
    if let Some(scope) = command.issued.scope.as_deref() {
        context.insert("workload".to_owned(), Value::Object(scope.workload.clone()));
        context.insert("ctx".to_owned(), Value::Object(scope.ctx.clone()));
        for (step, result) in &scope.steps {
            context.entry(step.clone()).or_insert_with(|| result.clone());
        }
    }
    context
}

/// Loads results too large for the event log into a tool's execution context.
async fn load_results(
    performer: &CommandExecutor,
    command: &CommandTask,
    context: &mut Map,
) -> Result<(), Failure> {
    let Some(scope) = command.issued.scope.as_deref() else { return Ok(()) };
    for blob in &scope.blobs {
        let bytes = performer.values.load(&blob.reference).await.map_err(|error| {
            let message = format!("the result of '{}' can't be read: {}", blob.name, error.message);
            Failure::new(FailureKind::Connection, message)
        })?;
        let value: Value = serde_json::from_slice(&bytes).map_err(|error| {
            let message = format!("the result of '{}' is not JSON: {error}", blob.name);
            Failure::new(FailureKind::Schema, message)
        })?;
        let part = match blob.among {
            ScopePart::Workload => "workload",
            ScopePart::Ctx => "ctx",
            ScopePart::Steps | ScopePart::Previous => {
                context.insert(blob.name.to_string(), value);
                continue;
            }
            ScopePart::Earlier => continue,
        };
        if let Some(Value::Object(values)) = context.get_mut(part) {
            values.insert(blob.name.to_string(), value);
        }
    }
    Ok(())
}

/// Calls a tool and converts a panic into a failure.
pub(crate) async fn guarded(
    performer: &CommandExecutor,
    kind: &str,
    call: ToolCall,
) -> Result<Value, Failure> {
    // A panic unwinds everything the tool owns, and a call doesn't change the registry.
    let ran = AssertUnwindSafe(performer.tools.run(kind, call)).catch_unwind().await;
    ran.unwrap_or_else(|_| {
        error!(tool = %kind, "tool panicked");
        let message = format!("the tool '{kind}' failed in a way it never should");
        Err(Failure::new(FailureKind::Unknown, message))
    })
}
