//! Control-plane client over HTTP.

use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::{StreamExt as _, stream};
use noetl_api::catalog::ResourceRequest;
use noetl_api::events::{EventReportBody, EventRequest};
use noetl_api::execute::{ExecuteBatchRequest, ExecuteRequest, StartDedup};
use noetl_api::subscriptions::{
    DeadLetterRequest, MessageCounts, SubscriptionLeaseRequest, SubscriptionStatus,
};
use noetl_api::{Client, ClientError, Id, calls};
use noetl_model::{ExecutionId, Map, SubscriptionId, TraceContext, Value};
use noetl_playbook::subscription::{MessageDedup, MessageStart};
use noetl_store::{SubscriptionAction, SubscriptionState};
use noetl_tools::ToolCredential;
use noetl_work::DeadLetter;
use serde_json::value::RawValue;

use crate::control_plane::{
    ControlPlaneClient, ControlPlaneError, FaultOwner, RuntimeEvent, RuntimeReport, StartFailure,
    StartOutcome, SubscriptionGrant, SubscriptionView,
};

/// Requests in flight at a time.
const AT_ONCE: usize = 16;

/// Maximum message bytes in one batch request: 16 MiB. A payload contains its message twice, and
/// the server accepts 64 MiB.
const BYTES_TOGETHER: usize = 16 << 20;

/// Poll interval for a subscription that this process runs.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Poll interval for the list of subscriptions.
const LIST_EVERY: Duration = Duration::from_secs(10);

/// Client of a control plane in another process.
pub struct HttpControlPlane {
    client: Client,
}

impl HttpControlPlane {
    /// Creates a client that sends its requests through `client`.
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    async fn start_one(&self, start: MessageStart) -> StartOutcome {
        match self.client.execute(&request(start)).await {
            Ok(reply) => started(&reply.status, reply.execution_id),
            Err(error) => StartOutcome::Failed(fault(&error)),
        }
    }

    /// Starts several executions in one request. The response has an outcome for each.
    async fn start_together(&self, starts: Vec<MessageStart>) -> Vec<StartOutcome> {
        let count = starts.len();
        let texts = starts.into_iter().map(|start| {
            let text = serde_json::to_string(&request(start)).unwrap_or_default();
            RawValue::from_string(text)
        });
        let Ok(executions) = texts.collect::<Result<Vec<_>, _>>() else {
            let reason = "a start cannot be written as JSON".to_owned();
            let fault =
                StartFailure { of: FaultOwner::Message, code: "unwritable".to_owned(), reason };
            return vec![StartOutcome::Failed(fault); count];
        };
        let reply = match self
            .client
            .ask(calls::execute_batch(&ExecuteBatchRequest { executions }))
            .await
        {
            Ok(reply) => reply.value,
            Err(error) => return vec![StartOutcome::Failed(fault(&error)); count],
        };
        let mut results = vec![None; count];
        for result in reply.results {
            let Some(slot) = results.get_mut(result.index) else { continue };
            *slot = Some(match (result.execution_id, result.error) {
                (Some(id), _) => started(&result.status, id),
                (None, reason) => StartOutcome::Failed(batch_failure(reason.unwrap_or_default())),
            });
        }
        let silent = || {
            let reason = "the server returned no result for the message".to_owned();
            StartOutcome::Failed(StartFailure {
                of: FaultOwner::Plane,
                code: "unavailable".to_owned(),
                reason,
            })
        };
        results.into_iter().map(|result| result.unwrap_or_else(silent)).collect()
    }
}

fn request(start: MessageStart) -> ExecuteRequest {
    ExecuteRequest {
        path: Some(start.playbook),
        payload: start.payload,
        parent_execution_id: Some(Id::number(start.subscription.get())),
        execution_pool: start.pool,
        trace: start.trace.as_ref().map(trace_fields),
        dedup: start.dedup.map(|MessageDedup { key, window, is_signature: _ }| StartDedup {
            key,
            window_secs: window.as_secs(),
        }),
        ..ExecuteRequest::default()
    }
}

fn trace_fields(trace: &TraceContext) -> Map {
    match serde_json::to_value(trace) {
        Ok(Value::Object(fields)) => fields,
        // A trace context is written as an object.
        Ok(_) | Err(_) => Map::new(),
    }
}

fn started(status: &str, id: Id) -> StartOutcome {
    let id = ExecutionId::new(id.get());
    match status {
        "duplicate" => StartOutcome::Duplicate(id),
        _ => StartOutcome::New(id),
    }
}

/// Classifies the error text of a batch item by the prefixes that servers use.
fn batch_failure(reason: String) -> StartFailure {
    let (of, code) = match reason.split(':').next().unwrap_or_default() {
        "Resource not found" => (FaultOwner::Playbook, "playbook_not_found"),
        "Validation error" | "Bad request" | "Conflict" => (FaultOwner::Message, "refused"),
        _ => (FaultOwner::Plane, "unavailable"),
    };
    StartFailure { of, code: code.to_owned(), reason }
}

