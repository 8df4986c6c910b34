//! Replay: what a log says up to some event or time.

use noetl_model::Value;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// The query of `GET /api/replay/state`. Its values are read by the server, which names what is
/// wrong with one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub struct ReplayQuery {
    /// The execution. It must be given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<String>,
    /// Whose it has to be; `default` when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<String>,
    /// Whose its rows have to be; `default` when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub organization_id: Option<String>,
    /// Up to this event, itself included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_of_event_id: Option<String>,
    /// The same under another name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_of_position: Option<String>,
    /// Only events made up to this time, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_of_time: Option<String>,
    /// `execution`, `stage`, `frame`, `command`, `business_object`, `loop` or `all`, which is the
    /// default. It is noted in the reply; everything is always folded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub projection: Option<String>,
    /// How many events at most, the oldest first: 1 to 100 000, or `all`; 10 000 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// `true` to look up what references refer to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolve_payloads: Option<String>,
}

/// The reply: the fields of the state, and beside them what its checksum does not cover.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplayReply<S = Value, P = Value> {
    /// The state with its checksums.
    #[serde(flatten)]
    pub state: S,
    /// Given when the limit let only the oldest events in.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// Given when references were looked up: `payload_resolution` and
    /// `payload_resolution_summary`.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub payloads: Option<P>,
}
