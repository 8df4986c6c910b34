//! Limits on requests in flight and on their duration.
//!
//! Callers without a token have a separate set of permits, half of them for requests with a body.
//! Senders of slow bodies therefore block each other, but neither authenticated callers nor the
//! health routes. A credential is checked before a permit is acquired, so credential checks are
//! limited as well.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody as _};
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::sync::Semaphore;

use super::pace::Pace;
use super::roles::RequiredRole;
use crate::app::App;
use crate::capacity::{HEALTH_MAX, Places, RequestPermit};
use crate::error::ApiError;

/// Routes without a request permit and with a longer time limit: the long poll, which costs nothing
/// while it waits, and transfers of large results, which have a limit of their own.
const WAITING: [&str; 2] = ["/api/worker/lease", CONTENT];

/// Route of large results. A body may take any time as long as it meets the minimum rate.
const CONTENT: &str = "/api/worker/content/{digest}";

/// Routes without a limit. Probes call them most often under load, and a rejection would make an
/// orchestrator restart the process.
const ALWAYS: [&str; 2] = ["/health", "/metrics"];

/// Health of the control plane and its store. Has separate permits, because the handler queries the
/// store.
const HEALTH: &str = "/api/health";

/// Responds with 503 when a request exceeds its time limit, and drops its handler, as when the
/// client disconnects. Work that the handler passed to other tasks is not cancelled.
pub(crate) async fn bound(State(app): State<App>, request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    let waits = if WAITING.contains(&path) { noetl_remote::WAIT_MAX } else { Duration::ZERO };
    let limit = app.options.request_timeout + waits;
    match tokio::time::timeout(limit, next.run(request)).await {
        Ok(response) => response,
        Err(_) => gave_up(limit).into_response(),
    }
}

/// Acquires the permits of an authorized request, or rejects it at the limit.
pub(super) fn admit(
    app: &App,
    path: &str,
    needs: RequiredRole,
    body: &Body,
) -> Result<RequestPermit, ApiError> {
    if WAITING.contains(&path) || ALWAYS.contains(&path) {
        return Ok(RequestPermit::default());
    }
    let Places { known, anonymous, anonymous_bodies, health } = &app.places;
    let taken = |room: &Arc<Semaphore>, most: usize| {
        room.clone().try_acquire_owned().map(Some).map_err(|_| too_many(most))
    };
    let most = app.options.anonymous_max;
    let (_request, _body) = match needs {
        _ if path == HEALTH => (taken(health, HEALTH_MAX)?, None),
        RequiredRole::One(_) | RequiredRole::Whole(_) => {
            (taken(known, app.options.requests_max)?, None)
        }
        RequiredRole::Nothing if body.is_end_stream() => (taken(anonymous, most)?, None),
        RequiredRole::Nothing => {
            (taken(anonymous, most)?, taken(anonymous_bodies, most.div_ceil(2))?)
        }
    };
    Ok(RequestPermit { _request, _body })
}

/// Wraps a request body with limits on how slowly it may arrive.
pub(super) fn paced(app: &App, path: &str, needs: RequiredRole, body: Body) -> Body {
    let options = &app.options;
    let deadline = match needs {
        RequiredRole::Nothing => options.body_timeout.min(options.request_timeout),
        RequiredRole::One(_) | RequiredRole::Whole(_) if path == CONTENT => Duration::MAX,
        RequiredRole::One(_) | RequiredRole::Whole(_) => options.request_timeout,
    };
    Pace::new(deadline, options.body_min_rate).apply(body)
}

fn too_many(most: usize) -> ApiError {
    let message = format!("{most} requests are being answered; retry after 1 second");
    ApiError::unavailable("too_many_requests", message)
}

fn gave_up(limit: Duration) -> ApiError {
    let message = format!(
        "no answer within {} s; what was asked may still be done, so ask how it stands before \
         asking again",
        limit.as_secs()
    );
    ApiError::unavailable("request_timeout", message)
}
