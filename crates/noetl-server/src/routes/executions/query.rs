//! What a caller may ask for in lists and logs.

use noetl_api::Id;
use noetl_model::Timestamp;
use noetl_store::{ExecutionFilter, ExecutionStatus};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::error::ApiError;
use crate::reads::{EVENTS_MAX, Only, Stretch};

/// Executions in a list when nothing else is said, and at most.
const LIST: (u64, u64) = (50, 100);
/// Events in a stretch of a log when nothing else is said.
pub(super) const EVENTS: u64 = 500;

/// Which executions to list. A parameter without a value counts as left out.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// Of this catalog entry.
    #[param(value_type = Option<Id>)]
    catalog_id: Option<String>,
    /// With this in their path, in any case.
    #[param(value_type = Option<String>)]
    path: Option<String>,
    /// `RUNNING`, `COMPLETED`, `FAILED` or `CANCELLED`.
    #[param(value_type = Option<String>)]
    status: Option<String>,
    /// Started by this execution.
    #[param(value_type = Option<Id>)]
    parent_execution_id: Option<String>,
    /// Started at this time or later, as RFC 3339.
    #[param(value_type = Option<String>, format = DateTime)]
    started_after: Option<String>,
    /// Started before this time.
    #[param(value_type = Option<String>, format = DateTime)]
    started_before: Option<String>,
    /// With this in their path in any case, in their id, or in their error as it is written.
    #[param(value_type = Option<String>)]
    text: Option<String>,
    /// At most so many.
    #[param(value_type = Option<u64>)]
    limit: Option<String>,
    /// After so many.
    #[param(value_type = Option<u64>)]
    offset: Option<String>,
}

/// Which part of a log to show.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct StretchQuery {
    /// Events after this number in the log, oldest first.
    #[param(value_type = Option<u64>)]
    after_seq: Option<String>,
    /// This page, from 1, newest events first.
    #[param(value_type = Option<u64>)]
    page: Option<String>,
    /// Events on a page.
    #[param(value_type = Option<u64>)]
    page_size: Option<String>,
    /// Events after this one.
    #[param(value_type = Option<Id>)]
    since_event_id: Option<String>,
    /// Events of this type, or of these, with commas between them.
    #[param(value_type = Option<String>)]
    event_type: Option<String>,
}

/// Which stretch of a log to show.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventsQuery {
    /// Events after this number in the log.
    #[param(value_type = Option<u64>)]
    after: Option<String>,
    /// At most so many.
    #[param(value_type = Option<u64>)]
    limit: Option<String>,
    /// Whether to leave out what is large in `context`, `result` and `meta`: null stands for it.
    #[param(value_type = Option<bool>)]
    brief: Option<String>,
}

impl ListQuery {
    /// Which executions are meant.
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
    /// Which stretch is meant; `None` for the whole log.
    pub(super) fn stretch(&self) -> Result<Option<Stretch>, ApiError> {
        let size = count("page_size", self.page_size.as_deref())?;
        let page = count("page", self.page.as_deref())?;
        let after = count("after_seq", self.after_seq.as_deref())?;
        let limited = size.unwrap_or(EVENTS).clamp(1, EVENTS_MAX);
        Ok(match (after, page, size) {
            (Some(after), _, _) => {
                let size = size.unwrap_or(EVENTS_MAX).clamp(1, EVENTS_MAX);
                Some(Stretch::After { after, size })
            }
            (None, None, None) => None,
            (None, page, _) => {
                Some(Stretch::Page { page: page.unwrap_or(1).max(1), size: limited })
            }
        })
    }

    /// Which events of it are meant.
    pub(super) fn only(&self) -> Result<Only, ApiError> {
        let since = given(self.since_event_id.as_deref()).map(str::parse).transpose();
        let types = given(self.event_type.as_deref()).unwrap_or_default().split(',');
        let types = types.map(str::trim).filter(|of| !of.is_empty()).map(str::to_owned);
        Ok(Only {
            since: since.map_err(|error| ApiError::query(format!("since_event_id: {error}")))?,
            types: types.collect(),
        })
    }
}

impl EventsQuery {
    /// The place to begin after.
    pub(crate) fn after(&self) -> Result<Option<u64>, ApiError> {
        count("after", self.after.as_deref())
    }

    /// Whether what is large is left out.
    pub(crate) fn brief(&self) -> Result<bool, ApiError> {
        flag("brief", self.brief.as_deref())
    }

    /// How many at most.
    pub(crate) fn limit(&self) -> Result<Option<u64>, ApiError> {
        count("limit", self.limit.as_deref())
    }
}

/// The status of this name, in any case.
pub(crate) fn status_named(text: &str) -> Result<ExecutionStatus, ApiError> {
    ExecutionStatus::from_text(&text.to_ascii_uppercase()).ok_or_else(|| {
        let message = "status must be RUNNING, COMPLETED, FAILED or CANCELLED";
        ApiError::query(message)
    })
}

/// A time. Where a query was not encoded, the plus of an offset has become a space.
fn instant(name: &str, text: Option<&str>) -> Result<Option<Timestamp>, ApiError> {
    let Some(text) = given(text) else { return Ok(None) };
    let read = text.parse().or_else(|_| text.replace(' ', "+").parse());
    read.map(Some).map_err(|_| {
        ApiError::query(format!("{name} must be an RFC 3339 time, as 2026-01-31T12:00:00Z"))
    })
}

/// A number that cannot be negative. Anything else is the caller's mistake, named by parameter.
pub(crate) fn count(name: &str, text: Option<&str>) -> Result<Option<u64>, ApiError> {
    let number = given(text).map(str::parse).transpose();
    number.map_err(|_| {
        let message = format!("{name} must be a whole number of at least 0");
        ApiError::query(message)
    })
}

/// A yes or no; no when it is left out.
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
        assert_eq!(read("", "2", "10"), Some(Some(Stretch::Page { page: 2, size: 10 })));
        assert_eq!(read("", "0", "0"), Some(Some(Stretch::Page { page: 1, size: 1 })));
        assert_eq!(read("7", "2", "99999"), Some(Some(Stretch::After { after: 7, size: 2000 })));
        assert_eq!(read("-1", "", ""), None);
        assert_eq!(read("", "99999999999999999999999", ""), None);
    }
}
