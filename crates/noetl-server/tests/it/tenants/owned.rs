//! Data of a tenant: something of every kind, with its names.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};

use noetl_test_app::TestApp;
use reqwest::Method;
use serde_json::{Value, json};

use crate::api::ask;

/// Text in all data of the owner, and nowhere else.
pub(super) const CANARY: &str = "canary-4711";

/// Names of things, by kind.
#[derive(Debug, Clone)]
pub(super) struct Names(BTreeMap<&'static str, String>);

impl Names {
    /// Returns unused names of every kind.
    pub(super) fn nobodys() -> Self {
        // New names each time, because a request may create data under its name.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let number = |kind: u32| (111_111_111_111_111_111 + i64::from(10 * n + kind)).to_string();
        Self(BTreeMap::from([
            ("execution", number(1)),
            ("command", number(2)),
            ("event", number(3)),
            ("catalog", number(4)),
            ("path", format!("nobody{n}/greet")),
            ("credential", format!("nobodys{n}_credential")),
            ("credential_id", number(5)),
            ("entry", format!("nobodys{n}_entry")),
            ("subscription", number(6)),
            ("subscription_path", format!("nobody{n}/orders")),
            ("listener", format!("nobodys{n}")),
            ("schedule", number(7)),
            ("result", format!("noetl://execution/{}/result/rows/{}", number(1), number(8))),
            ("asking", number(9)),
            ("asked", number(0)),
            ("answer", "00000000000000000000000000000000".to_owned()),
            ("token", "0123456789abcdef".to_owned()),
            ("grant", "fedcba9876543210".to_owned()),
            ("object", "noetl/tenant=nobody/a.json".to_owned()),
            ("suite", format!("nobody{n}/suite")),
            ("worker", format!("nobodys{n}-worker")),
            ("trace", "0af7651916cd43dd8448eb211c80319c".to_owned()),
        ]))
    }

    /// Makes something of every kind for a tenant.
    pub(super) async fn made(app: &TestApp, tenant: &str, bearer: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(100);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let owner = Owner { app, bearer };
        let mut names = BTreeMap::from([
            ("path", format!("owned{n}/greet")),
            ("credential", format!("owned{n}_credential")),
            ("entry", format!("owned{n}_entry")),
            ("subscription_path", format!("owned{n}/orders")),
            ("listener", format!("owned{n}")),
            ("object", format!("noetl/tenant={tenant}/owned{n}.json")),
            ("suite", format!("owned{n}/suite")),
            ("worker", format!("owned{n}-worker")),
            ("trace", format!("0af7651916cd43dd8448eb211c8{n:05}")),
        ]);
        owner.documents(&mut names).await;
        owner.executions(&mut names).await;
        owner.secrets(&mut names).await;
        owner.triggers(&mut names).await;
        owner.stored_data(&mut names).await;
        Self(names)
    }

    pub(super) fn get(&self, name: &str) -> &str {
        &self.0[name]
    }

    /// Replaces the placeholders of names in a text.
    pub(super) fn fill(&self, text: &str) -> String {
        let filled = self.0.iter();
        filled.fold(text.to_owned(), |text, (kind, name)| text.replace(&format!("<{kind}>"), name))
    }

    /// A text without these names, longest first: some hold others.
    pub(super) fn hide(&self, text: &str) -> String {
        let mut names: Vec<_> = self.0.iter().collect();
        names.sort_by_key(|(_, name)| std::cmp::Reverse(name.len()));
        names
            .iter()
            .fold(text.to_owned(), |text, (kind, name)| text.replace(*name, &format!("<{kind}>")))
    }
}

/// A caller that creates data.
struct Owner<'a> {
    app: &'a TestApp,
    bearer: &'a str,
}

type Created = BTreeMap<&'static str, String>;

