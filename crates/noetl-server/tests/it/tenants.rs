//! Every route with pairs of tenants: for a token of another tenant, a tenant's data doesn't exist
//! and stays unchanged.
//!
//! [`table`] describes the use of tenants by every route of the OpenAPI document; a missing route
//! fails the test. Responses about the owner's data are compared with responses about missing data,
//! so that any difference in status, code, or text is detected.

mod owned;
mod rows;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use noetl_secrets::Role;
use noetl_server::{Auth, InternalToken, Options};
use noetl_store_sqlite::SqliteStore;
use noetl_test_app::TestApp;
use reqwest::Method;
use serde_json::Value;
use tempfile::TempDir;

use self::owned::{CANARY, Names};
use self::rows::Rows;
use self::table::{BELOW, RouteRequest, TABLE, TenantScope};
use crate::api::{GREET, TOKEN, ask, get, post, shown};
use crate::roles::token;
use crate::stores::key;

/// A caller with a token of its tenant.
struct Caller {
    tenant: &'static str,
    bearer: String,
}

impl Caller {
    async fn new(app: &TestApp, tenant: &'static str) -> Self {
        // An admin may ask whatever is not internal.
        Self { tenant, bearer: token(app, tenant, Role::Admin).await }
    }

    /// Status and body, without what differs from run to run; of what has no end, the first part.
    async fn asks(
        &self,
        app: &TestApp,
        verb: &str,
        asked: &RouteRequest,
        names: &Names,
    ) -> (u16, String) {
        let fill = |text: &str| names.fill(text).replace("<asker>", self.tenant);
        let verb: Method = verb.to_uppercase().parse().expect("a verb");
        let mut request = ask(app, verb, &fill(asked.path)).header("authorization", &self.bearer);
        if !asked.body.is_empty() {
            request = request.header("content-type", "application/json").body(fill(asked.body));
        }
        let mut response = request.send().await;
        let status = response.status().as_u16();
        let kind = response.headers().get("content-type").cloned();
        let is_endless = kind.is_some_and(|kind| kind == "text/event-stream");
        let text = match is_endless {
            true => response.chunk().await.expect("a first part").unwrap_or_default().to_vec(),
            false => response.bytes().await.expect("a body").to_vec(),
        };
        let text = String::from_utf8_lossy(&text).into_owned();
        (status, names.hide(&text))
    }
}

/// A server, one who owns and one who does not.
struct TenantPair {
    app: TestApp,
    rows: Rows,
    owner: Caller,
    stranger: Caller,
    wrong: Vec<String>,
    _directory: TempDir,
}

impl TenantPair {
    async fn new(owner: &'static str, stranger: &'static str) -> Self {
        let directory = TempDir::new().expect("a directory");
        let file = directory.path().join("noetl.db");
        let store = SqliteStore::open(noetl_store_sqlite::Options::file(&file)).expect("a store");
        let internal_token = InternalToken::read_by(|| Some(TOKEN.to_owned()));
        let options = Options {
            auth: Auth::Token,
            allow_any_host: true,
            internal_token,
            ..Options::default()
        };
        let app = TestApp::builder().slots(0).over(Arc::new(store)).encryption_key(key());
        let app = app.options(options).start().await;
        let owner = Caller::new(&app, owner).await;
        let stranger = Caller::new(&app, stranger).await;
        // Each has one of its own to start.
        for asker in [&owner, &stranger] {
            let body = serde_json::json!({ "content": GREET }).to_string();
            let asked = post(&app, "/api/catalog/register", body);
            assert_eq!(asked.header("authorization", &asker.bearer).answer().await.0, 200);
        }
        let rows = Rows::open(&file, owner.tenant);
        Self { app, rows, owner, stranger, wrong: Vec::new(), _directory: directory }
    }

    /// Whether a route is about what the default tenant looks after for everybody.
    fn is_looked_after(&self, means: &TenantScope) -> bool {
        matches!(means, TenantScope::LookedAfter(_)) && self.stranger.tenant == "default"
    }

