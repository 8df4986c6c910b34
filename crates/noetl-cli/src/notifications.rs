//! Posts notifications about executions to webhooks.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use noetl_config::Secret;
use noetl_config::tree::Executions;
use noetl_journal::{Notifications, Notifier};
use noetl_model::{CommandId, ExecutionId, Map, Tenant, TraceContext, Value};
use noetl_tools::{Http, LogSink, Tool, ToolCall};
use tokio_util::sync::CancellationToken;

use crate::error::{CliError, ErrorKind};
use crate::settings;

const WEBHOOK: &str = "NOETL_NOTIFY_WEBHOOK";

/// Time limit of a webhook request.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Posts with the `http` tool, so that its limits and certificates apply.
struct Webhooks(Http);

/// Returns the notifications of the settings, or none without a URL.
pub(crate) fn notices(
    tools: noetl_tools::Options,
    executions: &Executions,
) -> Result<Notifications, CliError> {
    let webhook = webhook(executions)?;
    let webhooks = Webhooks(Http::new(Arc::new(tools)));
    Ok(Notifications::new(Arc::new(webhooks), webhook.map(Arc::from)))
}

/// Returns the URL of the webhook. Its path often contains a token, so the message omits it.
pub(crate) fn webhook(executions: &Executions) -> Result<Option<&str>, CliError> {
    let webhook = executions.notify_webhook.as_ref().map(Secret::expose);
    if webhook.is_some_and(|url| !(url.starts_with("http://") || url.starts_with("https://"))) {
        let name = settings::current().name_of(WEBHOOK);
        let message = format!("{name} must be an HTTP or HTTPS URL");
        return Err(
            CliError::new(ErrorKind::Config, message).hint("write https://…, or leave it out")
        );
    }
    Ok(webhook)
}

#[async_trait]
impl Notifier for Webhooks {
    async fn post(
        &self,
        url: &str,
        body: &Value,
        trace: Option<&TraceContext>,
    ) -> Result<(), String> {
        let config = serde_json::json!({ "url": url, "method": "POST", "json": body });
        let Value::Object(config) = config else { return Ok(()) };
        let call = ToolCall {
            execution: ExecutionId::new(0),
            command: CommandId::new(0),
            tenant: Tenant::default(),
            step: Arc::from("notify"),
            attempt: 1,
            config,
            input: Map::new(),
            timeout: Some(TIMEOUT),
            cancel: CancellationToken::new(),
            logs: LogSink::default(),
            context: Map::new(),
            artifacts: None,
            credentials: None,
            trace: trace.cloned(),
        };
        self.0.run(call).await.map(|_| ()).map_err(|failure| failure.to_string())
    }
}
