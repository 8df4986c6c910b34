//! Which path leads where.

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};

use crate::app::App;
use crate::http::{access, counted, internal, panics};
use crate::routes::{
    catalog, cleanup, commands, credentials, events, execute, executions, fallback, health,
    ingress, intake, metrics, outbox, projection, replay, runtime, subscriptions,
};

/// All routes of the control plane.
pub fn router(app: App) -> Router {
    let open = Router::new()
        .route("/health", get(health::alive))
        .route("/api/health", get(health::health))
        .route("/api/catalog/register", post(catalog::register))
        .route("/api/catalog/list", post(catalog::list))
        .route("/api/catalog/resource", post(catalog::resource))
        .route("/api/execute", post(execute::execute))
        .route("/api/executions", get(executions::list))
        .route("/api/executions/{id}", get(executions::detail))
        .route("/api/executions/{id}/status", get(executions::status))
        .route("/api/executions/{id}/events", get(executions::events))
        .route("/api/executions/{id}/cancel", post(executions::cancel))
        .route("/api/executions/{id}/finalize", post(executions::finalize))
        .route("/api/executions/{id}/answers/{command}", post(executions::answer))
        .route("/api/executions/{id}/cancellation-check", get(executions::cancellation_check))
        .route("/api/events", post(events::report))
        .route("/api/events/batch", post(events::report_batch))
        .route("/api/commands/{event_id}", get(commands::command))
        .route("/api/commands/{event_id}/claim", post(commands::claim))
        .route("/api/replay/state", get(replay::state))
        .route("/api/subscriptions", get(subscriptions::list).post(subscriptions::register))
        .route("/api/subscriptions/register", post(subscriptions::register))
        .route("/api/subscriptions/{id}", get(subscriptions::get))
        .route("/api/subscriptions/{id}/{action}", post(subscriptions::act))
        .route("/api/credentials", get(credentials::list).post(credentials::put))
        .route("/api/credentials/{identifier}", get(credentials::get).delete(credentials::delete))
        .route("/api/runtime/shard-info", get(runtime::shard_info));
    let open = match app.options.has_metrics {
        true => open.route("/metrics", get(metrics::metrics)),
        false => open,
    };
    open.merge(internal_routes(&app))
        .fallback(fallback::unknown_path)
        .method_not_allowed_fallback(fallback::wrong_verb)
        .layer(DefaultBodyLimit::max(app.options.body_limit))
        .layer(from_fn_with_state(app.clone(), counted::count))
        .layer(from_fn(panics::caught))
        .layer(from_fn_with_state(app.clone(), access::guard))
        .with_state(app)
}

/// What only system pools may ask. The gate comes before anything of a body is read.
fn internal_routes(app: &App) -> Router<App> {
    let large = DefaultBodyLimit::max(intake::BODY_LIMIT);
    Router::new()
        .route("/api/internal/outbox/claim", post(outbox::claim))
        .route("/api/internal/outbox/mark-published", post(outbox::mark_published))
        .route("/api/internal/outbox/mark-failed", post(outbox::mark_failed))
        .route("/api/internal/outbox/pending-count", get(outbox::pending_count))
        .route("/api/internal/events/project", post(intake::project).layer(large))
        .route("/api/internal/events/materialize", post(intake::materialize).layer(large))
        .route("/api/internal/projection/advance", post(projection::advance))
        .route("/api/internal/cleanup/purge", post(cleanup::purge))
        .route("/api/internal/ingress/{listener}", get(ingress::get))
        .route_layer(from_fn_with_state(app.clone(), internal::gate))
}
