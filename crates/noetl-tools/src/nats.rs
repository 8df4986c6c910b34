//! Tool `nats`: publishes messages, sends requests, and accesses key-value and object stores.
//!
//! A message to a subject of a stream counts as published once the stream has acknowledged it, and
//! any other message once the server has received it. Clients are cached for a while after a call
//! and shared by calls with the same settings.

mod clients;
mod message;
mod stores;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use noetl_model::{Failure, Value};

use crate::config::{self, expiry, wrong};
use crate::{Options, Tool, ToolCall};

use clients::{Clients, NatsSettings};

/// Default timeout of an operation. The server usually responds within milliseconds.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);

const OPERATIONS: &str = "publish, request, kv_get, kv_put, kv_delete, kv_keys, object_get, \
                          object_put, object_delete or object_list";

#[derive(Debug, Clone)]
pub struct Nats {
    options: Arc<Options>,
    clients: Clients,
}

impl Nats {
    /// Creates a NATS tool. It connects when a step needs it.
    pub fn new(options: Arc<Options>) -> Self {
        Self { options, clients: Clients::default() }
    }

    async fn perform(&self, call: &ToolCall, settings: &NatsSettings) -> Result<Value, Failure> {
        let payload_max = self.options.limits.nats_payload;
        let Some((key, operation)) = config::first(&call.config, &["action", "operation", "op"])
        else {
            return Err(wrong(format!("a nats step needs an `action`: {OPERATIONS}")));
        };
        let operation = operation.as_str().unwrap_or_default();
        let client = || self.clients.get(settings);
        match operation {
            "publish" | "pub" | "js_publish" => message::publish(&client().await?, call).await,
            "request" => message::request(&client().await?, call, payload_max).await,
            "kv_get" => stores::kv_get(&client().await?, call, payload_max).await,
            "kv_put" => stores::kv_put(&client().await?, call).await,
            "kv_delete" => stores::kv_delete(&client().await?, call).await,
            "kv_keys" => stores::kv_keys(&client().await?, call, payload_max).await,
            "object_get" => stores::object_get(&client().await?, call, payload_max).await,
            "object_put" => stores::object_put(&client().await?, call).await,
            "object_delete" => stores::object_delete(&client().await?, call).await,
            "object_list" => stores::object_list(&client().await?, call, payload_max).await,
            other => Err(wrong(format!("`{key}` must be {OPERATIONS}, not '{other}'"))),
        }
    }
}

#[async_trait]
impl Tool for Nats {
    fn kind(&self) -> &'static str {
        "nats"
    }

    async fn run(&self, call: ToolCall) -> Result<Value, Failure> {
        let limit = call.time_limit()?.unwrap_or(TIMEOUT_DEFAULT);
        let settings = NatsSettings::read(&call.config)?;
        tokio::select! {
            done = self.perform(&call, &settings) => done,
            () = call.cancel.cancelled() => Err(call.cancelled()),
            () = expiry(Some(limit)) => {
                // The connection itself may hang, so the next call opens a new one.
                self.clients.forget(&settings);
                Err(call.timed_out(limit))
            }
        }
    }
}
