//! Tenant data of every route, and requests for it.
//!
//! `<kind>` is the name of the owner's data, or an unused name; `<asker>` is the tenant of the
//! caller.

/// A request of a route.
pub(super) struct RouteRequest {
    pub(super) path: &'static str,
    /// JSON; none when it is empty.
    pub(super) body: &'static str,
}

/// Relation of a route to tenants.
pub(super) enum TenantScope {
    /// Addresses data by name.
    Named(&'static [RouteRequest]),
    /// Lists data of the caller's tenant.
    Listed(&'static [RouteRequest]),
    /// Names that every tenant gives for itself: two have things of one name, and each its own.
    Own(&'static [RouteRequest]),
    /// As named, but the default tenant sees everybody's: it looks after what all share.
    LookedAfter(&'static [RouteRequest]),
    /// Neither accepts nor shows data of a tenant, for this reason.
    #[expect(dead_code, reason = "whoever adds a route has to give one")]
    Nothing(&'static str),
    /// Concerns resources shared by all tenants, and refuses all but the default one: `roles` tests
    /// that.
    Shared,
    /// Only the internal token opens it: `roles` walks that.
    Internal,
}

use TenantScope::{Internal, Listed, LookedAfter, Named, Nothing, Own, Shared};

const fn plain(path: &'static str) -> RouteRequest {
    RouteRequest { path, body: "" }
}

const fn with(path: &'static str, body: &'static str) -> RouteRequest {
    RouteRequest { path, body }
}

const DOCUMENT: &str = r#"{"content": "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: greet, path: <path>}\nworkflow:\n  - step: start\n    tool: {kind: noop}\n"}"#;
const DOCUMENTS: &str = r#"{"items": [{"content": "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: greet, path: <path>}\nworkflow:\n  - step: start\n    tool: {kind: noop}\n"}]}"#;
const CALLING: &str = r#"{"content": "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: a, path: a/calls}\nworkflow:\n  - step: start\n    tool: {kind: playbook, path: <path>}\n"}"#;
const EVENT: &str = r#"{"execution_id": "<execution>", "step": "start", "event_type": "command.completed", "worker_id": "w", "payload": {"command_id": "<command>", "result": {"status": "success", "context": {}}}}"#;
const EVENTS: &str = r#"{"execution_id": "<execution>", "worker_id": "w", "events": [{"step": "start", "event_type": "command.completed", "payload": {"command_id": "<command>", "result": {"status": "success", "context": {}}}}]}"#;
const LETTER: &str = r#"{"message_id": "m", "code": "c", "reason": "r", "attempts": 1, "headers": {}, "metadata": {}, "body_base64": ""}"#;
const WHAT: &str = r#"{"name": "<worker>"}"#;

/// Every route of the document.
#[rustfmt::skip]
pub(super) const TABLE: &[(&str, TenantScope)] = &[
    ("get /health", Nothing("says that it is there")),
    ("get /api/health", Nothing("says that it is there")),
    ("get /metrics", Nothing("numbers of the process")),

    ("post /api/catalog/register", Own(&[with("/api/catalog/register", DOCUMENT)])),
    ("post /api/catalog/register/batch", Own(&[with("/api/catalog/register/batch", DOCUMENTS)])),
    ("post /api/catalog/validate", Own(&[with("/api/catalog/validate", CALLING)])),
    ("post /api/catalog/playbooks/validate", Own(&[with("/api/catalog/playbooks/validate", CALLING)])),
    ("post /api/catalog/list", Listed(&[with("/api/catalog/list", "{}")])),
    ("post /api/catalog/agents/list", Listed(&[with("/api/catalog/agents/list", "{}")])),
    ("get /api/catalog/list/{kind}", Listed(&[plain("/api/catalog/list/playbook")])),
    ("post /api/catalog/resource", Named(&[
        with("/api/catalog/resource", r#"{"path": "<path>"}"#),
        with("/api/catalog/resource", r#"{"path": "<path>", "version": 1}"#),
        with("/api/catalog/resource", r#"{"catalog_id": "<catalog>"}"#),
    ])),
    ("get /api/catalog/playbook/content", Named(&[
        plain("/api/catalog/playbook/content?playbook_id=<path>"),
        plain("/api/catalog/playbook/content?playbook_id=<catalog>"),
    ])),
    ("put /api/catalog/playbook/content", Named(&[
        with("/api/catalog/playbook/content?playbook_id=<path>", DOCUMENT),
        with("/api/catalog/playbook/content?playbook_id=<catalog>", DOCUMENT),
    ])),
    ("get /api/catalog/versions", Named(&[plain("/api/catalog/versions?path=<path>")])),
    ("post /api/catalog/delete", Named(&[
        with("/api/catalog/delete", r#"{"path": "<path>"}"#),
        with("/api/catalog/delete", r#"{"path": "<path>", "version": "latest"}"#),
        with("/api/catalog/delete", r#"{"catalog_id": "<catalog>"}"#),
    ])),
    ("post /api/catalog/restore", Named(&[
        with("/api/catalog/restore", r#"{"path": "<path>"}"#),
        with("/api/catalog/restore", r#"{"catalog_id": "<catalog>"}"#),
    ])),
    ("get /api/catalog/{path}/ui_schema", Named(&[plain("/api/catalog/<path>/ui_schema")])),
    ("get /api/playbook-tests/suites/{id}", Named(&[plain("/api/playbook-tests/suites/<suite>")])),
    ("put /api/playbook-tests/suites/{id}", Own(&[
        with("/api/playbook-tests/suites/<suite>", r#"{"playbook_path": "<path>", "tests": [], "metadata": {}}"#),
    ])),
    ("delete /api/playbook-tests/suites/{id}", Named(&[plain("/api/playbook-tests/suites/<suite>")])),

    ("post /api/execute", Named(&[
        with("/api/execute", r#"{"path": "<path>"}"#),
        with("/api/execute", r#"{"catalog_id": "<catalog>"}"#),
    ])),
    ("post /api/execute/batch", Named(&[
        with("/api/execute/batch", r#"{"executions": [{"path": "<path>"}, {"catalog_id": "<catalog>"}]}"#),
    ])),
    ("get /api/executions", Listed(&[
        plain("/api/executions"),
        plain("/api/executions?text=owned"),
    ])),
    ("get /api/executions/stream", Listed(&[plain("/api/executions/stream")])),
    ("get /api/executions/{id}", Named(&[
        plain("/api/executions/<execution>"),
        plain("/api/executions/<execution>?page=1"),
    ])),
    ("get /api/executions/{id}/status", Named(&[plain("/api/executions/<execution>/status")])),
    ("get /api/executions/{id}/events", Named(&[plain("/api/executions/<execution>/events")])),
    ("get /api/executions/{id}/why", Named(&[plain("/api/executions/<execution>/why")])),
    ("get /api/executions/{id}/stream", Named(&[plain("/api/executions/<execution>/stream")])),
    ("get /api/executions/{id}/logs", Named(&[
        plain("/api/executions/<execution>/logs"),
        plain("/api/executions/<execution>/logs?command=<command>"),
    ])),
    ("post /api/executions/{id}/logs", Named(&[
        with("/api/executions/<execution>/logs", r#"{"command_id": "<command>", "lines": [{"text": "x"}]}"#),
    ])),
    ("post /api/executions/cleanup", Listed(&[
        with("/api/executions/cleanup", r#"{"older_than_minutes": 0, "dry_run": true}"#),
    ])),
    ("post /api/executions/{id}/cancel", Named(&[
        with("/api/executions/<execution>/cancel", "{}"),
        with("/api/executions/<execution>/cancel", r#"{"cascade": true}"#),
    ])),
    ("post /api/executions/{id}/stop", Named(&[with("/api/executions/<execution>/stop", "{}")])),
    ("post /api/executions/{id}/rerun", Named(&[with("/api/executions/<execution>/rerun", "{}")])),
    ("post /api/executions/{id}/fork", Named(&[
        with("/api/executions/<execution>/fork", "{}"),
        with("/api/executions/<execution>/fork", r#"{"at": "<event>"}"#),
    ])),
    ("post /api/executions/{id}/retry", Named(&[with("/api/executions/<execution>/retry", "{}")])),
    ("post /api/executions/{id}/finalize", Named(&[
        with("/api/executions/<execution>/finalize", r#"{"status": "COMPLETED"}"#),
    ])),
    ("post /api/executions/{id}/answers/{command}", Named(&[
        with("/api/executions/<asking>/answers/<asked>", r#"{"token": "<answer>", "data": {"approved": true}}"#),
    ])),
    ("get /api/executions/{id}/cancellation-check", Nothing("an execution that is unknown was not cancelled")),
    ("get /api/replay/state", Named(&[
        plain("/api/replay/state?execution_id=<execution>"),
        plain("/api/replay/state?execution_id=<execution>&resolve_payloads=true"),
    ])),
    ("get /api/approvals", Listed(&[plain("/api/approvals")])),

    ("get /api/ehdb", Nothing("says which routes there are")),
    ("get /api/ehdb/executions", Listed(&[plain("/api/ehdb/executions")])),
    ("get /api/ehdb/executions/{id}", Named(&[plain("/api/ehdb/executions/<execution>")])),
    ("get /api/ehdb/executions/{id}/events", Named(&[plain("/api/ehdb/executions/<execution>/events")])),

    ("post /api/events", Named(&[with("/api/events", EVENT)])),
    ("post /api/events/batch", Named(&[with("/api/events/batch", EVENTS)])),
    ("get /api/commands/{event_id}", Named(&[plain("/api/commands/<command>")])),
    ("post /api/commands/{event_id}/claim", Named(&[
        with("/api/commands/<command>/claim", r#"{"worker_id": "w"}"#),
        with("/api/commands/<command>/claim", r#"{"worker_id": "w", "dialect": "native"}"#),
    ])),
    ("get /api/worker/connect", Nothing("pushes the commands of the caller's tenant: `connection` walks that")),
    ("post /api/worker/lease", Listed(&[
        with("/api/worker/lease", r#"{"worker_id": "w", "max": 10, "wait_seconds": 0}"#),
    ])),
    ("post /api/worker/heartbeat", Nothing("a command that is another's is lost, as one that is nobody's")),
    ("post /api/worker/report", Named(&[
        with("/api/worker/report", r#"{"worker_id": "w", "ends": [{"execution_id": "<execution>", "event_id": "<command>", "data": {}}]}"#),
    ])),
    // Content is addressed by digest alone: a caller who knows the digest has the content or received
    // its reference.
    ("get /api/worker/content/{digest}", Nothing("a digest is known to who was told of it")),
    ("put /api/worker/content/{digest}", Nothing("the body is what the digest says, whoever sends it")),
    ("post /api/worker/pool/register", Own(&[with("/api/worker/pool/register", WHAT)])),
    ("post /api/worker/pool/heartbeat", Own(&[with("/api/worker/pool/heartbeat", WHAT)])),
    ("post /api/worker/pool/deregister", Named(&[
        with("/api/worker/pool/deregister", WHAT),
        with("/api/worker/pool/deregister", r#"{"name": "<worker>", "release": true}"#),
    ])),
    ("delete /api/worker/pool/deregister", Named(&[with("/api/worker/pool/deregister", WHAT)])),
    ("get /api/worker/pools", Listed(&[plain("/api/worker/pools")])),
    ("get /api/worker/load", Nothing("names workers of the caller's tenant; to the default one, all")),
    ("get /api/runtime/shard-info", Nothing("how the process is set up")),

    ("get /api/dashboard/stats", Listed(&[plain("/api/dashboard/stats")])),
    ("get /api/dashboard/widgets", Listed(&[plain("/api/dashboard/widgets")])),
    ("get /api/dashboard/activity", Nothing("its stretches move on with the clock; counts are those of the stats")),
    ("get /api/status", Nothing("how the process is doing")),
    ("get /api/threads", Nothing("how the process is doing")),
    ("get /api/profiler/status", Nothing("how the process is doing")),
    ("post /api/profiler/memory/start", Nothing("how the process is doing")),
    ("post /api/profiler/memory/stop", Nothing("how the process is doing")),
    ("get /api/pool/status", Nothing("how the process is doing")),
    ("get /api/db/validate", Nothing("the names of tables")),
    ("post /api/db/init", Nothing("the names of tables")),
    ("post /api/postgres/execute", Shared),

    ("get /api/subscriptions", Listed(&[plain("/api/subscriptions")])),
    ("post /api/subscriptions", Named(&[with("/api/subscriptions", r#"{"path": "<subscription_path>"}"#)])),
    ("get /api/subscriptions/{id}", Named(&[plain("/api/subscriptions/<subscription>")])),
    ("get /api/subscriptions/{id}/events", Named(&[plain("/api/subscriptions/<subscription>/events")])),
    ("post /api/subscriptions/{id}/{action}", Named(&[
        plain("/api/subscriptions/<subscription>/activate"),
        plain("/api/subscriptions/<subscription>/deactivate"),
    ])),
    ("post /api/subscriptions/{id}/lease", Named(&[
        with("/api/subscriptions/<subscription>/lease", r#"{"holder": "h", "ttl_secs": 30}"#),
    ])),
    ("post /api/subscriptions/{id}/release", Named(&[
        with("/api/subscriptions/<subscription>/release", r#"{"holder": "h"}"#),
    ])),
    ("post /api/subscriptions/{id}/dead-letters", Named(&[
        with("/api/subscriptions/<subscription>/dead-letters", LETTER),
    ])),
    ("post /ingress/{listener}", Nothing("listeners of the default tenant; senders are known by what a listener asks for")),
    ("post /ingress/{tenant}/{listener}", Named(&[plain("/ingress/<asker>/<listener>")])),

    ("get /api/schedules", Listed(&[plain("/api/schedules")])),
    ("post /api/schedules", Nothing("the playbook is found when the schedule runs, in the schedule's tenant")),
    ("get /api/schedules/{id}", Named(&[plain("/api/schedules/<schedule>")])),
    ("patch /api/schedules/{id}", Named(&[with("/api/schedules/<schedule>", r#"{"cron": "0 0 1 1 *"}"#)])),
    ("delete /api/schedules/{id}", Named(&[plain("/api/schedules/<schedule>")])),
    ("post /api/schedules/{id}/pause", Named(&[plain("/api/schedules/<schedule>/pause")])),
    ("post /api/schedules/{id}/resume", Named(&[plain("/api/schedules/<schedule>/resume")])),
    ("post /api/schedules/{id}/run", Named(&[plain("/api/schedules/<schedule>/run")])),

    ("get /api/credentials", Listed(&[plain("/api/credentials")])),
    ("post /api/credentials", Own(&[
        with("/api/credentials", r#"{"name": "<credential>", "type": "t", "data": {"a": "b"}}"#),
    ])),
    ("get /api/credentials/{identifier}", Named(&[
        plain("/api/credentials/<credential>"),
        plain("/api/credentials/<credential_id>"),
        plain("/api/credentials/<credential>?include_data=true"),
        plain("/api/credentials/<credential_id>?include_data=true"),
        plain("/api/credentials/<credential>?include_data=true&execution_id=<execution>"),
        plain("/api/credentials/<entry>?include_data=true&execution_id=<execution>"),
    ])),
    ("delete /api/credentials/{identifier}", Named(&[
        plain("/api/credentials/<credential>"),
        plain("/api/credentials/<credential_id>"),
    ])),
    ("get /api/credentials/{identifier}/sealed", Named(&[
        plain("/api/credentials/<credential>/sealed?worker_id=<worker>"),
        plain("/api/credentials/<credential>/sealed?worker_id=<worker>&execution_id=<execution>"),
    ])),
    ("get /api/keychain/catalog/{catalog_id}", Named(&[plain("/api/keychain/catalog/<catalog>")])),
    ("get /api/keychain/{catalog_id}/{name}", Named(&[plain("/api/keychain/<catalog>/<entry>")])),
    ("post /api/keychain/{catalog_id}/{name}", Own(&[
        with("/api/keychain/<catalog>/<entry>", r#"{"data": {"a": "b"}}"#),
    ])),
    ("delete /api/keychain/{catalog_id}/{name}", Named(&[plain("/api/keychain/<catalog>/<entry>")])),
    ("get /api/internal/wallet/key-status", Shared),
    ("post /api/internal/wallet/rotate-kek", Shared),
    ("get /api/internal/secret-audit", Listed(&[plain("/api/internal/secret-audit")])),

    ("get /api/tokens", Listed(&[plain("/api/tokens")])),
    ("post /api/tokens", Nothing("makes one for the caller's tenant, under an id of its own")),
    ("delete /api/tokens/{id}", Named(&[plain("/api/tokens/<token>")])),
    ("get /api/grants", Listed(&[plain("/api/grants")])),
    ("post /api/grants", Nothing("makes one for the caller's tenant, under an id of its own")),
    ("delete /api/grants/{id}", Named(&[plain("/api/grants/<grant>")])),
    ("get /api/whoami", Nothing("says who asks")),
    ("post /api/auth/session/validate", Nothing("whoever shows a token hears whether it is good")),
    ("get /api/auth/mode", Nothing("says how callers are known")),
    ("post /api/auth/oidc/token", Nothing("whoever signs in has no tenant yet")),
    ("post /api/auth/code", Nothing("a code signs in to the tenant of its creator")),
    ("post /api/auth/codes", Nothing("makes a code for the caller's tenant")),

    ("get /api/vars/{execution_id}", Named(&[plain("/api/vars/<execution>")])),
    ("post /api/vars/{execution_id}", Own(&[with("/api/vars/<execution>", r#"{"rows": "x"}"#)])),
    ("delete /api/vars/{execution_id}", Named(&[plain("/api/vars/<execution>")])),
    ("get /api/vars/{execution_id}/{name}", Named(&[plain("/api/vars/<execution>/rows")])),
    ("delete /api/vars/{execution_id}/{name}", Named(&[plain("/api/vars/<execution>/rows")])),
    ("put /api/result/{execution_id}", Own(&[
        with("/api/result/<execution>", r#"{"name": "rows", "data": {}}"#),
    ])),
    ("get /api/result/resolve", Named(&[plain("/api/result/resolve?ref=<result>")])),
    ("get /api/internal/objects/{key}", LookedAfter(&[plain("/api/internal/objects/<object>")])),
    ("put /api/internal/objects/{key}", LookedAfter(&[with("/api/internal/objects/<object>", r#""x""#)])),
    ("get /api/internal/plugins/{path}", Nothing("modules are everybody's; only the default tenant puts them there")),
    ("post /api/internal/plugins/{path}", Shared),
    ("get /api/internal/cells", Nothing("how the process is set up")),

    ("post /api/internal/outbox/claim", Internal),
    ("post /api/internal/outbox/mark-published", Internal),
    ("post /api/internal/outbox/mark-failed", Internal),
    ("get /api/internal/outbox/pending-count", Internal),
    ("post /api/internal/events/project", Internal),
    ("post /api/internal/events/materialize", Internal),
    ("post /api/internal/projection/advance", Internal),
    ("post /api/internal/cleanup/purge", Internal),
    ("get /api/internal/ingress/{listener}", Internal),
    ("post /api/internal/container-callback/{execution_id}/{step}", Internal),
];

/// A start below an execution of another tenant: it is one's own, and shows nothing of that execution.
pub(super) const BELOW: &[(&str, RouteRequest)] = &[
    (
        "post /api/execute",
        with("/api/execute", r#"{"path": "tests/greet", "parent_execution_id": "<execution>"}"#),
    ),
    (
        "post /api/execute",
        with(
            "/api/execute",
            r#"{"path": "tests/greet", "parent_execution_id": "<execution>", "dedup": {"key": "k", "window_secs": 60}}"#,
        ),
    ),
    (
        "post /api/execute/batch",
        with(
            "/api/execute/batch",
            r#"{"executions": [{"path": "tests/greet", "parent_execution_id": "<execution>"}]}"#,
        ),
    ),
];
