//! Telling people of executions: a playbook's own webhook, and one for the whole server.

use std::sync::Arc;

use async_trait::async_trait;
use noetl_model::placeholder::without_tags;
use noetl_model::{ExecutionId, Timestamp, TraceContext, Value};
use noetl_playbook::Playbook;

/// Sends a notice somewhere.
#[async_trait]
pub trait Notifier: Send + Sync {
    /// Posts `body` to `url`, as part of a trace if it is of one. An error is tried again.
    async fn post(
        &self,
        url: &str,
        body: &Value,
        trace: Option<&TraceContext>,
    ) -> Result<(), String>;
}

/// How people are told. Cheap to clone.
#[derive(Clone, Default)]
pub struct Notices {
    notifier: Option<Arc<dyn Notifier>>,
    webhook: Option<Arc<str>>,
}

/// What a notice says.
pub(crate) struct Notice<'a> {
    pub(crate) execution: ExecutionId,
    pub(crate) path: &'a str,
    pub(crate) what: &'a str,
    pub(crate) step: Option<&'a str>,
    pub(crate) error: Option<&'a str>,
    pub(crate) at: Timestamp,
    /// The span of the execution.
    pub(crate) trace: Option<&'a TraceContext>,
}

impl Notices {
    /// Through `notifier`: to what playbooks name, and to `webhook` for every execution.
    pub fn new(notifier: Arc<dyn Notifier>, webhook: Option<Arc<str>>) -> Self {
        Self { notifier: Some(notifier), webhook }
    }

    /// Whether anybody wants to hear of this.
    pub(crate) fn wants(&self, playbook: &Playbook, what: &str) -> bool {
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

    /// Tells everybody who wants to hear of it. An error means that it should be tried again.
    pub(crate) async fn tell(
        &self,
        playbook: &Playbook,
        notice: &Notice<'_>,
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
