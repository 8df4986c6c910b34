//! The calls it makes to the control plane, byte for byte.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use noetl_model::Clock;
use noetl_store::SystemClock;
use reqwest::{Client, Response, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{TwinOptions, registration, told};

/// What a claim answers with, as far as it is read.
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

/// What a claim comes to.
pub(super) enum Claim {
    Ours(Box<Command>),
    Held,
    Failed,
}

/// How many were started.
static PROCESSES: AtomicI64 = AtomicI64::new(0);

/// The control plane as one worker calls it. Cheap to clone.
#[derive(Clone)]
pub(super) struct ControlPlane {
    client: Client,
    base: String,
    pub(super) worker: String,
    key: String,
    ids: Arc<AtomicI64>,
}

impl ControlPlane {
    pub(super) fn new(options: &TwinOptions) -> Self {
        // Whoever makes a client of ours first sees to what encrypted connections need.
        drop(noetl_api::Client::new(&options.server_url));
        let client = Client::builder().timeout(Duration::from_secs(30)).build();
        let now = SystemClock.now().as_micros();
        let ms = now / 1000 - 1_704_067_200_000;
        Self {
            client: client.expect("a client needs nothing"),
            base: options.server_url.trim_end_matches('/').to_owned(),
            worker: options.worker_id.clone(),
            // A new one with each process, as the real one makes it.
            key: format!("{now:016x}-{}", PROCESSES.fetch_add(1, Ordering::Relaxed)),
            ids: Arc::new(AtomicI64::new((ms << 22) | (517 << 12))),
        }
    }

    /// The same at the address an announcement names.
    pub(super) fn at(&self, server_url: &str) -> Self {
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
        self.client.post(url).json(body).send().await.map_err(told)
    }

    pub(super) async fn register(&self) -> Result<(), String> {
        let body = registration(&self.worker, &self.key);
        let answer = self.post("/api/worker/pool/register", &body).await?;
        match answer.status().is_success() {
            true => Ok(()),
            false => Err(format!("registration: {}", answer.status())),
        }
    }

    pub(super) async fn heartbeat(&self) {
        // A failure is a warning of its log and nothing more.
        let _ = self.post("/api/worker/pool/heartbeat", &json!({ "name": self.worker })).await;
    }

    pub(super) async fn deregister(&self) {
        let body = json!({ "name": self.worker, "component_type": "worker_pool" });
        let _ = self.post("/api/worker/pool/deregister", &body).await;
    }

    /// An error ends the process: nobody answered, or nobody can read the answer.
    pub(super) async fn claim(&self, event: i64) -> Result<(u16, Claim), String> {
        let path = format!("/api/commands/{event}/claim");
        let answer = self.post(&path, &json!({ "worker_id": self.worker })).await?;
        let status = answer.status();
        let claim = match status {
            StatusCode::OK | StatusCode::CREATED => {
                let command = answer.json().await.map_err(|error| format!("a claim: {error}"))?;
                Claim::Ours(Box::new(command))
            }
            StatusCode::CONFLICT => Claim::Held,
            _ => Claim::Failed,
        };
        Ok((status.as_u16(), claim))
    }

    /// Says one thing, up to four times under the same id.
    pub(super) async fn say(
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
                Ok(answer) if answer.status().is_success() => return Ok(()),
                Ok(answer) => last = format!("{event_type}: {}", answer.status()),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Hands in a result that is too large for an event.
    pub(super) async fn store(&self, command: &Command, data: &Value) -> Result<Value, String> {
        let url = format!("{}/api/result/{}", self.base, command.execution_id);
        let step = &command.node_name;
        let body = json!({"name": step, "data": data, "scope": "execution", "source_step": step});
        let answer = self.client.put(url).json(&body).send().await.map_err(told)?;
        let answer = answer.error_for_status().map_err(told)?;
        answer.json().await.map_err(told)
    }

    /// A stored credential: its type and data.
    pub(super) async fn credential(
        &self,
        alias: &str,
        execution: i64,
    ) -> Result<(String, Value), String> {
        let base = &self.base;
        let url =
            format!("{base}/api/credentials/{alias}?include_data=true&execution_id={execution}");
        let answer = self.client.get(url).send().await.map_err(told)?;
        let answer: Value = answer.error_for_status().map_err(told)?.json().await.map_err(told)?;
        let kind = answer["type"].as_str().ok_or("a credential has a type")?;
        Ok((kind.to_ascii_lowercase(), answer["data"].clone()))
    }
}

/// The time as it writes it.
fn now() -> String {
    SystemClock.now().to_string()
}
