//! Replay: the state of an execution as of an event or time.

use noetl_model::Value;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Query of `GET /api/replay/state`. All values are text; the server parses them and names the
/// parameter in an error. Use at most one of `as_of_event_id`, `as_of_position`, and `as_of_time`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub struct ReplayQuery {
    /// ID of the execution. Required.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<String>,
    /// Tenant of the execution. Default: `default`. Ignored if authentication is on: the caller's
    /// tenant applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<String>,
    /// Organization of the events. Default: `default`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub organization_id: Option<String>,
    /// ID of the last event to include. Default: the newest event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_of_event_id: Option<String>,
    /// Same meaning as `as_of_event_id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_of_position: Option<String>,
    /// Time of the last event to include, as RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_of_time: Option<String>,
    /// `execution`, `stage`, `frame`, `command`, `business_object`, `loop`, or `all`. Default:
    /// `all`. Only repeated in the response: the server always folds all projections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub projection: Option<String>,
    /// Maximum number of events to fold, oldest first: 1 to 100,000, or `all`. Default: 10,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// Whether to resolve value references: `true` or `false`. Default: `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolve_payloads: Option<String>,
}

/// Response of `GET /api/replay/state`: the fields of the state, and fields that its checksum
/// doesn't cover.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplayReply<S = Value, P = Value> {
    /// State with its checksums, at the top level of the response.
    #[serde(flatten)]
    pub state: S,
    /// Whether newer events were omitted because of `limit`. Absent if `false`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// `payload_resolution` and `payload_resolution_summary`. Present only with `resolve_payloads`.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub payloads: Option<P>,
}
