//! Routes that read and append step logs.

use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use noetl_api::Id;
use noetl_api::logs::{
    GapView, LineView, LogAccepted, LogEvent, LogLineItem, LogReply, LogRequest,
};
use noetl_journal::LogError;
use noetl_model::{CommandId, ExecutionId};
use noetl_store::{LogGap, LogLine, LogQuery, LogStream, NewLine};
use noetl_work::STEP_LOG_LINES_MAX;
use serde::Deserialize;
use utoipa::IntoParams;

use super::sse::{PageReader, SseClient, message, place};
use crate::error::{ApiError, unknown_execution};
use crate::event_queries;
use crate::http::bound;
use crate::http::caller::{Caller, Scoped};
use crate::http::credential::RequestCredential;
use crate::http::extract::{IdFormat, Json, Path, Query};
use crate::http::openapi::ErrorResponses;
use crate::routes::executions::query::{count, flag, given};

/// Default and maximum number of lines in a response.
const LINES: (u64, u64) = (500, 5000);
/// Lines per read of a stream.
const PAGE: usize = 200;

/// Query parameters of step logs.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct LogsQuery {
    /// Return lines of this command: the ID of its `command.issued` event, or `execution:step:id`.
    #[param(value_type = Option<String>)]
    command: Option<String>,
    /// Return lines after this number. The `Last-Event-ID` header takes precedence.
    #[param(value_type = Option<u64>)]
    after: Option<String>,
    /// Maximum lines to return, up to 5,000. Default: 500.
    #[param(value_type = Option<u64>)]
    limit: Option<String>,
    /// Whether to stream new lines as server-sent events until the execution ends. Default:
    /// `false`.
    #[param(value_type = Option<bool>)]
    follow: Option<String>,
}

/// Reads step logs
///
/// The server stores the first and the newest lines of each command, up to 1 MiB in total, and
/// counts the lines in between. With `follow`, lines are sent as server-sent events with the line
/// number as `id`, followed by an event `end` when the execution ends.
#[utoipa::path(
    get,
    path = "/api/executions/{id}/logs",
    operation_id = "executions_logs",
    tag = "executions",
    params(("id" = Id, Path), LogsQuery),
    responses(
        (status = 200, content((LogReply = "application/json"), (LogEvent = "text/event-stream"))),
        ErrorResponses,
    ),
)]
pub(crate) async fn read(
    Scoped(app): Scoped,
    Path(id): Path<ExecutionId>,
    IdFormat(ids): IdFormat,
    Query(query): Query<LogsQuery>,
    credential: RequestCredential,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let command = given(query.command.as_deref()).map(command_named).transpose()?;
    let limit = count("limit", query.limit.as_deref())?.unwrap_or(LINES.0).min(LINES.1);
    let after = place(&headers, query.after.as_deref())?;
    event_queries::row(&app, id).await?;
    if flag("follow", query.follow.as_deref())? {
        let query = LogQuery { command, after, limit: PAGE };
        let follower = SseClient::new(app, id, ids, credential)?;
        return Ok(LineReader { follower, id, query, is_last: false }.messages().into_response());
    }
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let lines = app.control.journal.logs.read(id, LogQuery { command, after, limit }).await?;
    let gaps = app.control.journal.logs.gaps(id, command).await?;
    Ok(Json(LogReply {
        execution_id: Id::new(id.get(), ids),
        next_after: lines.last().map_or(after, |line| line.n),
        lines: lines.iter().map(line_view).collect(),
        gaps: gaps.iter().map(gap_view).collect(),
    })
    .into_response())
}

