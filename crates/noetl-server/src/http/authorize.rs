//! Whether a caller may ask for a route. Decided before anything of a body is read.

use axum::extract::{MatchedPath, Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::caller::Caller;
use super::internal;
use super::roles::{Needs, Roles, needs};
use crate::app::App;
use crate::error::ApiError;
use crate::routes::fallback::wrong_verb;

/// Lets a request through whose caller has a role the route needs.
pub(crate) async fn check(State(app): State<App>, mut request: Request, next: Next) -> Response {
    match caller(&app, &request) {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(refusal) => refusal.into_response(),
    }
}

fn caller(app: &App, request: &Request) -> Result<Caller, ApiError> {
    let path = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    let method = request.method();
    let needs = needs(method, path).ok_or_else(|| wrong_verb(method, request.uri(), path))?;
    if needs == Needs::One(Roles::INTERNAL) {
        return internal::is_internal(app, request.headers()).map(|()| Caller::internal());
    }
    // The internal token is good for whatever a worker may ask, of every tenant.
    if needs.allow(Roles::WORKER) && internal::is_internal(app, request.headers()).is_ok() {
        return Ok(Caller::internal());
    }
    let caller = Caller::anybody();
    if needs.allow(caller.roles) { Ok(caller) } else { Err(lacks_role(&caller, needs)) }
}

fn lacks_role(caller: &Caller, needs: Needs) -> ApiError {
    let roles = |roles: Roles| roles.names().collect::<Vec<_>>().join(", ");
    let needed = match needs {
        Needs::Nothing => String::new(),
        Needs::One(needed) => roles(needed.and(Roles::ADMIN)),
    };
    let (name, has) = (&caller.name, roles(caller.roles));
    let message = format!("this needs one of the roles {needed}; {name} has {has}");
    ApiError::refused(StatusCode::FORBIDDEN, "role_missing", message)
}
