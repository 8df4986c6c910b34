//! Routes of published clients that this control plane doesn't support. They respond with an
//! alternative, so that clients don't mistake them for a wrong URL.

use axum::extract::MatchedPath;
use axum::http::{Method, StatusCode};

use crate::error::ApiError;
use crate::http::absent::ABSENT;

/// Responds with 501 and the alternative to an unsupported route.
pub(crate) async fn say(method: Method, path: MatchedPath) -> ApiError {
    let known = ABSENT.iter().find(|(verb, known, _)| *verb == method && *known == path.as_str());
    let hint = known.map_or("this is not built", |(_, _, hint)| hint);
    ApiError::with_status(StatusCode::NOT_IMPLEMENTED, "not_built", hint)
}
