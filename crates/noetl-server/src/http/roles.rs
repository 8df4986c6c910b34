//! Which roles may ask what: one table, a line per route. A route that is not in it answers nobody.

use axum::http::Method;

/// What a caller may do, as a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Roles(u8);

impl Roles {
    /// Reads whatever is not secret.
    pub(crate) const VIEWER: Self = Self(1);
    /// Writes playbooks and credentials, and starts what it wrote.
    pub(crate) const AUTHOR: Self = Self(1 << 1);
    /// Starts, stops and mends executions; looks after workers and subscriptions.
    pub(crate) const OPERATOR: Self = Self(1 << 2);
    /// Claims commands and reports about them.
    pub(crate) const WORKER: Self = Self(1 << 3);
    /// Everything but the internal routes.
    pub(crate) const ADMIN: Self = Self(1 << 4);
    /// The internal routes, which the internal token opens alone.
    pub(crate) const INTERNAL: Self = Self(1 << 5);

    /// Both.
    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// What whoever asks has where no token is needed.
    pub(crate) const fn everything() -> Self {
        Self::ADMIN
    }

    pub(crate) const fn holds_any_of(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The names, for messages.
    pub(crate) fn names(self) -> impl Iterator<Item = &'static str> {
        NAMES.into_iter().filter(move |(role, _)| self.holds_any_of(*role)).map(|(_, name)| name)
    }
}

const NAMES: [(Roles, &str); 6] = [
    (Roles::ADMIN, "admin"),
    (Roles::OPERATOR, "operator"),
    (Roles::AUTHOR, "author"),
    (Roles::VIEWER, "viewer"),
    (Roles::WORKER, "worker"),
    (Roles::INTERNAL, "internal"),
];

/// Who may ask for a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Nobody is asked who they are.
    Nothing,
    /// One of these roles; an admin has them all but the internal one.
    One(Roles),
}

impl Needs {
    /// Whether somebody with these roles may ask.
    pub(crate) fn allow(self, roles: Roles) -> bool {
        match self {
            Self::Nothing => true,
            Self::One(Roles::INTERNAL) => roles.holds_any_of(Roles::INTERNAL),
            Self::One(needed) => roles.holds_any_of(needed.and(Roles::ADMIN)),
        }
    }
}

/// Whoever works with executions and documents may look at them.
const LOOK: Needs =
    Needs::One(Roles::VIEWER.and(Roles::AUTHOR).and(Roles::OPERATOR).and(Roles::WORKER));
const WRITE: Needs = Needs::One(Roles::AUTHOR);
/// Workers start playbooks too: those their steps call.
const START: Needs = Needs::One(Roles::AUTHOR.and(Roles::OPERATOR).and(Roles::WORKER));
const OPERATE: Needs = Needs::One(Roles::OPERATOR);
const WORK: Needs = Needs::One(Roles::WORKER);
const RULE: Needs = Needs::One(Roles::ADMIN);
const INTERNAL: Needs = Needs::One(Roles::INTERNAL);

const GET: Method = Method::GET;
const POST: Method = Method::POST;
const DELETE: Method = Method::DELETE;

