//! Runs a command, from its claim to its last event.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;

use super::WorkerStats;
use super::control_plane::{Command, ControlPlane};
use super::sequence;
use super::tools::{Context, ToolOutcome, run};

/// Most bytes of a result that an event holds.
const INLINE_MAX: usize = 102_400;

pub(super) async fn perform(
    server: &ControlPlane,
    command: Command,
    gate: Option<Arc<Semaphore>>,
    stats: &WorkerStats,
) -> Result<(), String> {
    let id = match command.meta.get("command_id") {
        Some(id @ (Value::String(_) | Value::Number(_))) => id.clone(),
        _ => json!(format!("{}:{}:unknown", command.execution_id, command.node_name)),
    };
    let context = render_context(server, &command, &id);
    server.send_event(&command, "command.started", "STARTED", json!({ "command_id": id })).await?;
    stats.started.fetch_add(1, Ordering::Relaxed);
    if let Some(gate) = gate {
        match gate.acquire().await {
            Ok(permit) => permit.forget(),
            Err(_) => return Err("the gate is closed".to_owned()),
        }
    }
    let mut config = match command.context.get("tool_config") {
        Some(config @ (Value::Object(_) | Value::Array(_))) => config.clone(),
        _ => json!({}),
    };
    if let (Value::Object(config), Some(args)) = (&mut config, command.context.get("args")) {
        config.entry("args").or_insert_with(|| args.clone());
    }
    let ran = match command.action.as_str() {
        "task_sequence" => sequence::run(&config, &context).await,
        kind => run(kind, &config, &context).await,
    };
    match ran {
        Err(error) => {
            let body = json!({"command_id": id, "call_index": 0, "error": error});
            server.send_event(&command, "call.error", "FAILED", body).await?;
            let body = json!({"command_id": id, "error": error});
            server.send_event(&command, "command.failed", "FAILED", body).await
        }
        Ok(outcome) => {
            let status = outcome.status;
            let result = event_result(server, &command, &outcome).await?;
            let body = json!({"command_id": id, "call_index": 0, "result": result});
            server.send_event(&command, "call.done", "COMPLETED", body).await?;
            let body = json!({"command_id": id, "status": status});
            server.send_event(&command, "command.completed", status, body).await
        }
    }
}

fn render_context(server: &ControlPlane, command: &Command, id: &Value) -> Context {
    let context = command.context.get("render_context").and_then(Value::as_object);
    let mut names: Map<String, Value> = context.cloned().unwrap_or_default();
    let all = Value::Object(names.clone());
    if !names.contains_key("ctx") {
        names.entry("workload").or_insert_with(|| all.clone());
        names.insert("ctx".to_owned(), all);
    }
    names.entry("action").or_insert_with(|| command.action.clone().into());
    names.entry("node_name").or_insert_with(|| command.node_name.clone().into());
    names.insert("execution_id".to_owned(), command.execution_id.into());
    names.insert("step".to_owned(), command.node_name.clone().into());
    names.insert("server_url".to_owned(), server.base().into());
    names.insert("worker_id".to_owned(), server.worker.clone().into());
    names.insert("command_id".to_owned(), id.clone());
    Context { server: server.clone(), execution: command.execution_id, names }
}

/// Returns the result of `call.done`: the whole outcome, or a reference to the stored one.
async fn event_result(
    server: &ControlPlane,
    command: &Command,
    outcome: &ToolOutcome,
) -> Result<Value, String> {
    let whole = outcome.to_json();
    let bytes = whole.to_string().len();
    if bytes <= INLINE_MAX {
        return Ok(json!({"status": outcome.status, "context": whole}));
    }
    let stored = server.store_result(command, &whole).await?;
    let uri = stored["ref"].as_str().ok_or("a stored result has a reference")?;
    Ok(json!({
        "status": outcome.status,
        "context": {"data": {"_ref": uri}},
        "reference": {
            "kind": "result_ref", "ref": uri, "store": stored["store"], "scope": "execution",
            "meta": {"bytes": bytes, "media_type": "application/json"},
        },
    }))
}
