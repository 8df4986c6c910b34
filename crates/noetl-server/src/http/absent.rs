//! Table of unsupported routes of published clients, each with an alternative.

use axum::http::Method;

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
