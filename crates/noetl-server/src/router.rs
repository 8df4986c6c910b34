//! Routes and middleware of the HTTP API.

pub(crate) mod resources;
pub(crate) mod route_docs;

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::DefaultBodyLimit;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};
use tokio::sync::OnceCell;
use utoipa::OpenApi as _;
use utoipa::openapi::OpenApi;

use self::route_docs::{Routes, routes};
use crate::app::App;
use crate::http::openapi::{self, ApiDoc};
use crate::http::{
    access, authorize, counted, headers, limits, panics, placeholders, trace_context,
};
use crate::options::Options;
use crate::routes::executions::steer;
use crate::routes::{
    approvals, callback, catalog, cleanup, commands, completions, credentials, dashboard, database,
    events, execute, executions, grants, health, import, ingress, logs, metrics, outbox, page,
    pools, projection, replay, runtime, schedules, session, sign_in, stream, subscriptions, system,
    tokens, ui, why, worker_connect, workers,
};

/// Builds the router of all routes.
pub fn router(app: App) -> Router {
    let options = app.options.clone();
    // Built on the first request and cached as text, because the route needs no token.
    let text: Arc<OnceCell<Bytes>> = Arc::default();
    let openapi = move || {
        let (options, text) = (options.clone(), text.clone());
        async move {
            let write = move || Bytes::from(document(&options).to_json().unwrap_or_default());
            let made = async || tokio::task::spawn_blocking(write).await.unwrap_or_default();
            ([(CONTENT_TYPE, "application/json")], text.get_or_init(made).await.clone())
        }
    };
    resources::absent_routes(table(&app.options).serve())
        .route("/api/openapi.json", get(openapi))
        .route("/api/docs", get(page::page))
        .route("/", get(ui::page))
        .route("/icon.svg", get(ui::asset))
        .route("/assets/{*path}", get(ui::asset))
        // Path that published subscription runtimes use.
        .route("/api/subscriptions/register", post(subscriptions::register))
        // Path that published pages use without a gateway.
        .route("/api/auth/validate", post(session::validate))
        .route_layer(from_fn_with_state(app.clone(), authorize::check))
        .route_layer(from_fn_with_state(app.clone(), limits::bound))
        .fallback(ui::page_or_not_found)
        .layer(DefaultBodyLimit::max(app.options.body_limit))
        .layer(from_fn_with_state(app.clone(), counted::count))
        .layer(from_fn(placeholders::shown))
        .layer(from_fn(panics::caught))
        .layer(from_fn(headers::add))
        .layer(from_fn_with_state(app.clone(), access::guard))
        .layer(from_fn_with_state(app.clone(), trace_context::follow))
        .with_state(app)
}

/// Builds the OpenAPI document of all routes.
pub(crate) fn document(options: &Options) -> OpenApi {
    let mut whole = table(options).describe(ApiDoc::openapi());
    options.version.clone_into(&mut whole.info.version);
    openapi::say_who_may_ask(&mut whole);
    let paths = std::mem::take(&mut whole.paths.paths);
    whole.paths.paths =
        paths.into_iter().map(|(path, item)| (resources::shown(&path), item)).collect();
    whole
}

/// Lists the routes that are in the OpenAPI document.
fn table(options: &Options) -> Routes {
    Routes::new()
        .merge(health_routes(options))
        .merge(catalog_routes())
        .merge(resources::catalog_routes())
        .merge(execution_routes())
        .merge(worker_routes())
        .merge(resources::worker_routes())
        .merge(secret_routes())
        .merge(resources::secret_routes())
        .merge(subscription_routes())
        .merge(schedule_routes())
        .merge(token_routes())
        .merge(system_routes())
        .merge(internal_routes())
}

fn health_routes(options: &Options) -> Routes {
    let routes = Routes::new().routes(routes!(health::alive)).routes(routes!(health::health));
    match options.has_metrics {
        true => routes.routes(routes!(metrics::metrics)),
        false => routes,
    }
}

fn catalog_routes() -> Routes {
    Routes::new()
        .routes(routes!(catalog::register))
        .routes(routes!(catalog::list))
        .routes(routes!(catalog::resource))
}

