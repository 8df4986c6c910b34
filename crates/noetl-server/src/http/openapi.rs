//! Parts of the OpenAPI document that all routes share.

use std::collections::BTreeMap;

use axum::http::Method;
use noetl_api::ErrorBody;
use noetl_api::connection::{ServerMessage, WorkerMessage};
use utoipa::openapi::extensions::ExtensionsBuilder;
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Content, PathItem, RefOr, Response, ResponseBuilder};
use utoipa::{IntoResponses, OpenApi, PartialSchema};

use super::roles::{RequiredRole, needs};

/// OpenAPI document without paths, which the router adds.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "NoETL control plane",
        description = "Register playbooks, run them, and read what happened.",
    ),
    components(schemas(ErrorBody, ServerMessage, WorkerMessage)),
    tags(
        (name = "health", description = "Whether the control plane is well"),
        (name = "catalog", description = "Playbooks and other documents, by path and version"),
        (name = "executions", description = "Starting, reading, steering"),
        (name = "workers", description = "What workers ask and say"),
        (name = "credentials", description = "Secrets that steps use"),
        (name = "subscriptions", description = "Messages that become executions"),
        (name = "schedules", description = "Playbooks that are started by the clock"),
        (name = "tokens", description = "Who may ask, and what"),
        (name = "internal", description = "For system pools, behind the internal token"),
    )
)]
pub(crate) struct ApiDoc;

/// Error responses that every route can return.
pub(crate) struct ErrorResponses;

impl IntoResponses for ErrorResponses {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let failures = [
            ("400", "The request cannot be read"),
            ("401", "The token is missing or invalid"),
            ("403", "The caller may not ask this"),
            ("404", "What the request names is not there"),
            ("405", "The path has other verbs"),
            ("409", "Another one has it, or it is over"),
            ("413", "The body is too large"),
            ("415", "The body is not said to be JSON"),
            ("422", "The request can be read and makes no sense"),
            ("500", "A defect of the control plane"),
            ("503", "The store does not answer, or the route is switched off"),
        ];
        let response = |description: &str| {
            let body = Content::new(Some(ErrorBody::schema()));
            ResponseBuilder::new()
                .description(description)
                .content("application/json", body)
                .build()
        };
        failures
            .into_iter()
            .map(|(status, description)| (status.to_owned(), response(description).into()))
            .collect()
    }
}

/// Iterates over the operations of a path, by method.
pub(crate) fn operations(item: &mut PathItem) -> impl Iterator<Item = (Method, &mut Operation)> {
    let all = [
        (Method::GET, &mut item.get),
        (Method::PUT, &mut item.put),
        (Method::POST, &mut item.post),
        (Method::DELETE, &mut item.delete),
        (Method::PATCH, &mut item.patch),
    ];
    all.into_iter().filter_map(|(verb, operation)| Some((verb, operation.as_mut()?)))
}

/// Adds the required roles to every operation, from the table of roles.
pub(crate) fn say_who_may_ask(document: &mut utoipa::openapi::OpenApi) {
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer);
    let bearer = bearer.description(Some("A token; none is needed in open mode")).build();
    let basic = HttpBuilder::new().scheme(HttpAuthScheme::Basic);
    let basic = basic.description(Some("A token as the password; the name is ignored")).build();
    let components = document.components.get_or_insert_default();
    components.add_security_scheme(BEARER, SecurityScheme::Http(bearer));
    components.add_security_scheme(BASIC, SecurityScheme::Http(basic));
    for (path, item) in &mut document.paths.paths {
        for (verb, operation) in operations(item) {
            let needed = needs(&verb, path).unwrap_or(RequiredRole::Nothing);
            let roles: Vec<&str> = needed.roles().names().collect();
            if needed != RequiredRole::Nothing {
                let scopes: [&str; 0] = [];
                let either = [BEARER, BASIC].map(|name| SecurityRequirement::new(name, scopes));
                operation.security = Some(either.to_vec());
            }
            let extensions = ExtensionsBuilder::new().add("x-roles", roles);
            operation.extensions.get_or_insert_default().merge(extensions.build());
        }
    }
}

/// Name of the bearer security scheme in the document.
const BEARER: &str = "bearer";
/// Name of the Basic security scheme in the document.
const BASIC: &str = "basic";
