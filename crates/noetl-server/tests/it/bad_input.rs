//! Every route with every kind of bad input: the response is documented, is JSON with a code and a
//! message of bounded length, is never 500, and the request changes nothing.
//!
//! The requests are generated from the document, so new routes and fields are covered. Snapshots of
//! the responses, by group, show each change of a status or code.

mod document;
mod kinds;
pub(crate) mod state;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use noetl_server::{InternalToken, Options};
use noetl_store::Store;
use noetl_store_postgres::PostgresStore;
use noetl_store_sqlite::SqliteStore;
use noetl_test_app::{TestApp, migrated_database};
use reqwest::{Client, Response};
use serde_json::Value;
use tempfile::TempDir;

use self::document::{OpenApi, Operation};
use self::kinds::{Kind, Kinds, RequestParts};
use self::state::Database;
use crate::api::{GREET, TOKEN, get, open_command, register, started};
use crate::stores::key;

/// Maximum length of an error message, so that errors don't echo large inputs.
const SENTENCE_MAX: usize = 4096;

/// The groups of operations, each with a test.
const GROUPS: [&str; 9] = [
    "catalog",
    "executions",
    "workers",
    "credentials",
    "subscriptions",
    "schedules",
    "tokens",
    "health",
    "internal",
];

/// A server with something in it that could be changed.
struct World {
    app: TestApp,
    http: Client,
    /// The database to check for changes, if the store has one.
    database: Option<Database>,
    /// An execution with an open command.
    execution: i64,
    command: i64,
    catalog: String,
}

impl World {
    async fn on(store: Arc<dyn Store>, file: Option<&Path>) -> Self {
        let internal_token = InternalToken::read_by(|| Some(TOKEN.to_owned()));
        let options = Options { internal_token, ..Options::default() };
        let app = TestApp::builder().slots(0).over(store).encryption_key(key());
        let app = app.options(options).start().await;
        let (_, entry) = register(&app, GREET).await;
        let catalog = entry["catalog_id"].as_str().expect("an id").to_owned();
        let http = Client::builder().no_proxy().build().expect("a client");
        let database = file.map(Database::open);
        let mut world = Self { app, http, database, execution: 0, command: 0, catalog };
        world.renew().await;
        world
    }

    /// Makes something new for the next to fail on.
    async fn renew(&mut self) {
        self.execution = started(&self.app).await;
        self.command = open_command(&self.app, self.execution).await;
        if let Some(database) = &mut self.database {
            database.look();
        }
    }

    /// Returns a valid value for a parameter or a field, by its name.
    fn good(&self, path: &str, name: &str) -> String {
        match name {
            "id" if path.contains("suites") || path.contains("tokens") => "nobody".to_owned(),
            "id" | "execution_id" | "?execution_id" => self.execution.to_string(),
            "event_id" | "command" | "command_id" => self.command.to_string(),
            "catalog_id" => self.catalog.clone(),
            "path" | "key" | "?path" | "?playbook_id" => "tests/greet".to_owned(),
            "kind" => "playbook".to_owned(),
            "action" => "activate".to_owned(),
            "step" => "start".to_owned(),
            "?shard_count" => "4".to_owned(),
            _ => "nobody".to_owned(),
        }
    }

    async fn send(&self, operation: &Operation, sent: RequestParts) -> Response {
        let url = format!("{}{}", self.app.base, sent.path.unwrap_or_default());
        let mut request = self.http.request(operation.verb.clone(), url);
        if operation.is_internal {
            request = request.header("authorization", format!("Bearer {TOKEN}"));
        }
        if let Some(kind) = sent.content_type {
            request = request.header("content-type", kind);
        }
        if let Some(body) = sent.body {
            request = request.body(body);
        }
        request.send().await.unwrap_or_else(|error| panic!("{operation}: {error}"))
    }

    /// The operations of a group.
    async fn operations(&self, tag: &str) -> Vec<Operation> {
        let (_, document) = get(&self.app, "/api/openapi.json").answer().await;
        let operations = OpenApi(document).operations(tag);
        assert!(!operations.is_empty(), "no operations of {tag}");
        operations
    }
}

/// Returns the violation of a response to bad input, if any.
fn trouble(operation: &Operation, status: u16, body: &[u8]) -> Option<String> {
    // The store is available, so 503 is as wrong as 500; 501 is an unsupported feature.
    if status >= 500 && status != 501 {
        return Some(format!("{status}: {}", String::from_utf8_lossy(body)));
    }
    if !operation.statuses.contains(&status) {
        return Some(format!("{status} is not in the document"));
    }
    let Ok(body) = serde_json::from_slice::<Value>(body) else {
        return Some(format!("{status} without JSON: {}", String::from_utf8_lossy(body)));
    };
    let text = |name: &str| body[name].as_str().unwrap_or_default();
    let (code, message) = (text("code"), text("message"));
    let is_code = !code.is_empty() && code.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    if !is_code || body["status"] != status || text("error") != message {
        return Some(format!("an odd body: {body}"));
    }
    if message.is_empty() || message.len() > SENTENCE_MAX {
        return Some(format!("a sentence of {} bytes", message.len()));
    }
    let entries = body["diagnostics"].as_array().into_iter().flatten();
    let longest = entries.map(|entry| entry.to_string().len()).max().unwrap_or_default();
    (longest > 3 * SENTENCE_MAX).then(|| format!("a finding of {longest} bytes"))
}