    /// Returns the responses of listing routes to the stranger, without IDs and times.
    async fn listed(&self, names: &Names) -> BTreeMap<&'static str, String> {
        let mut responses = BTreeMap::new();
        for (route, means) in TABLE {
            let (TenantScope::Listed(asked) | TenantScope::LookedAfter(asked)) = means else {
                continue;
            };
            if self.is_looked_after(means) {
                continue;
            }
            for asked in *asked {
                let (verb, _) = route.split_once(' ').expect("a verb and a path");
                let (status, text) = self.stranger.asks(&self.app, verb, asked, names).await;
                responses.insert(asked.path, neutral(status, &text));
            }
        }
        responses
    }

    /// Requests the owner's data and missing data as the stranger, then as the owner.
    async fn walk(&mut self, route: &str, asked: &RouteRequest, is_own: bool, owned: &Names) {
        let (verb, _) = route.split_once(' ').expect("a verb and a path");
        let (app, stranger) = (&self.app, &self.stranger);
        let place = format!("{verb} {}", asked.path);
        self.rows.look();
        let theirs = stranger.asks(app, verb, asked, owned).await;
        let changed = self.rows.changed(owned);
        let nobodys = stranger.asks(app, verb, asked, &Names::nobodys()).await;
        let (response, of_nobody) = (neutral(theirs.0, &theirs.1), neutral(nobodys.0, &nobodys.1));
        if response != of_nobody {
            self.wrong.push(format!("{place} differs: {response}\n  of nobody's: {of_nobody}"));
        }
        if theirs.1.contains(CANARY) {
            self.wrong.push(format!("{place} shows what is in it: {}", theirs.1));
        }
        self.wrong.extend(changed.into_iter().map(|changed| format!("{place}: {changed}")));
        // A request that returns nothing to its owner would prove nothing.
        let own = self.owner.asks(app, verb, asked, owned).await;
        if !is_own && neutral(own.0, &own.1) == response {
            self.wrong.push(format!("{place} is the same for its owner: {response}"));
        }
        if is_own && own.0 >= 400 {
            self.wrong.push(format!("{place} is refused to its owner: {own:?}"));
        }
    }

    /// Checks that routes without tenant data contain none of the owner's names.
    async fn look_at_the_rest(&mut self, owned: &Names) {
        for (route, means) in TABLE {
            let (verb, path) = route.split_once(' ').expect("a verb and a path");
            // The default tenant sees the load of all workers.
            let is_told = self.stranger.tenant == "default" && path == "/api/worker/load";
            if !matches!(means, TenantScope::Nothing(_))
                || verb != "get"
                || path.contains('{')
                || is_told
            {
                continue;
            }
            let asked = RouteRequest { path, body: "" };
            let (_, text) = self.stranger.asks(&self.app, verb, &asked, &Names::nobodys()).await;
            if text.contains(CANARY) || owned.hide(&text) != text {
                self.wrong.push(format!("{route} names something of the owner: {text}"));
            }
        }
    }

    async fn walk_all(mut self) {
        let before = self.listed(&Names::nobodys()).await;
        let mut owned = Names::made(&self.app, self.owner.tenant, &self.owner.bearer).await;
        let after = self.listed(&Names::nobodys()).await;
        for (path, response) in &after {
            if before[path] != *response {
                let before = &before[path];
                self.wrong.push(format!("{path} differs: {response}\n  before: {before}"));
            }
        }
        self.look_at_the_rest(&owned).await;
        // Names of one's own come last: what a stranger makes under one would be found by the others.
        for is_own in [false, true] {
            for (route, means) in TABLE {
                let asked = match means {
                    TenantScope::Named(asked) if !is_own => asked,
                    TenantScope::Own(asked) if is_own => asked,
                    TenantScope::LookedAfter(asked) if !is_own && !self.is_looked_after(means) => {
                        asked
                    }
                    _ => continue,
                };
                for asked in *asked {
                    self.walk(route, asked, is_own, &owned).await;
                    if !route.starts_with("get ") {
                        let bearer = &self.owner.bearer;
                        owned = Names::made(&self.app, self.owner.tenant, bearer).await;
                    }
                }
            }
        }
        for (route, asked) in BELOW {
            self.walk(route, asked, true, &owned).await;
        }
        // What the owner starts below its execution is in that execution's trace.
        assert_eq!(self.rows.executions_with(owned.get("trace")), 1 + BELOW.len());
        self.app.close().await;
        let wrong = self.wrong;
        assert!(wrong.is_empty(), "{} answers are wrong:\n{}", wrong.len(), wrong.join("\n"));
    }
}

/// An answer without ids and times.
fn neutral(status: u16, text: &str) -> String {
    let text = text.strip_prefix("data: ").unwrap_or(text);
    let body = serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()));
    // A digest of something with an id in it differs with the id.
    let is_digest = |part: &str| part.len() == 64 && part.bytes().all(|b| b.is_ascii_hexdigit());
    let shown = shown(status, body);
    let parts = shown.split_inclusive(|c: char| !c.is_ascii_alphanumeric());
    parts
        .map(|part| {
            let word = part.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
            if is_digest(word) { part.replace(word, "[digest]") } else { part.to_owned() }
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn data_of_a_tenant_is_hidden_from_another() {
    TenantPair::new("acme", "other").await.walk_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn data_of_a_tenant_is_hidden_from_the_default_one() {
    TenantPair::new("acme", "default").await.walk_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn data_of_the_default_tenant_is_hidden_from_another() {
    TenantPair::new("default", "acme").await.walk_all().await;
}

#[tokio::test]
async fn every_route_of_the_openapi_document_is_tested_once() {
    let app = TestApp::start(0).await;
    let (_, document) = get(&app, "/api/openapi.json").answer().await;
    let mut described = BTreeSet::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (verb, operation) in item.as_object().expect("operations") {
            let is_internal = operation["x-roles"] == serde_json::json!(["internal"]);
            described.insert((format!("{verb} {path}"), is_internal));
        }
    }
    let is_internal = |means: &TenantScope| matches!(means, TenantScope::Internal);
    let listed: Vec<(String, bool)> =
        TABLE.iter().map(|(route, means)| ((*route).to_owned(), is_internal(means))).collect();
    let distinct: BTreeSet<_> = listed.iter().cloned().collect();
    assert_eq!(distinct.len(), listed.len(), "a route is there twice");
    assert_eq!(distinct, described, "left: tests/it/tenants/table.rs, right: the document");
    app.close().await;
}
