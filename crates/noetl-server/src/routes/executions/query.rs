//! Query parameters of execution lists and event logs.

use noetl_api::Id;
use noetl_model::Timestamp;
use noetl_store::{ExecutionFilter, ExecutionStatus};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::error::ApiError;
use crate::event_queries::{EVENTS_MAX, EventFilter, EventRange};

/// Default and maximum page size of a list.
const LIST: (u64, u64) = (50, 100);
/// Default number of events in a range.
pub(super) const EVENTS: u64 = 500;

/// Filters of the list of executions. A parameter without a value counts as omitted.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// Return executions of this catalog entry.
    #[param(value_type = Option<Id>)]
    catalog_id: Option<String>,
    /// Return executions whose path contains this text. Ignores case.
    #[param(value_type = Option<String>)]
    path: Option<String>,
    /// `RUNNING`, `COMPLETED`, `FAILED`, or `CANCELLED`. Ignores case.
    #[param(value_type = Option<String>)]
    status: Option<String>,
    /// Return executions started by this execution.
    #[param(value_type = Option<Id>)]
    parent_execution_id: Option<String>,
    /// Return executions started at or after this RFC 3339 time.
    #[param(value_type = Option<String>, format = DateTime)]
    started_after: Option<String>,
    /// Return executions started before this RFC 3339 time.
    #[param(value_type = Option<String>, format = DateTime)]
    started_before: Option<String>,
    /// Return executions whose path (ignoring case), ID, or error (case-sensitive) contains this
    /// text.
    #[param(value_type = Option<String>)]
    text: Option<String>,
    /// Maximum executions to return, up to 100. Default: 50.
    #[param(value_type = Option<u64>)]
    limit: Option<String>,
    /// Number of executions to skip. Default: 0.
    #[param(value_type = Option<u64>)]
    offset: Option<String>,
}

/// Range of the event log to return.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct StretchQuery {
    /// Return events after this sequence number, oldest first.
    #[param(value_type = Option<u64>)]
    after_seq: Option<String>,
    /// Page to return, from 1, newest events first.
    #[param(value_type = Option<u64>)]
    page: Option<String>,
    /// Events per page, from 1 to 2,000. Default: 500, or 2,000 with `after_seq`.
    #[param(value_type = Option<u64>)]
    page_size: Option<String>,
    /// Return events after this event ID.
    #[param(value_type = Option<Id>)]
    since_event_id: Option<String>,
    /// Return events of these types, separated by commas.
    #[param(value_type = Option<String>)]
    event_type: Option<String>,
}

/// Range of the event log to return.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventsQuery {
    /// Return events after this sequence number. Default: 0.
    #[param(value_type = Option<u64>)]
    after: Option<String>,
    /// Maximum events to return, up to 2,000. Default: 500.
    #[param(value_type = Option<u64>)]
    limit: Option<String>,
    /// Whether to replace large values in `context`, `result`, and `meta` with null. Default:
    /// `false`.
    #[param(value_type = Option<bool>)]
    brief: Option<String>,
}

impl ListQuery {
    /// Parses the parameters into a filter.
    pub(super) fn filter(&self) -> Result<ExecutionFilter, ApiError> {
        let catalog = given(self.catalog_id.as_deref()).map(str::parse).transpose();
        let parent = given(self.parent_execution_id.as_deref()).map(str::parse).transpose();
        let limit = count("limit", self.limit.as_deref())?.unwrap_or(LIST.0).min(LIST.1);
        let offset = count("offset", self.offset.as_deref())?.unwrap_or(0);
        Ok(ExecutionFilter {
            status: given(self.status.as_deref()).map(status_named).transpose()?,
            path: given(self.path.as_deref()).map(str::to_owned),
            catalog: catalog.map_err(|error| ApiError::query(format!("catalog_id: {error}")))?,
            parent: parent
                .map_err(|error| ApiError::query(format!("parent_execution_id: {error}")))?,
            started_before: instant("started_before", self.started_before.as_deref())?,
            started_after: instant("started_after", self.started_after.as_deref())?,
            text: given(self.text.as_deref()).map(str::to_owned),
            offset: usize::try_from(offset).unwrap_or(usize::MAX),
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
        })
    }
}

