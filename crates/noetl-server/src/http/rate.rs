//! Rate limits: requests per second of each tenant, of all callers without a token together, and of
//! each of their addresses.

use std::net::IpAddr;

use axum::http::request::Parts;
use noetl_access::client_address;
use noetl_model::Tenant;
use noetl_store::Digest;

use super::caller::Caller;
use super::roles::RequiredRole;
use crate::app::App;
use crate::connections::ClientConnection;
use crate::error::ApiError;

/// Routes that no rate limit applies to: worker traffic, whose rejection would delay work already
/// accepted, and probes.
const WORK: [&str; 7] = [
    "/api/worker/",
    "/api/commands/",
    "/api/events",
    "/api/executions/{id}/logs",
    "/api/result/",
    "/health",
    "/metrics",
];

/// Path prefix of listeners, which have a separate rate limit per address.
const INGRESS: &str = "/ingress/";

/// Counts a request without a valid token by client address, and a message also by its listener.
/// Rejects the request above a rate limit.
pub(super) fn count_address(app: &App, path: &str, request: &Parts) -> Result<(), ApiError> {
    if WORK.iter().any(|work| path.starts_with(work)) {
        return Ok(());
    }
    let Some(address) = counted_address(app, request) else { return Ok(()) };
    let now = app.control.now();
    let refused = |rate: f64, what: &str| {
        let message = format!("{address}: {rate} {what} a second are answered; send fewer");
        move |after| ApiError::too_many("rate_limited", message, after)
    };
    if let Some(rate) = app.options.address_rate_limit {
        let taken = app.requests.addresses.take(address, rate, now);
        taken.map_err(refused(rate, "requests without a token"))?;
    }
    if let Some(rate) = app.options.listener_rate_limit
        && path.starts_with(INGRESS)
    {
        let listener = Digest::of_bytes(request.uri.path().as_bytes());
        let taken = app.requests.listeners.take((listener, address), rate, now);
        taken.map_err(refused(rate, "messages to one listener"))?;
    }
    Ok(())
}

/// Counts a request by tenant. Rejects the request above the rate limit.
pub(super) fn count(
    app: &App,
    path: &str,
    needs: RequiredRole,
    caller: &Caller,
) -> Result<(), ApiError> {
    let Some(rate) = app.options.rate_limit else { return Ok(()) };
    if WORK.iter().any(|work| path.starts_with(work)) || caller.scope().is_none() {
        return Ok(());
    }
    let who = (needs != RequiredRole::Nothing).then(|| caller.tenant.clone());
    let name = who.as_ref().map_or("those who show no token", Tenant::as_str).to_owned();
    app.requests.tenants.take(who, rate, app.control.now()).map_err(|after| {
        let message = format!("{name}: {rate} requests a second are answered");
        ApiError::too_many("rate_limited", message, after)
    })
}

/// Returns the address that a request is counted under.
fn counted_address(app: &App, request: &Parts) -> Option<IpAddr> {
    let peer = request.extensions.get::<ClientConnection>()?.peer();
    Some(client_address(&app.options.trusted_proxies, peer, &request.headers))
}