fn execution_routes() -> Routes {
    Routes::new()
        .routes(routes!(execute::execute))
        .routes(routes!(execute::batch::execute_batch))
        .routes(routes!(executions::list))
        .routes(routes!(executions::watch::watch))
        .routes(routes!(executions::detail))
        .routes(routes!(executions::status))
        .routes(routes!(executions::events))
        .routes(routes!(why::why))
        .routes(routes!(stream::stream))
        .routes(routes!(logs::read, logs::append))
        .routes(routes!(steer::cancel))
        .routes(routes!(steer::stop))
        .routes(routes!(steer::finalize))
        .routes(routes!(steer::rerun))
        .routes(routes!(steer::fork))
        .routes(routes!(steer::retry))
        .routes(routes!(steer::cleanup))
        .routes(routes!(executions::answer))
        .routes(routes!(approvals::list))
        .routes(routes!(executions::cancellation_check))
        .routes(routes!(replay::state))
}

fn worker_routes() -> Routes {
    Routes::new()
        .routes(routes!(events::report))
        .routes(routes!(events::report_batch))
        .routes(routes!(commands::command))
        .routes(routes!(commands::claim))
        .routes(routes!(worker_connect::connect))
        .routes(routes!(workers::lease))
        .routes(routes!(workers::heartbeat))
        .routes(routes!(completions::report))
        .routes(routes!(pools::register))
        .routes(routes!(pools::heartbeat))
        .routes(routes!(pools::deregister, pools::deregister_posted))
        .routes(routes!(pools::list))
        .routes(routes!(pools::load))
        .routes(routes!(runtime::shard_info))
}

fn secret_routes() -> Routes {
    Routes::new()
        .routes(routes!(credentials::list, credentials::put))
        .routes(routes!(credentials::get, credentials::delete))
        .routes(routes!(credentials::sealed))
}

fn subscription_routes() -> Routes {
    Routes::new()
        .routes(routes!(subscriptions::list, subscriptions::register))
        .routes(routes!(subscriptions::get))
        .routes(routes!(subscriptions::act))
        .routes(routes!(subscriptions::log::events))
        .routes(routes!(subscriptions::running::lease))
        .routes(routes!(subscriptions::running::release))
        .routes(routes!(subscriptions::running::dead_letter))
        .routes(routes!(ingress::receive::receive))
        .routes(routes!(ingress::receive::receive_of_tenant))
}

fn schedule_routes() -> Routes {
    Routes::new()
        .routes(routes!(schedules::list, schedules::create))
        .routes(routes!(schedules::get, schedules::change, schedules::delete))
        .routes(routes!(schedules::pause))
        .routes(routes!(schedules::resume))
        .routes(routes!(schedules::run))
}

fn token_routes() -> Routes {
    Routes::new()
        .routes(routes!(tokens::create, tokens::list))
        .routes(routes!(grants::create, grants::list))
        .routes(routes!(grants::remove))
        .routes(routes!(tokens::revoke))
        .routes(routes!(tokens::whoami))
        .routes(routes!(sign_in::mode))
        .routes(routes!(sign_in::trade))
        .routes(routes!(sign_in::issue_code))
        .routes(routes!(sign_in::trade_code))
}

/// Lists the routes for dashboards, process state, and the database.
fn system_routes() -> Routes {
    Routes::new()
        .routes(routes!(dashboard::stats))
        .routes(routes!(dashboard::widgets))
        .routes(routes!(dashboard::activity))
        .routes(routes!(system::status))
        .routes(routes!(system::threads))
        .routes(routes!(system::profiler_status))
        .routes(routes!(system::profiler_start))
        .routes(routes!(system::profiler_stop))
        .routes(routes!(system::pool))
        .routes(routes!(database::execute))
        .routes(routes!(database::init))
        .routes(routes!(database::validate))
}

/// Lists the routes for system pools.
fn internal_routes() -> Routes {
    let large = DefaultBodyLimit::max(import::BODY_LIMIT);
    let intake = Routes::new()
        .routes(routes!(import::project))
        .routes(routes!(import::materialize))
        .layer(large);
    Routes::new()
        .routes(routes!(outbox::claim))
        .routes(routes!(outbox::mark_published))
        .routes(routes!(outbox::mark_failed))
        .routes(routes!(outbox::pending_count))
        .routes(routes!(projection::advance))
        .routes(routes!(cleanup::purge))
        .routes(routes!(ingress::get))
        .routes(routes!(callback::container))
        .merge(intake)
}
