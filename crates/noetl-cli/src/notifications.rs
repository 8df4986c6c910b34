//! Posts notifications about executions to webhooks.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use noetl_journal::{Notifications, Notifier};
use noetl_model::{CommandId, ExecutionId, Map, Tenant, TraceContext, Value};
use noetl_tools::{Http, LogSink, Tool, ToolCall};
use tokio_util::sync::CancellationToken;

use crate::error::{CliError, ErrorKind};
use crate::settings::setting;

/// Variable with the webhook that is notified of every failed or waiting execution.
const WEBHOOK: &str = "NOETL_NOTIFY_WEBHOOK";

/// Time limit of a webhook request.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Posts with the `http` tool, so that its limits and certificates apply.
struct Webhooks(Http);

/// Returns the notification settings of the environment.
pub(crate) fn notices(tools: noetl_tools::Options) -> Result<Notifications, CliError> {
    let webhook = setting(WEBHOOK).filter(|url| !url.is_empty());
    if let Some(url) = &webhook
        && !(url.starts_with("http://") || url.starts_with("https://"))
    {
        let message = format!("{WEBHOOK} is '{url}', which is no http or https address");
        return Err(
            CliError::new(ErrorKind::Config, message).hint("write https://…, or leave it out")
        );
    }
    let webhooks = Webhooks(Http::new(Arc::new(tools)));
    Ok(Notifications::new(Arc::new(webhooks), webhook.map(Arc::from)))
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
