//! Origin and host checks (CORS): the server's own pages may call the API, and pages of origins
//! that the operator listed.
//!
//! A web page can make a browser send requests to this machine. Three checks exclude foreign pages:
//! a `Host` that is not loopback is rejected (a name that resolves to 127.0.0.1 is not enough), a
//! change requested by a foreign `Origin` is rejected, and no foreign page may read a response.

use axum::extract::{Request, State};
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS, HOST,
    ORIGIN, UPGRADE, VARY,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::app::App;
use crate::error::ApiError;
use crate::options::CorsOrigins;

/// Request headers that a response depends on, for `Vary`.
const VARIES: HeaderValue = HeaderValue::from_static(
    "origin, access-control-request-method, access-control-request-headers",
);
const VERBS: HeaderValue = HeaderValue::from_static("GET, POST, PUT, DELETE, PATCH, OPTIONS");
/// Time that a browser may cache a preflight response: 10 minutes, so that removing an origin takes
/// effect soon.
const REMEMBERED: HeaderValue = HeaderValue::from_static("600");

/// Rejects requests with a foreign host or origin, and adds the CORS headers to the response.
pub(crate) async fn guard(State(app): State<App>, request: Request, next: Next) -> Response {
    let allowed = allowed_origin(&app, request.headers());
    let asked = request.headers().get(ACCESS_CONTROL_REQUEST_HEADERS).cloned();
    let is_preflight = request.method() == Method::OPTIONS;
    let mut response = match refusal(&app, &request, allowed.is_some()) {
        Some(refusal) => refusal.into_response(),
        None if is_preflight => StatusCode::OK.into_response(),
        None => next.run(request).await,
    };
    let headers = response.headers_mut();
    headers.append(VARY, VARIES);
    if let Some(origin) = allowed {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("*"));
        if is_preflight {
            headers.insert(ACCESS_CONTROL_ALLOW_METHODS, VERBS);
            let any = HeaderValue::from_static("*");
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, asked.unwrap_or(any));
            headers.insert(ACCESS_CONTROL_MAX_AGE, REMEMBERED);
        }
    }
    response
}

fn refusal(app: &App, request: &Request, is_allowed: bool) -> Option<ApiError> {
    let headers = request.headers();
    let mut hosts = headers.get_all(HOST).iter().peekable();
    let is_local = hosts.peek().is_some() && hosts.all(|host| host.to_str().is_ok_and(is_loopback));
    if !is_local && !app.options.allow_any_host {
        let message = "this control plane answers only to localhost, 127.0.0.1 and [::1]";
        return Some(ApiError::with_status(StatusCode::FORBIDDEN, "host_not_allowed", message));
    }
    // Browsers let every page open a WebSocket, over which it could act as a worker.
    let is_safe = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS)
        && !headers.contains_key(UPGRADE);
    if headers.contains_key(ORIGIN) && !is_allowed && !is_safe {
        let message = "pages of this origin may not change anything here";
        return Some(ApiError::with_status(StatusCode::FORBIDDEN, "origin_not_allowed", message));
    }
    None
}

/// Returns the value of `Access-Control-Allow-Origin`, or `None` for a page that may not call.
fn allowed_origin(app: &App, headers: &HeaderMap) -> Option<HeaderValue> {
    let origin = headers.get(ORIGIN)?;
    let listed = match &app.options.cors_origins {
        CorsOrigins::Any => return Some(HeaderValue::from_static("*")),
        CorsOrigins::Listed(listed) => listed,
    };
    let text = origin.to_str().ok()?;
    let (_, authority) = text.split_once("://")?;
    let is_own = headers.get(HOST).is_some_and(|host| host.as_bytes() == authority.as_bytes());
    let is_listed = listed.iter().any(|known| known.trim_end_matches('/') == text);
    (is_own || is_listed).then(|| origin.clone())
}

/// Returns `true` if `host` or `host:port` names this machine.
fn is_loopback(authority: &str) -> bool {
    let (name, port) = match authority.rsplit_once(':') {
        // In a bracketed IPv6 address without a port, the last colon doesn't precede a port.
        Some((name, port)) if !port.ends_with(']') => (name, port),
        _ => (authority, "0"),
    };
    let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    is_number && (name.eq_ignore_ascii_case("localhost") || matches!(name, "127.0.0.1" | "[::1]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_loopback() {
        for host in ["localhost", "LOCALHOST:8082", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:80"]
        {
            assert!(is_loopback(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example",
            "localhost:80.evil.example",
            "127.0.0.1.nip.io",
            "127.0.0.1:",
            "user@localhost",
            "::1",
            "[::2]:80",
            "0.0.0.0:8082",
        ] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