fn fault(error: &ClientError) -> StartFailure {
    let (of, code) = match error {
        ClientError::Refused { body, status } => match status {
            404 => (FaultOwner::Playbook, "playbook_not_found"),
            // The runtime's access must be fixed; no message is at fault.
            401 | 403 => (FaultOwner::Plane, "not_allowed"),
            _ if error.is_passing() => (FaultOwner::Plane, "unavailable"),
            _ => (FaultOwner::Message, body.code.as_str()),
        },
        _ => (FaultOwner::Plane, "unavailable"),
    };
    StartFailure { of, code: code.to_owned(), reason: error.to_string() }
}

fn of_client(error: &ClientError) -> ControlPlaneError {
    let text = match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    };
    match error.is_passing() || matches!(error.status(), Some(401 | 403)) {
        true => ControlPlaneError::Away(text),
        false => ControlPlaneError::Refused(text),
    }
}

fn view(status: SubscriptionStatus) -> Result<SubscriptionView, ControlPlaneError> {
    let state = SubscriptionState::from_text(&status.state);
    let unknown = || ControlPlaneError::Refused(format!("'{}' is no state we know", status.state));
    Ok(SubscriptionView {
        id: SubscriptionId::new(status.subscription_id.get()),
        state: state.ok_or_else(unknown)?,
        moved_at: format!("{} {}", status.last_event_type, status.updated_at.unwrap_or_default()),
        path: status.path,
    })
}

#[async_trait]
impl ControlPlaneClient for HttpControlPlane {
    async fn document(&self, path: &str) -> Result<String, ControlPlaneError> {
        let request = ResourceRequest { path: Some(path.to_owned()), ..ResourceRequest::default() };
        let entry = self.client.ask(calls::document(&request)).await;
        let entry = entry.map_err(|error| of_client(&error))?.value;
        let missing = || ControlPlaneError::Refused(format!("'{path}' has no text"));
        entry.content.ok_or_else(missing)
    }

    async fn credential(&self, name: &str) -> Result<ToolCredential, ControlPlaneError> {
        let reply = self.client.ask(calls::credential(name, true)).await;
        let reply = reply.map_err(|error| of_client(&error))?.value;
        let data = match reply.data {
            Some(Value::Object(data)) => data,
            Some(plain) => Map::from_iter([("value".to_owned(), plain)]),
            None => Map::new(),
        };
        Ok(ToolCredential { name: reply.name, kind: reply.kind, data })
    }

    async fn register(&self, path: &str) -> Result<SubscriptionView, ControlPlaneError> {
        let answer = self.client.ask(calls::subscribe(path)).await;
        view(answer.map_err(|error| of_client(&error))?.value)
    }

    async fn list(&self) -> Result<Vec<SubscriptionView>, ControlPlaneError> {
        let answer = self.client.ask(calls::subscriptions()).await;
        let listed = answer.map_err(|error| of_client(&error))?.value.subscriptions;
        // Skips subscriptions in a state that this version doesn't know.
        Ok(listed.into_iter().filter_map(|status| view(status).ok()).collect())
    }

    async fn view(&self, id: SubscriptionId) -> Result<SubscriptionView, ControlPlaneError> {
        let answer = self.client.ask(calls::subscription(id.get())).await;
        view(answer.map_err(|error| of_client(&error))?.value)
    }

    async fn act(
        &self,
        id: SubscriptionId,
        action: SubscriptionAction,
    ) -> Result<SubscriptionView, ControlPlaneError> {
        let call = calls::move_subscription(id.get(), action.as_str());
        view(self.client.ask(call).await.map_err(|error| of_client(&error))?.value)
    }

