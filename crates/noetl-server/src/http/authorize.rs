//! Authentication and authorization of requests, before the body is read.

use axum::extract::{MatchedPath, Request, State};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::caller::Caller;
use super::credential::RequestCredential;
use super::roles::{RequiredRole, needs, needs_of_verbs, verbs};
use super::{acted, bound, granted, limits, rate};
use crate::app::App;
use crate::connections::ClientConnection;
use crate::error::ApiError;

/// Passes a request on if its caller has a role that the route needs and a permit is free.
pub(crate) async fn check(State(app): State<App>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let path = parts.extensions.get::<MatchedPath>().cloned();
    let path = path.as_ref().map_or("", MatchedPath::as_str);
    let admitted = match admitted(&app, &parts, path).await {
        Ok((caller, needs)) => {
            limits::admit(&app, path, needs, &body).map(|place| (caller, needs, place))
        }
        Err(refusal) => Err(refusal),
    };
    match admitted {
        Ok((caller, needs, _place)) => {
            if let Some(connection) = parts.extensions.get::<ClientConnection>()
                && needs != RequiredRole::Nothing
            {
                connection.set_known();
            }
            let credential = RequestCredential::new(&parts, needs);
            parts.extensions.insert(credential);
            parts.extensions.insert(caller);
            let body = limits::paced(&app, path, needs, body);
            next.run(Request::from_parts(parts, body)).await
        }
        Err(refusal) => refusal.into_response(),
    }
}

async fn admitted(
    app: &App,
    request: &Parts,
    path: &str,
) -> Result<(Caller, RequiredRole), ApiError> {
    let method = &request.method;
    let Some(needs) = needs(method, path) else {
        if let Some(needs) = needs_of_verbs(path) {
            known(app, request, path, needs).await?;
        }
        return Err(wrong_verb(method, &request.uri, path));
    };
    Ok((known(app, request, path, needs).await?, needs))
}

/// Returns the caller if it has a role that the route needs. Counts the request in either case.
async fn known(
    app: &App,
    request: &Parts,
    path: &str,
    needs: RequiredRole,
) -> Result<Caller, ApiError> {
    let method = &request.method;
    if needs == RequiredRole::Nothing {
        rate::count_address(app, path, request)?;
    }
    match app.access.caller(&request.headers, needs).await {
        Ok(caller) => {
            bound::check_route(&caller, path)?;
            rate::count(app, path, needs, &caller)?;
            granted::check_route(app, &caller, method, path, request.uri.path()).await?;
            acted::record_route(app, &caller, method, path, request.uri.path()).await?;
            Ok(caller)
        }
        // Requests with an invalid token count as anonymous.
        Err(refusal) => {
            rate::count_address(app, path, request)?;
            rate::count(app, path, RequiredRole::Nothing, &Caller::anonymous())?;
            Err(refusal.into())
        }
    }
}

/// Creates the 405 error for a method that a path doesn't support, with the supported ones in
/// `Allow`.
fn wrong_verb(method: &Method, uri: &Uri, pattern: &str) -> ApiError {
    let message = format!("{method} is not possible at {}", uri.path());
    let refusal =
        ApiError::with_status(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message);
    refusal.allowing(verbs(pattern))
}
