//! Sends notifications about executions: to the playbook's webhook, and to one for the whole
//! server.

use std::sync::Arc;

use async_trait::async_trait;
use noetl_model::placeholder::without_tags;
use noetl_model::{ExecutionId, Timestamp, TraceContext, Value};
use noetl_playbook::Playbook;

/// Transport that delivers notifications to webhooks.
#[async_trait]
pub trait Notifier: Send + Sync {
    /// Posts `body` to `url`, with the trace context if there is one. The caller retries on an
    /// error.
    async fn post(
        &self,
        url: &str,
        body: &Value,
        trace: Option<&TraceContext>,
    ) -> Result<(), String>;
}

/// Sends notifications. Cheap to clone.
#[derive(Clone, Default)]
pub struct Notifications {
    notifier: Option<Arc<dyn Notifier>>,
    webhook: Option<Arc<str>>,
}

pub(crate) struct Notification<'a> {
    pub(crate) execution: ExecutionId,
    pub(crate) path: &'a str,
    pub(crate) what: &'a str,
    pub(crate) step: Option<&'a str>,
    pub(crate) error: Option<&'a str>,
    pub(crate) at: Timestamp,
    pub(crate) trace: Option<&'a TraceContext>,
}

impl Notifications {
    /// Creates a service that sends through `notifier`: to the webhooks of playbooks, and to
    /// `webhook` for failures and waits of every execution.
    pub fn new(notifier: Arc<dyn Notifier>, webhook: Option<Arc<str>>) -> Self {
        Self { notifier: Some(notifier), webhook }
    }

    /// Returns `true` if any webhook is subscribed to this event of the playbook.
    pub(crate) fn has_recipient(&self, playbook: &Playbook, what: &str) -> bool {
        self.notifier.is_some() && !self.urls(playbook, what).is_empty()
    }

    fn urls(&self, playbook: &Playbook, what: &str) -> Vec<Arc<str>> {
        let own = playbook.notify.as_ref().filter(|notify| match what {
            "failed" => notify.on_failed,
            "waiting" => notify.on_waiting,
            "completed" => notify.on_completed,
            _ => false,
        });
        let own = own.map(|notify| Arc::from(notify.webhook.as_str()));
        let all = self.webhook.clone().filter(|_| matches!(what, "failed" | "waiting"));
        own.into_iter().chain(all).collect()
    }

    /// Sends a notification to every subscribed webhook. On an error, the caller should retry.
    pub(crate) async fn send(
        &self,
        playbook: &Playbook,
        notice: &Notification<'_>,
    ) -> Result<(), String> {
        let Some(notifier) = &self.notifier else { return Ok(()) };
        let body = serde_json::json!({
            "event": format!("execution.{}", notice.what),
            "execution_id": notice.execution.to_string(),
            "path": notice.path,
            "step": notice.step,
            "error": notice.error.map(without_tags),
            "at": notice.at,
        });
        let mut failed = Ok(());
        for url in self.urls(playbook, notice.what) {
            if let Err(error) = notifier.post(&url, &body, notice.trace).await {
                failed = Err(error);
            }
        }
        failed
    }
}
