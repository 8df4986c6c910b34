//! Streams an execution with its complete event log, which can be too long to buffer for each
//! client.

use std::io;

use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use futures::stream::unfold;
use noetl_api::IdForm;
use noetl_api::executions::ExecutionDetail;
use noetl_model::{Event, ExecutionId};
use noetl_store::ExecutionRow;

use super::durations::Durations;
use super::found::{is_one_of, places_up_to};
use super::{EventFilter, result, row, window, workload};
use crate::app::App;
use crate::error::ApiError;
use crate::shape;

/// Maximum events in a response. Of a longer log, the newest are returned.
const EVENTS_MAX: u64 = 100_000;

/// Events per read of the store, and so per chunk of the response.
const PAGE: u64 = 1000;

/// Returns an execution with its events, oldest first.
pub(crate) async fn whole(
    app: &App,
    id: ExecutionId,
    only: EventFilter,
    ids: IdForm,
) -> Result<Response, ApiError> {
    let row = row(app, id).await?;
    let total = row.version.0;
    let since = match only.since {
        None => 0,
        Some(event) => places_up_to(app, id, event, total).await?,
    };
    let at = since.max(total.saturating_sub(EVENTS_MAX));
    let detail = ExecutionDetail {
        summary: shape::execution(&row, ids),
        workload: workload(app, id).await?,
        result: result(app, &row).await?,
        truncated: at > since,
        pagination: None,
        events: Vec::new(),
    };
    let mut head = serde_json::to_string(&detail)
        .map_err(|error| ApiError::internal(format!("the reply can't be written: {error}")))?;
    // The events are the last field and empty so far. The stream closes the array after the last
    // event.
    head.truncate(head.len() - "]}".len());
    let app = app.clone();
    let mut writer =
        DetailWriter { app, row, only, ids, at, lasted: Durations::default(), next: b"" };
    // The first page is read before the response starts, so that an unavailable store is reported
    // as an error.
    let first = writer.page().await?;
    let sent = unfold(Some((writer, Some((head, first)))), DetailWriter::piece);
    Ok(([(CONTENT_TYPE, "application/json")], Body::from_stream(sent)).into_response())
}

struct DetailWriter {
    app: App,
    row: ExecutionRow,
    only: EventFilter,
    ids: IdForm,
    /// Sequence number of the last event read.
    at: u64,
    lasted: Durations,
    /// Separator before the next event.
    next: &'static [u8],
}

/// Remaining stream: the writer, and for the first chunk the head and the first page.
type Rest = Option<(DetailWriter, Option<(String, Vec<Event>)>)>;

impl DetailWriter {
    async fn page(&mut self) -> Result<Vec<Event>, ApiError> {
        let until = (self.at + PAGE).min(self.row.version.0);
        let events = window(&self.app, self.row.id, self.at, until).await?;
        self.at = until;
        Ok(events)
    }

    async fn piece(rest: Rest) -> Option<(io::Result<Bytes>, Rest)> {
        let (mut writer, begun) = rest?;
        let (head, events) = match begun {
            Some((head, events)) => (head, events),
            None => match writer.page().await {
                Ok(events) => (String::new(), events),
                // The status was already sent, so an aborted response reports the error.
                Err(error) => {
                    let error = io::Error::other(error.message().to_owned());
                    return Some((Err(error), None));
                }
            },
        };
        let mut piece = head.into_bytes();
        if let Err(error) = writer.write(&events, &mut piece) {
            return Some((Err(error), None));
        }
        if writer.at < writer.row.version.0 {
            return Some((Ok(piece.into()), Some((writer, None))));
        }
        piece.extend_from_slice(b"]}");
        Some((Ok(piece.into()), None))
    }

    fn write(&mut self, events: &[Event], piece: &mut Vec<u8>) -> io::Result<()> {
        let types = &self.only.types;
        for event in events {
            let lasted = self.lasted.record(event, &self.row);
            if !types.is_empty() && !is_one_of(event, types) {
                continue;
            }
            piece.extend_from_slice(self.next);
            self.next = b",";
            serde_json::to_writer(&mut *piece, &shape::event(event, &self.row, lasted, self.ids))?;
        }
        Ok(())
    }
}
