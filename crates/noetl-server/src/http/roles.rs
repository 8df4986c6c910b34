//! Roles that each route requires: one table with a line per route. A route that is not in the
//! table is closed to all callers.

use axum::http::Method;
pub(crate) use noetl_access::{RequiredRole, Roles};

use super::absent::ABSENT;

/// Reads of executions and documents: roles that work with them, and system pools.
const LOOK: RequiredRole =
    RequiredRole::One(Roles::VIEWER.and(Roles::AUTHOR).and(Roles::OPERATOR).and(Roles::INTERNAL));
/// Reads that a worker needs to run a command or a subscription.
const CONSULT: RequiredRole =
    RequiredRole::One(Roles::VIEWER.and(Roles::AUTHOR).and(Roles::OPERATOR).and(Roles::WORKER));
/// Reruns, forks, and retries of an execution.
const REPEAT: RequiredRole =
    RequiredRole::One(Roles::AUTHOR.and(Roles::OPERATOR).and(Roles::INTERNAL));
const WRITE: RequiredRole = RequiredRole::One(Roles::AUTHOR);
/// Starts of executions. Workers start the playbooks that their steps call.
const START: RequiredRole =
    RequiredRole::One(Roles::AUTHOR.and(Roles::OPERATOR).and(Roles::WORKER));
const OPERATE: RequiredRole = RequiredRole::One(Roles::OPERATOR);
const WORK: RequiredRole = RequiredRole::One(Roles::WORKER);
const ADMIN: RequiredRole = RequiredRole::One(Roles::ADMIN);
const INTERNAL: RequiredRole = RequiredRole::One(Roles::INTERNAL);

/// Path prefix of routes that authenticate the caller before any other response.
const INTERNAL_PREFIX: &str = "/api/internal/";

const GET: Method = Method::GET;
const POST: Method = Method::POST;
const PUT: Method = Method::PUT;
const DELETE: Method = Method::DELETE;
const PATCH: Method = Method::PATCH;