/// Every route, by what it is about.
#[rustfmt::skip]
pub(crate) const ROUTES: &[(Method, &str, Needs)] = &[
    (GET, "/health", Needs::Nothing),
    (GET, "/api/health", Needs::Nothing),
    (GET, "/metrics", Needs::Nothing),
    (GET, "/api/openapi.json", Needs::Nothing),

    (POST, "/api/catalog/register", WRITE),
    (POST, "/api/catalog/list", LOOK),
    (POST, "/api/catalog/resource", LOOK),

    (POST, "/api/execute", START),
    (GET, "/api/executions", LOOK),
    (GET, "/api/executions/{id}", LOOK),
    (GET, "/api/executions/{id}/status", LOOK),
    (GET, "/api/executions/{id}/events", LOOK),
    (POST, "/api/executions/{id}/cancel", OPERATE),
    (POST, "/api/executions/{id}/finalize", OPERATE),
    (POST, "/api/executions/{id}/answers/{command}", OPERATE),
    (GET, "/api/executions/{id}/cancellation-check", LOOK),
    (GET, "/api/replay/state", LOOK),

    (POST, "/api/events", WORK),
    (POST, "/api/events/batch", WORK),
    (GET, "/api/commands/{event_id}", WORK),
    (POST, "/api/commands/{event_id}/claim", WORK),
    (POST, "/api/worker/lease", WORK),
    (POST, "/api/worker/heartbeat", WORK),
    // Whoever looks after workers may enter and remove one by hand.
    (POST, "/api/worker/pool/register", ATTEND),
    (POST, "/api/worker/pool/heartbeat", WORK),
    (POST, "/api/worker/pool/deregister", ATTEND),
    (DELETE, "/api/worker/pool/deregister", ATTEND),
    (GET, "/api/worker/pools", LOOK),
    (GET, "/api/runtime/shard-info", LOOK),

    (GET, "/api/dashboard/stats", LOOK),
    (GET, "/api/dashboard/widgets", LOOK),
    (GET, "/api/status", LOOK),
    (GET, "/api/threads", LOOK),
    (GET, "/api/profiler/status", LOOK),
    (POST, "/api/profiler/memory/start", OPERATE),
    (POST, "/api/profiler/memory/stop", OPERATE),
    (GET, "/api/pool/status", LOOK),
    (GET, "/api/db/validate", LOOK),
    (POST, "/api/db/init", OPERATE),
    // Whoever may write to the database is above every other rule.
    (POST, "/api/postgres/execute", RULE),

    (GET, "/api/subscriptions", LOOK),
    (POST, "/api/subscriptions", SUBSCRIBE),
    (POST, "/api/subscriptions/register", SUBSCRIBE),
    (GET, "/api/subscriptions/{id}", LOOK),
    (POST, "/api/subscriptions/{id}/{action}", SUBSCRIBE),

    (GET, "/api/credentials", LOOK),
    (POST, "/api/credentials", WRITE),
    // What is secret is shown to workers and admins only; the handler sees to it.
    (GET, "/api/credentials/{identifier}", LOOK),
    (DELETE, "/api/credentials/{identifier}", WRITE),

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

const ATTEND: Needs = Needs::One(Roles::OPERATOR.and(Roles::WORKER));

/// The runtime of a subscription is a worker.
const SUBSCRIBE: Needs = Needs::One(Roles::OPERATOR.and(Roles::WORKER));

/// Who may ask for a route, by the pattern it matched.
pub(crate) fn needs(method: &Method, path: &str) -> Option<Needs> {
    // Whoever may read may ask how long the answer would be.
    let method = if *method == Method::HEAD { &GET } else { method };
    let found = ROUTES.iter().find(|(verb, known, _)| verb == method && *known == path);
    found.map(|(_, _, needs)| *needs)
}

/// The verbs a route has, for `Allow`.
pub(crate) fn verbs(path: &str) -> String {
    let listed = ROUTES.iter().filter(|(_, known, _)| *known == path);
    let mut verbs: Vec<&str> = listed.map(|(verb, _, _)| verb.as_str()).collect();
    if verbs.contains(&"GET") {
        verbs.push("HEAD");
    }
    verbs.join(",")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Routes that the document leaves out: itself, and a second name of a route.
    const UNDESCRIBED: [&str; 2] = ["/api/openapi.json", "/api/subscriptions/register"];

    #[test]
    fn the_table_and_the_document_name_the_same_routes() {
        let document = crate::router::document();
        let verbs = |item: &utoipa::openapi::PathItem| {
            let operations = [
                (Method::GET, item.get.is_some()),
                (Method::PUT, item.put.is_some()),
                (Method::POST, item.post.is_some()),
                (Method::DELETE, item.delete.is_some()),
                (Method::PATCH, item.patch.is_some()),
            ];
            operations.into_iter().filter(|(_, is)| *is).map(|(verb, _)| verb).collect::<Vec<_>>()
        };
        let described = document.paths.paths.iter();
        let described: BTreeSet<(String, String)> = described
            .flat_map(|(path, item)| {
                verbs(item).into_iter().map(|verb| (path.clone(), verb.to_string()))
            })
            .collect();
        let listed = ROUTES.iter().filter(|(_, path, _)| !UNDESCRIBED.contains(path));
        let listed: BTreeSet<(String, String)> =
            listed.map(|(verb, path, _)| ((*path).to_owned(), verb.to_string())).collect();
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
        let reads = ["/api/catalog/list", "/api/catalog/resource"];
        for (verb, path, needs) in ROUTES {
            if *verb != Method::GET && !reads.contains(path) {
                assert!(!needs.allow(Roles::VIEWER), "{verb} {path}");
            }
        }
    }
}