    async fn changed(&self, seen: &SubscriptionView) -> SubscriptionView {
        loop {
            if let Ok(now) = self.view(seen.id).await
                && now != *seen
            {
                return now;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    async fn stirred(&self) {
        tokio::time::sleep(LIST_EVERY).await;
    }

    async fn hold(
        &self,
        view: &SubscriptionView,
        holder: &str,
        ttl: Duration,
        reading: RuntimeReport,
    ) -> Result<SubscriptionGrant, ControlPlaneError> {
        let counts = MessageCounts {
            received: reading.counts.received,
            dispatched: reading.counts.dispatched,
            duplicate: reading.counts.duplicate,
            failed: reading.counts.failed,
            dead_lettered: reading.counts.dead_lettered,
        };
        let request = SubscriptionLeaseRequest {
            holder: holder.to_owned(),
            ttl_secs: ttl.as_secs().max(1),
            backlog: reading.backlog,
            counts,
        };
        let call = calls::lease_subscription(view.id.get(), &request);
        let reply = self.client.ask(call).await.map_err(|error| of_client(&error))?.value;
        Ok(SubscriptionGrant { is_held: reply.held, is_awaited: reply.awaited })
    }

    async fn let_go(&self, view: &SubscriptionView, holder: &str) -> Result<(), ControlPlaneError> {
        let call = calls::release_subscription(view.id.get(), holder);
        self.client.ask(call).await.map(|_| ()).map_err(|error| of_client(&error))
    }

    async fn start(&self, starts: Vec<MessageStart>, together: Option<usize>) -> Vec<StartOutcome> {
        let requests = match together {
            Some(most) => parted(starts, most.max(1)),
            None => starts.into_iter().map(|start| vec![start]).collect(),
        };
        let asked = stream::iter(requests).map(async |mut some: Vec<MessageStart>| {
            match (some.len(), some.pop()) {
                (1, Some(start)) => vec![self.start_one(start).await],
                (_, last) => {
                    some.extend(last);
                    self.start_together(some).await
                }
            }
        });
        asked.buffered(AT_ONCE).concat().await
    }

    async fn note(&self, note: RuntimeEvent) -> Result<(), ControlPlaneError> {
        let body = EventReportBody {
            status: Some(note.status.to_owned()),
            ..EventReportBody::new("ingress", note.event_type, note.payload)
        };
        let event = EventRequest { execution_id: Id::number(note.log.get()), said: body };
        self.client.report(&event).await.map(|_| ()).map_err(|error| of_client(&error))
    }

    async fn bury(&self, id: SubscriptionId, letter: DeadLetter) -> Result<(), ControlPlaneError> {
        let request = DeadLetterRequest {
            message_id: plain(&letter.message),
            code: letter.code,
            reason: plain(&letter.reason),
            attempts: letter.attempts,
            headers: plain_map(letter.headers),
            metadata: plain_map(letter.metadata),
            body_base64: STANDARD.encode(&letter.body),
        };
        let reply = self.client.ask(calls::dead_letter(id.get(), &request)).await;
        reply.map(|_| ()).map_err(|error| of_client(&error))
    }
}

/// Splits starts into requests of at most `most` items and [`BYTES_TOGETHER`] bytes. A larger item
/// is sent alone.
fn parted(starts: Vec<MessageStart>, most: usize) -> Vec<Vec<MessageStart>> {
    let mut parts: Vec<Vec<MessageStart>> = Vec::new();
    let mut bytes = 0;
    for start in starts {
        bytes += start.bytes;
        match parts.last_mut() {
            Some(part) if part.len() < most && bytes <= BYTES_TOGETHER => part.push(start),
            _ => {
                bytes = start.bytes;
                parts.push(vec![start]);
            }
        }
    }
    parts
}

/// Removes NUL characters, which servers reject.
fn plain(text: &str) -> String {
    text.replace('\0', "")
}

fn plain_map(map: Map) -> Map {
    let plain_value = |value| match value {
        Value::String(text) => Value::from(plain(&text)),
        other => other,
    };
    map.into_iter().map(|(name, value)| (plain(&name), plain_value(value))).collect()
}

#[cfg(test)]
mod tests {
    use noetl_playbook::subscription::Directives;

    use super::*;

    fn start(bytes: usize) -> MessageStart {
        MessageStart {
            playbook: "p/a".to_owned(),
            payload: Map::new(),
            pool: None,
            trace: None,
            subscription: SubscriptionId::new(1),
            dedup: None,
            bytes,
            message: String::new(),
            directives: Directives::default(),
        }
    }

    #[test]
    fn requests_are_bounded_by_number_and_by_bytes() {
        let sizes = |of: &[usize], most| {
            let parts = parted(of.iter().map(|bytes| start(*bytes)).collect(), most);
            parts.iter().map(Vec::len).collect::<Vec<_>>()
        };
        assert_eq!(sizes(&[1, 1, 1, 1, 1], 2), [2, 2, 1]);
        let half = BYTES_TOGETHER / 2;
        assert_eq!(sizes(&[half, half, 1, BYTES_TOGETHER + 1, 1], 100), [2, 1, 1, 1]);
        assert_eq!(sizes(&[], 2), Vec::<usize>::new());
    }

    #[test]
    fn the_error_of_a_batch_names_the_responsible_side() {
        let of = |text: &str| batch_failure(text.to_owned()).of;
        assert_eq!(of("Resource not found: Playbook not found: p"), FaultOwner::Playbook);
        assert_eq!(of("Validation error: no"), FaultOwner::Message);
        assert_eq!(of("Database error: busy"), FaultOwner::Plane);
        assert_eq!(of(""), FaultOwner::Plane);
    }
}