/// All routes with the roles they require, by subject.
#[rustfmt::skip]
pub(crate) const ROUTES: &[(Method, &str, RequiredRole)] = &[
    (GET, "/", RequiredRole::Nothing),
    (GET, "/icon.svg", RequiredRole::Nothing),
    (GET, "/assets/{*path}", RequiredRole::Nothing),
    (GET, "/health", RequiredRole::Nothing),
    (GET, "/api/health", RequiredRole::Nothing),
    (GET, "/metrics", RequiredRole::Nothing),
    (GET, "/api/openapi.json", RequiredRole::Nothing),
    (GET, "/api/docs", RequiredRole::Nothing),

    (POST, "/api/catalog/register", WRITE),
    (POST, "/api/catalog/list", LOOK),
    (POST, "/api/catalog/resource", CONSULT),

    (POST, "/api/catalog/register/batch", WRITE),
    (POST, "/api/catalog/validate", LOOK),
    (POST, "/api/catalog/playbooks/validate", LOOK),
    (GET, "/api/catalog/playbook/content", LOOK),
    (PUT, "/api/catalog/playbook/content", WRITE),
    (GET, "/api/catalog/list/{kind}", LOOK),
    (GET, "/api/catalog/versions", LOOK),
    (POST, "/api/catalog/agents/list", LOOK),
    (POST, "/api/catalog/delete", WRITE),
    (POST, "/api/catalog/restore", WRITE),
    (GET, "/api/catalog/{*path}", LOOK),
    (GET, "/api/playbook-tests/suites/{*id}", LOOK),
    (PUT, "/api/playbook-tests/suites/{*id}", WRITE),
    (DELETE, "/api/playbook-tests/suites/{*id}", WRITE),

    (POST, "/api/execute", START),
    (POST, "/api/execute/batch", START),
    (GET, "/api/executions", LOOK),
    (GET, "/api/executions/stream", LOOK),
    (GET, "/api/executions/{id}", CONSULT),
    (GET, "/api/executions/{id}/status", CONSULT),
    (GET, "/api/executions/{id}/events", LOOK),
    (GET, "/api/executions/{id}/why", LOOK),
    (GET, "/api/executions/{id}/stream", LOOK),
    (GET, "/api/executions/{id}/logs", LOOK),
    (POST, "/api/executions/{id}/logs", WORK),
    (POST, "/api/executions/cleanup", OPERATE),
    (POST, "/api/executions/{id}/cancel", OPERATE),
    (POST, "/api/executions/{id}/stop", OPERATE),
    (POST, "/api/executions/{id}/rerun", REPEAT),
    (POST, "/api/executions/{id}/fork", REPEAT),
    (POST, "/api/executions/{id}/retry", REPEAT),
    (POST, "/api/executions/{id}/finalize", OPERATE),
    (POST, "/api/executions/{id}/answers/{command}", OPERATE),
    (GET, "/api/executions/{id}/cancellation-check", CONSULT),
    (GET, "/api/replay/state", LOOK),
    (GET, "/api/approvals", LOOK),

    (GET, "/api/ehdb", LOOK),
    (GET, "/api/ehdb/executions", LOOK),
    (GET, "/api/ehdb/executions/{id}", LOOK),
    (GET, "/api/ehdb/executions/{id}/events", LOOK),

    (POST, "/api/events", WORK),
    (POST, "/api/events/batch", WORK),
    (GET, "/api/commands/{event_id}", WORK),
    (POST, "/api/commands/{event_id}/claim", WORK),
    (GET, "/api/worker/connect", WORK),
    (POST, "/api/worker/lease", WORK),
    (POST, "/api/worker/heartbeat", WORK),
    (POST, "/api/worker/report", WORK),
    (GET, "/api/worker/content/{digest}", WORK),
    (PUT, "/api/worker/content/{digest}", WORK),
    // Operators may register and deregister a worker by hand.
    (POST, "/api/worker/pool/register", ATTEND),
    (POST, "/api/worker/pool/heartbeat", WORK),
    (POST, "/api/worker/pool/deregister", ATTEND),
    (DELETE, "/api/worker/pool/deregister", ATTEND),
    (GET, "/api/worker/pools", LOOK),
    (GET, "/api/worker/load", LOOK),
    (GET, "/api/runtime/shard-info", CONSULT),

    (GET, "/api/dashboard/stats", LOOK),
    (GET, "/api/dashboard/widgets", LOOK),
    (GET, "/api/dashboard/activity", LOOK),
    (GET, "/api/status", LOOK),
    (GET, "/api/threads", LOOK),
    (GET, "/api/profiler/status", LOOK),
    (POST, "/api/profiler/memory/start", OPERATE),
    (POST, "/api/profiler/memory/stop", OPERATE),
    (GET, "/api/pool/status", LOOK),
    (GET, "/api/db/validate", LOOK),
    (POST, "/api/db/init", OPERATE),
    // SQL access bypasses every other permission.
    (POST, "/api/postgres/execute", RequiredRole::Whole(Roles::ADMIN)),

    (GET, "/api/subscriptions", CONSULT),
    (POST, "/api/subscriptions", SUBSCRIBE),
    (POST, "/api/subscriptions/register", SUBSCRIBE),
    (GET, "/api/subscriptions/{id}", CONSULT),
    (GET, "/api/subscriptions/{id}/events", LOOK),
    (POST, "/api/subscriptions/{id}/{action}", SUBSCRIBE),
    (POST, "/api/subscriptions/{id}/lease", SUBSCRIBE),
    (POST, "/api/subscriptions/{id}/release", SUBSCRIBE),
    (POST, "/api/subscriptions/{id}/dead-letters", SUBSCRIBE),
    // The listener's own verification authenticates senders.
    (POST, "/ingress/{listener}", RequiredRole::Nothing),
    (POST, "/ingress/{tenant}/{listener}", RequiredRole::Nothing),

    (GET, "/api/schedules", LOOK),
    (POST, "/api/schedules", SCHEDULE),
    (GET, "/api/schedules/{id}", LOOK),
    (PATCH, "/api/schedules/{id}", SCHEDULE),
    (DELETE, "/api/schedules/{id}", SCHEDULE),
    (POST, "/api/schedules/{id}/pause", SCHEDULE),
    (POST, "/api/schedules/{id}/resume", SCHEDULE),
    (POST, "/api/schedules/{id}/run", SCHEDULE),

    (GET, "/api/credentials", LOOK),
    (POST, "/api/credentials", WRITE),
    // Secret values are for admins, and for workers with a leased command that names the
    // credential; the handler checks this.
    (GET, "/api/credentials/{identifier}", CONSULT),
    (DELETE, "/api/credentials/{identifier}", WRITE),

    (GET, "/api/tokens", ADMIN),
    (POST, "/api/tokens", ADMIN),
    (DELETE, "/api/tokens/{id}", ADMIN),
    (GET, "/api/whoami", CONSULT),
    (GET, "/api/grants", LOOK),
    (POST, "/api/grants", ADMIN),
    (DELETE, "/api/grants/{id}", ADMIN),

    (GET, "/api/credentials/{identifier}/sealed", WORK),
    (GET, "/api/keychain/catalog/{catalog_id}", LOOK),
    (GET, "/api/keychain/{catalog_id}/{name}", WORK),
    (POST, "/api/keychain/{catalog_id}/{name}", WORK),
    (DELETE, "/api/keychain/{catalog_id}/{name}", WORK),
    (GET, "/api/internal/wallet/key-status", KEEP),
    (POST, "/api/internal/wallet/rotate-kek", KEEP),
    (GET, "/api/internal/secret-audit", ADMINISTER),

    // The response says only whether the presented token is valid.
    (POST, "/api/auth/session/validate", RequiredRole::Nothing),
    (POST, "/api/auth/validate", RequiredRole::Nothing),
    // Routes for callers that have no token yet.
    (GET, "/api/auth/mode", RequiredRole::Nothing),
    (POST, "/api/auth/oidc/token", RequiredRole::Nothing),
    (POST, "/api/auth/code", RequiredRole::Nothing),
    (POST, "/api/auth/codes", ADMIN),

    (GET, "/api/vars/{execution_id}", CONSULT),
    (POST, "/api/vars/{execution_id}", SUBSCRIBE),
    (DELETE, "/api/vars/{execution_id}", SUBSCRIBE),
    (GET, "/api/vars/{execution_id}/{name}", CONSULT),
    (DELETE, "/api/vars/{execution_id}/{name}", SUBSCRIBE),
    (PUT, "/api/result/{execution_id}", WORK),
    (GET, "/api/result/resolve", CONSULT),
    // Objects and modules don't belong to a tenant. Published workers request them without the
    // internal token.
    (GET, "/api/internal/objects/{*key}", SHARE),
    (PUT, "/api/internal/objects/{*key}", SHARE),
    (GET, "/api/internal/plugins/{*path}", SHARE),
    // Workers run the modules that are stored here.
    (POST, "/api/internal/plugins/{*path}", INSTALL),
    (GET, "/api/internal/cells", SHARE),

    (POST, "/api/internal/outbox/claim", INTERNAL),
    (POST, "/api/internal/outbox/mark-published", INTERNAL),
    (POST, "/api/internal/outbox/mark-failed", INTERNAL),
    (GET, "/api/internal/outbox/pending-count", INTERNAL),
    (POST, "/api/internal/events/project", INTERNAL),
    (POST, "/api/internal/events/materialize", INTERNAL),
    (POST, "/api/internal/projection/advance", INTERNAL),
    (POST, "/api/internal/cleanup/purge", INTERNAL),
    (GET, "/api/internal/ingress/{listener}", INTERNAL),
    (POST, "/api/internal/container-callback/{execution_id}/{step}", INTERNAL),
];

