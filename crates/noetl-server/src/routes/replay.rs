//! Replay: state of an execution at any event or time.

use noetl_access::Auth;
use noetl_api::replay::{ReplayQuery, ReplayReply};
use noetl_engine::replay::ReplayState;
use noetl_model::{EventId, ExecutionId, Tenant, Timestamp};
use noetl_store::ReadBound;
use noetl_views::{ORGANIZATION, Payloads, ReplayRequest};

use crate::error::ApiError;
use crate::http::caller::Scoped;
use crate::http::extract::{Json, Query};
use crate::http::openapi::ErrorResponses;

/// Default and maximum number of folded events.
const LIMIT: (i64, i64) = (10_000, 100_000);

/// Replays an execution
///
/// Folds its events, by event ID, into the state of the execution, its stages, frames, commands,
/// loops, and business objects. An unknown execution has no events.
#[utoipa::path(
    get,
    path = "/api/replay/state",
    tag = "executions",
    params(ReplayQuery),
    responses((status = 200, body = Object), ErrorResponses),
)]
pub(crate) async fn state(
    Scoped(app): Scoped,
    Query(query): Query<ReplayQuery>,
) -> Result<Json<ReplayReply<ReplayState, Payloads>>, ApiError> {
    let mut request = request(&query)?;
    if !matches!(app.options.auth, Auth::Open) {
        // An authenticated caller sees only its own tenant.
        request.tenant = app.tenant;
    }
    let replayed = app.control.views.replay.state(&request).await?;
    Ok(Json(ReplayReply {
        state: replayed.state,
        truncated: replayed.is_truncated,
        payloads: replayed.payloads,
    }))
}

fn request(query: &ReplayQuery) -> Result<ReplayRequest, ApiError> {
    let execution = integer("execution_id", query.execution_id.as_deref())?;
    let execution = execution.ok_or_else(|| ApiError::query("execution_id must be given"))?;
    let projection = given(query.projection.as_deref()).map(str::parse).transpose();
    let projection = projection.map_err(|unknown: noetl_engine::replay::UnknownProjection| {
        ApiError::query(unknown.to_string())
    })?;
    Ok(ReplayRequest {
        execution: ExecutionId::new(execution),
        tenant: given(query.tenant_id.as_deref()).map(Tenant::new).unwrap_or_default(),
        organization: given(query.organization_id.as_deref()).unwrap_or(ORGANIZATION).to_owned(),
        until: until(query)?,
        projection: projection.unwrap_or_default(),
        limit: limit(query.limit.as_deref())?,
        resolve_payloads: flag("resolve_payloads", query.resolve_payloads.as_deref())?,
    })
}

fn until(query: &ReplayQuery) -> Result<ReadBound, ApiError> {
    let event = integer("as_of_event_id", query.as_of_event_id.as_deref())?;
    let position = integer("as_of_position", query.as_of_position.as_deref())?;
    let time = given(query.as_of_time.as_deref()).map(time).transpose()?;
    match (event, position, time) {
        (None, None, None) => Ok(ReadBound::End),
        (Some(id), None, None) | (None, Some(id), None) => Ok(ReadBound::Event(EventId::new(id))),
        (None, None, Some(time)) => Ok(ReadBound::Time(time)),
        _ => Err(ApiError::query(
            "Use only one replay cutoff: as_of_event_id, as_of_position, or as_of_time",
        )),
    }
}

/// Parses an RFC 3339 time. Accepts a space in place of the plus sign of an offset, which results
/// from a query that was not percent-encoded.
fn time(text: &str) -> Result<Timestamp, ApiError> {
    let read = text.parse().or_else(|_| text.replace(' ', "+").parse());
    read.map_err(|_| {
        ApiError::query("as_of_time must be an RFC 3339 time, as 2026-01-31T12:00:00Z")
    })
}

/// Parses the number of events. Returns `None` for `all`.
fn limit(text: Option<&str>) -> Result<Option<u64>, ApiError> {
    if given(text) == Some("all") {
        return Ok(None);
    }
    let wrong = "limit must be a whole number or all";
    let said = integer("limit", text).map_err(|_| ApiError::query(wrong))?;
    let limit = said.unwrap_or(LIMIT.0).clamp(1, LIMIT.1);
    Ok(Some(limit.unsigned_abs()))
}

fn integer(name: &str, text: Option<&str>) -> Result<Option<i64>, ApiError> {
    let number = given(text).map(str::parse).transpose();
    number.map_err(|_| ApiError::query(format!("{name} must be a whole number of 64 bits")))
}

fn flag(name: &str, text: Option<&str>) -> Result<bool, ApiError> {
    match given(text) {
        None | Some("false" | "False" | "0") => Ok(false),
        Some("true" | "True" | "1") => Ok(true),
        Some(_) => Err(ApiError::query(format!("{name} must be true or false"))),
    }
}

fn given(text: Option<&str>) -> Option<&str> {
    text.map(str::trim).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(execution_id: &str) -> ReplayQuery {
        ReplayQuery { execution_id: Some(execution_id.to_owned()), ..ReplayQuery::default() }
    }

    #[test]
    fn a_limit_is_brought_into_its_bounds() {
        for (text, is) in [
            (None, Some(10_000)),
            (Some(""), Some(10_000)),
            (Some("-9223372036854775808"), Some(1)),
            (Some("0"), Some(1)),
            (Some("17"), Some(17)),
            (Some("9223372036854775807"), Some(100_000)),
            (Some("all"), None),
        ] {
            assert_eq!(limit(text).expect("a limit"), is, "{text:?}");
        }
        for text in ["many", "1.5", "9223372036854775808", "ALL"] {
            assert!(limit(Some(text)).is_err(), "{text}");
        }
    }

    #[test]
    fn missing_and_empty_parameters_have_defaults() {
        let said = ReplayQuery {
            tenant_id: Some(String::new()),
            organization_id: Some(" ".to_owned()),
            projection: Some(String::new()),
            as_of_event_id: Some(String::new()),
            ..query("-7")
        };
        for query in [query("-7"), said] {
            let request = request(&query).expect("a request");
            assert_eq!(request.execution.get(), -7);
            assert_eq!((request.tenant.as_str(), &*request.organization), ("default", "default"));
            assert_eq!((request.until, request.limit), (ReadBound::End, Some(10_000)));
            assert_eq!((request.projection.as_str(), request.resolve_payloads), ("all", false));
        }
    }

    #[test]
    fn a_time_with_an_offset_survives_a_query_that_was_not_encoded() {
        let at: Timestamp = "2026-01-31T11:00:00Z".parse().expect("a time");
        assert_eq!(time("2026-01-31T12:00:00 01:00").expect("a time"), at);
        assert_eq!(time("2026-01-31T12:00:00+01:00").expect("a time"), at);
        assert!(time("2026-01-31").is_err());
    }
}
