//! Follows a server-sent event stream to its end.

use noetl_api::events::EventView;
use noetl_api::stream::StreamEnd;
use noetl_api::{ApiCall, ClientError, StreamItem, calls};
use noetl_model::ExecutionId;
use serde_json::Value;

use super::format::{clock, cut};
use crate::error::{CliError, ErrorKind};
use crate::output::style::TextStyle;
use crate::output::table::Tone;
use crate::output::{self, style};
use crate::remote::Remote;
use crate::signals::StopRequests;

/// Maximum length of an error on an event line, in characters.
const ERROR_MAX: usize = 200;

pub(super) enum FollowEnd {
    /// The server closed the stream because the execution ended.
    Over(StreamEnd),
    /// The user pressed Ctrl-C. The execution continues.
    Interrupted,
}

/// Reads a stream until its end or Ctrl-C, and calls `each` for every item.
///
/// Reconnects after a lost connection.
pub(super) async fn to_end(
    remote: &Remote,
    call: ApiCall<()>,
    after: u64,
    mut each: impl FnMut(Value) -> Result<(), CliError>,
) -> Result<FollowEnd, CliError> {
    let stop = StopRequests::listen();
    let mut stop = stop.map_err(|error| CliError::from_error(ErrorKind::Config, &error))?;
    let mut follow = remote.follow(call, after);
    loop {
        let next_item = tokio::select! {
            next_item = follow.next() => next_item,
            () = stop.next() => return Ok(FollowEnd::Interrupted),
        };
        match next_item.map_err(|error| remote.failure(&error))? {
            StreamItem::Item(_, item) => each(item)?,
            StreamItem::End(end) => return Ok(FollowEnd::Over(end)),
            StreamItem::Lost(_) => output::note("the connection was lost; trying again"),
        }
    }
}

/// Prints the events of an execution on stderr until it ends.
pub(super) async fn log_to_end(remote: &Remote, id: ExecutionId) -> Result<FollowEnd, CliError> {
    let style = style::of_stderr();
    to_end(remote, calls::stream(id), 0, |item| {
        output::note(line(&event(remote, &item)?, style).trim_end());
        Ok(())
    })
    .await
}

/// Parses an event of a stream.
pub(super) fn event(remote: &Remote, item: &Value) -> Result<EventView, CliError> {
    use serde::Deserialize as _;
    EventView::deserialize(item).map_err(|error| remote.failure(&ClientError::Shape(error.into())))
}

/// Formats an event as one line with aligned columns.
pub(super) fn line(event: &EventView, style: TextStyle) -> String {
    let kind = event.event_type.as_deref().unwrap_or("-");
    let status = event.status.as_deref().unwrap_or("-");
    let step = event.node_name.as_deref().or(event.node_id.as_deref()).unwrap_or("-");
    let mut text = format!(
        "{:>5}  {}  {}  {}  {}",
        event.seq,
        style.faint(&clock(event.timestamp)),
        cut(kind, 40) + &" ".repeat(20_usize.saturating_sub(kind.chars().count())),
        Tone::of_status(status).paint(style, &format!("{:<9}", cut(status, 20))),
        cut(step, 100),
    );
    if let Some(error) = &event.error {
        text.push_str("  ");
        text.push_str(&style.bad(&cut(error, ERROR_MAX)));
    }
    text.push('\n');
    text
}

/// Tells the user that the execution continues after Ctrl-C.
pub(super) fn note_interrupted(id: ExecutionId) {
    output::note(&format!("the execution continues; see `noetl status {id}`"));
}
