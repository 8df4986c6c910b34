//! Which path leads where.

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};

use crate::app::App;
use crate::http::{access, panics};
use crate::routes::{
    catalog, commands, credentials, events, execute, executions, fallback, health, subscriptions,
};

/// All routes of the control plane.
pub fn router(app: App) -> Router {
    Router::new()
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
        .route("/api/executions/{id}/cancellation-check", get(executions::cancellation_check))
        .route("/api/events", post(events::report))
        .route("/api/events/batch", post(events::report_batch))
        .route("/api/commands/{event_id}", get(commands::command))
        .route("/api/commands/{event_id}/claim", post(commands::claim))
        .route("/api/subscriptions", get(subscriptions::list).post(subscriptions::register))
        .route("/api/subscriptions/register", post(subscriptions::register))
        .route("/api/subscriptions/{id}", get(subscriptions::get))
        .route("/api/subscriptions/{id}/{action}", post(subscriptions::act))
        .route("/api/credentials", get(credentials::list).post(credentials::put))
        .route("/api/credentials/{identifier}", get(credentials::get).delete(credentials::delete))
        .fallback(fallback::unknown_path)
        .method_not_allowed_fallback(fallback::wrong_verb)
        .layer(DefaultBodyLimit::max(app.options.body_limit))
        .layer(from_fn(panics::caught))
        .layer(from_fn_with_state(app.clone(), access::guard))
        .with_state(app)
}