impl Owner<'_> {
    async fn send(&self, verb: Method, path: &str, body: Value) -> Value {
        let asked = ask(self.app, verb, path).header("authorization", self.bearer);
        let asked = asked.header("content-type", "application/json").body(body.to_string());
        let (status, answer) = asked.answer().await;
        assert!(status < 300, "{path}: {status} {answer}");
        answer
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        self.send(Method::POST, path, body).await
    }

    async fn read(&self, path: &str) -> Value {
        let asked = ask(self.app, Method::GET, path).header("authorization", self.bearer);
        let (status, answer) = asked.answer().await;
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    async fn register(&self, content: &str) -> Value {
        self.post("/api/catalog/register", json!({ "content": content })).await
    }

    async fn documents(&self, made: &mut Created) {
        let path = made["path"].clone();
        let content = format!(
            "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {{name: greet, path: {path}, agent: true}}\n\
             workload: {{who: {CANARY}}}\nworkflow:\n  - step: start\n    tool:\n      kind: python\n      \
             input: {{who: \"{{{{ workload.who }}}}\"}}\n      code: result = who\n"
        );
        let entry = self.register(&content).await;
        made.insert("catalog", text(&entry, "catalog_id"));
        self.register(&format!(
            "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {{name: asking, path: {path}/asking}}\n\
             workflow:\n  - step: start\n    tool: {{kind: approval, message: {CANARY}, timeout: 1h}}\n"
        ))
        .await;
        let tests = json!({"playbook_path": path, "tests": [{"name": CANARY}], "metadata": {}});
        let suite = format!("/api/playbook-tests/suites/{}", made["suite"]);
        self.send(Method::PUT, &suite, tests).await;
    }

    async fn executions(&self, made: &mut Created) {
        let trace = json!({"traceparent": format!("00-{}-b7ad6b7169203331-01", made["trace"])});
        let body = json!({"path": made["path"], "payload": {"who": CANARY}, "trace": trace});
        let execution = text(&self.post("/api/execute", body).await, "execution_id");
        let events = self.read(&format!("/api/executions/{execution}/events")).await;
        let events = events["events"].as_array().cloned().unwrap_or_default();
        let issued = events.iter().find(|event| event["event_type"] == "command.issued");
        let command = issued.expect("a command")["event_id"].to_string();
        let lines = json!({"command_id": command, "lines": [{"text": CANARY}]});
        self.post(&format!("/api/executions/{execution}/logs"), lines).await;
        self.post(&format!("/api/vars/{execution}"), json!({"rows": CANARY})).await;
        let result = json!({"name": "rows", "data": {"rows": CANARY}});
        let stored = self.send(Method::PUT, &format!("/api/result/{execution}"), result).await;
        made.insert("result", text(&stored, "ref"));
        made.insert("event", events[0]["event_id"].to_string());
        made.insert("execution", execution);
        made.insert("command", command);

        let body = json!({"path": format!("{}/asking", made["path"])});
        let asking = text(&self.post("/api/execute", body).await, "execution_id");
        let waiting = self.read("/api/approvals?limit=100").await;
        let waiting = waiting["approvals"].as_array().cloned().unwrap_or_default();
        let one = waiting.iter().find(|one| one["execution_id"] == asking.as_str());
        let one = one.expect("an approval that waits");
        made.insert("asked", text(one, "command_id"));
        made.insert("answer", text(one, "token"));
        made.insert("asking", asking);
    }

    async fn secrets(&self, made: &mut Created) {
        let data = json!({"secret": CANARY});
        let body = json!({"name": made["credential"], "type": "t", "data": data});
        let stored = self.post("/api/credentials", body).await;
        made.insert("credential_id", text(&stored, "id"));
        let place = format!("/api/keychain/{}/{}", made["catalog"], made["entry"]);
        self.post(&place, json!({"data": {"token": CANARY}})).await;
        let token = self.post("/api/tokens", json!({"name": CANARY, "role": "viewer"})).await;
        made.insert("token", text(&token, "id"));
        let grant = json!({"credential": CANARY, "prefix": "owned"});
        let grant = self.post("/api/grants", grant).await;
        made.insert("grant", text(&grant, "id"));
    }

    async fn triggers(&self, made: &mut Created) {
        let (path, playbook) = (made["subscription_path"].clone(), made["path"].clone());
        let head = "apiVersion: noetl.io/v1\nkind: Subscription\n";
        self.register(&format!(
            "{head}metadata: {{name: orders, path: {path}}}\nspec:\n  source: nats\n  mode: pull\n  \
             stream: orders\n  dispatch: {{playbook: {playbook}}}\n"
        ))
        .await;
        let known = self.post("/api/subscriptions", json!({ "path": path })).await;
        made.insert("subscription", text(&known, "subscription_id"));
        let (listener, secret) = (made["listener"].clone(), made["credential"].clone());
        self.register(&format!(
            "{head}metadata: {{name: hook, path: {path}/hook}}\nspec:\n  source: webhook\n  mode: push\n  \
             dispatch: {{playbook: {playbook}}}\n  ingress: {{gateway_path: /ingress/{listener}, \
             verify: {{type: bearer, secret: {secret}}}}}\n"
        ))
        .await;
        let body = json!({"name": CANARY, "playbook": playbook, "cron": "30 2 1 1 *"});
        let schedule = self.post("/api/schedules", body).await;
        made.insert("schedule", text(&schedule, "schedule_id"));
    }

    async fn stored_data(&self, made: &mut Created) {
        let object = format!("/api/internal/objects/{}", made["object"]);
        self.send(Method::PUT, &object, json!(CANARY)).await;
        let body = json!({"name": made["worker"], "labels": {"of": CANARY}});
        self.post("/api/worker/pool/register", body).await;
    }
}

fn text(answer: &Value, field: &str) -> String {
    answer[field].as_str().unwrap_or_else(|| panic!("no {field} in {answer}")).to_owned()
}