/// Data that workers share with each other and with system pools.
const SHARE: RequiredRole = RequiredRole::One(Roles::WORKER.and(Roles::INTERNAL));
const INSTALL: RequiredRole = RequiredRole::Whole(Roles::OPERATOR.and(Roles::INTERNAL));
const KEEP: RequiredRole = RequiredRole::Whole(Roles::ADMIN.and(Roles::INTERNAL));
const ADMINISTER: RequiredRole = RequiredRole::One(Roles::ADMIN.and(Roles::INTERNAL));
const ATTEND: RequiredRole = RequiredRole::One(Roles::OPERATOR.and(Roles::WORKER));

/// Schedules: the same roles that may start a playbook by hand.
const SCHEDULE: RequiredRole = RequiredRole::One(Roles::AUTHOR.and(Roles::OPERATOR));

/// Subscriptions and variables: operators, and the workers that run them.
const SUBSCRIBE: RequiredRole = RequiredRole::One(Roles::OPERATOR.and(Roles::WORKER));

/// Returns the roles that a route pattern requires, or `None` if the table has no such route.
pub(crate) fn needs(method: &Method, path: &str) -> Option<RequiredRole> {
    // `HEAD` requires the same roles as `GET`.
    let method = if *method == Method::HEAD { &GET } else { method };
    let found = ROUTES.iter().find(|(verb, known, _)| verb == method && *known == path);
    let absent = || ABSENT.iter().any(|(verb, known, _)| verb == method && *known == path);
    found.map(|(_, _, needs)| *needs).or_else(|| absent().then(|| absent_needs(path)))
}

