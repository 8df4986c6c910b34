//! Routes of published clients that this control plane doesn't support. They respond with an
//! alternative, so that clients don't mistake them for a wrong URL.

use axum::extract::MatchedPath;
use axum::http::{Method, StatusCode};

use crate::error::ApiError;

const GET: Method = Method::GET;
const POST: Method = Method::POST;

const MODEL: &str = "no language model is asked here; run a playbook with a tool that asks one";
const REGISTRY: &str =
    "models, datasets and releases are not indexed here; keep them in the catalog";
const REGIONS: &str = "there is one region; ask GET /api/credentials/{name}/sealed";
const TIERS: &str = "there are no storage tiers; read /api/ehdb/executions/{id}/events";
const LOGIN: &str =
    "sign in where your tokens are made; a token goes into the Authorization header";

/// Unsupported routes, each with an alternative.
#[rustfmt::skip]
pub(crate) const ABSENT: &[(Method, &str, &str)] = &[
    (POST, "/api/catalog/playbooks/generate/ai", MODEL),
    (POST, "/api/catalog/playbooks/explain/ai", MODEL),
    (POST, "/api/executions/{id}/analyze", MODEL),
    (POST, "/api/executions/{id}/analyze/ai", MODEL),
    (POST, "/api/internal/result-tier/gc", "results go with their execution: POST /api/internal/cleanup/purge"),
    (POST, "/api/internal/registry/register", REGISTRY),
    (GET, "/api/internal/registry/list", REGISTRY),
    (GET, "/api/internal/registry/resolve", REGISTRY),
    (POST, "/api/internal/cross-region/resolve", REGIONS),
    (GET, "/api/ehdb/events", TIERS),
    (GET, "/api/ehdb/tiers/{tier}", TIERS),
    (POST, "/api/auth/login", LOGIN),
    (POST, "/api/auth/check-playbook-access", LOGIN),
];

/// Responds with 501 and the alternative to an unsupported route.
pub(crate) async fn say(method: Method, path: MatchedPath) -> ApiError {
    let known = ABSENT.iter().find(|(verb, known, _)| *verb == method && *known == path.as_str());
    let hint = known.map_or("this is not built", |(_, _, hint)| hint);
    ApiError::with_status(StatusCode::NOT_IMPLEMENTED, "not_built", hint)
}
