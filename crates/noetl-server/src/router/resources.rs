//! Routes of documents, secrets, variables, results, and objects.

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::Method;
use axum::routing::{get, post};

use super::route_docs::{Routes, routes};
use crate::app::App;
use crate::http::absent::ABSENT;
use crate::routes::{
    audit, catalog, content, ehdb, keychain, keys, objects, results, session, suites, unsupported,
    vars,
};

/// Lists the catalog routes beyond registering, listing, and reading.
pub(super) fn catalog_routes() -> Routes {
    Routes::new()
        .routes(routes!(catalog::batch::register))
        .routes(routes!(catalog::checks::validate))
        .routes(routes!(catalog::checks::validate_playbook))
        .routes(routes!(catalog::content::get, catalog::content::put))
        .routes(routes!(catalog::lists::paths))
        .routes(routes!(catalog::lists::versions))
        .routes(routes!(catalog::lists::agents))
        .routes(routes!(catalog::removal::delete))
        .routes(routes!(catalog::removal::restore))
        .routes(routes!(catalog::form::get))
        .routes(routes!(suites::get, suites::put, suites::delete))
}

/// Lists the routes of the keychain, encryption keys, secret audit, and sessions.
pub(super) fn secret_routes() -> Routes {
    Routes::new()
        .routes(routes!(keychain::list))
        .routes(routes!(keychain::get, keychain::put, keychain::delete))
        .routes(routes!(keys::status))
        .routes(routes!(keys::rotate))
        .routes(routes!(audit::list))
        .routes(routes!(session::validate))
}

pub(super) fn worker_routes() -> Routes {
    let large = Routes::new()
        .routes(routes!(results::put))
        .routes(routes!(objects::get, objects::put))
        .routes(routes!(objects::get_plugin, objects::put_plugin))
        .layer(DefaultBodyLimit::max(objects::BODY_LIMIT));
    // These routes stream the body and enforce their own limit.
    let streamed = Routes::new()
        .routes(routes!(content::get, content::put))
        .layer(DefaultBodyLimit::disable());
    Routes::new()
        .routes(routes!(vars::list, vars::set, vars::clear))
        .routes(routes!(vars::get, vars::delete))
        .routes(routes!(results::resolve))
        .routes(routes!(objects::cells))
        .routes(routes!(ehdb::index))
        .routes(routes!(ehdb::executions))
        .routes(routes!(ehdb::execution))
        .routes(routes!(ehdb::events))
        .merge(large)
        .merge(streamed)
}

/// Adds the routes that are not supported, which respond with an alternative.
pub(super) fn absent_routes(router: Router<App>) -> Router<App> {
    ABSENT.iter().fold(router, |router, (verb, path, _)| {
        let says = match *verb {
            Method::GET => get(unsupported::say),
            _ => post(unsupported::say),
        };
        router.route(path, says)
    })
}

/// Returns a path as the OpenAPI document shows it: without the syntax for parameters that may
/// contain slashes.
pub(crate) fn shown(path: &str) -> String {
    match path {
        "/api/catalog/{*path}" => "/api/catalog/{path}/ui_schema".to_owned(),
        other => other.replace("{*", "{"),
    }
}