/// Appends step logs
///
/// For remote workers. Known secrets are redacted; lines longer than 16 KiB are split.
#[utoipa::path(
    post,
    path = "/api/executions/{id}/logs",
    operation_id = "executions_logs_append",
    tag = "workers",
    params(("id" = Id, Path)),
    request_body = LogRequest,
    responses((status = 200, body = LogAccepted), ErrorResponses),
)]
pub(crate) async fn append(
    Scoped(app): Scoped,
    caller: Caller,
    Path(id): Path<ExecutionId>,
    IdFormat(ids): IdFormat,
    Json(request): Json<LogRequest>,
) -> Result<Json<LogAccepted>, ApiError> {
    if request.lines.len() > STEP_LOG_LINES_MAX {
        let message =
            format!("lines: at most {STEP_LOG_LINES_MAX} at a time, not {}", request.lines.len());
        return Err(ApiError::invalid("too_many_lines", message));
    }
    let command = command_named(&request.command_id)
        .map_err(|error| ApiError::invalid("invalid_command", error.message().to_owned()))?;
    if !bound::owns(&app, &caller, command).await? {
        return Err(ApiError::invalid(
            "command_not_found",
            format!("command not found: {command}"),
        ));
    }
    let app = app.for_execution(&caller, id).await?;
    let accepted = request.lines.len();
    let now = app.control.journal.logs.now();
    let numbered = request.lines.into_iter().enumerate();
    let lines = numbered.map(|(place, line)| {
        let LogLineItem { at, stream, text } = line;
        let stream = LogStream::from_text(&stream).ok_or_else(|| {
            let message = format!("lines[{place}].stream must be stdout or stderr, not {stream}");
            ApiError::invalid("invalid_stream", message)
        })?;
        Ok(NewLine { command, at: at.unwrap_or(now), stream, text })
    });
    let lines = lines.collect::<Result<Vec<_>, ApiError>>()?;
    let last = app.control.journal.logs.append(&app.tenant, id, lines).await?;
    Ok(Json(LogAccepted { execution_id: Id::new(id.get(), ids), accepted, last }))
}

impl From<LogError> for ApiError {
    fn from(failure: LogError) -> Self {
        let message = failure.to_string();
        match failure {
            LogError::NotFound(id) => unknown_execution(id),
            LogError::NoCommand { .. } => Self::invalid("command_not_found", message),
            LogError::Store(failure) => failure.into(),
        }
    }
}

/// Parses a command ID, alone or at the end of `execution:step:id`.
fn command_named(text: &str) -> Result<CommandId, ApiError> {
    let number = text.rsplit(':').next().unwrap_or_default().trim();
    number.parse().map_err(|_| {
        let message = format!("a command is named by its id or by execution:step:id, not {text}");
        ApiError::query(message)
    })
}

fn line_view(LogLine { n, line }: &LogLine) -> LineView {
    LineView {
        n: *n,
        command_id: Id::text(line.command.get()),
        at: line.at,
        stream: line.stream.as_str().to_owned(),
        text: line.text.clone(),
    }
}

fn gap_view(gap: &LogGap) -> GapView {
    let LogGap { command, after, lines, bytes } = *gap;
    GapView { command_id: Id::text(command.get()), after, lines, bytes }
}

struct LineReader {
    follower: SseClient,
    id: ExecutionId,
    query: LogQuery,
    /// Whether the execution ended and all its lines are written.
    is_last: bool,
}

impl PageReader for LineReader {
    fn follower(&mut self) -> &mut SseClient {
        &mut self.follower
    }

    async fn read(&mut self) -> Result<bool, ApiError> {
        let follower = &mut self.follower;
        let logs = &follower.app.control.journal.logs;
        let lines = logs.read(self.id, self.query).await?;
        if let Some(last) = lines.last() {
            self.query.after = last.n;
            let sent = |line: &LogLine| message(&line_view(line)).id(line.n.to_string());
            follower.ready.extend(lines.iter().map(sent));
            return Ok(true);
        }
        let row =
            follower.app.control.journal.executions.get(&follower.app.tenant, self.id).await?;
        let Some(row) = row else {
            follower.is_over = true;
            return Ok(true);
        };
        if !row.status.is_final() {
            return Ok(false);
        }
        if !self.is_last {
            // The last lines may not be written yet.
            logs.flush().await;
            self.is_last = true;
            return Ok(true);
        }
        follower.end(&row);
        Ok(true)
    }
}