/// Returns the roles that see that a route is unsupported: all callers, except on internal paths.
fn absent_needs(path: &str) -> RequiredRole {
    if path.starts_with(INTERNAL_PREFIX) { INTERNAL } else { RequiredRole::Nothing }
}

/// Returns the roles that may learn the methods of an internal path: those of its first route in
/// the table. Returns `None` for other paths, whose methods are public.
pub(crate) fn needs_of_verbs(path: &str) -> Option<RequiredRole> {
    if !path.starts_with(INTERNAL_PREFIX) {
        return None;
    }
    let listed = ROUTES.iter().find(|(_, known, _)| *known == path);
    Some(listed.map_or(INTERNAL, |(_, _, needs)| *needs))
}

/// Returns the methods of a route, for the `Allow` header.
pub(crate) fn verbs(path: &str) -> String {
    let listed = ROUTES.iter().filter(|(_, known, _)| *known == path);
    let absent = ABSENT.iter().filter(|(_, known, _)| *known == path);
    let listed = listed.map(|(verb, _, _)| verb);
    let all = listed.chain(absent.map(|(verb, _, _)| verb));
    let mut verbs: Vec<&str> = all.map(Method::as_str).collect();
    if verbs.contains(&"GET") {
        verbs.push("HEAD");
    }
    verbs.join(",")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::http::openapi::operations;
    use crate::router::resources::shown;

    /// Routes that the document leaves out: itself, its page, the web UI, and second names of routes.
    const UNDESCRIBED: [&str; 7] = [
        "/",
        "/icon.svg",
        "/assets/{*path}",
        "/api/openapi.json",
        "/api/docs",
        "/api/subscriptions/register",
        "/api/auth/validate",
    ];

    #[test]
    fn the_table_and_the_document_name_the_same_routes() {
        let document = crate::router::document(&crate::options::Options::default());
        let mut described = BTreeSet::new();
        for (path, mut item) in document.paths.paths {
            for (verb, _) in operations(&mut item) {
                described.insert((path.clone(), verb.to_string()));
            }
        }
        let listed = ROUTES.iter().filter(|(_, path, _)| !UNDESCRIBED.contains(path));
        let listed: BTreeSet<(String, String)> =
            listed.map(|(verb, path, _)| (shown(path), verb.to_string())).collect();
        assert_eq!(listed, described);
    }

    #[test]
    fn an_admin_may_ask_everything_but_the_internal_routes() {
        for (_, path, needs) in ROUTES {
            assert_eq!(needs.allow(Roles::ADMIN), *needs != INTERNAL, "{path}");
        }
    }

    #[test]
    fn a_viewer_changes_nothing() {
        let reads = [
            "/api/catalog/list",
            "/api/catalog/resource",
            "/api/catalog/agents/list",
            "/api/catalog/validate",
            "/api/catalog/playbooks/validate",
            "/api/auth/session/validate",
            "/api/auth/validate",
            // Whoever signs in changes nothing here.
            "/api/auth/oidc/token",
            "/api/auth/code",
        ];
        for (verb, path, needs) in ROUTES {
            let is_ingress = path.starts_with("/ingress/");
            if *verb != Method::GET && !reads.contains(path) && !is_ingress {
                assert!(!needs.allow(Roles::VIEWER), "{verb} {path}");
            }
        }
    }
}