impl StretchQuery {
    /// Parses the parameters into a range. Returns `None` for the whole log.
    pub(super) fn stretch(&self) -> Result<Option<EventRange>, ApiError> {
        let size = count("page_size", self.page_size.as_deref())?;
        let page = count("page", self.page.as_deref())?;
        let after = count("after_seq", self.after_seq.as_deref())?;
        let limited = size.unwrap_or(EVENTS).clamp(1, EVENTS_MAX);
        Ok(match (after, page, size) {
            (Some(after), _, _) => {
                let size = size.unwrap_or(EVENTS_MAX).clamp(1, EVENTS_MAX);
                Some(EventRange::After { after, size })
            }
            (None, None, None) => None,
            (None, page, _) => {
                Some(EventRange::Page { page: page.unwrap_or(1).max(1), size: limited })
            }
        })
    }

    pub(super) fn only(&self) -> Result<EventFilter, ApiError> {
        let since = given(self.since_event_id.as_deref()).map(str::parse).transpose();
        let types = given(self.event_type.as_deref()).unwrap_or_default().split(',');
        let types = types.map(str::trim).filter(|of| !of.is_empty()).map(str::to_owned);
        Ok(EventFilter {
            since: since.map_err(|error| ApiError::query(format!("since_event_id: {error}")))?,
            types: types.collect(),
        })
    }
}

impl EventsQuery {
    /// Parses the sequence number to start after.
    pub(crate) fn after(&self) -> Result<Option<u64>, ApiError> {
        count("after", self.after.as_deref())
    }

    /// Parses `brief`. Returns `true` if large values are to be omitted.
    pub(crate) fn brief(&self) -> Result<bool, ApiError> {
        flag("brief", self.brief.as_deref())
    }

    /// Parses the maximum number of events.
    pub(crate) fn limit(&self) -> Result<Option<u64>, ApiError> {
        count("limit", self.limit.as_deref())
    }
}

/// Parses an execution status, ignoring case.
pub(crate) fn status_named(text: &str) -> Result<ExecutionStatus, ApiError> {
    ExecutionStatus::from_text(&text.to_ascii_uppercase()).ok_or_else(|| {
        let message = "status must be RUNNING, COMPLETED, FAILED or CANCELLED";
        ApiError::query(message)
    })
}

/// Parses an RFC 3339 time. Accepts a space in place of the plus sign of an offset, which results
/// from a query that was not percent-encoded.
fn instant(name: &str, text: Option<&str>) -> Result<Option<Timestamp>, ApiError> {
    let Some(text) = given(text) else { return Ok(None) };
    let read = text.parse().or_else(|_| text.replace(' ', "+").parse());
    read.map(Some).map_err(|_| {
        ApiError::query(format!("{name} must be an RFC 3339 time, as 2026-01-31T12:00:00Z"))
    })
}

/// Parses a non-negative whole number. The error names the parameter.
pub(crate) fn count(name: &str, text: Option<&str>) -> Result<Option<u64>, ApiError> {
    let number = given(text).map(str::parse).transpose();
    number.map_err(|_| {
        let message = format!("{name} must be a whole number of at least 0");
        ApiError::query(message)
    })
}

/// Parses a Boolean parameter. An omitted one is `false`.
pub(crate) fn flag(name: &str, text: Option<&str>) -> Result<bool, ApiError> {
    match given(text) {
        None | Some("false" | "0") => Ok(false),
        Some("true" | "1") => Ok(true),
        Some(other) => Err(ApiError::query(format!("{name} must be true or false, not {other}"))),
    }
}

pub(crate) fn given(text: Option<&str>) -> Option<&str> {
    text.map(str::trim).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(after_seq: &str, page: &str, page_size: &str) -> StretchQuery {
        StretchQuery {
            after_seq: Some(after_seq.to_owned()),
            page: Some(page.to_owned()),
            page_size: Some(page_size.to_owned()),
            since_event_id: None,
            event_type: None,
        }
    }

    #[test]
    fn the_whole_log_is_meant_unless_a_stretch_is_asked_for() {
        let read = |after, page, size| query(after, page, size).stretch().ok();
        assert_eq!(read("", "", ""), Some(None));
        assert_eq!(read("", "2", "10"), Some(Some(EventRange::Page { page: 2, size: 10 })));
        assert_eq!(read("", "0", "0"), Some(Some(EventRange::Page { page: 1, size: 1 })));
        assert_eq!(read("7", "2", "99999"), Some(Some(EventRange::After { after: 7, size: 2000 })));
        assert_eq!(read("-1", "", ""), None);
        assert_eq!(read("", "99999999999999999999999", ""), None);
    }
}
