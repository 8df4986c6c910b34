//! How many requests are answered at a time, and for how long.

use std::time::Duration;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::app::App;
use crate::error::ApiError;

/// Requests that wait for something to happen, and cost nothing while they do; and those that take as
/// long as a line needs for what they carry, of which there is a number of its own.
const WAITING: [&str; 2] = ["/api/worker/lease", "/api/worker/content/{digest}"];

/// What says how the process is. Under load it is asked for most, and a refusal would have it
/// restarted.
const ALWAYS: [&str; 2] = ["/health", "/metrics"];

/// Refuses what would be one too many, and gives up on what takes too long. What a request that was
/// given up on has started goes on or not as if its caller had hung up.
pub(crate) async fn bound(State(app): State<App>, request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    let is_waiting = WAITING.contains(&path);
    let _place = match (is_waiting || ALWAYS.contains(&path), app.places.try_acquire()) {
        (true, _) => None,
        (false, Ok(place)) => Some(place),
        (false, Err(_)) => {
            let most = app.options.requests_max;
            let message = format!("{most} requests are being answered; come again in a moment");
            return ApiError::unavailable("too_many_requests", message).into_response();
        }
    };
    let waits = if is_waiting { noetl_control::WAIT_MAX } else { Duration::ZERO };
    let limit = app.options.request_timeout + waits;
    match tokio::time::timeout(limit, next.run(request)).await {
        Ok(response) => response,
        Err(_) => gave_up(limit).into_response(),
    }
}

fn gave_up(limit: Duration) -> ApiError {
    let message = format!(
        "no answer within {} s; what was asked may still be done, so ask how it stands before \
         asking again",
        limit.as_secs()
    );
    ApiError::unavailable("request_timeout", message)
}
