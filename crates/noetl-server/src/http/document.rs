//! What the OpenAPI document says of every route.

use std::collections::BTreeMap;

use noetl_api::ErrorBody;
use utoipa::openapi::{Content, RefOr, Response, ResponseBuilder};
use utoipa::{IntoResponses, OpenApi, PartialSchema};

/// The frame of the document; the router adds the routes.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "NoETL control plane",
        description = "Register playbooks, run them, and read what happened.",
    ),
    components(schemas(ErrorBody)),
    tags(
        (name = "health", description = "Whether the control plane is well"),
        (name = "catalog", description = "Playbooks and other documents, by path and version"),
        (name = "executions", description = "Starting, reading, steering"),
        (name = "workers", description = "What workers ask and say"),
        (name = "credentials", description = "What steps need to know and nobody else"),
        (name = "tokens", description = "Who may ask"),
        (name = "subscriptions", description = "Messages that become executions"),
        (name = "internal", description = "For system pools, behind the internal token"),
    )
)]
pub(crate) struct Document;

/// How any request can fail.
pub(crate) struct Failures;

impl IntoResponses for Failures {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let failures = [
            ("400", "The request cannot be read"),
            ("401", "Nobody is known by this token"),
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
