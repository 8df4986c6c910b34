//! Requests of the released worker to the control plane, byte for byte.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use noetl_model::Clock;
use noetl_store::SystemClock;
use reqwest::{Client, Response, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{PublishedWorkerOptions, error_text};

/// Response to a claim, as far as the worker reads it.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Command {
    pub(super) execution_id: i64,
    #[serde(rename = "node_id")]
    _node_id: String,
    pub(super) node_name: String,
    pub(super) action: String,
    #[serde(default)]
    pub(super) context: Value,
    #[serde(default)]
    pub(super) meta: Value,
}

pub(super) enum Claim {
    /// The command is assigned to this worker.
    Granted(Box<Command>),
    /// Another worker has the command, or it has ended.
    Denied,
    /// The control plane failed to respond in time or in form.
    Failed,
}

/// Workers started so far in this process.
static PROCESSES: AtomicI64 = AtomicI64::new(0);

/// Client of one worker. Cheap to clone.
#[derive(Clone)]
pub(super) struct ControlPlane {
    client: Client,
    base: String,
    pub(super) worker: String,
    key: String,
    ids: Arc<AtomicI64>,
}

impl ControlPlane {
    pub(super) fn new(options: &PublishedWorkerOptions) -> Self {
        // Creating this client installs the TLS provider of the process.
        drop(noetl_api::Client::new(&options.server_url));
        let client = Client::builder().timeout(Duration::from_secs(30)).build();
        let now = SystemClock.now().as_micros();
        let ms = now / 1000 - 1_704_067_200_000;
        Self {
            client: client.expect("a client without settings"),
            base: options.server_url.trim_end_matches('/').to_owned(),
            worker: options.worker_id.clone(),
            // New for each process, like the key of the released worker.
            key: format!("{now:016x}-{}", PROCESSES.fetch_add(1, Ordering::Relaxed)),
            ids: Arc::new(AtomicI64::new((ms << 22) | (517 << 12))),
        }
    }

    /// Returns a client of the server that an announcement names.
    pub(super) fn with_base(&self, server_url: &str) -> Self {
        Self { base: server_url.trim_end_matches('/').to_owned(), ..self.clone() }
    }

    pub(super) fn base(&self) -> &str {
        &self.base
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    async fn post(&self, path: &str, body: &Value) -> Result<Response, String> {
        let url = format!("{}{path}", self.base);
        self.client.post(url).json(body).send().await.map_err(error_text)
    }

    pub(super) async fn register(&self) -> Result<(), String> {
        let body = registration(&self.worker, &self.key);
        let response = self.post("/api/worker/pool/register", &body).await?;
        match response.status().is_success() {
            true => Ok(()),
            false => Err(format!("registration: {}", response.status())),
        }
    }

    pub(super) async fn heartbeat(&self) {
        // The released worker logs a failure and continues.
        let _ = self.post("/api/worker/pool/heartbeat", &json!({ "name": self.worker })).await;
    }

    pub(super) async fn deregister(&self) {
        let body = json!({ "name": self.worker, "component_type": "worker_pool" });
        let _ = self.post("/api/worker/pool/deregister", &body).await;
    }

    /// Claims a command. An error ends the worker: no response, or one that does not parse.
    pub(super) async fn claim(&self, event: i64) -> Result<(u16, Claim), String> {
        let path = format!("/api/commands/{event}/claim");
        let response = self.post(&path, &json!({ "worker_id": self.worker })).await?;
        let status = response.status();
        let claim = match status {
            StatusCode::OK | StatusCode::CREATED => {
                let command = response.json().await.map_err(|error| format!("a claim: {error}"))?;
                Claim::Granted(Box::new(command))
            }
            StatusCode::CONFLICT => Claim::Denied,
            _ => Claim::Failed,
        };
        Ok((status.as_u16(), claim))
    }

    /// Sends an event, up to four times under the same ID.
    pub(super) async fn send_event(
        &self,
        command: &Command,
        event_type: &str,
        status: &str,
        context: Value,
    ) -> Result<(), String> {
        let attempts = command.meta.get("attempts").and_then(Value::as_u64).unwrap_or(0);
        let body = json!({
            "execution_id": command.execution_id,
            "event_type": event_type,
            "step": command.node_name,
            "status": status,
            "created_at": now(),
            "context": context,
            "event_id": self.ids.fetch_add(1, Ordering::Relaxed),
            "worker_id": self.worker,
            "meta": {"attempts": attempts},
        });
        let mut last = String::new();
        for pause in [0, 500, 1000, 2000] {
            tokio::time::sleep(Duration::from_millis(pause)).await;
            match self.post("/api/events", &body).await {
                Ok(response) if response.status().is_success() => return Ok(()),
                Ok(response) => last = format!("{event_type}: {}", response.status()),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Stores a result that is too large for an event.
    pub(super) async fn store_result(
        &self,
        command: &Command,
        data: &Value,
    ) -> Result<Value, String> {
        let url = format!("{}/api/result/{}", self.base, command.execution_id);
        let step = &command.node_name;
        let body = json!({"name": step, "data": data, "scope": "execution", "source_step": step});
        let response = self.client.put(url).json(&body).send().await.map_err(error_text)?;
        let response = response.error_for_status().map_err(error_text)?;
        response.json().await.map_err(error_text)
    }

    /// Returns the type and data of a stored credential.
    pub(super) async fn credential(
        &self,
        alias: &str,
        execution: i64,
    ) -> Result<(String, Value), String> {
        let base = &self.base;
        let url =
            format!("{base}/api/credentials/{alias}?include_data=true&execution_id={execution}");
        let response = self.client.get(url).send().await.map_err(error_text)?;
        let response: Value =
            response.error_for_status().map_err(error_text)?.json().await.map_err(error_text)?;
        let kind = response["type"].as_str().ok_or("a credential has a type")?;
        Ok((kind.to_ascii_lowercase(), response["data"].clone()))
    }
}

/// Returns the time in the format of the released worker.
fn now() -> String {
    SystemClock.now().to_string()
}

/// Returns the body of a registration.
fn registration(worker: &str, key: &str) -> Value {
    json!({
        "name": worker, "component_type": "worker_pool",
        "runtime": {"kind": "rust", "worker_public_key": key},
        "status": "ready", "hostname": "published-worker", "labels": {"pool_name": "default"},
    })
}