/// Sends bad input of the kinds that are wanted to an operation, and writes down what came back.
async fn walk(
    world: &mut World,
    operation: &Operation,
    is_wanted: impl Fn(&str) -> bool,
    wrong: &mut Vec<String>,
) -> String {
    let mut answers: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let after = |world: &World, seen: usize| {
        let good = |name: &str| world.good(&operation.path, name);
        kinds::of(operation, &good, Kinds::after(seen, &is_wanted)).into_iter()
    };
    let mut kinds = after(world, 0);
    while let Some((seen, Kind { label, sent })) = kinds.next() {
        let response = world.send(operation, sent).await;
        let status = response.status().as_u16();
        if status < 400 {
            // What a route makes sense of is no bad input; that it does is written down. An answer
            // may have no end, so its head is enough.
            answers.entry(status.to_string()).or_default().push(label);
            if operation.verb != reqwest::Method::GET {
                world.renew().await;
                // What stands for something is another thing from now on.
                kinds = after(world, seen);
            }
            continue;
        }
        let body = response.bytes().await.unwrap_or_default();
        if let Some(trouble) = trouble(operation, status, &body) {
            wrong.push(format!("{operation}, {label}: {trouble}"));
        }
        if let Some(changed) = world.database.as_mut().and_then(Database::changed) {
            wrong.push(format!("{operation}, {label}: {status}, and {changed} changed"));
        }
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let code = body["code"].as_str().unwrap_or_default();
        answers.entry(format!("{status} {code}")).or_default().push(label);
    }
    if answers.is_empty() {
        return String::new();
    }
    let lines =
        answers.iter().map(|(answer, labels)| format!("  {answer}: {}\n", labels.join(", ")));
    format!("{operation}\n{}\n", lines.collect::<String>())
}

fn none_is_wrong(wrong: &[String]) {
    assert!(wrong.is_empty(), "{} answers are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Tests the operations of a group, and compares the responses with the snapshot.
async fn group(tag: &str) {
    let directory = TempDir::new().expect("a directory");
    let file = directory.path().join("noetl.db");
    let store = SqliteStore::open(noetl_store_sqlite::Options::file(&file)).expect("a store");
    let mut world = World::on(Arc::new(store), Some(&file)).await;
    let (mut text, mut wrong) = (String::new(), Vec::new());
    for operation in &world.operations(tag).await {
        text.push_str(&walk(&mut world, operation, |_| true, &mut wrong).await);
    }
    assert_eq!(get(&world.app, "/api/health").answer().await.0, 200);
    world.app.close().await;
    none_is_wrong(&wrong);
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("bad_input");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(tag, text));
}

/// Postgres has limits of its own: what a row, an index or a number can hold. What reaches them has to
/// be refused before.
async fn group_on_postgres(tag: &str) {
    let database = migrated_database();
    let options = noetl_store_postgres::Options::new(&database.url()).expect("a URL");
    let store = PostgresStore::open(options).await.expect("a store");
    let mut world = World::on(Arc::new(store), None).await;
    let reaches_it = |label: &str| {
        ["1 MiB", "letters", "2^63", "10^20", "-1", "9223372036854775808", "half a pair", "empty"]
            .iter()
            .any(|part| label.contains(part))
    };
    let mut wrong = Vec::new();
    for operation in &world.operations(tag).await {
        walk(&mut world, operation, reaches_it, &mut wrong).await;
    }
    world.app.close().await;
    none_is_wrong(&wrong);
}

/// A test for each group, which do not wait for one another.
macro_rules! on_postgres {
    ($($tag:ident)*) => {
        mod postgres_is_asked_for_nothing_that_it_cannot_hold {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $tag() {
                    super::group_on_postgres(stringify!($tag)).await;
                }
            )*

            #[test]
            fn the_tests_on_postgres_cover_every_group() {
                assert_eq!(super::GROUPS, [$(stringify!($tag)),*]);
            }
        }
    };
}

on_postgres!(catalog executions workers credentials subscriptions schedules tokens health internal);

#[tokio::test]
async fn the_catalog_refuses_bad_input() {
    group("catalog").await;
}

#[tokio::test]
async fn executions_refuse_bad_input() {
    group("executions").await;
}

#[tokio::test]
async fn worker_routes_reject_bad_input() {
    group("workers").await;
}

#[tokio::test]
async fn credentials_refuse_bad_input() {
    group("credentials").await;
}

#[tokio::test]
async fn subscriptions_refuse_bad_input() {
    group("subscriptions").await;
}

#[tokio::test]
async fn schedules_refuse_bad_input() {
    group("schedules").await;
}

#[tokio::test]
async fn tokens_refuse_bad_input() {
    group("tokens").await;
}

#[tokio::test]
async fn system_routes_refuse_bad_input() {
    group("health").await;
}

#[tokio::test]
async fn internal_routes_refuse_bad_input() {
    group("internal").await;
}

#[tokio::test]
async fn every_operation_belongs_to_a_tested_group() {
    let app = TestApp::start(0).await;
    let (_, document) = get(&app, "/api/openapi.json").answer().await;
    let whole = OpenApi(document);
    let count: usize = GROUPS.iter().map(|tag| whole.operations(tag).len()).sum();
    assert_eq!(count, whole.count());
    app.close().await;
}
