//! How many requests a second each tenant may make, and those who are not known together.

use std::sync::Arc;

use noetl_control::Rates;
use noetl_model::Tenant;

use super::caller::Caller;
use super::roles::Needs;
use crate::app::App;
use crate::error::ApiError;

/// Requests of the work itself: to refuse them would hold up what was let in before.
const WORK: [&str; 7] = [
    "/api/worker/",
    "/api/commands/",
    "/api/events",
    "/api/executions/{id}/logs",
    "/api/result/",
    "/health",
    "/metrics",
];

/// Counts of requests. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Requests(Arc<Rates<Option<Tenant>>>);

/// Counts a request, and refuses what comes too fast.
pub(super) fn count(app: &App, path: &str, needs: Needs, caller: &Caller) -> Result<(), ApiError> {
    let Some(rate) = app.options.rate_limit else { return Ok(()) };
    if WORK.iter().any(|work| path.starts_with(work)) || caller.scope().is_none() {
        return Ok(());
    }
    let who = (needs != Needs::Nothing).then(|| caller.tenant.clone());
    let name = who.as_ref().map_or("those who show no token", Tenant::as_str).to_owned();
    app.requests.0.take(who, rate, app.control.now()).map_err(|after| {
        let message = format!("{name}: {rate} requests a second are answered");
        ApiError::too_many("rate_limited", message, after)
    })
}
